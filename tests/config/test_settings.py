"""The tables themselves: rows and structs correspond, defaults are valid, the page in docs/ is fresh."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from icefall.config.docs import settings_markdown
from icefall.config.kinds import (
    Choice,
    Duration,
    FileOrUrl,
    FilePath,
    Flag,
    Id,
    IpNetwork,
    NetworkIdKind,
    SettingKind,
    Several,
    Text,
    Url,
    Whole,
    masked,
    written,
)
from icefall.config.load import AssetChainConfig, ChainConfig, Config, TierConfig, TokenConfig
from icefall.config.settings import ASSET_CHAIN_KEYS, CHAIN_KEYS, SETTINGS, TIER_KEYS, TOKEN_KEYS, VERBS, Setting, Table

PAGE = Path(__file__).parents[2] / "docs" / "settings.md"


def type_name(value: object) -> str:
    """An ID for values too long to be one."""
    return type(value).__name__


ROWS = [*SETTINGS, *CHAIN_KEYS, *TOKEN_KEYS, *ASSET_CHAIN_KEYS, *TIER_KEYS]


@pytest.mark.parametrize(
    ("rows", "struct", "tables"),
    [
        (SETTINGS, Config, ("chain", "asset_chain", "tier")),
        (CHAIN_KEYS, ChainConfig, ()),
        (TOKEN_KEYS, TokenConfig, ()),
        (ASSET_CHAIN_KEYS, AssetChainConfig, ()),
        (TIER_KEYS, TierConfig, ()),
    ],
)
def test_rows_and_fields_correspond(rows: tuple[Setting, ...], struct: type, tables: tuple[str, ...]) -> None:
    fields = [field.name for field in msgspec.structs.fields(struct)]
    assert [row.attribute for row in rows] == [name for name in fields if name not in tables]
    assert fields[len(rows) :] == list(tables)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_row_is_complete(row: Setting) -> None:
    assert row.says.endswith(".")
    assert row.says[0].isupper()
    assert row.kind.shape
    assert set(row.verbs) <= set(VERBS)
    for default in (row.default, *row.defaults.values()):
        if default is not None and not isinstance(row.kind, Table):
            shown = row.kind.show(row.kind.parse(default))
            assert row.kind.parse(shown) == row.kind.parse(default)


def test_every_verb_takes_the_shared_settings() -> None:
    shared = {"data-dir", "config-file", "http-host", "http-port", "data-port", "metrics-port", "dialect"}
    assert {row.name for row in SETTINGS if row.verbs == VERBS} >= shared


def test_the_page_is_fresh() -> None:
    assert PAGE.read_text() == settings_markdown(), "run make docs"


def test_the_page_names_every_row() -> None:
    page = settings_markdown()
    assert [row.name for row in ROWS if f"| `{row.name}` |" not in page] == []


ID = "2eNy1mUFdmaxXNj1eQHUe7Np4gju9sJsEtWQ4MX3ToiNKuADed"
GOOD: list[tuple[SettingKind, object, Any]] = [
    (Flag(), "true", True),
    (Flag(), "F", False),
    (Flag(), False, False),
    (Whole(0, 65535), "0", 0),
    (Whole(0, 65535), 65535, 65535),
    (Duration(), "1m30s", 90_000_000_000),
    (Choice(("interface", "live")), "LIVE", "live"),
    (Choice(("info",), or_empty=True), "", ""),
    (Text(), "C-Chain", "C-Chain"),
    (FilePath(), "", ""),
    (FileOrUrl(), "", ""),
    (FileOrUrl(), "prices.json", "prices.json"),
    (FileOrUrl(), "https://a/b?c=d", "https://a/b?c=d"),
    (Url(), "https://node.example:9650/ext", "https://node.example:9650/ext"),
    (Url(), "http://[::1]:9650", "http://[::1]:9650"),
    (Url(or_empty=True), "", ""),
    (Several(Text()), "a, b,c", ("a", "b", "c")),
    (Several(Text()), ["a"], ("a",)),
    (Several(Text()), "", ()),
    (IpNetwork(), "10.1.2.3", "10.1.2.3/32"),
    (IpNetwork(), "10.1.2.3/8", "10.0.0.0/8"),
    (IpNetwork(), "fd00::1/64", "fd00::/64"),
    (NetworkIdKind(), "local", 12345),
    (NetworkIdKind(), "Testnet", 5),
    (NetworkIdKind(), "network-77", 77),
    (NetworkIdKind(), 77, 77),
    (NetworkIdKind(), "4294967295", 4294967295),
    (Id(), ID, ID),
    (Id(or_empty=True), "", ""),
]
BAD: list[tuple[SettingKind, object]] = [
    (Flag(), "yes"),
    (Flag(), ""),
    (Flag(), 1),
    (Whole(0, 65535), "65536"),
    (Whole(0, 65535), "-1"),
    (Whole(0, 65535), "1_0"),
    (Whole(0, 65535), " 1"),
    (Whole(0, 65535), "٣"),
    (Whole(0, 65535), "9" * 5000),
    (Whole(0, 65535), True),
    (Whole(0, 65535), 1.0),
    (Duration(), 30),
    (Duration(), "5"),
    (Duration(), "-1s"),
    (Duration(high_ns=1), "2ns"),
    (Choice(("interface", "live")), ""),
    (Choice(("interface", "live")), "liv"),
    (Text(), "a\nb"),
    (Text(), 1),
    (FilePath(), "a\0b"),
    (FilePath(or_empty=False), ""),
    (FileOrUrl(), "a\0b"),
    (FileOrUrl(), "ftp://a"),
    (FileOrUrl(), "https://"),
    (Url(), "ftp://a"),
    (Url(), "http://"),
    (Url(), "http://[::1"),
    (Url(), "http://a:port"),
    (Url(), "http://a b"),
    (Url(), "127.0.0.1:9650"),
    (Several(Url(), least=1), []),
    (Several(Url()), ["http://a", 7]),
    (IpNetwork(), ""),
    (IpNetwork(), "proxy.example"),
    (IpNetwork(), "10.0.0.0/33"),
    (NetworkIdKind(), "foo"),
    (NetworkIdKind(), "network-"),
    (NetworkIdKind(), 2**32),
    (NetworkIdKind(), True),
    (Id(), ""),
    (Id(), "abc"),
    (Table(()), "x"),
]


@pytest.mark.parametrize(("kind", "value", "expected"), GOOD, ids=type_name)
def test_kinds_accept(kind: SettingKind, value: object, expected: object) -> None:
    assert kind.accept(value) == expected


@pytest.mark.parametrize(("kind", "value"), BAD, ids=type_name)
def test_kinds_refuse(kind: SettingKind, value: object) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - most carry no text, the row's shape says it
        kind.accept(value)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("http://user:secret@host/path", "http://user:***@host/path"),
        ("http://:p@ss@host", "http://:***@host"),
        ("http://host:9650/a@b", "http://host:9650/a@b"),
        ("http://user@host", "http://user@host"),
    ],
)
def test_passwords_are_masked(url: str, shown: str) -> None:
    assert masked(url) == shown
    assert Several(Url()).show((url, url)) == f"{shown},{shown}"


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
