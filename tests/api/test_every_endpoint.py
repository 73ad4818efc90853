"""Every row of the table is called once with valid input and must give a good answer of the shape it declares."""

import time
from collections.abc import Iterator
from types import UnionType
from typing import Any, get_args

import msgspec
import pytest
from tests.api.inputs import CONTAINER, INPUTS, P_BLOCK_0, REFUSED, TX
from tests.server import Server, serving
from tests.waiting import LIMIT_S

from icefall.api.http.row import LISTENERS, Rest, Rpc, example_path
from icefall.api.table import ENDPOINTS, rows_of

# Rows that only make sense after another.
AFTER = {"admin.stopCPUProfiler": "admin.startCPUProfiler"}
# Rows that are about a transaction: it is issued once, and found again.
SPENT = ("avm.issueTx", "avm.getTx", "avm.getTxStatus")
INDEXED = tuple(row.method for row in ENDPOINTS if isinstance(row, Rpc) and row.method.startswith("index."))


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    directory = tmp_path_factory.mktemp("all")
    (directory / "data" / "plugins").mkdir(parents=True)
    with serving("up", directory, "--api-admin-enabled=true") as server:
        yield server


def good(program: Server, row: Rpc, container: str = "") -> Any:
    params = INPUTS.get(row.method)
    if params and params.get("id") == CONTAINER:
        params = params | {"id": container}
    if params and params.get("blockID") == P_BLOCK_0:
        first = program.call(row.path, "platform.getBlockByHeight", {"height": 0, "encoding": "json"})
        params = {"blockID": first["result"]["block"]["id"]}
    answer = program.call(row.path, row.method, params)
    assert set(answer) == {"jsonrpc", "result", "id"}, answer
    shapes = get_args(row.result) if isinstance(row.result, UnionType) else (row.result,)
    assert any(_fits(answer["result"], shape) for shape in shapes), answer
    return answer["result"]


METHODS = {row.method: row for row in ENDPOINTS if isinstance(row, Rpc)}


@pytest.mark.parametrize("method", [method for method in METHODS if method not in (*SPENT, *INDEXED, *REFUSED)])
def test_every_method_gives_a_good_answer(method: str, program: Server) -> None:
    if method in AFTER:
        program.call(METHODS[AFTER[method]].path, AFTER[method])
    good(program, METHODS[method])


@pytest.mark.parametrize("method", REFUSED)
def test_what_a_fresh_network_has_not_is_refused_with_its_reason(method: str, program: Server) -> None:
    answer = program.call(METHODS[method].path, method, INPUTS[method])
    assert answer["error"]["message"] == REFUSED[method]


def test_a_transaction_is_issued_and_found(program: Server) -> None:
    assert good(program, METHODS["avm.issueTx"]) == {"txID": TX["txID"]}
    deadline = time.monotonic() + LIMIT_S
    while good(program, METHODS["avm.getTxStatus"]) != {"status": "Accepted"}:
        assert time.monotonic() < deadline
    assert good(program, METHODS["avm.getTx"])["tx"] == TX["tx"]
    container = good(program, METHODS["index.getLastAccepted"])["id"]
    for method in INDEXED:
        good(program, METHODS[method], container)


def _fits(value: Any, shape: Any) -> bool:
    """Of the declared shape, without a key that is not declared."""
    raw = msgspec.json.encode(value)
    try:
        read = msgspec.json.decode(raw, type=shape)
    except msgspec.ValidationError:
        return False
    return bool(msgspec.json.decode(msgspec.json.encode(read)) == value)


# Rows with parameters in their path are about a chain, of which there is none here: test_data_* and tests/metrics.
# Webhooks and exports have tests of their own: tests/webhooks, tests/exports.
OF_CALLERS = ("/v1/webhooks", "/v1/operations", "/v2/lookingGlass")  # the last is about a chain that its body names
PLAIN = [
    (listener, row)
    for listener in LISTENERS
    for row in rows_of(listener)
    if isinstance(row, Rest) and "{" not in row.path and not row.is_stream and not row.path.startswith(OF_CALLERS)
]


@pytest.mark.parametrize(("listener", "row"), PLAIN, ids=lambda one: one if isinstance(one, str) else one.label)
def test_every_plain_endpoint_gives_a_good_answer(listener: str, row: Rest, program: Server) -> None:
    reply = program.ask("GET" if row.verb == "*" else row.verb, example_path(row), listener=listener)
    assert reply.status == 200
    assert reply.header("content-type") == row.media
    if row.media == "application/json":
        shape = dict[str, Any] if row.result is dict else row.result
        assert _fits(reply.json(), shape)
    else:
        assert reply.body


def test_inputs_are_of_rows_that_exist() -> None:
    assert set(INPUTS) | set(AFTER) | set(SPENT) <= set(METHODS)


def test_every_method_that_takes_parameters_has_an_input() -> None:
    takes = {method for method, row in METHODS.items() if msgspec.structs.fields(row.params)}
    assert not takes - set(INPUTS)
