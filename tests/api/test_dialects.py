"""Every difference between the dialects, observed in both."""

import gzip
import json
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any, NamedTuple

import msgspec
import pytest
from bench.ledger import issue, richest, transfer
from tests.api.inputs import RICH, SCENARIO, TX
from tests.server import Server, serving
from tests.waiting import LIMIT_S

from icefall.api.dialect import BATCH_MAX, DIALECTS, DIFFERENCES, Dialect
from icefall.api.http.failure import failure_body
from icefall.api.http.row import NODE
from icefall.errors import Unavailable
from icefall.wire.avm.codec import pack_tx, unpack_tx
from icefall.wire.avm.utxos import produced
from icefall.wire.ids import id_text
from icefall.wire.text import checksum_hex

INFO, ADMIN, X, INDEX = "/ext/info", "/ext/admin", "/ext/bc/X", "/ext/index/X/block"
AVAX_ID = "2fombhL7aGPwj3KH4bfrmJwW6PVnMobf9Y2fn9GwxiAAJyFDbe"  # a transaction, and no chain


def post(server: Server, body: str, path: str = INFO) -> Any:
    """The JSON of an answer; None when it is empty."""
    reply = server.ask("POST", path, body.encode())
    assert reply.status == 200
    return reply.json() if reply.body else None


def code(answer: Any) -> int:
    return int(answer["error"]["code"])


CALL = '{"jsonrpc":"2.0","id":1,"method":"info.getNetworkID"}'
RESULT = {"networkID": "12345"}


# -- one observation a difference ----------------------------------------------------------------------------------


def method_not_found(server: Server) -> list[int]:
    return [code(server.call(INFO, method)) for method in ("info.nope", "nope.getNetworkID", "getNetworkID", "a.b.c")]


def bad_params(server: Server) -> list[int]:
    wrong: list[tuple[str, Any]] = [("info.getNetworkID", "x"), ("info.getBlockchainID", {"alias": 1})]
    return [code(server.call(INFO, method, params)) for method, params in wrong]


def invalid_request(server: Server) -> list[int]:
    return [code(post(server, body)) for body in ("5", '"x"', "true", '{"jsonrpc":2}', '{"jsonrpc":"2.0","method":5}')]


def batches(server: Server) -> list[Any]:
    answers = [post(server, f"[{','.join([CALL] * count)}]") for count in (0, 1, BATCH_MAX, BATCH_MAX + 1)]
    return [len(answer) if isinstance(answer, list) else code(answer) for answer in answers]


def null_id_answered(server: Server) -> Any:
    return post(server, CALL.replace('"id":1', '"id":null'))


def no_request_answered(server: Server) -> list[Any]:
    bodies = ("{}", '{"id":1}', '{"jsonrpc":"2.0"}', '{"jsonrpc":"2.0","id":1}', '{"jsonrpc":"1.0","method":"a.b"}')
    answers = [post(server, body) for body in bodies]
    return [answer and (code(answer), answer["id"]) for answer in answers]


def trailing_bytes_ignored(server: Server) -> list[Any]:
    answers = [post(server, CALL + more) for more in (" x", "}", CALL)]
    return [answer.get("result") or code(answer) for answer in answers]


def bad_utf8_ignored(server: Server) -> list[Any]:
    bodies = [b'{"jsonrpc":"2.0","id":"\xff","method":"info.getNetworkID"}',
              b'{"jsonrpc":"2.0","ID":"\xff","method":"info.getNetworkID"}',
              b'{"jsonrpc":"2.0","id":1,"method":"info.getBlockchainID","params":{"alias":"\xc3"}}']  # fmt: skip
    answers = [server.ask("POST", INFO, body).body for body in bodies]
    return [json.loads(answer)["error"]["code"] if b"error" in answer else answer[-8:] for answer in answers]


def plain_failures(server: Server) -> list[Any]:
    replies = [
        server.ask("GET", INFO, headers={"Host": "evil.com"}),
        server.ask("GET", "/ext/nothing"),
        server.ask("GET", INFO),
        server.ask("POST", INFO, headers={"Content-Type": "application/json", "Content-Length": str((1 << 20) + 1)}),
        server.ask("POST", INFO, CALL.encode(), headers={"Content-Type": "text/plain"}),
    ]
    return [failure(str(reply.header("content-type")), reply.body) for reply in replies]


def has_links_page(server: Server) -> int:
    return server.ask("GET", "/").status


def failure(media: str, body: bytes) -> Any:
    if media == "application/json; charset=utf-8":
        shown = json.loads(body)
        assert list(shown) == ["message", "statusCode", "error"]
        return shown["statusCode"], shown["error"]
    assert media == "text/plain; charset=utf-8"
    return body.decode()


def error_data(server: Server) -> list[Any]:
    errors = [server.call(INFO, "info.nope")["error"], post(server, "{")["error"], post(server, '{"id":7}')["error"]]
    return [error.get("data", "absent") for error in errors]


