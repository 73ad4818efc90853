"""Random requests: never an internal error, always an answer of the right shape, and the server keeps running.

`ICEFALL_FUZZ_CASES` sets how many in all, `ICEFALL_FUZZ_SEED` which; a failure names its request.
"""

import gzip
import json
import os
import random
from collections.abc import Callable
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import msgspec
import pytest
from tests.api.inputs import INPUTS, RICH, X_ID
from tests.server import Reply, Server, serving

from icefall.api.dialect import DIALECTS, Dialect
from icefall.api.http.rest_params import RestBinder
from icefall.api.http.row import LISTENERS, METRICS, NODE, Rest, Rpc, binder_of, example_path
from icefall.api.http.rpc_params import NodeBinder
from icefall.api.http.structs import InvalidValue
from icefall.api.table import ENDPOINTS, rows_of

CASES = int(os.environ.get("ICEFALL_FUZZ_CASES", "3000"))
SEED = int(os.environ.get("ICEFALL_FUZZ_SEED", "20261115"))
# Rows that do real work each time: a few of them are enough.
SLOW = ("admin.loadVMs", "admin.memoryProfile", "admin.lockProfile", "admin.startCPUProfiler", "admin.stopCPUProfiler")
INTERNAL_ERROR = -32603


class Request(NamedTuple):
    listener: str
    method: str
    target: str
    headers: dict[str, str]
    body: bytes


# -- making requests -----------------------------------------------------------------------------------------------

ODD_VALUES: list[Any] = [
    None, True, False, 0, 1, -1, 1.5, 1e400, 2**31, 2**32, 2**63, 2**64, -(2**63),
    "", "0", "01", "-1", "1e3", " ", "\0", "é", "\ud800", "\u202e", "A" * 600, "NaN", "null", "nope",
    "../../etc/passwd", "' or 1=1 --", "%s%n", "{id}", "application", "all", "DEBUG", "off", "hex", "JSON", "cb58",
    "X", "P", X_ID, X_ID[:-1], RICH, RICH.upper(), "0x", "0x00", "0xzz",
    [], {}, [[]], [None], [RICH] * 3, ["x"] * 1100, {"address": "", "utxo": ""}, {"a": {"a": {"a": []}}},
]  # fmt: skip
ODD_TEXTS = [
    "",
    "{",
    "[",
    "null",
    "[]",
    "{}",
    '"',
    "[1,2",
    "\x00",
    "\ufeff{}",
    "tru",
    "-",
    "01",
    "1.",
    '"\\x"',
    "[" * 300,
]
ODD_BYTES = [b'"', b"\\", b"{", b"]", b",", b":", b"\xff", b"\x00", b"  ", b"9" * 40]
QUERY_NAMES = ["tag", "tags", "TAG", "x", "%zz", "", "pageToken", "pageSize", "chainId"]
QUERY_TEXTS = [
    "all",
    "application",
    "",
    "%00",
    "%zz",
    "a;b",
    "%f0%9f",
    "+",
    "=",
    "11111111111111111111111111111111LpoYY",
    "0",
    "10",
    "-1",
    "true",
]
# What stands in a path for a parameter: as its kind has it, and as no kind has it.
PATH_TEXTS = ["", "0", "1", "C", "-1", "%ff", "%zz", "%2F", "%00", "0x", "x" * 600, "..", "a%20b", "0x" + "0" * 40]
VERBS = ["GET", "POST", "HEAD", "PUT", "DELETE", "OPTIONS", "PATCH", "FOO", "get"]
HEADERS: dict[str, list[str]] = {
    "Host": ["localhost", "evil.com", "", "[::1]:1", "x" * 300],
    "Content-Type": ["application/json", "text/plain", "application/json; charset=utf-8", ";", "APPLICATION/JSON"],
    "Accept-Encoding": ["gzip", "gzip;q=0", "*", ",,,", "br"],
    "Origin": ["https://a.com", "null", "x" * 200, "*"],
    "Access-Control-Request-Method": ["POST", "PUT", "x"],
    "Access-Control-Request-Headers": ["content-type", ",,", "*"],
    "Accept": ["text/html", "*/*"],
    "If-None-Match": ["*"],
    "Range": ["bytes=0-1"],
}


