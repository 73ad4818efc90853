"""The choice between the standbys of a server and the server itself, by how old the rows of a standby may be.

Both are asked for their position in the log of changes, the primary first. A standby that has reached a position has
all that was committed when the primary was asked for it: no clocks are compared. Answers are read from the first
standby whose rows are not older than allowed, else from the primary. While the primary cannot be asked, the newest
position of it that a standby has reached gets older, and with it the standby.
"""

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Container, Mapping
from typing import NamedTuple, Protocol

from icefall.db.engine import StoreError, StoreUnreachable

MEASURE_EVERY_S = 1.0  # while it is asked for; more often where rows may be only a few seconds old
_ASK_LIMIT_S = 2.0
_CATCH_UP_S = (0.02, 0.1, 0.3)  # before a standby that has reached no known position yet is asked again
_SPACING = 500  # positions of the primary that are remembered for the time that rows may be old
_OLD = -1e9


class ServerPosition(NamedTuple):
    """How far a server is. `system` is the same for a server and its standbys, `process` another one whenever a server
    is started. `replayed_s`: the time since the last commit that a standby has replayed, by the clocks of both."""

    system: str
    process: str
    is_standby: bool
    position: int
    replayed_s: float | None = None
    problem: str = ""


class ReplicaState(NamedTuple):
    """`lag_s`: how old its rows may be; None where it is not known. `problem`: why it is not read; empty if it is."""

    name: str
    lag_s: float | None
    problem: str


class ServerChoice(Protocol):
    """Chooses the server that an answer is read from: one of several standbys, or the primary, whose number is the
    last."""

    async def choose(self, avoided: Container[int] = ()) -> int: ...

    def leave_out(self, number: int, why: str) -> None:
        """Report that a standby does not answer: it is left out until it is measured again."""
        ...


class _Replica:
    def __init__(self, name: str, ask: Callable[[], Awaitable[ServerPosition]]) -> None:
        self.name = name
        self.ask = ask
        self.as_new_as = _OLD  # the time of the newest position of the primary that it has reached
        self.replayed_s: float | None = None
        self.problem = ""
        self.is_reported_down = False


