"""Tokens of the operator's list in answers: their logo, and what their contracts do not return."""

import asyncio
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from typing import Any

import pytest
from tests.api.data_naive import address_text, naive
from tests.api.data_scene import InProcess, erc20_tokens, put_chains, walked

from icefall.api.dialect import DIALECTS
from icefall.db.sqlite import SqliteStore
from icefall.evm.enriching.reader import ListedToken
from icefall.evm.enriching.token_list import put_listed_tokens
from icefall.evm.storing.store import PACKAGE, store_path

CHAIN = "anvil-1"
LISTED = ListedToken("Listed", "LST", 3, "https://e.example/logo.png")
FIELDS = {"name": "Listed", "symbol": "LST", "decimals": 3, "logoUri": LISTED.logo_uri}


@pytest.fixture(scope="module", params=sorted(DIALECTS))
def served(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcess]:
    """The first token of the chain is listed, and its contract returns nothing."""
    folder = tmp_path_factory.mktemp("listed")
    put_chains(folder, {CHAIN: "http://127.0.0.1:9"})
    token = erc20_tokens(CHAIN)[0]
    with closing(SqliteStore(store_path(folder / "data", naive(CHAIN).id), PACKAGE)) as store:
        forget = (
            "update token set name = '', symbol = '', decimals = null "
            "where token = (select id from address where address = ?)"
        )
        asyncio.run(store.write(lambda tx: tx.run(forget, (token,))))
        asyncio.run(store.write(partial(put_listed_tokens, {token: LISTED})))
    with InProcess(folder, {CHAIN: ""}, DIALECTS[request.param]) as app:
        yield app


def listed_fields(shown: dict[str, Any]) -> dict[str, Any]:
    return {name: shown[name] for name in FIELDS if name in shown}


def test_logo_and_names_are_those_of_the_list(served: InProcess) -> None:
    first, second = erc20_tokens(CHAIN)[:2]
    base, token = f"/v1/chains/{naive(CHAIN).id}", address_text(first)
    moved = served.result(f"{base}/tokens/{token}/transfers")["transfers"]
    assert moved
    assert all(listed_fields(one["erc20Token"]) == FIELDS for one in moved)
    holder = next(one["to"]["address"] for one in moved)
    history = walked(served, f"{base}/addresses/{holder}/transactions:listErc20", "transactions")
    shown = [one["erc20Token"].get("logoUri") for one in history if one["erc20Token"]["address"] == token]
    assert set(shown) == {LISTED.logo_uri}
    held = served.result(f"{base}/addresses/{holder}/balances:listErc20?contractAddresses={token}")
    assert [listed_fields(one) for one in held["erc20TokenBalances"]] == [FIELDS]
    called = served.result(f"{base}/addresses/{token}/transactions:listNative")["transactions"]
    assert [listed_fields(one["to"]) for one in called if one["to"]["address"] == token][:1] == [FIELDS]
    found = [one for one in served.result(f"{base}/tokens?pageSize=100")["tokens"] if one["address"] == token]
    assert [listed_fields(one) for one in found] == [FIELDS]
    named = {name: FIELDS[name] for name in ("name", "symbol", "decimals")}
    assert listed_fields(served.result(f"{base}/addresses/{token}")) == named
    other = served.result(f"{base}/tokens/{address_text(second)}/transfers")["transfers"]
    assert other
    assert all("logoUri" not in one["erc20Token"] for one in other)
