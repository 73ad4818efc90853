"""SETTINGS: every setting as a row. Loading, help, `icefall config` and docs/settings.md all read these rows.

A row's default is the text a user would write, and takes the same road as one.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from icefall.config.kinds import (
    UINT32_MAX,
    UINT64_MAX,
    ChainNumber,
    Choice,
    Duration,
    FileOrUrl,
    FilePath,
    Flag,
    Id,
    IpNetwork,
    MaybeWhole,
    NetworkIdKind,
    SettingKind,
    Several,
    Text,
    Url,
    Whole,
)
from icefall.wire.text.duration import SECOND_NS

VERBS = ("up", "node", "data", "metrics", "index", "keys", "config")
LOG_LEVELS = ("verbo", "debug", "trace", "info", "warn", "error", "fatal", "off")
SHUTDOWN_MAX_NS = 9 * SECOND_NS  # a stopped process must be gone within 10 s


@dataclass(frozen=True)
class Setting:
    """`default` None: must be given. `defaults`: where a verb, or an EVM chain by ID, has another. `blank`: what an
    empty value stands for, with other settings in braces. `called`: its name in the Config where that is another."""

    name: str
    kind: SettingKind
    default: str | None
    says: str
    verbs: tuple[str, ...] = VERBS
    defaults: Mapping[str, str] = field(default_factory=dict)
    blank: str = ""
    called: str = ""

    @property
    def attribute(self) -> str:
        return self.called or self.name.replace("-", "_")

    @property
    def flag(self) -> str:
        return f"--{self.name}"

    @property
    def variable(self) -> str:
        return f"ICEFALL_{self.name.replace('-', '_').upper()}"

    def default_for(self, whom: str) -> str | None:
        return self.defaults.get(whom, self.default)


@dataclass(frozen=True)
class Table(SettingKind):
    """A table inside a table of the config file; read by config_file.py."""

    rows: tuple[Setting, ...]
    shape: str = "a table"

    def parse(self, text: str) -> Any:
        raise ValueError


UP_ONLY = ("up", "config")
INDEX_ONLY = ("index", "config")
AVAX_CHAINS = ("43112", "43113", "43114")

FLAG, PORT, FILE, PATH, PERCENT = Flag(), Whole(0, 65535), FilePath(), FilePath(or_empty=False), Whole(0, 50)
BLOCK_MAX = 2**39 - 1  # positions inside a chain are block and place in one integer
COUNT, BLOCKS, AMOUNT = Whole(0, UINT32_MAX), Whole(0, BLOCK_MAX), Whole(0, UINT64_MAX)
POSITIVE = Duration(low_ns=1, shape="a Go duration above zero, such as 30s")
SHUTDOWN = Duration(high_ns=SHUTDOWN_MAX_NS, shape="a Go duration from 0s to 9s")
LEVEL, LEVEL_OR_SAME = Choice(LOG_LEVELS), Choice(LOG_LEVELS, or_empty=True)
HOST = Text("a host name or an IP address", r"[0-9A-Za-z._:%-]*")
WORD = Text("a word", r"[^\x00-\x20\x7f,]+")
HOSTS, ORIGINS, NAMES = Several(WORD, "host names"), Several(WORD, "origins"), Several(WORD, "a list of words")
FEATURES = Several(Text("a feature", "nftIndexing|webhooks|teleporter"), "a list of nftIndexing, webhooks, teleporter")
NETWORKS = Several(IpNetwork(), "IP addresses or networks such as 10.0.0.0/8")
URL, URLS = Url(or_empty=True), Several(Url(), "http or https URLs")
ADDRESS = Text("an address: 0x and 40 hex digits", r"(0x[0-9a-fA-F]{40})?")

GROUPS: dict[str, tuple[Setting, ...]] = {
    "Paths": (
        Setting("config-file", FILE, "", "Settings file; icefall.toml here, then in the data directory."),
        Setting("data-dir", PATH, "~/.icefall", "Where everything is stored."),
        Setting("log-dir", FILE, "", "Where log files go.", blank="{data-dir}/logs"),
        Setting("profile-dir", FILE, "", "Where profiles are written.", blank="{data-dir}/profiles"),
        Setting("plugin-dir", FILE, "", "Where admin.loadVMs looks for plugins.", blank="{data-dir}/plugins"),
    ),
    "IpNetwork": (
        Setting("network-id", NetworkIdKind(), "local", "IpNetwork to run or to follow."),
        Setting("genesis-file", FILE, "", "Genesis of a network that Icefall does not ship."),
        Setting("upstream", URLS, "", "Nodes to follow; none runs a network of its own."),
        Setting("tx-fee", AMOUNT, "1000000", "Fee of a transaction, in nAVAX."),
        Setting("create-asset-tx-fee", AMOUNT, "1000000", "Fee of creating an asset, in nAVAX."),
        Setting("block-time", Duration(), "0s", "Least time between two blocks of a local network."),
        Setting("block-txs-max", COUNT, "0", "Most transactions in a block of a local network; 0 takes all that fit."),
        Setting(
            "demo",
            FLAG,
            "false",
            "Show recorded chains too; --no-demo is an empty start.",
            UP_ONLY,
            {"up": "true", "config": "true"},
        ),
    ),
    "Listening": (
        Setting("http-host", HOST, "127.0.0.1", "Address to listen on; empty for all."),
        Setting("http-port", PORT, "9650", "Port of the node-local interfaces; 0 takes a free one."),
        Setting("data-port", PORT, "9652", "Port of the chain data interface; 0 takes a free one."),
        Setting("metrics-port", PORT, "9653", "Port of the metrics interface; 0 takes a free one."),
        Setting("http-workers", Whole(1, 64), "1", "Worker processes behind each port."),
        Setting("http-allowed-hosts", HOSTS, "localhost", "Host headers served; * for all."),
        Setting("http-allowed-origins", ORIGINS, "*", "Browser origins served; * matches any text."),
        Setting("http-read-timeout", Duration(), "30s", "Time a client has to send a request."),
        Setting("http-idle-timeout", Duration(), "120s", "Time an idle connection is kept."),
        Setting("http-shutdown-wait", SHUTDOWN, "0s", "Time to go on serving after the stop signal."),
        Setting("http-shutdown-timeout", SHUTDOWN, "5s", "Time that open requests have to end."),
    ),
    "Interfaces": (
        Setting("dialect", Choice(("interface", "live")), "interface", "Answer by the book, or as deployed nodes do."),
        Setting("api-admin-enabled", FLAG, "false", "Serve the admin interface."),
        Setting("api-info-enabled", FLAG, "true", "Serve the info interface."),
        Setting("api-health-enabled", FLAG, "true", "Serve the health interface."),
        Setting("api-metrics-enabled", FLAG, "true", "Serve the node's own metrics."),
        Setting("index-enabled", FLAG, "false", "Keep and serve the container index.", defaults={"up": "true"}),
        Setting("index-allow-incomplete", FLAG, "false", "Start though the container index has gaps."),
    ),
    "Access": (
        Setting("api-keys-required", FLAG, "false", "Refuse calls to the chain data interface without an API key."),
        Setting(
            "rate-limits",
            Choice(("auto", "on", "off")),
            "auto",
            "Limit calls to the chain data and metrics interfaces; auto does where http-host is not loopback.",
        ),
        Setting("trusted-proxies", NETWORKS, "", "Proxies whose X-Forwarded-For names the caller."),
    ),
    "Tokens": (
        Setting("nft-metadata", FLAG, "true", "Fetch what NFTs point to; otherwise only what chains hold is read."),
        Setting("nft-metadata-networks", NETWORKS, "", "Networks that may be fetched from though they are not public."),
        Setting("ipfs-gateway", URL, "https://ipfs.io/ipfs/", "Where ipfs addresses are fetched; empty for nowhere."),
        Setting("method-signatures", FILE, "", "File of further method signatures (docs/lists.md)."),
    ),
    "Indexing": (
        Setting("verify-roots", FLAG, "true", "Prove transactions and receipts of EVM blocks by their roots."),
        Setting(
            "from",
            MaybeWhole(0, BLOCK_MAX),
            "",
            "First block; empty for start_block.",
            INDEX_ONLY,
            called="first_block",
        ),
        Setting(
            "to", MaybeWhole(0, BLOCK_MAX), "", "Last block; empty goes on for ever.", INDEX_ONLY, called="last_block"
        ),
        Setting("verify", FLAG, "false", "Compare what is stored with the upstream, and change nothing.", INDEX_ONLY),
    ),
    "Health": (
        Setting("health-check-frequency", POSITIVE, "30s", "Time between two rounds of health checks."),
        Setting("health-check-timeout", POSITIVE, "10s", "Time a health check has to answer."),
        Setting("system-tracker-disk-warning-available-space-percentage", PERCENT, "10", "Free disk to warn at."),
        Setting("system-tracker-disk-required-available-space-percentage", PERCENT, "3", "Free disk that is needed."),
        Setting("network-health-min-conn-peers", COUNT, "1", "Fewer peers than this is unhealthy."),
        Setting("router-health-max-outstanding-requests", COUNT, "1024", "More open requests is unhealthy."),
    ),
    "Logs": (
        Setting("log-level", LEVEL, "info", "Lowest level written to log files."),
        Setting("log-display-level", LEVEL_OR_SAME, "", "Lowest level shown on the terminal.", blank="{log-level}"),
        Setting("log-format", Choice(("auto", "plain", "json")), "auto", "How log lines are shown."),
    ),
}
SETTINGS: tuple[Setting, ...] = tuple(row for rows in GROUPS.values() for row in rows)

TOKEN_KEYS: tuple[Setting, ...] = (
    Setting("name", Text(), "Native token", "Its name.", defaults=dict.fromkeys(AVAX_CHAINS, "AVAX")),
    Setting("symbol", Text(), "NATIVE", "Its symbol.", defaults=dict.fromkeys(AVAX_CHAINS, "AVAX")),
    Setting("decimals", Whole(0, 255), "18", "Its decimal places."),
    Setting("logo_uri", Text(), "", "Address of its logo."),
    Setting("description", Text(), "", "A sentence about it."),
)

CHAIN_KEYS: tuple[Setting, ...] = (
    Setting("id", ChainNumber(), None, "EVM chain ID."),
    Setting("rpc", Several(Url(), "one or more http or https URLs", least=1), None, "Nodes to read the chain from."),
    Setting("name", Text(), "", "Name shown to users."),
    Setting("aliases", NAMES, "", "Other names the chain answers to."),
    Setting("description", Text(), "", "A sentence about the chain."),
    Setting("blockchain_id", Id(or_empty=True), "", "Its ID on the network; empty asks the chain itself."),
    Setting("subnet_id", Id(or_empty=True), "", "The subnet it belongs to."),
    Setting("vm_id", Id(or_empty=True), "", "The virtual machine it runs."),
    Setting("token", Table(TOKEN_KEYS), "", "Its native token."),
    Setting("explorer_url", URL, "", "An explorer for it."),
    Setting("public_rpc_url", URL, "", "Node address that may be shown to users."),
    Setting("ws_url", Url(("ws", "wss"), or_empty=True), "", "WebSocket address that may be shown to users."),
    Setting("logo", Text(), "", "Address of its logo."),
    Setting("testnet", FLAG, "false", "Whether it is a test network."),
    Setting("private", FLAG, "false", "Whether it is private."),
    Setting("features", FEATURES, "", "Features it is listed with."),
    Setting("multicall", ADDRESS, "", "Its multicall contract."),
    Setting("teleporter", ADDRESS, "", "Its teleporter messenger contract."),
    Setting("start_block", BLOCKS, "0", "First block to index."),
    Setting("cumulative_tx_offset", BLOCKS, "0", "Transactions before start_block."),
    Setting("confirmations", COUNT, "0", "Blocks to stay behind the tip."),
    Setting("prices", FileOrUrl(), "", "Token prices: a file, or where to fetch the same (docs/lists.md)."),
    Setting("prices_interval", POSITIVE, "5m", "Time between two looks at prices that are fetched."),
    Setting("reputation", FILE, "", "File of token reputations (docs/lists.md)."),
)

ASSET_CHAIN_KEYS: tuple[Setting, ...] = (
    Setting("id", Id(), None, "The chain's ID."),
    Setting("genesis", PATH, None, "File of the chain's genesis."),
    Setting("aliases", NAMES, "", "Other names the chain answers to."),
)

TIER_KEYS: tuple[Setting, ...] = (
    Setting("name", Text("a word of letters, digits, - and _", r"[a-z0-9_-]{1,32}"), None, "The tier's name."),
    Setting("per_minute", Whole(1, 2**63 - 1), None, "Compute units in a minute of UTC."),
    Setting("per_day", Whole(1, 2**63 - 1), None, "Compute units in a day of UTC."),
)
