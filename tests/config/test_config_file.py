"""icefall.toml: where it is found, its tables, and refusals."""

from collections.abc import Callable
from pathlib import Path

import pytest

from icefall.config.load import Loaded
from icefall.config.settings import AssetChainConfig, ChainConfig, TokenConfig
from icefall.config.values import ConfigError

Load = Callable[..., Loaded]
Refusal = Callable[..., str]

X_CHAIN = "2eNy1mUFdmaxXNj1eQHUe7Np4gju9sJsEtWQ4MX3ToiNKuADed"
CHAIN = '[[chain]]\nid = "43112"\nrpc = "http://127.0.0.1:9650/ext/bc/C/rpc"\n'


def test_no_file_at_all(loaded: Load) -> None:
    got = loaded()
    assert (got.config.config_file, got.given["config-file"].origin) == ("", "default")


def test_the_working_directory_comes_before_the_data_directory(loaded: Load, cwd: Path) -> None:
    (cwd / "d").mkdir()
    (cwd / "d" / "icefall.toml").write_text("http-port = 2")
    got = loaded("--data-dir=d")
    assert (got.config.http_port, got.given["http-port"].origin) == (2, f"{cwd}/d/icefall.toml")
    assert (got.config.config_file, got.given["config-file"].origin) == (f"{cwd}/d/icefall.toml", "data directory")
    got = loaded("--data-dir=d", toml="http-port = 1")
    assert (got.config.http_port, got.given["config-file"].origin) == (1, "working directory")
    (cwd / "icefall.toml").unlink()
    assert loaded(environ={"ICEFALL_DATA_DIR": f"{cwd}/d"}).config.http_port == 2


def test_the_home_directory_is_where_data_is_by_default(loaded: Load, cwd: Path) -> None:
    data_dir = cwd.parent / "home" / ".icefall"
    data_dir.mkdir()
    (data_dir / "icefall.toml").write_text("http-port = 4")
    assert loaded().config.http_port == 4


def test_a_named_file_is_the_only_one(loaded: Load, cwd: Path) -> None:
    (cwd / "deep").mkdir()
    (cwd / "deep" / "x.toml").write_text('tx-fee = 5\nlog-dir = "logs"\ndata-dir = "."')
    got = loaded("--config-file=deep/x.toml", toml="http-port = 1")
    assert (got.config.http_port, got.config.tx_fee) == (9650, 5)
    assert got.given["config-file"].origin == "--config-file"
    assert (got.config.log_dir, got.config.data_dir) == (f"{cwd}/deep/logs", f"{cwd}/deep"), "relative to the file"
    assert loaded("--config-file=").config.http_port == 1, "an empty name is no name"


def test_native_values(loaded: Load) -> None:
    toml = """
    http-port = 1
    api-admin-enabled = true
    network-id = 5
    upstream = ["http://a", "http://b"]
    http-allowed-hosts = "a.example, b.example"
    http-read-timeout = "1m"
    """
    config = loaded(toml=toml).config
    assert (config.http_port, config.api_admin_enabled, config.network_id) == (1, True, 5)
    assert config.upstream == ("http://a", "http://b")
    assert config.http_allowed_hosts == ("a.example", "b.example")
    assert config.http_read_timeout == 60_000_000_000


def test_a_chain_by_its_id_and_address(loaded: Load) -> None:
    got = loaded(toml=CHAIN)
    assert got.config.chain == (
        ChainConfig(
            id="43112",
            rpc=("http://127.0.0.1:9650/ext/bc/C/rpc",),
            name="",
            aliases=(),
            description="",
            blockchain_id="",
            subnet_id="",
            vm_id="",
            token=TokenConfig(name="AVAX", symbol="AVAX", decimals=18, logo_uri="", description=""),
            explorer_url="",
            public_rpc_url="",
            ws_url="",
            logo="",
            testnet=False,
            private=False,
            features=(),
            multicall="",
            teleporter=("0x253b2784c75e510dD0fF1da844684a1aC0aa5fcf",),
            start_block=0,
            final=True,
            development=False,
            traces=True,
            cumulative_tx_offset=0,
            confirmations=0,
            verify_roots=None,
            store_logs=False,
            store_traces=False,
            prices="",
            prices_interval=300_000_000_000,
            store="",
            store_file="",
            reputation="",
            token_list="",
            token_list_interval=3_600_000_000_000,
        ),
    )
    assert got.given["chain[1].rpc"].origin == "icefall.toml"
    assert got.given["chain[1].token.name"].origin == "default"


