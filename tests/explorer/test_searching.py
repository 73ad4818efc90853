"""The search box in a real browser: what it takes, suggestions while one types, and the keyboard."""

import re

import pytest
from tests.demo.test_demo_up import BUSY, RICH
from tests.explorer.browser import Tab, needs_chromium
from tests.server import Server

pytestmark = needs_chromium

AVAX = "2fombhL7aGPwj3KH4bfrmJwW6PVnMobf9Y2fn9GwxiAAJyFDbe"
X_TX = "ewj9hHMJYTTyHXXEvM1mfKRjZc4NtvYSo4Td8cj7Qk53LzBoz"
X_BLOCK = "2BC1Co2TguSha4Um6TgGc5KVKYVxmDW2BtKKb7sAFAFW6nk8sJ"
MINT = "0xe82984731780185889ba9b39ace6b265dcb28482ff717904dd1e3004615433bd"
LAST_HASH = "0xa82c7a8e7f851c1d07d95eadca9ed610c4f0417bb70cbae55312416059300f6e"
C_LAST = "VWTbeaMm9eaZ6nyCypcY2uz3NbyCTM7R5xz9G7i1d9sVwZxES"
L1 = "/chain/3210042"


SEARCHES = [
    (BUSY.lower(), f"#/chain/3210042/address/{BUSY}", "one"),
    (MINT, f"#/chain/3210042/tx/{MINT}", "one"),
    (LAST_HASH, "#/chain/3210042/block/1968", "one"),
    ("1968", "#/chain/3210042/block/1968", "one"),
    ("100", "#/chain/3210042/block/100", "several"),
    ("alpha d", "#/chain/3210042/token/", "several"),
    ("BÉT", "/token/", "several"),
    (RICH, f"#/x/address/{RICH}", "one"),
    (f"P{RICH[1:]}", f"#/network/address/{RICH[2:]}", "one"),
    (C_LAST, "#/containers/C/11", "one"),
    (AVAX, f"#/x/asset/{AVAX}", "several"),  # also the transaction that created it
    (X_TX, f"#/x/tx/{X_TX}", "one"),
    (X_BLOCK, "#/x/block/150", "one"),
    ("43112", "#/chain/43112", "one"),
    ("demo l", "#/chain/3210042", "one"),
    ("1,968", "#/chain/3210042/block/1968", "one"),
    ("0x7b0", "#/chain/3210042/block/1968", "one"),
    (BUSY[2:].upper(), f"#/chain/3210042/address/{BUSY}", "one"),
    (MINT[2:], f"#/chain/3210042/tx/{MINT}", "one"),
    (MINT[:10], f"#/chain/3210042/tx/{MINT}", "one"),
    (LAST_HASH[:8].upper().replace("X", "x"), "#/chain/3210042/block/1968", "one"),
    (BUSY[:9].lower(), f"#/chain/3210042/address/{BUSY}", "one"),
    (BUSY[:8], f"#/chain/3210042/address/{BUSY}", "one"),  # six digits
    (BUSY[2:8].lower(), f"#/chain/3210042/address/{BUSY}", "one"),
    (MINT[2:8], f"#/chain/3210042/tx/{MINT}", "one"),
    ("0x7B0", "#/chain/3210042/block/1968", "one"),
    ("demo coin", "#/chain/3210042", "one"),  # the name of a native token
    ("PHA DOL", "#/chain/3210042/token/", "several"),
    ("corded", "#/chain/43112", "one"),
    ("demo", "#/chain/3210042", "several"),
    (RICH[2:], f"#/network/address/{RICH[2:]}", "one"),
    ("avax", "#/chain/43112", "one"),  # the symbol of its native token
    ("coin", "#/chain/3210042/token/", "several"),
]


@pytest.mark.parametrize(("text", "address", "count"), SEARCHES, ids=[search[0][:16] for search in SEARCHES])
def test_search(text: str, address: str, count: str, shared: Tab) -> None:
    """One result is opened at once; several are listed."""
    shared.go("/no/such/page")
    shared.page.keyboard.press("/")
    shared.page.keyboard.insert_text(text)
    shared.page.keyboard.press("Enter")
    if count == "one":
        shared.page.wait_for_url(f"**/{address}")
    else:
        link = shared.page.locator(f".result[href*='{address}'], main a[href*='{address}']").first
        link.wait_for()
        if shared.page.locator(".result").count():
            link.click()
            shared.page.wait_for_url(re.compile(re.escape(address)))
    shared.wait()
    assert shared.page.locator(".failed").count() == 0


def test_other_chains_lead_not_back_to_the_address_itself(shared: Tab) -> None:
    """Also where it occurs on one chain only."""
    shared.go(f"{L1}/address/{BUSY}")
    shared.page.click("text=Other chains")
    shared.page.locator(".result").first.wait_for()
    assert "#/search/" in shared.page.url


def test_the_search_box_is_empty_again_on_later_pages(shared: Tab) -> None:
    shared.go("/")
    shared.page.fill("#search", "1968")
    shared.page.press("#search", "Enter")
    shared.page.wait_for_url("**/block/1968")
    assert shared.page.input_value("#search") == "1968"
    shared.page.click("#nav >> text=Metrics")
    shared.page.wait_for_url("**/#/metrics")
    shared.wait()
    assert shared.page.input_value("#search") == ""


