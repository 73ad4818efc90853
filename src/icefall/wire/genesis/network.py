"""Everything that a network's genesis file determines: genesis bytes, chain IDs, first blocks, the fee asset."""

from collections.abc import Iterator
from functools import cache
from importlib import resources

import msgspec

from icefall.wire.errors import WireError
from icefall.wire.genesis.config import GenesisConfig, address_bytes, eth_address_bytes, genesis_config
from icefall.wire.genesis.evm import UPGRADED_FROM, evm_chain_id, evm_genesis_hash
from icefall.wire.genesis.platform import create_chain_tx, platform_genesis
from icefall.wire.ids import AVM_FX_IDS, AVM_ID, EMPTY_ID, EVM_ID, FUJI_ID, LOCAL_ID, MAINNET_ID, hash256, id_from_text
from icefall.wire.packer import VERSION_BYTES, pack_blob, pack_string, u16, u32, u64
from icefall.wire.pvm.codec import genesis_block
from icefall.wire.text.go_text import utf8

_CREATE_ASSET, _TRANSFER_OUTPUT, _X_BLOCK, _P_COMMIT_BLOCK = 1, 7, 20, 2
_START_TIME_STEP_S = 270 * 24 * 3600


class KnownNetwork(msgspec.Struct, frozen=True):
    """The IDs of a public network. A genesis file that gives other IDs is not that network's."""

    avax_asset_id: bytes
    x_chain_id: bytes
    c_chain_id: bytes
    stop_vertex_id: bytes
    x_block_0_time: int
    x_block_0_id: bytes
    p_genesis_id: bytes | None = None  # None: moves with the start time, as does P block 0
    p_block_0_id: bytes | None = None

    def differences(self, genesis: "NetworkGenesis") -> list[str]:
        """Names of the fields in which `genesis` is not this network's."""
        expected = msgspec.structs.asdict(self)
        return [name for name, value in expected.items() if value is not None and value != getattr(genesis, name)]


KNOWN_NETWORKS = {
    MAINNET_ID: KnownNetwork(
        avax_asset_id=id_from_text("FvwEAhmxKfeiG8SnEvq42hc6whRyY3EFYAvebMqDNDGCgxN5Z"),
        x_chain_id=id_from_text("2oYMBNV4eNHyqk2fjjV5nVQLDbtmNJzq5s3qs3Lo6ftnC6FByM"),
        c_chain_id=id_from_text("2q9e4r6Mu3U68nU1fYjgbR6JvwrRx36CohpAX5UQxse55x1Q5"),
        stop_vertex_id=id_from_text("jrGWDh5Po9FMj54depyunNixpia5PN4aAYxfmNzU8n752Rjga"),
        x_block_0_time=1_682_434_800,
        x_block_0_id=id_from_text("V8kYdATLoVjUBazVjEHy1dWurk2PcnhERSWnwmcNwirdsBb1S"),
        p_genesis_id=id_from_text("UUvXi6j7QhVvgpbKM89MP5HdrxKm9CaJeHc187TsDNf8nZdLk"),
        p_block_0_id=id_from_text("2FUFPVPxbTpKNn39moGSzsmGroYES4NZRdw3mJgNvMkMiMHJ9e"),
    ),
    FUJI_ID: KnownNetwork(
        avax_asset_id=id_from_text("U8iRqJoiJm8xZHAacmvYyZVwqQx6uDNtQeP3CQ6fcgQk3JqnK"),
        x_chain_id=id_from_text("2JVSBoinj9C2J33VntvzYtVJNZdN2NKiwwKjcumHUWEb5DbBrm"),
        c_chain_id=id_from_text("yH8D7ThNJkxmtkuv2jgBa4P1Rn3Qpr4pPr7QYNfcdoS6k6HWp"),
        stop_vertex_id=id_from_text("2D1cmbiG36BqQMRyHt4kFhWarmatA1ighSpND3FeFgz3vFVtCZ"),
        x_block_0_time=1_680_793_200,
        x_block_0_id=id_from_text("2tCdy3dRsf6rYG7jtBNSyANQ6StrAEYpCDMLBQyGRLF8wG5KPK"),
        p_genesis_id=id_from_text("MSj6o9TpezwsQx4Tv7SHqpVvCbJ8of1ikjsqPZ1bKRjc9zBy3"),
        p_block_0_id=id_from_text("99BWrAqUMvTp9nXKXyjPsCqjGwDqVFqssTRQbu58af57Cf9VG"),
    ),
    LOCAL_ID: KnownNetwork(
        avax_asset_id=id_from_text("2fombhL7aGPwj3KH4bfrmJwW6PVnMobf9Y2fn9GwxiAAJyFDbe"),
        x_chain_id=id_from_text("2eNy1mUFdmaxXNj1eQHUe7Np4gju9sJsEtWQ4MX3ToiNKuADed"),
        c_chain_id=id_from_text("2owdGqyG6FFzTHy5qhenDXQcEghvr571KZE3gSfRJERSJinuwC"),
        stop_vertex_id=id_from_text("3LdUD428gni3AFYAooqcTiN3xPGiLE7XdHowi9CsbNGH1i7QY"),
        x_block_0_time=UPGRADED_FROM,
        x_block_0_id=id_from_text("2R2UY2pZMQr8nR9ywCdqn97Lp5a6hceqtLXkag6vH7KQSVvmst"),
    ),
}


