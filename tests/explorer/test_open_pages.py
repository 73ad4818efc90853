"""Pages of the Explorer that stay open: new blocks, reorganisations, failures, the keyboard; and pages without data."""

import json
import time
from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest
from playwright.sync_api import Browser, Route
from tests.explorer.browser import WIDTHS, Tab, needs_chromium, tab
from tests.server import Server, serving
from tests.waiting import LIMIT_S, until

pytestmark = needs_chromium

L1 = "/chain/3210042"
FOCUSED = "document.activeElement.textContent"
UNAVAILABLE = {"message": "the store is being moved", "statusCode": 503, "error": "Service Unavailable"}
MINUTE = "01:00"
# Whatever the page shows from now on, also for a moment.
WATCH = """() => {
    const main = document.querySelector("main");
    window.seen = [];
    new MutationObserver(() => window.seen.push(main.innerText)).observe(main, { childList: true, subtree: true });
}"""


@pytest.fixture
def explorer(demo: Server, browser: Browser) -> Iterator[Tab]:
    with tab(browser, demo.url("data"), demo.url("node"), demo.url("metrics")) as opened:
        yield opened
        assert [one for one in opened.problems if "Failed to load resource" not in one] == []


@pytest.fixture
def shared(opened: Tab) -> Iterator[Tab]:
    """One tab for tests that leave nothing behind but calls which they answered themselves."""
    opened.look(1440, "light")
    yield opened
    opened.unroute()
    assert [one for one in opened.new_problems() if "Failed to load resource" not in one] == []


def unavailable(route: Route) -> None:
    route.fulfill(status=503, json=UNAVAILABLE)


def with_changes(**changes: Any) -> Any:
    """Answers a call as the program does, but for some fields."""

    def answer(route: Route) -> None:
        reply = route.fetch(timeout=LIMIT_S * 1000)  # its own limit is 30 s, whatever that of the page is
        route.fulfill(response=reply, json={**reply.json(), **changes})

    return answer


def events(*shown: tuple[str, dict[str, Any]]) -> str:
    return "".join(f"event: {kind}\ndata: {json.dumps(row)}\n\n" for kind, row in shown)


def next_block(demo: Server) -> dict[str, Any]:
    newest: dict[str, Any] = demo.ask("GET", "/v1/blocks?pageSize=1", listener="data").json()["blocks"][0]
    return newest | {"blockNumber": "199", "blockHash": f"0x{7:064x}", "blockTimestamp": int(time.time())}


def test_all_rows_of_a_list_can_be_reached_with_one_key(shared: Tab) -> None:
    shared.go("/containers/X")
    page = shared.page
    rows = page.locator(".list tbody tr")
    seen = [rows.count()]
    page.get_by_role("button", name="Show more").focus()
    while page.get_by_role("button", name="Show more").count():
        page.keyboard.press("Enter")
        rows.nth(seen[-1]).wait_for()
        page.wait_for_selector(".more[aria-disabled]", state="detached")
        seen.append(rows.count())
        assert page.evaluate("document.activeElement !== document.body"), "the keyboard is where it was"
    assert seen == [20, 40, 60, 80, 100, 120, 140, 156]
    assert page.evaluate("document.activeElement.matches('.table-box')"), "the button is gone"


def test_a_page_of_a_list_that_fails_is_asked_for_again(shared: Tab) -> None:
    shared.go(L1)
    page = shared.page
    page.route("**/blocks:listDetails*pageToken=*", unavailable)
    more = page.get_by_role("button", name="Show more")
    for _ in range(2):
        more.click()
        page.locator(".list .failed").wait_for()
        page.wait_for_selector(".more[aria-disabled]", state="detached")
    assert page.locator(".list .failed").all_inner_texts() == ["The store is being moved."]
    shared.unroute()
    more.click()
    page.locator("#tab-panel tbody tr").nth(25).wait_for()
    assert page.locator(".list .failed").count() == 0


def test_an_explorer_that_cannot_start_says_so_and_can_try_again(shared: Tab) -> None:
    page = shared.page
    page.route("**/explorer/config.json", unavailable)
    shared.open("/x")
    assert "This page could not be loaded" in shared.text("h1")
    assert "The store is being moved." in shared.text()
    shared.unroute()
    page.get_by_role("button", name="Try again").click()
    shared.await_text("Asset chain (X)")


