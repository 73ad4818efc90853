"""The network as the handlers see it: its names, its readers, and the names of its assets."""

from collections.abc import Awaitable, Callable, Iterable
from typing import Literal

import msgspec

from icefall.api.networks.params import ACCOUNT
from icefall.api.networks.schema.assets import NetworkAsset, PrimaryChainInfo
from icefall.errors import BadRequest, NotFound, Unavailable
from icefall.node.core_chain import CoreChainLists
from icefall.pchain.day_sums import DaySums
from icefall.pchain.observed import ObservedNodes
from icefall.pchain.reading import PlatformReader
from icefall.pchain.subnet_lists import SubnetLists
from icefall.wire.avm.codec import unpack_tx
from icefall.wire.avm.types import (
    CreateAssetTx,
    MintOutput,
    NftMintOutput,
    NftTransferOutput,
    PropertyMintOutput,
    TransferOutput,
)
from icefall.wire.ids import PLATFORM_CHAIN, id_text
from icefall.wire.packer import GENESIS_SIZE_MAX
from icefall.wire.text import bech32
from icefall.xchain.listing import AssetChainLists
from icefall.xchain.outputs import OutputLists
from icefall.xchain.reading import AssetChainReader
from icefall.xchain.vertices import VertexLists

P_CHAIN, X_CHAIN, C_CHAIN = "p-chain", "x-chain", "c-chain"
_ASSETS_MAX = 4096  # assets whose names a worker keeps


class AssetName(msgspec.Struct, frozen=True):
    """How an asset is called. One that the X-Chain here does not know has no name."""

    name: str = ""
    symbol: str = ""
    denomination: int = 0
    type: Literal["secp256k1", "nft"] = "secp256k1"
    cap: Literal["fixed", "variable"] = "fixed"
    shown_id: str = ""  # the ID of the asset as text, where it is kept


_MINTING = (MintOutput, NftMintOutput, PropertyMintOutput)
_OF_NFTS, _OF_COINS = (NftMintOutput, NftTransferOutput), (MintOutput, TransferOutput)


def asset_name(tx: CreateAssetTx) -> AssetName:
    """How a transaction calls the asset that it creates, and whether more of it can be made."""
    outputs = [output for state in tx.initial_states for output in state.outputs]
    has_nfts, has_coins = (any(isinstance(one, kinds) for one in outputs) for kinds in (_OF_NFTS, _OF_COINS))
    can_grow = any(isinstance(output, _MINTING) for output in outputs)
    return AssetName(
        tx.name,
        tx.symbol,
        tx.denomination,
        "nft" if has_nfts and not has_coins else "secp256k1",
        "variable" if can_grow else "fixed",
    )


class AssetNames:
    """The names of assets, which their transactions on the X-Chain gave them and which never change."""

    def __init__(self, avax_asset_id: bytes, x_chain: AssetChainReader) -> None:
        self._known = {avax_asset_id: AssetName("Avalanche", "AVAX", 9, shown_id=id_text(avax_asset_id))}
        self._x_chain = x_chain
        self._avax = avax_asset_id

    async def load(self, asset_ids: Iterable[bytes]) -> None:
        """Read the names of assets that are not known yet."""
        for asset_id in asset_ids:
            if asset_id not in self._known:
                raw = await self._x_chain.tx(asset_id)
                unsigned = unpack_tx(raw, GENESIS_SIZE_MAX).unsigned if raw is not None else None
                if isinstance(unsigned, CreateAssetTx):
                    if len(self._known) >= _ASSETS_MAX:
                        del self._known[next(one for one in self._known if one != self._avax)]
                    self._known[asset_id] = asset_name(unsigned)

    def amount(self, asset_id: bytes, amount: int) -> NetworkAsset:
        return NetworkAsset(type=self.type_of(asset_id), amount=str(amount), **self.fields(asset_id))  # type: ignore[arg-type]

    def type_of(self, asset_id: bytes) -> Literal["secp256k1", "nft"]:
        return self._known.get(asset_id, AssetName()).type

    def fields(self, asset_id: bytes) -> dict[str, str | int]:
        """What every shape of an amount says of its asset."""
        found = self._known.get(asset_id, AssetName())
        return {
            "asset_id": found.shown_id or id_text(asset_id),
            "name": found.name,
            "symbol": found.symbol,
            "denomination": found.denomination,
        }


