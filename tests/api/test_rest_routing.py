"""Paths with parameters, and what a path and a query may hold: everything is read before a handler runs, or refused
with a message that names the parameter."""

import random
import sys
from typing import Any
from urllib.parse import quote

import pytest
from tests.api.rest_scene import ADDRESS, LIST, ROWS, AddressPage, Everything, Scene
from tests.api.schema_cases import validate_openapi
from tests.upstream.evm_scene import RecordingLog

from icefall.api.describing.openapi import document
from icefall.api.dialect import INTERFACE, LIVE, Dialect
from icefall.api.http.rest_params import ADDRESSES_MAX, BLOCK_NUMBER_MAX, PAGE_TOKEN_SIZE_MAX, RestBinder
from icefall.api.http.routes import PathPatterns, Route
from icefall.api.http.row import DATA, METRICS, Rest, example_path
from icefall.errors import BadRequest
from icefall.evm.enriching.reader import CURRENCIES

LOW = ADDRESS.lower()
HASH = "0x" + "Ab" * 32


@pytest.fixture(scope="module")
def scene() -> Scene:
    return Scene()


def target(address: str = ADDRESS, chain: str = "43112", query: str = "") -> str:
    return LIST.replace("{chainId}", chain).replace("{address}", address) + (f"?{query}" if query else "")


def params_of(scene: Scene, where: str) -> dict[str, Any]:
    reply = scene.get(where)
    assert reply.status == 200, reply
    params: dict[str, Any] = reply.json()["params"]
    return params


def refused(scene: Scene, where: str) -> str:
    reply = scene.get(where)
    body = reply.json()
    assert (reply.status, body["statusCode"], body["error"]) == (400, 400, "Bad Request"), reply
    assert reply.header("content-type") == "application/json; charset=utf-8"
    return str(body["message"])


# -- paths ---------------------------------------------------------------------------------------------------------


def test_a_path_gives_its_parameters(scene: Scene) -> None:
    shown = params_of(scene, target(query="pageSize=7&startBlock=0&endBlock=9223372036854775807&pageToken=aZ-_09"))
    assert shown == {
        "chain_id": "43112",
        "address": LOW,
        "page_token": "aZ-_09",
        "page_size": 7,
        "start_block": 0,
        "end_block": BLOCK_NUMBER_MAX,
    }
    assert params_of(scene, target())["page_size"] == 10


@pytest.mark.parametrize("address", [ADDRESS, LOW, "0x" + LOW[2:].upper(), ADDRESS.swapcase().replace("0X", "0x")])
def test_the_case_of_an_address_does_not_matter(address: str, scene: Scene) -> None:
    assert params_of(scene, target(address))["address"] == LOW


@pytest.mark.parametrize(("block", "read"), [("0", 0), ("17", 17), (str(BLOCK_NUMBER_MAX), BLOCK_NUMBER_MAX),
                                             (HASH, HASH.lower())])  # fmt: skip
def test_a_block_is_a_number_or_a_hash(block: str, read: object, scene: Scene) -> None:
    assert params_of(scene, f"/v1/chains/C/blocks/{block}/transactions")["block_id"] == read


def test_a_word_of_the_table_goes_before_a_value(scene: Scene) -> None:
    assert scene.get("/v1/chains/allBlocks").json()["of"] == "NoParams"
    assert scene.get("/v1/chains").json()["of"] == "NoParams"
    assert scene.get(f"/v1/chains/allBlocks/transactions/{HASH}").json()["params"]["chain_id"] == "allBlocks"


@pytest.mark.parametrize(
    "path",
    [
        target() + "/",
        target().replace("listErc20", "listErc2"),
        target().replace(":listErc20", ""),
        target().replace("/v1", ""),
        target(chain="a/b"),
        "/v1/chains/{chainId}",
        "/v1/chains/",
        "/",
        "",
        "//" + target(),
    ],
)
def test_other_paths_are_404(path: str, scene: Scene) -> None:
    reply = scene.get(path)
    assert (reply.status, reply.json()["error"]) == (404, "Not Found")


