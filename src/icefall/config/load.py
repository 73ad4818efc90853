"""Settings as written -> one frozen Config: the command line, then ICEFALL_*, then icefall.toml, then the default."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from icefall.config.file import PATH_SIZE_MAX, find_file, read_file, read_tables
from icefall.config.settings import ALL, BY_NAME, C_CHAINS, SETTINGS, TABLES, ChainConfig, Config
from icefall.config.types import FLAG, SHUTDOWN_MAX_NS, written
from icefall.config.values import DEFAULT, ConfigError, GivenValue, ValueSource, bare, nearest, read


class Loaded(msgspec.Struct, frozen=True):
    """`given` holds each value with its origin, by setting name, and by `chain[1].rpc` for tables."""

    config: Config
    given: dict[str, GivenValue]


def load(verb: str, argv: Sequence[str], environ: Mapping[str, str], cwd: Path) -> Loaded:
    """The settings of one run of `icefall <verb>`; ConfigError for anything that is not valid."""
    here = ValueSource(cwd, environ)
    written = read_variables(here) | read_arguments(verb, argv, here)
    file = find_file(written, here)
    tables: dict[str, list[dict[str, Any]]] = {}
    of_tables: dict[str, GivenValue] = {}
    if file is not None:
        tables = {name: read_tables(name, file.content.get(name, []), file.source, of_tables) for name in TABLES}
        found = GivenValue(BY_NAME["config-file"], str(file.path), file.found_by)
        written = read_file(file) | written | {"config-file": found}
    given: dict[str, GivenValue] = {}
    for setting in SETTINGS:
        one = written.get(setting.name) if verb in setting.verbs else None
        given[setting.name] = one or read(setting, setting.default_for(verb), here, DEFAULT)
    if verb in BY_NAME["store-file"].verbs:
        _read_store_files(given, tables.get("chain", []), of_tables)
    for name, one in given.items():
        if one.setting.blank and not one.value:
            filled = one.setting.blank.format_map({other: given[other].value for other in given})
            given[name] = msgspec.structs.replace(one, value=filled)
    config = msgspec.convert({one.setting.attribute: one.value for one in given.values()} | tables, Config)
    _check(verb, config)
    return Loaded(config, given | of_tables)


def _read_store_files(
    given: dict[str, GivenValue], chains: list[dict[str, Any]], of_tables: dict[str, GivenValue]
) -> None:
    """Put the URLs that --store-file, and `store_file` of chains, name into the settings of the stores."""
    given["store"] = _store_of("--store", given["store"], "--store-file", given["store-file"])
    for number, chain in enumerate(chains, 1):
        path, title = f"chain[{number}].store", f"chain {chain['id']}: store"
        of_tables[path] = _store_of(title, of_tables[path], "store_file", of_tables[f"{path}_file"])
        chain["store"] = of_tables[path].value


def _store_of(store_name: str, store: GivenValue, file_name: str, file: GivenValue) -> GivenValue:
    """The store itself, or what its file holds. Messages never quote that: it may be a password."""
    if not file.value:
        return store
    if store.value:
        raise ConfigError(f"{store_name} and {file_name} exclude each other")
    shown = bare(file.value, PATH_SIZE_MAX)
    try:
        text = Path(file.value).read_text("utf-8").strip()
    except OSError as error:
        raise ConfigError(f"{file_name} names {shown}, which cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        text = ""
    try:
        url = store.setting.value_type.accept(text or " ")
    except ValueError:
        raise ConfigError(f"{file_name} names {shown}, which does not hold {store.setting.value_type.shape}") from None
    return GivenValue(store.setting, url, shown)


def with_chains(config: Config, tables: Sequence[Mapping[str, Any]], label: str) -> Config:
    """Further chains, after those of the config file and read like them; one whose ID is taken is left out."""
    taken = {chain.id for chain in config.chain}
    wanted = [dict(table) for table in tables if table["id"] not in taken]
    added = msgspec.convert(read_tables("chain", wanted, ValueSource(Path(), {}, label), {}), list[ChainConfig])
    return msgspec.structs.replace(config, chain=(*config.chain, *added))


def _check(verb: str, config: Config) -> None:
    """Settings that must agree."""
    warning = config.system_tracker_disk_warning_available_space_percentage
    required = config.system_tracker_disk_required_available_space_percentage
    if required > warning:
        raise ConfigError(
            f"--system-tracker-disk-required-available-space-percentage ({required}) must not be greater than "
            f"--system-tracker-disk-warning-available-space-percentage ({warning})"
        )
    if config.http_shutdown_wait + config.http_shutdown_timeout > SHUTDOWN_MAX_NS:
        raise ConfigError("--http-shutdown-wait and --http-shutdown-timeout must not exceed 9s together")
    ports = [port for port in (config.http_port, config.data_port, config.metrics_port) if port]
    if verb == "up" and len(set(ports)) < len(ports):
        raise ConfigError("--http-port, --data-port and --metrics-port must differ")
    for chain in config.chain:
        if chain.development and chain.final and chain.id not in C_CHAINS:  # where it is only the default
            raise ConfigError(f"chain {chain.id}: final and development exclude each other")


VARIABLE_PREFIX = "ICEFALL_"
RESERVED_PREFIXES = ("ICEFALL_TEST_", "ICEFALL_FUZZ_", "ICEFALL_BENCH_")  # for our own tools, never settings
_BY_VARIABLE = {setting.variable: setting for setting in SETTINGS}
_BY_FLAG = {setting.flag: setting for setting in SETTINGS}
_BY_FLAG |= {f"--no-{setting.name}": setting for setting in SETTINGS if setting.value_type is FLAG}


def read_arguments(verb: str, argv: Sequence[str], source: ValueSource) -> dict[str, GivenValue]:
    """Flags as `--name=value`, `--name value`, or for those that are true or false `--name` and `--no-name`."""
    given: dict[str, GivenValue] = {}
    words, switch = list(reversed(argv)), ""  # `switch`: the last word, if it was `--name` of a true or false
    while words:
        word = words.pop()
        flag, equals, text = word.partition("=")
        setting = _BY_FLAG.get(flag)
        if setting is None and word.startswith("-"):
            valid = [other for other, setting in _BY_FLAG.items() if verb in setting.verbs]
            raise ConfigError(f"unknown setting {bare(flag)}; {nearest(flag, valid)}")
        if setting is None:
            hint = f"; write {switch}={word}" if switch and word in ("true", "false") else ""
            raise ConfigError(f"unexpected argument {written(word)}{hint}")
        negated = flag != setting.flag
        if negated and equals:
            raise ConfigError(f"{flag} takes no value; write {setting.flag}=true or {setting.flag}=false")
        if setting.value_type is not FLAG and not equals and (not words or words[-1].startswith("--")):
            raise ConfigError(f"{flag} needs a value: {setting.value_type.shape}")
        if verb not in setting.verbs:
            others = " and ".join(other for other in setting.verbs if other != ALL)
            raise ConfigError(f"{flag} is a setting of icefall {others}, not of icefall {verb}")
        switch = flag if setting.value_type is FLAG and not equals and not negated else ""
        if not equals:
            text = words.pop() if setting.value_type is not FLAG else "false" if negated else "true"
        one = read(setting, text, source, flag)
        if setting.value_type.is_repeatable and setting.name in given:
            one = msgspec.structs.replace(one, value=(*given[setting.name].value, *one.value))
        given[setting.name] = one
    return given


def split_words(argv: Sequence[str], flags: Mapping[str, bool]) -> tuple[list[str], dict[str, str], list[str]]:
    """The arguments of a verb that has words of its own: its words, its own flags with their values, the settings.

    `flags`: the flags, and whether each takes a value; one that does not has the value `true`.
    """
    words, own, settings, left = [], {}, [], list(reversed(argv))
    while left:
        word = left.pop()
        flag, equals, text = word.partition("=")
        name, setting = flag.removeprefix("--"), _BY_FLAG.get(flag)
        if not word.startswith("-"):
            words.append(word)
        elif flag.startswith("--") and name in flags:
            if flags[name] and not equals and (not left or left[-1].startswith("--")):
                raise ConfigError(f"{flag} needs a value")
            if equals and not flags[name]:
                raise ConfigError(f"{flag} takes no value")
            own[name] = text if equals else left.pop() if flags[name] else "true"
        else:
            settings.append(word)
            if setting is not None and setting.value_type is not FLAG and not equals and left:
                settings.append(left.pop())
    return words, own, settings


def read_variables(source: ValueSource) -> dict[str, GivenValue]:
    given = {}
    for name, text in sorted(source.environ.items()):
        if not name.startswith(VARIABLE_PREFIX) or name.startswith(RESERVED_PREFIXES):
            continue
        if name not in _BY_VARIABLE:
            raise ConfigError(f"unknown setting {bare(name)}; {nearest(name, _BY_VARIABLE)}")
        setting = _BY_VARIABLE[name]
        given[setting.name] = read(setting, text, source, name)
    return given
