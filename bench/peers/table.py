"""SQD, Ponder and ethereum-etl beside ours: each takes the same chain from the same replay, then pages by address.

Equal work is: no tracers, roots not proven, PostgreSQL. Ours stores all transactions with their receipts all the same,
so SQD is measured twice: with transfers and balances alone, and with transactions and indexes by address. Pages of ours
on PostgreSQL are compared with Ponder's on the same server, those on SQLite with Ponder's on PGlite, which it embeds.
"""

import os
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType
from typing import NamedTuple

from bench.evm_upstream import upstream
from bench.load import LoadStats, descendants, measure, worker_pids
from bench.peers import ethereum_etl, ours, ponder, sqd
from bench.peers.database import Database, DatabaseServer, database_server
from bench.peers.processes import Missing, PeerFailed, Spent, fetch
from bench.peers.replay import History

BLOCKS, PER_BLOCK, ADDRESSES, BUSY = 2_000, 20, 5_000, 0.05
_WARM_UP = 500  # requests before a page is measured
SERVER, EMBEDDED = "PostgreSQL", "embedded"
Rows = list[tuple[str, str, int]]
Done = Callable[[Spent, Database | int], None]  # prints the line; the database that was filled, or bytes on disk


class Page(NamedTuple):
    """What was measured of one page. `query` is SQL or GraphQL, of Ponder's; empty of ours."""

    label: str
    store: str
    query: str
    kind: str
    load: LoadStats


class Comparison:
    """Runs the peers one after the other and prints a line for each; a peer that is missing or fails gets one too."""

    def __init__(self, history: History, folder: Path) -> None:
        self._history = history
        self._folder = folder
        self._rates: dict[str, float] = {}
        self.pages: list[Page] = []
        self._rows: dict[str, Rows] = {}  # of the page of each address
        addresses = history.chain.addresses
        self._addresses = {"quiet": "0x" + addresses[1].hex(), "busy": "0x" + addresses[0].hex()}

    def run(self, plain: str, traced: str) -> None:
        """`plain` and `traced`: URLs of the replay without and with tracers."""
        print(
            f"  {'what':<48}{'transfers/s':>12}{'seconds':>9}{'CPU us':>8}{'database':>9}{'RSS MB':>8}{'B each':>8}"
            f"{'of SQD':>8}"
        )
        try:
            with database_server() as server:
                self._on_postgres(plain, server)
        except Missing as missing:
            self._missing("SQD, Ponder and Icefall on PostgreSQL", str(missing))
        with self.line("ethereum-etl, transactions and transfers as CSV") as done:
            done(*self._ethereum_etl(plain))
        with self.line("Icefall, SQLite") as done:
            self._icefall(done, plain, None, prove=False)
        with self.line("Icefall, SQLite, traces, diffs, roots proven") as done:
            self._icefall(done, traced, None, prove=True, with_pages=False)
        with self.line("Ponder, PGlite, transfers and balances") as done:
            self._ponder(done, plain, None)
        print("\n".join(page_lines(self.pages)))

    def _on_postgres(self, url: str, server: DatabaseServer) -> None:
        for name, label, more in (
            ("sqd", "SQD, transfers and balances", False),
            ("sqd_more", "SQD, transactions and indexes by address too", True),
        ):
            with self.line(label) as done:
                database = Database(server, name)
                spent = sqd.take(self._history, url, database, self._log(name), with_transactions=more)
                done(spent, database)
        with self.line("Icefall, PostgreSQL") as done:
            self._icefall(done, url, Database(server, "icefall"), prove=False)
        with self.line("Ponder, PostgreSQL, transfers and balances") as done:
            self._ponder(done, url, Database(server, "ponder"))

    def _ethereum_etl(self, url: str) -> tuple[Spent, int]:
        folder = self._folder / "ethereum-etl"
        folder.mkdir()
        return ethereum_etl.take(self._history, url, folder, self._log("ethereum-etl"))

    def _icefall(
        self, done: Done, url: str, database: Database | None, *, prove: bool, with_pages: bool = True
    ) -> None:
        with TemporaryDirectory(dir=self._folder) as folder:
            installation = ours.Installation(Path(folder), url, database)
            spent = installation.take(self._history, self._log("icefall"), prove)
            done(spent, database or installation.bytes_on_disk())
            if not with_pages:
                return
            label, store = ("Icefall, PostgreSQL", SERVER) if database else ("Icefall, SQLite", EMBEDDED)
            with installation.serving() as server:
                for kind, address in self._addresses.items():
                    self._compare_rows(kind, ours.rows(server, address))
                    load = self._load(server.url("data") + ours.page(address), None, worker_pids(server))
                    self.pages.append(Page(label, store, "", kind, load))

    def _ponder(self, done: Done, url: str, database: Database | None) -> None:
        label, store = ("Ponder, PostgreSQL", SERVER) if database else ("Ponder, PGlite", EMBEDDED)
        with ponder.taken(self._history, url, database, self._log("ponder")) as running:
            done(running.spent, database or running.bytes_on_disk())
            for kind, address in self._addresses.items():
                pids = descendants(running.pid)
                for query, target, body in (
                    ("SQL", running.page(address), None),
                    ("GraphQL", f"{running.url}/graphql", running.graphql_page(address)),
                ):
                    self._compare_rows(kind, ponder.rows(fetch(target, body)))
                    load = self._load(target, body, pids)
                    self.pages.append(Page(f"{label}, {query}", store, query, kind, load))

    def _compare_rows(self, kind: str, rows: Rows) -> None:
        known = self._rows.setdefault(kind, rows)
        if not rows or rows != known:
            raise PeerFailed(f"its page of the {kind} address has other rows: {rows[:2]} instead of {known[:2]}")

    def _load(self, url: str, body: bytes | None, pids: list[int]) -> LoadStats:
        try:
            for _ in range(_WARM_UP):  # Node.js compiles what is called often
                fetch(url, body)
            return measure(url, body, pids)
        except RuntimeError as error:  # wrk met a refusal or a timeout
            raise PeerFailed(f"its pages: {error}") from None

    @contextmanager
    def line(self, label: str) -> Iterator[Done]:
        def done(spent: Spent, where: Database | int) -> None:
            count = self._history.transfers
            self._rates[label] = count / spent.seconds
            in_database = f"{where.cpu_s() / count * 1e6:.1f}" if isinstance(where, Database) else "-"
            size = where.bytes_added() if isinstance(where, Database) else where
            first = next((rate for name, rate in self._rates.items() if name.startswith("SQD")), None)
            ratio = f"{self._rates[label] / first:.2f}" if first else "-"
            print(
                f"  {label:<48}{count / spent.seconds:>12.0f}{spent.seconds:>9.2f}{spent.cpu_s / count * 1e6:>8.1f}"
                f"{in_database:>9}{spent.rss_mb:>8.0f}{size / count:>8.0f}{ratio:>8}",
                flush=True,
            )

        try:
            yield done
        except Missing as missing:
            self._missing(label, str(missing))
        except PeerFailed as failure:
            self._missing(label, f"failed: {failure}")

    def _missing(self, label: str, why: str) -> None:
        print(f"  {label:<48}  {why}", flush=True)

    def _log(self, name: str) -> Path:
        return self._folder / f"{name}.log"