class NetworkGenesis(msgspec.Struct, frozen=True):
    """A network at height 0."""

    network_id: int
    start_time: int
    avax_asset_id: bytes
    x_genesis: bytes
    x_chain_id: bytes
    stop_vertex_id: bytes  # what X block 0 names as its parent
    x_block_0: bytes
    x_block_0_id: bytes
    x_block_0_time: int
    p_genesis: bytes
    p_genesis_id: bytes
    p_block_0: bytes
    p_block_0_id: bytes
    c_genesis: bytes
    c_chain_id: bytes
    c_block_0_id: bytes
    evm_chain_id: int


@cache
def packaged_genesis(network_id: int) -> bytes:
    """The genesis file for a network: fuji's own, and the local one for all others. Mainnet's is not shipped."""
    if network_id == MAINNET_ID:
        raise WireError("the genesis file of mainnet is not part of the package")
    name = "genesis_fuji.json" if network_id == FUJI_ID else "genesis_local.json"
    return resources.files("icefall.wire.genesis").joinpath("data", name).read_bytes()


def network_genesis(config: bytes, network_id: int, now: int) -> NetworkGenesis:
    """Builds the genesis of a network from its file. The local file serves any custom network ID; its start time is
    moved up to the last whole step before `now`, because its validators' stakes would have run out."""
    parsed = genesis_config(config)
    if network_id != parsed.network_id and (parsed.network_id != LOCAL_ID or network_id in (MAINNET_ID, FUJI_ID)):
        raise WireError(f"genesis: networkID must be {network_id}, got {parsed.network_id}")
    if not 0 <= network_id < 2**32:
        raise WireError(f"a network ID is between 0 and 4294967295, got {network_id}")
    start_time = _recent(parsed.start_time, now) if parsed.network_id == LOCAL_ID else parsed.start_time

    x_genesis, asset_id = _asset_genesis(parsed, network_id)
    x_create, c_create = _chain_txs(parsed, network_id, x_genesis)
    x_chain_id = hash256(VERSION_BYTES + x_create)
    stop_vertex_id, x_time, x_block = _x_block_0(network_id, x_chain_id)
    p_genesis = platform_genesis(parsed, network_id, start_time, asset_id, (x_create, c_create))
    p_block = genesis_block(p_genesis).raw
    has_own_schedule = network_id in (MAINNET_ID, FUJI_ID)
    return NetworkGenesis(
        network_id=network_id,
        start_time=start_time,
        avax_asset_id=asset_id,
        x_genesis=x_genesis,
        x_chain_id=x_chain_id,
        stop_vertex_id=stop_vertex_id,
        x_block_0=x_block,
        x_block_0_id=hash256(x_block),
        x_block_0_time=x_time,
        p_genesis=p_genesis,
        p_genesis_id=hash256(p_genesis),
        p_block_0=p_block,
        p_block_0_id=hash256(p_block),
        c_genesis=utf8(parsed.c_chain_genesis),
        c_chain_id=hash256(VERSION_BYTES + c_create),
        c_block_0_id=evm_genesis_hash(parsed.c_chain_genesis, has_own_schedule=has_own_schedule),
        evm_chain_id=evm_chain_id(parsed.c_chain_genesis),
    )


