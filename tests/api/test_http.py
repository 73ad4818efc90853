"""HTTP in the default dialect, on all three listeners."""

import gzip
import re
from collections.abc import Iterator
from typing import Any

import pytest
from tests.api.schema_cases import validate_openapi
from tests.server import JSON_TYPE, Reply, Server, serving

from icefall.api.describing.glossary import FIELDS
from icefall.api.describing.param_glossary import PARAMS
from icefall.api.http.app import BODY_MAX
from icefall.api.http.row import DATA, LISTENERS, METRICS, NODE, Rest, Rpc
from icefall.api.table import rows_of

CALL = b'{"jsonrpc":"2.0","id":1,"method":"info.getNetworkID"}'
INFO = "/ext/info"


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving("up", tmp_path_factory.mktemp("up")) as server:
        yield server


def refusal(reply: Reply, listener: str = NODE) -> tuple[int, str]:
    """Status and message of a refusal that has the one shape."""
    assert reply.header("content-type") == "application/json; charset=utf-8"
    shown = reply.json()
    assert list(shown) == ["message", "statusCode", "error"]
    assert shown["statusCode"] == reply.status
    message = shown["message"]
    if listener == METRICS:
        assert isinstance(message, list)
        [message] = message
    assert isinstance(message, str)
    assert message
    return reply.status, shown["error"]


# -- refusals ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("listener", LISTENERS)
@pytest.mark.parametrize("path", ["/nothing", "/ext/nothing", "/ext/info/", "/v1/nothing", "/openapi.json/", "/%00"])
def test_what_is_not_there_is_404(path: str, listener: str, program: Server) -> None:
    for method in ("GET", "POST", "PUT"):
        assert refusal(program.ask(method, path, listener=listener), listener) == (404, "Not Found")


@pytest.mark.parametrize("listener", [DATA, METRICS])
def test_the_node_interfaces_are_not_on_the_other_ports(listener: str, program: Server) -> None:
    assert refusal(program.ask("GET", "/ext/health", listener=listener), listener) == (404, "Not Found")


def test_admin_is_not_there_unless_it_is_switched_on(program: Server) -> None:
    assert refusal(program.ask("POST", "/ext/admin", CALL)) == (404, "Not Found")


@pytest.mark.parametrize(
    ("path", "allow", "methods"),
    [
        (INFO, "POST", ["GET", "HEAD", "PUT", "DELETE", "OPTIONS", "TRACE", "FOO", "post"]),
        ("/ext/health", "GET, HEAD, POST", ["PUT", "DELETE", "OPTIONS", "get"]),
        ("/docs", "GET, HEAD", ["POST", "PUT", "OPTIONS"]),
    ],
)
def test_another_method_is_405_with_the_allowed_ones(
    path: str, allow: str, methods: list[str], program: Server
) -> None:
    for method in methods:
        reply = program.ask(method, path)
        assert (reply.status, reply.header("allow")) == (405, allow)
        if method != "HEAD":
            assert refusal(reply) == (405, "Method Not Allowed")


@pytest.mark.parametrize(
    "media", ["", "text/plain", "application/json ; x", "application/jsonp", "application/x-www-form-urlencoded"]
)
def test_another_content_type_is_415(media: str, program: Server) -> None:
    headers = {"Content-Type": media, "Content-Length": str(len(CALL))}
    assert refusal(program.ask("POST", INFO, CALL, headers)) == (415, "Unsupported Media Type")


@pytest.mark.parametrize(
    "media", ["application/json", "APPLICATION/JSON", "application/json;", "application/json; charset=utf-8"]
)
def test_json_is_json_however_it_is_written(media: str, program: Server) -> None:
    assert program.ask("POST", INFO, CALL, {"Content-Type": media}).status == 200


def _padded(size: int) -> bytes:
    return CALL[:-1] + b" " * (size - len(CALL)) + b"}"


