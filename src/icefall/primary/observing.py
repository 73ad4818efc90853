"""Asking an upstream, once a minute, what only a running node knows of validators: uptimes, connections, versions.

Nothing here reaches the followers: an upstream that refuses, hangs or answers nonsense is neither given up nor left
alone because of it. What was seen before stays stored, with its time.
"""

import asyncio
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Annotated

import msgspec

from icefall.db.engine import Store, StoreError
from icefall.node.sync.upstreams import NodeUpstreams
from icefall.observe.log import Log
from icefall.pchain.observed import UPTIME_SCALE, ObservedNode, put_observed
from icefall.upstream.client import InvalidAnswer, UpstreamDown, UpstreamError, UpstreamFailure
from icefall.upstream.node import UpstreamNode
from icefall.wire.errors import WireError
from icefall.wire.ids import PLATFORM_CHAIN, id_text, node_id_from_text

EVERY_S, AFTER_FAILURE_S = 60.0, 10.0
LIMIT_S = 20.0  # for all answers of one upstream
_NODES_MAX = 100_000  # more than any network has; a longer answer is refused
_INFO = "/ext/info"

_Percent = Annotated[str, msgspec.Meta(pattern=r"^(100(\.0{1,4})?|[0-9]{1,2}(\.[0-9]{1,4})?)$")]
_Version = Annotated[str, msgspec.Meta(max_length=100)]


class _Validator(msgspec.Struct, rename={"node_id": "nodeID"}):
    node_id: str
    uptime: _Percent = "0"
    connected: bool | None = None


class _Validators(msgspec.Struct):
    validators: Annotated[list[_Validator], msgspec.Meta(max_length=_NODES_MAX)]


class _Peer(msgspec.Struct, rename={"node_id": "nodeID"}):
    node_id: str
    version: _Version = ""
    benched: list[str] | None = None


class _Peers(msgspec.Struct):
    peers: Annotated[list[_Peer], msgspec.Meta(max_length=_NODES_MAX)] | None


class _NodeId(msgspec.Struct, rename={"node_id": "nodeID"}):
    node_id: str


class _NodeVersion(msgspec.Struct):
    version: _Version


class Observing:
    """The loop. `chain_ids` are those of X and C, which may stand for their letters in an answer."""

    def __init__(
        self,
        upstreams: NodeUpstreams,
        store: Store,
        chain_ids: Mapping[str, bytes],
        log: Log,
        *,
        limit_s: float = LIMIT_S,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._upstreams = upstreams
        self._store = store
        self._letters = {id_text(chain_id): letter for letter, chain_id in chain_ids.items()}
        self._letters |= {id_text(PLATFORM_CHAIN): "P"} | {letter: letter for letter in "PXC"}
        self._log = log
        self._limit_s = limit_s
        self._now = now
        self._fails = False

    async def run(self) -> None:
        """Ask for ever."""
        while True:
            stored = await self.ask_once()
            await self._upstreams.clock.sleep(EVERY_S if stored else AFTER_FAILURE_S)

    async def ask_once(self) -> bool:
        """Store what an upstream sees now; False if none answers. The first failure in a row is logged."""
        try:
            now, seen = int(self._now()), await self._seen()
            rows = [msgspec.structs.replace(one, time=now) for one in seen]
            await self._store.write(lambda tx: put_observed(tx, rows, now))
        except (UpstreamFailure, StoreError) as failure:
            if not self._fails:
                self._log.warn("uptimes and versions of validators cannot be asked for", error=str(failure))
            self._fails = True
            return False
        if self._fails:
            self._log.info("uptimes and versions of validators are asked for again")
        self._fails = False
        return True

    async def _seen(self) -> list[ObservedNode]:
        """What the first upstream that answers in time sees."""
        failures: list[str] = []
        try:
            async with asyncio.timeout(self._limit_s):
                nodes = await self._upstreams.usable_once_probed()
        except TimeoutError:
            nodes = []
        for node in nodes:
            try:
                async with asyncio.timeout(self._limit_s):
                    return await self._seen_by(node)
            except TimeoutError:
                failures.append(f"{node.name} gave no answer within {self._limit_s:g} s")
            except UpstreamFailure as failure:
                failures.append(str(failure))
        raise UpstreamDown("; ".join(failures) or "no upstream can be used now", sent=False)

    async def _seen_by(self, node: UpstreamNode) -> list[ObservedNode]:
        call = partial(node.client.call, retry_timeouts=False)
        answer = await call("/ext/bc/P", "platform.getCurrentValidators", {}, _Validators)
        peers = await self._peers(node)
        found: dict[bytes, ObservedNode] = {}
        for one in answer.validators:
            peer = peers.get(one.node_id)
            connected = peer is not None if one.connected is None else one.connected
            try:
                node_id = node_id_from_text(one.node_id)
            except WireError as error:
                raise InvalidAnswer(f"{node.name} sent an invalid node ID: {error}") from error
            uptime = round(float(one.uptime) * UPTIME_SCALE)
            version, benched = (peer.version, self._benched(peer)) if peer is not None else ("", "")
            found[node_id] = ObservedNode(node_id, 0, uptime, connected, version, benched)
        return list(found.values())

    async def _peers(self, node: UpstreamNode) -> dict[str, _Peer]:
        """The node's peers and the node itself; none where it does not offer them, as `--api-info-enabled=false`."""
        call = partial(node.client.call, params={}, retry_timeouts=False)
        try:
            answer = await call(_INFO, "info.peers", result=_Peers)
            own = _Peer(
                (await call(_INFO, "info.getNodeID", result=_NodeId)).node_id,
                (await call(_INFO, "info.getNodeVersion", result=_NodeVersion)).version,
            )
        except UpstreamError:
            return {}
        return {one.node_id: one for one in (*(answer.peers or []), own)}

    def _benched(self, peer: _Peer) -> str:
        return "".join(sorted({self._letters[one] for one in peer.benched or [] if one in self._letters}))
