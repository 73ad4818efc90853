"""Requests made to cost much more than they should: each is refused early, or answered with bounded work and size."""

import asyncio
import json
from collections.abc import Awaitable
from typing import Any

import pytest
from tests.counted_calls import calls_of

from icefall.api.dialect import DIALECTS, INTERFACE
from icefall.api.http import jsonrpc
from icefall.api.http.app import App
from icefall.api.http.asgi import AsgiApp
from icefall.api.http.assemble import bases_of, counter_labels, routes_of
from icefall.api.http.guards import Hosts, Origins
from icefall.api.http.jsonrpc import ID_SIZE_MAX, METHOD_SIZE_MAX, RpcService
from icefall.api.http.routes import Routes
from icefall.api.http.row import NODE, Rest, Rpc
from icefall.api.node.addresses import ADDRESS_SIZE_MAX, AddressParser
from icefall.errors import CallFailed, NotFound
from icefall.node.chains import ALIASES_FOLLOWED_MAX
from icefall.observe.counters import CallCounters
from icefall.observe.log import quiet
from icefall.wire.text.go_text import quote
from icefall.wire.text.jsonscan import compact

MEBIBYTE = 1 << 20
CALLS_MAX = 5_000  # functions called for a megabyte; a second of work was one call per character


async def echo(_: Any) -> dict[str, str]:
    return {"text": "x" * 1000}


ROWS: list[Rest | Rpc] = [
    Rpc(path="/ext/admin", method="admin.echo", handler=echo, summary="For a test.", result=dict),
    Rpc(path="/ext/info", method="info.echo", handler=echo, summary="For a test.", result=dict),
]


class Aliases:
    """The part of NodeReader that routes use."""

    def __init__(self, stored: dict[str, str]) -> None:
        self._stored = stored

    async def endpoint_of(self, alias: str) -> str | None:
        return self._stored.get(alias)


def service(dialect: str = "interface") -> RpcService:
    counters = CallCounters(counter_labels(ROWS), None)
    found = routes_of(ROWS, lambda _: True, {}, DIALECTS[dialect], counters)["/ext/info"].service
    assert found is not None
    return found


def routes(stored: dict[str, str]) -> Routes:
    paths = routes_of(ROWS, lambda _: True, {}, INTERFACE, CallCounters(counter_labels(ROWS), None))
    return Routes(paths, bases_of(paths), Aliases(stored), full=True)  # type: ignore[arg-type]


def answered(body: bytes, dialect: str = "interface") -> Any:
    return json.loads(asyncio.run(service(dialect).answer(body)).body)


# -- long ids, names and addresses -----------------------------------------------------------------------------------


