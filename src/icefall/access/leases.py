"""A worker's side of the budgets: slices leased from the owner and spent here, without a word, until they are used up.

An owner that cannot be reached fails no request: the worker then grants by itself what is its share among the workers.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, NamedTuple

from icefall.access.limits import DAY_S, MINUTE_S, Budgets, Grant, Tier
from icefall.errors import IcefallError
from icefall.observe.log import Log

LEASE_LIMIT_S = 1.0
ALONE_S = 5.0  # before an owner that did not answer is asked again

Ask = Callable[..., Awaitable[Any]]  # `EngineLink.call` of the owner's socket


class BudgetDecision(NamedTuple):
    """Whether a call may go on, and the window that ends the caller's budget first."""

    allowed: bool
    limit: int
    remaining: int
    reset_s: int
    window: str


class _Lease:
    """One caller's units of one minute. What the owner has left can only shrink until the minute is over."""

    __slots__ = ("asking", "day_left", "left", "minute_left")

    def __init__(self, tier: Tier) -> None:
        self.left = 0
        self.minute_left, self.day_left = tier.per_minute, tier.per_day
        self.asking = asyncio.Lock()


class Leases:
    def __init__(self, ask: Ask, workers: int, log: Log, clock: Callable[[], float] = time.time) -> None:
        self._ask = ask
        self._workers = workers
        self._log = log
        self._clock = clock
        self._minute = 0
        self._leases: dict[str, _Lease] = {}
        self._alone = Budgets()
        self._alone_until = 0.0
        self._complained = False
        self._returning: set[asyncio.Task[None]] = set()

    async def take(self, who: str, tier: Tier, units: int) -> BudgetDecision:
        """Spend `units` of the caller's budget, if they are there."""
        now = int(self._clock())
        if now // MINUTE_S != self._minute:
            self._turn(now // MINUTE_S)
        lease = self._leases.get(who)
        if lease is None:
            lease = self._leases[who] = _Lease(tier)
        if lease.left < units:
            async with lease.asking:  # of many calls at once only the first asks, the others spend what it got
                need = units - lease.left
                if 0 < need <= min(lease.minute_left, lease.day_left):
                    grant = await self._leased(who, tier, need, now)
                    lease.left += grant.units
                    lease.minute_left, lease.day_left = grant.minute_left, grant.day_left
        allowed = lease.left >= units
        if allowed:
            lease.left -= units
        return _told(lease, tier, now, allowed=allowed)

    async def _leased(self, who: str, tier: Tier, need: int, now: int) -> Grant:
        if time.monotonic() >= self._alone_until:
            try:
                async with asyncio.timeout(LEASE_LIMIT_S):
                    told = await self._ask(
                        "lease", who=who, per_minute=tier.per_minute, per_day=tier.per_day, need=need
                    )
                return Grant(*told)
            except (IcefallError, TimeoutError) as error:
                self._alone_until = time.monotonic() + ALONE_S
                if not self._complained:
                    self._complained = True
                    self._log.warn("the rate limits are not shared: each worker grants its part", error=str(error))
        return self._alone.lease(who, tier.share(self._workers), need, now)

    def _turn(self, minute: int) -> None:
        """A new minute: leases are void, and the day gets back what they still held."""
        unspent = [(who, lease.left) for who, lease in self._leases.items() if lease.left]
        over, self._minute, self._leases = self._minute, minute, {}
        if unspent and time.monotonic() >= self._alone_until:
            task = asyncio.ensure_future(self._give_back(over, unspent))
            self._returning.add(task)
            task.add_done_callback(self._returning.discard)

    async def _give_back(self, minute: int, unspent: list[tuple[str, int]]) -> None:
        with suppress(IcefallError):  # if it is lost, the day's budget is a slice shorter
            await self._ask("give_back", minute=minute, unspent=unspent)


def _told(lease: _Lease, tier: Tier, now: int, *, allowed: bool) -> BudgetDecision:
    minute, day = lease.minute_left + lease.left, lease.day_left + lease.left
    if day < minute:
        return BudgetDecision(allowed, tier.per_day, day, DAY_S - now % DAY_S, "day")
    return BudgetDecision(allowed, tier.per_minute, minute, MINUTE_S - now % MINUTE_S, "minute")
