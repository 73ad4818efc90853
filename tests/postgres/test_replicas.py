"""Chains are read from real streaming standbys, the rest from the primary: `--replica` and `--replica-lag-max`."""

import json
import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import psycopg
import pytest
from tests.api.data_scene import chain_id, put_chains
from tests.postgres.server import PostgresServer, StandbyServer, new_prefix, server_folder
from tests.server import Server, serving
from tests.upstream.evm_replay import EvmReplay
from tests.upstream.threaded import in_thread
from tests.waiting import until

from icefall.access.store import AccessWriter
from icefall.cli import main
from icefall.compose.stores import Stores

CHAIN = "berlin-1"
TARGET = f"/v1/chains/{chain_id(CHAIN)}"
NEVER_OLD = "--replica-lag-max=24h"


class Cluster(NamedTuple):
    """A primary with the chain, and its two standbys."""

    primary: PostgresServer
    standbys: list[PostgresServer]
    prefix: str
    settings: list[str]
    access: AccessWriter

    def run(self, statement: str, at: PostgresServer | None = None) -> list[tuple[Any, ...]]:
        with psycopg.connect((at or self.primary).url, autocommit=True) as session:
            done = session.execute(statement.replace("{p}", self.prefix))
            return done.fetchall() if done.description else []

    def write(self, text: str) -> None:
        """Commit something to the chain that answers show, as its writer would."""
        schema = f"{self.prefix}_chain_{chain_id(CHAIN)}"
        self.run(f"""
            insert into {schema}.meta (name, value) values ('blockchain_id', '{text}')
            on conflict (name) do update set value = excluded.value;
            update {schema}.schema_version set commits = coalesce(commits, 0) + 1
        """)

    @contextmanager
    def paused(self, number: int) -> Iterator[None]:
        """A standby that receives everything and shows none of it."""
        self.run("select pg_wal_replay_pause()", self.standbys[number])
        try:
            yield
        finally:
            self.run("select pg_wal_replay_resume()", self.standbys[number])


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder, prefix = tmp_path_factory.mktemp("replicas"), new_prefix()
    with ExitStack() as stack:
        replay = stack.enter_context(in_thread(EvmReplay(CHAIN)))
        put_chains(folder, {CHAIN: replay.url})
        primary = PostgresServer(server_folder())
        stack.callback(primary.remove)
        primary.start()
        assert main(["copy", str(folder / "data"), primary.url, f"--store-prefix={prefix}"]) == 0
        standbys = []
        for _ in range(2):
            standbys.append(StandbyServer(server_folder(), primary))
            stack.callback(standbys[-1].remove)
            standbys[-1].start()
        settings = [
            f"--config-file={folder / 'icefall.toml'}",
            f"--store={primary.url}",
            f"--store-prefix={prefix}",
            *(f"--replica={one.url}" for one in standbys),
        ]
        stores = Stores(folder / "data", primary.url, prefix)
        stack.callback(stores.close)
        yield Cluster(primary, list(standbys), prefix, settings, stores.access_writer())


def seen(server: Server) -> str:
    """What answers show of the chain; they must all be answers."""
    reply = server.ask("GET", TARGET, listener="data")
    assert reply.status == 200, reply
    return str(reply.json().get("platformChainId", ""))


def health(server: Server) -> dict[str, Any]:
    return dict(server.ask("GET", "/v1/health-check", listener="data").json()["details"])


def is_up(server: Server, number: int) -> bool:
    return bool(health(server)[f"replica-{number + 1}"]["status"] == "up")


def lag_of(server: Server, standby: PostgresServer) -> float:
    text = server.ask("GET", "/ext/metrics", listener="data").body.decode()
    (lag,) = re.findall(rf'icefall_replica_lag_seconds{{replica="127.0.0.1:{standby.port}/postgres"}} (\S+)', text)
    return float(lag)


