"""Every page of the Explorer on the demo, in a real browser: content, both themes, phone and wide screen, keyboard."""

import json
import re
import time

import pytest
from playwright.sync_api import Route
from tests.demo.prepared import C_BUSY, COIN
from tests.demo.test_demo_up import BUSY, RICH
from tests.explorer.browser import Tab, look_at, needs_chromium
from tests.server import Server

pytestmark = needs_chromium

ART, SVG_ART = "0xD5E52a49DB2c00e390aDb09d90ffBB61fe9FF0dB", "9"
AVAX = "2fombhL7aGPwj3KH4bfrmJwW6PVnMobf9Y2fn9GwxiAAJyFDbe"
X_TX = "ewj9hHMJYTTyHXXEvM1mfKRjZc4NtvYSo4Td8cj7Qk53LzBoz"
X_BLOCK = "2BC1Co2TguSha4Um6TgGc5KVKYVxmDW2BtKKb7sAFAFW6nk8sJ"
MINT = "0xe82984731780185889ba9b39ace6b265dcb28482ff717904dd1e3004615433bd"
REVERTED = "0x60ae1a6263d78d73361e2136b2de6c27e11cb201c91513924e02d932a2df9a12"
LAST_HASH = "0xa82c7a8e7f851c1d07d95eadca9ed610c4f0417bb70cbae55312416059300f6e"
C_LAST = "VWTbeaMm9eaZ6nyCypcY2uz3NbyCTM7R5xz9G7i1d9sVwZxES"
L1, C_CHAIN = "/chain/3210042", "/chain/43112"

# The fee, a token transfer and a price of gas with every digit, and the whole address of a named contract.
EXACT = [
    "0.000068298000239043",
    "0.000000000000001005",
    "2.000000007 gwei",
    "0xbFAF12B8caF5BA9D2238746D2381De73C2318542",
]

# name, address, and texts that the page must show
PAGES = [
    ("home", "/", ["Recorded C-Chain", "Demo L1", "1,968", "X-Chain height", "All checks pass", "Latest blocks"]),
    ("chain", L1, ["Demo coin (DEMO)", "1,968", "Failed transactions"]),
    ("chain-transactions", f"{L1}?tab=transactions", ["mint", "DEMO"]),
    ("tokens", f"{L1}/tokens", ["Alpha Dollar", "ERC-721"]),
    ("block", f"{L1}/block/1968", ["2024-03-26 23:00:55 UTC", LAST_HASH, "mint", "Transactions up to here"]),
    ("transaction", f"{L1}/tx/{MINT}", ["minted", "Success", "mint(address,uint256)", "BÉTA", *EXACT]),
    ("transaction-reverted", f"{L1}/tx/{REVERTED}?tab=calls", ["which failed", "Reverted: one failed", "go away"]),
    ("transaction-calls", f"{L1}/tx/{MINT}?tab=calls", ["CALL"]),
    ("transaction-logs", f"{L1}/tx/{MINT}?tab=logs", ["topic 0", "Transfer(address,address,uint256)"]),
    ("address", f"{L1}/address/{BUSY}", ["Alpha Dollar", "DEMO", "$", "Balance at the end of each day"]),
    ("address-erc20", f"{L1}/address/{BUSY}?tab=erc20", ["TOLL"]),
    ("address-internals", f"{L1}/address/{BUSY}?tab=internals", ["CALL"]),
    ("address-nfts", f"{C_CHAIN}/address/{C_BUSY}?tab=nfts", ["Art 9", "Great Art"]),
    ("address-deployments", f"{L1}/address/{BUSY}?tab=deployments", []),
    ("contract", f"{L1}/contract/{COIN}", ["ERC-20", "Deployed by"]),
    ("token", f"{L1}/token/{COIN}", ["Price by day", "Decimals", "ERC-20"]),
    ("token-holders", f"{L1}/token/{COIN}?tab=holders", ["holders after block"]),
    ("collection", f"{C_CHAIN}/nft/{ART}", ["Great Art", "ERC-721", "Art 9"]),
    ("collection-holders", f"{C_CHAIN}/nft/{ART}?tab=holders", ["holders after block"]),
    ("nft", f"{C_CHAIN}/nft/{ART}/{SVG_ART}", ["Art 9", "number 9", "size"]),
    ("metrics", "/metrics", ["Transaction count", "Average TPS", "Cumulative contracts"]),
    ("metric", "/metrics/tx_count?chains=3210042,43112&range=all", ["Demo L1", "Recorded C-Chain", "Last hour"]),
    ("network", "/network", ["Share of supply", "Circulating", "NodeID-7Xhw2m", "active"]),
    ("x-chain", "/x", ["156", "Avalanche (AVAX)"]),
    ("x-transactions", "/x?tab=transactions", ["Base", "Block"]),
    ("x-assets", "/x?tab=assets", ["Alpha30 (WLO)"]),
    ("x-block", "/x/block/150", [X_BLOCK, "base"]),
    ("x-tx", f"/x/tx/{X_TX}", ["wallet chain 1", "24.3731", "24.3741", "AVAX", "0.001", "150", "Accepted"]),
    ("x-address", f"/x/address/{RICH}", ["Avalanche (AVAX)", "299,983,935.3436", "mint right"]),
    ("x-address-history", f"/x/address/{RICH}?tab=history", ["2GYMyoaa"]),
    ("x-asset", f"/x/asset/{AVAX}", ["Avalanche (AVAX)", "9 decimals", "Created in"]),
    ("containers-x", "/containers/X", ["155", "156", "standard"]),
    ("containers-p", "/containers/P", ["61", "62", "proposal"]),
    ("container-c", "/containers/C/11", [C_LAST, "0x32a5c5606df4dbaaee22c59efefd49b06633ca90acb28e88534779575174f570"]),
    ("operations", "/operations", ["healthy", "Indexing", "Upstreams", "usable", "synced", "diskspace"]),
    ("webhooks-none", "/webhooks", ["There are none yet.", "of callers on this machine", "Secret"]),
    ("webhook-form", "/webhooks/new?type=validator_activity", ["l1_validator_disabled", "Only these nodes"]),
    ("search", "/search/a", ["Alpha"]),
    ("nothing", "/search/nothing-has-this-name", ["Nothing was found"]),
    ("not-found", "/no/such/page", ["There is no such page"]),
]


