"""Addresses in the Explorer: filters, mint and burn, QR codes, the way back to a place, and what is newer."""

import json
import re

import pytest
from playwright.sync_api import Route
from tests.demo.prepared import COIN
from tests.demo.test_demo_up import BUSY
from tests.explorer.browser import Tab, needs_chromium
from tests.server import Server
from tests.waiting import until

pytestmark = needs_chromium

L1 = "/chain/3210042"
ZERO = f"0x{'0' * 40}"


def rows(explorer: Tab) -> list[str]:
    return explorer.page.locator("#tab-panel tbody tr").all_inner_texts()


def shown_ways(explorer: Tab) -> set[str]:
    return set(explorer.page.locator("#tab-panel tbody td:nth-child(4)").all_inner_texts())


@pytest.mark.parametrize("way", ["in", "out"])
def test_a_list_is_filtered_by_direction(way: str, shared: Tab) -> None:
    shared.go(f"{L1}/address/{BUSY}?tab=erc20")
    shared.page.locator("summary", has_text="Filter").click()
    shared.page.get_by_label("Direction").select_option(way)
    shared.page.locator(".table-box[aria-label='ERC-20 transfers, filtered']").wait_for()
    shared.page.wait_for_url(f"**way={way}")
    assert shown_ways(shared) - {"self"} == {way}
    shared.go(f"{L1}/address/{BUSY}?tab=erc20&way={way}")
    assert shown_ways(shared) - {"self"} == {way}
    assert shared.findings() == []


def test_a_list_is_filtered_by_token_time_and_failure(demo: Server, shared: Tab) -> None:
    shared.go(f"{L1}/address/{BUSY}?tab=erc20&token=ADOL&from=2024-03-01T00:00:00&to=2024-03-20T00:00:00")
    found = rows(shared)
    assert found
    assert all("ADOL" in one and (re.findall("2024-[0-9-]+", one) or [""])[0] >= "2024-03-01" for one in found)
    assert all((re.findall("2024-[0-9-]+", one) or [""])[0] < "2024-03-20" for one in found)
    shared.go(f"{L1}/address/{BUSY}?tab=transactions&failed=1")
    every = demo.ask(
        "GET", f"/v1/chains/3210042/addresses/{BUSY}/transactions:listNative?pageSize=100", listener="data"
    )
    failed = [one for one in every.json()["transactions"] if one["txStatus"] == "0"]
    assert sum("Failed" in one for one in rows(shared)) == len(rows(shared)) >= len(failed) > 0
    shared.go(f"{L1}/address/{BUSY}?tab=erc20&token=nothing-is-named-so")
    shared.await_text("Nothing fits among the newest rows")


def test_the_zero_address_mints_and_burns(shared: Tab) -> None:
    shared.go(f"{L1}/token/{COIN}")
    shared.page.locator("#tab-panel .badge", has_text="mint").first.wait_for()
    shared.go(f"{L1}/address/{ZERO}")
    shared.await_text("tokens that come from it were minted")


def codewords(cells: list[list[bool]]) -> bytes:
    """Reads the data of a QR code of version 3, as a scanner does: fixed parts left out, mask 0 taken off."""
    size = len(cells)

    def is_fixed(x: int, y: int) -> bool:
        corner = (x < 9 and y < 9) or (x >= size - 8 and y < 9) or (x < 9 and y >= size - 8)
        return corner or 6 in (x, y) or (20 <= x <= 24 and 20 <= y <= 24)

    bits, up = [], True
    for right in (*range(size - 1, 6, -2), 5, 3, 1):
        for y in range(size - 1, -1, -1) if up else range(size):
            bits += [cells[y][x] ^ ((x + y) % 2 == 0) for x in (right, right - 1) if not is_fixed(x, y)]
        up = not up
    return bytes(sum(bit << (7 - at) for at, bit in enumerate(bits[i : i + 8])) for i in range(0, 70 * 8, 8))


def times(a: int, b: int) -> int:
    product = 0
    while b:
        product ^= a * (b & 1)
        a, b = (a << 1) ^ (0x11D * (a >> 7)), b >> 1
    return product


