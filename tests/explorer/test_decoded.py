"""Decoded call data, logs and errors on the page of a transaction: names, types, scaled amounts, the raw data a click
away; and nothing of it runs, loads from elsewhere or is wider than the page."""

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Route
from tests.api import made_chain
from tests.api.data_naive import address_text
from tests.explorer.browser import Tab, look_at, needs_chromium, tab
from tests.metrics.synthetic import native
from tests.server import serving

pytestmark = needs_chromium

RUN = "window.attacked = true"
MARKUP = f'<img src=https://tracker.example/x onerror="{RUN}"><script>{RUN}</script>'
LONG = "A" * 5000
TOKEN = address_text(made_chain.TOKEN)
BEN = address_text(made_chain.BEN)
TX = f"0x{native(1, 0, made_chain.ANN, made_chain.BEN, 10**9, 0).tx_hash.hex()}"
PAGE = f"/chain/{made_chain.ID}/tx/{TX}"
CALLED = {"callType": "CONTRACT_CALL", "methodHash": "0xa9059cbb", "methodName": "transfer(address,uint256)"}
TIDE = {"address": TOKEN, "name": "Tide", "symbol": "TIDE", "decimals": 6, "ercType": "ERC-20"}


def value(name: str, kind: str, text: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, "value": text, **more}


def decoded(signature: str, *values: dict[str, Any]) -> dict[str, Any]:
    return {"signature": signature, "parameters": list(values)}


TRANSFER = decoded(
    "Transfer(address,address,uint256)",
    value("from", "address", BEN, isIndexed=True),
    value("to", "address", TOKEN, isIndexed=True),
    value("value", "uint256", "1500000"),
)


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory, browser: Browser) -> Iterator[Tab]:
    folder: Path = tmp_path_factory.mktemp("decoded")
    sent, burned = (1, made_chain.ANN, made_chain.BEN, 5), (2, made_chain.BEN, made_chain.ZERO_ADDRESS, 3)
    made_chain.put(folder, [made_chain.block(0), made_chain.erc20(*sent), made_chain.erc20(*burned)])
    (folder / "icefall.toml").write_text(f'[[chain]]\nid = "{made_chain.ID}"\nrpc = ["http://127.0.0.1:9"]\n')
    with (
        serving("data", folder, f"--config-file={folder / 'icefall.toml'}") as server,
        tab(browser, server.url("data")) as opened,
    ):
        yield opened


@pytest.fixture
def explorer(opened: Tab) -> Iterator[Tab]:
    opened.look(1440, "light")
    yield opened
    opened.unroute()
    assert opened.page.evaluate("window.attacked") is None
    assert opened.new_problems() == []


def answering(explorer: Tab, data: str = "0xa9059cbb", **parts: Any) -> None:
    """Answers what the page asks for: the transaction as it is stored, but as a call of the token, and its parts."""

    def whole(route: Route) -> None:
        reply = route.fetch()
        answer = reply.json()
        more = {"method": CALLED, "input": data, "to": TIDE, "txStatus": parts.get("status", "1")}
        answer["nativeTransaction"] |= more
        route.fulfill(response=reply, json=answer)

    base = f"**/v1/chains/{made_chain.ID}/transactions/{TX}"
    explorer.page.route(base, whole)
    replies: dict[str, Any] = {
        "input": {"txHash": TX, "input": data, **parts.get("input", {})},
        "logs": {"logs": parts.get("logs", [])},
        "calls": {"calls": parts.get("calls", [])},
        "revertReason": {"txHash": TX, "txStatus": "0", "isReverted": True, **parts.get("reason", {})},
    }
    for part, reply in replies.items():
        explorer.page.route(f"{base}/{part}*", partial(_fulfil, json.dumps(reply)))


def _fulfil(body: str, route: Route) -> None:
    route.fulfill(body=body, content_type="application/json")


def log(found: dict[str, Any] | None, at: int = 0, **more: Any) -> dict[str, Any]:
    plain = {
        "blockNumber": "1", "blockTimestamp": 1_700_000_001, "blockHash": TX, "txHash": TX, "logIndex": at,
        "address": TOKEN, "topics": ["0x" + "ab" * 32], "data": "0x" + "cd" * 70, **more,
    }  # fmt: skip
    return plain if found is None else plain | {"decodedLog": found}


