"""Lets imports wait until the exporting chains have been followed as far as the upstream has them."""

from collections.abc import Sequence
from typing import Protocol

from icefall.node.sync.upstreams import NodeUpstreams
from icefall.node.sync.verify import ChainStopped, FollowedChain
from icefall.upstream.client import UpstreamError
from icefall.upstream.node import UpstreamNode


class Exporter(Protocol):
    """The follower of a chain that exports to ours. `why` is set when it has stopped."""

    why: str | None

    @property
    def name(self) -> str: ...

    @property
    def chain(self) -> FollowedChain: ...


class ImportWaiter:
    """`waiting` is what it waits for, while it does."""

    def __init__(self, exporters: Sequence[Exporter], upstreams: NodeUpstreams, poll_s: float) -> None:
        self.waiting: str | None = None
        self._exporters = tuple(exporters)
        self._upstreams = upstreams
        self._poll_s = poll_s

    async def wait(self, node: UpstreamNode, what: str) -> None:
        """Wait until the chains we import from are where `node` has them now, which is after it accepted the import."""
        try:
            for other in self._exporters:
                self.waiting = f"{what}: waits until {node.name} has bootstrapped {other.name}"
                while not await has_bootstrapped(node, other.name):  # before that its chains differ in progress
                    await self._pause(node)
                tip = await node.last_accepted(other.name)
                count = 0 if tip is None else tip.number + 1
                self.waiting = f"{what}: waits for {other.name} to reach {count} containers"
                while other.chain.count < count:
                    self._upstreams.require(node)
                    if other.why is not None:
                        raise ChainStopped(f"{self.waiting}, which has stopped: {other.why}")
                    await self._pause(node)
        finally:
            self.waiting = None

    async def _pause(self, node: UpstreamNode) -> None:
        self._upstreams.require(node)
        await self._upstreams.clock.sleep(self._poll_s)


async def has_bootstrapped(node: UpstreamNode, chain: str) -> bool:
    """A node that does not answer this counts as bootstrapped: what it lacks then is treated as invalid data."""
    try:
        return await node.is_bootstrapped(chain)
    except UpstreamError:
        return True
