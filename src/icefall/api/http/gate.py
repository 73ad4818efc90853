"""API keys and rate limits of the chain data and metrics interfaces, checked after routing and before the handler.

A request passes the gate once: `AccessGate.admit` returns its `Admission`, which the app asks for everything else.
"""

import time
from collections.abc import Mapping
from functools import lru_cache
from typing import Protocol

from icefall.access.budget_leases import BudgetDecision, BudgetLeases
from icefall.access.budgets import LOWEST_TIER, Tier
from icefall.access.client_address import Caller, CurrentCaller, Proxies, client_name, is_loopback
from icefall.access.store import AccessReader
from icefall.access.usage import AnsweredRequest
from icefall.access.usage_store import UsageRecorder
from icefall.api.http.row import Rest, Weight
from icefall.errors import BadRequest, Forbidden, IcefallError, TooManyRequests, Unauthorized
from icefall.server.response import Headers

KEY_HEADERS = ("x-service-api-key", "x-glacier-api-key")
LIMIT_HEADERS = ("ratelimit-policy", "ratelimit-limit", "ratelimit-remaining", "ratelimit-reset", "retry-after")
_TEXT_MAX = 200  # characters of a caller's text in the log of requests


class CallerRequest(Protocol):
    """The parts of a request that the gate reads."""

    host: str
    path: str

    @property
    def peer(self) -> str: ...

    def header(self, name: str) -> str | None: ...

    def headers(self, name: str) -> list[str]: ...


class AccessGate:
    """Admits requests. `keys` is None where there are no keys (metrics), `leases` where limits are off. `anybody` is
    the tier of calls without a key, which are counted by address."""

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
        self.leases = leases
        self._tiers = tiers
        self._anybody = tiers[anybody]
        self._proxies = proxies
        self._required = keys_required
        self.usage = usage
        self._current = CurrentCaller()

    async def admit(self, request: CallerRequest, row: Rest) -> "Admission":
        """Check the caller's key and take the row's weight from its budget. A refusal is part of the admission, because
        a refused request is counted too."""
        admission = Admission(self, request, row, self._anybody)
        try:
            is_trusted = self._trusts(request)
            self._current.put(Caller("", is_trusted, request.host))
            key = self._key(request) if self._keys is not None else None
            if key is not None:
                is_admin = await self._identify(admission, key)
                self._current.put(Caller(admission.key, is_trusted, request.host, is_admin))
            else:
                self._check_anonymous(request, row)
            if self.leases is not None:
                admission.caller = admission.caller or f"{self._listener} {self.client(request)}"
                admission.use(await self.leases.take(admission.caller, admission.tier, row.weight))
        except IcefallError as error:
            admission.refusal = error
        return admission

    async def close(self) -> None:
        """Report the requests that were answered since the last report."""
        if self.usage is not None:
            await self.usage.flush()

    async def _identify(self, admission: "Admission", text: str) -> bool:
        """Find out whose key it is, and the tier of its budget. Return whether it is one of an administrator."""
        assert self._keys is not None
        key = await self._keys.key(text)
        if key is None:
            raise Unauthorized("unknown API key")
        if key.revoked is not None:
            raise Forbidden("this API key has been revoked")
        admission.key = key.name
        admission.caller = f"key {key.name}"
        admission.tier = self._tiers.get(key.tier) or self._tiers[LOWEST_TIER]
        return bool(key.is_admin)

    def _check_anonymous(self, request: CallerRequest, row: Rest) -> None:
        """Raise Unauthorized if a request without a key needs one."""
        if self._required and not row.keyless:
            raise Unauthorized("an API key is required: send it as x-service-api-key")
        if row.protected and not (self._is_local(request) and _is_same_origin(request)):
            raise Unauthorized("an API key is required from another machine or website: send it as x-service-api-key")

    def _is_local(self, request: CallerRequest) -> bool:
        """Whether the caller is on this machine: unknown, and so false, behind a proxy that is not trusted."""
        is_known = bool(self._proxies) or not request.headers("x-forwarded-for")
        return is_known and is_loopback(self.client(request))

    def _trusts(self, request: CallerRequest) -> bool:
        """Whether the caller is on this machine, not behind a proxy on it, and neither limits nor keys are wanted."""
        if self.leases is not None or self._required or request.header("x-forwarded-for") is not None:
            return False
        return is_loopback(request.peer)

    def _key(self, request: CallerRequest) -> str | None:
        one, other = request.header(KEY_HEADERS[0]), request.header(KEY_HEADERS[1])
        if one and other and one != other:
            raise BadRequest(f"{KEY_HEADERS[0]} and {KEY_HEADERS[1]} hold different keys: send one")
        return one or other or None

    def client(self, request: CallerRequest) -> str:
        """The address that identifies a caller without a key."""
        if self._proxies:
            return self._proxies.client(request.peer, request.headers("x-forwarded-for"))
        return client_name(request.peer)