def test_the_path_as_the_table_writes_it_is_a_path_like_any_other(scene: Scene) -> None:
    assert refused(scene, LIST).startswith("address must be an address")


@pytest.mark.parametrize(
    ("where", "message"),
    [
        (target("0x1234"), "address must be an address: 0x and 40 hex digits, got 0x1234"),
        (target(ADDRESS[2:]), "address must be an address"),
        (target(ADDRESS + "0"), "address must be an address"),
        (target(ADDRESS[:-1] + "g"), "address must be an address"),
        (target(ADDRESS[:-1] + " "), "address must be an address"),
        (target("0X" + ADDRESS[2:]), "address must be an address"),
        (target(""), "address must be an address: 0x and 40 hex digits, got nothing"),
        (target("\ufffd"), 'address must be an address: 0x and 40 hex digits, got "'),
        (target("x" * 5000), "got " + "x" * 77 + "..."),
        (target(chain=""), "chainId must be an EVM chain ID, a blockchain ID or an alias of a chain, got nothing"),
        (target(chain="a b"), "chainId must be"),
        (target(chain="%zz\ufffd"), "chainId must be"),
        (target(chain="x" * 129), "chainId must be"),
        ("/v1/chains/C/blocks/-1/transactions", "blockId must be a block number between 0 and"),
        (f"/v1/chains/C/blocks/{BLOCK_NUMBER_MAX + 1}/transactions", "blockId must be a block number"),
        ("/v1/chains/C/blocks/0x12/transactions", "or a block hash: 0x and 64 hex digits, got 0x12"),
        ("/v1/chains/C/transactions/0x12", "txHash must be a hash: 0x and 64 hex digits, got 0x12"),
    ],
)
def test_a_bad_value_in_a_path_is_named(where: str, message: str, scene: Scene) -> None:
    assert message in refused(scene, where)


# -- queries -------------------------------------------------------------------------------------------------------


def test_every_kind_is_read(scene: Scene) -> None:
    query = (
        f"needed=1700000000&pageSize=500&filterSpamTokens=false&contractAddresses={ADDRESS}%2C{HASH[:42]},{LOW}"
        "&currency=nzd&sortOrder=asc&network=fuji&feature=teleporter&status=failed&timeInterval=hour"
    )
    assert params_of(scene, f"/v1/everything?{query}") == {
        "needed": 1700000000,
        "page_size": 500,
        "filter_spam_tokens": False,
        "contract_addresses": [LOW, HASH[:42].lower()],
        "currency": "nzd",
        "sort_order": "asc",
        "network": "fuji",
        "feature": "teleporter",
        "status": "failed",
        "time_interval": "hour",
    }


