"""Typed calls to a followed node: its network, its accepted containers, and issuing a transaction."""

from datetime import datetime
from typing import Annotated, Any, NamedTuple, TypeVar

import msgspec

from icefall.upstream.client import Client, InvalidAnswer, UpstreamError
from icefall.wire.avm.codec import genesis_from_asset_tx
from icefall.wire.errors import WireError
from icefall.wire.genesis.network import x_chain_id
from icefall.wire.ids import hash256, id_from_text, id_text
from icefall.wire.packer import GENESIS_SIZE_MAX
from icefall.wire.text import checksum_hex

RANGE_MAX = 1024  # containers a node returns per call

_T = TypeVar("_T")
_EMPTY = "no containers have been accepted"
_UNKNOWN = "not found"
_Number = Annotated[str, msgspec.Meta(pattern="^(0|[1-9][0-9]{0,18})$")]
_Time = Annotated[datetime, msgspec.Meta(tz=True)]


class IndexOff(UpstreamError):
    """The node has no index, so it cannot be followed."""


class FetchedContainer(NamedTuple):
    """A container as an upstream sent it: only the encoding has been checked."""

    number: int
    id_text: str
    raw: bytes
    accepted_at: datetime  # by the upstream's clock


class FirstAsset(NamedTuple):
    """The genesis of an asset chain, proven by the chain's ID."""

    network_id: int
    chain_id: bytes
    fee_asset_id: bytes
    genesis: bytes


class _Container(msgspec.Struct):
    id: str
    bytes: str
    timestamp: _Time
    encoding: str
    index: _Number


class _Index(msgspec.Struct):
    index: _Number


class _Containers(msgspec.Struct):
    containers: list[_Container] | None


class _NetworkId(msgspec.Struct, rename={"network_id": "networkID"}):
    network_id: _Number


class _BlockchainId(msgspec.Struct, rename={"blockchain_id": "blockchainID"}):
    blockchain_id: str


class _Bootstrapped(msgspec.Struct, rename="camel"):
    is_bootstrapped: bool


class _Asset(msgspec.Struct, rename={"asset_id": "assetID"}):
    asset_id: str


class _Encoded(msgspec.Struct):
    tx: str
    encoding: str


class _Issued(msgspec.Struct, rename={"txid_text": "txID"}):
    txid_text: str


