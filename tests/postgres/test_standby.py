"""Two indexers of one store: the second takes over when the first dies. A server that is gone for a while: 503, then
answers again, without a restart."""

import asyncio
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
from tests.api.data_scene import chain_id, data_server
from tests.evm.digest import HOLDERS, digests, digests_of
from tests.evm.indexed import messenger_of
from tests.evm.reading_scene import index
from tests.postgres.server import PostgresServer, new_prefix, server_url
from tests.postgres.test_server_crashes import server  # noqa: F401
from tests.store.opened import SchemaTables
from tests.upstream.evm_replay import EvmReplay
from tests.upstream.threaded import in_thread
from tests.waiting import until

CHAIN, LAST = "geth-1", 160
ROOT = Path(__file__).parents[2]
REFUSED = "the PostgreSQL server cannot be used"


@contextmanager
def indexer(folder: Path, replay: EvmReplay, prefix: str, url: str) -> Iterator[tuple[subprocess.Popen[bytes], Path]]:
    folder.mkdir()
    config, terminal = folder / "icefall.toml", folder / "terminal.txt"
    teleporter = f'teleporter = "0x{messenger_of(replay).hex()}"'
    raw = "store_logs = true\nstore_traces = true"
    config.write_text(f'[[chain]]\nid = "{replay.chain_id}"\nrpc = "{replay.url}"\n{teleporter}\n{raw}\n')
    settings = [
        f"--config-file={config}",
        f"--data-dir={folder / 'data'}",
        f"--store={url}",
        f"--store-prefix={prefix}",
    ]
    with terminal.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "icefall.cli", "index", *settings], stdout=output, stderr=output
        )
    try:
        yield process, terminal
    finally:
        process.kill()
        process.wait()


def tip_of(url: str, schema: str) -> int:
    tables = SchemaTables(url, schema)
    try:
        ((newest,),) = tables.rows("block", "coalesce(max(number), -1)")[1]
    finally:
        tables.close()
    return int(newest)


def writers(url: str) -> set[str]:
    """The names of the sessions that hold the lock of a writer."""
    held = "select application_name from pg_stat_activity join pg_locks using (pid) where locktype = 'advisory'"
    with psycopg.connect(url, autocommit=True) as session:
        return {name for (name,) in session.execute(held)}


def quietly(ask: Callable[[], int]) -> int:
    try:
        return ask()
    except Exception:  # nothing there yet
        return -1


def test_a_standby_takes_over_with_no_gap_and_no_double(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    prefix, url = new_prefix(), server_url()
    with in_thread(EvmReplay(CHAIN)) as replay:
        schema = f"{prefix}_chain_{replay.chain_id}"
        replay.shown = 60
        with indexer(tmp_path / "first", replay, prefix, url) as (first, _):
            until(lambda: quietly(lambda: tip_of(url, schema)) == 60, "the first indexer has stored what there is")
            with indexer(tmp_path / "second", replay, prefix, url) as (second, said):
                until(lambda: "standby: another process indexes the chain" in said.read_text(), "the second one waits")
                assert "is in use by icefall" in said.read_text()
                replay.shown = 110
                until(lambda: tip_of(url, schema) > 60, "the first one goes on")
                assert f"icefall {first.pid}" in writers(url)
                first.kill()
                began = time.monotonic()
                until(lambda: f"icefall {second.pid}" in writers(url), "the second one is the writer")
                with capsys.disabled():
                    print(f"\nstandby: was the writer {time.monotonic() - began:.1f} s after kill -9 of the first")
                replay.shown = LAST
                until(lambda: tip_of(url, schema) == LAST, "the second one has stored the rest")
                assert second.poll() is None
    clean = tmp_path / "clean.sqlite"
    asyncio.run(index(clean, EvmReplay(CHAIN), LAST))
    tables = SchemaTables(url, schema)
    try:
        found, expected = digests_of(tables), digests(clean)
    finally:
        tables.close()
    # How far audits and the count of holders are, and what audits found of tokens, is not waited for.
    different = {table for table in expected if found[table] != expected[table]}
    assert different <= {"meta", "token", "nft_state_owner", *HOLDERS}, different


def test_a_session_that_ends_while_no_block_comes_is_opened_again(tmp_path: Path) -> None:
    prefix, url = new_prefix(), server_url()
    with in_thread(EvmReplay(CHAIN)) as replay:
        replay.shown = 20
        with indexer(tmp_path / "only", replay, prefix, url) as (process, _):
            name, schema = f"icefall {process.pid}", f"{prefix}_chain_{replay.chain_id}"
            until(lambda: quietly(lambda: tip_of(url, schema)) == 20, "all blocks are stored")
            with psycopg.connect(url, autocommit=True) as admin:
                ended = "select pg_terminate_backend(pid) from pg_stat_activity where application_name = %s"
                admin.execute(ended, [name])
            until(lambda: name not in writers(url), "the lock is gone")
            until(lambda: name in writers(url), "it is the writer again")


def test_an_indexer_without_a_supervisor_waits_for_a_server_that_refuses_it(
    tmp_path: Path,
    server: PostgresServer,  # noqa: F811
) -> None:
    """Its session ends, and the store cannot be opened again for a while: as when a server is restarted."""
    prefix = new_prefix()
    ended = (
        "select pg_terminate_backend(pid) from pg_stat_activity join pg_locks using (pid) where locktype = 'advisory'"
    )
    with (
        psycopg.connect(server.url, dbname="template1", autocommit=True) as admin,
        in_thread(EvmReplay(CHAIN)) as replay,
    ):
        schema = f"{prefix}_chain_{replay.chain_id}"
        replay.shown = 20
        with indexer(tmp_path / "only", replay, prefix, server.url) as (process, said):

            def awaited(truth: Callable[[], bool], what: str) -> None:
                until(lambda: process.poll() is not None or truth(), what)
                assert process.poll() is None, said.read_text()

            awaited(lambda: quietly(lambda: tip_of(server.url, schema)) == 20, "all blocks are stored")
            admin.execute("alter database postgres with allow_connections false")
            admin.execute(ended)
            awaited(lambda: bool(re.search(f"not indexed yet.*{REFUSED}", said.read_text())), "the store is refused")
            admin.execute("alter database postgres with allow_connections true")
            replay.shown = 30
            awaited(lambda: tip_of(server.url, schema) == 30, "the rest is stored")


def test_while_the_server_is_gone_answers_are_503_and_then_right_again(
    tmp_path: Path,
    server: PostgresServer,  # noqa: F811
) -> None:
    with data_server(tmp_path / "served", chains=("berlin-1",), store="postgres") as served:
        target = f"/v1/chains/{chain_id('berlin-1')}/blocks"
        before = served.result(target)["blocks"]
        server.stop("immediate")
        for _ in range(3):
            gone = served.get(target)
            assert (gone.status, gone.header("retry-after")) == (503, "1")
            assert str(server.port).encode() not in gone.body
        server.start()
        until(lambda: served.get(target).status == 200, "it answers again")
        assert served.result(target)["blocks"] == before
        for _ in range(20):  # of the connections that were there before, none is used twice
            assert served.get(target).status == 200
