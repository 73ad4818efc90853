"""Blocks, home, metrics and the asset chain in the Explorer: what gas costs, small charts, all blocks, times of the
chain."""

import re
from typing import Any

import pytest
from playwright.sync_api import Route
from tests.explorer.browser import Tab, look_at, needs_chromium
from tests.server import Server
from tests.waiting import LIMIT_S

pytestmark = needs_chromium

L1, C_CHAIN = "/chain/3210042", "/chain/43112"
X_TX = "ewj9hHMJYTTyHXXEvM1mfKRjZc4NtvYSo4Td8cj7Qk53LzBoz"


def fact(explorer: Tab, name: str) -> str:
    return explorer.page.locator(".facts > div", has=explorer.page.locator("dt", has_text=name)).inner_text()


@pytest.mark.parametrize("chain", [L1, C_CHAIN])
def test_a_block_shows_its_size_its_fee_recipient_and_what_was_burnt(chain: str, demo: Server, shared: Tab) -> None:
    """The L1 burns the base fee alone, and the C-Chain whole fees, which go to an address without a key."""
    newest = demo.ask("GET", f"/v1/chains/{chain[7:]}/blocks:listDetails?pageSize=25", listener="data").json()["blocks"]
    block = next(one for one in newest if one["feesSpent"] != "0")
    number = int(block["blockNumber"])
    burnt = int(block["baseFee"]) * int(block["gasUsed"])
    assert int(block["feesBurned"]) == (burnt if chain == L1 else int(block["feesSpent"])) > 0
    shared.go(f"{chain}/block/{number}")
    assert f"{int(block['feesBurned']) / 10**18:.18f}".rstrip("0") in fact(shared, "Burnt fees")
    assert block["feeRecipient"] in fact(shared, "Fee recipient")
    assert f"{block['size']:,} bytes" in fact(shared, "Size")
    shared.go(f"{chain}?tab=blocks")
    row = shared.page.locator(
        "#tab-panel tbody tr", has=shared.page.get_by_role("link", name=f"{number:,}", exact=True)
    )
    assert f"{block['size']:,} B" in row.inner_text()
    assert row.locator(f"a[href$='/address/{block['feeRecipient']}']").count() == 1


def test_a_block_that_an_older_release_indexed_shows_no_guess(shared: Tab) -> None:
    def without(block: Any) -> Any:
        return {name: value for name, value in block.items() if name not in ("feeRecipient", "size", "feesBurned")}

    def one(route: Route) -> None:
        route.fulfill(json=without(route.fetch().json()))

    def page(route: Route) -> None:
        given = route.fetch().json()
        route.fulfill(json=given | {"blocks": [without(block) for block in given["blocks"]]})

    shared.page.route("**/details", one)
    shared.page.route("**/blocks:listDetails*", page)
    try:
        shared.go(f"{L1}/block/1968")
        names = shared.page.locator(".facts dt").all_inner_texts()
        assert "Fees spent" in names
        assert not {"Burnt fees", "Size", "Fee recipient"} & set(names)
        shared.go(f"{L1}?tab=blocks")
        cells = shared.page.locator("#tab-panel tbody tr").first.locator("td")
        assert cells.all_inner_texts()[-3:] == ["\u2013"] * 3
    finally:
        shared.unroute()


def test_a_chain_says_what_gas_costs_now(shared: Tab) -> None:
    shared.go(L1)
    box = shared.page.locator("section[aria-label='Gas price']")
    prices = [float(one.split()[0]) for one in box.locator("dd").all_inner_texts()][:3]
    assert prices == sorted(prices)
    assert prices[0] > 0
    assert "Of the newest 100 transactions" in box.inner_text()
    speeds = "async (prices) => (await import('./explorer/gas-now.js')).speeds(prices)?.map(([, wei]) => String(wei))"
    assert shared.page.evaluate(speeds, [str(wei) for wei in range(100, 0, -1)]) == ["11", "51", "91"]
    assert shared.page.evaluate(speeds, ["1", "2"]) is None


@pytest.mark.parametrize("what", ["blocks", "transactions"])
def test_home_leads_to_all_of_them(what: str, shared: Tab) -> None:
    shared.go("/")
    shared.page.get_by_role("link", name=f"All {what}").click()
    shared.page.wait_for_url(f"**/all/{what}")
    shared.wait()
    rows = shared.page.locator("main tbody tr")
    assert rows.count() == 25
    shared.page.get_by_role("button", name="Show more").click()
    rows.nth(30).wait_for()
    look_at(shared, f"all-{what}")


def test_small_charts_have_an_axis_and_values_under_the_pointer(shared: Tab) -> None:
    shared.go("/")
    card = shared.page.locator(".chain-card", has_text="Demo L1")
    assert re.fullmatch(r"2024-02-\d\d\s+2024-03-26", card.locator(".axis-ends").inner_text())
    assert card.locator(".axis-high").inner_text() == "343"
    spots = card.locator(".spot title")
    assert spots.count() == 30
    assert re.fullmatch(r"2024-03-26: [0-9]+", spots.last.text_content() or "")


def test_metrics_open_on_the_chain_with_the_most_data(shared: Tab) -> None:
    shared.go("/metrics")
    assert shared.page.locator("#chain option:checked").inner_text() == "Demo L1"
    shared.go("/metrics/tx_count")
    shared.page.wait_for_url("**chains=3210042**interval=day**")


def test_metrics_show_hours_where_there_are_few_days(explorer: Tab) -> None:
    def few(route: Route) -> None:
        reply = route.fetch(timeout=LIMIT_S * 1000)
        body: dict[str, Any] = reply.json()
        route.fulfill(response=reply, json={"results": body["results"][:2]})

    explorer.page.route("**/metrics/txCount?timeInterval=day*", few)
    explorer.open("/metrics/tx_count?chains=43112")
    explorer.page.wait_for_url("**chains=43112**interval=hour**")


def test_an_x_transaction_shows_block_time_fee_and_owners(shared: Tab) -> None:
    shared.go(f"/x/tx/{X_TX}")
    facts = shared.text("section[aria-label=Details]")
    for text in ("Accepted", "150", "0.001", "wallet chain 1", "UTC"):
        assert text in facts
    inputs = shared.page.locator(".flow > div").first.inner_text()
    outputs = shared.page.locator(".flow > div").last.inner_text()
    for box, amount in ((inputs, "24.3741"), (outputs, "24.3731")):
        assert amount in box
        assert "AVAX" in box
    owners = shared.page.locator(".flow > div").first.locator("a[href*='/x/address/']")
    assert (owners.first.get_attribute("title") or "").startswith("X-local1")
    owners.first.click()
    shared.page.wait_for_url("**/x/address/X-local1**")
    shared.wait()


def test_times_of_x_are_those_of_the_chain(demo: Server, shared: Tab) -> None:
    path = "/v1/networks/local/blockchains/x-chain/transactions?pageSize=1"
    newest = demo.ask("GET", path, listener="data").json()["transactions"][0]
    shared.go("/x?tab=transactions")
    shown = shared.page.locator("#tab-panel time").first.get_attribute("datetime") or ""
    assert shown.startswith("20")
    seconds = "(text) => Date.parse(text) / 1000"
    assert shared.page.evaluate(seconds, shown) == newest["timestamp"]