class UpstreamNode:
    """One node. Every answer is decoded strictly; whether its content is true is checked by the callers."""

    def __init__(self, client: Client) -> None:
        self.name = client.name
        self.client = client

    # -- its network -------------------------------------------------------------------------------------------

    async def network_id(self) -> int:
        return int((await self.client.call("/ext/info", "info.getNetworkID", {}, _NetworkId)).network_id)

    async def blockchain_id(self, alias: str) -> bytes:
        answer = await self.client.call("/ext/info", "info.getBlockchainID", {"alias": alias}, _BlockchainId)
        return self._id(answer.blockchain_id)

    async def is_bootstrapped(self, chain: str) -> bool:
        answer = await self.client.call("/ext/info", "info.isBootstrapped", {"chain": chain}, _Bootstrapped)
        return answer.is_bootstrapped

    async def first_asset(self) -> FirstAsset:
        """The X-Chain's genesis, rebuilt from the transaction of its fee asset. Its hash must be the chain's ID."""
        network_id, chain_id = await self.network_id(), await self.blockchain_id("X")
        described = await self.client.call("/ext/bc/X", "avm.getAssetDescription", {"assetID": "AVAX"}, _Asset)
        asset_id = self._id(described.asset_id)
        raw = await self.tx(asset_id)
        if hash256(raw) != asset_id:
            raise InvalidAnswer(f"{self.name} sent the transaction {id_text(hash256(raw))} as {id_text(asset_id)}")
        try:
            genesis = genesis_from_asset_tx(raw)
        except WireError as error:
            raise InvalidAnswer(f"{self.name} sent an invalid fee asset: {error}") from error
        if x_chain_id(network_id, genesis) != chain_id:
            raise UpstreamError(
                f"the genesis of {self.name}'s X-Chain cannot be rebuilt from its fee asset alone: "
                "give the network's genesis with --genesis-file"
            )
        return FirstAsset(network_id, chain_id, asset_id, genesis)

    async def tx(self, txid: bytes) -> bytes:
        """A signed transaction of the X-Chain."""
        params = {"txID": id_text(txid), "encoding": "hex"}
        answer = await self.client.call("/ext/bc/X", "avm.getTx", params, _Encoded)
        return self._bytes(answer.tx, answer.encoding)

    # -- accepted containers -----------------------------------------------------------------------------------

    async def last_accepted(self, chain: str, index: str = "block") -> FetchedContainer | None:
        """The newest container; None while there is none."""
        try:
            answer = await self._index(chain, index, "getLastAccepted", {}, _Container)
        except UpstreamError as error:
            if str(error) == _EMPTY:
                return None
            raise
        return self._fetched(answer)

    async def container(self, chain: str, number: int, index: str = "block") -> FetchedContainer:
        """Fetch the container that this upstream has under a number."""
        return self._fetched(await self._index(chain, index, "getContainerByIndex", {"index": str(number)}, _Container))

    async def containers(self, chain: str, start: int, count: int, index: str = "block") -> list[FetchedContainer]:
        """Fetch at most `count` containers; fewer where the index ends. A node wraps the list, Icefall's interface does
        not."""
        params = {"startIndex": str(start), "numToFetch": str(min(count, RANGE_MAX))}
        shape: Any = _Containers | list[_Container] | None
        answer: Any = await self._index(chain, index, "getContainerRange", params, shape)
        rows: list[_Container] = (answer.containers if isinstance(answer, _Containers) else answer) or []
        if len(rows) > count:
            raise InvalidAnswer(f"{self.name} sent {len(rows)} containers where {count} were requested")
        return [self._fetched(row) for row in rows]

    async def number_of(self, chain: str, container_id: bytes, index: str = "block") -> int | None:
        """Return the number under which the node has a container; None where it has no such one."""
        try:
            return int((await self._index(chain, index, "getIndex", {"id": id_text(container_id)}, _Index)).index)
        except UpstreamError as error:
            if str(error) == _UNKNOWN:
                return None
            raise

    # -- issuing -----------------------------------------------------------------------------------------------

    async def issue_tx(self, text: str, encoding: str = "hex", *, path: str = "/ext/bc/X", method: str = "") -> str:
        """The ID of the transaction it took. UpstreamError carries the node's own text; it is never sent twice."""
        params = {"tx": text, "encoding": encoding}
        service = {"wallet": "wallet", "P": "platform"}.get(path.rpartition("/")[2], "avm")
        name = method or f"{service}.issueTx"
        return (await self.client.call(path, name, params, _Issued, repeatable=False)).txid_text

    async def _index(self, chain: str, index: str, method: str, params: dict[str, str], result: type[_T]) -> _T:
        """Call a method of an index. Timeouts are not retried: a follower can use another upstream, or request less."""
        path = f"/ext/index/{chain}/{index}"
        try:
            given = {**params, "encoding": "hex"}
            return await self.client.call(path, f"index.{method}", given, result, retry_timeouts=False)
        except UpstreamError as error:
            if error.status == 404:
                raise IndexOff(
                    f"{self.name} keeps no index of accepted containers ({path} answered 404): "
                    "start that node with --index-enabled=true",
                    404,
                ) from error
            raise

    def _fetched(self, row: _Container) -> FetchedContainer:
        return FetchedContainer(int(row.index), row.id, self._bytes(row.bytes, row.encoding), row.timestamp)

    def _bytes(self, text: str, encoding: str) -> bytes:
        if encoding != "hex":
            raise InvalidAnswer(f"{self.name} answered in {encoding[:20]!r} where hex was requested")
        try:
            raw = checksum_hex.decode(text)
        except WireError as error:
            raise InvalidAnswer(f"{self.name} sent damaged bytes: {error}") from error
        if not raw or len(raw) > GENESIS_SIZE_MAX:
            raise InvalidAnswer(f"{self.name} sent {len(raw)} bytes where a container or transaction belongs")
        return raw

    def _id(self, text: str) -> bytes:
        try:
            return id_from_text(text)
        except WireError as error:
            raise InvalidAnswer(f"{self.name} sent an invalid ID: {error}") from error