@pytest.mark.parametrize(("name", "address", "texts"), PAGES, ids=[page[0] for page in PAGES])
def test_page(name: str, address: str, texts: list[str], shared: Tab) -> None:
    shared.go(address)
    for text in texts:
        shared.await_text(text)
    assert shared.page.locator(".failed").count() == 0
    assert shared.page.locator("h1").count() == 1
    look_at(shared, name)
    made = shared.page.locator("#call-list li").count()
    assert (made > 0) == (name != "not-found"), "a page lists the calls it made"


ABSENT = [
    ("no-transaction", f"{L1}/tx/0x{7:064x}", "Not found", "has no indexed transaction"),
    ("no-block", f"{L1}/block/99999", "Not found", "has no indexed block 99999"),
    ("no-chain", "/chain/77", "Not found", "Chain 77 is not indexed here"),
    ("no-address", f"{L1}/address/0x{'ab' * 20}", "0x", "does not occur on Demo L1"),
    ("no-valid-address", f"{L1}/address/0x12", "This is not a valid address", "0x and 40 hex digits, got 0x12"),
    ("no-container", "/containers/X/9999", "Not found", "o container at index 9999"),
]


@pytest.mark.parametrize(("name", "address", "title", "text"), ABSENT, ids=[page[0] for page in ABSENT])
def test_what_is_not_there(name: str, address: str, title: str, text: str, shared: Tab) -> None:
    """It is said plainly, and nothing asks to be tried again that would fail again."""
    shared.go(address)
    shared.await_text(text)
    assert title in shared.text("h1")
    assert shared.page.get_by_role("button", name="Try again").count() == 0
    look_at(shared, name)
    assert [one for one in shared.new_problems() if "Failed to load resource" not in one] == []


def test_the_chosen_tab_and_page_are_in_view_on_a_phone(shared: Tab) -> None:
    shared.look(375, "light")
    for address, chosen in (
        (f"{L1}/address/{BUSY}?tab=deployments", "#tab-deployments"),
        ("/operations", "#nav [aria-current]"),
    ):
        shared.open(address)
        box = shared.page.locator(chosen).bounding_box()
        assert box is not None
        assert 0 <= box["x"] < box["x"] + box["width"] <= 375


def test_there_is_no_way_beyond_the_ends_of_a_chain(shared: Tab) -> None:
    for address, links in (
        (f"{L1}/block/1968", ["Previous"]),
        (f"{L1}/block/0", ["Next"]),
        ("/x/block/156", ["Previous"]),
    ):
        shared.go(address)
        assert shared.page.locator(".steps a").all_inner_texts() == links


def test_more_blocks_than_the_head_is_all_of_them(shared: Tab) -> None:
    """A block may be stored after the head was asked for."""

    def one_more(route: Route) -> None:
        reply = route.fetch()
        route.fulfill(response=reply, json={**reply.json(), "lastBlock": "92", "headBlock": "91"})

    shared.page.route("**/v1/chains/3210042/indexing", one_more)
    try:
        shared.go("/operations")
        row = shared.page.locator("tr", has_text="92 of 92")
        row.wait_for()
        assert "100%" in row.inner_text()
    finally:
        shared.unroute()