def test_a_list_has_commas_or_is_repeated(scene: Scene) -> None:
    other = HASH[:42].lower()
    for lists in (
        f"contractAddresses={ADDRESS},{other}",
        f"contractAddresses={ADDRESS}&contractAddresses={other}",
        f"contractAddresses={ADDRESS}%2C{other}&pageSize=3&contract%41ddresses={ADDRESS},{other}",
    ):
        found = params_of(scene, f"/v1/everything?{lists}&needed=1")
        assert found["contract_addresses"] == [LOW, other]
    repeated = "&contractAddresses=".join(f"0x{at:040x}" for at in range(ADDRESSES_MAX + 1))
    assert f"({ADDRESSES_MAX + 1} are given)" in refused(scene, f"/v1/everything?needed=1&contractAddresses={repeated}")
    wrong = f"/v1/everything?needed=1&contractAddresses={ADDRESS}&contractAddresses="
    assert refused(scene, wrong).startswith("contractAddresses must be")


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("pageSize=0", "pageSize must be a whole number between 1 and 100, got 0"),
        ("pageSize=101", "pageSize must be a whole number between 1 and 100, got 101"),
        ("pageSize=", "pageSize must be a whole number between 1 and 100, got nothing"),
        ("pageSize", "pageSize must be a whole number between 1 and 100, got nothing"),
        ("pageSize=-1", "pageSize must be"),
        ("pageSize=+5", 'pageSize must be a whole number between 1 and 100, got " 5"'),
        ("pageSize=1.0", "pageSize must be"),
        ("pageSize=1e1", "pageSize must be"),
        ("pageSize=0x10", "pageSize must be"),
        ("pageSize=%D9%A3", "pageSize must be"),  # an Arabic three
        ("pageSize=" + "9" * 5000, "pageSize must be"),
        ("pageSize=5&pageSize=5", "pageSize is given more than once"),
        ("pageSize=5&page%53ize=6", "pageSize is given more than once"),
        ("pageSize=%zz", "pageSize is not percent-encoded UTF-8, got %zz"),
        ("pageSize=%ff", "pageSize is not percent-encoded UTF-8, got %ff"),
        ("pageSize=5%", "pageSize is not percent-encoded UTF-8"),
        ("startBlock=-1", f"startBlock must be a whole number between 0 and {BLOCK_NUMBER_MAX}, got -1"),
        (f"endBlock={BLOCK_NUMBER_MAX + 1}", "endBlock must be a whole number between 0 and"),
        ("startBlock=latest", "startBlock must be"),
        ("pageToken=", "pageToken must be a nextPageToken of an earlier answer, got nothing"),
        ("pageToken=a%20b", "pageToken must be"),
        ("pageToken=" + "a" * (PAGE_TOKEN_SIZE_MAX + 1), "pageToken must be"),
    ],
)
def test_a_bad_value_in_a_query_is_named(query: str, message: str, scene: Scene) -> None:
    assert refused(scene, target(query=query)).startswith(message)


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("", "needed is missing"),
        ("needed=", "needed must be a whole number between 0 and 4294967295, got nothing"),
        ("needed=1&filterSpamTokens=TRUE", "filterSpamTokens must be true or false, got TRUE"),
        ("needed=1&currency=USD", f"currency must be one of {', '.join(CURRENCIES)}, got USD"),
        ("needed=1&sortOrder=", "sortOrder must be one of desc, asc, got nothing"),
        ("needed=1&network=local", "network must be one of mainnet, fuji, testnet, got local"),
        ("needed=1&feature=x", "feature must be one of nftIndexing, webhooks, teleporter, got x"),
        ("needed=1&contractAddresses=", "contractAddresses must be 1 to 100 addresses separated by commas"),
        (f"needed=1&contractAddresses={LOW},", "contractAddresses must be"),
        (
            "needed=1&contractAddresses=" + ",".join([LOW] * (ADDRESSES_MAX + 1)),
            "contractAddresses must be 1 to 100 addresses separated by commas, "
            "each 0x and 40 hex digits (101 are given)",
        ),
    ],
)
def test_a_bad_value_of_the_other_kinds_is_named(query: str, message: str, scene: Scene) -> None:
    assert refused(scene, f"/v1/everything?{query}").startswith(message)


def test_what_is_not_known_is_ignored(scene: Scene) -> None:
    query = "rltoken=%zz&pagesize=0&%ff=1&chainId=7&address=x&&=&sortBy=a&sortBy=b"
    shown = params_of(scene, target(query=query))
    assert (shown["page_size"], shown["chain_id"], shown["address"]) == (10, "43112", LOW)


def test_a_hundred_addresses_are_taken(scene: Scene) -> None:
    many = ["0x" + number.to_bytes(20, "big").hex() for number in range(ADDRESSES_MAX)]
    for comma in (",", ",%20"):
        params = params_of(scene, f"/v1/everything?needed=1&contractAddresses={comma.join(many)}")
        assert len(params["contract_addresses"]) == 100