def test_a_chain_in_full(loaded: Load, cwd: Path) -> None:
    toml = f"""
    [[chain]]
    id = 43_112
    rpc = "http://a"
    [[chain]]
    id = 7
    rpc = ["http://a", "https://user:pw@b"]
    aliases = ["c", "evm"]
    blockchain_id = "{X_CHAIN}"
    token = {{ symbol = "TOK" }}
    ws_url = "wss://a/ws"
    testnet = true
    features = ["nftIndexing", "teleporter"]
    multicall = "0xcA11bde05977b3631167028862bE2a173976CA11"
    start_block = 12
    verify_roots = false
    prices = "prices.json"
    """
    first, chain = loaded(toml=toml).config.chain
    assert (chain.id, chain.rpc, chain.aliases) == ("7", ("http://a", "https://user:pw@b"), ("c", "evm"))
    assert (chain.token.name, chain.token.symbol) == ("Native token", "TOK")
    assert (chain.features, chain.start_block, chain.testnet) == (("nftIndexing", "teleporter"), 12, True)
    assert chain.prices == f"{cwd}/prices.json"
    assert (first.verify_roots, chain.verify_roots) == (None, False)


def test_prices_may_be_fetched(loaded: Load) -> None:
    url = "https://prices.example/~a/$b?key=secret"
    chain = loaded(toml=f'{CHAIN}\nprices = "{url}"\nprices_interval = "1h"').config.chain[0]
    assert (chain.prices, chain.prices_interval) == (url, 3_600_000_000_000)


def test_asset_chains(loaded: Load, cwd: Path) -> None:
    got = loaded(toml=f'[[asset_chain]]\nid = "{X_CHAIN}"\ngenesis = "g.json"\naliases = ["second"]')
    expected = AssetChainConfig(id=X_CHAIN, genesis=f"{cwd}/g.json", aliases=("second",))
    assert got.config.asset_chain == (expected,)


REFUSALS = [
    ("http-port = \n", "icefall.toml: Invalid value (at line 1, column 13)"),
    ("a = 1\nb = 'x", "icefall.toml: Expected "),
    ("a = '''\n\n", "(at line 3, the end)"),
    ("x = " + "[" * 5000, "icefall.toml: nested too deeply"),
    ("x = " + "9" * 5000, "icefall.toml: Exceeds the limit"),
    ("htpp-port = 1", "unknown setting htpp-port in icefall.toml; did you mean http-port?"),
    ("http_port = 1", "unknown setting http_port in icefall.toml; did you mean http-port?"),
    ("chains = []", "unknown setting chains in icefall.toml; did you mean chain?"),
    ("config-file = 'x'", "config-file in icefall.toml: a config file cannot name another"),
    ("http-port = 'x'", '--http-port must be 0..65535, got "x" (from icefall.toml)'),
    ("http-port = 65536", "--http-port must be 0..65535, got 65536 (from icefall.toml)"),
    ("http-port = true", "--http-port must be 0..65535, got true (from icefall.toml)"),
    ("http-port = 0x" + "f" * 5000, "--http-port must be 0..65535, got a number beyond 64 bits (from icefall.toml)"),
    ("http-read-timeout = 30", "must be a Go duration such as 30s, got 30 (from icefall.toml)"),
    ("http-host = 2026-01-01", "got a date or time (from icefall.toml)"),
    ("upstream = ['http://a', 7]", "got a list (from icefall.toml): 7 is not a URL of scheme http or https"),
    ("[http-port]", "--http-port must be 0..65535, got a table (from icefall.toml)"),
    ("[chain]\nid = 1", "icefall.toml: chain must be a list of tables, each headed [[chain]]"),
    ("chain = [1]", "icefall.toml: [[chain]] 1 must be a table, got 1"),
    ("[[chain]]", "icefall.toml: [[chain]] 1: id is missing"),
    ("[[chain]]\nid = 1", "icefall.toml: [[chain]] 1: rpc is missing"),
    (CHAIN + "rcp = 1", "icefall.toml: [[chain]] 1: unknown key rcp; did you mean rpc?"),
    (CHAIN + "token = 1", "icefall.toml: [[chain]] 1: token must be a table, got 1"),
    (CHAIN + "token = { symbl = 1 }", "icefall.toml: [[chain]] 1: token: unknown key symbl; did you mean symbol?"),
    (CHAIN + "token = { decimals = 256 }", "icefall.toml: [[chain]] 1: token: decimals must be 0..255, got 256"),
    (CHAIN + CHAIN, "icefall.toml: [[chain]] 2: id 43112 is already taken by another [[chain]]"),
    (
        "[[chain]]\nid = 'C'\nrpc = 'http://a'",
        'icefall.toml: [[chain]] 1: id must be a chain ID such as "43112", got "C"',
    ),
    (
        "[[chain]]\nid = 1\nrpc = []",
        "icefall.toml: [[chain]] 1: rpc must be one or more http or https URLs, got a list",
    ),
    (CHAIN + "features = ['x']", '"x" is not a feature'),
    (CHAIN + "multicall = '0x1'", "multicall must be an address: 0x and 40 hex digits"),
    (CHAIN + "blockchain_id = 'x'", "blockchain_id must be a 32-byte ID in CB58"),
    ("[[asset_chain]]\nid = 'x'", "icefall.toml: [[asset_chain]] 1: id must be a 32-byte ID in CB58"),
    (f"[[asset_chain]]\nid = '{X_CHAIN}'", "icefall.toml: [[asset_chain]] 1: genesis is missing"),
]