@pytest.mark.parametrize("text", [BUSY, ZERO, "x", "y" * 53])
def test_a_qr_code_holds_the_address(text: str, shared: Tab) -> None:
    shared.go("/operations")
    script = "async (text) => (await import('./explorer/qr.js')).matrix(text)"
    words = codewords(shared.page.evaluate(script, text))
    for root in range(15):  # the polynomial of all codewords is zero at each root of the generator
        power, value = 1, 0
        for _ in range(root):
            power = times(power, 2)
        for word in words:
            value = times(value, power) ^ word
        assert value == 0, root
    bits = "".join(f"{word:08b}" for word in words)
    assert (bits[:4], int(bits[4:12], 2)) == ("0100", len(text))
    assert bytes(int(bits[at : at + 8], 2) for at in range(12, 12 + 8 * len(text), 8)) == text.encode()


def test_a_qr_code_is_drawn_on_the_page(shared: Tab) -> None:
    shared.go(f"{L1}/address/{BUSY}")
    shared.page.locator("summary", has_text="QR code").click()
    shared.page.get_by_role("img", name=f"QR code of {BUSY}").wait_for()
    assert shared.findings() == []


def test_back_returns_to_the_page_and_the_place(shared: Tab) -> None:
    """Rows that were added, the tab and how far the window was scrolled."""
    shared.go(f"{L1}/address/{BUSY}?tab=erc20")
    page = shared.page
    page.get_by_role("button", name="Show more").click()
    page.locator("#tab-panel tbody tr").nth(45).wait_for()
    page.wait_for_url("**pages-erc-20-transfers=2**")
    link = page.locator("#tab-panel tbody tr").nth(40).locator("a[href*='/tx/']").first
    link.scroll_into_view_if_needed()
    before, text = page.evaluate("scrollY"), link.inner_text()
    assert before > 500
    link.click()
    page.wait_for_url("**/tx/**")
    shared.wait()
    page.go_back()
    until(lambda: abs(page.evaluate("scrollY") - before) < 40, "the page is scrolled to where it was")
    shared.wait()
    assert page.locator("#tab-panel tbody tr").count() > 40
    assert page.locator("#tab-panel tbody tr").nth(40).locator("a[href*='/tx/']").first.inner_text() == text


@pytest.mark.parametrize(("address", "kind"), [(L1, "block"), (f"{L1}/address/{BUSY}", "transaction")])
def test_an_open_page_says_that_there_is_something_newer(address: str, kind: str, demo: Server, shared: Tab) -> None:
    """The stream begins with what the page shows, and goes on with two blocks that are made here."""
    listed = demo.ask("GET", f"/v1/chains/3210042/{kind}s?pageSize=1", listener="data").json()[f"{kind}s"][0]
    new = [
        listed | {"blockNumber": str(1969 + at), "blockHash": f"0x{at:064x}", "txHash": f"0x{at:064x}"} for at in (1, 2)
    ]
    body = "".join(f"event: {kind}\ndata: {json.dumps(row)}\n\n" for row in (listed, *new))
    answers = iter([{"content_type": "text/event-stream", "body": body}])

    def stream(route: Route) -> None:
        route.fulfill(**next(answers, {"status": 204}))

    shared.page.route("**/v1/stream?*", stream)
    try:
        shared.go(address)
        button = shared.page.locator(".newer")
        button.filter(has_text=f"2 newer {kind}s").wait_for()
        assert shared.findings() == []
        with shared.page.expect_response("**/v1/chains/3210042/blocks?pageSize=1"):
            button.click()
        shared.wait()
        assert not shared.page.locator(".newer").is_visible()
    finally:
        shared.unroute()


def test_a_page_that_is_up_to_date_says_nothing(shared: Tab) -> None:
    with shared.page.expect_response("**/v1/stream?*"):
        shared.go(L1)
    shared.page.wait_for_selector(".newer", state="attached")
    assert not shared.page.locator(".newer").is_visible()
