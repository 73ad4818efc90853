"""The network that the settings describe: its genesis, its chains, and the rules of each asset chain."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from icefall.errors import StartRefused
from icefall.node.chains import Chain, primary_chains
from icefall.pchain.parameters import (
    FORK_NAMES,
    PlatformParameters,
    RewardParameters,
    StakingLimits,
    fork_time,
    fork_times,
    parameters_of,
)
from icefall.wire.avm.codec import genesis_txs, pack_block, unpack_genesis
from icefall.wire.avm.json import ChainNaming
from icefall.wire.errors import WireError
from icefall.wire.genesis.evm import EvmForks, evm_genesis_hash
from icefall.wire.genesis.network import KNOWN_NETWORKS, NetworkGenesis, network_genesis, packaged_genesis, x_chain_id
from icefall.wire.ids import (
    AVM_ID,
    EMPTY_ID,
    FUJI_ID,
    MAINNET_ID,
    PRIMARY_NETWORK,
    hash256,
    id_from_text,
    network_hrp,
    network_name,
)
from icefall.wire.packer import u16, u32, u64
from icefall.wire.text.checksum_hex import decode as decode_hex
from icefall.wire.text.go_text import from_utf8
from icefall.xchain.model import ChainRules, ChainView
from icefall.xchain.semantics import unknown_chain

_INTERFACES = ("admin", "bc", "health", "index", "info", "metrics")
_CHECKS = ("bootstrapped", "database", "diskspace", "network", "router", "shuttingDown")
_LOGGERS = ("main", "vm-factory")
_RESERVED = frozenset((*_INTERFACES, *_CHECKS, *_LOGGERS))
_EVM_FORK_NAMES = ("apricotPhase3Time", "apricotPhase4Time", "durangoTime", "etnaTime", "graniteTime")
_TX_FEE, _CREATE_ASSET_TX_FEE = 1_000_000, 10_000_000  # of the public networks


class AssetChainSource(msgspec.Struct, frozen=True):
    """Another instance of the asset chain, as configured. `genesis` is the path of its genesis file."""

    id: str
    genesis: str
    aliases: tuple[str, ...]


class PlatformSettings(msgspec.Struct, frozen=True):
    """What a network of one's own may set for its P-Chain. An empty `upgrade_file`: all upgrades from the start."""

    upgrade_file: str = ""
    rewards: RewardParameters = RewardParameters()
    limits: StakingLimits | None = None


class NetworkSettings(msgspec.Struct, frozen=True):
    """What decides which network this is. An empty `genesis_file` means the packaged genesis."""

    network_id: int
    genesis_file: str
    tx_fee: int
    create_asset_tx_fee: int
    asset_chains: tuple[AssetChainSource, ...] = ()
    platform: PlatformSettings = PlatformSettings()


class AssetChainSpec(msgspec.Struct, frozen=True):
    """An asset chain to run: its IDs and names, its genesis and its fees."""

    chain: Chain
    genesis: bytes
    block_0: bytes
    rules: ChainRules
    view: ChainView


class LearnedNetwork(msgspec.Struct, frozen=True):
    """What an upstream reported of a network that we have no genesis file of."""

    x_genesis: bytes
    c_chain_id: bytes


class Network(msgspec.Struct, frozen=True):
    """`genesis_config` is the genesis file; empty for a network that was learned from an upstream, whose P-Chain cannot
    be executed."""

    genesis: NetworkGenesis
    genesis_config: bytes
    chains: tuple[Chain, ...]
    asset_chains: tuple[AssetChainSpec, ...]
    platform: PlatformParameters
    has_upgrade_file: bool = False

    @property
    def learned(self) -> bool:
        return not self.genesis_config

    def subnet_of(self, chain_id: bytes) -> bytes:
        for chain in self.chains:
            if chain.chain_id == chain_id:
                return chain.subnet_id
        raise unknown_chain(chain_id)


