"""Every setting, declared once: a field of Config, annotated with its type, its default and its help.

Loading, --help, `icefall config` and docs/settings.md read these annotations, through GROUPS, SETTINGS and TABLES. A
default is the text a user would write, and is read the same way.
"""

from collections.abc import Mapping
from typing import Annotated, Literal, TypeAlias

import msgspec

from icefall.config import types
from icefall.config.types import SettingType

ALL = "config"  # the verb that shows every setting
VERBS = (
    "up",
    "node",
    "data",
    "metrics",
    "index",
    "keys",
    "abi",
    "webhooks",
    "exports",
    "forget",
    "backup",
    "restore",
    "status",
    "migrate",
    "copy",
    "export",
    ALL,
)
UP_ONLY, INDEX_ONLY, EXPLORER_ONLY = ("up", ALL), ("index", ALL), ("up", "data", ALL)
SERVING = ("up", "node", "data", "metrics", ALL)
RUNNING = ("up", "node", "data", "metrics", "index", "webhooks", "exports", ALL)
OF_NODE, OF_DATA, OF_METRICS = ("up", "node", ALL), ("up", "data", ALL), ("up", "metrics", ALL)
OF_NETWORK = ("up", "node", "webhooks", ALL)  # what tells which network it is
OF_SERVICES, OF_INDEXER, OF_WRITERS = ("up", "data", "metrics", ALL), ("up", "index", ALL), ("up", "node", "index", ALL)
OF_REPLICAS = (*SERVING[:-1], "status", ALL)
# The verbs that use the settings of a group; a setting may name others. A verb refuses settings it does not use.
VERBS_OF_GROUP = {
    "Store": tuple(verb for verb in VERBS if verb != "copy"),
    "Network": OF_NODE,
    "Listening": SERVING,
    "Interfaces": OF_NODE,
    "Explorer": EXPLORER_ONLY,
    "Access": OF_SERVICES,
    "Webhooks": ("up", "data", "webhooks", ALL),
    "Exports": ("up", "data", "exports", ALL),
    "Tokens": OF_INDEXER,
    "Indexing": OF_INDEXER,
    "Health": OF_NODE,
    "Logs": RUNNING,
}
C_CHAINS = ("43112", "43113", "43114")  # of the local network, fuji and mainnet
MESSENGER = "0x253b2784c75e510dD0fF1da844684a1aC0aa5fcf"  # the same on every chain that has it
AVAX = dict.fromkeys(C_CHAINS, "AVAX")  # EVM chains whose native token is AVAX

NetworkName: TypeAlias = Literal["mainnet", "fuji", "testnet"]
DialectName: TypeAlias = Literal["interface", "live"]
RateLimits: TypeAlias = Literal["auto", "on", "off"]
LogLevel: TypeAlias = Literal["verbo", "debug", "trace", "info", "warn", "error", "fatal", "off"]
LogFormat: TypeAlias = Literal["auto", "plain", "json"]
TIER_NAME = types.matching("[a-z0-9_-]{1,32}", "a word of letters, digits, - and _")
FEATURES = types.several(
    types.matching("nftIndexing|webhooks|teleporter", "a feature"), "a list of nftIndexing, webhooks, teleporter"
)


class Setting(msgspec.Struct, frozen=True):
    """`default` None: must be given. `verbs` empty: those of the group. `defaults`: where a verb, or an EVM chain by
    ID, has another. `blank`: what an empty value stands for, with other settings in braces. `group`: the heading that
    starts here. `name`: if it is not the field's. `keys`: those of a table inside a table. `settings_of` adds what the
    field itself declares."""

    default: str | None
    help: str
    verbs: tuple[str, ...] = ()
    defaults: Mapping[str, str] = msgspec.field(default_factory=dict)
    blank: str = ""
    group: str = ""
    name: str = ""
    keys: tuple["Setting", ...] = ()
    attribute: str = ""
    value_type: SettingType = types.TEXT

    @property
    def flag(self) -> str:
        return f"--{self.name}"

    @property
    def variable(self) -> str:
        return f"ICEFALL_{self.name.replace('-', '_').upper()}"

    def default_for(self, verb_or_chain_id: str) -> str | None:
        return self.defaults.get(verb_or_chain_id, self.default)