@pytest.mark.parametrize("dialect", list(DIALECTS))
@pytest.mark.parametrize("filling", ["<", "\\\\", "\\u003c", " "])
def test_a_long_id_is_refused_and_not_echoed(filling: str, dialect: str) -> None:
    long_id = '"' + filling * (1_000_000 // len(filling)) + '"'
    body = f'{{"jsonrpc":"2.0","id":{long_id},"method":"info.echo"}}'.encode()
    answer = answered(body, dialect)
    assert answer["id"] is None
    assert answer["error"]["code"] == -32600
    assert answer["error"]["message"] == f"id may be {ID_SIZE_MAX} bytes long at most, got {len(long_id)}"
    assert calls_of(lambda: answered(body, dialect)) < CALLS_MAX


def test_an_id_of_the_longest_size_is_echoed() -> None:
    longest = "<" * (ID_SIZE_MAX - 2)
    assert answered(f'{{"jsonrpc":"2.0","id":"{longest}","method":"info.echo"}}'.encode())["id"] == longest


def test_a_long_id_of_a_request_that_cannot_be_read_is_not_echoed_either() -> None:
    answer = answered(b'{"jsonrpc":"2.0","id":"%b","method":5}' % (b"<" * 100_000))
    assert (answer["id"], answer["error"]["code"]) == (None, -32600)


@pytest.mark.parametrize("dialect", list(DIALECTS))
def test_a_long_method_is_refused(dialect: str) -> None:
    body = b'{"jsonrpc":"2.0","id":1,"method":"%b"}' % (b"\\u0001" * 170_000)
    answer = answered(body, dialect)
    assert answer["error"]["message"] == f"method may be {METHOD_SIZE_MAX} characters long at most, got 170000"
    assert calls_of(lambda: answered(body, dialect)) < CALLS_MAX


def test_a_long_address_is_refused_before_it_is_read() -> None:
    parser = AddressParser(None, b"", "X", "local")  # type: ignore[arg-type] # the chains are not asked
    with pytest.raises(CallFailed) as caught:
        asyncio.run(parser.parse("\x01" * MEBIBYTE))
    assert str(caught.value) == f"an address may be {ADDRESS_SIZE_MAX} characters long at most, got {MEBIBYTE}"


@pytest.mark.parametrize("text", ["<" * MEBIBYTE, "\x01" * MEBIBYTE, '"\\' * (MEBIBYTE // 2)], ids=["<", "1", "quote"])
def test_escaping_is_not_done_character_by_character(text: str) -> None:
    assert calls_of(lambda: quote(text)) < CALLS_MAX
    raw = json.dumps(text).encode()[: MEBIBYTE - 1] + b'"'
    assert calls_of(lambda: compact(raw)) < CALLS_MAX


# -- aliases of aliases ----------------------------------------------------------------------------------------------


def test_a_long_chain_of_aliases_is_a_clear_error() -> None:
    stored = {f"a{number}": f"a{number + 1}" for number in range(1000)} | {"a1000": "info"}
    with pytest.raises(NotFound, match=f"followed {ALIASES_FOLLOWED_MAX} times at most"):
        asyncio.run(routes(stored).find("/ext/a0"))
    first = 1001 - ALIASES_FOLLOWED_MAX
    assert asyncio.run(routes(stored).find(f"/ext/a{first}")) is not None


# -- batches ---------------------------------------------------------------------------------------------------------


def test_the_answer_of_a_batch_is_capped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jsonrpc, "BATCH_ANSWER_MAX", 5000)
    calls = [{"jsonrpc": "2.0", "id": number, "method": "info.echo"} for number in range(20)]
    answers = answered(json.dumps(calls).encode())
    assert [answer["id"] for answer in answers] == list(range(20))
    assert [number for number in range(20) if "result" in answers[number]] == list(range(5))
    assert answers[5]["error"]["message"] == (
        "not executed: the answer of this batch has reached 5000 bytes; send the remaining calls in another batch"
    )


def test_the_cap_of_a_batch_is_4_mib() -> None:
    assert jsonrpc.BATCH_ANSWER_MAX == 4 * MEBIBYTE


# -- admin and web pages ---------------------------------------------------------------------------------------------


def ask(origins: list[str], path: str, origin: str, *, preflight: bool) -> dict[str, str]:
    """The headers of the answer."""
    counters = CallCounters(counter_labels(ROWS), None)
    found = routes({"boss": "admin", "data": "info"})
    rules = Origins(origins, ["Content-Type"])
    app = AsgiApp(App(NODE, found, INTERFACE, Hosts(["*"]), rules, counters, quiet(), [], 5.0))
    headers = [(b"origin", origin.encode()), (b"content-type", b"application/json")]
    if preflight:
        headers += [(b"access-control-request-method", b"POST"), (b"access-control-request-headers", b"content-type")]
    scope = {"type": "http", "method": "OPTIONS" if preflight else "POST", "path": path, "headers": headers}
    sent: list[dict[str, Any]] = []
    body = b'{"jsonrpc":"2.0","id":1,"method":"x.y"}'

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    asyncio.run(_run(app(scope, receive, send)))
    return {name.decode(): value.decode() for name, value in sent[0]["headers"]}


async def _run(waited: Awaitable[None]) -> None:
    await waited


@pytest.mark.parametrize("preflight", [True, False])
@pytest.mark.parametrize("path", ["/ext/admin", "/ext/boss"])
def test_any_origin_is_not_one_that_may_call_admin(path: str, preflight: bool) -> None:
    allow = "access-control-allow-origin"
    for patterns in (["*"], ["https://*"], ["https://*.example"], ["http://a.example"]):
        assert allow not in ask(patterns, path, "https://b.example", preflight=preflight)
    for patterns in (["https://b.example"], ["*", "https://B.example"]):
        assert ask(patterns, path, "https://b.example", preflight=preflight)[allow] == "https://b.example"


@pytest.mark.parametrize("preflight", [True, False])
@pytest.mark.parametrize("path", ["/ext/info", "/ext/data"])
def test_any_origin_may_call_the_others(path: str, preflight: bool) -> None:
    assert ask(["*"], path, "https://b.example", preflight=preflight)["access-control-allow-origin"] == "*"


def test_another_spelling_of_the_admin_path_is_not_a_way_around() -> None:
    assert "access-control-allow-origin" not in ask(["*"], "/ext//admin", "https://b.example", preflight=True)
