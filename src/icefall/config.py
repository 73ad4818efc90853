"""Settings as written -> one frozen Config: the command line, then ICEFALL_*, then icefall.toml, then the default."""

import difflib
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

import msgspec

from icefall.errors import StartRefused
from icefall.settings import (
    ASSET_CHAIN_KEYS,
    CHAIN_KEYS,
    SETTINGS,
    SHUTDOWN_MAX_NS,
    FilePath,
    Flag,
    Setting,
    Table,
    written,
)
from icefall.wire.goquote import quote

FILE_NAME = "icefall.toml"
VARIABLE_PREFIX = "ICEFALL_"
RESERVED_PREFIXES = ("ICEFALL_TEST_", "ICEFALL_FUZZ_", "ICEFALL_BENCH_")  # for our own tools, never settings
DEFAULT = "default"
PATH_SIZE_MAX = 4096

Nanoseconds: TypeAlias = int
Dialect: TypeAlias = Literal["interface", "live"]
LogLevel: TypeAlias = Literal["verbo", "debug", "trace", "info", "warn", "error", "fatal", "off"]
LogFormat: TypeAlias = Literal["auto", "plain", "json"]


class ConfigError(StartRefused):
    """A setting that is unknown, malformed or at odds with another. `str(error)` is one line for the terminal."""


class TokenConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    name: str
    symbol: str
    decimals: int
    logo_uri: str
    description: str


class ChainConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An EVM chain to index: one `[[chain]]` of the config file."""

    id: str
    rpc: tuple[str, ...]
    name: str
    aliases: tuple[str, ...]
    description: str
    blockchain_id: str
    subnet_id: str
    vm_id: str
    token: TokenConfig
    explorer_url: str
    public_rpc_url: str
    ws_url: str
    logo: str
    testnet: bool
    private: bool
    features: tuple[str, ...]
    multicall: str
    teleporter: str
    start_block: int
    cumulative_tx_offset: int
    confirmations: int
    prices: str
    reputation: str


class AssetChainConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Another instance of the asset chain: one `[[asset_chain]]` of the config file."""

    id: str
    genesis: str
    aliases: tuple[str, ...]


