"""Where the CPU of a page goes: the app of a data worker in this process, by the module that spends it."""

import asyncio
import cProfile
import os
import pstats
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from icefall.api.http.row import DATA
from icefall.compose.worker import build_app
from icefall.config.load import load
from icefall.server.head import RequestHead
from icefall.server.request import HttpRequest

REQUESTS, LISTED = 1_000, 8


def page_profile(folder: Path, settings: Sequence[str], targets: Sequence[str]) -> str:
    """Ask for these paths and return the modules that took most of the time, without the HTTP server around them."""
    config = load("data", [f"--data-dir={folder / 'data'}", *settings], os.environ, folder).config
    profile = cProfile.Profile()

    async def ask() -> None:
        app = build_app(DATA, config, with_engine=False)
        profile.enable()
        for target in targets[:REQUESTS]:
            head = RequestHead(f"GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            response = await app.respond(HttpRequest(head, "127.0.0.1", 0, lambda: None, whole=b""))
            assert response.status == 200, response.body
        profile.disable()
        await app.close()

    asyncio.run(ask())
    spent: Counter[str] = Counter()
    for (file, _, function), (_, _, own_s, _, _) in pstats.Stats(profile).stats.items():  # type: ignore[attr-defined]
        inside = file.rpartition("icefall/")[2]
        spent["SQLite" if "sqlite3" in function else inside if inside != "~" else "built-in functions"] += own_s
    whole = spent.total()
    return ", ".join(f"{module} {100 * own_s / whole:.0f} %" for module, own_s in spent.most_common(LISTED))