class Admission:
    """One request at the gate: who calls, how much of the caller's budget is left, and why it is refused, if it is.

    `headers` tell the caller about its budget; they are sent with an answer and with a refusal."""

    __slots__ = ("_began", "_gate", "_request", "_row", "_units", "caller", "headers", "key", "refusal", "tier")

    def __init__(self, gate: AccessGate, request: CallerRequest, row: Rest, tier: Tier) -> None:
        self._began = time.perf_counter()
        self._gate = gate
        self._request = request
        self._row = row
        self._units: int = row.weight
        self.caller = ""
        self.key = ""
        self.tier = tier
        self.headers: Headers = []
        self.refusal: IcefallError | None = None

    @property
    def client(self) -> str:
        """The address that identifies a caller without a key."""
        return self._gate.client(self._request)

    def use(self, taken: BudgetDecision) -> None:
        """Refuse the request if the budget did not have its units, and tell the caller what is left."""
        if not taken.allowed and not self._row.never_limited:
            self.refusal = _refusal(taken)
        self.headers = _headers(self.tier, taken._replace(allowed=True) if self._row.never_limited else taken)

    async def charge(self, units: int) -> None:
        """Take units that the answer cost besides the row's weight, as far as the budget has them."""
        self._units += units
        leases = self._gate.leases
        if leases is None:
            return
        taken = await leases.take(self.caller, self.tier, 0)
        for _ in range(0, units, Weight.SMALL):
            taken = await leases.take(self.caller, self.tier, Weight.SMALL)
            if not taken.allowed:
                break
        self.headers = _headers(self.tier, taken._replace(allowed=True))

    def note(self, status: int) -> None:
        """Count the request, which was answered with this status, in the usage of its key."""
        usage, request = self._gate.usage, self._request
        if usage is None:
            return
        usage.note(
            AnsweredRequest(
                time.time(),
                self.key,
                self._row.path,
                request.path[:_TEXT_MAX],
                _chain_of(request.path, self._row),
                status,
                0 if status == TooManyRequests.status else self._units,
                (time.perf_counter() - self._began) * 1000,
                request.peer,
                request.host[:_TEXT_MAX],
                (request.header("user-agent") or "")[:_TEXT_MAX],
            )
        )


def _is_same_origin(request: CallerRequest) -> bool:
    """Whether no other website made a browser on this machine send the request. Programs send no origin."""
    origin = request.header("origin")
    return origin is None or origin.partition("://")[2] == request.host


def _chain_of(path: str, row: Rest) -> str:
    return path.split("/", 4)[3][:_TEXT_MAX] if row.path.startswith("/v1/chains/{") else ""


_policy = lru_cache(maxsize=64)(lambda tier: tier.policy)  # a few tiers, at every request


def _headers(tier: Tier, taken: BudgetDecision) -> Headers:
    headers = [
        ("ratelimit-policy", _policy(tier)),
        ("ratelimit-limit", str(taken.limit)),
        ("ratelimit-remaining", str(taken.remaining)),
    ]
    return headers if taken.allowed else [*headers, ("ratelimit-reset", str(taken.reset_s))]


def _refusal(taken: BudgetDecision) -> TooManyRequests:
    return TooManyRequests(
        f"the budget of {taken.limit} units per {taken.window} is spent: try again in {taken.reset_s} s", taken.reset_s
    )