def is_public(network_id: int) -> bool:
    """Whether fees and upgrade times are fixed by the network and not by settings."""
    return network_id in (MAINNET_ID, FUJI_ID)


def network_of(settings: NetworkSettings, now: int, learned: LearnedNetwork | None = None) -> Network:
    """`now` is the start time of a local network, which decides P's first block."""
    source, genesis = _genesis(settings, now)
    if learned is not None and learned.x_genesis != genesis.x_genesis:
        source, genesis = b"", _as_learned(settings.network_id, genesis, learned)
    upgrades = _upgrades(settings)
    if upgrades:
        genesis = _with_upgrades(settings.network_id, genesis, upgrades)
    forks, given = fork_times(upgrades) if upgrades else None, settings.platform
    platform = parameters_of(settings.network_id, genesis.avax_asset_id, forks, given.rewards, given.limits)
    primary = primary_chains(
        genesis.x_chain_id, genesis.c_chain_id, genesis.x_block_0_id, genesis.p_block_0_id, genesis.c_block_0_id
    )
    x = next(chain for chain in primary if chain.chain_id == genesis.x_chain_id)
    specs = [_spec(settings, x, genesis.x_genesis, genesis.x_block_0)]
    specs += [_other(settings, entry, genesis.x_block_0_time) for entry in settings.asset_chains]
    chains = (*primary, *(spec.chain for spec in specs[1:]))
    _refuse_taken_names(chains)
    return Network(genesis, source, chains, tuple(specs), platform, bool(upgrades))


def _upgrades(settings: NetworkSettings) -> dict[str, Any]:
    """The content of the upgrade file; empty if there is none, and for networks whose upgrades are known."""
    path = settings.platform.upgrade_file
    if not path or is_public(settings.network_id):
        return {}
    try:
        upgrades = msgspec.json.decode(Path(path).read_bytes(), type=dict[str, Any])
        for name in FORK_NAMES + _EVM_FORK_NAMES:
            fork_time(upgrades, name)
    except OSError as error:
        raise StartRefused(f"--upgrade-file {path}: {error.strerror}") from error
    except (WireError, msgspec.DecodeError) as error:
        raise StartRefused(f"--upgrade-file {path}: {error}") from error
    return upgrades


def _with_upgrades(network_id: int, genesis: NetworkGenesis, upgrades: dict[str, Any]) -> NetworkGenesis:
    """X's block 0 has the time of the fork that made a chain of blocks of it; C's has the fields of upgrades then."""
    cortina = fork_times(upgrades).cortina
    block_0 = pack_block(genesis.stop_vertex_id, 0, cortina, ())
    forks = EvmForks(*[fork_time(upgrades, name) for name in _EVM_FORK_NAMES])
    c_genesis = from_utf8(genesis.c_genesis)
    return msgspec.structs.replace(
        genesis,
        x_block_0=block_0.raw,
        x_block_0_id=block_0.block_id,
        x_block_0_time=cortina,
        c_block_0_id=evm_genesis_hash(c_genesis, has_own_schedule=is_public(network_id), forks=forks),
    )


def _refuse_taken_names(chains: Iterable[Chain]) -> None:
    """A name of a chain must not be that of another chain, an interface, a check or a logger."""
    taken = set(_RESERVED)
    for chain in chains:
        for name in (*chain.aliases, chain.id_text):
            if name in taken:
                raise StartRefused(f"[[asset_chain]] {chain.id_text}: the name {name} is taken already")
            taken.add(name)


def _as_learned(network_id: int, genesis: NetworkGenesis, learned: LearnedNetwork) -> NetworkGenesis:
    """A private network: its X-Chain follows from its genesis, the others begin where its index does."""
    chain_id = x_chain_id(network_id, learned.x_genesis)
    stop_vertex_id = _empty_stop_vertex(chain_id)
    block_0 = pack_block(stop_vertex_id, 0, genesis.x_block_0_time, ())
    return msgspec.structs.replace(
        genesis,
        x_genesis=learned.x_genesis,
        x_chain_id=chain_id,
        stop_vertex_id=stop_vertex_id,
        x_block_0=block_0.raw,
        x_block_0_id=block_0.block_id,
        c_chain_id=learned.c_chain_id,
        p_block_0_id=EMPTY_ID,
        c_block_0_id=EMPTY_ID,
    )