class Config(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Every setting, checked. Paths are absolute, durations nanoseconds, and nothing is left to be filled in."""

    config_file: str  # empty when there is none
    data_dir: str
    log_dir: str
    profile_dir: str
    plugin_dir: str
    network_id: int
    genesis_file: str
    upstream: tuple[str, ...]
    tx_fee: int
    create_asset_tx_fee: int
    demo: bool
    http_host: str
    http_port: int
    data_port: int
    metrics_port: int
    http_workers: int
    http_allowed_hosts: tuple[str, ...]
    http_allowed_origins: tuple[str, ...]
    http_read_timeout: Nanoseconds
    http_idle_timeout: Nanoseconds
    http_shutdown_wait: Nanoseconds
    http_shutdown_timeout: Nanoseconds
    dialect: Dialect
    api_admin_enabled: bool
    api_info_enabled: bool
    api_health_enabled: bool
    api_metrics_enabled: bool
    index_enabled: bool
    index_allow_incomplete: bool
    health_check_frequency: Nanoseconds
    health_check_timeout: Nanoseconds
    system_tracker_disk_warning_available_space_percentage: int
    system_tracker_disk_required_available_space_percentage: int
    network_health_min_conn_peers: int
    router_health_max_outstanding_requests: int
    log_level: LogLevel
    log_display_level: LogLevel
    log_format: LogFormat
    chain: tuple[ChainConfig, ...] = ()
    asset_chain: tuple[AssetChainConfig, ...] = ()


@dataclass(frozen=True)
class Loaded:
    """`origins` says where each value came from, by setting name, and for tables by `chain[1].rpc`."""

    config: Config
    origins: dict[str, str]


def load(verb: str, argv: Sequence[str], environ: Mapping[str, str], cwd: Path) -> Loaded:
    """The settings of one run of `icefall <verb>`; ConfigError for anything that is not right."""
    here = Place(cwd, environ)
    said = _variables(here) | _arguments(verb, argv, here)
    file = _find_file(said, here)
    entries: dict[str, list[Entry]] = {}
    if file is not None:
        entries = {name: _entries(name, rows, file) for name, rows in ENTRY_KEYS.items()}
        said = _file_settings(file) | said | {"config-file": Said(str(file.path), file.found_by)}
    for row in SETTINGS:
        if row.name not in said or verb not in row.verbs:
            said[row.name] = _read(row, row.default_for(verb), here, DEFAULT)
    values = {row.attribute: said[row.name].value for row in SETTINGS}
    for row in SETTINGS:
        if row.blank and not values[row.attribute]:
            values[row.attribute] = _filled(row.blank, values)
    config = msgspec.convert(values | {name: [_plain(one) for one in many] for name, many in entries.items()}, Config)
    for check in CHECKS:
        check(verb, config)
    origins = {row.name: said[row.name].origin for row in SETTINGS}
    for name, many in entries.items():
        for number, entry in enumerate(many, 1):
            origins |= _origins(f"{name}[{number}]", entry)
    return Loaded(config, origins)


# -- one value ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Place:
    """Where values were written: what a path is relative to, what `$VAR` means, and in which file, if in one."""

    base: Path
    environ: Mapping[str, str]
    file: str = ""


@dataclass(frozen=True)
class Said:
    value: Any
    origin: str


def _read(row: Setting, value: object, place: Place, origin: str, subject: str = "") -> Said:
    """The value of one row. `subject` is what a message calls it; without one, its flag and where the value is from."""
    try:
        parsed = row.kind.accept(_sound(value))
        if isinstance(row.kind, FilePath):
            parsed = _path(parsed, place)
    except ValueError as error:
        source = "" if subject or origin.startswith("--") else f" (from {origin})"
        reason = f": {error}" if str(error) else ""
        said = f"{subject or row.flag} must be {row.kind.shape}, got {written(value)}{source}{reason}"
        raise ConfigError(said) from None
    return Said(parsed, origin)


def _sound(value: object) -> object:
    """The value itself, unless it holds text that no file and no JSON could carry."""
    for text in value if isinstance(value, list) else [value]:
        if isinstance(text, str) and any("\ud800" <= char <= "\udfff" for char in text):
            raise ValueError("not valid UTF-8")
    return value


def _path(text: str, place: Place) -> str:
    if not text:
        return text
    if re.match(r"~[^/]", text):
        raise ValueError("~ stands for a home directory only in ~ and ~/")
    if text.startswith("~"):
        home = place.environ.get("HOME", "")
        if not home:
            raise ValueError("HOME is not set")
        text = home + text[1:]
    text = re.sub(r"\$(?:\{(\w+)\}|(\w+))", lambda found: _variable(found[1] or found[2], place), text)
    if "\0" in text:
        raise ValueError("no path holds a zero byte")
    return str(_sound(str(place.base / text)))


def _variable(name: str, place: Place) -> str:
    if name not in place.environ:
        raise ValueError(f"${name} is not set")
    return place.environ[name]


def _filled(blank: str, values: Mapping[str, Any]) -> str:
    return re.sub(r"\{([a-z-]+)\}", lambda name: str(values[name[1].replace("-", "_")]), blank)


def nearest(name: str, valid: Iterable[str]) -> str:
    """The end of a refusal: the valid name that is nearest, put as a question only when it is near."""
    choice = difflib.get_close_matches(name[:80], list(valid), n=1, cutoff=0.0)[0]
    close = difflib.SequenceMatcher(None, choice, name[:80]).ratio() >= 0.6
    return f"did you mean {choice}?" if close else f"the nearest is {choice}"


def bare(name: str, size_max: int = 80) -> str:
    """A name as it was written; cut where it is absurdly long, quoted where a terminal could not show it."""
    short = name if len(name) <= size_max else name[: size_max - 3] + "..."
    return short if short and short.isprintable() and " " not in short else quote(short)


# -- command line and environment --------------------------------------------------------------------------------

_BY_NAME = {row.name: row for row in SETTINGS}
_BY_VARIABLE = {row.variable: row for row in SETTINGS}


def _arguments(verb: str, argv: Sequence[str], place: Place) -> dict[str, Said]:
    said = {}
    for row, flag, text in _pairs(verb, argv):
        if verb not in row.verbs:
            raise ConfigError(f"{flag} is a setting of icefall {row.verbs[0]}, not of icefall {verb}")
        said[row.name] = _read(row, text, place, flag)
    return said


def _pairs(verb: str, argv: Sequence[str]) -> Iterator[tuple[Setting, str, str]]:
    """Row, flag as written and value of every argument."""
    words, last_flag = list(reversed(argv)), ""
    while words:
        word = words.pop()
        flag, equals, text = word.partition("=")
        row = _BY_NAME.get(flag[2:]) if flag.startswith("--") else None
        negated = _BY_NAME.get(flag[5:]) if flag.startswith("--no-") else None
        if row is not None and isinstance(row.kind, Flag):
            yield row, flag, text if equals else "true"
        elif row is not None:
            if not equals and (not words or words[-1].startswith("--")):
                raise ConfigError(f"{flag} needs a value: {row.kind.shape}")
            yield row, flag, text if equals else words.pop()
        elif negated is not None and isinstance(negated.kind, Flag):
            if equals:
                raise ConfigError(f"{flag} takes no value; write {negated.flag}=true or {negated.flag}=false")
            yield negated, flag, "false"
        elif word.startswith("-"):
            raise ConfigError(f"unknown setting {bare(flag)}; {nearest(flag, _flags(verb))}")
        else:
            hint = f"; write {last_flag}={word}" if last_flag and word in ("true", "false") else ""
            raise ConfigError(f"unexpected argument {written(word)}{hint}")
        last_flag = flag if row is not None and isinstance(row.kind, Flag) and not equals else ""


def _flags(verb: str) -> Iterator[str]:
    for row in SETTINGS:
        if verb in row.verbs:
            yield row.flag
            if isinstance(row.kind, Flag):
                yield f"--no-{row.name}"


def _variables(place: Place) -> dict[str, Said]:
    said = {}
    for name, text in sorted(place.environ.items()):
        if not name.startswith(VARIABLE_PREFIX) or name.startswith(RESERVED_PREFIXES):
            continue
        if name not in _BY_VARIABLE:
            raise ConfigError(f"unknown setting {bare(name)}; {nearest(name, _BY_VARIABLE)}")
        row = _BY_VARIABLE[name]
        said[row.name] = _read(row, text, place, name)
    return said


# -- the config file ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class File:
    """A config file that was read: `label` is what messages call it, `found_by` what led to it."""

    path: Path
    label: str
    found_by: str
    content: dict[str, Any]
    place: Place


Entry: TypeAlias = dict[str, "Said | Entry"]  # a table of the file, read
ENTRY_KEYS = {"chain": CHAIN_KEYS, "asset_chain": ASSET_CHAIN_KEYS}


def _find_file(said: Mapping[str, Said], place: Place) -> File | None:
    """The file that is named; else the first there is of the working directory's and the data directory's."""
    named, environ = said.get("config-file"), place.environ
    if named is not None and named.value:
        file = _parse_file(Path(named.value), named.value, named.origin, environ)
        if file is None:
            raise ConfigError(f"{named.origin} names {bare(named.value, PATH_SIZE_MAX)}, which does not exist")
        return file
    row = _BY_NAME["data-dir"]
    data_dir = Path((said.get(row.name) or _read(row, row.default, place, DEFAULT)).value)
    here = _parse_file(place.base / FILE_NAME, FILE_NAME, "working directory", environ)
    return here or _parse_file(data_dir / FILE_NAME, str(data_dir / FILE_NAME), "data directory", environ)


def _parse_file(path: Path, label: str, found_by: str, environ: Mapping[str, str]) -> File | None:
    shown_label = bare(label, PATH_SIZE_MAX)
    try:
        text = path.read_bytes().decode()
        return File(path, label, found_by, tomllib.loads(text), Place(path.parent, environ, label))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise ConfigError(f"cannot read {shown_label}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise ConfigError(f"{shown_label}: line {line} is not UTF-8") from None
    except RecursionError:
        raise ConfigError(f"{shown_label}: nested too deeply") from None
    except ValueError as error:
        reason = str(error).replace("end of document", f"line {text.count(chr(10)) + 1}, the end")
        raise ConfigError(f"{shown_label}: {reason}") from None


def _file_settings(file: File) -> dict[str, Said]:
    said = {}
    for name, value in file.content.items():
        if name in ENTRY_KEYS:
            continue
        if name not in _BY_NAME:
            raise ConfigError(
                f"unknown setting {bare(name)} in {file.label}; {nearest(name, [*_BY_NAME, *ENTRY_KEYS])}"
            )
        if name == "config-file":
            raise ConfigError(f"config-file in {file.label}: a config file cannot name another")
        said[name] = _read(_BY_NAME[name], value, file.place, file.label)
    return said


def _entries(name: str, rows: Sequence[Setting], file: File) -> list[Entry]:
    """Every `[[name]]` of the file."""
    tables = file.content.get(name, [])
    if not isinstance(tables, list):
        raise ConfigError(f"{file.label}: {name} must be a list of tables, each headed [[{name}]]")
    entries, ids = [], set()
    for number, table in enumerate(tables, 1):
        title = f"{file.label}: [[{name}]] {number}"
        entry = _entry(title, rows, table, file.place)
        entries.append(entry)
        ids.add(_plain(entry)["id"])
        if len(ids) < number:
            raise ConfigError(f"{title}: id {_plain(entry)['id']} is already taken by another [[{name}]]")
    return entries


def _entry(title: str, rows: Sequence[Setting], table: object, place: Place, chain_id: str = "") -> Entry:
    """One table of the file. `chain_id` picks the defaults of the tables inside a chain's."""
    if not isinstance(table, dict):
        raise ConfigError(f"{title} must be a table, got {written(table)}")
    names = [row.name for row in rows]
    for key in table:
        if key not in names:
            raise ConfigError(f"{title}: unknown key {bare(key)}; {nearest(key, names)}")
    entry: Entry = {}
    for row in rows:
        if isinstance(row.kind, Table):
            inner = table.get(row.name, {})
            entry[row.name] = _entry(f"{title}: {row.name}", row.kind.rows, inner, place, _plain(entry)["id"])
        elif row.name in table:
            entry[row.name] = _read(row, table[row.name], place, place.file, f"{title}: {row.name}")
        elif row.default is None:
            raise ConfigError(f"{title}: {row.name} is missing")
        else:
            entry[row.name] = _read(row, row.default_for(chain_id), place, DEFAULT)
    return entry


def _plain(entry: Entry) -> dict[str, Any]:
    return {key: one.value if isinstance(one, Said) else _plain(one) for key, one in entry.items()}


def _origins(title: str, entry: Entry) -> dict[str, str]:
    origins: dict[str, str] = {}
    for key, one in entry.items():
        origins |= {f"{title}.{key}": one.origin} if isinstance(one, Said) else _origins(f"{title}.{key}", one)
    return origins


# -- settings that must agree ------------------------------------------------------------------------------------


def _check_disk(_verb: str, config: Config) -> None:
    warning = config.system_tracker_disk_warning_available_space_percentage
    required = config.system_tracker_disk_required_available_space_percentage
    if required > warning:
        raise ConfigError(
            f"--system-tracker-disk-required-available-space-percentage ({required}) must not be greater than "
            f"--system-tracker-disk-warning-available-space-percentage ({warning})"
        )


def _check_shutdown(_verb: str, config: Config) -> None:
    if config.http_shutdown_wait + config.http_shutdown_timeout > SHUTDOWN_MAX_NS:
        raise ConfigError("--http-shutdown-wait and --http-shutdown-timeout must not exceed 9s together")


def _check_ports(verb: str, config: Config) -> None:
    ports = [port for port in (config.http_port, config.data_port, config.metrics_port) if port]
    if verb == "up" and len(set(ports)) < len(ports):
        raise ConfigError("--http-port, --data-port and --metrics-port must differ")


CHECKS = (_check_disk, _check_shutdown, _check_ports)