class Maker:
    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        finite = [row for row in ENDPOINTS if isinstance(row, Rpc) or not row.is_stream]  # tests/api/test_stream.py
        rows = [row for row in finite if row.label not in SLOW]
        self._rows: list[Rest | Rpc] = rows * 20 + [row for row in finite if row.label in SLOW]
        # Each path once as its example has it: left to the dice, some of that many would be missed.
        self._first = [(listener, row) for row in finite if isinstance(row, Rest) for listener in row.listeners]

    def request(self) -> Request:
        if self._first:
            listener, first = self._first.pop()
            return Request(listener, "GET", example_path(first), {"Host": "localhost"}, b"")
        row = self.dice.choice(self._rows)
        if isinstance(row, Rpc):
            listener, method, body = row.listener, "POST", self._body(row)
        else:
            listener, method, body = self.dice.choice(row.listeners), row.verb.replace("*", "GET"), self._json(row)
        target = (self._path(row) if isinstance(row, Rest) else row.path) + self._query(row)
        headers = {"Host": "localhost"}
        if body:
            headers["Content-Type"] = "application/json"
        if self.dice.random() < 0.1:
            method = self.dice.choice(VERBS)
        if self.dice.random() < 0.1:
            target = self._target(target)
        if self.dice.random() < 0.05:
            listener = self.dice.choice(LISTENERS)
        if self.dice.random() < 0.1:
            name = self.dice.choice(list(HEADERS))
            headers[name] = self.dice.choice(HEADERS[name])
        if body or method == "POST":
            headers["Content-Length"] = str(len(body))
        return Request(listener, method, target, headers, body)

    def _json(self, row: Rest) -> bytes:
        """The body of a row that takes one, mostly with something wrong in it."""
        if row.body is None:
            return b""
        sent = dict(row.body_example)
        if self.dice.random() < 0.5:
            sent[self.dice.choice([*row.body.__struct_encode_fields__, "x"])] = self.dice.choice(ODD_VALUES)
        body = _dumped(sent)
        return self._mutated(body) if self.dice.random() < 0.3 else body

    def _body(self, row: Rpc) -> bytes:
        call: dict[str, Any] = {"jsonrpc": "2.0", "id": self._id(), "method": row.method, "params": self._params(row)}
        if self.dice.random() < 0.15:
            self._spoil(call)
        value: Any = call
        if self.dice.random() < 0.08:
            value = [call] * self.dice.choice([0, 1, 2, 3, 101]) + self.dice.choice([[], [1], [None], [{}], [[]]])
        body = _dumped(value)
        return self._mutated(body) if self.dice.random() < 0.3 else body

    def _id(self) -> Any:
        return self.dice.choice(ODD_VALUES) if self.dice.random() < 0.2 else 1

    def _params(self, row: Rpc) -> Any:
        params = dict(INPUTS.get(row.method) or {})
        if self.dice.random() < 0.1:
            return self.dice.choice(ODD_VALUES)
        names = list(NodeBinder(row.params).types) or ["x"]
        for _ in range(self.dice.choice([0, 1, 1, 2])):
            name = self.dice.choice(names)
            params[self.dice.choice([name, name, name.upper(), name + "x"])] = self.dice.choice(ODD_VALUES)
        return [params] if self.dice.random() < 0.1 else params

    def _spoil(self, call: dict[str, Any]) -> None:
        name = self.dice.choice(list(call))
        act = self.dice.randrange(3)
        if act == 0:
            del call[name]
        elif act == 1:
            call[name] = self.dice.choice(ODD_VALUES)
        else:
            call[name.upper()] = call.pop(name)

    def _mutated(self, body: bytes) -> bytes:
        data = bytearray(body)
        for _ in range(self.dice.choice([1, 1, 2, 5])):
            at = self.dice.randrange(len(data) + 1)
            match self.dice.randrange(6):
                case 0:
                    data[at : at + 1] = bytes([self.dice.randrange(256)])
                case 1:
                    data[at:at] = self.dice.choice(ODD_TEXTS).encode()
                case 2:
                    del data[at : at + self.dice.choice([1, 1, 4, 30])]
                case 3:
                    data[at:at] = data[max(0, at - 20) : at]
                case 4:
                    del data[at:]
                case _:
                    data[at:at] = self.dice.choice(
                        [b'"', b"\\", b"{", b"]", b",", b":", b"\xff", b"\x00", b"  ", b"9" * 40]
                    )
        return bytes(data)

    def _path(self, row: Rest) -> str:
        if self.dice.random() < 0.5:
            return example_path(row)
        return "/".join(self.dice.choice(PATH_TEXTS) if part[:1] == "{" else part for part in row.path.split("/"))

    def _query(self, row: Rest | Rpc) -> str:
        binder = binder_of(row)
        own = [param.name for param in binder.all] if isinstance(binder, RestBinder) else []
        if self.dice.random() > (0.6 if own else 0.15):
            return ""
        count = self.dice.choice([1, 1, 3, 60])
        names = QUERY_NAMES + own
        pairs = [f"{self.dice.choice(names)}={self.dice.choice(QUERY_TEXTS)}" for _ in range(count)]
        return "?" + "&".join(pairs)

    def _target(self, target: str) -> str:
        piece = quote(bytes(self.dice.randrange(256) for _ in range(self.dice.randrange(6))))
        at = self.dice.randrange(1, len(target) + 1)
        invalid: list[Callable[[], str]] = [
            lambda: target[:at] + piece + target[at:],
            lambda: target[:at],
            lambda: "/" + target,
            lambda: target + "/",
            lambda: target + "/../" + piece,
            lambda: "/ext/" + piece,
            lambda: "*",
        ]
        return self.dice.choice(invalid)()


