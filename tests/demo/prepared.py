"""The demo for tests of something else: indexed once for all test processes, and a copy started for each."""

import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.demo.test_demo_up import COIN, L1, data, read_nfts, synced
from tests.made_once import made_once
from tests.server import Server, serving
from tests.store.opened import EVERYWHERE
from tests.waiting import until


@contextmanager
def demo_serving(folder: Path, *settings: str) -> Iterator[Server]:
    """`icefall up` with everything of the demo indexed and read."""
    if not EVERYWHERE:
        shutil.copytree(made_once("demo", _make) / "data", folder / "data", ignore=shutil.ignore_patterns("run"))
    with _indexed(folder, *settings) as server:
        yield server


def _make(folder: Path) -> None:
    with _indexed(folder):
        pass


@contextmanager
def _indexed(folder: Path, *settings: str) -> Iterator[Server]:
    began = time.time()
    with serving("up", folder, "--demo", *settings) as server:
        until(lambda: synced(server.data_dir, began), "both chains indexed")
        until(lambda: read_nfts(server), "NFT metadata read")
        until(lambda: bool(data(server, f"{L1}/tokens/{COIN}/holders")["holders"]), "holders counted")
        yield server
