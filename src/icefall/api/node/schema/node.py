"""Parameters and results of the info, admin, health, index and platform interfaces, as the existing node has them."""

from typing import Annotated, Any

import msgspec

from icefall.api.http.rpc_params import NO_ID, Encoding, Id, Level, NodeIds, String, Strings, Uint64
from icefall.api.http.structs import Params, Result


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
    """The time when each network upgrade takes effect; the order is the node's."""

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


class AliasEndpointParams(Params, frozen=True):
    endpoint: String = ""
    alias: String = ""


class AliasChainParams(Params, frozen=True):
    chain: String = ""
    alias: String = ""


class ChainAliasesParams(Params, frozen=True):
    chain: String = ""


class LoggerParams(Params, frozen=True):
    logger_name: String = ""


class SetLevelParams(Params, frozen=True):
    logger_name: String = ""
    log_level: Level = ""
    display_level: Level = ""


class ChainAliases(Result, frozen=True):
    aliases: list[str] | None


class LoggerLevel(Result, frozen=True):
    log_level: str
    display_level: str


class LoggerLevels(Result, frozen=True):
    logger_levels: dict[str, LoggerLevel]


class LoadedVms(Result, frozen=True):
    new_vms: dict[str, list[str]]
    failed_vms: dict[str, str] | msgspec.UnsetType = msgspec.UNSET


class TagsParams(Params, frozen=True):
    tags: Strings = []


class TagQuery(msgspec.Struct, frozen=True):
    tag: Strings = []


# A check response is stored as it is sent, so this only describes it.
_TIME = {"type": "string", "format": "date-time"}
_CHECK = {
    "type": "object",
    "required": ["timestamp", "duration"],
    "properties": {
        "message": {"description": "additional context"},
        "error": {"description": "why the check failed"},
        "timestamp": _TIME | {"description": "time of the last run"},
        "duration": {"type": "integer", "description": "nanoseconds the last run took"},
        "contiguousFailures": {"type": "integer"},
        "timeOfFirstFailure": _TIME,
    },
}


class HealthReport(Result, frozen=True):
    checks: dict[str, Annotated[msgspec.Raw, msgspec.Meta(extra_json_schema=_CHECK)]]
    healthy: bool


class ContainerByIdParams(Params, frozen=True):
    id: Id = NO_ID
    encoding: Encoding = "hex"


class ContainerByIndexParams(Params, frozen=True):
    index: Uint64 = 0
    encoding: Encoding = "hex"


class ContainerRangeParams(Params, frozen=True):
    start_index: Uint64 = 0
    num_to_fetch: Uint64 = 0
    encoding: Encoding = "hex"


class ContainerIdParams(Params, frozen=True):
    """The ID of a container. `encoding` is checked and changes nothing."""

    id: Id = NO_ID
    encoding: Encoding = "hex"


class EncodingParams(Params, frozen=True):
    encoding: Encoding = "hex"


class IndexContainer(Result, frozen=True):
    id: str
    bytes: str
    timestamp: str
    encoding: str
    index: str


class Containers(Result, frozen=True):
    containers: list[IndexContainer]


class IndexNumber(Result, frozen=True):
    index: str


class IsAccepted(Result, frozen=True):
    is_accepted: bool


class FeeConfig(Result, frozen=True):
    weights: list[int]
    max_capacity: int
    max_per_second: int
    target_per_second: int
    min_price: int
    excess_conversion_constant: int
