"""The home page of the Explorer on the demo, from localhost: milliseconds to the first paint, and bytes transferred.

A real Chromium with an empty cache; each figure is the median of several loads. A page without scripts, loaded in turn,
shows what of the time is the browser's and the machine's. Two figures do not depend on what else the machine does: the
processor time of the browser's main thread, and the number of requests that the first paint waits for.
"""

import time
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import NamedTuple

from playwright.sync_api import Browser
from tests.demo.prepared import synced
from tests.explorer.browser import CHROMIUM, chromium
from tests.server import serving
from tests.waiting import until

LOADS = 9
PAINT_MS_MAX, BYTES_MAX = 300, 150_000
BLOCKING = "performance.getEntriesByType('resource').filter((one) => one.renderBlockingStatus === 'blocking').length"
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
                plain.append(_load(browser, server.url("node"), "h1"))
    paint_ms, size = median(load.paint_ms for load in loads), median(load.size for load in loads)
    print("explorer: the home page on the demo, with an empty cache")
    print(f"  first paint {paint_ms:>8.0f} ms   {_verdict(paint_ms, PAINT_MS_MAX)} {PAINT_MS_MAX} ms")
    print(f"  the same of a plain page {median(load.paint_ms for load in plain):.0f} ms")
    print(f"  requests that it waits for, besides the page: {max(load.blocking for load in loads)}")
    main_ms, plain_ms = (median(load.main_thread_ms for load in some) for some in (loads, plain))
    print(f"  processor time of the main thread until all is shown {main_ms:.0f} ms, of a plain page {plain_ms:.0f} ms")
    print(f"  transferred {size / 1000:>8.1f} KB   {_verdict(size, BYTES_MAX)} {BYTES_MAX // 1000} KB")


class Load(NamedTuple):
    """`size`: all bytes of all answers with their headers."""

    paint_ms: float
    size: int
    blocking: int
    main_thread_ms: float


def _load(browser: Browser, url: str, content: str) -> Load:
    context = browser.new_context()
    page = context.new_page()
    client = context.new_cdp_session(page)
    sizes: list[int] = []
    client.on("Network.loadingFinished", lambda event: sizes.append(int(event["encodedDataLength"])))
    client.send("Network.enable")
    client.send("Performance.enable", {"timeDomain": "threadTicks"})
    page.goto(f"{url}/")
    page.wait_for_selector(content, state="attached")
    page.wait_for_selector("[aria-busy]", state="detached")
    paint_ms, blocking = float(page.evaluate(PAINT)), int(page.evaluate(BLOCKING))
    measured = {one["name"]: one["value"] for one in client.send("Performance.getMetrics")["metrics"]}
    context.close()
    return Load(paint_ms, sum(sizes), blocking, measured["TaskDuration"] * 1000)


def _verdict(value: float, limit: float) -> str:
    return "under" if value < limit else "NOT UNDER"