def test_the_keyboard_reaches_everything(shared: Tab) -> None:
    shared.open(L1)
    page = shared.page
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "skip"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    page.locator("#tab-blocks").focus()
    page.keyboard.press("ArrowRight")
    assert page.evaluate("document.activeElement.id") == "tab-transactions"
    assert page.locator("#tab-transactions").get_attribute("aria-selected") == "true"
    page.wait_for_url(re.compile(r"\?tab=transactions$"))
    shared.wait()
    page.locator("#tab-panel a[href*='/tx/']").first.press("Enter")
    page.wait_for_url("**/tx/**")
    shared.wait()
    assert page.evaluate("document.activeElement.tagName") == "H1"


def test_a_chart_can_be_read_without_seeing_it(shared: Tab) -> None:
    shared.go("/metrics/tx_count?chains=3210042&range=all")
    page = shared.page
    page.locator(".chart").focus()
    page.keyboard.press("End")
    assert re.fullmatch(r"2024-03-26: [0-9]+ transactions", page.locator("#announcer").text_content() or "")
    assert page.locator(".chart-tip").is_visible()
    page.locator(".chart-table summary").click()
    rows = page.locator(".chart-table tbody tr")
    rows.nth(45).wait_for()
    assert rows.count() == 46
    with page.expect_download() as saved:
        page.get_by_role("button", name="Download as CSV").click()
    lines = saved.value.path().read_text().splitlines()
    assert lines[0] == 'timestamp,time,"tx_count Demo L1"'
    assert len(lines) == 47
    assert sum(int(line.rpartition(",")[2]) for line in lines[1:]) == 4082


def test_the_theme_can_be_chosen_and_is_kept(explorer: Tab) -> None:
    explorer.look(1440, "light")
    explorer.open("/operations")
    background = "getComputedStyle(document.body).backgroundColor"
    light = explorer.page.evaluate(background)
    explorer.page.locator("#theme").click()
    dark = explorer.page.evaluate(background)
    assert dark != light
    explorer.open("/operations")
    assert explorer.page.evaluate(background) == dark


def test_new_pages_of_a_list_are_added(shared: Tab) -> None:
    shared.go(f"{L1}/address/{BUSY}")
    rows = shared.page.locator("#tab-panel tbody tr")
    before = rows.count()
    shared.page.get_by_role("button", name="Show more").click()
    rows.nth(before + 10).wait_for()
    assert rows.count() > before


def test_the_home_page_is_live(shared: Tab) -> None:
    shared.go("/")
    shared.page.wait_for_selector(".live.on")
    assert any("/v1/stream" in url for url in shared.requests)


def test_a_block_is_found_by_its_time(shared: Tab) -> None:
    shared.go(L1)
    shared.page.get_by_label("Block at a time").fill("2024-03-26T23:30:00")
    shared.page.get_by_role("button", name="Find").click()
    shared.page.wait_for_url("**/chain/3210042/block/1968")


def test_the_history_of_a_token_can_be_chosen(shared: Tab) -> None:
    shared.go(f"{L1}/address/{BUSY}")
    assert "(DEMO)" in shared.text("figcaption")
    shared.page.locator("main .choices:not(.filters) select").select_option(label="Alpha Dollar")
    shared.page.wait_for_selector("figcaption:has-text('ADOL')")


def test_what_arrives_is_shown_at_the_top(demo: Server, shared: Tab) -> None:
    """The demo's chains get no new blocks, so these are made: one that is new, one that is listed, one that is old."""
    blocks = demo.ask("GET", "/v1/blocks?pageSize=1", listener="data").json()["blocks"]
    new = blocks[0] | {"blockNumber": "199", "blockHash": f"0x{7:064x}", "blockTimestamp": int(time.time())}
    old = blocks[0] | {"blockNumber": "5", "blockHash": f"0x{8:064x}", "blockTimestamp": 5}
    events = "".join(f"event: block\ndata: {json.dumps(block)}\n\n" for block in (new, blocks[0], old))
    shared.page.route("**/v1/stream?*", lambda route: route.fulfill(content_type="text/event-stream", body=events))
    try:
        shared.go("/")
        rows = shared.page.locator("section[aria-label='Latest blocks'] tbody tr")
        rows.first.filter(has_text="199").wait_for()
        assert rows.nth(1).locator("td a").first.inner_text() == "198"
        assert rows.count() == 10
        assert rows.last.locator("td a").first.inner_text() == "190"
    finally:
        shared.unroute()
