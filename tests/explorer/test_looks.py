"""How pages look: little before the content, failures marked, wide screens used, addresses that look different, and
pages without content that say what to do."""

from typing import Any

import pytest
from tests.demo.prepared import COIN
from tests.demo.test_demo_up import BUSY
from tests.explorer.browser import Tab, needs_chromium

pytestmark = needs_chromium

L1 = "/chain/3210042"
REVERTED = "0x60ae1a6263d78d73361e2136b2de6c27e11cb201c91513924e02d932a2df9a12"


def bounds(explorer: Tab, selector: str) -> dict[str, Any]:
    found: dict[str, Any] = explorer.page.locator(selector).first.evaluate(
        "one => { const { left, right, top } = one.getBoundingClientRect(); return { left, right, top } }"
    )
    return found


@pytest.mark.parametrize(
    ("address", "content"),
    [("/", ".card"), (L1, ".card"), (f"{L1}/block/1968", ".card"), (f"{L1}/address/{BUSY}", ".card")],
)
def test_little_stands_before_the_content(address: str, content: str, shared: Tab) -> None:
    for width, most in ((1440, 150), (375, 260)):
        shared.look(width, "light")
        shared.go(address)
        assert bounds(shared, f"main {content}")["top"] <= most, width


def test_wide_screens_are_used(shared: Tab) -> None:
    shared.look(1800, "light")
    shared.go(L1)
    place = bounds(shared, "main .tabbed")
    assert place["right"] - place["left"] >= 1600
    assert shared.overflow() <= 0


def test_the_gas_price_fills_the_place_beside_what_a_chain_is(shared: Tab) -> None:
    shared.go(L1)
    gas, about = (bounds(shared, f"main section:has(h2:text-is('{name}'))") for name in ("Gas price", "About"))
    assert gas["right"] < about["left"]


@pytest.mark.parametrize(("where", "width"), [(f"{L1}/address/{BUSY}", 375), (f"{L1}/tx/{REVERTED}", 375), (L1, 1440)])
def test_the_picture_of_an_address_stands_beside_it(where: str, width: int, shared: Tab) -> None:
    """Also where the address takes two lines; and there is room between them."""
    shared.look(width, "dark")
    shared.go(where)
    shown = shared.page.locator("main .who:has(> .identicon):has(> .id)").locator("visible=true")
    found = shown.first.evaluate(
        """one => {
            const [mark, text] = [one.querySelector('.identicon'), one.querySelector('.id > *')];
            const [of, first] = [mark.getBoundingClientRect(), text.getClientRects()[0]];
            return [of.bottom > first.top && of.top < first.bottom, first.left - of.right];
        }"""
    )
    assert found[0], "on the same line"
    assert 4 <= found[1] <= 12
    assert shared.overflow() <= 0


def test_failures_are_marked_and_successes_are_not(shared: Tab) -> None:
    shared.go(f"{L1}?tab=failed")
    rows = shared.page.locator("#tab-panel tbody tr")
    failed = rows.count()
    assert failed > 0
    assert rows.locator(".badge.bad", has_text="Failed").count() == failed
    shared.go(f"{L1}?tab=transactions")
    assert shared.page.locator("main .badge.good").count() == 0
    shared.go(f"{L1}/tx/{REVERTED}")
    assert "Failed" in shared.text(".page-head")


def test_an_address_has_a_picture_of_its_own(shared: Tab) -> None:
    """The same on every page, and another for another address; what is no address has none."""
    script = """async (given) => {
        const m = await import('./explorer/identicon.js');
        return given.map((one) => m.identicon(one)?.outerHTML ?? null);
    }"""
    shared.go(L1)
    given = [COIN, COIN.lower(), *(f"0x{at:040x}" for at in range(300)), "0x12", "X-local1abc"]
    first, same, *others, short, other_chain = shared.page.evaluate(script, given)
    assert first == same
    assert len({first, *others}) == 301
    assert short is other_chain is None
    shared.go(f"{L1}?tab=transactions")
    cells = shared.page.locator("#tab-panel tbody td .who:has(a[href*='/address/'])")
    cells.first.wait_for()
    assert cells.locator(".identicon").count() == cells.count()


def test_a_named_address_shows_its_last_digits(shared: Tab) -> None:
    shared.go(f"{L1}?tab=transactions")
    named = shared.page.locator("#tab-panel tbody .who:has(.digits)").first
    whole = named.locator("a").get_attribute("title") or ""
    assert named.locator(".digits").inner_text() == whole[-4:]


def test_a_page_without_content_says_what_to_do(shared: Tab) -> None:
    hash_text = f"0x{7:064x}"
    for address, words in (
        (f"{L1}/tx/{hash_text}", ["on all chains", "Operations"]),
        (f"{L1}/address/0x12", ["a digit may be missing"]),
        (f"{L1}/block/99999", ["Search for 99999 on all chains"]),
        ("/chain/no-such-chain", ["Search for no-such-chain on all chains"]),
        ("/no/such/page", ["the home page"]),
    ):
        shared.go(address)
        advice = shared.page.locator(".advice")
        advice.wait_for()
        for text in words:
            assert text in advice.inner_text()
    shared.go(f"{L1}/tx/{hash_text}")
    shared.page.locator(".advice a", has_text="0x0000").click()
    shared.page.wait_for_url(f"**/search/{hash_text}?all")
    shared.wait()
    shared.problems[:] = [one for one in shared.problems if "status of 404" not in one]