def test_a_page_that_arrives_late_leaves_the_search_box_to_its_reader(shared: Tab) -> None:
    shared.go("/")
    shared.page.focus("#search")
    shared.page.keyboard.type("19")
    shared.page.evaluate("location.hash = '#/metrics'")
    shared.page.wait_for_url("**/#/metrics")
    shared.wait()
    shared.page.keyboard.type("68")
    assert shared.page.input_value("#search") == "1968"
    shared.page.keyboard.press("Enter")
    shared.page.wait_for_url("**/block/1968")


def test_the_search_box_shows_the_query_of_its_page(shared: Tab) -> None:
    shared.go("/search/alpha%20d")
    assert shared.page.input_value("#search") == "alpha d"
    shared.go("/search/dollar")
    assert shared.page.input_value("#search") == "dollar"


def test_this_node_is_found_by_its_id(demo: Server, shared: Tab) -> None:
    own = demo.call("/ext/info", "info.getNodeID")["result"]["nodeID"]
    shared.go(f"/search/{own}")
    shared.page.wait_for_url("**/#/operations")


def suggested(shared: Tab, text: str) -> None:
    """Types a text; ends when there are suggestions for all of it."""
    shared.page.focus("#search")
    shared.page.wait_for_selector("#suggestions", state="attached")
    with shared.page.expect_response(lambda reply: f"query={text}" in reply.url):
        shared.page.keyboard.insert_text(text)
    shared.page.wait_for_selector("#suggestions [role=option]")


def test_suggestions_are_listed_by_kind_and_chosen_with_the_keyboard(shared: Tab) -> None:
    shared.go("/no/such/page")
    suggested(shared, "demo")
    page = shared.page
    groups = page.locator("#suggestions [role=group]").evaluate_all("all => all.map((one) => one.ariaLabel)")
    assert groups[0] == "Chains"
    assert len(groups) == len(set(groups))
    assert "Demo L1" in page.inner_text("#suggestions")
    assert page.get_attribute("#search", "aria-expanded") == "true"
    assert page.get_attribute("#search", "aria-activedescendant") is None
    assert shared.findings() == []
    for key in ("ArrowUp", "ArrowDown"):  # to the last one, and from there to the first
        page.keyboard.press(key)
    marked = page.locator("#suggestions [aria-selected=true]")
    assert marked.count() == 1
    assert marked.get_attribute("id") == page.get_attribute("#search", "aria-activedescendant") == "s-0"
    page.keyboard.press("Enter")
    page.wait_for_url("**/#/chain/3210042")
    assert page.locator("#suggestions").is_hidden()


def test_suggestions_are_closed_and_followed_with_the_pointer(shared: Tab) -> None:
    shared.go("/no/such/page")
    suggested(shared, "1968")
    shared.page.keyboard.press("Escape")
    assert shared.page.locator("#suggestions").is_hidden()
    assert shared.page.input_value("#search") == "1968"
    shared.look(375, "dark")
    shared.page.fill("#search", "")
    suggested(shared, "dollar")
    assert shared.overflow() <= 0
    shared.page.click("#suggestions [role=option] >> nth=0")
    shared.page.wait_for_url(re.compile("/token/"))


def test_fewer_than_six_digits_find_no_hash(shared: Tab) -> None:
    shared.go(f"/search/{MINT[:7]}")
    shared.await_text("Nothing was found")


# Key by key without a pause, however busy the machine is.
TYPE = """(text) => {
  const box = document.getElementById("search");
  for (let end = 1; end <= text.length; end++) {
    box.value = text.slice(0, end);
    box.dispatchEvent(new Event("input", { bubbles: true }));
  }
}"""


def test_typing_asks_once_for_each_pause_and_drops_what_is_late(explorer: Tab) -> None:
    """Ten keys are one call of the search of the interface; a further key ends the call before it."""
    explorer.open("/no/such/page")
    calls: list[str] = []
    explorer.page.on("request", lambda one: calls.append(one.url) if "query=" in one.url else None)
    explorer.page.focus("#search")
    explorer.page.wait_for_selector("#suggestions", state="attached")
    explorer.page.evaluate(TYPE, "alpha doll")
    explorer.page.wait_for_selector("#suggestions [role=option]")
    assert ["/v1/search?" in one for one in calls] == [True], calls
    ended: list[str] = []
    explorer.page.on("requestfailed", lambda one: ended.append(one.url))
    explorer.page.route(re.compile("alpha(%20|[+])dolla(&|$)"), lambda route: None)  # never answered
    with explorer.page.expect_request(re.compile("dolla(&|$)")) as late:
        explorer.page.keyboard.type("a")
    with explorer.page.expect_response(re.compile("dollar(&|$)")):
        explorer.page.keyboard.type("r")
    explorer.page.wait_for_selector("#suggestions [role=option]")
    assert ended == [late.value.url]


def test_markup_in_a_searched_text_is_text(shared: Tab) -> None:
    shared.go("/search/%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E")
    assert "<img src=x" in shared.text()