# -- refusals that are not the caller's mistake --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "status", "error", "again"),
    [
        ("/missing", 404, "Not Found", None),
        ("/lost", 502, "Bad Gateway", None),
        ("/away", 503, "Service Unavailable", "1"),
        ("/bug", 500, "Internal Server Error", None),
    ],
)
def test_failures_have_the_one_shape(path: str, status: int, error: str, again: str | None) -> None:
    for listener in (DATA, METRICS):
        reply = Scene(listener=listener).get(path)
        shown = reply.json()
        assert list(shown) == ["message", "statusCode", "error"]
        assert (reply.status, shown["statusCode"], shown["error"]) == (status, status, error)
        assert isinstance(shown["message"], list if listener == METRICS else str)
        assert reply.header("retry-after") == again


def call(method: str) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": method}


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (call("test.echo"), 200),
        (call("test.bug"), 200),
        (call("test.none"), 200),
        (call("test.away"), 503),
        ([call("test.echo"), call("test.away")], 503),
        ([call("test.echo"), call("test.bug")], 200),
        ({"jsonrpc": "2.0", "method": "test.away"}, 503),
    ],
)
def test_a_json_rpc_call_that_is_unavailable_is_503(body: Any, status: int, scene: Scene) -> None:
    assert scene.post("/rpc", body).status == status


# -- anything at all -----------------------------------------------------------------------------------------------


def test_no_path_and_no_query_makes_a_500() -> None:
    dice = random.Random(20261116)
    scene = Scene()
    paths = [row.path for row in ROWS if isinstance(row, Rest) and row.path not in ("/bug", "/lost", "/away")]
    names = [
        param.name for params, path in ((AddressPage, LIST), (Everything, "")) for param in RestBinder(params, path).all
    ]
    values = ["", "0", "1", "-1", "10", "true", "asc", "usd", ADDRESS, HASH, "a,b", "%", "%zz", "%00", "%ff", "\x7f",
              "é", "\ufffd", "\ud7ff", "9" * 400, "x" * 3000, "{chainId}", "..", "+", ";", "=", "&", "#"]  # fmt: skip
    seen = set()
    for _ in range(4000):
        path = dice.choice(paths)
        while "{" in path:
            start = path.index("{")
            path = path[:start] + dice.choice(values).replace("{", "") + path[path.index("}", start) + 1 :]
        if dice.random() < 0.2:
            at = dice.randrange(len(path) + 1)
            path = path[:at] + dice.choice(values) + path[at:]
        pairs = []
        for _ in range(dice.randrange(4)):
            value = dice.choice(values)
            pairs.append(f"{dice.choice(names)}={value if dice.random() < 0.5 else quote(value)}")
        reply = scene.get(f"{path.replace('?', '')}?{'&'.join(pairs)}")
        assert reply.status in (200, 400, 404), (path, pairs, reply)
        if reply.status != 200:
            assert isinstance(reply.json()["message"], str)
        seen.add(reply.status)
    assert seen == {200, 400, 404}


# -- OpenAPI and docs --------------------------------------------------------------------------------------------


def test_openapi_describes_parameters_and_failures() -> None:
    shown = document(DATA, ROWS, "1")
    validate_openapi(shown)
    operation = shown["paths"][LIST]["get"]
    parameters = {one["name"]: one for one in operation["parameters"]}
    assert [(name, one["in"], one["required"]) for name, one in parameters.items()] == [
        ("chainId", "path", True),
        ("address", "path", True),
        ("pageToken", "query", False),
        ("pageSize", "query", False),
        ("startBlock", "query", False),
        ("endBlock", "query", False),
    ]
    assert parameters["pageSize"]["schema"] == {"type": "integer", "minimum": 1, "maximum": 100, "default": 10}
    assert parameters["startBlock"]["schema"] == {"type": "integer", "minimum": 0, "maximum": BLOCK_NUMBER_MAX}
    assert set(operation["responses"]) >= {"200", "400", "401", "403", "404", "429", "500", "502", "503"}
    everything = {one["name"]: one for one in shown["paths"]["/v1/everything"]["get"]["parameters"]}
    assert everything["needed"]["required"]
    assert everything["currency"]["schema"] == {"type": "string", "enum": list(CURRENCIES), "default": "usd"}
    assert everything["filterSpamTokens"]["schema"] == {"type": "boolean", "default": True}
    assert list(shown["components"]["securitySchemes"]) == ["ServiceKey", "GlacierKey"]
    assert "securitySchemes" not in document(METRICS, [], "1")["components"]