def set_level_result(server: Server) -> Any:
    return server.call(ADMIN, "admin.setLoggerLevel", {"loggerName": "P", "logLevel": "WARN"})["result"]


def no_aliases(server: Server) -> Any:
    return server.call(ADMIN, "admin.getChainAliases", {"chain": AVAX_ID})["result"]


def alias_names_chain(server: Server) -> Any:
    server.call(ADMIN, "admin.aliasChain", {"chain": "X", "alias": "mine"})
    answers = [server.call(ADMIN, "admin.getChainAliases", {"chain": name}) for name in ("X", "mine")]
    return [answer["result"]["aliases"][-1] if "result" in answer else "error" for answer in answers]


def endpoint_must_exist(server: Server) -> list[Any]:
    names = ["nowhere", "bc/nowhere", "free", "health", "index/X", "free"]
    answers = [server.call(ADMIN, "admin.alias", {"endpoint": one, "alias": "free"}) for one in names[:4]]
    answers += [server.call(ADMIN, "admin.alias", {"endpoint": one, "alias": f"{one}-2"}) for one in names[4:]]
    return ["error" if "error" in answer else answer["result"] for answer in answers]


def admin_params_required(server: Server) -> list[Any]:
    calls = [
        ("alias", {"alias": "one"}),
        ("alias", {"endpoint": "health"}),
        ("aliasChain", {"chain": "X"}),
        ("aliasChain", {"alias": "two"}),
        ("getChainAliases", {}),
    ]
    answers = [server.call(ADMIN, f"admin.{name}", params) for name, params in calls]
    return [code(answer) if "error" in answer else answer["result"] for answer in answers]


def alias_of_endpoint(server: Server) -> list[Any]:
    shown = server.call(ADMIN, "admin.alias", {"endpoint": "health/liveness", "alias": "alive"})["result"]
    return [shown, server.ask("GET", "/ext/alive").status]


def head_everywhere(server: Server) -> Any:
    reply = server.ask("HEAD", "/ext/health")
    assert not reply.body
    return reply.status


def shows_idle_times(server: Server) -> list[str]:
    return list(server.ask("GET", "/ext/health").json()["checks"]["network"]["message"])


def four_tx_states(server: Server) -> list[str]:
    with gzip.open(SCENARIO) as lines:
        accepted = [row for row in map(json.loads, lines) if row["chain"] == "X" and row["accepted"]]
    early = accepted[-1]  # what it spends does not exist yet
    unsigned = unpack_tx(checksum_hex.decode(accepted[0]["tx"])).unsigned
    malformed = pack_tx(unsigned)  # without credentials
    for tx in (early["tx"], checksum_hex.encode(malformed.raw)):
        assert "error" in server.call(X, "avm.issueTx", {"tx": tx})
    requested = (early["txID"], id_text(malformed.txid), AVAX_ID)
    return [server.call(X, "avm.getTxStatus", {"txID": txid})["result"]["status"] for txid in requested]


def remembers_all_refusals(server: Server) -> str:
    first = transfer(richest(server), 3)
    child = {"tx": checksum_hex.encode(transfer(produced(first)[0], 1).raw)}
    refused = server.call(X, "avm.issueTx", child)["error"]["message"]
    issue(server, first)
    answer = server.call(X, "avm.issueTx", child)
    return "refused again" if answer.get("error", {}).get("message") == refused else str(list(answer["result"]))


def shows_source_chain(server: Server) -> list[Any]:
    requested: list[dict[str, Any]] = [{"addresses": [RICH], "sourceChain": "P"}, {"addresses": [RICH], "limit": 1}]
    return [server.call(X, "avm.getUTXOs", params)["result"].get("sourceChain", "absent") for params in requested]


def range_is_array(server: Server) -> Any:
    server.call(X, "avm.issueTx", {"tx": TX["tx"]})
    deadline = time.monotonic() + LIMIT_S
    while server.call(INDEX, "index.getLastAccepted").get("result") is None:
        assert time.monotonic() < deadline
    shown = server.call(INDEX, "index.getContainerRange", {"startIndex": 0, "numToFetch": 5})["result"]
    return [one["index"] for one in shown] if isinstance(shown, list) else list(shown)


def index_encoding_checked(server: Server) -> list[Any]:
    container = server.call(INDEX, "index.getLastAccepted")["result"]["id"]
    asked = [{"id": container, "encoding": encoding} for encoding in ("hex", "cb59", 5)]
    answers = [server.call(INDEX, f"index.{name}", params) for name in ("getIndex", "isAccepted") for params in asked]
    return [code(answer) if "error" in answer else next(iter(answer["result"].values())) for answer in answers]


def empty_range(server: Server) -> Any:
    answer = server.call(INDEX, "index.getContainerRange", {"startIndex": 0, "numToFetch": 0})
    return answer["error"]["message"] if "error" in answer else answer["result"]


def block_by_container_id(server: Server) -> Any:
    container = server.call(INDEX, "index.getLastAccepted")["result"]["id"]
    answer = server.call("/ext/bc/X", "avm.getBlock", {"blockID": container})
    return "not found" if "error" in answer else "the block"


