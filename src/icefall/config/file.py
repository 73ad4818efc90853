"""The config file: found, parsed, and read into settings and tables. Unknown names and wrong values are refused."""

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from icefall.config.settings import BY_NAME, TABLES, Setting
from icefall.config.types import written
from icefall.config.values import DEFAULT, ConfigError, GivenValue, ValueSource, bare, nearest, read

FILE_NAME = "icefall.toml"
PATH_SIZE_MAX = 4096


class ConfigFile(msgspec.Struct, frozen=True):
    """A parsed config file. `found_by`: the flag, variable or directory that led to it."""

    path: Path
    found_by: str
    content: dict[str, Any]
    source: ValueSource


def find_file(given: Mapping[str, GivenValue], source: ValueSource) -> ConfigFile | None:
    """The file that is named; else icefall.toml of the working directory; else that of the data directory."""
    named, environ = given.get("config-file"), source.environ
    if named is not None and named.value:
        file = _parse_file(Path(named.value), named.value, named.origin, environ)
        if file is None:
            raise ConfigError(f"{named.origin} names {bare(named.value, PATH_SIZE_MAX)}, which does not exist")
        return file
    setting = BY_NAME["data-dir"]
    data_dir = Path((given.get(setting.name) or read(setting, setting.default, source, DEFAULT)).value)
    here = _parse_file(source.base / FILE_NAME, FILE_NAME, "working directory", environ)
    return here or _parse_file(data_dir / FILE_NAME, str(data_dir / FILE_NAME), "data directory", environ)


def _parse_file(path: Path, label: str, found_by: str, environ: Mapping[str, str]) -> ConfigFile | None:
    shown_label = bare(label, PATH_SIZE_MAX)
    try:
        text = path.read_bytes().decode()
        return ConfigFile(path, found_by, tomllib.loads(text), ValueSource(path.parent, environ, label))
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


def read_file(file: ConfigFile) -> dict[str, GivenValue]:
    """The settings at the top of the file."""
    given, label = {}, file.source.file
    for name, value in file.content.items():
        if name in TABLES:
            continue
        if name not in BY_NAME:
            raise ConfigError(f"unknown setting {bare(name)} in {label}; {nearest(name, [*BY_NAME, *TABLES])}")
        if name == "config-file":
            raise ConfigError(f"config-file in {label}: a config file cannot name another")
        given[name] = read(BY_NAME[name], value, file.source, label)
    return given


def read_tables(name: str, tables: object, source: ValueSource, given: dict[str, GivenValue]) -> list[dict[str, Any]]:
    """The values of every `[[name]]`, also added to `given` as `name[1].key`. The first key identifies a table."""
    if not isinstance(tables, list):
        raise ConfigError(f"{source.file}: {name} must be a list of tables, each headed [[{name}]]")
    entries: list[dict[str, Any]] = []
    keys = TABLES[name]
    identity = keys[0].name
    for number, table in enumerate(tables, 1):
        title = f"{source.file}: [[{name}]] {number}"
        entry = _read_table(title, f"{name}[{number}]", keys, table, source, given)
        if any(entry[identity] == other[identity] for other in entries):
            raise ConfigError(f"{title}: {identity} {entry[identity]} is already taken by another [[{name}]]")
        entries.append(entry)
    return entries


def _read_table(
    title: str,
    path: str,
    keys: Sequence[Setting],
    table: object,
    source: ValueSource,
    given: dict[str, GivenValue],
    chain_id: str = "",  # picks the defaults of a table inside a chain's
) -> dict[str, Any]:
    if not isinstance(table, dict):
        raise ConfigError(f"{title} must be a table, got {written(table)}")
    names = [key.name for key in keys]
    for name in table:
        if name not in names:
            raise ConfigError(f"{title}: unknown key {bare(name)}; {nearest(name, names)}")
    values: dict[str, Any] = {}
    for key in keys:
        key_title, key_path = f"{title}: {key.name}", f"{path}.{key.name}"
        if key.keys:
            inner = table.get(key.name, {})
            values[key.name] = _read_table(key_title, key_path, key.keys, inner, source, given, values["id"])
            continue
        if key.name in table:
            given[key_path] = read(key, table[key.name], source, source.file, key_title)
        elif key.default is None:
            raise ConfigError(f"{key_title} is missing")
        else:
            given[key_path] = read(key, key.default_for(chain_id or str(values.get("id", ""))), source, DEFAULT)
        values[key.name] = given[key_path].value
    return values
