"""The home page of the Explorer on the demo, from localhost: milliseconds to the first paint, and bytes transferred.

A real Chromium with an empty cache; each figure is the median of several loads. A page without scripts, loaded in turn,
shows what of the time is the browser's and the machine's.
"""

import time
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from playwright.sync_api import Browser
from tests.demo.test_demo_up import synced
from tests.explorer.browser import CHROMIUM, chromium
from tests.server import serving
from tests.waiting import until

LOADS = 9
PAINT_MS_MAX, BYTES_MAX = 300, 150_000
PAINT = "performance.getEntriesByName('first-contentful-paint')[0].startTime"


def run() -> None:
    if not CHROMIUM:
        print("explorer: there is no chromium in PATH")
        return
    began = time.time()
    with TemporaryDirectory() as folder, serving("up", Path(folder), "--demo") as server:
        until(lambda: synced(server.data_dir, began), "both chains indexed")
        with chromium() as browser:
            loads, plain = [], []
            for _ in range(LOADS):
                loads.append(_load(browser, server.url("data"), "main h1"))
                plain.append(_load(browser, server.url("node"), "h1")[0])
    paint_ms, size = median(load[0] for load in loads), median(load[1] for load in loads)
    print("explorer: the home page on the demo, with an empty cache")
    print(f"  first paint {paint_ms:>8.0f} ms   {_verdict(paint_ms, PAINT_MS_MAX)} {PAINT_MS_MAX} ms")
    print(f"  the same of a plain page {median(plain):.0f} ms")
    print(f"  transferred {size / 1000:>8.1f} KB   {_verdict(size, BYTES_MAX)} {BYTES_MAX // 1000} KB")


def _load(browser: Browser, url: str, content: str) -> tuple[float, int]:
    """Of one load: milliseconds, and all bytes of all answers with their headers."""
    context = browser.new_context()
    page = context.new_page()
    client = context.new_cdp_session(page)
    sizes: list[int] = []
    client.on("Network.loadingFinished", lambda event: sizes.append(int(event["encodedDataLength"])))
    client.send("Network.enable")
    page.goto(f"{url}/")
    page.wait_for_selector(content, state="attached")
    page.wait_for_selector("[aria-busy]", state="detached")
    paint_ms = float(page.evaluate(PAINT))
    context.close()
    return paint_ms, sum(sizes)


def _verdict(value: float, limit: float) -> str:
    return "under" if value < limit else "NOT UNDER"