def call(**more: Any) -> dict[str, Any]:
    return {
        "index": 0, "depth": 0, "callType": "CALL", "from": BEN, "to": TOKEN, "value": "0", "gasLimit": "9",
        "gasUsed": "7", "input": "0xa9059cbb" + "01" * 64, "output": "0x", "isReverted": False, **more,
    }  # fmt: skip


def rows(explorer: Tab, inside: str) -> list[list[str]]:
    found = explorer.page.locator(f"{inside} .table-box tbody tr").all()
    return [[cell.inner_text().strip() for cell in row.locator("td").all()] for row in found]


def test_call_data_has_names_types_and_scaled_amounts(explorer: Tab) -> None:
    found = decoded("transfer(address,uint256)", value("to", "address", BEN), value("1", "uint256", "2500000"))
    answering(explorer, input={"methodName": "transfer(address,uint256)", "decodedInput": found})
    explorer.go(PAGE)
    card = "section[aria-label='Input']"
    assert rows(explorer, card) == [["to", "address", BEN], ["1", "uint256", "2.5 TIDE"]]
    hidden = explorer.page.locator(f"{card} pre.data")
    assert not hidden.is_visible()
    explorer.page.locator(f"{card} summary").click()
    assert hidden.inner_text() == "0xa9059cbb"
    look_at(explorer, "transaction-input")


def test_logs_are_decoded_and_raw_ones_are_a_click_away(explorer: Tab) -> None:
    nft = decoded("Transfer(address,address,uint256)", value("tokenId", "uint256", "1500000", isIndexed=True))
    hashed = decoded("Named(string)", value("name", "string", "0x" + "ef" * 32, isIndexed=True, isHash=True))
    answering(explorer, logs=[log(TRANSFER), log(nft, 1), log(None, 2), log(hashed, 3)])
    explorer.go(f"{PAGE}?tab=logs")
    shown = explorer.page.locator(".log")
    assert rows(explorer, ".log:nth-child(1)")[2] == ["value", "uint256", "1.5 TIDE"]
    assert rows(explorer, ".log:nth-child(1)")[0] == ["from", "address", BEN]
    assert rows(explorer, ".log:nth-child(2)") == [["tokenId", "uint256", "1500000"]], "an ID is no amount"
    assert "only its hash is in the log" in shown.nth(3).inner_text()
    assert not shown.nth(0).locator(".topics").is_visible()
    assert shown.nth(2).locator(".topics").is_visible(), "what is not decoded is shown as it is"
    shown.nth(0).locator("summary").click()
    assert "0x" + "ab" * 32 in shown.nth(0).inner_text()
    look_at(explorer, "transaction-decoded-logs")


def test_calls_and_errors_are_decoded(explorer: Tab) -> None:
    error = decoded(
        "ERC20InsufficientBalance(address,uint256,uint256)",
        value("sender", "address", BEN),
        value("balance", "uint256", "1"),
        value("needed", "uint256", "3000000"),
    )
    given = decoded("transfer(address,uint256)", value("to", "address", BEN), value("1", "uint256", "3000000"))
    failed = call(isReverted=True, error="execution reverted", decodedInput=given, decodedError=error)
    reason = {"error": "execution reverted", "revertData": "0xe450d38c", "decodedError": error}
    answering(explorer, calls=[failed], reason=reason, status="0")
    explorer.go(f"{PAGE}?tab=calls")
    assert explorer.text(".notice.bad") == "Reverted: ERC20InsufficientBalance(address,uint256,uint256)"
    assert rows(explorer, "section[aria-label='Error']")[2] == ["needed", "uint256", "3 TIDE"]
    assert "ERC20InsufficientBalance" in explorer.text(".call")
    assert explorer.page.locator(".calls-tree .table-box").count() == 0, "it is made when it is opened"
    explorer.page.locator(".calls-tree summary").first.click()
    explorer.page.locator(".calls-tree .table-box").first.wait_for()
    assert rows(explorer, ".calls-tree")[1] == ["1", "uint256", "3 TIDE"]
    look_at(explorer, "transaction-decoded-calls")