def _chunked(body: bytes, size: int = 65_536) -> bytes:
    pieces = [body[at : at + size] for at in range(0, len(body), size)]
    return b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"


def test_a_body_of_one_mebibyte_is_the_longest(program: Server) -> None:
    assert program.ask("POST", INFO, _padded(BODY_MAX)).json()["result"] == {"networkID": "12345"}
    assert refusal(program.ask("POST", INFO, _padded(BODY_MAX + 1))) == (413, "Content Too Large")


def test_a_body_in_chunks_is_held_to_the_same_length(program: Server) -> None:
    headers = {"Content-Type": JSON_TYPE, "Transfer-Encoding": "chunked", "Host": "localhost"}
    with program.wire() as wire:
        for size, status in ((len(CALL), 200), (BODY_MAX, 200), (BODY_MAX + 1, 413)):
            reply = wire.send("POST", INFO, headers, _chunked(_padded(size)))
            assert reply.status == status
    with program.wire() as wire:
        assert refusal(wire.send("POST", INFO, headers, _chunked(_padded(BODY_MAX + 1)))) == (413, "Content Too Large")


def test_a_refused_body_does_not_hurt_the_next_request(program: Server) -> None:
    with program.wire() as wire:
        headers = {"Host": "localhost", "Content-Type": JSON_TYPE}
        wire.send("POST", INFO, headers | {"Content-Length": str(10**9)}, b"{")
        assert wire.send("POST", INFO, headers | {"Content-Length": str(len(CALL))}, CALL).status == 200


# -- Host and CORS ---------------------------------------------------------------------------------------------------

GOOD_HOSTS = [
    "localhost",
    "LOCALHOST:80",
    "localhost:abc",
    "127.0.0.1",
    "127.0.0.1:",
    "10.0.0.1:9650",
    "::1",
    "[::1]:9650",
    "",
]
BAD_HOSTS = [
    "evil.com",
    "evil.com:9650",
    "localhost.",
    "localhost.evil.com",
    "127.1",
    "[::1]",
    "[::1",
    ":9650",
    "localhost:1:2",
]
MALFORMED_HOSTS = ["nöde", "evil@localhost", "a b", "a/b"]


@pytest.mark.parametrize("listener", LISTENERS)
def test_only_addresses_and_listed_names_are_hosts(listener: str, program: Server) -> None:
    with program.wire(listener) as wire:
        for host in GOOD_HOSTS:
            assert wire.send("GET", "/docs", {"Host": host}).status == 200, host
        for host in BAD_HOSTS:
            assert refusal(wire.send("GET", "/docs", {"Host": host}), listener) == (403, "Forbidden"), host
        for host in MALFORMED_HOSTS:
            assert refusal(wire.send("GET", "/docs", {"Host": host}), listener) == (400, "Bad Request"), host


def test_an_absolute_target_names_the_host(program: Server) -> None:
    with program.wire() as wire:
        assert wire.send("GET", "http://evil.com/docs", {"Host": "localhost"}).status == 403
        assert wire.send("GET", "http://localhost/docs", {"Host": "localhost"}).status == 200


ANY_ORIGIN = {"Origin": "https://wallet.example"}


def test_any_origin_may_read(program: Server) -> None:
    for reply in (program.ask("GET", "/docs", headers=ANY_ORIGIN), program.ask("GET", "/nothing", headers=ANY_ORIGIN)):
        assert reply.header("access-control-allow-origin") == "*"
    plain = program.ask("GET", "/docs")
    assert plain.header("access-control-allow-origin") is None
    assert plain.header("vary") == "Origin"


def preflight(program: Server, method: str, headers: str | None, listener: str = NODE, path: str = INFO) -> Reply:
    requested = ANY_ORIGIN | {"Access-Control-Request-Method": method}
    if headers is not None:
        requested["Access-Control-Request-Headers"] = headers
    reply = program.ask("OPTIONS", path, headers=requested, listener=listener)
    assert (reply.status, reply.body) == (200, b"")
    return reply


