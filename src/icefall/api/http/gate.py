"""API keys and rate limits of the chain data and metrics interfaces, checked after routing and before the handler."""

import time
from collections.abc import Mapping
from typing import Protocol

from icefall.access.budget_leases import BudgetDecision, BudgetLeases
from icefall.access.budgets import LOWEST_TIER, Tier
from icefall.access.client_address import Caller, CurrentCaller, Proxies, client_name, is_loopback
from icefall.access.store import AccessReader
from icefall.access.usage import AnsweredRequest
from icefall.access.usage_store import UsageRecorder
from icefall.api.http.row import Rest, Weight
from icefall.errors import BadRequest, Forbidden, TooManyRequests, Unauthorized
from icefall.server.response import Headers

KEY_HEADERS = ("x-service-api-key", "x-glacier-api-key")
LIMIT_HEADERS = ("ratelimit-policy", "ratelimit-limit", "ratelimit-remaining", "ratelimit-reset", "retry-after")


_TEXT_MAX = 200  # of a caller's text in the log


class CallerRequest(Protocol):
    """The parts of a request that the gate reads."""

    host: str
    path: str

    @property
    def peer(self) -> str: ...

    def header(self, name: str) -> str | None: ...

    def headers(self, name: str) -> list[str]: ...


class AccessGate:
    """`keys` None where there are no keys (metrics), `leases` None where limits are off. `anybody` is the tier of calls
    without a key, which are counted by address."""

    def __init__(
        self,
        listener: str,
        keys: AccessReader | None,
        leases: BudgetLeases | None,
        tiers: Mapping[str, Tier],
        anybody: str,
        proxies: Proxies,
        *,
        keys_required: bool = False,
        usage: UsageRecorder | None = None,
    ) -> None:
        self._listener = listener
        self._keys = keys
        self._leases = leases
        self._tiers = tiers
        self._anybody = tiers[anybody]
        self._proxies = proxies
        self._required = keys_required
        self._usage = usage
        self._current = CurrentCaller()

    async def admit(self, request: CallerRequest, row: Rest) -> tuple[Headers, TooManyRequests | None]:
        """Headers for the answer, and the error if the budget is spent."""
        self._current.put(Caller(is_trusted=self._trusts(request)))
        caller, tier = await self._caller(request, row)
        if self._leases is None:
            return [], None
        taken = await self._leases.take(caller, tier, row.weight)
        return _headers(tier, taken), None if taken.allowed else _refusal(taken)

    async def charge(self, request: CallerRequest, row: Rest, units: int) -> Headers:
        """Units that a request turned out to cost more, as far as the budget has them. The headers as they are then."""
        if self._leases is None:
            return []
        caller, tier = await self._caller(request, row)
        taken = await self._leases.take(caller, tier, 0)
        for _ in range(0, units, Weight.SMALL):
            taken = await self._leases.take(caller, tier, Weight.SMALL)
            if not taken.allowed:
                break
        return _headers(tier, taken._replace(allowed=True))

    def note(self, request: CallerRequest, row: Rest, status: int, units: int, duration_s: float) -> None:
        """Counts an answered request. `units`: what it cost besides the row's weight."""
        if self._usage is None:
            return
        self._usage.note(
            AnsweredRequest(
                at=time.time(),
                caller=self._current.get().key,
                route=row.path,
                path=request.path[:_TEXT_MAX],
                chain=_chain_of(request.path, row),
                status=status,
                units=0 if status == TooManyRequests.status else row.weight + units,
                duration_ms=duration_s * 1000,
                peer=request.peer,
                host=request.host[:_TEXT_MAX],
                agent=(request.header("user-agent") or "")[:_TEXT_MAX],
            )
        )

    async def close(self) -> None:
        if self._usage is not None:
            await self._usage.flush()

    async def _caller(self, request: CallerRequest, row: Rest) -> tuple[str, Tier]:
        key = self._key(request) if self._keys is not None else None
        if key is not None:
            return await self._known(key)
        if self._required and not row.keyless:
            raise Unauthorized("an API key is required: send it as x-service-api-key")
        if row.protected and not (is_loopback(self.client(request)) and _is_same_origin(request)):
            raise Unauthorized("an API key is required from another machine or website: send it as x-service-api-key")
        return "" if self._leases is None else f"{self._listener} {self.client(request)}", self._anybody

    def _trusts(self, request: CallerRequest) -> bool:
        """Somebody on this machine, not behind a proxy on it, where neither limits nor keys are wanted."""
        if self._leases is not None or self._required or request.headers("x-forwarded-for"):
            return False
        return is_loopback(request.peer)

    def _key(self, request: CallerRequest) -> str | None:
        one, other = request.header(KEY_HEADERS[0]), request.header(KEY_HEADERS[1])
        if one and other and one != other:
            raise BadRequest(f"{KEY_HEADERS[0]} and {KEY_HEADERS[1]} hold different keys: send one")
        return one or other or None

    async def _known(self, text: str) -> tuple[str, Tier]:
        assert self._keys is not None
        key = await self._keys.key(text)
        if key is None:
            raise Unauthorized("unknown API key")
        if key.revoked is not None:
            raise Forbidden("this API key has been revoked")
        self._current.put(self._current.get()._replace(key=key.name))
        return f"key {key.name}", self._tiers.get(key.tier) or self._tiers[LOWEST_TIER]

    def client(self, request: CallerRequest) -> str:
        """The address that identifies a caller without a key."""
        if self._proxies:
            return self._proxies.client(request.peer, request.headers("x-forwarded-for"))
        return client_name(request.peer)


def _is_same_origin(request: CallerRequest) -> bool:
    """A website must not make a browser on this machine change something. Programs send no origin."""
    origin = request.header("origin")
    return origin is None or origin.partition("://")[2] == request.host


def _chain_of(path: str, row: Rest) -> str:
    return path.split("/")[3][:_TEXT_MAX] if row.path.startswith("/v1/chains/{") else ""


def _headers(tier: Tier, taken: BudgetDecision) -> Headers:
    headers = [
        ("ratelimit-policy", tier.policy),
        ("ratelimit-limit", str(taken.limit)),
        ("ratelimit-remaining", str(taken.remaining)),
    ]
    return headers if taken.allowed else [*headers, ("ratelimit-reset", str(taken.reset_s))]


def _refusal(taken: BudgetDecision) -> TooManyRequests:
    return TooManyRequests(
        f"the budget of {taken.limit} units per {taken.window} is spent: try again in {taken.reset_s} s", taken.reset_s
    )
