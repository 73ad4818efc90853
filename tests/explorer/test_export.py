"""Export on the page of an address, in a real browser: ordered, reloaded, cancelled, downloaded, removed, and refused
without a key. The process that writes files runs only where a test wants an end."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from playwright.sync_api import Browser, Route
from tests.awaited import result_of
from tests.explorer.browser import Tab, look_at, needs_chromium, tab
from tests.exports.scene import Scene, most_active, rows_in
from tests.forked import run_program
from tests.server import Server, serving
from tests.webhooks.scene import ID, blocks

pytestmark = needs_chromium

ADDRESS = f"0x{most_active(1)[0].hex()}"
PAGE = f"/chain/{ID}/address/{ADDRESS}"
JOB = f"icefall-export/{ID}/{ADDRESS}"
UNKNOWN = "11111111-2222-4333-8444-555555555555"


class Served(NamedTuple):
    opened: Tab
    server: Server
    folder: Path
    settings: tuple[str, ...]


async def indexed(folder: Path) -> None:
    """Store the recorded blocks."""
    scene = Scene(folder / "data")
    await scene.put(blocks())
    scene.close()


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, browser: Browser) -> Iterator[Served]:
    folder: Path = tmp_path_factory.mktemp("exporting")
    (folder / "data").mkdir()
    config = folder / "icefall.toml"
    config.write_text(f'[[chain]]\nid = "{ID}"\nname = "Recorded chain"\nrpc = "http://127.0.0.1:1"\n')
    settings = (f"--config-file={config}", "--export-rows-max=100000")
    result_of(indexed(folder))
    with serving("data", folder, f"--config-file={config}") as server, tab(browser, server.url("data")) as opened:
        yield Served(opened, server, folder, settings)


@pytest.fixture
def emptied(served: Served) -> Iterator[Tab]:
    """The tab without a job."""
    served.opened.look(1440, "light")
    if served.opened.page.url.startswith(served.opened.base_url):
        served.opened.page.evaluate("sessionStorage.clear()")
        served.opened.page.goto("about:blank")
    yield served.opened
    # What Chromium itself logs: of refusals that a test provokes, and of balances, which need an upstream.
    problems = [one for one in served.opened.new_problems() if "status of 4" not in one and "status of 5" not in one]
    assert problems == []


@pytest.fixture
def opened(emptied: Tab) -> Tab:
    """The page of the address."""
    emptied.open(PAGE)
    return emptied


def press(opened: Tab, name: str) -> None:
    opened.page.locator(".export").get_by_role("button", name=name, exact=True).click()


def order(opened: Tab) -> None:
    opened.page.locator(".export > summary").click()
    press(opened, "Make the files")


def says(opened: Tab, text: str) -> None:
    opened.page.locator(".export").filter(has_text=text).wait_for()


def job(opened: Tab) -> str:
    return str(opened.page.evaluate("(name) => sessionStorage.getItem(name) ?? ''", JOB))


def test_a_job_survives_a_reload_and_is_cancelled(opened: Tab) -> None:
    opened.page.locator(".export > summary").click()
    look_at(opened, "export-form")
    press(opened, "Make the files")
    says(opened, "The files are being made: 0 % of the days, 0 rows.")
    assert opened.page.get_by_role("progressbar", name="Progress of the export").count() == 1
    ordered = job(opened)
    assert ordered
    opened.open(PAGE)
    says(opened, "The files are being made")
    assert job(opened) == ordered
    look_at(opened, "export-running")
    press(opened, "Cancel")
    press(opened, "Cancel it now?")
    says(opened, "There are no files: it was cancelled.")
    assert opened.page.get_by_role("progressbar").count() == 0
    assert opened.page.locator(".export").get_by_role("link").count() == 0
    press(opened, "New export")
    assert job(opened) == ""
    assert opened.page.evaluate("document.activeElement.name") == "first"


def test_the_files_are_downloaded_and_removed(opened: Tab, served: Served) -> None:
    order(opened)
    says(opened, "The files are being made")
    with serving("exports", served.folder, *served.settings, started=False):
        says(opened, "The files are ready. They have ")
    look_at(opened, "export-ready")
    opened.open(PAGE)
    with opened.page.expect_download() as found:
        opened.page.locator(".export").get_by_role("link", name="Download").click()
    rows = rows_in(Path(found.value.path()).read_bytes())
    count = sum(map(len, rows.values()))
    assert count > 0
    says(opened, f"They have {count:,} rows.")
    press(opened, "Remove the files")
    press(opened, "Remove them now?")
    says(opened, "The files have been removed")
    assert opened.page.locator(".export").get_by_role("link").count() == 0


@pytest.mark.parametrize("standard", ["erc20", "erc721", "erc1155"])
def test_the_transfers_of_a_token_are_downloaded(standard: str, emptied: Tab, served: Served) -> None:
    """The pages of a token and of a collection order an export, show its progress, and get exactly their transfers."""
    moves = [one for rows in blocks() for one in getattr(rows, f"{standard}_transfers")]
    token = Counter(one.token for one in moves).most_common(1)[0][0]
    place = "token" if standard == "erc20" else "nft"
    opened = emptied
    opened.open(f"/chain/{ID}/{place}/0x{token.hex()}")
    order(opened)
    says(opened, "The files are being made: 0 % of the days, 0 rows.")
    look_at(opened, f"export-{standard}")
    opened.open(f"/chain/{ID}/{place}/0x{token.hex()}")  # loads the program anew: the job is that of the tab
    says(opened, "The files are being made")
    with serving("exports", served.folder, *served.settings, started=False):
        says(opened, "The files are ready. They have ")
    with opened.page.expect_download() as found:
        opened.page.locator(".export").get_by_role("link", name="Download").click()
    rows = rows_in(Path(found.value.path()).read_bytes())
    assert not rows["transactions"]
    expected = [str(one.log_index) for one in moves if one.token == token]
    assert [row["logIndex"] for row in rows[f"{standard}_transfers"]] == expected
    assert {row["tokenAddress"].lower() for row in rows[f"{standard}_transfers"]} == {f"0x{token.hex()}"}
    press(opened, "Remove the files")
    press(opened, "Remove them now?")
    says(opened, "The files have been removed")


def test_a_key_is_asked_for_where_one_is_needed(opened: Tab, served: Served) -> None:
    """A caller on another machine needs a key, and only for the order."""

    def forwarded(route: Route) -> None:
        route.continue_(headers={**route.request.headers, "x-forwarded-for": "203.0.113.9"})

    key = run_program("keys", "add", "--name=alice", f"--data-dir={served.folder / 'data'}").stdout.split()[0]
    opened.page.route("**/v1/operations/**", forwarded)
    try:
        order(opened)
        says(opened, "An API key is required from another machine or website")
        assert job(opened) == ""
        opened.page.get_by_label("API key").fill(key)
        press(opened, "Use it")
        says(opened, "The files are being made")
        opened.page.evaluate("sessionStorage.removeItem('icefall-key')")
        opened.open(PAGE)
        says(opened, "An API key is required")
        opened.page.get_by_label("API key").fill(key)
        press(opened, "Use it")
        press(opened, "Cancel")
        press(opened, "Cancel it now?")
        says(opened, "it was cancelled")
    finally:
        opened.unroute()


def test_wrong_days_and_lost_jobs_are_reported(opened: Tab) -> None:
    opened.page.locator(".export > summary").click()
    opened.page.get_by_label("First day (UTC)").fill("2024-05-02")
    opened.page.get_by_label("Last day (UTC)").fill("2024-05-01")
    press(opened, "Make the files")
    says(opened, "FirstDate must not be after lastDate.")
    assert job(opened) == ""
    opened.page.evaluate("([name, id]) => sessionStorage.setItem(name, id)", [JOB, UNKNOWN])
    opened.open(PAGE)
    says(opened, "The export that was ordered here is no longer there.")
    assert job(opened) == ""
    assert opened.page.get_by_role("button", name="Make the files").count() == 1
