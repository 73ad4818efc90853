"""The demo in a real browser, started once for all files of this folder that a test process gets one after another.

What a test changes it changes in a tab, or in a program of its own.
"""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser
from tests.demo.prepared import demo_serving
from tests.explorer.browser import CHROMIUM, Tab, chromium, tab
from tests.server import Server
from tests.waiting import until


@pytest.fixture(scope="package")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with demo_serving(tmp_path_factory.mktemp("explorer"), "--health-check-frequency=1s") as server:
        until(lambda: server.ask("GET", "/ext/health").status == 200, "health")
        yield server


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    with chromium() as opened:
        yield opened


@pytest.fixture(scope="package", autouse=True)
def _browser_is_open_first(request: pytest.FixtureRequest) -> None:
    """Its event loop runs in the thread of the tests, so that a test which begins another one would fail or pass as the
    order of the files has it: here it always fails."""
    if CHROMIUM:
        request.getfixturevalue("browser")


@pytest.fixture(scope="module")
def opened(demo: Server, browser: Browser) -> Iterator[Tab]:
    with tab(browser, demo.url("data"), demo.url("node"), demo.url("metrics")) as opened:
        yield opened


@pytest.fixture
def shared(opened: Tab) -> Iterator[Tab]:
    """One tab for all tests that leave nothing behind: most of the cost of a new one is to read the program again."""
    opened.look(1440, "light")
    yield opened
    assert opened.new_problems() == []


@pytest.fixture
def explorer(demo: Server, browser: Browser) -> Iterator[Tab]:
    with tab(browser, demo.url("data"), demo.url("node"), demo.url("metrics")) as opened:
        yield opened
        assert opened.problems == []
