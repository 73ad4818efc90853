"""Proxies of a real geth on their pages, read through it, and the ABI of their implementation uploaded with the key of
an administrator."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser
from tests.api.data_naive import address_text
from tests.api.live_chain import PROXIES, Live, live_chain
from tests.evm.adversarial.nodes import CHAIN_ID
from tests.explorer.browser import Tab, look_at, needs_chromium, tab
from tests.forked import run_program

pytestmark = needs_chromium

ABI = [
    {
        "type": "function", "name": "totalSupply", "stateMutability": "view", "inputs": [],
        "outputs": [{"name": "supplyNow", "type": "uint256"}],
    },
    {"type": "error", "name": "Paused", "inputs": []},
]  # fmt: skip


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    with live_chain(tmp_path_factory.mktemp("live")) as made:
        yield made


@pytest.fixture(scope="module")
def opened(live: Live, browser: Browser) -> Iterator[Tab]:
    with tab(browser, *(live.server.url(name) for name in ("data", "node", "metrics"))) as opened:
        yield opened


@pytest.fixture
def explorer(opened: Tab) -> Iterator[Tab]:
    opened.look(1440, "light")
    yield opened
    assert opened.new_problems() == []


def page(live: Live, name: str) -> str:
    return f"/chain/{CHAIN_ID}/contract/{address_text(live.contracts[name])}"


def key(live: Live, name: str, *settings: str) -> str:
    made = run_program("keys", "add", f"--name={name}", *settings, f"--data-dir={live.server.data_dir}")
    return made.stdout.split()[0]


@pytest.mark.parametrize("kind", PROXIES)
def test_a_proxy_of_a_real_node_is_read_through_it(kind: str, live: Live, explorer: Tab) -> None:
    """Functions are known from the code of the implementation before there is an ABI. The contract answers
    with the number of the block at which it is called, which is the one that the page names."""
    target = address_text(live.contracts["plain"])
    explorer.go(f"{page(live, kind)}?tab=read")
    note = explorer.page.locator(".proxy")
    note.wait_for()
    assert kind in note.inner_text()
    assert note.locator("a.mono").get_attribute("title") == target
    item = explorer.page.locator(".functions li", has_text="totalSupply()")
    item.get_by_role("button", name="Read").click()
    returned = item.locator("dl.returned")
    returned.wait_for()
    block = live.node.newest()
    assert returned.locator("dd .mono").first.inner_text() == str(block)
    assert returned.locator(f"a[href$='/block/{block}']").count() == 1
    note.locator("a.mono").click()
    explorer.page.wait_for_url(f"**/contract/{target}")
    explorer.wait()
    assert explorer.page.locator(".proxy").count() == 0


def test_an_abi_is_uploaded_with_the_key_of_an_administrator(live: Live, explorer: Tab, tmp_path: Path) -> None:
    """It is refused without one, then used for the contract and for its proxies."""
    explorer.go(f"{page(live, 'plain')}?tab=abi")
    explorer.await_text("No ABI of this contract was added here")
    box = explorer.page.locator(".abi-upload")
    box.locator("summary").click()
    for name, text in (("a.json", "{"), ("b.json", '[{"type": "event", "name": "<b>"}]')):
        (tmp_path / name).write_text(text)
        box.get_by_label("ABI file").set_input_files(tmp_path / name)
        box.get_by_role("button", name="Upload").click()
        box.get_by_role("alert").filter(has_text="A.json is not JSON." if name == "a.json" else "--admin").wait_for()
    for given, status in ((key(live, "ann"), 403), (key(live, "boss", "--admin"), 400)):
        with explorer.page.expect_response("**/abi") as reply:
            give_key(explorer, given)
        assert reply.value.status == status
    box.get_by_role("alert").filter(has_text="Abi is not valid").wait_for()
    look_at(explorer, "contract-abi-upload")
    (tmp_path / "abi.json").write_text(json.dumps({"contractName": "Target", "abi": ABI}))
    box.get_by_label("ABI file").set_input_files(tmp_path / "abi.json")
    box.get_by_role("button", name="Upload").press("Enter")
    explorer.page.locator(".declared li", has_text="supplyNow").wait_for()
    listed = explorer.page.locator(".declared li").all_inner_texts()
    assert listed == ["totalSupply() returns uint256 supplyNow", "Paused()"]
    assert explorer.page.locator(".abi-upload summary").inner_text() == "Replace this ABI"
    explorer.page.evaluate("sessionStorage.clear()")
    explorer.go(f"{page(live, 'EIP-1967')}?tab=read")
    item = explorer.page.locator(".functions li", has_text="totalSupply()")
    item.get_by_role("button", name="Read").click()
    item.locator("dt", has_text="supplyNow, uint256").wait_for()
    explorer.problems[:] = [one for one in explorer.problems if "status of 40" not in one]


def give_key(explorer: Tab, key: str) -> None:
    form = explorer.page.locator(".abi-upload form.inline")
    form.get_by_label("API key").fill(key)
    form.get_by_role("button", name="Use it").click()
