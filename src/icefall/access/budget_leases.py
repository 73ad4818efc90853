"""A worker's side of the budgets: it leases slices from the owner and spends them without further calls.

If the owner cannot be reached, no request fails: each worker then grants its share of the budget by itself.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, NamedTuple

from icefall.access.budgets import DAY_S, MINUTE_S, Budgets, Grant, Tier
from icefall.errors import IcefallError
from icefall.observe.log import Log

LEASE_TIMEOUT_S = 1.0
OWNER_RETRY_S = 5.0  # after an owner did not answer

CallOwner = Callable[..., Awaitable[Any]]  # `SocketClient.call` of the owner's socket


class BudgetDecision(NamedTuple):
    """The decision whether a call is allowed, and the window (minute or day) with the least budget left."""

    allowed: bool
    limit: int
    remaining: int
    reset_s: int
    window: str


class _Lease:
    """One caller's units of one minute. What the owner has left for it only decreases within the minute. `is_own`: what
    is left is the worker's own share, and the owner may have more."""

    __slots__ = ("day_left", "is_own", "left", "lock", "minute_left")

    def __init__(self, tier: Tier) -> None:
        self.left = 0
        self.minute_left, self.day_left = tier.per_minute, tier.per_day
        self.is_own = False
        self.lock = asyncio.Lock()


class BudgetLeases:
    def __init__(self, call_owner: CallOwner, workers: int, log: Log, clock: Callable[[], float] = time.time) -> None:
        self._call_owner = call_owner
        self._workers = workers
        self._log = log
        self._clock = clock
        self._minute = 0
        self._leases: dict[str, _Lease] = {}
        self._local = Budgets()
        self._owner_retry_at = 0.0
        self._warned = False
        self._returning: set[asyncio.Task[None]] = set()

    async def take(self, caller: str, tier: Tier, units: int) -> BudgetDecision:
        """Spend `units` of the caller's budget, if that many are left."""
        now = int(self._clock())
        if now // MINUTE_S != self._minute:
            self._begin_minute(now // MINUTE_S)
        lease = self._leases.get(caller)
        if lease is None:
            lease = self._leases[caller] = _Lease(tier)
        if lease.left < units:
            async with lease.lock:  # of concurrent calls only the first leases, the others spend what it got
                need = units - lease.left
                if need > 0 and (lease.is_own or need <= min(lease.minute_left, lease.day_left)):
                    grant = await self._owner_grant(caller, tier, need)
                    lease.is_own = grant is None
                    if grant is None:
                        grant = self._local.lease(caller, tier.share(self._workers), need, now)
                    lease.left += grant.units
                    lease.minute_left, lease.day_left = grant.minute_left, grant.day_left
        allowed = lease.left >= units
        if allowed:
            lease.left -= units
        return _decision(lease, tier, now, allowed=allowed)

    async def _owner_grant(self, caller: str, tier: Tier, need: int) -> Grant | None:
        """Ask the owner for a lease. None while it does not answer."""
        if time.monotonic() >= self._owner_retry_at:
            try:
                async with asyncio.timeout(LEASE_TIMEOUT_S):
                    grant = await self._call_owner(
                        "lease", caller=caller, per_minute=tier.per_minute, per_day=tier.per_day, need=need
                    )
                return Grant(*grant)
            except (IcefallError, TimeoutError) as error:
                self._owner_retry_at = time.monotonic() + OWNER_RETRY_S
                if not self._warned:
                    self._warned = True
                    self._log.warn("rate limits not shared: each worker grants its share", error=str(error))
        return None

    def _begin_minute(self, minute: int) -> None:
        """Drop the leases of the last minute, and give unspent units back to the day."""
        unspent = [(caller, lease.left) for caller, lease in self._leases.items() if lease.left]
        ended, self._minute, self._leases = self._minute, minute, {}
        if unspent and time.monotonic() >= self._owner_retry_at:
            task = asyncio.ensure_future(self._give_back(ended, unspent))
            self._returning.add(task)
            task.add_done_callback(self._returning.discard)

    async def _give_back(self, minute: int, unspent: list[tuple[str, int]]) -> None:
        with suppress(IcefallError):  # lost units make the day's budget a slice smaller
            await self._call_owner("give_back", minute=minute, unspent=unspent)


def _decision(lease: _Lease, tier: Tier, now: int, *, allowed: bool) -> BudgetDecision:
    minute, day = lease.minute_left + lease.left, lease.day_left + lease.left
    if day < minute:
        return BudgetDecision(allowed, tier.per_day, day, DAY_S - now % DAY_S, "day")
    return BudgetDecision(allowed, tier.per_minute, minute, MINUTE_S - now % MINUTE_S, "minute")