def test_a_block_that_was_rolled_back_is_not_shown(demo: Server, explorer: Tab) -> None:
    """Both events come between two looks at what has arrived: the page has the clock of the test."""
    page, reads = explorer.page, count(1)
    block = next_block(demo)
    body = events(("block", block), ("rollback", {"chainId": block["chainId"], "fromBlock": "199"}))
    answers = iter([{"content_type": "text/event-stream", "body": body}])

    def stream(route: Route) -> None:
        """Once, when the lists were read; 204 tells the browser not to connect again."""
        page.locator("section[aria-label='Latest blocks'] td a", has_text="198").first.wait_for()
        page.evaluate(WATCH)
        route.fulfill(**next(answers, {"status": 204}))

    page.clock.install(time=0)
    page.clock.pause_at(1)
    page.route("**/v1/stream?*", stream)
    with page.expect_response(lambda reply: reply.url.endswith("/v1/blocks?pageSize=10") and next(reads) == 2):
        explorer.open("/")  # the rollback makes it read the list for the second time
    page.clock.run_for(2000)
    assert not any("199" in text for text in page.evaluate("window.seen"))
    assert explorer.text(".chain-card:has-text('Recorded C-Chain') .tip a") == "198"


def test_the_tip_of_a_chain_stays_on_the_page_while_its_figures_are_read_again(explorer: Tab) -> None:
    page = explorer.page
    page.clock.install()
    explorer.open("/")
    tip = page.locator(".chain-card", has_text="Recorded C-Chain").locator("dd").first
    shown = []

    def late(route: Route) -> None:
        shown.append(tip.inner_text())
        route.continue_()

    page.route("**/v1/chains/43112/blocks?pageSize=40", late)
    with page.expect_response("**/v1/chains/43112/blocks?pageSize=40"):
        page.clock.run_for(MINUTE)
    assert shown[0].startswith("198")


def test_nothing_moves_while_the_keyboard_is_in_a_list(demo: Server, explorer: Tab) -> None:
    """Also where there is no live stream, and the lists are read again and again."""
    page = explorer.page
    page.clock.install()
    page.route("**/v1/stream?*", lambda route: route.fulfill(status=429, json=UNAVAILABLE))
    explorer.open("/")
    link = page.locator("section[aria-label='Latest blocks'] td a").first
    assert link.inner_text() == "198"
    link.focus()
    block = next_block(demo)
    page.route("**/v1/blocks?pageSize=10", with_changes(blocks=[block]))
    with page.expect_response("**/v1/blocks?pageSize=10"):
        page.clock.run_for(MINUTE)
    page.clock.run_for(1000)
    assert page.evaluate(FOCUSED) == "198"
    page.locator("#search").focus()
    page.clock.run_for(1000)
    page.locator("section[aria-label='Latest blocks'] td a", has_text="199").wait_for()


def test_the_first_blocks_of_a_chain_are_seen_without_loading_again(demo: Server, explorer: Tab) -> None:
    """As on the first start, when the Explorer is opened before anything is indexed."""
    page = explorer.page
    page.clock.install()
    chain = demo.ask("GET", "/v1/chains/43112", listener="data").json()
    page.route("**/v1/chains", with_changes(chains=[chain | {"status": "UNAVAILABLE"}]))
    page.route("**/v1/chains/43112/blocks?*", with_changes(blocks=[]))
    explorer.open("/")
    explorer.await_text("No block is indexed yet.")
    assert "unavailable" in explorer.text(".chain-card")
    explorer.unroute()
    page.clock.run_for(MINUTE)
    explorer.await_text("Tip")
    page.locator(".chain-card", has_text="Recorded C-Chain").filter(has_not_text="unavailable").wait_for()


def test_the_status_of_a_chain_is_that_of_now(demo: Server, shared: Tab) -> None:
    shared.go("/")
    page = shared.page
    chain = demo.ask("GET", "/v1/chains/43112", listener="data").json() | {"status": "UNAVAILABLE"}
    page.route("**/v1/chains", with_changes(chains=[chain]))
    page.route("**/v1/chains/43112", with_changes(status="UNAVAILABLE"))
    shared.go("/chain/43112")
    assert "unavailable" in shared.text(".page-head")
    shared.go("/")
    assert "unavailable" in shared.text(".chain-card")


def test_operations_says_what_is_true_now(explorer: Tab) -> None:
    page = explorer.page
    page.clock.install()
    explorer.open("/operations")
    services = page.locator("section[aria-label='Services']")
    services.locator(".badge.good").nth(2).wait_for()
    assert services.locator(".badge").count() == 3
    page.route("**/v1/health-check", with_changes(status="error", error={"store": {"message": "it is gone"}}))
    page.clock.run_for(MINUTE)
    services.get_by_text("store: it is gone").wait_for()
    page.route("**/v1/**", lambda route: route.abort())
    page.route("**/ext/**", lambda route: route.abort())
    page.clock.run_for(MINUTE)
    page.locator(".failed", has_text="No answer from").first.wait_for()
    explorer.unroute()
    page.clock.run_for(MINUTE)
    page.locator(".failed").first.wait_for(state="detached")
    explorer.await_text("synced")