def _empty_stop_vertex(chain_id: bytes) -> bytes:
    """The parent of block 0 of a chain that never had a DAG."""
    return hash256(u16(1) + chain_id + u64(0) + u32(0))


def _genesis(settings: NetworkSettings, now: int) -> tuple[bytes, NetworkGenesis]:
    try:
        own = Path(settings.genesis_file).read_bytes() if settings.genesis_file else None
        if own is None and settings.network_id == MAINNET_ID:
            raise StartRefused("mainnet's genesis is not part of the package: give it with --genesis-file")
        source = own or packaged_genesis(settings.network_id)
        genesis = network_genesis(source, settings.network_id, now)
    except OSError as error:
        raise StartRefused(f"--genesis-file {settings.genesis_file}: {error.strerror}") from error
    except WireError as error:
        raise StartRefused(f"--genesis-file {settings.genesis_file}: {error}") from error
    known = KNOWN_NETWORKS.get(settings.network_id)
    wrong = known.differences(genesis) if known else []
    if wrong:
        name = network_name(settings.network_id)
        raise StartRefused(
            f"--genesis-file {settings.genesis_file} is not the genesis of {name}: other {', '.join(wrong)}"
        )
    return source, genesis


def _spec(settings: NetworkSettings, chain: Chain, genesis: bytes, block_0: bytes) -> AssetChainSpec:
    public = is_public(settings.network_id)
    tx_fee = _TX_FEE if public else settings.tx_fee
    create_fee = _CREATE_ASSET_TX_FEE if public else settings.create_asset_tx_fee
    assets = unpack_genesis(genesis)
    asset_ids = {row.alias: tx.txid for row, tx in zip(assets, genesis_txs(assets), strict=True)}
    if not asset_ids:
        raise StartRefused(f"the genesis of {chain.id_text} holds no asset")
    rules = ChainRules(
        network_id=settings.network_id,
        chain_id=chain.chain_id,
        fee_asset_id=next(iter(asset_ids.values())),
        tx_fee=tx_fee,
        create_asset_tx_fee=create_fee,
    )
    view = ChainView(
        chain_id=chain.chain_id,
        naming=ChainNaming(chain.name, network_hrp(settings.network_id)),
        asset_ids=asset_ids,
        tx_fee=tx_fee,
        create_asset_tx_fee=create_fee,
    )
    return AssetChainSpec(chain, genesis, block_0, rules, view)


def _other(settings: NetworkSettings, entry: AssetChainSource, start_time: int) -> AssetChainSpec:
    """Another instance of the asset chain: `[[asset_chain]]`. Its genesis file holds the bytes, or their hex text."""
    try:
        chain_id = id_from_text(entry.id)
        raw = Path(entry.genesis).read_bytes()
        genesis = _decoded(raw)
        block_0 = pack_block(_empty_stop_vertex(chain_id), 0, start_time, ())
        # The first alias names its check and its log file, so it must be an identifier.
        name = next((alias for alias in entry.aliases if alias.isidentifier()), entry.id)
        chain = Chain(name, chain_id, AVM_ID, PRIMARY_NETWORK, entry.aliases, block_0.block_id)
        return _spec(settings, chain, genesis, block_0.raw)
    except OSError as error:
        raise StartRefused(f"[[asset_chain]] {entry.id}: genesis {entry.genesis}: {error.strerror}") from error
    except WireError as error:
        raise StartRefused(f"[[asset_chain]] {entry.id}: {error}") from error


def _decoded(raw: bytes) -> bytes:
    text = raw.strip()
    if not text.startswith(b"0x"):
        return raw
    return decode_hex(text.decode("ascii", "replace"), "hexnc")
