"""The process that writes the files of export jobs, a few days of one job at a time.

A turn reads the rows of some days, appends them to the files and then stores how far the job is. Whatever is killed,
the next turn cuts the files to what is stored and goes on there. Jobs take turns, so a long one does not hold up the
others. The last block of each chain is fixed when a job begins; if that block is rolled back, the job begins anew.
"""

import asyncio
import re
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

import msgspec

from icefall.db.disk import free_space
from icefall.errors import NotFound, Unavailable
from icefall.evm.reading.one_history import in_one_history
from icefall.exports.model import (
    COMPLETED,
    FAILED,
    TRUNCATED,
    ExportEnd,
    ExportJob,
    ExportState,
    day_text,
)
from icefall.exports.parts import ExportParts, PartsLost, pack_archive
from icefall.exports.registry import ExportRegistry
from icefall.exports.sources import EndReplaced, JobSource
from icefall.observe.log import Log

ROWS_MAX = 1_000_000  # of one job
TURN_ROWS = 50_000  # wanted of a turn
TURN_ROWS_MAX = 200_000  # above which a turn of several days is made shorter
STEP_MAX = 4096  # days
TRIES_MAX = 5  # to begin while blocks are rolled back
JOB_MAX_S = 86_400.0
IDLE_S, CLEAN_S = 1.0, 60.0
FREE_MIN = 3  # percent of the disk
_WRITTEN = 500  # rows at a time
_REMOVED = 100  # jobs at a time
_JOB_FOLDER = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class TooManyRows(Exception):
    """The days that are read have more rows than the job, or the turn, may have."""


