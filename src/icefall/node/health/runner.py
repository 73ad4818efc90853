"""Runs health checks: at once when registered, then every period, all at the same time; results are stored.

A check is an async function that returns its message, or raises `Unhealthy`. One that hangs is given up at its time
limit and reported, and the others never notice. Readiness latches: once passed, it stays passed.
"""

import asyncio
import mmap
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec

from icefall.db.engine import Store, StoreError, Transaction
from icefall.node.store import SQL, NodeReader, StoredResult
from icefall.observe.counters import map_allocated, map_existing
from icefall.observe.log import Log
from icefall.wire.text.go_text import format_duration, rfc3339_nano


class UnstoredFailure:
    """The engine's side. `path` None: there is none."""

    def __init__(self, path: Path | None) -> None:
        self._memory = map_allocated(path, mmap.PAGESIZE) if path else None
        self.clear()

    def put(self, answer: bytes) -> None:
        """`answer` is a check result as it is sent."""
        if self._memory is not None and len(answer) <= mmap.PAGESIZE:
            self._memory[:] = answer.ljust(mmap.PAGESIZE, b"\0")

    def clear(self) -> None:
        if self._memory is not None and self._memory[0]:
            self._memory[:] = bytes(mmap.PAGESIZE)


class UnstoredFailureReader:
    """The worker's side."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._memory: mmap.mmap | None = None

    def read(self) -> bytes | None:
        """The failed check result, or None."""
        if self._memory is None:
            self._memory = map_existing(self._path)  # the engine may not have made it yet
        if self._memory is None or not self._memory[0]:
            return None
        return self._memory[:].rstrip(b"\0") or None


HEALTH, READINESS = "health", "readiness"
_ERROR_MAX = 500
NOT_YET_RUN = b'{"error":"not yet run","timestamp":"0001-01-01T00:00:00Z","duration":0}'


class Unhealthy(Exception):
    """The check failed; `message` is what it reports nevertheless."""

    def __init__(self, error: str, message: Any = None) -> None:
        super().__init__(error)
        self.message = message


class Freshness(msgspec.Struct, frozen=True):
    """How old the newest result may be before the engine, or its disk, is considered to hang.

    `unstored`: a failure that the engine could not store.
    """

    limit_ns: int
    unstored: UnstoredFailureReader | None = None

    def stale_result(self, newest_ns: int) -> bytes | None:
        """A failed check response if the newest result is too old, or newer ones could not be stored; else None."""
        unstored = self.unstored.read() if self.unstored else None
        if unstored is not None:
            return unstored
        now_ns = time.time_ns()
        age_ns = now_ns - newest_ns
        if age_ns <= self.limit_ns:
            return None
        text = f"no check has run for {format_duration(age_ns // 10**9 * 10**9)}: the engine or its disk hangs"
        return msgspec.json.encode(CheckResult(None, text, rfc3339_nano(now_ns), 0))


UNFILTERED = ("",)  # the tags of a check that is part of answers without a filter only
ENGINE_CHECK = "engine"  # the name of the result that no check has stored


async def reported_results(node: NodeReader, fresh: Freshness, report: str) -> list[StoredResult]:
    """Return the results as all who report health show them: those stored, and a failed one of the engine if they are
    outdated or newer ones could not be stored."""
    results = await node.health_results(report)
    newest_ns = max((result.stored_ns for result in results), default=0)
    stale = fresh.stale_result(newest_ns) if report == HEALTH else None
    if stale is None:
        return results
    return [*results, StoredResult(ENGINE_CHECK, [], False, msgspec.Raw(stale), newest_ns)]


class Check(msgspec.Struct, frozen=True):
    """A check as it is registered. A function as `tags` is called with each result: they may be learned later."""

    name: str
    run: Callable[[], Awaitable[Any]]
    tags: tuple[str, ...] | Callable[[], tuple[str, ...]] = ()  # none: it is global and part of every answer
    report: str = HEALTH  # the one that the result is part of
    latches: bool = False
    starting_s: float = 0.0  # a failure within these seconds of the start is reported, but not logged as a warning


class CheckResult(msgspec.Struct, omit_defaults=True):
    """A check response as it is sent; the order of the fields is the order of the keys."""

    message: Any = None
    error: str | None = None
    timestamp: str = msgspec.UNSET  # type: ignore[assignment]
    duration: int = msgspec.UNSET  # type: ignore[assignment]
    contiguous_failures: int = msgspec.field(default=0, name="contiguousFailures")
    time_of_first_failure: str | None = msgspec.field(default=None, name="timeOfFirstFailure")


class _State:
    def __init__(self) -> None:
        self.failures = 0
        self.registered_at = time.monotonic()
        self.is_logged = False
        self.first_failure: str | None = None
        self.latched = False
        self.running: asyncio.Task[Any] | None = None
        self.ended_ns = 0  # when the last run ended by itself


class Health:
    """Runs the checks of one engine and stores their results."""

    def __init__(
        self, store: Store, log: Log, period_ns: int, limit_ns: int, unstored: UnstoredFailure | None = None
    ) -> None:
        self._store = store
        self._unstored = unstored or UnstoredFailure(None)
        self._log = log
        self._period_s = period_ns / 1e9
        self._limit_ns = limit_ns
        self._checks: list[Check] = []
        self._states: dict[tuple[str, str], _State] = {}
        self._wake = asyncio.Event()

    async def begin(self) -> None:
        """Delete the results of an earlier run of the program."""
        await self._store.write(lambda tx: tx.run(SQL.clear_health_results))

    async def register(self, check: Check) -> None:
        self._checks.append(check)
        self._states[check.report, check.name] = _State()
        await self._store.write(lambda tx: _put(tx, check, passed=False, answer=NOT_YET_RUN))
        self._wake.set()

    def refresh(self) -> None:
        """Run the checks now: something that they report has changed."""
        self._wake.set()

    async def run_forever(self) -> None:
        ran: set[tuple[str, str]] = set()
        while True:
            self._wake.clear()
            fresh = [check for check in self._checks if (check.report, check.name) not in ran]
            due = fresh or self._checks
            ran.update((check.report, check.name) for check in due)
            await self.run_once(due)
            try:
                async with asyncio.timeout(self._period_s):
                    await self._wake.wait()
            except TimeoutError:
                ran.clear()

    async def run_once(self, checks: list[Check]) -> None:
        """Run these at the same time; each result is stored as soon as it is there."""
        running = {asyncio.ensure_future(self._run(check)) for check in checks}
        while running:
            done, running = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
            await self._keep([task.result() for task in done])

    async def _keep(self, results: list[tuple[Check, bool, CheckResult]]) -> None:
        def store(tx: Transaction) -> None:
            for check, passed, answer in results:
                _put(tx, check, passed=passed, answer=msgspec.json.encode(answer))

        try:
            await self._store.write(store)
            self._unstored.clear()
        except StoreError as error:  # a full disk: the old results stay, and workers report this one
            self._log.error("health results could not be stored", error=str(error))
            text = f"health results could not be stored: {error}"[:_ERROR_MAX]
            self._unstored.put(msgspec.json.encode(CheckResult(None, text, rfc3339_nano(time.time_ns()), 0)))

    async def _run(self, check: Check) -> tuple[Check, bool, CheckResult]:
        state = self._states[check.report, check.name]
        began, timestamp = time.perf_counter_ns(), rfc3339_nano(time.time_ns())
        message, error = await self._attempt(check, state)
        duration = (state.ended_ns or time.perf_counter_ns()) - began
        if check.latches and error is None:
            state.latched = True
        if state.latched:
            error = None
        if error is None:
            state.failures, state.first_failure, state.is_logged = 0, None, False
        else:
            state.failures += 1
            state.first_failure = state.first_failure or timestamp
            if not state.is_logged and time.monotonic() - state.registered_at >= check.starting_s:
                state.is_logged = True
                self._log.warn("check failed", check=check.name, report=check.report, error=error)
        answer = CheckResult(message, error, timestamp, duration, state.failures, state.first_failure)
        return check, error is None, answer

    async def _attempt(self, check: Check, state: _State) -> tuple[Any, str | None]:
        if state.running is not None and not state.running.done():
            return None, "the check is still running since an earlier period"  # never two of a check that hangs
        state.ended_ns = 0
        state.running = asyncio.ensure_future(_timed(check, state))
        done, _ = await asyncio.wait({state.running}, timeout=self._limit_ns / 1e9)
        if not done:
            state.running.cancel()
            return None, f"the check did not finish within {format_duration(self._limit_ns)}"
        try:
            return state.running.result(), None
        except Unhealthy as error:
            return error.message, str(error)
        except Exception as error:
            return None, f"{type(error).__name__}: {error}"


async def _timed(check: Check, state: _State) -> Any:
    """Records when the check itself ended, not when its result was collected."""
    try:
        return await check.run()
    finally:
        state.ended_ns = time.perf_counter_ns()


def _put(tx: Transaction, check: Check, *, passed: bool, answer: bytes) -> None:
    tags = msgspec.json.encode(check.tags() if callable(check.tags) else check.tags).decode()
    tx.run(
        SQL.put_health_result,
        {
            "report": check.report,
            "name": check.name,
            "tags": tags,
            "passed": passed,
            "answer": answer,
            "stored_ns": time.time_ns(),
        },
    )
