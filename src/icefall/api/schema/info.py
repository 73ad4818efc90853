"""Info: parameters and results, in the shapes of the existing node."""

from typing import Any

from icefall.api.params.node_kinds import NodeIds, String
from icefall.api.schema.names import Params, Result


class BlockchainAliasParams(Params, frozen=True):
    alias: String = ""


class BootstrappedParams(Params, frozen=True):
    chain: String = ""


class PeersParams(Params, frozen=True):
    node_ids: NodeIds = []


class NetworkId(Result, frozen=True):
    network_id: str


class NetworkName(Result, frozen=True):
    network_name: str


class BlockchainId(Result, frozen=True):
    blockchain_id: str


class NodeId(Result, frozen=True):
    node_id: str


class NodeIp(Result, frozen=True):
    ip: str


class NodeVersion(Result, frozen=True):
    version: str
    database_version: str
    rpc_protocol_version: str
    git_commit: str
    vm_versions: dict[str, str]


class Bootstrapped(Result, frozen=True):
    is_bootstrapped: bool


class Peer(Result, frozen=True):
    """A peer of a node; this node lists none."""

    ip: str
    public_ip: str
    node_id: str
    version: str
    upgrade_time: int
    last_sent: str
    last_received: str
    observed_uptime: str
    tracked_subnets: list[str]
    supported_acps: list[int]
    objected_acps: list[int]
    benched: list[str]


class Peers(Result, frozen=True):
    num_peers: str
    peers: list[Peer]


class Vms(Result, frozen=True):
    vms: dict[str, list[str]]
    fxs: dict[str, str]


class Fees(Result, frozen=True):
    tx_fee: str
    create_asset_tx_fee: str
    create_subnet_tx_fee: str
    transform_subnet_tx_fee: str
    create_blockchain_tx_fee: str
    add_primary_network_validator_fee: str
    add_primary_network_delegator_fee: str
    add_subnet_validator_fee: str
    add_subnet_delegator_fee: str


class Uptime(Result, frozen=True):
    rewarding_stake_percentage: str
    weighted_average_percentage: str


class Acps(Result, frozen=True):
    acps: dict[str, Any]


class Upgrades(Result, frozen=True):
    """When each network upgrade takes effect; the order is the node's."""

    apricot_phase1_time: str
    apricot_phase2_time: str
    apricot_phase3_time: str
    apricot_phase4_time: str
    apricot_phase4_min_p_chain_height: int
    apricot_phase5_time: str
    apricot_phase_pre6_time: str
    apricot_phase6_time: str
    apricot_phase_post6_time: str
    banff_time: str
    cortina_time: str
    cortina_x_chain_stop_vertex_id: str
    durango_time: str
    etna_time: str
    fortuna_time: str
    granite_time: str
    granite_epoch_duration: int
    helicon_time: str
