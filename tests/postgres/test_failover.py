"""The primary dies by SIGKILL and its standby takes over, while a chain is indexed and read through a URL with both."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

import psycopg
import pytest
from tests.evm.digest import HOLDERS, digests, digests_of
from tests.evm.reading_scene import index
from tests.postgres.server import PostgresServer, StandbyServer, new_prefix, server_folder
from tests.postgres.test_standby import CHAIN, indexer, quietly, tip_of
from tests.server import Server, serving
from tests.store.opened import SchemaTables
from tests.upstream.evm_replay import EvmReplay
from tests.upstream.threaded import in_thread
from tests.waiting import until

from icefall.compose.stores import Stores

FIRST, MORE, LAST = 40, 60, 80  # blocks before the standby may be gone, before the primary is, and in the end


class Pair(NamedTuple):
    """A primary and its standby. `url`: leads to the one of the two that is the primary."""

    primary: PostgresServer
    standby: PostgresServer
    prefix: str
    url: str

    def schema(self, replay: EvmReplay) -> str:
        return f"{self.prefix}_chain_{replay.chain_id}"


@pytest.fixture
def pair() -> Iterator[Pair]:
    with ExitStack() as stack:
        primary = PostgresServer(server_folder())
        stack.callback(primary.remove)
        primary.start()
        standby = StandbyServer(server_folder(), primary)
        stack.callback(standby.remove)
        standby.start()
        hosts = f"127.0.0.1:{primary.port},127.0.0.1:{standby.port}"
        url = f"postgresql://postgres@{hosts}/postgres?target_session_attrs=read-write"
        yield Pair(primary, standby, new_prefix(), url)


def wait_for_standby(primary: PostgresServer) -> None:
    """Let every commit wait until the standby has it."""
    with psycopg.connect(primary.url, autocommit=True) as admin:
        admin.execute("alter system set synchronous_standby_names = '*'")
        admin.execute("select pg_reload_conf()")
        states = "select count(*) from pg_stat_replication where sync_state = 'sync'"
        until(lambda: bool(admin.execute(states).fetchall()[0][0]), "the standby is synchronous")


class Load:
    """Asks for the newest blocks again and again, beside the test. `wrong`: answers that should not be."""

    def __init__(self, server: Server, replay: EvmReplay) -> None:
        self._server = server
        self._target = f"/v1/chains/{replay.chain_id}/blocks?pageSize=5"
        self._hashes = {number: block.hash for number, block in replay.blocks.items()}
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.answers = self.refused = 0
        self.wrong: list[object] = []

    def _run(self) -> None:
        while not self._ends.wait(0.02):
            reply = self._server.ask("GET", self._target, listener="data")
            if reply.status == 503:
                self.refused += 1
            elif reply.status == 200 and self._is_right(reply.json()["blocks"]):
                self.answers += 1
            else:
                self.wrong.append(reply)

    def _is_right(self, blocks: list[dict[str, str]]) -> bool:
        numbers = [int(block["blockNumber"]) for block in blocks]
        follow = numbers == sorted(numbers, reverse=True) and len(numbers) in (0, 5)
        return follow and all(self._hashes[int(one["blockNumber"])] == one["blockHash"] for one in blocks)

    def __enter__(self) -> "Load":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.set()
        self._thread.join()


class Running(NamedTuple):
    """An indexer and a reader of a pair of servers, with blocks up to FIRST stored."""

    replay: EvmReplay
    load: Load
    stores: Stores


@contextmanager
def running(pair: Pair, folder: Path) -> Iterator[Running]:
    with ExitStack() as stack:
        replay = stack.enter_context(in_thread(EvmReplay(CHAIN)))
        replay.shown = FIRST
        process, said = stack.enter_context(indexer(folder / "index", replay, pair.prefix, pair.url))
        until(lambda: quietly(lambda: tip_of(pair.url, pair.schema(replay))) == FIRST, "what there is, is stored")
        settings = [f"--store={pair.url}", f"--store-prefix={pair.prefix}"]
        server = stack.enter_context(serving("data", folder / "data", *settings))
        stores = Stores(folder / "none", pair.url, pair.prefix)
        stack.callback(stores.close)
        load = stack.enter_context(Load(server, replay))
        until(lambda: load.answers > 0, "the reader answers")
        yield Running(replay, load, stores)
        assert process.poll() is None, said.read_text()  # the same indexer went on


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    clean, replay = tmp_path_factory.mktemp("clean") / "clean.sqlite", EvmReplay(CHAIN)
    replay.shown = LAST
    asyncio.run(index(clean, replay))
    return digests(clean)


def expect_the_whole_chain(run: Running, pair: Pair, expected: dict[str, str]) -> None:
    """The writer goes on to the head, the reader answers, and everything is as a clean run stores it."""
    run.replay.shown = LAST
    until(lambda: quietly(lambda: tip_of(pair.url, pair.schema(run.replay))) == LAST, "all is stored")
    before = run.load.answers
    until(lambda: run.load.answers > before, "the reader answers again")
    assert run.load.wrong == []
    tables = SchemaTables(pair.standby.url, pair.schema(run.replay))
    try:
        found = digests_of(tables)
    finally:
        tables.close()
    # How far audits and the count of holders are, and what audits found of tokens, is not waited for.
    different = {table for table in expected if found[table] != expected[table]}
    assert different <= {"meta", "token", "nft_state_owner", *HOLDERS}, different


def test_with_synchronous_replication_nothing_acknowledged_is_lost(
    pair: Pair, tmp_path: Path, expected: dict[str, str]
) -> None:
    wait_for_standby(pair.primary)
    with running(pair, tmp_path) as run:
        run.replay.shown = MORE
        until(lambda: tip_of(pair.primary.url, pair.schema(run.replay)) > FIRST, "blocks are being stored")
        run.stores.access_writer().add_key("acknowledged", "pro", 5)
        tip = tip_of(pair.primary.url, pair.schema(run.replay))
        pair.primary.kill()
        pair.standby.promote()
        assert tip_of(pair.standby.url, pair.schema(run.replay)) >= tip
        assert "acknowledged" in [key.name for key in run.stores.access_writer().all_keys()]
        expect_the_whole_chain(run, pair, expected)


def test_without_it_missing_blocks_are_indexed_again(pair: Pair, tmp_path: Path, expected: dict[str, str]) -> None:
    with running(pair, tmp_path) as run:
        schema = pair.schema(run.replay)
        until(lambda: quietly(lambda: tip_of(pair.standby.url, schema)) == FIRST, "the standby has all")
        pair.standby.stop("immediate")  # it receives nothing from here on
        run.replay.shown = MORE
        until(lambda: tip_of(pair.primary.url, schema) == MORE, "blocks that the standby does not have")
        pair.primary.kill()
        pair.standby.start()
        pair.standby.promote()
        expect_the_whole_chain(run, pair, expected)
