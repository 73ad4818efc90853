"""What we think of each of several upstreams: whose turn it is, who needs a rest, and who is not asked again."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from icefall.upstream.client import Retry, UpstreamDown, UpstreamFailure
from icefall.upstream.meter import Clock

_REST = Retry(first_s=0.5, longest_s=60.0, asked_for_max_s=60.0)


class Named(Protocol):
    name: str


class PoolLog(Protocol):
    """Where what happens to upstreams is told; observe.Log is one."""

    def warn(self, message: str, **fields: Any) -> None: ...

    def error(self, message: str, **fields: Any) -> None: ...


_Member = TypeVar("_Member", bound=Named)


class NoUpstreamLeft(UpstreamFailure):
    """Every upstream has been dropped."""


class UpstreamState(msgspec.Struct):
    sound: bool = False  # the latest thing it was asked came out right
    dropped: str | None = None  # why it is not asked again
    failures: int = 0  # in a row
    rests_until: float = 0.0
    trouble: str | None = None  # the latest failure, until something comes out right


class Pool(Generic[_Member]):
    """Only sound members are handed out. The others are greeted in the background when they have rested.

    `greet` finds out whether a member is fit for use: it returns why it must be dropped, or None; a failure is a rest.
    """

    def __init__(
        self,
        members: Sequence[_Member],
        greet: Callable[[_Member], Awaitable[str | None]],
        log: PoolLog,
        *,
        clock: Clock,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self.members = tuple(members)
        for place, member in enumerate(self.members):  # two may differ only in what a name leaves out
            if any(member.name == other.name for other in self.members[:place]):
                member.name += f"#{place + 1}"
        self._greet = greet
        self._log = log
        self._clock = clock
        self._chance = chance
        self._standings = [UpstreamState() for _ in self.members]
        self._greetings: dict[int, asyncio.Task[None]] = {}

    # -- choosing ----------------------------------------------------------------------------------------------

    async def pick(
        self,
        last: _Member | None = None,
        *,
        able: Callable[[_Member], bool] = lambda member: True,
        patience_s: float = 60.0,
    ) -> _Member:
        """`last` again if it is sound and able, else the next that is. Waits for one, but not for ever."""
        until = self._clock.now() + patience_s
        while True:
            self._greet_the_rested()
            places = [place for place in self._order(last) if self._is_sound(place) and able(self.members[place])]
            if places:
                return self.members[places[0]]
            if all(standing.dropped for standing in self._standings):
                raise NoUpstreamLeft("no upstream is left: " + "; ".join(self.lies().values()))
            resting = any(not standing.sound and not standing.dropped for standing in self._standings)
            if not self._greetings and (self._clock.now() >= until or not resting):
                raise UpstreamDown("no upstream can be asked: " + "; ".join(self._complaints()), sent=False)
            await self._change(until)

    def sound(self) -> list[_Member]:
        return [member for place, member in enumerate(self.members) if self._is_sound(place)]

    def _is_sound(self, place: int) -> bool:
        return self._standings[place].sound and self._standings[place].dropped is None

    def _order(self, last: _Member | None) -> Sequence[int]:
        start = 0 if last is None else self.members.index(last)
        return [(start + step) % len(self.members) for step in range(len(self.members))]

    def _complaints(self) -> list[str]:
        return [*self.lies().values(), *(f"{name}: {text}" for name, text in self.troubles().items())] or ["not able"]

    # -- greeting ----------------------------------------------------------------------------------------------

    async def greet_all(self) -> dict[str, str]:
        """What stands against any of them, by name."""
        places = [place for place, standing in enumerate(self._standings) if not standing.dropped]
        await asyncio.gather(*(self._greeting(place) for place in places))
        return self.lies() | self.troubles()

    def _greet_the_rested(self) -> None:
        now = self._clock.now()
        for place, standing in enumerate(self._standings):
            if not standing.sound and standing.dropped is None and standing.rests_until <= now:
                self._greeting(place)

    def _greeting(self, place: int) -> asyncio.Task[None]:
        task = self._greetings.get(place)
        if task is None:
            task = self._greetings[place] = asyncio.create_task(self._meet(place))
            task.add_done_callback(lambda _: self._greetings.pop(place, None))
        return task

    async def _meet(self, place: int) -> None:
        member, standing = self.members[place], self._standings[place]
        try:
            against = await self._greet(member)
        except UpstreamFailure as failure:
            standing.sound = True  # so that it is laid to rest
            self.rest(member, failure)
            return
        if against is not None:
            self.drop(member, against)
        standing.sound, standing.trouble = against is None, None  # `failures` stay: it has yet to do some real work

    async def _change(self, until: float) -> None:
        """Until a greeting has ended, somebody has rested, or patience is over."""
        waits: set[asyncio.Task[None]] = set(self._greetings.values())
        alarm = None
        if not waits:
            rests = [it.rests_until for it in self._standings if not it.dropped and not it.sound]
            pause_s = min([*rests, until]) - self._clock.now()
            alarm = asyncio.create_task(self._clock.sleep(max(0.0, pause_s)))
            waits.add(alarm)
        try:
            done, _ = await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            if alarm is not None:
                alarm.cancel()

    # -- judging -----------------------------------------------------------------------------------------------

    def drop(self, member: _Member, text: str) -> None:
        """For good: until this program starts again."""
        standing = self._standing(member)
        if standing.dropped is None:
            standing.dropped = f"{member.name}: {text}"
            self._log.error("an upstream is not asked again", upstream=member.name, reason=text)

    def rest(self, member: _Member, failure: UpstreamFailure) -> None:
        """Leave it alone for a while, longer each time. Failures of what was under way meanwhile add nothing."""
        standing = self._standing(member)
        if standing.dropped is not None or not standing.sound:
            return
        standing.sound = False
        standing.failures += 1
        standing.trouble = str(failure)
        after_s = failure.after_s if isinstance(failure, UpstreamDown) else 0.0
        pause_s = _REST.pause_s(standing.failures, after_s, self._chance())
        standing.rests_until = self._clock.now() + pause_s
        self._log.warn("an upstream failed", upstream=member.name, failure=str(failure), rest_s=round(pause_s, 2))

    def praise(self, member: _Member) -> None:
        """It did what it was asked."""
        standing = self._standing(member)
        standing.failures, standing.trouble = 0, None

    def lies(self) -> dict[str, str]:
        """By name, for those that were dropped."""
        return {member.name: it.dropped for member, it in zip(self.members, self._standings, strict=True) if it.dropped}

    def troubles(self) -> dict[str, str]:
        """By name, for those whose latest call failed."""
        rows = zip(self.members, self._standings, strict=True)
        return {member.name: it.trouble for member, it in rows if it.trouble is not None and it.dropped is None}

    def _standing(self, member: _Member) -> UpstreamState:
        return self._standings[self.members.index(member)]

    async def close(self) -> None:
        tasks = list(self._greetings.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
