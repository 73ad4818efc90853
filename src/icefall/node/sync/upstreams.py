"""The upstream nodes of a followed network, shared by the followers of all its chains."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from icefall.observe.log import Log
from icefall.upstream.client import InvalidAnswer, UpstreamDown, UpstreamError
from icefall.upstream.meter import Clock
from icefall.upstream.node import UpstreamNode
from icefall.upstream.pool import Pool
from icefall.wire.ids import id_text

ASK_LIMIT_S = 5.0
ISSUE_LIMIT_S = 25.0  # less than a worker waits for the engine, so that the caller learns who did not answer

_T = TypeVar("_T")


class NetworkIdentity(msgspec.Struct, frozen=True):
    """Which network an upstream must belong to: the network ID, and the chain IDs behind some aliases (X, C)."""

    network_id: int
    chain_ids: Mapping[str, bytes]


class UpstreamTraffic(msgspec.Struct, frozen=True):
    """All upstreams together, for health: over the last minute, and right now."""

    reachable: int
    failed_share: float
    in_flight: int
    longest_s: float
    since_sent_s: float | None
    since_received_s: float | None


class NodeUpstreams(Pool[UpstreamNode]):
    """An upstream that sent invalid data about one chain is disabled for all of them."""

    def __init__(
        self,
        nodes: Sequence[UpstreamNode],
        identity: NetworkIdentity,
        log: Log,
        *,
        clock: Clock | None = None,
        chance: Callable[[], float] = random.random,
    ) -> None:
        super().__init__(nodes, self._check, log, clock=clock, chance=chance)
        self._identity = identity
        self._identified: set[UpstreamNode] = set()

    async def close(self) -> None:
        await super().close()
        await asyncio.gather(*(node.client.close() for node in self.members))

    def require(self, node: UpstreamNode) -> None:
        """While a follower waited, the follower of another chain may have disabled its upstream."""
        if self.is_disabled(node):
            raise UpstreamDown(f"{node.name} sent invalid data about another chain")

    async def issue_tx(
        self, text: str, encoding: str, *, path: str = "/ext/bc/X", limit_s: float = ISSUE_LIMIT_S
    ) -> str:
        """Send a transaction to the first upstream that takes it; to the next only if the first cannot have seen it."""
        node: UpstreamNode | None = None
        try:
            async with asyncio.timeout(limit_s):
                for node in await self.usable_once_probed():
                    try:
                        return await node.issue_tx(text, encoding, path=path)
                    except (UpstreamDown, InvalidAnswer) as failure:
                        self.back_off(node, failure)
                        if failure.sent:
                            raise
        except TimeoutError:
            if node is None:
                raise UpstreamDown(f"no upstream answered within {limit_s:g} s", sent=False) from None
            raise UpstreamDown(
                f"{node.name} gave no answer within {limit_s:g} s: the transaction may still be accepted"
            ) from None
        reasons = [*self.disabled().values(), *self.failing().values()]
        raise UpstreamDown("no upstream takes transactions now: " + "; ".join(reasons), sent=False)

    async def ask(self, path: str, method: str, params: dict[str, Any], limit_s: float = ASK_LIMIT_S) -> bytes:
        """The JSON of a result, from the first upstream that answers within the time limit. UpstreamError carries the
        node's own text."""
        try:
            async with asyncio.timeout(limit_s):
                for node in await self.usable_once_probed():
                    try:
                        return bytes(await node.client.call(path, method, params, msgspec.Raw, retry_timeouts=False))
                    except (UpstreamDown, InvalidAnswer) as failure:
                        self.back_off(node, failure)
        except TimeoutError:
            raise UpstreamDown(f"no upstream answered {method} within {limit_s:g} s") from None
        reasons = [*self.disabled().values(), *self.failing().values()]
        raise UpstreamDown(f"no upstream answers {method} now: " + "; ".join(reasons), sent=False)

    def traffic(self) -> UpstreamTraffic:
        meters = [node.client.meter for node in self.members]
        now = self.clock.now()
        recent = [meter.recent() for meter in meters]
        calls, failures = sum(row[0] for row in recent), sum(row[1] for row in recent)
        sent = [meter.last_sent_s for meter in meters if meter.last_sent_s is not None]
        received = [meter.last_received_s for meter in meters if meter.last_received_s is not None]
        return UpstreamTraffic(
            reachable=sum(node.client.meter.reachable and not self.is_disabled(node) for node in self.members),
            failed_share=failures / calls if calls else 0.0,
            in_flight=sum(meter.in_flight for meter in meters),
            longest_s=max((meter.longest_s for meter in meters), default=0.0),
            since_sent_s=now - max(sent) if sent else None,
            since_received_s=now - max(received) if received else None,
        )

    async def _check(self, node: UpstreamNode) -> str | None:
        """Which network it belongs to, the first time, and whether it keeps an index."""
        if node not in self._identified:
            wrong = await self._wrong_network(node)
            if wrong is not None:
                return wrong
            self._identified.add(node)
        await node.last_accepted("X")
        return None

    async def _wrong_network(self, node: UpstreamNode) -> str | None:
        """Why a node is not of this network. One that does not answer this is checked by its containers: they must
        link to our genesis."""
        network_id = await _unless_refused(node.network_id())
        if network_id is not None and network_id != self._identity.network_id:
            return f"it is of network {network_id}, not of {self._identity.network_id}"
        for alias, chain_id in self._identity.chain_ids.items():
            theirs = await _unless_refused(node.blockchain_id(alias))
            if theirs is not None and theirs != chain_id:
                return f"its {alias}-Chain is {id_text(theirs)}, not {id_text(chain_id)}"
        return None


async def _unless_refused(call: Awaitable[_T]) -> _T | None:
    """The result of a call that a node may decline to answer."""
    try:
        return await call
    except UpstreamError:
        return None


class Progress(msgspec.Struct, frozen=True):
    """`of` is None while no upstream has reported its tip, `eta_s` also while nothing moves."""

    done: int
    of: int | None
    per_second: float
    eta_s: float | None


def progress_of(done: int, of: int | None, per_second: float) -> Progress:
    if of is None:
        return Progress(done, of, per_second, None)
    missing = max(0, of - done)
    return Progress(done, of, per_second, 0.0 if missing == 0 else missing / per_second if per_second > 0 else None)
