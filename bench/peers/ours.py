"""Icefall as a peer among the others: the same chain into SQLite or PostgreSQL, and its pages by address."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.server import Server, serving

from bench.evm_chain import CHAIN_ID
from bench.peers.database import Database
from bench.peers.processes import Spent, to_the_end
from bench.peers.replay import History


class Installation:
    """A folder with its settings; `database`: None for SQLite."""

    def __init__(self, folder: Path, url: str, database: Database | None) -> None:
        self._folder = folder
        self._database = database
        config = folder / "icefall.toml"
        config.write_text(f'[[chain]]\nid = "{CHAIN_ID}"\nrpc = "{url}"\nname = "bench"\n')
        self._settings = [f"--config-file={config}", *([f"--store={database.url}"] if database else [])]

    def take(self, history: History, log: Path, prove: bool) -> Spent:
        command = [sys.executable, "-m", "icefall", "index", f"--data-dir={self._folder / 'data'}"]
        roots = f"--verify-roots={'true' if prove else 'false'}"
        return to_the_end([*command, *self._settings, f"--to={history.last}", roots, "--log-level=off"], log)

    def bytes_on_disk(self) -> int:
        if self._database is not None:
            return self._database.bytes_added()
        return sum(file.stat().st_size for file in (self._folder / "data").rglob("*.sqlite*"))

    @contextmanager
    def serving(self) -> Iterator[Server]:
        with serving("data", self._folder, *self._settings) as server:
            yield server


def page(address: str) -> str:
    return f"/v1/chains/{CHAIN_ID}/addresses/{address}/transactions:listErc20?pageSize=10"


def rows(server: Server, address: str) -> list[tuple[str, str, int]]:
    """Sender, recipient and amount of each transfer of the page."""
    answer = server.ask("GET", page(address), listener="data")
    assert answer.status == 200, answer.body[:300]
    transfers = answer.json()["transactions"]
    return [(one["from"]["address"].lower(), one["to"]["address"].lower(), int(one["value"])) for one in transfers]
