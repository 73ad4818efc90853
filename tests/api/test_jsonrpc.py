"""JSON-RPC 2.0 in the default dialect."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from tests.server import Reply, Server, serving

from icefall.api.dialect import BATCH_MAX

INFO, ADMIN, X = "/ext/info", "/ext/admin", "/ext/bc/X"
RESULT = {"networkID": "12345"}
X_ID = "2eNy1mUFdmaxXNj1eQHUe7Np4gju9sJsEtWQ4MX3ToiNKuADed"
PARSE, INVALID, NOT_FOUND, BAD_PARAMS, FAILED = -32700, -32600, -32601, -32602, -32000


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving("node", tmp_path_factory.mktemp("node"), "--api-admin-enabled=true") as server:
        yield server


def post(node: Server, body: str | bytes, path: str = INFO) -> Reply:
    raw = body.encode() if isinstance(body, str) else body
    reply = node.ask("POST", path, raw, {"Content-Type": "application/json", "Content-Length": str(len(raw))})
    assert reply.status == 200
    return reply


def call(method: str = "info.getNetworkID", **more: Any) -> str:
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": method} | more)


def code(answer: Any) -> int:
    assert set(answer) == {"jsonrpc", "error", "id"}
    assert answer["jsonrpc"] == "2.0"
    assert set(answer["error"]) == {"code", "message"}
    assert answer["error"]["message"]
    return int(answer["error"]["code"])


# -- the envelope --------------------------------------------------------------------------------------------------


def test_the_answer_has_the_three_keys_in_order(node: Server) -> None:
    reply = post(node, call())
    assert reply.body == b'{"jsonrpc":"2.0","result":{"networkID":"12345"},"id":1}\n'
    assert reply.header("content-type") == "application/json; charset=utf-8"
    assert reply.header("x-content-type-options") == "nosniff"
    assert str(reply.header("node-id")).startswith("NodeID-")


IDS = ["1", "0", "-1", "-0", "1.50", "1E400", "12345678901234567890123456789", '"x"', '""', '"\\u00e9"', '"é"', "true",
       "false", "null", "{}", "[]", "[1,2]", '{"a":[1]}', '"a\\"b\\\\"']  # fmt: skip


@pytest.mark.parametrize("raw", IDS)
def test_an_id_of_any_type_comes_back_as_it_was_written(raw: str, node: Server) -> None:
    reply = post(node, f'{{"jsonrpc":"2.0","id":{raw},"method":"info.getNetworkID"}}')
    assert reply.body.endswith(f',"id":{raw}}}\n'.encode())


def test_an_id_is_compacted_and_cannot_break_out_of_html(node: Server) -> None:
    reply = post(node, '{"jsonrpc":"2.0","id":{"a": [1, "< & >"]},"method":"info.getNetworkID"}')
    assert reply.body.endswith(b',"id":{"a":[1,"\\u003c \\u0026 \\u003e"]}}\n')


def test_a_notification_is_executed_and_gets_no_answer(node: Server) -> None:
    params = {"endpoint": "info", "alias": "quiet"}
    reply = post(node, json.dumps({"jsonrpc": "2.0", "method": "admin.alias", "params": params}), ADMIN)
    assert reply.body == b""
    assert reply.header("content-type") is None
    assert node.call("/ext/quiet", "info.getNetworkID")["result"] == RESULT


@pytest.mark.parametrize("method", ["info.nope", "nope", "info.isBootstrapped"])
def test_a_notification_that_fails_is_silent_too(method: str, node: Server) -> None:
    assert post(node, json.dumps({"jsonrpc": "2.0", "method": method, "params": {"chain": "nope"}})).body == b""


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("", PARSE),
        (" \n", PARSE),
        ("{", PARSE),
        ("nope", PARSE),
        (call() + "x", PARSE),
        (call() + call(), PARSE),
        (b'{"jsonrpc":"2.0","id":1,"method":"\x00"}', PARSE),
        (b"\xef\xbb\xbf{}", PARSE),
        ("[" * 10_001 + "]" * 10_001, PARSE),
        ("[" * 200_000, PARSE),
        ("5", INVALID),
        ("null", INVALID),
        ("{}", INVALID),
        ('{"jsonrpc":"1.0","id":1,"method":"info.getNetworkID"}', INVALID),
        ('{"jsonrpc":2.0,"id":1,"method":"info.getNetworkID"}', INVALID),
        ('{"jsonrpc":"2.0","id":1}', INVALID),
        ('{"jsonrpc":"2.0","id":1,"method":null}', INVALID),
        ('{"jsonrpc":"2.0","id":1,"method":["x"]}', INVALID),
        (call("info.nope"), NOT_FOUND),
        (call("avm.getHeight"), NOT_FOUND),
        (call("INFO.getNetworkID"), NOT_FOUND),
        (call("info.GetNetworkID"), NOT_FOUND),
        (call("info.getNetworkID.x"), NOT_FOUND),
        (call(params="x"), BAD_PARAMS),
        (call(params=[[]]), BAD_PARAMS),
        (call("info.getBlockchainID", params={"alias": 1}), BAD_PARAMS),
        (call("info.getBlockchainID", params={"alias": "nope"}), FAILED),
    ],
    ids=lambda one: repr(one)[:60],
)
def test_errors_have_their_code(body: str | bytes, expected: int, node: Server) -> None:
    assert code(post(node, body).json()) == expected


def test_keys_may_be_in_any_case_and_unknown_ones_are_ignored(node: Server) -> None:
    body = '{"JSONRPC":"2.0","Id":1,"METHOD":"info.getBlockchainID","Params":{"ALIAS":"X","more":[1]},"more":{}}'
    assert post(node, body).json()["result"] == {"blockchainID": X_ID}


def test_of_equal_keys_the_last_wins(node: Server) -> None:
    params = '{"alias":"C","Alias":"P","alias":"X","alias":null}'
    body = f'{{"jsonrpc":"2.0","id":1,"id":2,"method":"x","method":"info.getBlockchainID","params":{params}}}'
    answer = post(node, body).json()
    assert (answer["id"], answer["result"]) == (2, {"blockchainID": X_ID})


# -- parameters ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("params", ["", ',"params":null', ',"params":{}', ',"params":[]', ',"params":[null]',
                                    ',"params":[{}]', ',"params":[{},{}]', ',"params":{"x":1}'])  # fmt: skip
def test_absent_parameters_may_be_written_in_many_ways(params: str, node: Server) -> None:
    assert post(node, f'{{"jsonrpc":"2.0","id":1,"method":"info.getNetworkID"{params}}}').json()["result"] == RESULT


@pytest.mark.parametrize("params", [{"alias": "X"}, [{"alias": "X"}], [{"alias": "X"}, {"alias": "C"}], {"Alias": "X"}])
def test_parameters_are_an_object_or_the_first_of_a_list(params: Any, node: Server) -> None:
    assert node.call(INFO, "info.getBlockchainID", params)["result"] == {"blockchainID": X_ID}


@pytest.mark.parametrize("height", ["0", '"0"', '"00"', "null", '"000000000000000000000"'])
def test_an_integer_is_a_number_or_its_digits(height: str, node: Server) -> None:
    answer = post(node, f'{{"jsonrpc":"2.0","id":1,"method":"avm.getBlockByHeight","params":{{"height":{height}}}}}', X)
    assert "result" in answer.json()


@pytest.mark.parametrize("height", ["-1", "-0", "0.0", "1e0", '""', '"-1"', '"+1"', '" 1"', '"0x1"', '"1_0"', '"1.0"',
                                    '"\\u0031"', '"\u0661"', "true", "[]", "{}", str(2**64), f'"{2**64}"'])  # fmt: skip
def test_anything_else_is_no_integer(height: str, node: Server) -> None:
    answer = post(node, f'{{"jsonrpc":"2.0","id":1,"method":"avm.getBlockByHeight","params":{{"height":{height}}}}}', X)
    assert code(answer.json()) == BAD_PARAMS


def test_an_integer_has_the_bounds_of_its_type(node: Server) -> None:
    assert code(node.call(X, "avm.getBlockByHeight", {"height": 2**64 - 1})) == FAILED  # read, and not there
    address = "X-local18jma8ppw3nhx5r4ap8clazz0dps7rv5u00z96u"
    assert "result" in node.call(X, "avm.getUTXOs", {"addresses": [address], "limit": 2**32 - 1})
    assert code(node.call(X, "avm.getUTXOs", {"addresses": [address], "limit": 2**32})) == BAD_PARAMS


# -- batches -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [1, 2, BATCH_MAX])
def test_a_batch_is_answered_in_its_order(count: int, node: Server) -> None:
    answers = post(node, f"[{','.join(call(id=number) for number in range(count))}]").json()
    assert [answer["id"] for answer in answers] == list(range(count))
    assert all(answer["result"] == RESULT for answer in answers)


@pytest.mark.parametrize("count", [0, BATCH_MAX + 1, 5_000])
def test_a_batch_holds_one_to_a_hundred_calls(count: int, node: Server) -> None:
    answer = post(node, f"[{','.join([call()] * count)}]").json()
    assert code(answer) == INVALID
    assert answer["id"] is None
    assert str(count) in answer["error"]["message"]


def test_a_wrong_call_does_not_spoil_its_batch(node: Server) -> None:
    items = [
        call(),
        "1",
        "{}",
        "[]",
        call("info.nope", id=2),
        call(id=None),
        '{"jsonrpc":"2.0","method":5,"id":4}',
        "null",
    ]
    answers = post(node, f" [ {' , '.join(items)} ] ").json()
    shown = [answer.get("result") or answer["error"]["code"] for answer in answers]
    assert shown == [RESULT, INVALID, INVALID, INVALID, NOT_FOUND, RESULT, INVALID, INVALID]
    assert [answer["id"] for answer in answers] == [1, None, None, None, 2, None, 4, None]


def test_the_notifications_of_a_batch_are_not_answered(node: Server) -> None:
    quiet = '{"jsonrpc":"2.0","method":"info.getNetworkID"}'
    assert post(node, f"[{quiet},{quiet}]").body == b""
    assert [answer["id"] for answer in post(node, f"[{quiet},{call(id=7)},{quiet}]").json()] == [7]


def test_a_batch_sees_what_it_has_changed(node: Server) -> None:
    items = [
        call("admin.aliasChain", params={"chain": "X", "alias": "inbatch"}),
        call("admin.getChainAliases", params={"chain": X_ID}),
    ]
    answers = post(node, f"[{','.join(items)}]", ADMIN).json()
    assert "inbatch" in answers[1]["result"]["aliases"]
