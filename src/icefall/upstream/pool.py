"""Several upstreams of one network or chain: which is used next, which back off after a failure, which are disabled."""

import asyncio
import math
import random
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from icefall.upstream.client import Retry, UpstreamDown, UpstreamFailure, WrongUpstream
from icefall.upstream.meter import Clock

_BACKOFF = Retry(first_s=0.5, longest_s=60.0, retry_after_max_s=60.0)


class Named(Protocol):
    name: str


class PoolLog(Protocol):
    """The log that changes in the state of upstreams are written to; observe.Log is one."""

    def info(self, message: str, **fields: Any) -> None: ...

    def warn(self, message: str, **fields: Any) -> None: ...

    def error(self, message: str, **fields: Any) -> None: ...


_Member = TypeVar("_Member", bound=Named)


class NoUpstreamLeft(UpstreamFailure):
    """Every upstream has been disabled."""


class UpstreamState(msgspec.Struct):
    usable: bool = False  # its latest probe succeeded and no call has failed since
    disabled: str | None = None  # why it is never used again
    failures: int = 0  # in a row
    retry_at: float = 0.0  # when it may be probed again
    failure: str | None = None  # the latest one, until a call succeeds
    is_wrong: bool = False  # by its latest probe it is not what is configured


class Pool(Generic[_Member]):
    """A set of upstreams, of which only usable ones are picked. The others are probed in the background when their
    pause is over, so that one which hangs does not hold up the others.

    `probe` checks whether a member is fit for use: it returns why it must be disabled, or None. If it raises an
    UpstreamFailure, the member backs off.
    """

    def __init__(
        self,
        members: Sequence[_Member],
        probe: Callable[[_Member], Awaitable[str | None]],
        log: PoolLog,
        *,
        clock: Clock | None = None,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self.members = tuple(members)
        for index, member in enumerate(self.members):  # two may differ only in what a name leaves out
            if any(member.name == other.name for other in self.members[:index]):
                member.name += f"#{index + 1}"
        self.clock = clock or Clock()
        self._probe = probe
        self._log = log
        self._chance = chance
        self._states = {member: UpstreamState() for member in self.members}
        self._probes: dict[_Member, asyncio.Task[None]] = {}

    async def close(self) -> None:
        tasks = list(self._probes.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    # -- choosing ----------------------------------------------------------------------------------------------

    async def pick(
        self,
        last: _Member | None = None,
        *,
        move_on: bool = False,
        able: Callable[[_Member], bool] = lambda member: True,
        timeout_s: float = math.inf,
    ) -> _Member:
        """Return `last` again if it is usable and able and we need not move on, else the next that is. Waits for one
        until the timeout, and for probes that run then. WrongUpstream at once while none is what is configured."""
        until = self.clock.now() + timeout_s
        self._probe_due()
        while True:
            for member in self._in_turn(last, move_on=move_on):
                if self._is_usable(member) and able(member):
                    return member
            if all(state.disabled for state in self._states.values()):
                raise NoUpstreamLeft("no upstream is left: " + "; ".join(self.disabled().values()))
            if not self._probes and all(state.disabled or state.is_wrong for state in self._states.values()):
                raise WrongUpstream("; ".join(self._reasons()))
            backing_off = any(not state.usable and not state.disabled for state in self._states.values())
            if not self._probes and (self.clock.now() >= until or not backing_off):
                raise UpstreamDown("no upstream can be used: " + "; ".join(self._reasons()), sent=False)
            await self._change(until)
            if self.clock.now() < until:
                self._probe_due()

    def usable(self) -> list[_Member]:
        return [member for member in self.members if self._is_usable(member)]

    def all_wrong(self) -> str:
        """Return why none of them is what is configured; empty if one may be."""
        wrong = all(state.is_wrong for state in self._states.values())
        return "; ".join(self._reasons()) if wrong else ""

    def others(self, member: _Member) -> list[_Member]:
        """Return the other usable upstreams, in turn after `member`."""
        return [it for it in self._in_turn(member, move_on=True) if it is not member and self._is_usable(it)]

    def _is_usable(self, member: _Member) -> bool:
        return self._states[member].usable and self._states[member].disabled is None

    def _in_turn(self, last: _Member | None, *, move_on: bool) -> Sequence[_Member]:
        """Return all upstreams, from `last` on, or from the one after it."""
        start = 0 if last is None else self.members.index(last) + move_on
        return (*self.members[start:], *self.members[:start])

    def _reasons(self) -> list[str]:
        failing = [text if text.startswith(name) else f"{name}: {text}" for name, text in self.failing().items()]
        return [*self.disabled().values(), *failing] or ["none has what this needs, and the log says what each lacks"]

    # -- probing -----------------------------------------------------------------------------------------------

    async def probe_all(self) -> dict[str, str]:
        """Probe every upstream now. Returns what is wrong with any of them, by name."""
        await asyncio.gather(*(self._probing(it) for it, state in self._states.items() if not state.disabled))
        return self.disabled() | self.failing()

    async def usable_once_probed(self) -> list[_Member]:
        """Return the usable upstreams; if there are none yet, after the first running probe has ended."""
        self._probe_due()
        if self._probes and not self.usable():
            await asyncio.wait(self._probes.values(), return_when=asyncio.FIRST_COMPLETED)
        return self.usable()

    def _probe_due(self) -> None:
        now = self.clock.now()
        for member, state in self._states.items():
            if not state.usable and state.disabled is None and state.retry_at <= now:
                self._probing(member)

    def _probing(self, member: _Member) -> asyncio.Task[None]:
        task = self._probes.get(member)
        if task is None:
            task = self._probes[member] = asyncio.create_task(self._run_probe(member))
            task.add_done_callback(lambda _: self._probes.pop(member, None))
        return task

    async def _run_probe(self, member: _Member) -> None:
        state = self._states[member]
        try:
            reason = await self._probe(member)
        except UpstreamFailure as failure:
            self.back_off(member, failure)
            return
        if reason is not None:
            self.disable(member, reason)
        state.is_wrong = False
        state.usable, state.failure = reason is None, None  # `failures` stays until a real call succeeds

    async def _change(self, until: float) -> None:
        """Wait until a probe or a pause has ended; if no probe is running, not beyond the timeout."""
        waits = set(self._probes.values())
        alarm = None
        now = self.clock.now()
        rows = self._states.items()
        pauses = [it.retry_at for member, it in rows if not (it.usable or it.disabled or member in self._probes)]
        if not waits or (pauses and now < until):
            alarm = asyncio.create_task(self.clock.sleep(max(0.0, min([*pauses, until]) - now)))
            waits.add(alarm)
        try:
            done, _ = await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            if alarm is not None:
                alarm.cancel()

    # -- results of calls --------------------------------------------------------------------------------------

    def mark_ok(self, member: _Member) -> None:
        """Note that a call to this upstream succeeded."""
        state = self._states[member]
        state.failures, state.failure = 0, None

    def back_off(self, member: _Member, failure: UpstreamFailure) -> None:
        """Leave an upstream alone for a while, longer each time."""
        state = self._states[member]
        if state.disabled is not None:
            return
        state.usable = False
        state.failures += 1
        state.failure = str(failure)
        state.is_wrong = isinstance(failure, WrongUpstream)
        after_s = failure.after_s if isinstance(failure, UpstreamDown) else 0.0
        pause_s = _BACKOFF.pause_s(state.failures, after_s, self._chance())
        state.retry_at = self.clock.now() + pause_s
        fields = {"upstream": member.name, "failure": str(failure), "pause_s": round(pause_s, 2)}
        self._log.warn("upstream failed, backing off", **fields)

    def disable(self, member: _Member, reason: str) -> None:
        """Disable an upstream until this program starts again."""
        state = self._states[member]
        if state.disabled is None:
            state.disabled = f"{member.name}: {reason}"
            self._log.error("upstream disabled", upstream=member.name, reason=reason)

    def is_disabled(self, member: _Member) -> bool:
        return self._states[member].disabled is not None

    def disabled(self) -> dict[str, str]:
        """Return why upstreams are disabled, by name."""
        return {member.name: state.disabled for member, state in self._states.items() if state.disabled is not None}

    def failing(self) -> dict[str, str]:
        """Return the failure of the latest call, by name, where there was one; not of those that are disabled."""
        rows = self._states.items()
        return {it.name: state.failure for it, state in rows if state.failure is not None and state.disabled is None}
