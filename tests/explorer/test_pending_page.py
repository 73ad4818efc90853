"""A transaction that no block holds yet: its page follows it until it is indexed."""

from typing import Any

import pytest
from playwright.sync_api import Route
from tests.explorer.browser import Tab, needs_chromium

pytestmark = needs_chromium

L1 = "/chain/3210042"
HASH = f"0x{7:064x}"
SENDER, TARGET = "0x5d038640E1a2085e1e4fB53dAaca6807f892b00C", "0x5A7Cf40d3b2A2FfEA2ad8fa63E5900690b53f411"
MINED = "0xe82984731780185889ba9b39ace6b265dcb28482ff717904dd1e3004615433bd"
FOUND = {
    "chainId": "3210042",
    "from": SENDER,
    "to": TARGET,
    "value": "1500000000000000000",
    "nonce": "12",
    "txType": 2,
    "gasLimit": "90000",
    "maxFeePerGas": "25000000001",
    "maxPriorityFeePerGas": "1000000000",
    "methodName": "mint(address,uint256)",
}


def follow(explorer: Tab, tx_hash: str, *states: dict[str, Any]) -> None:
    """Answers each call with the next of these states; the last one stays."""
    left = list(states)

    def answer(route: Route) -> None:
        now = left.pop(0) if len(left) > 1 else left[0]
        route.fulfill(json=FOUND | {"txHash": tx_hash} | now)

    explorer.page.route("**/pending", answer)


def without_404(explorer: Tab) -> None:
    """The page asks for the transaction first, which is not indexed."""
    explorer.problems[:] = [one for one in explorer.problems if "status of 404" not in one]


@pytest.mark.parametrize(("theme", "width"), [("light", 1440), ("dark", 375)])
def test_a_pending_transaction_is_shown(theme: str, width: int, explorer: Tab) -> None:
    explorer.look(width, theme)
    follow(explorer, HASH, {"txState": "pending"})
    explorer.open(f"{L1}/tx/{HASH}")
    text = explorer.text()
    for part in ("Pending", "No block holds this transaction yet", "1.5", "25.000000001 gwei", "mint(address,uint256)"):
        assert part in text
    assert SENDER in text
    assert explorer.page.locator(f"main a[href$='/address/{TARGET}']").count() == 1
    assert explorer.findings() == []
    assert explorer.overflow() <= 0
    explorer.keep_screenshot(f"transaction-pending-{theme}-{width}")
    without_404(explorer)


def test_it_is_shown_in_full_once_it_is_indexed(explorer: Tab) -> None:
    hidden = f"**/transactions/{MINED}"
    explorer.page.route(hidden, lambda route: route.fulfill(status=404, json={"message": "not indexed"}))
    states = [{"txState": "pending"}, {"txState": "included", "blockNumber": "1968"}, {"txState": "indexed"}]
    follow(explorer, MINED, *states)
    explorer.page.clock.install()
    explorer.open(f"{L1}/tx/{MINED}")
    assert "Pending" in explorer.text(".page-head")
    explorer.page.clock.run_for(4_000)
    explorer.await_text("Block 1,968 holds this transaction")
    assert "Pending" not in explorer.text(".page-head")
    explorer.page.unroute(hidden)
    explorer.page.clock.run_for(4_000)
    explorer.await_text("Success")
    assert "minted" in explorer.text()
    without_404(explorer)


def test_one_that_was_dropped_says_so(explorer: Tab) -> None:
    follow(explorer, HASH, {"txState": "pending"}, {"txState": "unknown"})
    explorer.page.clock.install()
    explorer.open(f"{L1}/tx/{HASH}")
    explorer.page.clock.run_for(4_000)
    explorer.await_text("dropped, or replaced")
    without_404(explorer)


def test_search_finds_it(explorer: Tab) -> None:
    follow(explorer, HASH, {"txState": "pending"})
    explorer.open(f"/search/{HASH[2:].upper()}?all")
    results = explorer.page.locator(".results a")
    assert "Pending transaction" in results.first.inner_text()
    assert (results.first.get_attribute("href") or "").endswith(f"/tx/{HASH}")


def test_one_that_the_node_does_not_know_is_not_found(explorer: Tab) -> None:
    explorer.open(f"{L1}/tx/{HASH}")
    assert "Not found" in explorer.text(".page-head")
    without_404(explorer)