def settings_of(struct: type[msgspec.Struct], separator: str = "_") -> tuple[Setting, ...]:
    """The settings that the fields of a struct declare."""
    settings, group = [], ""
    for attribute, hint in struct.__annotations__.items():
        if hasattr(hint, "__metadata__"):
            value_type, setting = hint.__metadata__
            name = setting.name or attribute.replace("_", separator)
            group = setting.group or group
            verbs = setting.verbs or VERBS_OF_GROUP.get(group, VERBS)
            settings.append(
                msgspec.structs.replace(setting, name=name, attribute=attribute, value_type=value_type, verbs=verbs)
            )
    return tuple(settings)


# fmt: off
class TokenConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The native token of an EVM chain."""

    name: Annotated[types.Text, Setting("Native token", "Its name.", defaults=AVAX)]
    symbol: Annotated[types.Text, Setting("NATIVE", "Its symbol.", defaults=AVAX)]
    decimals: Annotated[int, types.whole(0, 255), Setting("18", "Its decimal places.")]
    logo_uri: Annotated[types.Text, Setting("", "URL of its logo.")]
    description: Annotated[types.Text, Setting("", "A sentence about it.")]


class ChainConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An EVM chain to index: one `[[chain]]` of the config file."""

    id: Annotated[types.ChainId, Setting(None, "EVM chain ID.")]
    rpc: Annotated[types.RequiredUrls, Setting(None, "Nodes to read the chain from.")]
    name: Annotated[types.Text, Setting("", "Name shown to users.")]
    aliases: Annotated[types.Words, Setting("", "Other names the chain answers to.")]
    description: Annotated[types.Text, Setting("", "A sentence about the chain.")]
    blockchain_id: Annotated[types.Id, Setting(
        "", "Its ID on the network, where neither the chain itself nor a P-Chain that is stored here tells it.")]
    subnet_id: Annotated[types.Id, Setting("", "The subnet it belongs to.")]
    vm_id: Annotated[types.Id, Setting("", "The virtual machine it runs.")]
    token: Annotated[TokenConfig, types.TABLE, Setting("", "Its native token.", keys=settings_of(TokenConfig))]
    explorer_url: Annotated[types.Url, Setting("", "An explorer for it.")]
    public_rpc_url: Annotated[types.Url, Setting("", "Node URL that may be shown to users.")]
    ws_url: Annotated[types.WebSocketUrl, Setting("", "WebSocket URL that may be shown to users.")]
    logo: Annotated[types.Text, Setting("", "URL of its logo.")]
    testnet: Annotated[types.Flag, Setting("false", "Whether it is a test network.")]
    private: Annotated[types.Flag, Setting("false", "Whether it is private.")]
    features: Annotated[tuple[str, ...], FEATURES, Setting("", "Features it is listed with.")]
    multicall: Annotated[types.Address, Setting("", "Its multicall contract.")]
    teleporter: Annotated[types.Addresses, Setting(
        MESSENGER, "Its messenger contracts (ICM, Teleporter), whose messages are indexed; empty: none.")]
    start_block: Annotated[types.BlockNumber, Setting("0", "First block to index.")]
    cumulative_tx_offset: Annotated[types.BlockNumber, Setting("0", "Transactions before start_block.")]
    confirmations: Annotated[types.Count, Setting("0", "Blocks to stay behind the tip.")]
    final: Annotated[types.OptionalFlag, Setting(
        "", "Never roll blocks back; empty: if the headers are those of an Avalanche chain.",
        defaults=dict.fromkeys(C_CHAINS, "true"))]
    development: Annotated[types.Flag, Setting(
        "false", "Follow a lower head or a new genesis at once, as anvil and geth --dev have them.")]
    traces: Annotated[types.Flag, Setting(
        "true", "Index call traces and state diffs; false where the nodes have pruned the state that they need.")]
    verify_roots: Annotated[types.OptionalFlag, Setting("", "As --verify-roots, for this chain; empty for the same.")]
    store_logs: Annotated[types.Flag, Setting(
        "false", "Store all event logs; else those that are no transfers are read from a node when asked for.")]
    store_traces: Annotated[types.Flag, Setting(
        "false", "Store every call with its data; else call trees and revert data are read from a node.")]
    prices: Annotated[types.PathOrUrl, Setting("", "Token prices: a file, or a URL of the same (docs/lists.md).")]
    prices_interval: Annotated[types.PositiveDuration, Setting("5m", "Time between two fetches of prices.")]
    reputation: Annotated[types.Path, Setting("", "File of token reputations (docs/lists.md).")]
    token_list: Annotated[types.PathOrUrl, Setting(
        "", "Token list, for logos and missing names: a file, or a URL of the same (docs/lists.md).")]
    token_list_interval: Annotated[types.PositiveDuration, Setting("1h", "Time between two fetches of the token list.")]
    store: Annotated[types.StoreUrl, Setting("", "As --store, for this chain; empty for the same.")]
    store_file: Annotated[types.Path, Setting("", "As --store-file, for this chain.")]


class AssetChainConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Another instance of the asset chain: one `[[asset_chain]]` of the config file."""

    id: Annotated[types.RequiredId, Setting(None, "The chain's ID.")]
    genesis: Annotated[types.RequiredPath, Setting(None, "File of the chain's genesis.")]
    aliases: Annotated[types.Words, Setting("", "Other names the chain answers to.")]


class TierConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A budget that is new or changed: one `[[tier]]` of the config file."""

    name: Annotated[str, TIER_NAME, Setting(None, "The tier's name.")]
    per_minute: Annotated[types.ComputeUnits, Setting(None, "Compute units in a minute of UTC.")]
    per_day: Annotated[types.ComputeUnits, Setting(None, "Compute units in a day of UTC.")]


class Config(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Every setting, checked. Paths are absolute, durations nanoseconds, and `blank` values filled in."""

    config_file: Annotated[types.Path, Setting(
        "", "Settings file; icefall.toml here, then in the data directory.", group="Paths")]
    data_dir: Annotated[types.RequiredPath, Setting("~/.icefall", "Where everything is stored.")]
    log_dir: Annotated[types.Path, Setting("", "Where log files go.", (*RUNNING, "status"), blank="{data-dir}/logs")]
    profile_dir: Annotated[types.Path, Setting(
        "", "Where profiles are written.", OF_NODE, blank="{data-dir}/profiles")]
    plugin_dir: Annotated[types.Path, Setting(
        "", "Where admin.loadVMs looks for plugins.", OF_NODE, blank="{data-dir}/plugins")]

    store: Annotated[types.StoreUrl, Setting(
        "", "PostgreSQL server that stores everything; empty for files in the data directory.", group="Store")]
    store_file: Annotated[types.Path, Setting(
        "", "File that holds the URL for --store, so that its password is not on the command line.")]
    store_prefix: Annotated[types.StorePrefix, Setting(
        "icefall", "How the names of our schemas begin, so that several installations can share a server.", VERBS)]

    replica: Annotated[types.ReplicaUrls, Setting(
        "", "Standbys of the PostgreSQL server, from which chains are read, in this order; may be given several times.",
        OF_REPLICAS)]
    replica_lag_max: Annotated[types.ReplicaLag, Setting(
        "10s", "Age of a replica's rows above which the next replica is read instead, and then --store.", OF_REPLICAS)]

    network_id: Annotated[types.NetworkId, Setting(
        "local", "Network to run or to follow.", OF_NETWORK, group="Network")]
    network_name: Annotated[str, types.or_empty(types.choice(NetworkName)), Setting(
        "", "Name of this network at /v1/networks/, besides its own; empty: its own if it is one of them, else fuji.",
        ("up", "webhooks", ALL))]
    genesis_file: Annotated[types.Path, Setting("", "Genesis of a network that Icefall does not ship.", OF_NETWORK)]
    upstream: Annotated[types.Urls, Setting("", "Nodes to follow; none runs a network of its own.")]
    tx_fee: Annotated[types.Amount, Setting("1000000", "Fee of a transaction, in nAVAX.")]
    create_asset_tx_fee: Annotated[types.Amount, Setting("1000000", "Fee of creating an asset, in nAVAX.")]
    upgrade_file: Annotated[types.Path, Setting(
        "", "Fork times of a network that is neither mainnet nor fuji; empty: as its upstream says, else all at once.")]
    stake_min_consumption_rate: Annotated[types.Count, Setting(
        "100000", "Of what is left to mint, the part for the shortest stake over a minting period, in millionths.")]
    stake_max_consumption_rate: Annotated[types.Count, Setting(
        "120000", "The same for the longest stake.")]
    stake_minting_period: Annotated[types.PositiveDuration, Setting("8760h", "Minting period of rewards.")]
    stake_supply_cap: Annotated[types.Amount, Setting("720000000000000000", "Most nAVAX there can ever be.")]
    min_validator_stake: Annotated[types.Amount, Setting("2000000000000", "Least stake of a validator, in nAVAX.")]
    min_delegator_stake: Annotated[types.Amount, Setting("25000000000", "Least stake of a delegator, in nAVAX.")]
    block_time: Annotated[types.Duration, Setting("0s", "Minimum time between two blocks of a local network.")]
    block_txs_max: Annotated[types.Count, Setting(
        "0", "Maximum number of transactions in a block of a local network; 0: all that fit.")]
    demo: Annotated[types.Flag, Setting(
        "false", "Also index the recorded demo chains.", UP_ONLY, {"up": "true", "config": "true"})]

    http_host: Annotated[types.Host, Setting("127.0.0.1", "Address to listen on; empty for all.", group="Listening")]
    http_port: Annotated[types.Port, Setting("9650", "Port of the node-local interfaces; 0 takes a free one.", OF_NODE)]
    data_port: Annotated[types.Port, Setting("9652", "Port of the chain data interface; 0 takes a free one.", OF_DATA)]
    metrics_port: Annotated[types.Port, Setting(
        "9653", "Port of the metrics interface; 0 takes a free one.", OF_METRICS)]
    http_workers: Annotated[int, types.whole(1, 64), Setting("1", "Worker processes behind each port.")]
    http_allowed_hosts: Annotated[types.HostNames, Setting("localhost", "Host headers served; * for all.")]
    http_allowed_origins: Annotated[types.Origins, Setting(
        "*", "Browser origins served; * matches any text, but admin is served only to origins listed without *.")]
    http_read_timeout: Annotated[types.Duration, Setting("30s", "Time a client has to send a request.")]
    http_read_header_timeout: Annotated[types.Duration, Setting(
        "30s", "Time a client has to send the head of a request, from its connection or the first byte on.")]
    http_write_timeout: Annotated[types.Duration, Setting(
        "30s", "Time a client has to read an answer that does not fit into the system's buffers.")]
    http_idle_timeout: Annotated[types.Duration, Setting("120s", "Time an idle connection is kept.")]
    http_max_connections: Annotated[int, types.whole(16, 1 << 20), Setting(
        "10000", "Connections of a listener; beyond it the one idle for the longest is closed.")]
    http_max_buffered: Annotated[int, types.whole(1, 1 << 16), Setting(
        "64", "MiB that a listener may keep for its clients, such as requests and answers not yet read; then 503.")]
    http_shutdown_wait: Annotated[types.ShutdownTime, Setting("0s", "Time to go on serving after the stop signal.")]
    http_shutdown_timeout: Annotated[types.ShutdownTime, Setting("5s", "Time that open requests have to finish.")]

    dialect: Annotated[DialectName, types.choice(DialectName), Setting(
        "interface", "Answer as the interface is specified, or as deployed nodes do.", SERVING, group="Interfaces")]
    api_admin_enabled: Annotated[types.Flag, Setting("false", "Serve the admin interface.")]
    api_info_enabled: Annotated[types.Flag, Setting("true", "Serve the info interface.")]
    api_health_enabled: Annotated[types.Flag, Setting("true", "Serve the health interface.")]
    api_metrics_enabled: Annotated[types.Flag, Setting("true", "Serve counters for Prometheus.", SERVING)]
    index_enabled: Annotated[types.Flag, Setting(
        "false", "Keep and serve the container index.", defaults={"up": "true"})]
    index_allow_incomplete: Annotated[types.Flag, Setting("false", "Start even if the container index has gaps.")]

    explorer: Annotated[types.Flag, Setting(
        "true", "Serve the Explorer at / of the chain data port.", EXPLORER_ONLY,
        {"node": "false", "metrics": "false"}, group="Explorer")]
    node_url: Annotated[types.PublicUrl, Setting(
        "", "Where browsers find the node-local interfaces; empty for the port of this program, if it serves them.",
        EXPLORER_ONLY)]
    metrics_url: Annotated[types.PublicUrl, Setting(
        "", "Where browsers find the metrics interface; empty for the port of this program, if it serves it.",
        EXPLORER_ONLY)]

    api_keys_required: Annotated[types.Flag, Setting(
        "false", "Refuse calls to the chain data interface without an API key.", OF_DATA, group="Access")]
    rate_limits: Annotated[RateLimits, types.choice(RateLimits), Setting(
        "auto", "Limit calls to the chain data and metrics interfaces; auto does where http-host is not loopback.")]
    trusted_proxies: Annotated[types.IpNetworks, Setting("", "Proxies whose X-Forwarded-For names the caller.")]

    webhook_networks: Annotated[types.IpNetworks, Setting(
        "", "Networks that are not public, or plain http, that messages of webhooks may be sent to.",
        group="Webhooks")]
    webhook_key_file: Annotated[types.Path, Setting(
        "", "File of the key that secrets of webhooks are encrypted with; machines that share a server need the same.",
        blank="{data-dir}/webhook.key")]

    export_dir: Annotated[types.Path, Setting(
        "", "Where files of exports are; machines that serve or write exports of one server share it.",
        group="Exports", blank="{data-dir}/exports")]
    export_expiry: Annotated[types.PositiveDuration, Setting("24h", "Time that the files of an export can be read.")]
    export_rows_max: Annotated[int, types.whole(1, 1 << 31), Setting("1000000", "Rows of one export.")]
    export_disk_max: Annotated[int, types.whole(1, 1 << 30), Setting("4096", "MiB of the files of all exports.")]
    data_url: Annotated[types.PublicUrl, Setting(
        "", "Where clients find the chain data interface, for links to files; empty for the Host of the request.",
        ("up", "data", ALL))]

    nft_metadata: Annotated[types.Flag, Setting(
        "true", "Fetch NFT metadata by URL; otherwise only what chains hold is read.", group="Tokens")]
    nft_metadata_networks: Annotated[types.IpNetworks, Setting(
        "", "Networks that are not public but may be fetched from.", ("up", "index", "data", ALL))]
    picture_cache: Annotated[int, types.whole(0, 1 << 20), Setting(
        "256", "MiB on disk of pictures of NFTs and tokens that are fetched for all readers of the Explorer; 0 fetches "
        "none.", EXPLORER_ONLY)]
    ipfs_gateway: Annotated[types.Url, Setting(
        "https://ipfs.io/ipfs/", "Where ipfs:// URLs are fetched; empty fetches none.", ("up", "index", "data", ALL))]
    abi_dir: Annotated[types.Path, Setting(
        "", "Folder of ABI files, CHAIN/ADDRESS.json, by which calls, logs and errors are decoded; read at the start.",
        OF_DATA)]
    method_signatures: Annotated[types.Path, Setting(
        "", "File of further method signatures (docs/lists.md).", ("up", "data", "exports", ALL))]
    labels: Annotated[types.Path, Setting(
        "", "File of names that the Explorer shows for addresses (docs/lists.md).", ("up", "data", ALL))]

    verify_roots: Annotated[types.Flag, Setting(
        "true", "Verify transactions and receipts of EVM blocks against their roots.", group="Indexing")]
    decoders: Annotated[int, types.whole(0, 64), Setting(
        "0", "Processes that decode and verify EVM blocks; 0 for one less than there are cores, at most 4.")]
    poll_interval: Annotated[types.PollInterval, Setting(
        "1s", "Time between two questions for the newest block, while an EVM chain is synced.")]
    page_cache: Annotated[int, types.whole(8, 1 << 20), Setting(
        "64", "Megabytes of each EVM chain's SQLite store that its indexer keeps in memory.")]
    audit_interval: Annotated[types.Count, Setting(
        "5000", "Blocks between two audits of a token that nothing touches, and between two readings of its name.")]
    reorg_depth_max: Annotated[types.Count, Setting(
        "128", "Blocks of an EVM chain that may be rolled back without being asked.")]
    accept_reorg: Annotated[types.OptionalChain, Setting(
        "", "ID of a chain: roll it back to what its upstreams have, however far, and end.", INDEX_ONLY)]
    refold: Annotated[types.OptionalChain, Setting(
        "", "ID of a chain: make balances exact that are older than the layout of their token, and end.", INDEX_ONLY)]
    first_block: Annotated[types.OptionalBlock, Setting(
        "", "First block; empty for start_block.", INDEX_ONLY, name="from")]
    last_block: Annotated[types.OptionalBlock, Setting("", "Last block; empty never ends.", INDEX_ONLY, name="to")]
    verify: Annotated[types.Flag, Setting(
        "false", "Compare stored blocks, and a sample of balances, owners and names, with the upstream.", INDEX_ONLY)]
    verify_all: Annotated[types.Flag, Setting(
        "false", "The same, with every balance, owner and name.", INDEX_ONLY)]

    health_check_frequency: Annotated[types.PositiveDuration, Setting(
        "30s", "Time between two rounds of health checks.", group="Health")]
    health_check_timeout: Annotated[types.PositiveDuration, Setting("10s", "Time a health check has to answer.")]
    system_tracker_disk_warning_available_space_percentage: Annotated[types.Percent, Setting(
        "10", "Free disk space below which to warn.", OF_WRITERS)]
    system_tracker_disk_required_available_space_percentage: Annotated[types.Percent, Setting(
        "3", "Free disk space that is required.", OF_WRITERS)]
    network_health_min_conn_peers: Annotated[types.Count, Setting("1", "Fewer peers than this is unhealthy.")]
    router_health_max_outstanding_requests: Annotated[types.Count, Setting(
        "1024", "More open requests than this is unhealthy.")]

    log_level: Annotated[LogLevel, types.choice(LogLevel), Setting(
        "info", "Lowest level written to log files.", group="Logs")]
    log_display_level: Annotated[LogLevel, types.or_empty(types.choice(LogLevel)), Setting(
        "", "Lowest level shown on the terminal.", blank="{log-level}")]
    log_format: Annotated[LogFormat, types.choice(LogFormat), Setting("auto", "How log lines are shown.")]
    log_rotater_max_size: Annotated[int, types.whole(1, 1 << 20), Setting(
        "8", "Size in MiB above which a log file is rotated.")]
    log_rotater_max_files: Annotated[types.Count, Setting(
        "7", "Rotated log files to keep, of each logger; 0 keeps all.")]

    chain: tuple[ChainConfig, ...] = ()
    asset_chain: tuple[AssetChainConfig, ...] = ()
    tier: tuple[TierConfig, ...] = ()
# fmt: on


SETTINGS = settings_of(Config, "-")
BY_NAME = {setting.name: setting for setting in SETTINGS}
TABLES = {
    "chain": settings_of(ChainConfig),
    "asset_chain": settings_of(AssetChainConfig),
    "tier": settings_of(TierConfig),
}
GROUPS: dict[str, list[Setting]] = {}
for _setting in SETTINGS:
    GROUPS.setdefault(_setting.group or list(GROUPS)[-1], []).append(_setting)
