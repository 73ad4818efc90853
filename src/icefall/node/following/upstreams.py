"""The upstreams of a followed network: whose turn it is, who needs a rest, and who has lied."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TypeVar

import msgspec

from icefall.observe.log import Log
from icefall.upstream.client import InvalidAnswer, Retry, UpstreamDown, UpstreamError, UpstreamFailure
from icefall.upstream.meter import Clock
from icefall.upstream.node import UpstreamNode
from icefall.wire.ids import id_text

_T = TypeVar("_T")

_REST = Retry(first_s=0.5, longest_s=60.0, asked_for_max_s=60.0)


class NoUsableUpstream(Exception):
    """Every upstream has been dropped."""


class NetworkIdentity(msgspec.Struct, frozen=True):
    """Which network an upstream must be of: its number, and the IDs behind some aliases (X, C)."""

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


class NodeUpstreamState(msgspec.Struct):
    """What we think of one upstream."""

    admitted: bool = False  # it is of our network
    sound: bool = False  # the latest thing it was asked came out right
    dropped: str | None = None  # the lie it told
    failures: int = 0  # in a row
    rests_until: float = 0.0
    trouble: str | None = None  # the latest failure, until something comes out right


class NodeUpstreams:
    """Shared by the followers of all chains: who lies about one chain is believed about none.

    Only upstreams that are sound are handed out. The others are probed in the background when they have rested, so that
    one which hangs holds nobody up.
    """

    def __init__(
        self,
        nodes: Sequence[UpstreamNode],
        identity: NetworkIdentity,
        log: Log,
        *,
        clock: Clock | None = None,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self.nodes = tuple(nodes)
        for place, node in enumerate(self.nodes):  # two may differ only in what a name leaves out
            if any(node.name == other.name for other in self.nodes[:place]):
                node.name += f"#{place + 1}"
        self.clock = clock or Clock()
        self._identity = identity
        self._log = log
        self._chance = chance
        self._standings = {node: NodeUpstreamState() for node in self.nodes}
        self._probes: dict[UpstreamNode, asyncio.Task[None]] = {}

    # -- choosing ----------------------------------------------------------------------------------------------

    async def pick(self, last: UpstreamNode | None = None, *, move_on: bool = False) -> UpstreamNode:
        """`last` again, if it is sound and we need not move on; else the next sound one. Waits until there is one."""
        while True:
            self._probe_the_rested()
            sound = self._sound()
            if sound:
                return self._choose(sound, last, move_on=move_on)
            if len(self.lies()) == len(self.nodes):
                raise NoUsableUpstream("no upstream is left: " + "; ".join(self.lies().values()))
            await self._change()

    def others(self, node: UpstreamNode) -> list[UpstreamNode]:
        """Sound ones besides `node`, to compare notes with."""
        sound = self._sound()
        return [other for other in self._from(node) if other in sound and other is not node]

    def _sound(self) -> list[UpstreamNode]:
        return [node for node, it in self._standings.items() if it.sound and it.dropped is None]

    def _choose(self, sound: list[UpstreamNode], last: UpstreamNode | None, *, move_on: bool) -> UpstreamNode:
        if last is None:
            return sound[0]
        if last in sound and not move_on:
            return last
        return next(node for node in self._from(last) if node in sound)

    def _from(self, node: UpstreamNode) -> Sequence[UpstreamNode]:
        """All of them, in turn, `node` last."""
        place = self.nodes.index(node) + 1
        return (*self.nodes[place:], *self.nodes[:place])

    # -- probing -----------------------------------------------------------------------------------------------

    def _probe_the_rested(self) -> None:
        now = self.clock.now()
        for node, standing in self._standings.items():
            if not standing.sound and standing.dropped is None and standing.rests_until <= now:
                self._probe(node)

    def _probe(self, node: UpstreamNode) -> asyncio.Task[None]:
        probe = self._probes.get(node)
        if probe is None:
            probe = self._probes[node] = asyncio.create_task(self._ask(node))
            probe.add_done_callback(lambda _: self._probes.pop(node, None))
        return probe

    async def _ask(self, node: UpstreamNode) -> None:
        """Who it is, the first time, and whether it keeps an index."""
        standing = self._standings[node]
        try:
            stranger = None if standing.admitted else await self._stranger(node)
            if stranger is not None:
                self.drop(node, stranger)
                return
            standing.admitted = True
            await node.last_accepted("X")
        except UpstreamFailure as failure:
            self.rest(node, failure)
        else:
            standing.sound, standing.trouble = True, None  # `failures` stay: it has yet to do some real work

    async def _change(self) -> None:
        """Until a probe has ended, or somebody has rested."""
        resting = [
            it.rests_until for node, it in self._standings.items() if node not in self._probes and not it.dropped
        ]
        waits = set(self._probes.values())
        alarm = None
        if resting:
            alarm = asyncio.create_task(self.clock.sleep(max(0.0, min(resting) - self.clock.now())))
            waits.add(alarm)
        try:
            done, _ = await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            if alarm is not None:
                alarm.cancel()

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
        standing.sound = False
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

    def require(self, node: UpstreamNode) -> None:
        """While a follower waited, its upstream may have been caught by the follower of another chain."""
        if self.dropped(node):
            raise UpstreamDown(f"{node.name} lied about another chain")

    def lies(self) -> dict[str, str]:
        """By the upstream's name, for those that were dropped."""
        return {node.name: it.dropped for node, it in self._standings.items() if it.dropped is not None}

    def troubles(self) -> dict[str, str]:
        """By the upstream's name, for those whose latest call failed."""
        rows = self._standings.items()
        return {node.name: it.trouble for node, it in rows if it.trouble is not None and it.dropped is None}

    async def _stranger(self, node: UpstreamNode) -> str | None:
        """Why a node is not of this network. One that does not tell is judged by its containers: they must hang on our
        genesis."""
        network_id = await _told(node.network_id())
        if network_id is not None and network_id != self._identity.network_id:
            return f"it is of network {network_id}, not of {self._identity.network_id}"
        for alias, chain_id in self._identity.chain_ids.items():
            theirs = await _told(node.blockchain_id(alias))
            if theirs is not None and theirs != chain_id:
                return f"its {alias}-Chain is {id_text(theirs)}, not {id_text(chain_id)}"
        return None

    # -- for start-up, issueTx and health ----------------------------------------------------------------------

    async def greet(self) -> dict[str, str]:
        """Ask each upstream who it is and for its index. What stands against any of them, by name."""
        await asyncio.gather(*(self._probe(node) for node in self.nodes if not self.dropped(node)))
        return self.lies() | self.troubles()

    async def issue_tx(self, text: str, encoding: str, *, path: str = "/ext/bc/X") -> str:
        """Hand a transaction to the first upstream that takes it; to the next only if the first cannot have seen it."""
        self._probe_the_rested()
        if self._probes and not self._sound():
            await asyncio.wait(self._probes.values(), return_when=asyncio.FIRST_COMPLETED)
        for node in self._sound():
            try:
                return await node.issue_tx(text, encoding, path=path)
            except (UpstreamDown, InvalidAnswer) as failure:
                self.rest(node, failure)
                if failure.sent:
                    raise
        reasons = [*self.lies().values(), *self.troubles().values()]
        raise UpstreamDown("no upstream takes transactions now: " + "; ".join(reasons), sent=False)

    def traffic(self) -> UpstreamTraffic:
        meters = [node.client.meter for node in self.nodes]
        now = self.clock.now()
        recent = [meter.recent() for meter in meters]
        calls, failures = sum(row[0] for row in recent), sum(row[1] for row in recent)
        sent = [meter.last_sent_s for meter in meters if meter.last_sent_s is not None]
        received = [meter.last_received_s for meter in meters if meter.last_received_s is not None]
        return UpstreamTraffic(
            reachable=sum(node.client.meter.reachable and not self.dropped(node) for node in self.nodes),
            failed_share=failures / calls if calls else 0.0,
            in_flight=sum(meter.in_flight for meter in meters),
            longest_s=max((meter.longest_s for meter in meters), default=0.0),
            since_sent_s=now - max(sent) if sent else None,
            since_received_s=now - max(received) if received else None,
        )

    async def close(self) -> None:
        probes = list(self._probes.values())
        for probe in probes:
            probe.cancel()
        await asyncio.gather(*probes, return_exceptions=True)
        await asyncio.gather(*(node.client.close() for node in self.nodes))


async def _told(asked: Awaitable[_T]) -> _T | None:
    """The answer to a question that a node may decline."""
    try:
        return await asked
    except UpstreamError:
        return None