class PrimaryNetwork(msgspec.Struct, frozen=True):
    """`public_name` is the name in answers, which is that of the path; `names` are all that are accepted. `chains` maps
    what a caller may write to the name of a chain. `hrps` are the human-readable parts of addresses that are accepted,
    `hrp` is the one sent."""

    public_name: str
    names: frozenset[str]
    chains: dict[str, str]
    hrp: str
    hrps: frozenset[str]
    platform: PlatformReader
    lists: SubnetLists
    days: DaySums
    observed: ObservedNodes
    assets: AssetNames
    x_chain_id: bytes
    c_chain_id: bytes
    is_executing: Callable[[], Awaitable[bool]]
    x_lists: AssetChainLists
    c_lists: CoreChainLists
    vertices: VertexLists
    outputs: OutputLists
    initial_supply: int  # of AVAX, in nAVAX
    is_bootstrapping: Callable[[str], Awaitable[bool]]  # by the name of a chain: P, X or C

    def chain_id(self, chain: str) -> bytes:
        return {P_CHAIN: PLATFORM_CHAIN, X_CHAIN: self.x_chain_id, C_CHAIN: self.c_chain_id}[chain]

    def info(self, chain: str) -> PrimaryChainInfo:
        return PrimaryChainInfo(chain_name=chain, network=self.public_name)  # type: ignore[arg-type]

    def address(self, address: bytes) -> str:
        return _address(self.hrp, address)

    def addresses(self, addresses: Iterable[bytes]) -> list[str]:
        return [_address(self.hrp, one) for one in addresses]

    def parsed(self, addresses: Iterable[tuple[str, bytes]], *, with_accounts: bool = False) -> tuple[bytes, ...]:
        """The addresses of a query, provided that they are of this network. `with_accounts`: those of C are too."""
        for hrp, address in addresses:
            if hrp == ACCOUNT and with_accounts:
                continue
            if hrp == ACCOUNT:
                raise BadRequest("addresses must be in bech32: only transactions of the C-Chain are listed by account")
            if hrp not in self.hrps:
                raise BadRequest(f"addresses must begin with {self.hrp}1, got {bech32.encode(hrp, address)}")
        return tuple(dict.fromkeys(address for _, address in addresses))

    @property
    def chain_info(self) -> PrimaryChainInfo:
        return self.info(P_CHAIN)


def _address(hrp: str, address: bytes) -> str:
    return bech32.address_text("", hrp, address)[1:]


class Networks:
    """The network of this program, if it runs or follows one."""

    def __init__(self, network: PrimaryNetwork | None) -> None:
        self._network = network
        self._by_name: dict[str, PrimaryNetwork] = {}
        if network is not None:
            self._by_name = {name: msgspec.structs.replace(network, public_name=name) for name in network.names}

    def which(self, name: str, chain: str) -> str:
        """Which chain is meant: p-chain, x-chain or c-chain."""
        return self._chain(self.named(name), chain)

    @property
    def name(self) -> str:
        """The name of the network, where a path does not name it; empty if there is none."""
        return self._network.public_name if self._network is not None else ""

    async def the_network(self) -> PrimaryNetwork:
        """The network, where a path does not name it."""
        return await self.find_staking(self.name)

    async def find(self, name: str, chain: str = P_CHAIN) -> PrimaryNetwork:
        """The network of a name, whose P-Chain can be read now."""
        network = self.named(name)
        if self._chain(network, chain) != P_CHAIN:
            raise BadRequest(f"this operation is offered for the P-Chain only, got {chain}")
        if await network.is_executing():
            raise Unavailable("the P-Chain is still bootstrapping: try again later")
        return network

    async def find_staking(self, name: str) -> PrimaryNetwork:
        """The network of a name, provided that the sums of its stakers, rewards and fees are there."""
        network = await self.find(name)
        if not await network.lists.has_sums():
            raise Unavailable(
                "the P-Chain was executed by an earlier release, without sums of stakers, rewards and fees: follow the "
                "network in a new --data-dir"
            )
        return network

    async def find_x(self, name: str, chain: str) -> PrimaryNetwork:
        """The network of a name, whose X-Chain can be read now."""
        if self.which(name, chain) != X_CHAIN:
            raise BadRequest(f"this operation is offered for the X-Chain only, got {chain}")
        return await self.listed(name, X_CHAIN)

    async def listed(self, name: str, *chains: str) -> PrimaryNetwork:
        """The network of a name, provided that these chains are complete in their lists."""
        network = self.named(name)
        for chain in chains:
            letter = chain[0].upper()
            if await network.is_bootstrapping(letter):
                raise Unavailable(f"the {letter}-Chain is still bootstrapping: try again later")
        if not await network.outputs.is_complete(network.x_chain_id, network.c_chain_id):
            raise Unavailable("lists of what an older release stored are still being made: try again later")
        return network

    def named(self, name: str) -> PrimaryNetwork:
        """The network of a name, which its answers show. NotFound if it is not served here."""
        if self._network is None:
            raise NotFound("this program neither runs nor follows a primary network: `icefall up` does")
        network = self._by_name.get(name.lower())
        if network is None:
            raise NotFound(f"network {name} is not served here, {self._network.public_name} is")
        return network

    def _chain(self, network: PrimaryNetwork, chain: str) -> str:
        found = network.chains.get(chain)
        if found is None:
            raise NotFound(f"blockchainId must be p-chain, x-chain or c-chain, or the ID of one, got {chain}")
        return found