@pytest.mark.parametrize(("method", "headers", "shown"), [("POST", None, None), ("GET", "content-type", "Content-Type"),
                                                         ("HEAD", "Accept, ORIGIN", "Accept, Origin")])  # fmt: skip
def test_a_preflight_gets_the_allowed_methods_and_headers(
    method: str, headers: str | None, shown: str | None, program: Server
) -> None:
    reply = preflight(program, method, headers)
    assert reply.all("access-control-allow-origin") == ["*"]
    assert reply.all("access-control-allow-methods") == [method]
    assert reply.header("access-control-allow-headers") == shown


@pytest.mark.parametrize(
    ("method", "headers"), [("PUT", None), ("POST", "authorization"), ("POST", "content-type, x-foo")]
)
def test_a_preflight_for_more_gets_no_headers(method: str, headers: str | None, program: Server) -> None:
    reply = preflight(program, method, headers)
    assert not [name for name, _ in reply.headers if name.startswith("access-control")]


@pytest.mark.parametrize("listener", [DATA, METRICS])
def test_a_browser_may_send_its_key_to_the_data_ports(listener: str, program: Server) -> None:
    reply = preflight(program, "GET", "x-service-api-key", listener, "/docs")
    assert reply.header("access-control-allow-headers") == "X-Service-Api-Key"


def test_an_unclean_path_is_redirected_and_the_header_cannot_be_split(program: Server) -> None:
    reply = program.ask("GET", "/ext//health?tag=a%0d%0ab")
    assert (reply.status, reply.header("location"), reply.body) == (301, "/ext/health?tag=a%0d%0ab", b"")
    split = program.ask("GET", "//%0d%0aX-Split:%20yes")
    assert (split.status, split.header("location"), split.header("x-split")) == (301, "/%0D%0AX-Split:%20yes", None)


# -- representation ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("accept", "packed"),
    [
        ("gzip", True),
        ("deflate, GZIP;q=0.5", True),
        ("gzip;q=0", False),
        ("gzip; q=0.0", False),
        ("br", False),
        ("", False),
        ("x-gzip", False),
    ],
)
def test_a_long_answer_is_compressed_for_clients_that_accept_it(accept: str, packed: bool, program: Server) -> None:
    plain = program.ask("GET", "/openapi.json").body
    reply = program.ask("GET", "/openapi.json", headers={"Accept-Encoding": accept})
    assert (reply.header("content-encoding") == "gzip") == packed
    assert ("Accept-Encoding" in reply.all("vary")) == packed
    assert (gzip.decompress(reply.body) if packed else reply.body) == plain


def test_a_short_answer_is_not_compressed(program: Server) -> None:
    reply = program.ask("POST", INFO, CALL, {"Accept-Encoding": "gzip"})
    assert reply.header("content-encoding") is None


@pytest.mark.parametrize("path", ["/ext/health", "/ext/health/liveness", "/docs", "/openapi.json", "/ext/metrics"])
def test_head_is_get_without_a_body(path: str, program: Server) -> None:
    get, head = program.ask("GET", path), program.ask("HEAD", path)
    assert (head.status, head.body) == (get.status, b"")
    assert head.header("content-type") == get.header("content-type")


def test_tags_filter_the_checks(program: Server) -> None:
    def checks(query: str) -> set[str]:
        return set(program.ask("GET", f"/ext/health{query}").json()["checks"])

    everything = checks("")
    assert checks("?tag=11111111111111111111111111111111LpoYY") == everything
    assert checks("?tag=nope&tag=11111111111111111111111111111111LpoYY") == everything
    assert checks("?tag=all") == checks("?other=1") == everything
    assert checks("?tag=nope") == checks("?tag=") == everything - {"P", "X", "C"}


