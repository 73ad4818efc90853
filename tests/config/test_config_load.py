"""Precedence, defaults and refusals of the four layers."""

import itertools
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from icefall.config.load import Loaded
from icefall.config.settings import SETTINGS, VERBS, Config
from icefall.config.types import PUBLIC_URL

Load = Callable[..., Loaded]
Refusal = Callable[..., str]


@pytest.mark.parametrize(("argv", "environ", "file"), list(itertools.product([False, True], repeat=3)))
def test_precedence(loaded: Load, argv: bool, environ: bool, file: bool) -> None:
    got = loaded(
        *(["--http-port=1"] if argv else []),
        environ={"ICEFALL_HTTP_PORT": "2"} if environ else {},
        toml="http-port = 3" if file else "",
    )
    layers = [
        (argv, 1, "--http-port"),
        (environ, 2, "ICEFALL_HTTP_PORT"),
        (file, 3, "icefall.toml"),
        (True, 9650, "default"),
    ]
    expected = next((port, origin) for given, port, origin in layers if given)
    assert (got.config.http_port, got.given["http-port"].origin) == expected


@pytest.mark.parametrize(
    ("argv", "value", "origin"),
    [
        (["--api-admin-enabled"], True, "--api-admin-enabled"),
        (["--api-admin-enabled=true"], True, "--api-admin-enabled"),
        (["--api-admin-enabled=false"], False, "--api-admin-enabled"),
        (["--no-api-admin-enabled"], False, "--no-api-admin-enabled"),
        (["--api-admin-enabled", "--api-admin-enabled=false"], False, "--api-admin-enabled"),
        ([], False, "default"),
    ],
)
def test_booleans(loaded: Load, argv: list[str], value: bool, origin: str) -> None:
    got = loaded(*argv)
    assert (got.config.api_admin_enabled, got.given["api-admin-enabled"].origin) == (value, origin)


def test_values_may_follow_as_a_word_and_the_last_one_wins(loaded: Load) -> None:
    config = loaded("--http-host", "::1", "--http-port", "1", "--http-port", "2").config
    assert (config.http_host, config.http_port) == ("::1", 2)


@pytest.mark.parametrize("verb", VERBS)
def test_defaults_by_verb(loaded: Load, verb: str) -> None:
    config = loaded(verb=verb).config
    assert config.index_enabled is (verb == "up")
    assert config.demo is (verb in ("up", "config"))


def test_a_setting_of_another_verb(loaded: Load, refusal: Refusal) -> None:
    assert loaded("--no-demo", verb="up").config.demo is False
    assert loaded(verb="up", toml="demo = false").config.demo is False
    assert loaded(verb="node", toml="demo = true").config.demo is False, "files are shared between verbs"
    assert refusal("--demo", verb="node") == "--demo is a setting of icefall up, not of icefall node"


def test_empty_settings_follow_others(loaded: Load, cwd: Path) -> None:
    config = loaded("--data-dir=d", "--log-level=DEBUG", "--profile-dir=p").config
    assert (config.log_dir, config.plugin_dir) == (f"{cwd}/d/logs", f"{cwd}/d/plugins")
    assert config.profile_dir == f"{cwd}/p"
    assert (config.log_level, config.log_display_level) == ("debug", "debug")
    assert loaded("--log-display-level=off").config.log_display_level == "off"


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("~", "{home}"),
        ("~/x", "{home}/x"),
        ("$MOUNT/x", "/mnt/x"),
        ("${MOUNT}x", "/mntx"),
        ("x", "{cwd}/x"),
        ("/x", "/x"),
        ("a$", "{cwd}/a$"),
    ],
)
def test_paths_expand(loaded: Load, cwd: Path, text: str, path: str) -> None:
    config = loaded(f"--data-dir={text}", environ={"MOUNT": "/mnt"}).config
    assert config.data_dir == path.format(home=cwd.parent / "home", cwd=cwd)


