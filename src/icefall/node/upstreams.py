"""The upstreams of a followed network: whose turn it is, who needs a rest, and who has lied."""

import asyncio
import random
from collections.abc import Callable, Mapping, Sequence

import msgspec

from icefall.observe import Log
from icefall.upstream.client import Retry, UpstreamDown, UpstreamFailure, UpstreamGarbage
from icefall.upstream.meter import Clock
from icefall.upstream.node import UpstreamNode
from icefall.wire.ids import id_text

_REST = Retry(first_s=0.5, longest_s=30.0, asked_for_max_s=60.0)


class NoneLeft(Exception):
    """Every upstream has been dropped."""


class Identity(msgspec.Struct, frozen=True):
    """Which network an upstream must be of: its number, and the IDs behind some aliases (X, C)."""

    network_id: int
    chain_ids: Mapping[str, bytes]


class Traffic(msgspec.Struct, frozen=True):
    """All upstreams together, for health: over the last minute, and right now."""

    reachable: int
    failed_share: float
    in_flight: int
    longest_s: float
    since_sent_s: float | None
    since_received_s: float | None


class Standing(msgspec.Struct):
    """What we think of one upstream."""

    admitted: bool = False
    dropped: str | None = None  # the lie it told
    failures: int = 0  # in a row
    rests_until: float = 0.0
    trouble: str | None = None  # the latest failure, until a call succeeds


