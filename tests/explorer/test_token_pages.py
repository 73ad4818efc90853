"""Tokens in the Explorer: totals, shares, lists in an order, logos, and tokens that share a name."""

import pytest
from tests.demo.prepared import COIN
from tests.demo.test_demo_up import BUSY
from tests.explorer.browser import Tab, needs_chromium

pytestmark = needs_chromium

L1 = "/chain/3210042"
TOLL, OTHER_TOLL = "0x414846896BAF0Ef95f4BBD4A0416D3FbCa329f6d", "0x3A2cACB650E343a1F8DA58B890E1790a36c15CDC"


def test_a_token_shows_its_totals_and_the_share_of_each_holder(shared: Tab) -> None:
    shared.go(f"{L1}/token/{COIN}?tab=holders")
    figures = shared.text("main .figures")
    for name in ("Total supply", "Holders", "Transfers", "Price", "Market value"):
        assert name in figures
    assert figures.count("$") == 2
    shared.await_text("holders after block")
    shares = [float(one.rstrip("%")) for one in shared.page.locator("td.below .number").all_inner_texts()]
    assert shares == sorted(shares, reverse=True)
    assert 90 < sum(shares) <= 100


@pytest.mark.parametrize(("name", "column"), [("Holders", 4), ("Transfers", 5)])
def test_tokens_are_sorted(name: str, column: int, shared: Tab) -> None:
    shared.go(f"{L1}/tokens")
    shared.page.get_by_role("group", name="Order of the tokens").get_by_role("button", name=name).click()
    shared.page.locator(f".table-box[aria-label='Tokens by {name.lower()}']").wait_for()
    shared.page.wait_for_url(f"**?sort={name.lower()}")
    cells = shared.page.locator(f"tbody tr td:nth-child({column}) > .number").all_inner_texts()
    counts = [int(one.replace(",", "")) for one in cells]
    assert counts == sorted(counts, reverse=True)
    assert len(counts) > 10
    shared.go(f"{L1}/tokens?sort={name.lower()}")
    assert shared.page.locator("[aria-pressed=true]").inner_text() == name


def test_tokens_are_sorted_by_name_and_by_value(shared: Tab) -> None:
    shared.go(f"{L1}/tokens?sort=name")
    names = [one.lower() for one in shared.page.locator("tbody .token a").all_inner_texts()]
    assert names == sorted(names)
    assert len(names) > 10
    shared.go(f"{L1}?tab=tokens&sort=marketValue")
    shared.await_text("Toll Coin")
    assert shared.page.locator("tbody .token a").all_inner_texts()[:2] == ["Toll Coin", "Alpha Dollar"]


def test_two_tokens_of_one_name_are_not_taken_for_one_another(shared: Tab) -> None:
    shared.go(f"{L1}/tokens?sort=name")
    rows = shared.page.locator("tbody tr", has_text="Toll Coin")
    assert sorted(rows.locator(".digits").all_inner_texts()) == sorted((TOLL[-4:], OTHER_TOLL[-4:]))
    assert rows.filter(has_text="not the listed one").locator(".digits").all_inner_texts() == [OTHER_TOLL[-4:]]
    shared.go(f"{L1}/token/{OTHER_TOLL}")
    warning = shared.page.locator(".notice")
    assert "Another token has this name" in warning.inner_text()
    assert shared.overflow() <= 0
    warning.get_by_role("link").click()
    shared.page.wait_for_url(f"**/token/{TOLL}")
    shared.wait()
    assert shared.page.locator(".notice").count() == 0


def test_a_logo_of_the_list_is_shown_and_nothing_is_fetched_for_it(shared: Tab) -> None:
    shared.go(f"{L1}/token/{COIN}")
    logo = shared.page.locator("h1 img.logo")
    assert logo.evaluate("image => image.decode().then(() => image.naturalWidth > 0)")
    assert (logo.get_attribute("src") or "").startswith("data:image/svg+xml;base64,")


@pytest.mark.parametrize("page", ["address", "contract"])
def test_the_page_of_a_token_contract_has_its_name_as_title(page: str, shared: Tab) -> None:
    shared.go(f"{L1}/{page}/{COIN}")
    assert shared.text("h1").strip() == "Alpha Dollar"
    assert COIN in shared.text(".page-head")
    assert "ADOL" in shared.page.title()


def test_balances_are_sorted_and_unlisted_prices_are_not_counted(shared: Tab) -> None:
    shared.go(f"{L1}/address/{BUSY}")
    box = shared.page.locator("section[aria-label=Balances]")
    shown = [one for one in box.locator("td:nth-child(3)").all_inner_texts() if one.startswith("$")]
    native, *tokens = [float(one.replace("$", "").replace(",", "")) for one in shown]
    listed, unlisted = tokens[:-1], tokens[-1]
    assert listed == sorted(listed, reverse=True)
    assert len(listed) == 3
    assert "not listed" in box.locator("tbody tr", has_text="Beta").inner_text()
    head = float(box.locator(".worth").inner_text().replace("$", "").replace(",", ""))
    assert head == pytest.approx(native + sum(listed), abs=0.02)
    assert f"{unlisted:.8f}" in box.locator("p.note").inner_text()
