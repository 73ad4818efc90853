"""Any input gives a Config or a ConfigError of one line."""

from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from icefall.config.load import load
from icefall.config.settings import SETTINGS, TABLES, VERBS, Config, Setting
from icefall.config.values import ConfigError

FUZZ = settings(
    deadline=None, max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
ANY_TEXT = st.text(st.characters(), max_size=20)  # surrogates included: argv carries them
VALUES = ANY_TEXT | st.sampled_from(
    ["", "0", "1", "true", "30s", "local", "live", "info", "http://a:b@c", "~/x", "$HOME", "$", "-1", "9" * 30, "\0"]
)
FLAGS = st.sampled_from([row.flag for row in SETTINGS] + ["--no-demo", "--no-index-enabled", "--", "-", "--="])
WORDS = st.builds("{}={}".format, FLAGS, VALUES) | FLAGS | VALUES
VARIABLES = st.sampled_from([row.variable for row in SETTINGS] + ["HOME"]) | ANY_TEXT.map("ICEFALL_{}".format)
TOML_VALUES = st.one_of(
    VALUES.filter(str.isprintable).map("'{}'".format),
    st.sampled_from(
        ["1", "true", "1.5", "[]", "['http://a']", "[1, 'x']", "{}", "{ name = 'x' }", "2026-01-01", "0xff", "-1"]
    ),
)
KEYS = st.sampled_from(
    [row.name for row in (*SETTINGS, *TABLES["chain"], *TABLES["asset_chain"])] + ["chain", "asset_chain", "x"]
)
LINES = st.builds("{} = {}".format, KEYS, TOML_VALUES) | st.sampled_from(
    ["[[chain]]", "[[asset_chain]]", "[chain]", "id = 7", "rpc = 'http://a'", "[chain.token]"]
)


def outcome(verb: str, argv: list[str], environ: dict[str, str], cwd: Path) -> None:
    try:
        config = load(verb, argv, environ, cwd).config
    except ConfigError as error:
        refused = str(error)
    else:
        assert msgspec.json.decode(msgspec.json.encode(config), type=Config) == config
        return
    assert refused
    assert "\n" not in refused


@FUZZ
@given(st.sampled_from(VERBS), st.lists(WORDS, max_size=6))
def test_any_command_line(tmp_path: Path, verb: str, argv: list[str]) -> None:
    outcome(verb, argv, {"HOME": str(tmp_path)}, tmp_path)


@FUZZ
@given(st.dictionaries(VARIABLES, VALUES, max_size=4))
def test_any_environment(tmp_path: Path, environ: dict[str, str]) -> None:
    outcome("up", [], {"HOME": str(tmp_path)} | environ, tmp_path)


@FUZZ
@given(st.lists(LINES, max_size=8).map("\n".join).map(str.encode) | st.binary(max_size=40))
def test_any_file(tmp_path: Path, raw: bytes) -> None:
    (tmp_path / "icefall.toml").write_bytes(raw)
    outcome("up", [], {"HOME": str(tmp_path)}, tmp_path)


@pytest.mark.parametrize("row", SETTINGS, ids=lambda row: row.name)
def test_any_value(tmp_path: Path, row: Setting) -> None:
    @settings(FUZZ, max_examples=15)
    @given(VALUES)
    def check(value: str) -> None:
        outcome("up", [f"{row.flag}={value}"], {"HOME": str(tmp_path)}, tmp_path)

    check()
