"""kill -9 of the indexer, of the process that delivers, and of PostgreSQL at any statement: every event is received, no
ID with two contents, and nothing that is not in the chain.

ICEFALL_FUZZ_WEBHOOK_KILLS: how many points of each.
"""

import asyncio
import json
import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.postgres.server import PostgresServer, new_prefix, server_folder
from tests.webhooks.crash import STEP_S, Installation, chain, deliver, index, run_killed
from tests.webhooks.scene import busiest, transactions_of

KILLS = int(os.environ.get("ICEFALL_FUZZ_WEBHOOK_KILLS", "3"))
STATEMENTS = 40  # among which a process dies, from its start on


def created(at: Installation) -> Installation:
    at.folder.mkdir()
    scene = at.scene()
    asyncio.run(scene.webhook(busiest(), include_logs=1))
    scene.close()
    return at


def check(at: Installation) -> None:
    """Compare what was received with the chain, and with what the outbox holds."""
    contents: dict[str, str] = {}
    for line in at.received.read_text().splitlines():
        one = json.loads(line)
        assert contents.setdefault(one["id"], one["body"]) == one["body"], "one ID has two contents"
        assert json.loads(one["body"])["messageId"] == one["id"]
    hashes = [json.loads(body)["event"]["transaction"]["txHash"] for body in contents.values()]
    assert sorted(hashes) == sorted(transactions_of(busiest(), chain()))
    scene = at.scene()
    stored = {one for (one,) in scene.store._store.read("select id from webhook_outbox")}
    scene.close()
    assert stored == set(contents)


@pytest.fixture(scope="module", autouse=True)
def recorded() -> None:
    """Derive the chain before processes are forked."""
    assert transactions_of(busiest(), chain())


@pytest.mark.parametrize("role", ["indexer", "deliverer"])
def test_kill_9_at_any_statement(role: str, tmp_path: Path) -> None:
    source, kills, number = random.Random(8), 0, 0
    while kills < KILLS:
        number += 1
        at, now = created(Installation(tmp_path / str(number))), 1_000_000.0
        if role == "deliverer":
            assert run_killed(index, at, now).is_done
        is_done = False
        while not is_done:
            now += STEP_S
            point = source.randint(1, STATEMENTS) if kills < KILLS else 0
            ended = run_killed(index if role == "indexer" else deliver, at, now, point)
            is_done = ended.is_done
            kills += ended.is_killed
            if role == "indexer":
                assert run_killed(deliver, at, now).is_done
        check(at)


@pytest.fixture
def server() -> Iterator[PostgresServer]:
    """One of this test's own, which is killed."""
    own = PostgresServer(server_folder())
    own.start()
    yield own
    own.remove()


def test_kill_9_of_the_server_at_any_statement(tmp_path: Path, server: PostgresServer) -> None:
    source, kills, now = random.Random(9), 0, 1_000_000.0
    number = 0
    while kills < KILLS:
        number += 1
        at = created(Installation(tmp_path / str(number), server.url, new_prefix()))
        left: list[Callable[[Installation, float], None]] = [index, deliver]
        while left:
            now += STEP_S
            point = source.randint(1, STATEMENTS) if kills < KILLS else 0
            ended = run_killed(left[0], at, now, point, server)
            kills += ended.is_killed
            if not ended.is_killed:  # one that lost its session may have left messages for the next try
                left.pop(0)
        check(at)
