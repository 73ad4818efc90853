"""A real Chromium that opens the Explorer and notes what must not happen: errors, and requests to other hosts."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, Request, ViewportSize, sync_playwright
from tests.explorer.findings import AXE, FIND, OF_A_LOOK, PREPARE
from tests.waiting import LIMIT_S

# The first one has no parts that draw windows, and takes a fifth less CPU.
PROGRAMS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
CHROMIUM = next((path for name in PROGRAMS if (path := shutil.which(name))), "")
# On CI, where it can be had, a missing one is a failure.
needs_chromium = pytest.mark.skipif(not CHROMIUM and not os.environ.get("CI"), reason="chromium is not on this machine")
# Pictures of every page in every look, for a reader, with ICEFALL_TEST_SCREENSHOTS=1 (they take half a minute), in a
# folder that is not part of the repository.
SCREENSHOTS = Path(__file__).parents[2] / "screenshots" if os.environ.get("ICEFALL_TEST_SCREENSHOTS") else None
WIDTHS, THEMES = (375, 1440), ("light", "dark")
# Each theme and each width once: colours do not move anything. Pictures are taken of all four.
LOOKS = [("light", 1440), ("dark", 375)]
ALL_LOOKS = [(theme, width) for theme in THEMES for width in WIDTHS]
# The program has seen the change of the address before this ends.
FOLLOW = """(hash) => new Promise((followed) => {
    addEventListener("hashchange", followed, { once: true });
    if (location.hash === hash) dispatchEvent(new Event("hashchange"));
    else location.hash = hash;
}).then(() => {})"""


@contextmanager
def chromium() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        # Without the sandbox, which containers do not allow: only our own pages are opened. Drawn without a process of
        # its own, which takes a quarter less. Scripts compiled at once: they are run too briefly to be interpreted
        # first, which takes a tenth more.
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM,
            args=["--no-sandbox", "--disable-gpu", "--in-process-gpu", "--js-flags=--always-sparkplug"],
        )
        try:
            yield browser
        finally:
            browser.close()


class Tab:
    """One tab. `problems` are errors in the console, scripts that fail, dialogs, and requests to hosts not listed.

    Tests wait for elements and addresses. `page.wait_for_function` is not for these pages: what is not true at once is
    evaluated again inside the page, which forbids that (Content-Security-Policy), so it fails on a busy machine only.
    """

    def __init__(self, page: Page, base_url: str, hosts: set[str]) -> None:
        self.page = page
        self.base_url = base_url
        self.problems: list[str] = []
        self.requests: list[str] = []
        self._hosts = hosts
        self._width, self._theme = 0, ""
        page.set_default_timeout(LIMIT_S * 1000)
        page.on("console", self._on_console)
        page.on("pageerror", lambda error: self.problems.append(f"script failed: {error}"))
        page.on("request", self._on_request)
        page.on("dialog", self._on_dialog)

    def _on_console(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.problems.append(f"console {message.type}: {message.text} ({message.location.get('url')})")

    def _on_request(self, request: Request) -> None:
        self.requests.append(request.url)
        address = urlsplit(request.url)
        if address.scheme not in ("data", "blob", "about") and address.netloc not in self._hosts:
            self.problems.append(f"a request to another host: {request.url}")

    def _on_dialog(self, dialog: Any) -> None:
        self.problems.append(f"a dialog: {dialog.message}")
        dialog.dismiss()

    def open(self, address: str) -> None:
        """Loads a page of the Explorer, `/` or `/x/block/1`, anew."""
        self.page.goto("about:blank")
        self.page.goto(f"{self.base_url}/#{address}")
        self.wait()

    def go(self, address: str) -> None:
        """Go to a page as a link does: the program is not loaded again, which takes as long as ten such steps."""
        if not self.page.url.startswith(self.base_url):
            self.open(address)
            return
        self.page.evaluate(FOLLOW, f"#{address}")
        self.wait()

    def wait(self) -> None:
        """Wait until everything on the page has loaded."""
        self.page.wait_for_selector("body:has(main h1):not(:has([aria-busy]))", state="attached")

    def unroute(self) -> None:
        """Ends what a test answers itself. Calls that are being answered are waited for: the browser would take them
        over, and the answer of the test would then be the second one."""
        self.page.unroute_all(behavior="wait")

    def text(self, selector: str = "main") -> str:
        return self.page.locator(selector).first.inner_text()

    def await_text(self, text: str) -> None:
        """Names of assets follow when the rest of a page has loaded."""
        self.page.locator("main").filter(has_text=text).wait_for()

    def look(self, width: int, theme: Any) -> None:
        """Chromium lays out the page again for each of them, so only for what is different."""
        if width != self._width:
            self.page.set_viewport_size({"width": width, "height": 900})
        if theme != self._theme:
            self.page.emulate_media(color_scheme=theme)
        self._width, self._theme = width, theme

    def overflow(self) -> int:
        """Pixels by which the page is wider than the window."""
        return int(self.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth"))

    def cut_off(self) -> list[str]:
        """The page, if it is wider than the window, and tables that are wider than their place, so that one must scroll
        sideways to read them."""
        script = """[document.documentElement, ...document.querySelectorAll('.table-box')]
            .filter((box) => box.scrollWidth > box.clientWidth + (box.matches('.table-box') ? 1 : 0))
            .map((box) => box.ariaLabel ?? `the whole page, at ${innerWidth} px`)"""
        found: list[str] = self.page.evaluate(script)
        return found

    def findings(self, *, in_another_look: bool = False) -> list[str]:
        """Return what axe-core finds serious or critical. `in_another_look`: of a page that was examined, only what the
        look can change, unless something is shown that was not."""
        if not self.page.evaluate("'axe' in window"):
            self.page.evaluate(AXE)
            self.page.evaluate(PREPARE)
        found: list[str] = self.page.evaluate(FIND, OF_A_LOOK if in_another_look else None)
        return found

    def keep_screenshot(self, name: str) -> None:
        if SCREENSHOTS is not None:
            SCREENSHOTS.mkdir(exist_ok=True)
            self.page.screenshot(path=SCREENSHOTS / f"{name}.png", full_page=True, animations="disabled")

    def new_problems(self) -> list[str]:
        """Return the problems since the last time, and forget the requests."""
        found = self.problems[:]
        self.problems.clear()
        self.requests.clear()
        return found


@contextmanager
def tab(browser: Browser, *base_urls: str) -> Iterator[Tab]:
    """Open a page at the first of the addresses, which may call all of them. Placeholders of what is loading do not
    pulse: to draw that takes a tenth of the CPU."""
    size: ViewportSize = {"width": 1440, "height": 900}
    context = browser.new_context(viewport=size, accept_downloads=True, reduced_motion="reduce")
    page = context.new_page()
    try:
        yield Tab(page, base_urls[0], {urlsplit(url).netloc for url in base_urls})
    finally:
        page.unroute_all(behavior="ignoreErrors")  # no page is left for an answer that a test still makes
        context.close()


def look_at(opened: Tab, name: str) -> None:
    """Check in each look that nothing is cut off and nothing serious is found. Keep screenshots on request."""
    for number, (theme, width) in enumerate(LOOKS):
        opened.look(width, theme)
        assert not (found := opened.cut_off()), found
        opened.keep_screenshot(f"{name}-{theme}-{width}")
        assert not (found := opened.findings(in_another_look=number > 0)), f"{theme}, {width} px: {found}"
    for theme, width in ALL_LOOKS if SCREENSHOTS else []:
        if (theme, width) not in LOOKS:
            opened.look(width, theme)
            assert not (found := opened.cut_off()), found
            opened.keep_screenshot(f"{name}-{theme}-{width}")