def _dumped(value: Any) -> bytes:
    return json.dumps(value).replace("Infinity", "1e400").encode("utf-8", "surrogatepass")


# -- judging answers -----------------------------------------------------------------------------------------------

RPC_PATHS = {row.path for row in ENDPOINTS if isinstance(row, Rpc)}
REFUSALS = (400, 403, 404, 405, 413, 415)


def judge(request: Request, reply: Reply, dialect: Dialect) -> None:
    path = request.target.partition("?")[0]
    if request.method == "HEAD":
        assert not reply.body
    elif reply.status == 200 and reply.body and request.method == "POST" and path in RPC_PATHS:
        packed = reply.header("content-encoding") == "gzip"
        body = gzip.decompress(reply.body) if packed else reply.body
        _judge_rpc(json.loads(body.decode("utf-8", "replace" if dialect.bad_utf8_ignored else "strict")), dialect)
    elif reply.status in REFUSALS:
        _judge_refusal(reply, request.listener, dialect)
    elif reply.status == 503:
        assert path.startswith("/ext/health")
    elif reply.status == 401:
        assert path.startswith("/v1/")
        assert "Origin" in request.headers, "only websites need a key here"
        _judge_refusal(reply, request.listener, dialect)
    else:
        assert reply.status in (200, 201, 301), reply


def _judge_rpc(answer: Any, dialect: Dialect) -> None:
    if isinstance(answer, list):
        assert dialect.batches
        assert 1 <= len(answer) <= 100
        for one in answer:
            _judge_rpc(one, dialect)
        return
    assert answer["jsonrpc"] == "2.0"
    assert set(answer) in ({"jsonrpc", "result", "id"}, {"jsonrpc", "error", "id"}), answer
    if "error" in answer:
        error = answer["error"]
        assert set(error) == ({"code", "message", "data"} if dialect.error_data else {"code", "message"})
        assert isinstance(error["code"], int)
        assert isinstance(error["message"], str)
        assert error["code"] != INTERNAL_ERROR, error
        assert "Traceback" not in error["message"]


def _judge_refusal(reply: Reply, listener: str, dialect: Dialect) -> None:
    if listener == NODE and dialect.plain_failures:
        assert reply.header("content-type") == "text/plain; charset=utf-8"
        return
    assert reply.header("content-type") == "application/json; charset=utf-8"
    shown = reply.json()
    assert list(shown) == ["message", "statusCode", "error"]
    assert isinstance(shown["message"], list if listener == METRICS else str)
    assert shown["statusCode"] == reply.status


def assert_alive(program: Server) -> None:
    assert program.process.poll() is None
    assert program.ask("GET", "/ext/health/liveness").status == 200
    assert program.call("/ext/info", "info.getNetworkID")["result"] == {"networkID": "12345"}
    output = program.output()
    for failure in ("Traceback", "request failed", "call failed", "starting it again"):
        assert failure not in output, output[output.index(failure) :][:2000]


@pytest.mark.parametrize("name", DIALECTS)
def test_nothing_that_is_sent_can_hurt(name: str, tmp_path: Path) -> None:
    maker = Maker(SEED + len(name))
    settings = (f"--dialect={name}", "--api-admin-enabled=true", "--log-level=error")
    visited = set()
    with serving("up", tmp_path, *settings) as program, ExitStack() as stack:
        wires = {listener: stack.enter_context(closing(program.wire(listener))) for listener in LISTENERS}
        for number in range(CASES // len(DIALECTS)):
            request = maker.request()
            reply = wires[request.listener].send(request.method, request.target, request.headers, request.body)
            try:
                judge(request, reply, DIALECTS[name])
            except (AssertionError, ValueError, KeyError, TypeError) as error:
                raise AssertionError(f"case {number}, seed {SEED}: {request} -> {reply}: {error}") from error
            visited.add(request.target.partition("?")[0])
        stack.close()
        assert_alive(program)
    if CASES >= 2000:
        rows = [row for listener in LISTENERS for row in rows_of(listener) if isinstance(row, Rpc) or not row.is_stream]
        paths = {example_path(row).partition("?")[0] if isinstance(row, Rest) else row.path for row in rows}
        assert visited >= paths


def test_invalid_values_are_invalid_for_every_kind() -> None:
    """The list of values keeps up with the kinds of parameter: each refuses some of them and takes others."""
    rows = [row for row in ENDPOINTS if isinstance(binder_of(row), NodeBinder)]  # the others take no JSON
    kinds = {kind.name: kind for row in rows for kind in NodeBinder(row.params).types.values()}
    for name, kind in kinds.items():
        taken = 0
        for value in ODD_VALUES:
            with suppress(InvalidValue):
                kind.read(_dumped(value))
                taken += 1
        assert 0 < taken < len(ODD_VALUES), name
    assert all(isinstance(one, msgspec.Struct) for one in (NodeBinder(row.params).params() for row in rows))