REFUSALS = [
    (["--htpp-port=1"], "unknown setting --htpp-port; did you mean --http-port?"),
    (["-http-port=1"], "unknown setting -http-port; did you mean --http-port?"),
    (["--no-dmo"], "unknown setting --no-dmo; did you mean --no-demo?"),
    (["--no-http-port"], "unknown setting --no-http-port; did you mean --http-port?"),
    (["--http_port=1"], "unknown setting --http_port; did you mean --http-port?"),
    (["--qq"], "unknown setting --qq; the nearest is "),
    (["--"], "unknown setting --; the nearest is "),
    (["--\n=1"], r'unknown setting "--\n"; the nearest is '),
    (["junk"], 'unexpected argument "junk"'),
    (["--index-enabled", "true"], 'unexpected argument "true"; write --index-enabled=true'),
    (["--http-port", "1", "true"], 'unexpected argument "true"'),
    (["--http-port"], "--http-port needs a value: 0..65535"),
    (["--http-host", "--http-port=1"], "--http-host needs a value: a host name or an IP address"),
    (["--http-port=abc"], '--http-port must be 0..65535, got "abc"'),
    (["--http-port=65536"], '--http-port must be 0..65535, got "65536"'),
    (["--http-host=a/b"], '--http-host must be a host name or an IP address, got "a/b"'),
    (["--no-demo=true"], "--no-demo takes no value; write --demo=true or --demo=false"),
    (["--index-enabled=maybe"], '--index-enabled must be true or false, got "maybe"'),
    (["--dialect=live!"], '--dialect must be interface or live, got "live!"'),
    (["--http-read-timeout=5"], 'got "5": time: missing unit in duration "5"'),
    (
        ["--health-check-frequency=0s"],
        '--health-check-frequency must be a Go duration above zero, such as 30s, got "0s"',
    ),
    (["--http-shutdown-timeout=9001ms"], '--http-shutdown-timeout must be a Go duration from 0s to 9s, got "9001ms"'),
    (["--http-shutdown-wait=6s"], "--http-shutdown-wait and --http-shutdown-timeout must not exceed 9s together"),
    (["--system-tracker-disk-warning-available-space-percentage=51"], 'must be 0..50, got "51"'),
    (["--system-tracker-disk-warning-available-space-percentage=2"], "(3) must not be greater than"),
    (["--http-port=9652"], "--http-port, --data-port and --metrics-port must differ"),
    (["--upstream=http://a,ftp://u:pw@b"], '"ftp://u:***@b" is not a URL of scheme http or https'),
    (["--data-dir="], '--data-dir must be a path, got ""'),
    (["--data-dir=$NOWHERE/x"], '--data-dir must be a path, got "$NOWHERE/x": $NOWHERE is not set'),
    (["--data-dir=~bob"], "~ stands for a home directory only in ~ and ~/"),
    (["--data-dir=\udcff"], r'--data-dir must be a path, got "\xff": not valid UTF-8'),
    (["--config-file=none.toml"], "none.toml, which does not exist"),
    (["--config-file=."], "/work: Is a directory"),
]


@pytest.mark.parametrize(("argv", "message"), REFUSALS)
def test_refusals_on_the_command_line(refusal: Refusal, argv: list[str], message: str) -> None:
    refused = refusal(*argv, verb="up")
    assert message in refused
    assert "\n" not in refused
    assert "pw" not in refused


@pytest.mark.parametrize(
    ("environ", "message"),
    [
        ({"ICEFALL_HTPP_PORT": "1"}, "unknown setting ICEFALL_HTPP_PORT; did you mean ICEFALL_HTTP_PORT?"),
        ({"ICEFALL_NO_DEMO": "1"}, "unknown setting ICEFALL_NO_DEMO; did you mean ICEFALL_DEMO?"),
        ({"ICEFALL_HTTP_PORT": "x"}, '--http-port must be 0..65535, got "x" (from ICEFALL_HTTP_PORT)'),
        *(
            ({"ICEFALL_NODE_URL": url}, f'--node-url must be {PUBLIC_URL.shape}, got "{url}" (from ICEFALL_NODE_URL)')
            for url in ("a.example", "ftp://a", "http://a/;", "http://a/?b", "http://u@a", "http://a b", "http://a:0")
        ),
        ({"ICEFALL_CONFIG_FILE": "/no/file"}, "ICEFALL_CONFIG_FILE names /no/file, which does not exist"),
        ({"HOME": ""}, '--data-dir must be a path, got "~/.icefall" (from default): HOME is not set'),
    ],
)
def test_refusals_in_the_environment(refusal: Refusal, environ: dict[str, str], message: str) -> None:
    assert refusal(environ=environ) == message


