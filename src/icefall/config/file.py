"""The config file: found, parsed, and read into settings and tables. Everything in it must be known and must fit."""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from icefall.config.kinds import written
from icefall.config.settings import ASSET_CHAIN_KEYS, CHAIN_KEYS, SETTINGS, TIER_KEYS, Setting, Table
from icefall.config.values import DEFAULT, ConfigError, GivenValue, ValueSource, bare, nearest, read

FILE_NAME = "icefall.toml"
PATH_SIZE_MAX = 4096
_BY_NAME = {row.name: row for row in SETTINGS}


@dataclass(frozen=True)
class File:
    """A config file that was read: `label` is what messages call it, `found_by` what led to it."""

    path: Path
    label: str
    found_by: str
    content: dict[str, Any]
    place: ValueSource


Entry: TypeAlias = dict[str, "GivenValue | Entry"]  # a table of the file, read
ENTRY_KEYS = {"chain": CHAIN_KEYS, "asset_chain": ASSET_CHAIN_KEYS, "tier": TIER_KEYS}


def find_file(said: Mapping[str, GivenValue], place: ValueSource) -> File | None:
    """The file that is named; else the first there is of the working directory's and the data directory's."""
    named, environ = said.get("config-file"), place.environ
    if named is not None and named.value:
        file = _parse_file(Path(named.value), named.value, named.origin, environ)
        if file is None:
            raise ConfigError(f"{named.origin} names {bare(named.value, PATH_SIZE_MAX)}, which does not exist")
        return file
    row = _BY_NAME["data-dir"]
    data_dir = Path((said.get(row.name) or read(row, row.default, place, DEFAULT)).value)
    here = _parse_file(place.base / FILE_NAME, FILE_NAME, "working directory", environ)
    return here or _parse_file(data_dir / FILE_NAME, str(data_dir / FILE_NAME), "data directory", environ)


def _parse_file(path: Path, label: str, found_by: str, environ: Mapping[str, str]) -> File | None:
    shown_label = bare(label, PATH_SIZE_MAX)
    try:
        text = path.read_bytes().decode()
        return File(path, label, found_by, tomllib.loads(text), ValueSource(path.parent, environ, label))
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


def file_settings(file: File) -> dict[str, GivenValue]:
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
        said[name] = read(_BY_NAME[name], value, file.place, file.label)
    return said


def read_entries(name: str, rows: Sequence[Setting], file: File) -> list[Entry]:
    """Every `[[name]]` of the file; the first key tells one from another."""
    tables = file.content.get(name, [])
    if not isinstance(tables, list):
        raise ConfigError(f"{file.label}: {name} must be a list of tables, each headed [[{name}]]")
    entries, ids, own = [], set(), rows[0].name
    for number, table in enumerate(tables, 1):
        title = f"{file.label}: [[{name}]] {number}"
        entry = _entry(title, rows, table, file.place)
        entries.append(entry)
        ids.add(values_of(entry)[own])
        if len(ids) < number:
            raise ConfigError(f"{title}: {own} {values_of(entry)[own]} is already taken by another [[{name}]]")
    return entries


def _entry(title: str, rows: Sequence[Setting], table: object, place: ValueSource, chain_id: str = "") -> Entry:
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
            entry[row.name] = _entry(f"{title}: {row.name}", row.kind.rows, inner, place, values_of(entry)["id"])
        elif row.name in table:
            entry[row.name] = read(row, table[row.name], place, place.file, f"{title}: {row.name}")
        elif row.default is None:
            raise ConfigError(f"{title}: {row.name} is missing")
        else:
            entry[row.name] = read(row, row.default_for(chain_id), place, DEFAULT)
    return entry


def values_of(entry: Entry) -> dict[str, Any]:
    return {key: one.value if isinstance(one, GivenValue) else values_of(one) for key, one in entry.items()}


def origins_of(title: str, entry: Entry) -> dict[str, str]:
    origins: dict[str, str] = {}
    for key, one in entry.items():
        origins |= {f"{title}.{key}": one.origin} if isinstance(one, GivenValue) else origins_of(f"{title}.{key}", one)
    return origins
