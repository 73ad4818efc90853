"""What blocks of the platform chain do not contain, from the node that is followed.

Uptimes, connections, transactions that are waiting and the proposed height exist only in a running node. They are asked
for with a time limit; without an upstream they are left out, because no value would be true.
"""

import time
from collections import OrderedDict
from typing import Any, TypeVar

import msgspec

from icefall.errors import CallFailed, IcefallError
from icefall.ipc.socket import SocketClient
from icefall.wire.ids import NODE_ID_PREFIX, short_id_text

_T = TypeVar("_T")
_KEPT_S = 10.0  # uptimes move slowly, and the answer about all validators is large
_KEPT_MAX = 64


class Observed(msgspec.Struct, frozen=True, rename={"node_id": "nodeID"}):
    """What a node sees of a validator of the primary network."""

    node_id: str
    uptime: str | msgspec.UnsetType = msgspec.UNSET
    connected: bool | msgspec.UnsetType = msgspec.UNSET


NOTHING_OBSERVED: dict[str, Observed] = {}


class _Observations(msgspec.Struct):
    validators: list[Observed]


class ObservedHeight(msgspec.Struct):
    height: str


class ObservedStatus(msgspec.Struct):
    status: str
    reason: str | msgspec.UnsetType = msgspec.UNSET


class PlatformUpstream:
    """Calls of a worker to the upstream's platform chain, carried out by the engine. `engine` is None without one."""

    def __init__(self, engine: SocketClient | None) -> None:
        self._engine = engine
        self._kept: OrderedDict[tuple[bytes, ...], tuple[float, dict[str, Observed]]] = OrderedDict()

    @property
    def exists(self) -> bool:
        return self._engine is not None

    async def call(self, method: str, params: dict[str, Any], result: type[_T]) -> _T:
        """Return the upstream's result. Its error is raised with the upstream's text; Unavailable if none answers."""
        if self._engine is None:
            raise CallFailed("there is no upstream")
        raw = await self._engine.call("platform_call", method=method, params=params)
        try:
            return msgspec.json.decode(raw, type=result)
        except msgspec.DecodeError as error:
            raise CallFailed(f"the upstream answered {method} with {error}") from error

    async def issue(self, tx: str, encoding: str) -> bytes:
        """Forward a transaction; its ID."""
        if self._engine is None:
            raise CallFailed(
                "platform.issueTx needs an upstream: a network of its own has no validators to accept transactions of "
                "the P-Chain"
            )
        txid: bytes = await self._engine.call("platform_issue", tx=tx, encoding=encoding)
        return txid

    async def observed(self, node_ids: list[bytes]) -> dict[str, Observed]:
        """What the upstream sees of validators of the primary network, by NodeID; of all if none is named. Empty
        without an upstream, or while none answers."""
        if self._engine is None:
            return NOTHING_OBSERVED
        key, now = tuple(node_ids), time.monotonic()
        kept = self._kept.get(key)
        if kept is not None and now - kept[0] < _KEPT_S:
            return kept[1]
        names = [NODE_ID_PREFIX + short_id_text(node_id) for node_id in node_ids]
        try:
            params = {"nodeIDs": names} if names else {}
            answer = await self.call("platform.getCurrentValidators", params, _Observations)
        except IcefallError:
            return NOTHING_OBSERVED
        found = {one.node_id: one for one in answer.validators}
        self._kept[key] = now, found
        if len(self._kept) > _KEPT_MAX:
            self._kept.popitem(last=False)
        return found
