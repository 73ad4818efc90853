"""SETTINGS: every setting as a row. Loading, help, `icefall config` and docs/settings.md all read these rows.

A row's default is the text a user would write, and takes the same road as one.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar
from urllib.parse import urlsplit

from icefall.wire.duration import SECOND_NS, format_duration, parse_duration
from icefall.wire.goquote import quote
from icefall.wire.ids import id_from_text
from icefall.wire.networks import network_id_from_text, network_name

VERBS = ("up", "node", "data", "metrics", "index", "keys", "config")
LOG_LEVELS = ("verbo", "debug", "trace", "info", "warn", "error", "fatal", "off")
UINT32_MAX, UINT64_MAX = 2**32 - 1, 2**64 - 1
SHUTDOWN_MAX_NS = 9 * SECOND_NS  # a stopped process must be gone within 10 s


# -- kinds of value ----------------------------------------------------------------------------------------------


class Kind:
    """What a setting may hold. `parse` and `accept` raise ValueError, saying more only where `shape` is not enough."""

    @property
    def shape(self) -> str:
        raise NotImplementedError

    def parse(self, text: str) -> Any:
        raise NotImplementedError

    def accept(self, value: object) -> Any:
        """A value from TOML: the native type where there is one, else what the command line would take."""
        if not isinstance(value, str):
            raise ValueError
        return self.parse(value)

    def show(self, value: Any) -> str:
        return str(value)


@dataclass(frozen=True)
class Flag(Kind):
    shape: str = "true or false"

    _WORDS: ClassVar[Mapping[str, bool]] = dict.fromkeys(("1", "t", "T", "true", "True", "TRUE"), True) | dict.fromkeys(
        ("0", "f", "F", "false", "False", "FALSE"), False
    )

    def parse(self, text: str) -> bool:
        if text not in self._WORDS:
            raise ValueError
        return self._WORDS[text]

    def accept(self, value: object) -> bool:
        return value if isinstance(value, bool) else bool(super().accept(value))

    def show(self, value: Any) -> str:
        return "true" if value else "false"


@dataclass(frozen=True)
class Whole(Kind):
    low: int
    high: int

    @property
    def shape(self) -> str:
        return f"{self.low}..{self.high}"

    def parse(self, text: str) -> int:
        if not re.fullmatch(r"[0-9]{1,20}", text):
            raise ValueError
        return self.accept(int(text))

    def accept(self, value: object) -> int:
        if isinstance(value, str):
            return self.parse(value)
        if not isinstance(value, int) or isinstance(value, bool) or not self.low <= value <= self.high:
            raise ValueError
        return value


@dataclass(frozen=True)
class Duration(Kind):
    """Nanoseconds, written as Go writes them."""

    low_ns: int = 0
    high_ns: int = 2**63 - 1
    shape: str = "a Go duration such as 30s"

    def parse(self, text: str) -> int:
        ns = parse_duration(text)
        if not self.low_ns <= ns <= self.high_ns:
            raise ValueError
        return ns

    def show(self, value: Any) -> str:
        return format_duration(value)


@dataclass(frozen=True)
class Choice(Kind):
    words: tuple[str, ...]
    or_empty: bool = False

    @property
    def shape(self) -> str:
        return f"{', '.join(self.words[:-1])} or {self.words[-1]}"

    def parse(self, text: str) -> str:
        word = text.lower()
        if word not in self.words and not (self.or_empty and not word):
            raise ValueError
        return word


@dataclass(frozen=True)
class Text(Kind):
    shape: str = "text"
    pattern: str = r"[^\x00-\x1f\x7f]*"

    def parse(self, text: str) -> str:
        if not re.fullmatch(self.pattern, text):
            raise ValueError
        return text


@dataclass(frozen=True)
class FilePath(Kind):
    """A path; whoever loads it expands `~` and `$VAR` and makes it absolute."""

    or_empty: bool = True
    shape: str = "a path"

    def parse(self, text: str) -> str:
        if re.search(r"[\x00-\x1f\x7f]", text) or (not text and not self.or_empty):
            raise ValueError
        return text


@dataclass(frozen=True)
class Url(Kind):
    schemes: tuple[str, ...] = ("http", "https")
    or_empty: bool = False

    @property
    def shape(self) -> str:
        return f"a URL of scheme {' or '.join(self.schemes)}"

    def parse(self, text: str) -> str:
        if not text and self.or_empty:
            return text
        try:
            split = urlsplit(text)
            sound = split.scheme in self.schemes and split.hostname and split.port != 0
        except ValueError:  # its text may quote a password
            sound = False
        if not sound or re.search(r"[\x00-\x20\x7f]", text):
            raise ValueError
        return text

    def show(self, value: Any) -> str:
        return masked(value)


@dataclass(frozen=True)
class Several(Kind):
    """A list: comma separated text (spaces count as commas), or a TOML array."""

    item: Kind
    shape: str = "a list"
    least: int = 0

    def parse(self, text: str) -> tuple[Any, ...]:
        return self.accept([word for word in re.split(r"[,\s]+", text) if word])

    def accept(self, value: object) -> tuple[Any, ...]:
        if isinstance(value, str):
            return self.parse(value)
        if not isinstance(value, list) or len(value) < self.least:
            raise ValueError
        return tuple(self._item(item) for item in value)

    def _item(self, item: object) -> Any:
        try:
            return self.item.accept(item)
        except ValueError:
            raise ValueError(f"{written(item)} is not {self.item.shape}") from None

    def show(self, value: Any) -> str:
        return ",".join(self.item.show(item) for item in value)


@dataclass(frozen=True)
class NetworkId(Kind):
    shape: str = "mainnet, cascade, denali, everest, fuji, testnet, testing, local, network-<n> or 0..4294967295"

    def parse(self, text: str) -> int:
        try:
            return network_id_from_text(text)
        except ValueError:
            raise ValueError from None

    def accept(self, value: object) -> int:
        return Whole(0, UINT32_MAX).accept(value) if isinstance(value, int) else int(super().accept(value))

    def show(self, value: Any) -> str:
        return network_name(value)


@dataclass(frozen=True)
class Id(Kind):
    """A 32-byte ID in CB58, kept as its text."""

    or_empty: bool = False
    shape: str = "a 32-byte ID in CB58"

    def parse(self, text: str) -> str:
        if text or not self.or_empty:
            id_from_text(text)
        return text


@dataclass(frozen=True)
class ChainNumber(Kind):
    """An EVM chain ID: kept as text, because that is how every interface writes it."""

    shape: str = 'a chain ID such as "43112"'

    def parse(self, text: str) -> str:
        return str(Whole(1, UINT64_MAX).parse(text))

    def accept(self, value: object) -> str:
        return str(Whole(1, UINT64_MAX).accept(value))


@dataclass(frozen=True)
class Table(Kind):
    """A table inside a table of the config file; read by config.py."""

    rows: "tuple[Setting, ...]"
    shape: str = "a table"

    def parse(self, text: str) -> Any:
        raise ValueError


def masked(text: str) -> str:
    """The text with passwords inside URLs replaced by ***."""
    return re.sub(r"(://[^/?#\s:@]*:)[^/?#\s]*@", r"\1***@", text)


def written(value: object) -> str:
    """A refused value, short and on one line, for the message that refuses it."""
    match value:
        case str():
            return quote(masked(value) if len(value) <= 80 else masked(value)[:77] + "...")
        case bool():
            return "true" if value else "false"
        case int() if abs(value) > UINT64_MAX:  # Python refuses to print really long ones
            return "a number beyond 64 bits"
        case int() | float():
            return str(value)
        case list():
            return "a list"
        case dict():
            return "a table"
        case _:
            return "a date or time"


# -- rows --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Setting:
    """`default` None: must be given. `defaults`: where a verb, or an EVM chain by ID, has another. `blank`: what an
    empty value stands for, with other settings in braces."""

    name: str
    kind: Kind
    default: str | None
    says: str
    verbs: tuple[str, ...] = VERBS
    defaults: Mapping[str, str] = field(default_factory=dict)
    blank: str = ""

    @property
    def attribute(self) -> str:
        return self.name.replace("-", "_")

    @property
    def flag(self) -> str:
        return f"--{self.name}"

    @property
    def variable(self) -> str:
        return f"ICEFALL_{self.attribute.upper()}"

    def default_for(self, whom: str) -> str | None:
        return self.defaults.get(whom, self.default)


UP_ONLY = ("up", "config")
AVAX_CHAINS = ("43112", "43113", "43114")

FLAG, PORT, FILE, PATH, PERCENT = Flag(), Whole(0, 65535), FilePath(), FilePath(or_empty=False), Whole(0, 50)
COUNT, BLOCKS, AMOUNT = Whole(0, UINT32_MAX), Whole(0, 2**63 - 1), Whole(0, UINT64_MAX)
POSITIVE = Duration(low_ns=1, shape="a Go duration above zero, such as 30s")
SHUTDOWN = Duration(high_ns=SHUTDOWN_MAX_NS, shape="a Go duration from 0s to 9s")
LEVEL, LEVEL_OR_SAME = Choice(LOG_LEVELS), Choice(LOG_LEVELS, or_empty=True)
HOST = Text("a host name or an IP address", r"[0-9A-Za-z._:%-]*")
WORD = Text("a word", r"[^\x00-\x20\x7f,]+")
HOSTS, ORIGINS, NAMES = Several(WORD, "host names"), Several(WORD, "origins"), Several(WORD, "a list of words")
FEATURES = Several(Text("a feature", "nftIndexing|webhooks|teleporter"), "a list of nftIndexing, webhooks, teleporter")
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
    "Network": (
        Setting("network-id", NetworkId(), "local", "Network to run or to follow."),
        Setting("genesis-file", FILE, "", "Genesis of a network that Icefall does not ship."),
        Setting("upstream", URLS, "", "Nodes to follow; none runs a network of its own."),
        Setting("tx-fee", AMOUNT, "1000000", "Fee of a transaction, in nAVAX."),
        Setting("create-asset-tx-fee", AMOUNT, "1000000", "Fee of creating an asset, in nAVAX."),
        Setting(
            "demo",
            FLAG,
            "false",
            "Serve recorded demo chains too; --no-demo does not.",
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
        Setting("http-shutdown-timeout", SHUTDOWN, "8s", "Time that open requests have to end."),
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
    Setting("prices", FILE, "", "File of token prices."),
    Setting("reputation", FILE, "", "File of token reputations."),
)

ASSET_CHAIN_KEYS: tuple[Setting, ...] = (
    Setting("id", Id(), None, "The chain's ID."),
    Setting("genesis", PATH, None, "File of the chain's genesis."),
    Setting("aliases", NAMES, "", "Other names the chain answers to."),
)
