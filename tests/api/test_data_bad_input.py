"""Every parameter of every chain data endpoint with wrong values: 400 that names it, never 500."""

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest
from tests.api.data_scene import InProcess, put_chains
from tests.server import Reply

from icefall.api.data import endpoints
from icefall.api.http.rest_params import (
    ADDRESS,
    ADDRESSES,
    BLOCK_ID,
    BOOLEAN,
    CHAIN,
    HASH,
    NOT_OFFERED,
    PAGE_TOKEN,
    SEARCH_TEXT,
    TOKEN_ID,
    RestBinder,
    RestParam,
)
from icefall.api.http.row import Rest, example_path

CHAIN_DATA_ENDPOINTS = [row for row in endpoints.CHAIN_DATA_ENDPOINTS if not row.is_stream]  # tests/api/test_stream.py
NOWHERE = {"geth-1": "http://127.0.0.1:9"}
NO_NUMBERS = [
    "",
    "x",
    "-1",
    "+1",
    "1.5",
    "1e3",
    "0x1",
    " 1",
    "1 ",
    "1_0",
    "\u0661",
    "9" * 40,
    "NaN",
    "null",
    "[]",
    "1,2",
]
NO_HEX = ["", "0x", "0x1", "x", "0X" + "11" * 20, "0x" + "11" * 19, "0x" + "11" * 21, "0x" + "zz" * 20, "11" * 20,
          "0x" + "11" * 31, "0x" + "11" * 33, "0x" + "1 " * 20, "0x" + "\uff11" * 40]  # fmt: skip
NO_WORDS = ["", "no", "USD", "usd,eur", "null", " usd", "desc ", "DESC", "true"]
WRONG = {
    CHAIN.name: ["%00", "a%20b", "a,b", "%ff", "x" * 200],
    ADDRESS.name: [*NO_HEX, "0x" + "11" * 32],
    HASH.name: [*NO_HEX, "0x" + "11" * 20],
    BLOCK_ID.name: ["latest", "-1", "0x1", "1.5", "9" * 40, "0x" + "11" * 31, "0x" + "zz" * 32],
    BOOLEAN.name: ["", "1", "0", "TRUE", "yes", "true,false", "null"],
    ADDRESSES.name: ["", ",", "0x12", "0x" + "11" * 20 + ",", ",".join(["0x" + f"{n:040x}" for n in range(101)])],
    PAGE_TOKEN.name: ["", "x", "a b", "null", "A" * 600, "AWr6I99vMCzS0OQI2l6diiSBlQ3h8nE6JC57yjoAAAAAAAABng", "é"],
    NOT_OFFERED.name: ["", "1", "x"],
    TOKEN_ID.name: [*NO_NUMBERS[:-5], str(2**256), "9" * 200],
    SEARCH_TEXT.name: ["", " ", "a\nb", "x" * 101, "\x00"],
}


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcess]:
    folder = tmp_path_factory.mktemp("bad")
    put_chains(folder, NOWHERE)
    with InProcess(folder, NOWHERE) as requested:
        yield requested


def path_of(row: Rest) -> str:
    return example_path(row).replace("/3210042", "/1337")


def with_query(row: Rest, *pairs: str) -> str:
    """The example with these parameters instead of those it has, as names and values."""
    path, _, needed = path_of(row).partition("?")
    given = dict(zip(pairs[::2], pairs[1::2], strict=True))
    kept = [one for one in needed.split("&") if one and one.partition("=")[0] not in given]
    return f"{path}?{'&'.join([*kept, *(f'{name}={value}' for name, value in given.items())])}"


def params(row: Rest) -> list[RestParam]:
    return RestBinder(row.params, row.path).all


def wrong_values(param: RestParam) -> list[str]:
    wanted = param.type
    if wanted.name in WRONG:
        return WRONG[wanted.name]
    if wanted.schema["type"] == "integer":
        low, high = wanted.schema["minimum"], wanted.schema["maximum"]
        return [*NO_NUMBERS, str(high + 1), *([str(low - 1)] if low else [])]
    return NO_WORDS


PARAMS = [(row, param) for row in CHAIN_DATA_ENDPOINTS for param in params(row)]