class ExportRunner:
    """Runs the jobs of a folder. `sources`: of the types of jobs; those of other types are left to another process.
    `runner`: the ID of the folder. `rows_max`: of one job."""

    def __init__(
        self,
        registry: ExportRegistry,
        sources: Mapping[str, JobSource],
        folder: Path,
        runner: str,
        log: Log,
        *,
        rows_max: int = ROWS_MAX,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._registry = registry
        self._sources = sources
        self._folder = folder
        self._runner = runner
        self._log = log
        self._rows_max = rows_max
        self._clock = clock
        self._clean_at = 0.0

    async def run(self) -> None:
        while True:
            try:
                is_idle = not await self.step()
            except Unavailable as error:
                self._log.warn("exports wait for a store or a chain", error=str(error))
                is_idle = True
            if is_idle:
                await asyncio.sleep(IDLE_S)

    async def step(self) -> bool:
        """Give one job a turn; False if there is none."""
        now = self._clock()
        if now >= self._clean_at:
            self._clean_at = now + CLEAN_S
            await self.clean()
        job = await self._registry.next(self._runner, self._sources, now)
        if job is None:
            return False
        await self._turn(job)
        return True

    async def _turn(self, job: ExportJob) -> None:
        """Work on a job. It waits while a store cannot be used or a chain is bootstrapping; everything else ends it."""
        try:
            if problem := await self._problem(job):
                await self._end(job, ExportEnd(status=FAILED, message=problem))
                return
            state = job.decoded_state or await self._begin(job, 0)
            if state.next_day > state.last_day:
                await self._finish(job, state, ExportEnd(status=COMPLETED))
            else:
                await self._read_days(job, state)
        except (PartsLost, EndReplaced):
            await self._begin_anew(job)
        except Unavailable:
            raise
        except NotFound as error:
            await self._end(job, ExportEnd(status=FAILED, message=str(error)))
        except OSError as error:
            self._log.error("an export cannot be written", job=job.id, error=str(error))
            await self._end(job, ExportEnd(status=FAILED, message=f"its files cannot be written: {error.strerror}"))
        except Exception as error:
            self._log.error("an export failed", job=job.id, error=f"{type(error).__name__}: {error}")
            await self._end(job, ExportEnd(status=FAILED, message="internal error"))

    async def _problem(self, job: ExportJob) -> str:
        """Why a job cannot go on; empty if it can."""
        if self._clock() - job.created > JOB_MAX_S:
            return "it did not end within a day"
        if await self._registry.used_bytes() > self._registry.bytes_max:
            return "the room for exports is used up: ask for fewer days, or wait until other exports expire"
        if free_space(self._folder).percent < FREE_MIN:
            return "the disk of the server is almost full"
        return ""

    # -- the beginning -------------------------------------------------------------------------------------------

    async def _begin(self, job: ExportJob, tries: int) -> ExportState:
        """Fix the last blocks, and begin with empty files."""
        shutil.rmtree(self._folder / job.id, ignore_errors=True)
        return await in_one_history(self._sources[job.type].begin, job.decoded_request, tries)

    async def _begin_anew(self, job: ExportJob) -> None:
        known = job.decoded_state
        tries = known.tries + 1 if known is not None else 1
        if tries > TRIES_MAX:
            message = "its last blocks were rolled back again and again: ask for an earlier lastDate"
            await self._end(job, ExportEnd(status=FAILED, message=message))
            return
        await self._registry.put_state(job.id, self._runner, await self._begin(job, tries), self._clock())

    # -- a turn --------------------------------------------------------------------------------------------------

    async def _read_days(self, job: ExportJob, state: ExportState) -> None:
        days = min(state.step, state.last_day + 1 - state.next_day)
        parts = self._parts(job, state.sizes)
        try:
            count = await in_one_history(partial(self._write_days, parts, job, state, days))
        except TooManyRows:
            parts.cut(state.sizes)
            if days > 1:
                await self._put(job, msgspec.structs.replace(state, step=max(1, days // 2), sizes=parts.flushed()))
            else:
                await self._end_at(job, state)
            return
        finally:
            sizes = parts.flushed()
            parts.close()
        step = days * 2 if count * 2 < TURN_ROWS else days if count < 2 * TURN_ROWS else max(1, days // 2)
        reached = msgspec.structs.replace(
            state, next_day=state.next_day + days, rows=state.rows + count, sizes=sizes, step=min(step, STEP_MAX)
        )
        if await self._put(job, reached) and reached.next_day > reached.last_day:
            await self._finish(job, reached, ExportEnd(status=COMPLETED))

    def _parts(self, job: ExportJob, sizes: Mapping[str, int]) -> ExportParts:
        return ExportParts(self._folder / job.id, self._sources[job.type].columns(job.type), sizes)

    async def _write_days(self, parts: ExportParts, job: ExportJob, state: ExportState, days: int) -> int:
        """Append the rows of some days; return how many there are. It may be called again, if blocks were rolled
        back while they were read."""
        parts.cut(state.sizes)
        limit = self._rows_max - state.rows
        if days > 1:
            limit = min(limit, TURN_ROWS_MAX)
        count = 0
        held: dict[str, list[Sequence[object]]] = {}
        async for name, values in self._sources[job.type].rows(job.type, job.decoded_request, state, days):
            rows = held.setdefault(name, [])
            rows.append(values)
            count += 1
            if count > limit:
                raise TooManyRows
            if len(rows) >= _WRITTEN:
                parts.write(name, rows)
                rows.clear()
        for name, rows in held.items():
            parts.write(name, rows)
        return count

    async def _put(self, job: ExportJob, state: ExportState) -> bool:
        return await self._registry.put_state(job.id, self._runner, state, self._clock())

    # -- the end -------------------------------------------------------------------------------------------------

    async def _end_at(self, job: ExportJob, state: ExportState) -> None:
        """End a job at a day that does not fit any more."""
        day = day_text(state.next_day)
        if not state.rows:
            message = f"{day} alone has more than {self._rows_max} rows: ask for fewer addresses"
            await self._end(job, ExportEnd(status=FAILED, message=message))
            return
        message = f"it holds {state.rows} rows, up to and without {day}: the next export can begin there"
        await self._finish(job, state, ExportEnd(status=TRUNCATED, message=message, next_date=day))

    async def _finish(self, job: ExportJob, state: ExportState, end: ExportEnd) -> None:
        """Make the archive, and end the job."""
        first, last = day_text(state.first_day), day_text(max(state.first_day, state.next_day - 1))
        name = f"transactions_{first}_{last}.zip"
        if not state.sizes:
            self._parts(job, {}).close()  # of chains without blocks: only headers
        manifest = {
            "operationId": job.id, "type": job.type, "request": msgspec.Raw(job.request.encode()), "firstDate": first,
            "lastDate": last, "rows": state.rows, "lastBlocks": state.ends,
        }  # fmt: skip
        made = msgspec.json.format(msgspec.json.encode(manifest)) + b"\n"
        names = tuple(self._sources[job.type].columns(job.type))
        size = await asyncio.to_thread(pack_archive, self._folder / job.id, name, names, made)
        await self._end(job, msgspec.structs.replace(end, rows=state.rows, bytes=size, file=name))

    async def _end(self, job: ExportJob, end: ExportEnd) -> None:
        if not end.file:
            shutil.rmtree(self._folder / job.id, ignore_errors=True)
        if await self._registry.end(job.id, self._runner, end, self._clock()):
            self._log.info("an export has ended", job=job.id, status=end.status, rows=end.rows, why=end.message)

    # -- cleaning up ---------------------------------------------------------------------------------------------

    async def clean(self) -> None:
        """Remove the files of jobs that have expired, were cancelled or are not known."""
        now = self._clock()
        for job_id in await self._registry.expired(now, _REMOVED):
            shutil.rmtree(self._folder / job_id, ignore_errors=True)
            await self._registry.forget_files(job_id)
        for path in self._job_folders():
            job = await self._registry.job(path.name)
            if job is None or (job.expires is not None and job.expires <= now):
                shutil.rmtree(path, ignore_errors=True)
        await self._registry.drop_old(now)

    def _job_folders(self) -> list[Path]:
        try:
            return [path for path in self._folder.iterdir() if _JOB_FOLDER.fullmatch(path.name)]
        except OSError as error:  # jobs end with this reason; the folder may come back
            self._log.error("the folder of exports cannot be read", folder=str(self._folder), error=str(error))
            return []