@pytest.mark.parametrize(("toml", "message"), REFUSALS, ids=[message[:60] for _, message in REFUSALS])
def test_refusals(refusal: Refusal, toml: str, message: str) -> None:
    refused = refusal(toml=toml)
    assert message in refused
    assert len(refused.splitlines()) == 1


def test_bytes_that_are_not_text(refusal: Refusal, cwd: Path) -> None:
    (cwd / "icefall.toml").write_bytes(b"http-port = 1\n# \xff")
    assert refusal() == "icefall.toml: line 2 is not UTF-8"


def test_a_path_through_a_file_is_no_path(refusal: Refusal, cwd: Path) -> None:
    (cwd / "file").touch()
    assert refusal("--config-file=file/x.toml").endswith("file/x.toml, which does not exist")


TIER = '[[tier]]\nname = "free"\nper_minute = 10\nper_day = "200"\n'


def test_tiers(loaded: Load) -> None:
    [tier] = loaded(toml=TIER).config.tier
    assert (tier.name, tier.per_minute, tier.per_day) == ("free", 10, 200)


@pytest.mark.parametrize(
    ("toml", "message"),
    [
        (TIER + TIER, "[[tier]] 2: name free is already taken by another [[tier]]"),
        (TIER.replace("10", "0"), "[[tier]] 1: per_minute must be 1..9223372036854775807, got 0"),
        (TIER.replace("free", "two words"), "[[tier]] 1: name must be a word of letters, digits, - and _"),
        ('[[tier]]\nname = "free"\nper_day = 1', "[[tier]] 1: per_minute is missing"),
        (TIER + "id = 1", "[[tier]] 1: unknown key id"),
    ],
)
def test_invalid_tiers(toml: str, message: str, refusal: Refusal) -> None:
    assert message in refusal(toml=toml)


def test_when_blocks_are_final(loaded: Load) -> None:
    """Known C-Chains are; of others their headers decide, unless it is set."""
    other = CHAIN.replace("43112", "5")
    found = [loaded(toml=toml).config.chain[0].final for toml in (CHAIN, other, other + "final = false\n")]
    assert found == [True, None, False]
    assert loaded(toml=CHAIN + "development = true\n").config.chain[0].development
    with pytest.raises(ConfigError, match="chain 5: final and development exclude each other"):
        loaded(toml=other + "final = true\ndevelopment = true\n")