def test_an_example_is_a_request_that_works(scene: Scene) -> None:
    assert scene.get(target()).status == scene.get(example_path(ROWS[4])).status == 200  # type: ignore[arg-type]
    assert example_path(ROWS[5]) == "/v1/everything?needed=1711234567"  # type: ignore[arg-type]
    assert scene.get(example_path(ROWS[5])).status == 200  # type: ignore[arg-type]


def test_a_row_whose_path_names_an_unknown_field_is_refused_at_once() -> None:
    with pytest.raises(TypeError, match="blockId"):
        RestBinder(AddressPage, "/v1/{blockId}")


def test_a_binder_may_be_used_without_an_app() -> None:
    binder = RestBinder(AddressPage, LIST)
    assert binder.bind(("C", ADDRESS), "pageSize=3") == AddressPage(
        chain_id="C", address=bytes.fromhex(ADDRESS[2:]), page_size=3
    )
    with pytest.raises(BadRequest):
        binder.bind(("C", "x"), "")


def test_the_cost_of_a_lookup_does_not_depend_on_the_number_of_routes() -> None:
    def calls_made(routes: int) -> int:
        patterns = PathPatterns({LIST: Route({})} | {f"{LIST}{number}": Route({}) for number in range(routes)})
        calls: list[str] = []
        sys.setprofile(lambda frame, event, argument: calls.append(event))
        try:
            patterns.find(target().partition("?")[0])
        finally:
            sys.setprofile(None)
        return len(calls)

    assert 0 < calls_made(1) == calls_made(1000)


def test_a_verb_behind_a_parameter() -> None:
    """It counts only where a path has it; elsewhere a colon is part of the value."""
    names = ["/a/{x}", "/a/{x}:go", "/a/{x}/b:go", "/a/{x}/{y}", "/c/{x}", "/c/{x}/{y}"]
    routes = {name: Route({}) for name in names}
    patterns = PathPatterns(routes)
    for path, expected in {
        "/a/1": ("/a/{x}", ("1",)),
        "/a/1:go": ("/a/{x}:go", ("1",)),
        "/a/1:2:go": ("/a/{x}:go", ("1:2",)),
        "/a/1:stop": ("/a/{x}", ("1:stop",)),
        "/a/1/b:go": ("/a/{x}/b:go", ("1",)),
        "/a/1/c:go": ("/a/{x}/{y}", ("1", "c:go")),
        "/c/1:go": ("/c/{x}", ("1:go",)),
    }.items():
        found = patterns.find(path)
        assert found is not None, path
        assert (next(name for name, route in routes.items() if route is found[0]), found[1]) == expected


# -- a client that expects the live dialect ------------------------------------------------------------------------


class InfoLines(RecordingLog):
    """A log that remembers, and is not at level debug."""

    def is_debug(self) -> bool:
        return False


@pytest.mark.parametrize(
    ("agent", "listener", "dialect", "lines"),
    [
        ("speakeasy-sdk/typescript 0.13.0 2.500.5 1.0.0 @avalabs/avacloud-sdk", DATA, INTERFACE, 1),
        ("speakeasy-sdk/typescript 0.13.0", METRICS, INTERFACE, 1),
        ("speakeasy-sdk/typescript 0.13.0", DATA, LIVE, 0),
        ("curl/8 speakeasy-sdk/typescript", DATA, INTERFACE, 0),
    ],
)
def test_the_dialect_of_the_official_sdk_is_named_once(agent: str, listener: str, dialect: Dialect, lines: int) -> None:
    log: Any = InfoLines()
    scene = Scene(listener=listener, log=log, dialect=dialect)
    for _ in range(3):
        assert scene.get("/free", {"user-agent": agent}).status == 200
        assert scene.get("/free").status == 200
    assert ["--dialect=live" in message for message, _ in log.lines] == [True] * lines
