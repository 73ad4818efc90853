"""Names, symbols and decimals of tokens: unknown ones in both dialects, and those that are being read again."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.api.data_naive import Naive, address_text, naive
from tests.api.data_scene import InProcess, put_chains, walked

from icefall.api.dialect import DIALECTS
from icefall.evm.storing.store import store_path

CHAIN, ID = "geth-1", "1337"
UNKNOWN = {"interface": {}, "live": {"name": "", "symbol": "", "decimals": 0}}
UNREAD = {"interface": {}, "live": UNKNOWN["live"] | {"namesRead": False}}
Apps = dict[str, InProcess]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    put_chains(tmp_path, {CHAIN: "http://127.0.0.1:9"})
    return tmp_path


@pytest.fixture
def apps(folder: Path) -> Iterator[Apps]:
    with (
        InProcess(folder, {CHAIN: ""}, DIALECTS["interface"]) as interface,
        InProcess(folder, {CHAIN: ""}, DIALECTS["live"]) as live,
    ):
        yield {"interface": interface, "live": live}


def shown(item: dict[str, Any]) -> dict[str, Any]:
    return {key: item[key] for key in ("name", "symbol", "decimals", "namesRead") if key in item}


def without_decimals(names: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in names.items() if key != "decimals"}


def first_holder(recorded: Naive, kind: str, token: bytes) -> str:
    parties = next(parties for tx in recorded.txs for parties, moved, _ in tx[kind] if moved == token)
    return address_text(max(parties))


def balances(app: InProcess, recorded: Naive, token: bytes) -> dict[str, dict[str, Any]]:
    """A balance of the token by the kind of its list, if somebody has one."""
    found = {}
    for kind, named, wanted in (
        ("erc20", "listErc20", "contractAddresses"),
        ("erc721", "listErc721", "contractAddress"),
    ):
        moved = {
            address_text(party)
            for tx in recorded.txs
            for parties, of, _ in tx[kind]
            if of == token
            for party in parties
        }
        for holder in sorted(moved):
            target = f"/v1/chains/{ID}/addresses/{holder}/balances:{named}?{wanted}={address_text(token)}"
            held = app.result(target + "&filterSpamTokens=false" * (kind == "erc20"))[f"{kind}TokenBalances"]
            if held:
                found[kind] = held[0]
                break
    return found


def check_token(app: InProcess, recorded: Naive, token: bytes, expected: dict[str, Any]) -> set[str]:
    """Everywhere a token is shown. The places where it was."""
    text, seen = address_text(token), set()
    for item in walked(app, f"/v1/chains/{ID}/tokens/{text}/transfers", "transfers"):
        if "erc20Token" in item:
            assert shown(item["erc20Token"]) == expected
            seen.add("erc20Token")
        elif "erc721Token" in item:
            assert shown(item["erc721Token"]) == without_decimals(expected)
            seen.add("erc721Token")
    contract = app.result(f"/v1/chains/{ID}/addresses/{text}")
    assert shown(contract) == (expected if contract["ercType"] == "ERC-20" else without_decimals(expected))
    seen.add(contract["ercType"])
    if "erc20Token" in seen:
        holder = first_holder(recorded, "erc20", token)
        target = (
            f"/v1/chains/{ID}/addresses/{holder}/balances:listErc20?filterSpamTokens=false&contractAddresses={text}"
        )
        (held,) = app.result(target)["erc20TokenBalances"]
        assert shown(held) == expected
        assert ("balanceValue" in held) == ("price" in held and recorded.facts(token)[2] is not None)
        seen.add("balance")
    return seen


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_token_with_what_its_contract_returns(dialect: str, apps: Apps) -> None:
    recorded, seen, unknown = naive(CHAIN), set(), set()
    for token in sorted(recorded.tokens):
        places = check_token(apps[dialect], recorded, token, UNKNOWN[dialect] | recorded.known(token))
        seen |= places
        if len(recorded.known(token)) < 3:
            unknown |= places
    assert seen == {"erc20Token", "erc721Token", "balance", "ERC-20", "ERC-721", "ERC-1155"}
    assert unknown == seen, "in some place no recorded token has an unknown name"


@pytest.mark.parametrize("dialect", DIALECTS)
def test_an_address_that_is_no_token(dialect: str, apps: Apps) -> None:
    """It has a zero balance if it is requested as one and answers balanceOf, and as sender or recipient no name."""
    wallet = naive(CHAIN).txs[-1]["native"]["from"]["address"]
    target = f"/v1/chains/{ID}/addresses/{wallet}/balances:listErc20?contractAddresses=0x{'55' * 20}"
    (held,) = apps[dialect].result(target)["erc20TokenBalances"]
    assert shown(held) == UNREAD[dialect]
    tx = apps[dialect].result(f"/v1/chains/{ID}/addresses/{wallet}/transactions:listNative?pageSize=1")
    assert tx["transactions"][0]["from"] == {"address": wallet}


def change(folder: Path, statement: str) -> None:
    with closing(sqlite3.connect(store_path(folder / "data", ID))) as store, store:
        assert store.execute(statement).rowcount > 0


def test_names_stay_while_they_are_read_again(apps: Apps, folder: Path) -> None:
    """`read_at` null: they are due."""
    recorded = naive(CHAIN)
    change(folder, "update token set read_at = null, retry_at = 0")
    for token in sorted(recorded.tokens):
        check_token(apps["interface"], recorded, token, recorded.known(token))
        moved = walked(apps["interface"], f"/v1/chains/{ID}/addresses/{address_text(token)}/transactions:listNative",
                       "transactions")  # fmt: skip
        for tx in moved:
            if tx["to"]["address"] == address_text(token):
                assert shown(tx["to"]) == recorded.known(token)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_names_that_were_not_read_yet(dialect: str, apps: Apps, folder: Path) -> None:
    change(folder, "update token set name = null, symbol = null, decimals = null, read_at = null")
    recorded = naive(CHAIN)
    for token in sorted(recorded.tokens):
        text = address_text(token)
        for item in walked(apps[dialect], f"/v1/chains/{ID}/tokens/{text}/transfers", "transfers"):
            if "erc20Token" in item:
                assert shown(item["erc20Token"]) == UNREAD[dialect]
            if "erc721Token" in item:
                assert shown(item["erc721Token"]) == without_decimals(UNREAD[dialect])
        contract = apps[dialect].result(f"/v1/chains/{ID}/addresses/{text}")
        is_erc20 = contract["ercType"] == "ERC-20"
        assert shown(contract) == (UNREAD[dialect] if is_erc20 else without_decimals(UNREAD[dialect]))
        for kind, held in balances(apps[dialect], recorded, token).items():
            assert shown(held) == (UNREAD[dialect] if kind == "erc20" else without_decimals(UNREAD[dialect]))
