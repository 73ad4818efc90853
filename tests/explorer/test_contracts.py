"""The page of a contract: what a proxy stands for, code, and functions that read, called in the node of the demo."""

import json
import re
from typing import Any

import pytest
from playwright.sync_api import Route
from tests.demo.prepared import COIN
from tests.demo.test_demo_up import BUSY
from tests.explorer.browser import WIDTHS, Tab, look_at, needs_chromium

pytestmark = needs_chromium

L1 = "/chain/3210042"
CLONE, TARGET = "0xf218eD0D8F2DCC1B4DD120ad790fB2fC9a7d4a43", "0xb5e8d4a3ac32575c6bbf15d6887ab7aac3f2633e"
RUN = "window.attacked = true"
MARKUP = f'<img src=https://tracker.example/x onerror="{RUN}"><script>{RUN}</script>'
LONG = "A" * 5000


def test_a_proxy_names_its_implementation_and_leads_there(shared: Tab) -> None:
    for page in ("contract", "address"):
        shared.go(f"{L1}/{page}/{CLONE}")
        note = shared.page.locator(".proxy")
        note.wait_for()
        assert "EIP-1167" in note.inner_text()
        assert note.locator("a.mono").inner_text().lower() == TARGET
    look_at(shared, "contract-proxy")
    shared.page.locator(".proxy a.mono").click()
    shared.page.wait_for_url(re.compile(f"{TARGET}$", re.IGNORECASE))
    shared.wait()
    assert shared.page.locator(".proxy").count() == 0


@pytest.mark.parametrize(("kind", "beacon"), [("EIP-1967", ""), ("EIP-1967 beacon", COIN), ("EIP-897", "")])
def test_other_kinds_of_proxies_are_named(kind: str, beacon: str, shared: Tab) -> None:
    found = {"address": CLONE, "isProxy": True, "implementation": TARGET, "proxyKind": kind, "blockNumber": "1968"}
    shared.page.route("**/proxy", lambda route: route.fulfill(json=found | ({"beacon": beacon} if beacon else {})))
    try:
        shared.go(f"{L1}/contract/{CLONE}")
        note = shared.page.locator(".proxy")
        note.wait_for()
        assert kind in note.inner_text()
        assert TARGET in note.inner_text()
        assert note.locator(f"a[href$='/address/{COIN}']").count() == (1 if beacon else 0)
    finally:
        shared.unroute()


def test_a_function_is_read_with_the_keyboard(shared: Tab) -> None:
    shared.go(f"{L1}/contract/{COIN}?tab=read")
    item = shared.page.locator(".functions li", has_text="balanceOf(address owner)")
    box = item.get_by_label("owner, address")
    box.fill(BUSY)
    box.press("Enter")
    item.locator("dl.returned").wait_for()
    assert "uint256" in item.locator("dl.returned").inner_text()
    assert item.locator("dl.returned dd .mono").first.inner_text().isdigit()
    assert "1,968" in item.inner_text(), "the block that it was read at"
    named = shared.page.locator(".functions li", has_text="name()")
    named.get_by_role("button", name="Read").press("Enter")
    named.locator(".said", has_text="Alpha Dollar").wait_for()
    look_at(shared, "contract-read")


def test_bad_arguments_say_what_is_wrong(shared: Tab) -> None:
    shared.go(f"{L1}/contract/{COIN}?tab=read")
    item = shared.page.locator(".functions li", has_text="balanceOf(address owner)")
    item.get_by_label("owner, address").fill("0x12")
    item.get_by_role("button", name="Read").click()
    item.get_by_role("alert").filter(has_text="has 20 bytes, not 1").wait_for()
    shared.problems[:] = [one for one in shared.problems if "status of 400" not in one]


def test_the_code_is_shown(shared: Tab) -> None:
    shared.go(f"{L1}/contract/{COIN}?tab=code")
    assert "bytes" in shared.text("#tab-panel .facts")
    assert shared.page.locator("#tab-panel pre.data").inner_text().startswith("0x60")
    look_at(shared, "contract-code")


def test_a_hostile_interface_and_its_answers_are_text(shared: Tab) -> None:
    kinds: list[dict[str, Any]] = [
        {"name": MARKUP, "type": MARKUP + LONG},
        {"name": "x", "type": "tuple[]", "components": [{"name": LONG, "type": LONG}]},
    ]
    abi = [{"type": "function", "name": MARKUP + LONG, "inputs": kinds, "outputs": kinds, "stateMutability": "view"}]
    outputs = [{"name": MARKUP + LONG, "type": MARKUP, "value": MARKUP + LONG}]
    outputs += [{"name": "", "type": "address", "value": f"javascript:{RUN}"}]
    outputs += [{"name": "s", "type": "string", "value": f"javascript:{RUN}\u202e\n{LONG}"}]
    place = {"address": COIN, "blockNumber": "1968", "blockHash": "0x", "function": MARKUP, "output": "0x"}
    replies: list[dict[str, Any]] = [
        {**place, "isReverted": False, "outputs": outputs},
        {**place, "isReverted": True, "revertReason": MARKUP + LONG,
         "decodedError": {"signature": f"{MARKUP}({LONG})", "parameters": outputs}},
        {**place, "isReverted": False, "output": "0x" + "ff" * 9000},
    ]  # fmt: skip

    def read(route: Route) -> None:
        route.fulfill(body=json.dumps(replies.pop(0)), content_type="application/json")

    shared.page.route("**/contracts/*/abi", lambda route: route.fulfill(json={"address": COIN, "abi": abi}))
    shared.page.route("**/functions:read", read)
    try:
        shared.go(f"{L1}/contract/{COIN}?tab=read&hostile")
        item = shared.page.locator(".functions li").first
        item.locator("input").nth(1).fill("[[1]]")
        for shown in (".returned", ".notice.bad", "pre.data"):
            item.get_by_role("button", name="Read").click()
            item.locator(shown).first.wait_for()
            for width in WIDTHS:
                shared.look(width, "light")
                assert shared.overflow() <= 0
            assert shared.page.locator("main img, main script, main [onerror], a[href^='javascript:']").count() == 0
        item.locator("input").nth(1).fill("nonsense")
        item.get_by_role("button", name="Read").click()
        item.get_by_role("alert").filter(has_text="is not JSON").wait_for()
        assert shared.page.evaluate("window.attacked") is None
    finally:
        shared.unroute()


@pytest.mark.parametrize("tab", ["read", "code"])
def test_a_tab_is_part_of_the_address(tab: str, shared: Tab) -> None:
    shared.go(f"{L1}/contract/{COIN}")
    shared.page.get_by_role("tab", name=tab.capitalize()).click()
    shared.page.wait_for_url(f"**tab={tab}")


def test_a_page_that_is_opened_keeps_its_address(shared: Tab) -> None:
    """The first tab is what the bare address opens, so it adds nothing; to come back to it takes the choice away."""
    address = f"{L1}/contract/{COIN}"
    shared.go(address)
    assert shared.page.url.endswith(f"#{address}")
    shared.page.get_by_role("tab", name="Code").click()
    shared.page.wait_for_url("**tab=code")
    shared.page.get_by_role("tab").first.click()
    shared.page.wait_for_url(f"**#{address}")