@pytest.mark.parametrize(
    ("reason", "said", "cards"),
    [
        (
            {"revertReason": "too late", "decodedError": decoded("Error(string)", value("", "string", "too late"))},
            "too late",
            [],
        ),
        ({"decodedError": decoded("Paused()")}, "Paused()", []),
        ({"error": "execution reverted"}, "execution reverted", ["No ABI and no common signature names this error"]),
    ],
)
def test_a_failure_has_a_card_only_where_there_is_more_to_say(
    reason: dict[str, Any], said: str, cards: list[str], explorer: Tab
) -> None:
    answering(explorer, reason=reason | {"revertData": "0x" + "ab" * 68}, status="0")
    explorer.go(PAGE)
    assert explorer.text(".notice.bad") == f"Reverted: {said}"
    shown = explorer.page.locator("section[aria-label^=Error]")
    assert shown.count() == len(cards)
    assert all(text in one for text, one in zip(cards, shown.all_inner_texts(), strict=True))


def test_hostile_names_types_and_values_are_text(explorer: Tab) -> None:
    hostile = decoded(
        f"{MARKUP}{LONG}({LONG})",
        value(MARKUP + LONG, MARKUP + LONG, MARKUP + LONG),
        value("__proto__", "string", f"javascript:{RUN}\u202e\n{LONG}"),
        value("x", "address", f"javascript:{RUN}"),
        *(value(f"n[{at}]", "bytes", "0x" + "ff" * 3000) for at in range(3)),
    )
    broken = call(isReverted=True, error=MARKUP, revertReason=MARKUP + LONG, decodedInput=hostile, decodedError=hostile)
    answering(
        explorer,
        input={"methodName": MARKUP + LONG, "decodedInput": hostile},
        logs=[log(hostile), log(hostile | {"signature": "constructor"}, 1), log(decoded(""), 2)],
        calls=[broken],
        reason={"error": MARKUP, "decodedError": hostile, "revertData": "0x" + "ff" * 4096},
        status="0",
    )
    for part in ("logs", "calls"):
        explorer.go(f"{PAGE}?tab={part}")
        explorer.page.evaluate("document.querySelectorAll('main details').forEach((one) => (one.open = true))")
        explorer.page.wait_for_selector(".table-box >> nth=3")
        assert MARKUP in explorer.text(), "shown as text"
        assert explorer.page.locator("main script, main iframe, main img, main [onerror]").count() == 0
        assert explorer.page.locator("a[href^='javascript:']").count() == 0
        for width in (375, 1440):
            explorer.look(width, "light")
            assert explorer.overflow() <= 0


def test_what_is_sent_to_the_zero_address_is_burned(explorer: Tab) -> None:
    explorer.go(f"/chain/{made_chain.ID}/token/{TOKEN}")
    burned, sent = explorer.page.locator("#tab-panel tbody tr").all_inner_texts()
    assert "burn" in burned
    assert "burn" not in sent


def test_the_abi_of_a_contract_is_listed(explorer: Tab) -> None:
    pair = {
        "name": "p",
        "type": "tuple[]",
        "components": [{"name": "x", "type": "int24"}, {"name": "", "type": "bytes"}],
    }
    abi = [
        {"type": "function", "name": "total", "inputs": [], "outputs": [{"name": "", "type": "uint256"}],
         "stateMutability": "view"},
        {"type": "function", "name": "pay", "inputs": [pair], "outputs": [], "stateMutability": "nonpayable"},
        {"type": "event", "name": "Paid", "inputs": [{"name": "who", "type": "address", "indexed": True}]},
        {"type": "error", "name": MARKUP + LONG, "inputs": [{"name": MARKUP, "type": LONG}]},
    ]  # fmt: skip
    reply = json.dumps({"address": TOKEN, "abi": abi})
    explorer.page.route("**/contracts/*/abi", partial(_fulfil, reply))
    explorer.page.route("**/transactions:getDeployment", partial(_fulfil, "{}"))
    explorer.page.route("**/contracts/*/proxy", partial(_fulfil, json.dumps({"isProxy": False})))
    explorer.go(f"/chain/{made_chain.ID}/contract/{TOKEN}?tab=abi")
    explorer.await_text("Functions that only read (1)")
    found = explorer.page.locator(".declared li").all_inner_texts()
    assert found[:3] == ["total() returns uint256", "pay((int24 x, bytes)[] p)", "Paid(address indexed who)"]
    assert MARKUP in explorer.text()
    assert explorer.page.locator("main img, main script").count() == 0
    look_at(explorer, "contract-abi")