def page_lines(pages: Sequence[Page]) -> Iterator[str]:
    """`of Ponder: SQL`, `GraphQL`: requests per second divided by those of Ponder's page of the same address
    on a store of the same kind."""
    yield (
        f"  {'page of ten transfers of an address':<48}{'req/s':>12}{'p99 ms':>9}{'CPU us':>8}{'of Ponder: SQL':>16}"
        f"{'GraphQL':>9}"
    )
    for page in sorted(pages, key=lambda page: page.store != SERVER):
        load, ratios = page.load, (f"{_of_ponder(page, query, pages):>9}" for query in ("SQL", "GraphQL"))
        shown = f"{page.label}, {page.kind} address"
        yield f"  {shown:<48}{load.per_second:>12.0f}{load.p99_ms:>9.2f}{load.cpu_us:>8.1f}{'':>7}{''.join(ratios)}"


def _of_ponder(page: Page, query: str, pages: Sequence[Page]) -> str:
    for other in pages:
        if (other.store, other.query, other.kind) == (page.store, query, page.kind):
            return f"{page.load.per_second / other.load.per_second:.1f}"
    return "-"


def run() -> None:
    blocks = int(os.environ.get("ICEFALL_BENCH_BLOCKS", BLOCKS))
    history = History(blocks, PER_BLOCK, ADDRESSES, BUSY)
    print(
        f"peers: {blocks} blocks, {history.transfers} ERC-20 transfers among {ADDRESSES} addresses; one sends"
        f" {BUSY:.0%}\n"
        "  from the start of a program to its last row; CPU of its own processes and of the database, per transfer"
    )
    with (
        TemporaryDirectory(prefix="icefall-peers-") as folder,
        upstream(history.replay(tracers=False)) as (plain, _),
        upstream(history.replay(tracers=True)) as (traced, _),
    ):
        signal.signal(signal.SIGTERM, _end)  # not before: the replays end by the signal itself
        Comparison(history, Path(folder)).run(plain, traced)


def _end(_number: int, _frame: FrameType | None) -> None:
    """As an exception, so that all that was started is stopped."""
    raise SystemExit("ended by SIGTERM")