def p_block_0_ids(config: bytes, network_id: int, steps: int = 64) -> frozenset[bytes]:
    """P block 0 of a local network, for each time it may have been started at: its start moves in whole steps."""
    return frozenset(genesis_block(genesis).block_id for genesis in _p_genesis_candidates(config, network_id, steps))


def p_genesis_of(config: bytes, network_id: int, block_0_id: bytes, steps: int = 64) -> bytes | None:
    """The genesis bytes of the P-Chain whose block 0 has this ID; None if the network cannot have begun with it."""
    candidates = _p_genesis_candidates(config, network_id, steps)
    return next((genesis for genesis in candidates if genesis_block(genesis).block_id == block_0_id), None)


def _p_genesis_candidates(config: bytes, network_id: int, steps: int) -> Iterator[bytes]:
    parsed = genesis_config(config)
    times = [parsed.start_time]
    if parsed.network_id == LOCAL_ID:
        times = [parsed.start_time + step * _START_TIME_STEP_S for step in range(steps)]
    x_genesis, asset_id = _asset_genesis(parsed, network_id)
    txs = _chain_txs(parsed, network_id, x_genesis)
    for time in times:
        yield platform_genesis(parsed, network_id, time, asset_id, txs)


def x_chain_id(network_id: int, x_genesis: bytes) -> bytes:
    """The ID of the asset chain that starts from these genesis bytes: how a genesis proves itself."""
    return hash256(VERSION_BYTES + create_chain_tx(network_id, "X-Chain", AVM_ID, AVM_FX_IDS, x_genesis))


def _chain_txs(config: GenesisConfig, network_id: int, x_genesis: bytes) -> tuple[bytes, bytes]:
    """The transactions that create X and C."""
    x_create = create_chain_tx(network_id, "X-Chain", AVM_ID, AVM_FX_IDS, x_genesis)
    return x_create, create_chain_tx(network_id, "C-Chain", EVM_ID, (), utf8(config.c_chain_genesis))


def _recent(start_time: int, now: int) -> int:
    return start_time + max(0, now - start_time) // _START_TIME_STEP_S * _START_TIME_STEP_S


def _asset_genesis(config: GenesisConfig, network_id: int) -> tuple[bytes, bytes]:
    """The X-Chain's genesis bytes and the ID of the one asset in them."""
    funded = [
        (allocation.initial_amount, address_bytes(allocation.avax_addr), eth_address_bytes(allocation.eth_addr))
        for allocation in config.allocations
        if allocation.initial_amount
    ]
    funded.sort(key=lambda row: row[:2])
    outputs = sorted(
        u32(_TRANSFER_OUTPUT) + u64(amount) + u64(0) + u32(1) + u32(1) + address for amount, address, _ in funded
    )
    asset = b"".join(
        (
            u32(network_id) + EMPTY_ID + u32(0) * 2,
            pack_blob(b"".join(eth_address for _, _, eth_address in funded)),
            pack_string("Avalanche") + pack_string("AVAX") + b"\x09",
            u32(1) + u32(0) + u32(len(outputs)),  # one initial state, of the first Fx
            *outputs,
        )
    )
    genesis = VERSION_BYTES + u32(1) + pack_string("AVAX") + asset
    return genesis, hash256(VERSION_BYTES + u32(_CREATE_ASSET) + asset + u32(0))


def _x_block_0(network_id: int, chain_id: bytes) -> tuple[bytes, int, bytes]:
    """Stop vertex, time and bytes of X block 0."""
    known = KNOWN_NETWORKS.get(network_id)
    # A chain that never was a DAG ends that era with a vertex of its own: version 1, height 0, no parents.
    stop_vertex_id = known.stop_vertex_id if known else hash256(u16(1) + chain_id + u64(0) + u32(0))
    time = known.x_block_0_time if known else UPGRADED_FROM
    block = VERSION_BYTES + u32(_X_BLOCK) + stop_vertex_id + u64(0) + u64(time) + EMPTY_ID + u32(0)
    return stop_vertex_id, time, block
