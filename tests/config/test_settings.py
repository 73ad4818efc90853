"""The declarations: complete, with valid defaults; the kinds of value; docs/settings.md is up to date."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import msgspec
import pytest

from icefall.config.docs import settings_markdown
from icefall.config.load import Loaded
from icefall.config.settings import ALL, GROUPS, SETTINGS, TABLES, VERBS, ChainConfig, Config, Setting, TokenConfig
from icefall.config.types import (
    CHAIN_ID,
    FLAG,
    ID,
    IP_NETWORK,
    NETWORK_ID,
    PATH,
    PATH_OR_URL,
    TABLE,
    TEXT,
    URL,
    SettingType,
    choice,
    duration,
    masked,
    or_empty,
    several,
    whole,
    written,
)
from icefall.evm.reading.directory import ChainInfo, TokenInfo

PAGE = Path(__file__).parents[2] / "docs" / "settings.md"


def type_name(value: object) -> str:
    """A test ID for values that are too long for one."""
    return type(value).__name__


KEYS = [key for keys in TABLES.values() for key in keys]
ROWS = [*SETTINGS, *KEYS, *(inner for key in KEYS for inner in key.keys)]


def test_every_field_of_config_is_a_setting_or_a_list_of_tables() -> None:
    assert [row.attribute for row in SETTINGS] + list(TABLES) == [one.name for one in msgspec.structs.fields(Config)]
    assert [row for rows in GROUPS.values() for row in rows] == list(SETTINGS)
    assert len({row.name for row in SETTINGS}) == len(SETTINGS)


def test_what_workers_show_of_a_chain_is_configured_under_the_same_name() -> None:
    assert set(ChainInfo.__struct_fields__) - set(ChainConfig.__struct_fields__) == {"rpc_url"}
    assert set(TokenInfo.__struct_fields__) == set(TokenConfig.__struct_fields__)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_row_is_complete(row: Setting) -> None:
    assert row.help.endswith(".")
    assert row.help[0].isupper()
    assert row.value_type.shape
    assert set(row.verbs) <= set(VERBS)
    for default in (row.default, *row.defaults.values()):
        if default is not None and not row.keys:
            shown = row.value_type.show(row.value_type.accept(default))
            assert row.value_type.accept(shown) == row.value_type.accept(default)


def test_every_verb_takes_the_shared_settings() -> None:
    assert {row.name for row in SETTINGS if row.verbs == VERBS} >= {"data-dir", "config-file"}
    serving = {"up", "node", "data", "metrics"}
    assert {row.name for row in SETTINGS if serving <= set(row.verbs)} >= {"http-host", "dialect", "log-level"}
    assert all(ALL in row.verbs for row in SETTINGS)


def test_a_setting_of_another_verb_in_the_file_is_not_read(loaded: Callable[..., Loaded]) -> None:
    """So that programs with different verbs can share one file."""
    toml = "http-port = 1\ndata-port = 2\nnetwork-id = 5"
    assert loaded(verb="data", toml=toml).config.data_port == 2
    assert loaded(verb="data", toml=toml).config.network_id == 12345
    assert loaded(verb="node", toml=toml).config.network_id == 5


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text() == settings_markdown(), "run make docs"


def test_the_page_names_every_row() -> None:
    page = settings_markdown()
    assert [row.name for row in ROWS if f"| `{row.name}` |" not in page] == []


ID_TEXT = "2eNy1mUFdmaxXNj1eQHUe7Np4gju9sJsEtWQ4MX3ToiNKuADed"
WORDS = choice(Literal["interface", "live"])
DURATION = duration(0, 2**63 - 1, "")
GOOD: list[tuple[SettingType, object, Any]] = [
    (FLAG, "true", True),
    (FLAG, "F", False),
    (FLAG, False, False),
    (whole(0, 65535), "0", 0),
    (whole(0, 65535), 65535, 65535),
    (DURATION, "1m30s", 90_000_000_000),
    (WORDS, "LIVE", "live"),
    (or_empty(WORDS), "", ""),
    (TEXT, "C-Chain", "C-Chain"),
    (or_empty(PATH), "", ""),
    (or_empty(PATH_OR_URL), "", ""),
    (or_empty(PATH_OR_URL), "prices.json", "prices.json"),
    (or_empty(PATH_OR_URL), "https://a/b?c=d", "https://a/b?c=d"),
    (URL, "https://node.example:9650/ext", "https://node.example:9650/ext"),
    (URL, "http://[::1]:9650", "http://[::1]:9650"),
    (or_empty(URL), "", ""),
    (several(TEXT, ""), "a, b,c", ("a", "b", "c")),
    (several(TEXT, ""), ["a"], ("a",)),
    (several(TEXT, ""), "", ()),
    (IP_NETWORK, "10.1.2.3", "10.1.2.3/32"),
    (IP_NETWORK, "10.1.2.3/8", "10.0.0.0/8"),
    (IP_NETWORK, "fd00::1/64", "fd00::/64"),
    (NETWORK_ID, "local", 12345),
    (NETWORK_ID, "Testnet", 5),
    (NETWORK_ID, "network-77", 77),
    (NETWORK_ID, 77, 77),
    (NETWORK_ID, "4294967295", 4294967295),
    (ID, ID_TEXT, ID_TEXT),
    (or_empty(ID), "", ""),
    (CHAIN_ID, "43112", "43112"),
    (CHAIN_ID, 7, "7"),
    (or_empty(whole(0, 9), None), "", None),
    (or_empty(whole(0, 9), None), 9, 9),
]
BAD: list[tuple[SettingType, object]] = [
    (FLAG, "yes"),
    (FLAG, ""),
    (FLAG, 1),
    (whole(0, 65535), "65536"),
    (whole(0, 65535), "-1"),
    (whole(0, 65535), "1_0"),
    (whole(0, 65535), " 1"),
    (whole(0, 65535), "٣"),
    (whole(0, 65535), "9" * 5000),
    (whole(0, 65535), True),
    (whole(0, 65535), 1.0),
    (DURATION, 30),
    (DURATION, "5"),
    (DURATION, "-1s"),
    (duration(0, 1, ""), "2ns"),
    (WORDS, ""),
    (WORDS, "liv"),
    (TEXT, "a\nb"),
    (TEXT, 1),
    (or_empty(PATH), "a\0b"),
    (PATH, ""),
    (or_empty(PATH_OR_URL), "a\0b"),
    (or_empty(PATH_OR_URL), "ftp://a"),
    (or_empty(PATH_OR_URL), "https://"),
    (URL, "ftp://a"),
    (URL, "http://"),
    (URL, "http://[::1"),
    (URL, "http://a:port"),
    (URL, "http://a b"),
    (URL, "127.0.0.1:9650"),
    (several(URL, "", least=1), []),
    (several(URL, ""), ["http://a", 7]),
    (IP_NETWORK, ""),
    (IP_NETWORK, "proxy.example"),
    (IP_NETWORK, "10.0.0.0/33"),
    (NETWORK_ID, "foo"),
    (NETWORK_ID, "network-"),
    (NETWORK_ID, 2**32),
    (NETWORK_ID, True),
    (ID, ""),
    (ID, "abc"),
    (CHAIN_ID, 0),
    (or_empty(whole(0, 9), None), 10),
    (or_empty(URL), "x"),
    (TABLE, "x"),
]


@pytest.mark.parametrize(("kind", "value", "expected"), GOOD, ids=type_name)
def test_kinds_accept(kind: SettingType, value: object, expected: object) -> None:
    assert kind.accept(value) == expected


@pytest.mark.parametrize(("kind", "value"), BAD, ids=type_name)
def test_kinds_refuse(kind: SettingType, value: object) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - most carry no text: the kind's shape describes what is expected
        kind.accept(value)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("http://user:secret@host/path", "http://user:***@host/path"),
        ("http://:p@ss@host", "http://:***@host"),
        ("postgresql://u:pa/ss@host/db", "postgresql://u:***@host/db"),
        ("postgresql://u:pa?ss#word@host/db", "postgresql://u:***@host/db"),
        ("postgresql://u:p@a:1,b:2/db", "postgresql://u:***@a:1,b:2/db"),
        ("host=a password=secret", "host=a password=***"),
        ("http://host:9650/a@b", "http://host:9650/a@b"),
        ("http://user@host", "http://user@host"),
    ],
)
def test_passwords_are_masked(url: str, shown: str) -> None:
    assert masked(url) == shown
    assert several(URL, "").show((url, url)) == f"{shown},{shown}"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("a\nb", r'"a\nb"'),
        ("x" * 100, '"' + "x" * 77 + '..."'),
        (True, "true"),
        (1.5, "1.5"),
        (16**5000, "a number beyond 64 bits"),
        ([1], "a list"),
        ({}, "a table"),
        (None, "a date or time"),
    ],
    ids=type_name,
)
def test_refused_values_are_quoted_short(value: object, text: str) -> None:
    assert written(value) == text
