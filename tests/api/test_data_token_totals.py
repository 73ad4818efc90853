"""Tokens by holders, transfers, name and market value, their totals, and tokens that share a name."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from typing import Any

import pytest
from tests.api.data_naive import address_text, naive
from tests.api.data_scene import TOKEN_PRICE, InProcess, chain_id, erc20_tokens, put_chains, walked
from tests.api.test_data_holders import folded

from icefall.db.engine import Transaction
from icefall.db.sqlite import SqliteStore
from icefall.evm.enriching.reader import ListedToken
from icefall.evm.enriching.token_list import put_listed_tokens
from icefall.evm.storing.holders import count_all
from icefall.evm.storing.store import PACKAGE, store_path

CHAIN = "anvil-1"
BASE = f"/v1/chains/{chain_id(CHAIN)}"
FIRST, SECOND = erc20_tokens(CHAIN)[:2]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcess]:
    """The first token is listed, and the second has its name."""
    folder = tmp_path_factory.mktemp("totals")
    put_chains(folder, {CHAIN: "http://127.0.0.1:9"})
    with closing(SqliteStore(store_path(folder / "data", naive(CHAIN).id), PACKAGE)) as store:
        for token, name in ((FIRST, "True Coin"), (SECOND, "true coin")):
            asyncio.run(store.write(partial(rename, token, name)))
        asyncio.run(store.write(partial(put_listed_tokens, {FIRST: ListedToken("True Coin", "TRUE", 18)})))
        asyncio.run(count_all(store))
    with InProcess(folder, {CHAIN: ""}) as app:
        yield app


def rename(token: bytes, name: str, tx: Transaction) -> None:
    tx.run("update token set name = ? where token = (select id from address where address = ?)", (name, token))


def listed(served: InProcess, query: str, size: int = 3) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = walked(served, f"{BASE}/tokens?{query}", "tokens", size)
    return found


def test_totals_are_those_of_the_transfers(served: InProcess) -> None:
    recorded, compared = naive(CHAIN), 0
    moves = Counter(address_text(move.token) for one in recorded.blocks for move in one.rows.erc20_transfers)
    balances = {address_text(token): held for token, held in folded(recorded).items()}
    for token in listed(served, "ercType=ERC-20"):
        assert token["transfers"] == moves[token["address"]]
        holders = served.result(f"{BASE}/tokens/{token['address']}/holders?pageSize=100")
        assert token["holders"] == holders["totalHolders"]
        if token["address"] in balances and holders["isTrusted"]:
            compared += 1
            assert int(token["totalSupply"]) == sum(balances[token["address"]].values())
        assert served.result(f"{BASE}/tokens/{token['address']}") == token
    assert compared > 1


def test_lists_are_in_their_order_and_complete(served: InProcess) -> None:
    newest = listed(served, "")
    keys: dict[str, Callable[[dict[str, Any]], Any]] = {
        "holders": lambda one: -one["holders"],
        "transfers": lambda one: -one["transfers"],
        "name": lambda one: one["name"].lower(),
    }
    for order, key in keys.items():
        found = listed(served, f"sortBy={order}")
        assert [key(one) for one in found] == sorted(key(one) for one in found)
        assert len({one["address"] for one in found}) == len(found)
        expected = {one["address"] for one in newest if order != "name" or one.get("name")}
        assert {one["address"] for one in found} == expected
        some = listed(served, f"sortBy={order}&ercType=ERC-721", 1)
        assert [one for one in found if one["ercType"] == "ERC-721"] == some
    assert len(newest) > 5


def test_market_value_is_supply_times_price(served: InProcess) -> None:
    found = listed(served, "sortBy=marketValue", 1)
    values = [float(one["marketValue"]["value"]) if "marketValue" in one else 0.0 for one in found]
    assert found
    assert values == sorted(values, reverse=True)
    assert {one["address"] for one in found} == {one["address"] for one in listed(served, "") if "price" in one}
    for one in found:
        if "marketValue" in one:
            amount = int(one["totalSupply"]) / 10 ** one["decimals"]
            assert float(one["marketValue"]["value"]) == pytest.approx(amount * float(TOKEN_PRICE))


def test_a_token_with_the_name_of_a_listed_one_says_so(served: InProcess) -> None:
    first, second = (served.result(f"{BASE}/tokens/{address_text(token)}") for token in (FIRST, SECOND))
    assert (first["isListed"], first.get("listedNamesake")) == (True, None)
    assert (second["isListed"], second["listedNamesake"]) == (False, first["address"])
    others = [one for one in listed(served, "") if one["address"] not in (first["address"], second["address"])]
    assert not any("listedNamesake" in one for one in others)


def test_what_is_no_token_has_no_totals(served: InProcess) -> None:
    reply = served.get(f"{BASE}/tokens/0x{'99' * 20}")
    assert reply.status == 404
    assert "no indexed token" in reply.json()["message"]