class Upstreams:
    """Shared by the followers of all chains: who lies about one chain is believed about none."""

    def __init__(
        self,
        nodes: Sequence[UpstreamNode],
        identity: Identity,
        log: Log,
        *,
        clock: Clock | None = None,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self.nodes = tuple(nodes)
        self.clock = clock or Clock()
        self._identity = identity
        self._log = log
        self._chance = chance
        self._standings = {node: Standing() for node in self.nodes}
        self._admission = asyncio.Lock()

    # -- choosing ----------------------------------------------------------------------------------------------

    async def pick(self, last: UpstreamNode | None = None, *, move_on: bool = False) -> UpstreamNode:
        """`last` again, if it is fit and we need not move on; else the next fit one. Waits while all of them rest."""
        while True:
            fit = self._fit()
            if not fit:
                if all(self.dropped(node) for node in self.nodes):
                    raise NoneLeft("no upstream is left: " + "; ".join(self.lies().values()))
                await self.clock.sleep(max(0.0, self._first_rested_s() - self.clock.now()))
                continue
            node = self._choose(fit, last, move_on=move_on)
            if await self._admit(node):
                return node

    def others(self, node: UpstreamNode) -> list[UpstreamNode]:
        """Fit ones besides `node`, to compare notes with."""
        fit, place = self._fit(), self.nodes.index(node)
        return [other for other in (*self.nodes[place + 1 :], *self.nodes[:place]) if other in fit]

    async def compare_with(self, node: UpstreamNode) -> list[UpstreamNode]:
        """`others`, introduced."""
        return [other for other in self.others(node) if await self._admit(other)]

    def _fit(self) -> list[UpstreamNode]:
        now = self.clock.now()
        return [node for node, it in self._standings.items() if it.dropped is None and it.rests_until <= now]

    def _first_rested_s(self) -> float:
        return min(it.rests_until for it in self._standings.values() if it.dropped is None)

    def _choose(self, fit: list[UpstreamNode], last: UpstreamNode | None, *, move_on: bool) -> UpstreamNode:
        if last is None:
            return fit[0]
        if last in fit and not move_on:
            return last
        place = self.nodes.index(last) + 1
        return next(node for node in (*self.nodes[place:], *self.nodes[:place]) if node in fit)

    # -- judging -----------------------------------------------------------------------------------------------

    def drop(self, node: UpstreamNode, text: str) -> None:
        """For good: until this program starts again."""
        standing = self._standings[node]
        if standing.dropped is None:
            standing.dropped = f"{node.name}: {text}"
            self._log.error("an upstream lied and is not asked again", upstream=node.name, lie=text)

    def rest(self, node: UpstreamNode, failure: UpstreamFailure) -> None:
        """Leave it alone for a while, longer each time."""
        standing = self._standings[node]
        if standing.dropped is not None:
            return
        standing.failures += 1
        standing.trouble = str(failure)
        after_s = failure.after_s if isinstance(failure, UpstreamDown) else 0.0
        pause_s = _REST.pause_s(standing.failures, after_s, self._chance())
        standing.rests_until = self.clock.now() + pause_s
        self._log.warn("an upstream failed", upstream=node.name, failure=str(failure), rest_s=round(pause_s, 2))

    def praise(self, node: UpstreamNode) -> None:
        """It did what it was asked."""
        standing = self._standings[node]
        standing.failures, standing.trouble = 0, None

    def dropped(self, node: UpstreamNode) -> bool:
        return self._standings[node].dropped is not None

    def lies(self) -> dict[str, str]:
        """By the upstream's name, for those that were dropped."""
        return {node.name: it.dropped for node, it in self._standings.items() if it.dropped is not None}

    def troubles(self) -> dict[str, str]:
        """By the upstream's name, for those whose latest call failed."""
        rows = self._standings.items()
        return {node.name: it.trouble for node, it in rows if it.trouble is not None and it.dropped is None}

    async def _admit(self, node: UpstreamNode) -> bool:
        """Before its first use an upstream says who it is."""
        standing = self._standings[node]
        if standing.admitted:
            return True
        async with self._admission:
            if standing.admitted or standing.dropped is not None:
                return standing.admitted
            try:
                stranger = await self._stranger(node)
            except UpstreamFailure as failure:
                self.rest(node, failure)
                return False
            if stranger is not None:
                self.drop(node, stranger)
                return False
            standing.admitted = True
            return True

    async def _stranger(self, node: UpstreamNode) -> str | None:
        """Why a node is not of this network."""
        network_id = await node.network_id()
        if network_id != self._identity.network_id:
            return f"it is of network {network_id}, not of {self._identity.network_id}"
        for alias, chain_id in self._identity.chain_ids.items():
            theirs = await node.blockchain_id(alias)
            if theirs != chain_id:
                return f"its {alias}-Chain is {id_text(theirs)}, not {id_text(chain_id)}"
        return None

    # -- for start-up, issueTx and health ----------------------------------------------------------------------

    async def greet(self, chains: Sequence[str] = ("X", "P", "C")) -> dict[str, str]:
        """Ask each upstream who it is and for its indices. What stands against any of them, by name."""
        against = await asyncio.gather(*(self._greet(node, chains) for node in self.nodes))
        return {node.name: text for node, text in zip(self.nodes, against, strict=True) if text is not None}

    async def _greet(self, node: UpstreamNode, chains: Sequence[str]) -> str | None:
        if not await self._admit(node):
            standing = self._standings[node]
            return standing.dropped or standing.trouble
        try:
            for chain in chains:
                await node.last_accepted(chain)
        except UpstreamFailure as failure:
            return str(failure)
        return None

    async def issue_tx(self, text: str, encoding: str, *, path: str = "/ext/bc/X") -> str:
        """Hand a transaction to the first upstream that takes it; to the next only if the first cannot have seen it."""
        failure: UpstreamFailure | None = None
        for node in self._fit() or [node for node in self.nodes if not self.dropped(node)]:
            if not await self._admit(node):
                continue
            try:
                return await node.issue_tx(text, encoding, path=path)
            except UpstreamDown as down:
                self.rest(node, down)
                failure = down
                if down.sent:
                    break
            except UpstreamGarbage as garbage:
                raise UpstreamDown(str(garbage)) from garbage
        if failure is None:
            reasons = [*self.lies().values(), *self.troubles().values()]
            raise UpstreamDown("no upstream takes transactions: " + "; ".join(reasons), sent=False)
        raise failure

    def traffic(self) -> Traffic:
        meters = [node.client.meter for node in self.nodes]
        now = self.clock.now()
        recent = [meter.recent() for meter in meters]
        calls, failures = sum(row[0] for row in recent), sum(row[1] for row in recent)
        sent = [meter.last_sent_s for meter in meters if meter.last_sent_s is not None]
        received = [meter.last_received_s for meter in meters if meter.last_received_s is not None]
        return Traffic(
            reachable=sum(node.client.meter.reachable and not self.dropped(node) for node in self.nodes),
            failed_share=failures / calls if calls else 0.0,
            in_flight=sum(meter.in_flight for meter in meters),
            longest_s=max((meter.longest_s for meter in meters), default=0.0),
            since_sent_s=now - max(sent) if sent else None,
            since_received_s=now - max(received) if received else None,
        )

    async def close(self) -> None:
        await asyncio.gather(*(node.client.close() for node in self.nodes))