def alias_in_bytes(server: Server) -> Any:
    answer = server.call(ADMIN, "admin.alias", {"endpoint": "health", "alias": "é" * 300})
    return answer["error"]["message"] if "error" in answer else answer["result"]


# -- and what it must be -----------------------------------------------------------------------------------------


class Case(NamedTuple):
    observe: Callable[[Server], Any]
    interface: Any
    live: Any


LEVELS = {"loggerLevels": {"P": {"logLevel": "WARN", "displayLevel": "INFO"}}}
NOTHING_READ = {"jsonrpc": "", "method": "", "params": None, "id": None}
CASES = (
    Case(method_not_found, [-32601] * 4, [-32000] * 4),
    Case(bad_params, [-32602] * 2, [-32000] * 2),
    Case(invalid_request, [-32600] * 5, [-32700] * 5),
    Case(batches, [-32600, 1, BATCH_MAX, -32600], [-32700] * 4),
    Case(null_id_answered, {"jsonrpc": "2.0", "result": RESULT, "id": None}, None),
    Case(
        no_request_answered,
        [(-32600, None), (-32600, 1), (-32600, None), (-32600, 1), (-32600, None)],
        [None, (-32600, 1), None, (-32000, 1), None],
    ),
    Case(trailing_bytes_ignored, [-32700] * 3, [RESULT] * 3),
    Case(bad_utf8_ignored, [-32700] * 3, [b'd":"\xff"}\n'] * 2 + [-32000]),
    Case(has_links_page, 200, 404),
    Case(
        plain_failures,
        [
            (403, "Forbidden"),
            (404, "Not Found"),
            (405, "Method Not Allowed"),
            (413, "Content Too Large"),
            (415, "Unsupported Media Type"),
        ],
        [
            "invalid host specified\n",
            "404 page not found\n",
            "rpc: POST method required, received GET",
            "a request body may be 1048576 bytes long at most",
            "rpc: unrecognized Content-Type: text/plain",
        ],
    ),
    Case(error_data, ["absent"] * 3, [None, NOTHING_READ, {**NOTHING_READ, "id": 7}]),
    Case(set_level_result, {}, LEVELS),
    Case(no_aliases, {"aliases": []}, {"aliases": None}),
    Case(alias_names_chain, ["mine", "mine"], ["error", "error"]),
    Case(endpoint_must_exist, ["error", "error", "error", {}, {}, {}], [{}, "error", "error", "error", {}, {}]),
    Case(admin_params_required, [-32602] * 5, [{}, {}, {}, {}, -32000]),
    Case(alias_of_endpoint, [{}, 200], [{}, 404]),
    Case(head_everywhere, 200, 405),
    Case(
        shows_idle_times,
        ["connectedPeers", "sendFailRate", "timeSinceLastMsgReceived", "timeSinceLastMsgSent"],
        ["connectedPeers", "sendFailRate"],
    ),
    Case(four_tx_states, ["Unknown", "Rejected", "Accepted"], ["Unknown", "Unknown", "Accepted"]),
    Case(shows_source_chain, ["P", "absent"], ["absent", "absent"]),
    Case(range_is_array, ["0"], ["containers"]),
    Case(index_encoding_checked, ["0", -32602, -32602, True, -32602, -32602], ["0"] * 3 + [True] * 3),
    Case(empty_range, None, "numToFetch must be in [1,1024] but is 0"),
    Case(block_by_container_id, "the block", "not found"),
    Case(alias_in_bytes, {}, "alias length is too long"),
    Case(remembers_all_refusals, "['txID']", "refused again"),
)


OF_CHAIN_DATA = {
    "prices_are_numbers",  # observed in test_data_nfts.py
    "index_status_is_upper",
    "unknown_is_empty",  # observed in test_data_names.py
}


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Server]]:
    with ExitStack() as stack:
        yield {
            name: stack.enter_context(
                serving(
                    "node",
                    tmp_path_factory.mktemp(name),
                    f"--dialect={name}",
                    "--api-admin-enabled=true",
                    "--index-enabled=true",
                )
            )
            for name in DIALECTS
        }


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.observe.__name__)
def test_a_difference(case: Case, dialect: str, programs: dict[str, Server]) -> None:
    assert case.observe(programs[dialect]) == getattr(case, dialect)


def test_unavailable_has_the_shape_of_other_failures() -> None:
    shown = {name: failure(*failure_body(Unavailable("not now"), NODE, dialect)) for name, dialect in DIALECTS.items()}
    assert shown == {"interface": (503, "Service Unavailable"), "live": "not now"}


def test_every_difference_has_a_case() -> None:
    fields = [field.name for field in msgspec.structs.fields(Dialect) if field.name != "name"]
    assert list(DIFFERENCES) == fields
    assert {case.observe.__name__ for case in CASES} | OF_CHAIN_DATA == set(fields)
    for field in fields:
        assert len({repr(getattr(dialect, field)) for dialect in DIALECTS.values()}) == 2, f"{field} differs nowhere"