@pytest.mark.parametrize(("row", "param"), PARAMS, ids=lambda one: getattr(one, "operation", getattr(one, "name", "")))
def test_wrong_values_are_refused_by_name(row: Rest, param: RestParam, app: InProcess) -> None:
    for value in wrong_values(param):
        if param.in_path and not value:
            continue  # another path
        text = value if param.type is CHAIN else quote(value, safe="")
        if param.in_path:
            right = path_of(row).split("/")
            at = [part.partition(":")[0] for part in row.path.split("/")].index(f"{{{param.name}}}")
            verb = "".join(right[at].partition(":")[1:])
            target = "/".join([*right[:at], text + verb, *right[at + 1 :]])
        else:
            target = with_query(row, param.name, text)
        reply = app.get(target, row.verb)
        assert reply.status == 400, (target, reply)
        shown = reply.json()
        assert shown["message"].startswith(param.name), (target, shown)
        assert (shown["statusCode"], shown["error"]) == (400, "Bad Request")


@pytest.mark.parametrize("row", CHAIN_DATA_ENDPOINTS, ids=lambda row: row.operation)
def test_repeated_and_unreadable_parameters(row: Rest, app: InProcess) -> None:
    for param in params(row):
        if param.in_path or param.type is NOT_OFFERED or param.type is PAGE_TOKEN:
            continue
        value = quote(param.type.example, safe="")
        reply = app.get(with_query(row, param.name, f"{value}&{param.name}={value}"), row.verb)
        if param.type.is_list:
            assert reply.status != 400, reply
        else:
            assert (reply.status, reply.json()["message"]) == (400, f"{param.name} is given more than once")
        for text in ("%zz", "%", "%ff%fe"):
            reply = app.get(with_query(row, param.name, text), row.verb)
            assert reply.status == 400
            assert reply.json()["message"].startswith(param.name)


@pytest.mark.parametrize("row", CHAIN_DATA_ENDPOINTS, ids=lambda row: row.operation)
def test_unknown_parameters_are_ignored(row: Rest, app: InProcess) -> None:
    path = path_of(row)
    plain = app.get(path, row.verb)
    assert plain.status in (200, 404, 503)  # the example's transaction and contract are not there; state is not either
    for query in ("rltoken=x", "sortedBy=timestamp&sortedBy=x", "%ff=%ff", "=", "&&&", "a[b]=c&d;e"):
        reply = app.get(f"{path}{'&' if '?' in path else '?'}{query}", row.verb)
        assert (reply.status, without_token(reply)) == (plain.status, without_token(plain))


def without_token(reply: Reply) -> Any:
    """A page token holds the second in which it was issued."""
    shown = reply.json() if reply.body else None
    return {key: value for key, value in shown.items() if key != "nextPageToken"} if isinstance(shown, dict) else shown


OF_A_CHAIN = [row for row in CHAIN_DATA_ENDPOINTS if "{chainId}" in row.path]


@pytest.mark.parametrize("row", OF_A_CHAIN, ids=lambda row: row.operation)
def test_unknown_chains_are_not_found(row: Rest, app: InProcess) -> None:
    for name in ("1", "43114", "2q9e4r6Mu3U68nU1fYjgbR6JvwrRx36CohpAX5UQxse55x1Q5", "%F0%9F%98%80", "../1337", "é"):
        reply = app.get(path_of(row).replace("/1337", f"/{name}", 1), row.verb)
        assert reply.status == 404
        assert set(reply.json()) == {"message", "statusCode", "error"}


def test_a_range_that_ends_before_it_begins(app: InProcess) -> None:
    bounds = {"startBlock", "endBlock"}
    ranged = [row for row in CHAIN_DATA_ENDPOINTS if bounds <= {param.name for param in params(row)}]
    assert len(ranged) == 8
    for row in ranged:
        reply = app.get(f"{path_of(row)}?startBlock=9&endBlock=8")
        assert reply.status == 400
        assert reply.json()["message"] == "startBlock must not be greater than endBlock, got 9 and 8"


def test_what_is_not_there(app: InProcess) -> None:
    nothing = "0x" + "ab" * 32
    for path, shown in {
        "/v1/chains/1337/blocks/99999": "chain 1337 has no indexed block 99999",
        f"/v1/chains/1337/blocks/{2**63 - 1}/transactions": f"chain 1337 has no indexed block {2**63 - 1}",
        f"/v1/chains/1337/blocks/{nothing}/transactions": f"chain 1337 has no indexed block {nothing}",
        f"/v1/chains/1337/transactions/{nothing}": f"chain 1337 has no indexed transaction {nothing}",
    }.items():
        reply = app.get(path)
        assert (reply.status, reply.json()["message"]) == (404, shown)
