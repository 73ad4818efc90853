"""Handlers of the info interface and of the platform chain: the properties of this node, and fee parameters."""

from datetime import datetime

from icefall.api.http.structs import NoParams
from icefall.api.node.schema.node import (
    Acps,
    BlockchainAliasParams,
    BlockchainId,
    Bootstrapped,
    BootstrappedParams,
    FeeConfig,
    Fees,
    NetworkId,
    NetworkName,
    NodeId,
    NodeIp,
    NodeVersion,
    Peers,
    PeersParams,
    Upgrades,
    Uptime,
    Vms,
)
from icefall.errors import CallFailed
from icefall.node.chains import Chains
from icefall.node.info import NodeInfo, upgrade_times
from icefall.node.store import NodeReader
from icefall.wire.ids import FX_NAMES, VM_NAMES, id_text

# The database and plugin protocol versions of the node whose interface this is: clients compare them.
_DATABASE_VERSION = "v1.4.5"
_RPC_PROTOCOL_VERSION = "45"
_P_CHAIN_FEE = "100000000"
_SUBNET_STAKER_FEE = "1000000"
# The dynamic fee parameters every network of this generation starts with.
_FEES = FeeConfig([1, 1000, 1000, 4], 1_000_000, 100_000, 50_000, 1, 2_164_043)


async def get_network_id(_: NoParams, info: NodeInfo) -> NetworkId:
    return NetworkId(str(info.network_id))


async def get_network_name(_: NoParams, info: NodeInfo) -> NetworkName:
    return NetworkName(info.network_name)


async def get_blockchain_id(params: BlockchainAliasParams, chains: Chains) -> BlockchainId:
    return BlockchainId(id_text(await chains.lookup(params.alias)))


async def get_node_id(_: NoParams, info: NodeInfo) -> NodeId:
    return NodeId(info.node_id_text)


async def get_node_version(_: NoParams, info: NodeInfo) -> NodeVersion:
    versions = dict.fromkeys(sorted(VM_NAMES.values()), info.version)
    return NodeVersion(info.version, _DATABASE_VERSION, _RPC_PROTOCOL_VERSION, "", versions)


async def get_node_ip(_: NoParams, info: NodeInfo) -> NodeIp:
    return NodeIp(info.address)


async def is_bootstrapped(params: BootstrappedParams, chains: Chains, node: NodeReader) -> Bootstrapped:
    if not params.chain:
        raise CallFailed("argument 'chain' not given")
    try:
        chain_id = await chains.lookup(params.chain)
    except CallFailed as error:
        raise CallFailed(f"there is no chain with alias/ID '{params.chain}'") from error
    chain = chains.get(chain_id)
    return Bootstrapped(chain is not None and chain.name not in await node.bootstrapping())


async def peers(_: PeersParams) -> Peers:
    """List no peers, because there is no peer network here. Upstreams are not peers: health counts them."""
    return Peers("0", [])


async def get_vms(_: NoParams, node: NodeReader) -> Vms:
    vms = {id_text(vm_id): [name] for vm_id, name in VM_NAMES.items()}
    vms.update({plugin.vm_id: plugin.aliases for plugin in await node.plugins()})
    fxs = {id_text(fx_id): name for fx_id, name in FX_NAMES.items()}
    return Vms(dict(sorted(vms.items())), dict(sorted(fxs.items())))


async def get_tx_fee(_: NoParams, info: NodeInfo) -> Fees:
    return Fees(
        tx_fee=str(info.tx_fee),
        create_asset_tx_fee=str(info.create_asset_tx_fee),
        create_subnet_tx_fee=_P_CHAIN_FEE,
        transform_subnet_tx_fee=_P_CHAIN_FEE,
        create_blockchain_tx_fee=_P_CHAIN_FEE,
        add_primary_network_validator_fee="0",
        add_primary_network_delegator_fee="0",
        add_subnet_validator_fee=_SUBNET_STAKER_FEE,
        add_subnet_delegator_fee=_SUBNET_STAKER_FEE,
    )


async def uptime(_: NoParams) -> Uptime:
    """Return the uptime of a healthy node, 100 %: there is no peer network, and no stake that observes this node."""
    return Uptime("100.0000", "100.0000")


async def acps(_: NoParams) -> Acps:
    return Acps({})


async def upgrades(_: NoParams, info: NodeInfo) -> Upgrades:
    times = upgrade_times(info.network_id)
    phase1, phase2, phase3, phase4, phase5, pre6, phase6, post6 = map(_z, times.apricot)
    return Upgrades(
        apricot_phase1_time=phase1,
        apricot_phase2_time=phase2,
        apricot_phase3_time=phase3,
        apricot_phase4_time=phase4,
        apricot_phase4_min_p_chain_height=times.apricot4_min_p_height,
        apricot_phase5_time=phase5,
        apricot_phase_pre6_time=pre6,
        apricot_phase6_time=phase6,
        apricot_phase_post6_time=post6,
        banff_time=_z(times.banff),
        cortina_time=_z(times.cortina),
        cortina_x_chain_stop_vertex_id=info.stop_vertex_text,
        durango_time=_z(times.durango),
        etna_time=_z(times.etna),
        fortuna_time=_z(times.fortuna),
        granite_time=_z(times.granite),
        granite_epoch_duration=times.granite_epoch_ns,
        helicon_time=_z(times.helicon),
    )


def _z(time: datetime) -> str:
    return f"{time:%Y-%m-%dT%H:%M:%SZ}"
