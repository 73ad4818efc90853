"""Export jobs in the access store: ordered there by workers, and taken from there by the process that writes files."""

from collections.abc import Callable, Iterable
from typing import Protocol, TypeVar
from uuid import uuid4

import msgspec

from icefall.db.engine import Reader, Transaction
from icefall.db.statements import load
from icefall.errors import NotFound, TooManyRequests
from icefall.exports.model import CANCELLED, RUNNING, ExportEnd, ExportJob, ExportRequest, ExportState

T = TypeVar("T")
SQL = load("icefall.access", "exports.sql")
RUNNING_MAX = 5  # jobs of one owner
ALL_RUNNING_MAX = 100
LOST_S = 600.0  # a job that no process has worked on for so long is begun anew by another folder
KEPT_S = 30 * 86_400.0  # the row of a job stays for so long after its files are gone
_RETRY_S = 60


class ExportWriter(Protocol):
    async def write(self, change: Callable[[Transaction], T]) -> T: ...


class ExportRegistry:
    """Reads with `reader`; writes with `store`, which is opened when something is written. `bytes_max`: of the files
    of all jobs. `expiry_s`: how long the files of a finished job stay."""

    def __init__(self, reader: Reader, store: ExportWriter, bytes_max: int, expiry_s: float) -> None:
        self._reader = reader
        self._store = store
        self.bytes_max = bytes_max
        self._expiry_s = expiry_s

    # -- for callers ---------------------------------------------------------------------------------------------

    async def owned(self, owner: str, job_id: str) -> ExportJob:
        """Find a job of an owner; NotFound also for those of others."""
        found = await self.job(job_id)
        if found is None or found.owner != owner:
            raise NotFound(f"there is no operation {job_id[:64]}")
        return found

    async def job(self, job_id: str) -> ExportJob | None:
        rows = await self._reader.rows(SQL.export_job, {"id": job_id})
        return ExportJob(*rows[0]) if rows else None

    async def order(self, owner: str, kind: str, request: ExportRequest, now: float) -> ExportJob:
        """Add a job. The same request of the same owner, while it is running, is the same job."""
        made = ExportJob(
            id=str(uuid4()), owner=owner, type=kind, request=request.text(), status=RUNNING, message="", next_date="",
            state="", rows=0, bytes=0, file="", created=now, updated=now, turn=now, runner="", expires=None,
        )  # fmt: skip

        def change(tx: Transaction) -> ExportJob:
            tx.rows(SQL.lock_exports)
            running = [ExportJob(*row) for row in tx.rows(SQL.running_exports_of, {"owner": owner})]
            for one in running:
                if (one.type, one.request) == (made.type, made.request):
                    return one
            if len(running) >= RUNNING_MAX:
                raise TooManyRequests(f"{RUNNING_MAX} exports are running: wait for one, or cancel one", _RETRY_S)
            if tx.rows(SQL.count_running_exports)[0][0] >= ALL_RUNNING_MAX:
                raise TooManyRequests("too many exports of all callers are running: try again later", _RETRY_S)
            if tx.rows(SQL.export_bytes)[0][0] >= self.bytes_max:
                raise TooManyRequests("the room for exports is used up until some expire: try again later", _RETRY_S)
            tx.run(SQL.add_export, msgspec.structs.asdict(made))
            return made

        return await self._store.write(change)

    async def cancel(self, job: ExportJob, now: float) -> None:
        """End a job that is running; let the files of one that has ended expire."""
        end = ExportEnd(status=CANCELLED, message="it was cancelled", rows=job.rows, bytes=job.bytes)
        if not await self._end(job.id, end, now, {"expires": now, "is_owner": 1, "runner": ""}):
            await self._store.write(lambda tx: tx.run(SQL.expire_export, {"id": job.id, "now": now}))

    # -- for the process that writes files -----------------------------------------------------------------------

    async def next(self, runner: str, types: Iterable[str], now: float) -> ExportJob | None:
        """Claim the running job of these types that has waited for longest."""
        where = {"runner": runner, "lost": now - LOST_S}
        rows = await self._reader.rows(SQL.next_export, where | {"types": list(types)})
        if not rows:
            return None
        job = ExportJob(*rows[0])
        claimed = await self._store.write(lambda tx: tx.run(SQL.claim_export, {**where, "id": job.id, "now": now}))
        return job if claimed else None

    async def put_state(self, job_id: str, runner: str, state: ExportState, now: float) -> bool:
        """Store how far a job is; False if it was cancelled, or belongs to another folder by now."""
        where = {
            "id": job_id, "runner": runner, "now": now, "state": msgspec.json.encode(state).decode(),
            "rows": state.rows, "bytes": sum(state.sizes.values()),
        }  # fmt: skip
        return bool(await self._store.write(lambda tx: tx.run(SQL.put_export_state, where)))

    async def end(self, job_id: str, runner: str, end: ExportEnd, now: float) -> bool:
        """End a job; False if it had ended already, or belongs to another folder by now."""
        return await self._end(job_id, end, now, {"expires": now + self._expiry_s, "is_owner": 0, "runner": runner})

    async def _end(self, job_id: str, end: ExportEnd, now: float, how: dict[str, float | str]) -> bool:
        where = msgspec.structs.asdict(end) | {"id": job_id, "now": now} | how
        return bool(await self._store.write(lambda tx: tx.run(SQL.end_export, where)))

    async def used_bytes(self) -> int:
        return int((await self._reader.rows(SQL.export_bytes))[0][0])

    async def expired(self, now: float, count: int) -> list[str]:
        """List jobs whose files are to be removed."""
        return [job_id for (job_id,) in await self._reader.rows(SQL.expired_exports, {"now": now, "count": count})]

    async def forget_files(self, job_id: str) -> None:
        await self._store.write(lambda tx: tx.run(SQL.empty_export, {"id": job_id}))

    async def drop_old(self, now: float) -> None:
        await self._store.write(lambda tx: tx.run(SQL.drop_old_exports, {"before": now - KEPT_S}))
