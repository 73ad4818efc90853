"""Settings as written -> one frozen Config: the command line, then ICEFALL_*, then icefall.toml, then the default."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

import msgspec

from icefall.config.file import (
    ENTRY_KEYS,
    Entry,
    File,
    file_settings,
    find_file,
    origins_of,
    read_entries,
    values_of,
)
from icefall.config.kinds import Flag, written
from icefall.config.settings import CHAIN_KEYS, SETTINGS, SHUTDOWN_MAX_NS, Setting
from icefall.config.values import DEFAULT, ConfigError, GivenValue, ValueSource, bare, nearest, read

VARIABLE_PREFIX = "ICEFALL_"
RESERVED_PREFIXES = ("ICEFALL_TEST_", "ICEFALL_FUZZ_", "ICEFALL_BENCH_")  # for our own tools, never settings

Nanoseconds: TypeAlias = int
Dialect: TypeAlias = Literal["interface", "live"]
LogLevel: TypeAlias = Literal["verbo", "debug", "trace", "info", "warn", "error", "fatal", "off"]
RateLimits: TypeAlias = Literal["auto", "on", "off"]
LogFormat: TypeAlias = Literal["auto", "plain", "json"]


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
    prices: str  # a path or a URL
    prices_interval: Nanoseconds
    reputation: str


class AssetChainConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Another instance of the asset chain: one `[[asset_chain]]` of the config file."""

    id: str
    genesis: str
    aliases: tuple[str, ...]


class TierConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A budget of its own making: one `[[tier]]` of the config file."""

    name: str
    per_minute: int
    per_day: int


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
    block_time: Nanoseconds
    block_txs_max: int
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
    api_keys_required: bool
    rate_limits: RateLimits
    trusted_proxies: tuple[str, ...]
    nft_metadata: bool
    nft_metadata_networks: tuple[str, ...]
    ipfs_gateway: str
    method_signatures: str
    verify_roots: bool
    first_block: int | None
    last_block: int | None
    verify: bool
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
    tier: tuple[TierConfig, ...] = ()


@dataclass(frozen=True)
class Loaded:
    """`origins` says where each value came from, by setting name, and for tables by `chain[1].rpc`."""

    config: Config
    origins: dict[str, str]


def load(verb: str, argv: Sequence[str], environ: Mapping[str, str], cwd: Path) -> Loaded:
    """The settings of one run of `icefall <verb>`; ConfigError for anything that is not right."""
    here = ValueSource(cwd, environ)
    said = _variables(here) | _arguments(verb, argv, here)
    file = find_file(said, here)
    entries: dict[str, list[Entry]] = {}
    if file is not None:
        entries = {name: read_entries(name, rows, file) for name, rows in ENTRY_KEYS.items()}
        said = file_settings(file) | said | {"config-file": GivenValue(str(file.path), file.found_by)}
    for row in SETTINGS:
        if row.name not in said or verb not in row.verbs:
            said[row.name] = read(row, row.default_for(verb), here, DEFAULT)
    values = {row.attribute: said[row.name].value for row in SETTINGS}
    for row in SETTINGS:
        if row.blank and not values[row.attribute]:
            values[row.attribute] = _filled(row.blank, values)
    config = msgspec.convert(
        values | {name: [values_of(one) for one in many] for name, many in entries.items()}, Config
    )
    for check in CHECKS:
        check(verb, config)
    origins = {row.name: said[row.name].origin for row in SETTINGS}
    for name, many in entries.items():
        for number, entry in enumerate(many, 1):
            origins |= origins_of(f"{name}[{number}]", entry)
    return Loaded(config, origins)


def with_chains(config: Config, tables: Sequence[Mapping[str, Any]], label: str) -> Config:
    """Further chains, behind those of the config file and as if they stood there; one whose ID is taken is left out."""
    taken = {chain.id for chain in config.chain}
    wanted: list[Any] = [dict(table) for table in tables if table["id"] not in taken]
    file = File(Path(), label, label, {"chain": wanted}, ValueSource(Path(), {}, label))
    added = [msgspec.convert(values_of(entry), ChainConfig) for entry in read_entries("chain", CHAIN_KEYS, file)]
    return msgspec.structs.replace(config, chain=(*config.chain, *added))


def _filled(blank: str, values: Mapping[str, Any]) -> str:
    return re.sub(r"\{([a-z-]+)\}", lambda name: str(values[name[1].replace("-", "_")]), blank)


# -- command line and environment --------------------------------------------------------------------------------

_BY_NAME = {row.name: row for row in SETTINGS}
_BY_VARIABLE = {row.variable: row for row in SETTINGS}


def _arguments(verb: str, argv: Sequence[str], place: ValueSource) -> dict[str, GivenValue]:
    said = {}
    for row, flag, text in _pairs(verb, argv):
        if verb not in row.verbs:
            raise ConfigError(f"{flag} is a setting of icefall {row.verbs[0]}, not of icefall {verb}")
        said[row.name] = read(row, text, place, flag)
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


def _variables(place: ValueSource) -> dict[str, GivenValue]:
    said = {}
    for name, text in sorted(place.environ.items()):
        if not name.startswith(VARIABLE_PREFIX) or name.startswith(RESERVED_PREFIXES):
            continue
        if name not in _BY_VARIABLE:
            raise ConfigError(f"unknown setting {bare(name)}; {nearest(name, _BY_VARIABLE)}")
        row = _BY_VARIABLE[name]
        said[row.name] = read(row, text, place, name)
    return said


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
