"""The network as the handlers see it: its names, its readers, and the names of its assets."""

from collections.abc import Awaitable, Callable, Iterable

import msgspec

from icefall.api.networks.schema.assets import NetworkAsset, PrimaryChainInfo
from icefall.errors import BadRequest, NotFound, Unavailable
from icefall.pchain.listing import PlatformLists
from icefall.pchain.reading import PlatformReader
from icefall.wire.avm.codec import unpack_tx
from icefall.wire.avm.types import CreateAssetTx
from icefall.wire.ids import id_text
from icefall.wire.packer import GENESIS_SIZE_MAX
from icefall.wire.text import bech32
from icefall.xchain.store import AssetChainReader

P_CHAIN, X_CHAIN, C_CHAIN = "p-chain", "x-chain", "c-chain"
_ASSETS_MAX = 4096  # assets whose names a worker keeps


class AssetName(msgspec.Struct, frozen=True):
    """How an asset is called. One that the X-Chain here does not know has no name."""

    name: str = ""
    symbol: str = ""
    denomination: int = 0


class AssetNames:
    """The names of assets, which their transactions on the X-Chain gave them and which never change."""

    def __init__(self, avax_asset_id: bytes, x_chain: AssetChainReader) -> None:
        self._known = {avax_asset_id: AssetName("Avalanche", "AVAX", 9)}
        self._x_chain = x_chain

    async def load(self, asset_ids: Iterable[bytes]) -> None:
        """Read the names of assets that are not known yet."""
        for asset_id in asset_ids:
            if asset_id not in self._known:
                raw = await self._x_chain.tx(asset_id)
                unsigned = unpack_tx(raw, GENESIS_SIZE_MAX).unsigned if raw is not None else None
                if len(self._known) < _ASSETS_MAX and isinstance(unsigned, CreateAssetTx):
                    self._known[asset_id] = AssetName(unsigned.name, unsigned.symbol, unsigned.denomination)

    def amount(self, asset_id: bytes, amount: int) -> NetworkAsset:
        return NetworkAsset(type="secp256k1", amount=str(amount), **self.fields(asset_id))  # type: ignore[arg-type]

    def fields(self, asset_id: bytes) -> dict[str, str | int]:
        """What every shape of an amount says of its asset."""
        found = self._known.get(asset_id, AssetName())
        return {
            "asset_id": id_text(asset_id),
            "name": found.name,
            "symbol": found.symbol,
            "denomination": found.denomination,
        }


class PrimaryNetwork(msgspec.Struct, frozen=True):
    """`public_name` is the one in answers; `names` are all that are accepted. `chains` maps what a caller may write to
    the name of a chain. `hrps` are the human-readable parts of addresses that are accepted, `hrp` is the one sent."""

    public_name: str
    names: frozenset[str]
    chains: dict[str, str]
    hrp: str
    hrps: frozenset[str]
    platform: PlatformReader
    lists: PlatformLists
    assets: AssetNames
    x_chain_id: bytes
    c_chain_id: bytes
    is_executing: Callable[[], Awaitable[bool]]

    def address(self, address: bytes) -> str:
        return _address(self.hrp, address)

    def addresses(self, addresses: Iterable[bytes]) -> list[str]:
        return [_address(self.hrp, one) for one in addresses]

    def parsed(self, addresses: Iterable[tuple[str, bytes]]) -> tuple[bytes, ...]:
        """The addresses of a query, provided that they are of this network."""
        for hrp, address in addresses:
            if hrp not in self.hrps:
                raise BadRequest(f"addresses must begin with {self.hrp}1, got {bech32.encode(hrp, address)}")
        return tuple(dict.fromkeys(address for _, address in addresses))

    @property
    def chain_info(self) -> PrimaryChainInfo:
        return PrimaryChainInfo(chain_name="p-chain", network=self.public_name)


def _address(hrp: str, address: bytes) -> str:
    return bech32.address_text("", hrp, address)[1:]


class Networks:
    """The network of this program, if it runs or follows one."""

    def __init__(self, network: PrimaryNetwork | None) -> None:
        self._network = network

    async def find(self, name: str, chain: str = P_CHAIN) -> PrimaryNetwork:
        """The network of a name, whose P-Chain can be read now."""
        network = self._network
        if network is None:
            raise NotFound("this program neither runs nor follows a primary network: `icefall up` does")
        if name.lower() not in network.names:
            raise NotFound(f"network {name} is not served here, {network.public_name} is")
        found = network.chains.get(chain)
        if found is None:
            raise NotFound(f"blockchainId must be p-chain or its ID, got {chain}")
        if found != P_CHAIN:
            raise BadRequest(f"this operation is offered for the P-Chain only, got {chain}")
        if await network.is_executing():
            raise Unavailable("the P-Chain is still bootstrapping: try again later")
        return network