# -- OpenAPI and docs ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("listener", LISTENERS)
def test_openapi_is_valid_and_lists_every_row(listener: str, program: Server) -> None:
    document: dict[str, Any] = program.ask("GET", "/openapi.json", listener=listener).json()
    assert document["openapi"].startswith("3.1")
    validate_openapi(document)
    assert [one["url"] for one in document["servers"]] == [program.url(listener)]
    described = [row for row in rows_of(listener) if isinstance(row, Rpc) or not row.is_file]
    assert set(document["paths"]) == {row.path for row in described}
    groups = {tag["name"] for tag in document["tags"]}
    for row in described:
        operations = document["paths"][row.path]
        if isinstance(row, Rest):
            operation = operations["get" if row.verb == "*" else row.verb.lower()]
            assert operation["summary"] == row.summary
            good = operation["responses"][str(row.success)]
            assert bool(good.get("content")) == (row.success == 200 or row.result is not str)
        else:
            operation = operations["post"]
            calls = operation["requestBody"]["content"][JSON_TYPE]["schema"]["oneOf"]
            assert row.method in [one["properties"]["method"]["const"] for one in calls]
        assert set(operation["tags"]) <= groups
    used = {name for path in document["paths"].values() for one in path.values() for name in one["tags"]}
    assert used == groups


@pytest.mark.parametrize("listener", LISTENERS)
def test_every_parameter_and_field_is_described(listener: str, program: Server) -> None:
    document: dict[str, Any] = program.ask("GET", "/openapi.json", listener=listener).json()
    missing = [
        f"{struct}.{name}"
        for struct, schema in document["components"]["schemas"].items()
        for name, field in schema.get("properties", {}).items()
        if not field.get("description")
    ]
    for path in document["paths"].values():
        for operation in path.values():
            where = operation["operationId"]
            missing += [f"{where} {one['name']}" for one in operation.get("parameters", ()) if not one["description"]]
            body = operation.get("requestBody", {}).get("content", {}).get(JSON_TYPE, {}).get("schema", {})
            for call in body.get("oneOf", ()):
                given = call["properties"]["params"]["properties"]
                missing += [f"{call['title']} {name}" for name, one in given.items() if not one["description"]]
    assert missing == []


def test_every_description_is_used(program: Server) -> None:
    fields: set[str] = set()
    params: set[str] = set()
    for listener in LISTENERS:
        document: dict[str, Any] = program.ask("GET", "/openapi.json", listener=listener).json()
        for struct, schema in document["components"]["schemas"].items():
            for name in schema.get("properties", {}):
                fields.add(f"{struct}.{name}" if f"{struct}.{name}" in FIELDS else name)
        for operation in (one for path in document["paths"].values() for one in path.values()):
            asked = [(operation["operationId"], one["name"]) for one in operation.get("parameters", ())]
            body = operation.get("requestBody", {}).get("content", {}).get(JSON_TYPE, {}).get("schema", {})
            asked += [(c["title"], n) for c in body.get("oneOf", ()) for n in c["properties"]["params"]["properties"]]
            params |= {f"{where}.{name}" if f"{where}.{name}" in PARAMS else name for where, name in asked}
    assert set(FIELDS) - fields == set()
    assert set(PARAMS) - params == set()


@pytest.mark.parametrize("listener", LISTENERS)
def test_the_page_loads_its_files_from_the_same_listener(listener: str, program: Server) -> None:
    reply = program.ask("GET", "/docs", listener=listener)
    page = reply.body.decode()
    linked = re.findall(r"(?:href|src)=[\"']?([^\"' >]+)", page)
    assert all(not one.startswith(("/", "http")) for one in linked)  # relative: behind a path of a proxy too
    for name in (one for one in linked if one.startswith("docs/")):
        answer = program.ask("GET", f"/{name}", listener=listener)
        assert answer.status == 200
        assert (answer.header("content-type") or "").startswith(
            "text/css" if name.endswith("css") else "text/javascript"
        )
        assert answer.header("x-content-type-options") == "nosniff"
    policy = reply.header("content-security-policy") or ""
    assert policy.startswith("default-src 'none'; script-src 'self';")
    assert "http" not in policy