def test_an_invalid_value_is_refused_even_if_another_source_overrides_it(refusal: Refusal) -> None:
    assert "ICEFALL_HTTP_PORT" in refusal("--http-port=1", environ={"ICEFALL_HTTP_PORT": "x"})


def test_variables_of_our_own_tools_are_ignored(loaded: Load) -> None:
    environ = {"ICEFALL_TEST_X": "1", "ICEFALL_FUZZ_SEED": "2", "ICEFALL_BENCH_": "3", "OTHER": "4", "icefall_x": "5"}
    assert {one.origin for one in loaded(environ=environ).given.values()} == {"default"}


def test_every_setting_can_be_given_in_all_three_sources(loaded: Load, cwd: Path) -> None:
    (cwd / "given.toml").touch()
    (cwd / "store.url").write_text("postgresql://a")
    for row in SETTINGS:
        text = "given.toml" if row.name == "config-file" else row.default_for("up") or "x"
        verb = "up" if "up" in row.verbs else row.verbs[0]
        special = dict.fromkeys(("upstream", "node-url", "metrics-url"), "http://a") | {
            "network-name": "fuji",
            "log-display-level": "warn",
            "from": "5",
            "to": "5",
            "accept-reorg": "5",
            "refold": "5",
            "store": "postgresql://a",
            "store-file": "store.url",
            "replica": "postgresql://b",
            "data-url": "http://a",
        }
        special |= dict.fromkeys(("trusted-proxies", "nft-metadata-networks", "webhook-networks"), "::1")
        text = special.get(row.name, text)
        assert loaded(f"{row.flag}={text}", verb=verb).given[row.name].origin == row.flag
        assert loaded(verb=verb, environ={row.variable: text}).given[row.name].origin == row.variable
        if row.name != "config-file":
            toml = f"{row.name} = '{text}'"
            assert loaded(verb=verb, toml=toml).given[row.name].origin == "icefall.toml"
            (cwd / "icefall.toml").unlink()


def test_shutdown_wait_and_timeout_are_9s_together_at_most(loaded: Load, refusal: Refusal) -> None:
    assert loaded("--http-shutdown-wait=4s", "--http-shutdown-timeout=5s").config.http_shutdown_wait == 4_000_000_000
    assert "9s together" in refusal("--http-shutdown-wait=4000000001ns", "--http-shutdown-timeout=5s")


def test_replicas_are_added_up(loaded: Load, refusal: Refusal) -> None:
    assert loaded(verb="data").config.replica == ()
    given = loaded("--replica=postgresql://u:a,b@one/x", "--replica=postgres://two postgresql://three", verb="data")
    assert given.config.replica == ("postgresql://u:a,b@one/x", "postgres://two", "postgresql://three")
    setting = given.given["replica"].setting
    assert setting.value_type.show(given.config.replica[:2]) == "postgresql://u:***@one/x,postgres://two"
    listed = loaded(verb="data", toml='replica = ["postgresql://one", "postgresql://two"]').config
    assert listed.replica == ("postgresql://one", "postgresql://two")
    for wrong in ("postgresql://one,two/x", "http://one", "one"):
        assert "each with one host" in refusal(f"--replica={wrong}", verb="data")
    assert "100ms to 24h" in refusal("--replica-lag-max=1ms", verb="data")


def test_zero_ports_may_repeat(loaded: Load) -> None:
    assert loaded("--http-port=0", "--data-port=0", "--metrics-port=0", verb="up").config.data_port == 0


def test_a_config_survives_json(loaded: Load) -> None:
    config = loaded(
        "--upstream=http://a,https://b",
        "--tx-fee=18446744073709551615",
        toml='[[chain]]\nid = 1\nrpc = ["http://a"]\n[[chain]]\nid = 2\nrpc = "http://b"\ntoken = { decimals = 6 }',
    ).config
    assert msgspec.json.decode(msgspec.json.encode(config), type=Config) == config
