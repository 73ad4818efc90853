"""Ponder: transfers and balances into PostgreSQL or into PGlite, which it embeds by default, and its pages by
address."""

import http.client
import json
import shutil
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import Popen
from typing import Any, NamedTuple

from tests.ports import hold_port, port_of

from bench.evm_chain import CHAIN_ID
from bench.load import cpu_seconds, descendants
from bench.peers.database import Database
from bench.peers.install import npm_project
from bench.peers.processes import LIMIT_S, PeerFailed, Spent, fetch, last_words, rss_mb, started
from bench.peers.replay import TOKEN_TEXT, History

_POLL_S = 0.1
_SCHEMA = "bench"
_COUNT = b'{"query": "{ transferEvents(limit: 1) { totalCount } }"}'


class RunningPonder(NamedTuple):
    """All blocks are indexed, pages are served."""

    url: str
    pid: int
    spent: Spent
    folder: Path  # of PGlite

    def bytes_on_disk(self) -> int:
        return sum(file.stat().st_size for file in self.folder.rglob("*") if file.is_file())

    def page(self, address: str) -> str:
        """Ten transfers, by a route of our own that asks its database."""
        return f"{self.url}/transfers/{address}"

    def graphql_page(self, address: str) -> bytes:
        """The body of the same question for /graphql."""
        where = f'{{OR: [{{from: "{address}"}}, {{to: "{address}"}}]}}'
        fields = "items { id amount timestamp from to } pageInfo { endCursor hasNextPage }"
        page = f'transferEvents(where: {where}, orderBy: "id", orderDirection: "desc", limit: 10)'
        return json.dumps({"query": f"{{ {page} {{ {fields} }} }}"}).encode()


@contextmanager
def taken(history: History, url: str, database: Database | None, log: Path) -> Iterator[RunningPonder]:
    """`database`: None for PGlite."""
    folder, held = npm_project("ponder"), hold_port()
    port = port_of(held)
    kept = folder / ".ponder"
    shutil.rmtree(kept, ignore_errors=True)  # of an earlier run
    program = folder / "node_modules" / "ponder" / "dist" / "esm" / "bin" / "ponder.js"
    command: list[str | Path] = [
        "node",
        program,
        "start",
        f"--schema={_SCHEMA}",
        f"--port={port}",
        "--hostname=127.0.0.1",
    ]
    environment = {
        "PEER_RPC": url,
        "PEER_CHAIN": str(CHAIN_ID),
        "PEER_LAST": str(history.last),
        "PEER_TOKEN": TOKEN_TEXT,
        "DATABASE_URL": database.url if database else "",
        "PONDER_TELEMETRY_DISABLED": "true",
    }
    own = f"http://127.0.0.1:{port}"
    with held, started([*command, "--log-format=json"], log, environment, folder) as process:
        spent = _await_ready(own, process, log)
        stored = json.loads(fetch(f"{own}/graphql", _COUNT))["data"]["transferEvents"]["totalCount"]
        if stored != history.transfers:
            raise PeerFailed(f"{stored} transfers instead of {history.transfers}")
        yield RunningPonder(own, process.pid, spent, kept)


def _await_ready(url: str, process: Popen[bytes], log: Path) -> Spent:
    began, most = time.monotonic(), 0.0
    while process.poll() is None:
        if time.monotonic() - began > LIMIT_S:
            raise PeerFailed(f"not finished after {LIMIT_S:.0f} s")
        most = max(most, rss_mb(process.pid))
        if _is_ready(url):
            return Spent(time.monotonic() - began, cpu_seconds(descendants(process.pid)), most)
        time.sleep(_POLL_S)
    raise PeerFailed(f"ended with {process.returncode}: {last_words(log)}")


def _is_ready(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/ready", timeout=5) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, http.client.HTTPException, OSError):
        return False


def rows(page: bytes) -> list[tuple[str, str, int]]:
    """Sender, recipient and amount of each transfer of a page of either kind."""
    found: Any = json.loads(page)
    if isinstance(found, dict):
        found = found["data"]["transferEvents"]["items"]
    return [(row["from"], row["to"], int(row["amount"])) for row in found]