FULL_DISK = "health results could not be stored: the disk is full"


def on_a_full_disk(route: Route) -> None:
    """Answers health as the node does that cannot store results: those stored passed, and newer ones are missing."""
    reply = route.fetch(timeout=LIMIT_S * 1000)
    body = reply.json()
    if "checks" in body.get("result", {}):
        body["result"]["checks"]["engine"] = {"error": FULL_DISK, "timestamp": "2026-01-01T00:00:00Z", "duration": 0}
        body["result"]["healthy"] = False
    route.fulfill(response=reply, json=body)


def test_an_open_page_says_that_the_disk_is_full(explorer: Tab) -> None:
    page = explorer.page
    page.clock.install()
    explorer.open("/")
    explorer.await_text("All checks pass")
    page.route("**/ext/health", on_a_full_disk)
    page.clock.run_for(MINUTE)
    page.locator(".home-head", has_text="1 check fails").wait_for()
    assert "All checks pass" not in explorer.text()
    explorer.go("/operations")
    checks = page.locator("section[aria-label='Health checks of the node']")
    checks.get_by_text(FULL_DISK).wait_for()
    assert checks.get_by_text("passes", exact=True).count() == 0
    assert checks.get_by_text("passed earlier").count() > 5
    page.locator("section[aria-label='Services']").get_by_text(f"engine: {FULL_DISK}").wait_for()


def test_an_upstream_is_not_called_usable_when_its_indexer_is_silent(shared: Tab) -> None:
    shared.page.route("**/v1/chains/*/indexing", with_changes(isRunning=False))
    shared.go("/operations")
    upstreams = shared.page.locator("section[aria-label='Upstreams']")
    upstreams.get_by_text("no answer").first.wait_for()
    assert upstreams.get_by_text("usable").count() == 0


def test_copying_leaves_the_keyboard_where_it_is(explorer: Tab) -> None:
    """Without https there is no clipboard interface, and a text field is used."""
    page = explorer.page
    page.add_init_script("Object.defineProperty(navigator, 'clipboard', { value: undefined })")
    explorer.open(f"{L1}/block/1968")
    page.get_by_role("button", name="Copy block hash").press("Enter")
    page.locator("#announcer", has_text="Copied block hash").wait_for()
    assert page.evaluate("document.activeElement.ariaLabel") == "Copy block hash"


LONG_NAME = "Supercalifragilistic" * 8


@pytest.fixture(scope="module")
def nothing(tmp_path_factory: pytest.TempPathFactory, browser: Browser) -> Iterator[Tab]:
    """An installation without containers, and with a chain that cannot be reached."""
    folder = tmp_path_factory.mktemp("nothing")
    config = folder / "icefall.toml"
    config.write_text(f'[[chain]]\nid = "777"\nrpc = ["http://127.0.0.1:9"]\nname = "{LONG_NAME}"\n')
    with (
        serving("up", folder, "--no-demo", f"--config-file={config}") as server,
        tab(browser, server.url("data"), server.url("node"), server.url("metrics")) as opened,
    ):
        until(lambda: server.ask("GET", "/v1/chains/777/indexing", listener="data").status == 200, "the chain's store")
        yield opened


EMPTY = [
    ("/", "No block is indexed yet."),
    ("/chain/777", "No block is indexed yet."),
    ("/operations", "no upstream answers"),
    ("/metrics/tx_count", "There are no points in this range."),
    ("/x", "No block has been accepted yet."),
    ("/x?tab=transactions", "CreateAsset"),  # those of the genesis
    ("/x?tab=assets", "No asset was created in the latest transactions."),
    ("/containers/X", "No container has been accepted yet."),
    ("/containers/P", "No container has been accepted yet."),
]


@pytest.mark.parametrize(("address", "text"), EMPTY, ids=[page[0] for page in EMPTY])
def test_a_page_without_data_says_that_there_is_none_yet(address: str, text: str, nothing: Tab) -> None:
    nothing.go(address)
    nothing.await_text(text)
    for width in WIDTHS:
        nothing.look(width, "light")
        assert nothing.cut_off() == []
    assert "Not found" not in nothing.text()
    if address == "/operations":
        assert "of 0" not in nothing.text()
    assert nothing.new_problems() == []