class Replicas:
    """The standbys of a server, in the order in which they are wanted.

    `ask_primary`, `replicas`: how each server, by its name, is asked for its position; StoreError where it cannot.
    `report`: called when a standby is no longer read, with the reason, and with an empty one when it is again.
    """

    def __init__(
        self,
        ask_primary: Callable[[], Awaitable[ServerPosition]],
        replicas: Mapping[str, Callable[[], Awaitable[ServerPosition]]],
        lag_max_s: float,
        report: Callable[[str, str], None] = lambda _name, _why: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._ask_primary = ask_primary
        self._replicas = [_Replica(name, ask) for name, ask in replicas.items()]
        self._lag_max_s = lag_max_s
        self._every_s = min(MEASURE_EVERY_S, lag_max_s / 4)
        self.report = report
        self._clock = clock
        self._positions: deque[tuple[float, int]] = deque()  # of the primary, with the time before it was asked
        self._primary: ServerPosition | None = None
        self._primary_problem = ""
        self._next_at = _OLD
        self._measuring: asyncio.Task[None] | None = None

    async def choose(self, avoided: Container[int] = ()) -> int:
        """Return the number of the first standby that is new enough and not avoided; else that of the primary. It waits
        only where a standby was not measured lately, as no one asked."""
        if self._clock() >= self._next_at:
            self._begin()
        for number, replica in enumerate(self._replicas):
            if number in avoided or replica.problem:
                continue
            if self._is_old(replica) and self._measuring is not None:
                await asyncio.shield(self._measuring)
            if not replica.problem and not self._is_old(replica):
                return number
        return len(self._replicas)

    def leave_out(self, number: int, why: str) -> None:
        if number < len(self._replicas):
            self._put_problem(self._replicas[number], why)

    async def states(self) -> list[ReplicaState]:
        """Measure all of them, and return what is known then."""
        if self._clock() >= self._next_at:
            self._begin()
        if self._measuring is not None:
            await asyncio.shield(self._measuring)
        now, found = self._clock(), []
        for one in self._replicas:
            lag_s = now - one.as_new_as if one.as_new_as > _OLD else one.replayed_s
            found.append(ReplicaState(one.name, lag_s, one.problem))
        return found

    # -- measuring -----------------------------------------------------------------------------------------------

    def _begin(self) -> None:
        """Begin to measure, once for all who wait."""
        if self._measuring is None:
            self._measuring = asyncio.get_running_loop().create_task(self._measure())

    async def _measure(self) -> None:
        try:
            asked_at = self._clock()
            try:
                self._note_primary(asked_at, await _asked(self._ask_primary))
            except StoreError as error:
                self._primary_problem = str(error)
            await asyncio.gather(*map(self._measure_one, self._replicas))
        finally:
            self._next_at = self._clock() + self._every_s
            self._measuring = None

    def _note_primary(self, asked_at: float, found: ServerPosition) -> None:
        """Positions of another primary are of another history: a standby that takes over may have had fewer."""
        if self._primary is None or found.process != self._primary.process:
            self._positions.clear()
        self._primary, self._primary_problem = found, ""
        if len(self._positions) > 1 and asked_at - self._positions[-2][0] < self._lag_max_s / _SPACING:
            self._positions.pop()
        self._positions.append((asked_at, found.position))
        while self._positions[0][0] < asked_at - 2 * self._lag_max_s - 10 * self._every_s:
            self._positions.popleft()

    async def _measure_one(self, replica: _Replica) -> None:
        try:
            self._compare(replica, await _asked(replica.ask))
            for pause_s in _CATCH_UP_S:
                if replica.as_new_as > _OLD or not self._positions:
                    break
                await asyncio.sleep(pause_s)
                self._compare(replica, await _asked(replica.ask))
        except StoreError as error:
            replica.as_new_as = _OLD
            self._put_problem(replica, str(error))
            return
        self._put_problem(replica, self._too_old(replica))

    def _compare(self, replica: _Replica, found: ServerPosition) -> None:
        """Find the newest position of the primary that a standby has reached."""
        primary = self._primary
        if found.problem:
            raise StoreError(found.problem)
        if primary is not None and found.system != primary.system:
            raise StoreError("it is no standby of the server of --store")
        if not found.is_standby and (primary is None or found.process != primary.process):
            raise StoreError("it is no standby: it was promoted, and --store does not lead to it")
        reached = (at for at, position in reversed(self._positions) if position <= found.position)
        replica.as_new_as, replica.replayed_s = next(reached, _OLD), found.replayed_s

    def _is_old(self, replica: _Replica) -> bool:
        return self._clock() - replica.as_new_as > self._lag_max_s

    def _too_old(self, replica: _Replica) -> str:
        if not self._is_old(replica):
            return ""
        if self._primary_problem:
            return f"its rows may be too old: the primary cannot be asked ({self._primary_problem})"
        lag_s = self._clock() - replica.as_new_as if replica.as_new_as > _OLD else replica.replayed_s
        behind = "too far" if lag_s is None else f"{lag_s:.1f} s"
        return f"it is {behind} behind, and --replica-lag-max is {self._lag_max_s:g} s"

    def _put_problem(self, replica: _Replica, problem: str) -> None:
        replica.problem = problem
        if bool(problem) != replica.is_reported_down:
            replica.is_reported_down = bool(problem)
            self.report(replica.name, problem)


async def _asked(ask: Callable[[], Awaitable[ServerPosition]]) -> ServerPosition:
    try:
        async with asyncio.timeout(_ASK_LIMIT_S):
            return await ask()
    except TimeoutError as error:
        raise StoreUnreachable(f"it does not answer within {_ASK_LIMIT_S:g} s") from error
