"""The writer killed and the server stopped, again and again: in the end there is what a clean run on SQLite stores.

ICEFALL_FUZZ_POSTGRES_KILLS and ICEFALL_FUZZ_POSTGRES_STOPS: how often.
"""

import os
import random
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.evm import index_crash
from tests.evm.digest import digests
from tests.evm.test_index_crashes import tip_of
from tests.forked import exit_code_of, started
from tests.postgres.server import URL, PostgresServer, server_folder, server_url
from tests.upstream.evm_replay import EvmReplay
from tests.upstream.threaded import in_thread

KILLS = int(os.environ.get("ICEFALL_FUZZ_POSTGRES_KILLS", "10"))
STOPS = int(os.environ.get("ICEFALL_FUZZ_POSTGRES_STOPS", "3"))
CHAIN, LAST = "geth-1", 110


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    clean = tmp_path_factory.mktemp("clean") / "clean.sqlite"
    with in_thread(EvmReplay(CHAIN)) as replay:
        assert exit_code_of(index_crash.run, clean, replay.url, replay.chain_id, LAST) == 0
    return digests(clean)


def test_kill_9_of_the_writer_at_any_write(expected: dict[str, str], tmp_path: Path) -> None:
    server_url()  # for the children too
    source, crashes, number, tips = random.Random(15), 0, 0, set()
    with in_thread(EvmReplay(CHAIN)) as replay:
        while crashes < KILLS:
            number += 1
            crashed = tmp_path / f"crashed-{number}.postgres"
            given = crashed, replay.url, replay.chain_id, LAST
            while exit_code_of(index_crash.run, *given, source.randint(2, source.choice((60, 400)))) != 0:
                crashes += 1
                tips.add(tip_of(crashed))
            assert digests(crashed) == expected
    assert len(tips) > 1, "the crashes were all at one block"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[PostgresServer]:
    """One of this test's own, which it may stop."""
    own = PostgresServer(server_folder())
    own.start()
    monkeypatch.setenv(URL, own.url)
    yield own
    own.remove()


def test_immediate_stops_of_the_server(expected: dict[str, str], tmp_path: Path, server: PostgresServer) -> None:
    source, number, stops = random.Random(4), 0, 0
    with in_thread(EvmReplay(CHAIN)) as replay:
        while stops < STOPS:
            number += 1
            stored = tmp_path / f"stopped-{number}.postgres"
            code: int | None = 1
            while code:
                child = started(index_crash.run, stored, replay.url, replay.chain_id, LAST)
                if stops < STOPS:
                    began = tip_of(stored)
                    while child.is_alive() and tip_of(stored) == began:  # until it has stored something
                        time.sleep(0.02)
                    time.sleep(source.uniform(0, 0.2))
                    server.stop("immediate")
                    server.start()
                    stops += 1
                child.join(120)
                code = child.exitcode
                assert code in (0, 1), "it ended by itself"
            assert digests(stored) == expected
