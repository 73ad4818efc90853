"""The sentence about a transaction: each kind of it, made of transfers, method and logs, and nothing that these do not
show."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser
from tests.explorer.browser import Tab, needs_chromium, tab
from tests.server import serving

from icefall.wire.evm.rlp import keccak256

pytestmark = needs_chromium

ME, YOU, VAULT = ("0x" + digit * 40 for digit in "abc")
ZERO = "0x" + "0" * 40
ONE = 10**18
TIDE: dict[str, Any] = {"address": "0x" + "1" * 40, "symbol": "TIDE", "name": "Tide", "decimals": 18}
WNAT: dict[str, Any] = {"address": "0x" + "2" * 40, "symbol": "WNAT", "name": "Wrapped NAT", "decimals": 18}
PLAIN = {"address": "0x" + "3" * 40}
ART = {"address": "0x" + "4" * 40, "name": "Great Art", "tokenId": "54"}
SENTENCE = """async ([given, logs]) => {
    const { happened } = await import('./explorer/happened.js');
    const { sentence } = await import('./explorer/sentence.js');
    let isRead = false;
    const reason = async () => given.reason;
    const parts = await happened({ ...given, reason, logs: async () => ((isRead = true), logs) });
    const native = { decimals: 18, symbol: "NAT" };
    return [sentence(parts, { chain: "1", native }).textContent, isRead];
}"""


@pytest.fixture(scope="module")
def explorer(tmp_path_factory: pytest.TempPathFactory, browser: Browser) -> Iterator[Tab]:
    folder: Path = tmp_path_factory.mktemp("happened")
    with serving("data", folder) as server, tab(browser, server.url("data")) as opened:
        opened.open("/operations")
        yield opened
        assert opened.problems == []


def coins(token: dict[str, Any], sender: str, recipient: str, value: int) -> dict[str, Any]:
    return {"from": {"address": sender}, "to": {"address": recipient}, "value": str(value), "erc20Token": token}


def art(sender: str, recipient: str, number: str = "54") -> dict[str, Any]:
    token = {**ART, "tokenId": number}
    return {"from": {"address": sender}, "to": {"address": recipient}, "erc721Token": token}


def paid(sender: str, recipient: str, value: int, *, reverted: bool = False) -> dict[str, Any]:
    return {"from": {"address": sender}, "to": {"address": recipient}, "value": str(value), "isReverted": reverted}


def log(to: dict[str, Any], event: str, *words: int, data: int | None = None) -> dict[str, Any]:
    topics = ["0x" + keccak256(event.encode()).hex(), *(f"0x{word:064x}" for word in words)]
    return {"address": to["address"], "topics": topics, "data": "0x" if data is None else f"0x{data:064x}"}


def shown(explorer: Tab, method: str = "", **given: Any) -> str:
    call = given.get("call", "CONTRACT_CALL" if method else "NATIVE_TRANSFER")
    tx = {
        "from": {"address": ME},
        "to": given.get("to", {"address": VAULT, "name": "Vault"}),
        "value": str(given.get("value", 0)),
        "txStatus": given.get("status", "1"),
        "method": {"callType": call, "methodHash": "0x12345678" if method else "", "methodName": method},
    }
    everything = {
        "tx": tx,
        "transfers": given.get("transfers", []),
        "internals": given.get("internals", []),
        "isCut": given.get("cut", False),
        "reason": given.get("reason", ""),
    }
    text, is_read = explorer.page.evaluate(SENTENCE, [everything, given.get("logs", [])])
    assert is_read == ("logs" in given), "logs are read only where the sentence may depend on them"
    return str(text).replace(f"{ME[:8]}…{ME[-4:]}", "ME").replace(f"{YOU[:8]}…{YOU[-4:]}", "YOU")


def test_native_tokens(explorer: Tab) -> None:
    you = {"address": YOU}
    assert shown(explorer, to=you, value=5 * ONE) == "ME sent 5 NAT to YOU."
    assert shown(explorer, to={"address": ME}, value=5 * ONE) == "ME sent 5 NAT to itself."
    assert shown(explorer, to=you, value=ONE, status="0") == "ME tried to send 1 NAT to YOU, which failed."


def test_calls_and_deployments(explorer: Tab) -> None:
    assert shown(explorer, "run(uint256)") == "ME called run() on Vault."
    assert shown(explorer, "run(uint256)", value=ONE) == "ME called run() on Vault with 1 NAT."
    assert shown(explorer, "run(uint256)", status="0") == "ME called run() on Vault, which failed."
    said = shown(explorer, "run(uint256)", status="0", reason="too <b>late</b>")
    assert said == "ME called run() on Vault, which failed: too <b>late</b>."
    assert shown(explorer, "run(uint256)", reason="too late") == "ME called run() on Vault."
    deployed: dict[str, Any] = {"call": "CONTRACT_CREATION", "to": {"address": YOU}}
    assert shown(explorer, **deployed) == "ME deployed the contract YOU."
    assert shown(explorer, status="0", **deployed) == "ME tried to deploy a contract, which failed."


def test_tokens_that_move(explorer: Tab) -> None:
    def moved(*transfers: dict[str, Any], **more: Any) -> str:
        return shown(explorer, "f()", transfers=list(transfers), **more)

    assert moved(coins(TIDE, ME, YOU, ONE // 2)) == "ME sent 0.5 TIDE to YOU."
    assert moved(coins(TIDE, YOU, VAULT, ONE)).startswith("ME moved 1 TIDE from YOU to 0xcccccc")
    assert moved(coins(TIDE, ME, YOU, ONE), coins(TIDE, ME, VAULT, ONE)) == "ME sent 2 TIDE to 2 addresses."
    assert moved(coins(PLAIN, ME, YOU, 1005)).startswith("ME sent 1,005 units of 0x333333")
    assert moved(coins(TIDE, ZERO, YOU, ONE)) == "ME minted 1 TIDE to YOU."
    assert moved(coins(TIDE, ZERO, ME, ONE)) == "ME minted 1 TIDE."
    assert moved(coins(TIDE, ME, ZERO, ONE)) == "ME burned 1 TIDE."
    assert moved(coins(TIDE, YOU, ZERO, ONE)) == "ME burned 1 TIDE of YOU."
    assert moved(coins(TIDE, ME, YOU, 1005)) == "ME sent 0.000000000000001005 TIDE to YOU."
    assert shown(explorer, to={"address": YOU}, value=7) == "ME sent 0.000000000000000007 NAT to YOU."
    assert moved(art(ZERO, YOU)) == "ME minted Great Art #54 to YOU."
    assert moved(art(ME, YOU)) == "ME sent Great Art #54 to YOU."
    assert moved(art(ZERO, YOU), art(ZERO, YOU, "55")) == "ME minted 2 NFTs of Great Art to YOU."


def test_exchanges(explorer: Tab) -> None:
    def moved(*transfers: dict[str, Any], **more: Any) -> str:
        return shown(explorer, "f()", transfers=list(transfers), **more)

    gave, got = coins(TIDE, ME, VAULT, 25 * ONE // 2), coins(WNAT, VAULT, ME, 31 * ONE // 10)
    assert moved(gave, got) == "ME swapped 12.5 TIDE for 3.1 WNAT."
    assert moved(got, value=ONE) == "ME swapped 1 NAT for 3.1 WNAT."
    assert moved(gave, internals=[paid(VAULT, ME, ONE)]) == "ME swapped 12.5 TIDE for 1 NAT."
    assert "swapped" not in moved(gave, internals=[paid(VAULT, ME, ONE, reverted=True)])
    assert moved(gave, coins(WNAT, ZERO, ME, ONE)) == "ME sent 12.5 TIDE, and was minted 1 WNAT."
    assert moved(coins(TIDE, ME, ZERO, ONE), got) == "ME burned 1 TIDE, and received 3.1 WNAT."
    assert moved(art(VAULT, ME), value=ONE) == "ME sent 1 NAT, and received Great Art #54."


def test_what_is_not_plain_is_only_a_call(explorer: Tab) -> None:
    many = [coins(TIDE, ME, VAULT, 1), coins(WNAT, VAULT, YOU, 1), coins(TIDE, VAULT, YOU, 1)]
    assert shown(explorer, "f()", transfers=many) == "ME called f() on Vault, which made 3 token transfers."
    cut = shown(explorer, "f()", transfers=[coins(TIDE, ME, YOU, 1)], cut=True)
    assert cut == "ME called f() on Vault, which made more than is listed here."
    failed = shown(explorer, "f()", transfers=[coins(TIDE, ME, YOU, 1)], status="0")
    assert failed == "ME called f() on Vault, which failed."


def test_what_logs_show(explorer: Tab) -> None:
    me, you = int(ME, 16), int(YOU, 16)

    def approved(method: str, *logs: dict[str, Any], to: dict[str, Any] = TIDE, **more: Any) -> str:
        return shown(explorer, method, to=to, logs=list(logs), **more)

    event, approve = "Approval(address,address,uint256)", "approve(address,uint256)"
    assert approved(approve, log(TIDE, event, me, you, data=ONE)) == "ME allowed YOU to spend 1 TIDE."
    unlimited = approved(approve, log(TIDE, event, me, you, data=2**256 - 1))
    assert unlimited == "ME allowed YOU to spend any amount of its TIDE."
    assert approved(approve, log(TIDE, event, me, you, data=0)) == "ME no longer allows YOU to spend its TIDE."
    assert approved(approve, log(ART, event, me, you, 54), to=ART) == "ME allowed YOU to move Great Art #54."
    for other in ([], [log(TIDE, event, you, me, data=ONE)], [log(WNAT, event, me, you, data=ONE)]):
        assert approved(approve, *other) == "ME called approve() on Tide."
    all_of = log(ART, "ApprovalForAll(address,address,bool)", me, you, data=1)
    text = approved("setApprovalForAll(address,bool)", all_of, to=ART)
    assert text == "ME allowed YOU to move all its NFTs of Great Art."
    wrapped = log(WNAT, "Deposit(address,uint256)", me, data=ONE)
    assert approved("deposit()", wrapped, to=WNAT, value=ONE) == "ME wrapped 1 NAT as 1 WNAT."
    assert approved("deposit()", wrapped, to=WNAT, value=2 * ONE) == "ME called deposit() on Wrapped NAT with 2 NAT."
    unwrapped = log(WNAT, "Withdrawal(address,uint256)", me, data=ONE)
    back = approved("withdraw(uint256)", unwrapped, to=WNAT, internals=[paid(WNAT["address"], ME, ONE)])
    assert back == "ME unwrapped 1 WNAT to 1 NAT."
    assert approved("withdraw(uint256)", unwrapped, to=WNAT) == "ME called withdraw() on Wrapped NAT."


def test_a_hostile_name_is_text(explorer: Tab) -> None:
    hostile = {**TIDE, "symbol": "<img src=x onerror=alert(1)>"}
    text = shown(explorer, "f()", transfers=[coins(hostile, ME, YOU, ONE)])
    assert text.startswith("ME sent 1 <img src=x")
