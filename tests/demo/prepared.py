"""The demo for tests of something else: indexed once for all test processes, and a copy started for each."""

import shutil
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from tests.made_once import made_once
from tests.server import Server, serving
from tests.store.opened import EVERYWHERE
from tests.waiting import until

from icefall.evm.status import ChainStatus, decode_status
from icefall.evm.storing.store import store_path

CHAINS = {"43112": 199, "3210042": 1969}  # how many blocks each has
C_BUSY = "0x955FfD76eA8aE0DD686333CF0e79Ad4328329a2d"
COIN = "0x5A7Cf40d3b2A2FfEA2ad8fa63E5900690b53f411"
L1, C_CHAIN = "/v1/chains/3210042", "/v1/chains/43112"


@contextmanager
def demo_serving(folder: Path, *settings: str) -> Iterator[Server]:
    """`icefall up` with everything of the demo indexed, read and audited. A copy was audited before: what it repeats of
    that, some seconds after its start, is not waited for."""
    if EVERYWHERE:
        with _indexed(folder, *settings) as server:
            yield server
        return
    shutil.copytree(made_once("demo", _make) / "data", folder / "data", ignore=shutil.ignore_patterns("run"))
    began = time.time()
    with serving("up", folder, "--demo", *settings) as server:
        until(lambda: synced(server.data_dir, began), "both chains followed")
        yield server


def first_start_text(server: Server) -> str:
    """What the program has written to the terminal when it indexed the demo."""
    return server.output() if EVERYWHERE else (made_once("demo", _make) / "terminal.txt").read_text()


def _make(folder: Path) -> None:
    with _indexed(folder):
        pass


@contextmanager
def _indexed(folder: Path, *settings: str) -> Iterator[Server]:
    began = time.time()
    with serving("up", folder, "--demo", *settings) as server:
        until(lambda: synced(server.data_dir, began, audited=True), "both chains indexed")
        until(lambda: read_nfts(server), "NFT metadata read")
        until(lambda: bool(data_if_any(server, f"{L1}/tokens/{COIN}/holders").get("holders")), "holders counted")
        yield server


def status(data_dir: Path, chain: str) -> ChainStatus | None:
    try:
        with closing(sqlite3.connect(f"file:{store_path(data_dir, chain)}?mode=ro", uri=True)) as connection:
            rows = connection.execute("select value from meta where name = 'status'").fetchall()
    except sqlite3.OperationalError:
        return None
    return decode_status(rows[0][0]) if rows else None


def synced(data_dir: Path, since: float, *, audited: bool = False) -> bool:
    result = [status(data_dir, chain) for chain in CHAINS]
    return all(one and one.synced and one.at > since and (one.audits_done or not audited) for one in result)


def read_nfts(server: Server) -> bool:
    path = f"{C_CHAIN}/addresses/{C_BUSY}/balances:listErc721?pageSize=50"
    owned = data_if_any(server, path).get("erc721TokenBalances", ())
    return len([nft for nft in owned if nft["metadata"]["indexStatus"].lower() == "indexed"]) == 3


def data_if_any(server: Server, path: str) -> dict[str, Any]:
    """Empty where it cannot be answered for a moment: an upstream or the store may be busy."""
    reply = server.ask("GET", path, listener="data")
    return dict(reply.json()) if reply.status == 200 else {}


def data(server: Server, path: str, listener: str = "data") -> Any:
    reply = server.ask("GET", path, listener=listener)
    assert reply.status == 200, reply
    return reply.json()