def test_chains_are_read_from_the_first_standby_and_keys_from_the_primary(cluster: Cluster, tmp_path: Path) -> None:
    cluster.write("before")
    with serving("data", tmp_path, *cluster.settings, NEVER_OLD, "--rate-limits=on") as server:
        until(lambda: seen(server) == "before", "the standby has it")
        with cluster.paused(0):
            cluster.write("after")
            header = {"x-service-api-key": cluster.access.add_key("alice", "pro", 5)}  # the standby has no such key
            for _ in range(5):
                reply = server.ask("GET", TARGET, headers=header, listener="data")
                assert reply.status == 200
                assert reply.json()["platformChainId"] == "before"
            used = "select coalesce(sum(calls), 0) from {p}_access.usage_day where caller like '%alice%'"
            until(lambda: int(cluster.run(used)[0][0]) == 5, "usage is counted by the primary")
            assert int(cluster.run("select count(*) from {p}_access.budget_spent")[0][0])
        until(lambda: seen(server) == "after", "it goes on")


def test_answers_that_are_too_old_are_those_of_the_next_replica_then_of_the_primary(
    cluster: Cluster, tmp_path: Path
) -> None:
    cluster.write("1")
    with serving("data", tmp_path, *cluster.settings, "--replica-lag-max=1s") as server:
        until(lambda: seen(server) == "1" and is_up(server, 0) and is_up(server, 1), "all have it")
        with cluster.paused(0):
            cluster.write("2")
            until(lambda: seen(server) == "2", "the second replica answers")
            until(lambda: not is_up(server, 0), "health shows the first")
            details = health(server)
            assert is_up(server, 1)
            assert "behind, and --replica-lag-max is 1 s" in details["replica-1"]["message"]
            assert lag_of(server, cluster.standbys[0]) > 1
            with cluster.paused(1):
                cluster.write("3")
                until(lambda: seen(server) == "3", "the primary answers")
                assert "a replica is not read" in server.output()
                assert str(cluster.standbys[0].port) not in json.dumps(details)  # clients need not know it
        until(lambda: is_up(server, 0) and is_up(server, 1), "both have replayed all")
        assert "a replica is read again" in server.output()


def test_replicas_that_die_are_replaced_within_the_answer(
    cluster: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.write("kept")
    first = cluster.standbys[0]
    with serving("data", tmp_path, *cluster.settings) as server:
        until(lambda: seen(server) == "kept" and is_up(server, 0), "the first is read")
        first.kill()
        for _ in range(20):
            assert seen(server) == "kept"
        until(lambda: not is_up(server, 0), "health shows it")
        shown = [one for one in cluster.settings if not one.startswith("--config")]
        capsys.readouterr()
        assert main(["status", f"--data-dir={tmp_path / 'data'}", "--json", *shown]) == 0
        gone, other = json.loads(capsys.readouterr().out)["replicas"]
        assert gone["name"] == f"127.0.0.1:{first.port}/postgres"
        assert "cannot be used" in gone["problem"]
        assert (other["problem"], other["lagSeconds"] < 10) == ("", True)
        assert main(["status", f"--data-dir={tmp_path / 'data'}", *shown]) == 0
        assert re.search(rf"replicas:\n  127.0.0.1:{first.port}/postgres: .*not read:", capsys.readouterr().out)
        first.start()
        until(lambda: is_up(server, 0), "it is read again")


def test_the_node_shows_replicas_in_its_health(cluster: Cluster, tmp_path: Path) -> None:
    settings = [one for one in cluster.settings if not one.startswith("--config")]
    with serving("up", tmp_path, *settings) as server:

        def check() -> dict[str, Any]:
            found = server.call("/ext/health", "health.health")["result"]["checks"]
            return dict(found["replicas"].get("message") or {})

        until(lambda: len(check()) == 2, "the check has run")
        for one in cluster.standbys:
            shown = check()[f"127.0.0.1:{one.port}/postgres"]
            assert shown["used"]
            assert 0 <= shown["lagSeconds"] < 10


def test_a_server_that_is_no_standby_is_not_read(cluster: Cluster, tmp_path: Path) -> None:
    stray = PostgresServer(server_folder())
    stray.start()
    try:
        settings = [one for one in cluster.settings if not one.startswith("--replica")]
        cluster.write("right")
        with serving("data", tmp_path, *settings, f"--replica={stray.url}") as server:
            assert seen(server) == "right"
            assert health(server)["replica-1"]["message"].startswith("it is no standby")
    finally:
        stray.remove()
