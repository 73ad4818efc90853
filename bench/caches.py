"""What each cache of a data worker is worth: CPU of a page with all caches, and with one of them off, in turns.

The worker's app runs in this process, without a server. Addresses in turn are asked for once each, so that their pages
are made anew; `again` asks for one page over and over. A cache that is worth less than a tenth of every page is not
worth its rule of invalidation. `ICEFALL_BENCH_TRANSFERS` sets how many transfers the chain has.
"""

import asyncio
import os
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, closing, nullcontext
from functools import partial
from itertools import cycle, islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

from tests.api.data_scene import InProcess

from bench.data import CHAIN, addresses_of, fill
from bench.evm_rows import address
from icefall.api.http.answer_cache import AnswerCache
from icefall.compose.stores import Stores
from icefall.evm.enriching import reader as enrich_reader
from icefall.evm.reading import directory
from icefall.evm.reading.lists.joined import JoinedLists

TRANSFERS, PAGES, ROUNDS = 200_000, 300, 5
_LISTS = {"4": "transactions", "6": "transactions:listErc20", "13": "balances:listErc20"}
_ALL = "all caches"


def run() -> None:
    transfers = int(os.environ.get("ICEFALL_BENCH_TRANSFERS", TRANSFERS))
    print(f"caches: {transfers} ERC-20 transfers; CPU us of a page, the least of {ROUNDS} rounds in turns")
    with TemporaryDirectory() as folder:
        with closing(Stores(Path(folder) / "data")) as stores:
            asyncio.run(fill(stores, transfers))
        print(f"  {'off':<34}" + "".join(f"{f'endpoint {one}':>14}" for one in _LISTS) + f"{'4 again':>14}")
        figures = _measured(Path(folder), addresses_of(transfers))
    whole = figures[_ALL]
    for name, values in figures.items():
        print(f"  {name:<34}" + "".join(f"{v:>8.0f}{v / w:>6.2f}" for v, w in zip(values, whole, strict=True)))


def _measured(folder: Path, addresses: int) -> dict[str, list[float]]:
    """The least CPU of a page by cache that is off, for each list and for a repeated page."""
    figures: dict[str, list[float]] = {}
    for _ in range(ROUNDS):
        for name, off in _CACHES.items():
            with off(), InProcess(folder, {CHAIN: ""}) as app:
                found = [_cpu_us(app, _targets(addresses, list_)) for list_ in _LISTS.values()]
                found.append(_cpu_us(app, _targets(addresses, _LISTS["4"])[:1]))
            known = figures.setdefault(name, found)
            figures[name] = [min(pair) for pair in zip(known, found, strict=True)]
    return figures


def _targets(addresses: int, list_: str) -> list[str]:
    numbers = range(2, min(addresses, 2 + 2 * PAGES))
    return [f"/v1/chains/{CHAIN}/addresses/0x{address(number).hex()}/{list_}" for number in numbers]


def _cpu_us(app: InProcess, targets: list[str]) -> float:
    """The CPU of a page: the first pages fill the caches and are not counted."""
    asked = list(islice(cycle(targets), 2 * PAGES))
    for target in asked[:PAGES]:
        assert app.get(target).status == 200, target
    began = time.process_time()
    for target in asked[PAGES:]:
        app.get(target)
    return (time.process_time() - began) / PAGES * 1e6


async def _made(_: AnswerCache, _key: object, _version: object, make: Any) -> Any:
    return await make()


_CACHES: dict[str, Callable[[], AbstractContextManager[object]]] = {
    _ALL: nullcontext,
    "rows: addresses by ID, blocks": partial(patch.object, directory, "CachedLists", JoinedLists),
    "details and prices of tokens": partial(patch.object, enrich_reader, "CACHED_MAX", -1),
    "whole answers": partial(patch.object, AnswerCache, "around", _made),
}
