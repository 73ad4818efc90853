"""What each of this node's own health checks says."""

import asyncio
import os
from pathlib import Path
from types import SimpleNamespace

import pytest
from tests.node.health_scene import SECOND_NS, Play, Scene, player

from icefall.db import disk
from icefall.db.engine import StoreError
from icefall.node.chains import primary_chains
from icefall.node.health.checks import (
    ChainCheck,
    EngineTraffic,
    FollowStats,
    Thresholds,
    bootstrapped,
    database,
    diskspace,
    network,
    node_checks,
    router,
    shutting_down,
)
from icefall.node.health.runner import HEALTH, READINESS, Unhealthy
from icefall.node.store import NodeReader
from icefall.wire.ids import PRIMARY_NETWORK, id_text


@pytest.fixture
def play(tmp_path: Path) -> Play:
    return player(tmp_path)


def test_the_database_check_really_writes_and_reads(play: Play) -> None:
    async def scenario(scene: Scene) -> None:
        probe = "select value from probe where id = 1"
        await database(scene.store)
        first = await scene.store.rows(probe)
        await database(scene.store)
        assert await scene.store.rows(probe) != first
        check = await scene.add("database", lambda: database(scene.store))
        assert "error" not in await scene.once(check)
        scene.store._writer.execute("alter table probe rename to gone")
        assert (await scene.once(check))["error"] == "StoreError: the store failed: no such table: probe"
        scene.store._writer.execute("alter table gone rename to probe")
        assert "error" not in await scene.once(check)

    play(scenario)


def test_the_database_check_fails_when_writes_are_lost(play: Play) -> None:
    async def scenario(scene: Scene) -> None:
        scene.store._writer.execute("create trigger lose after insert on probe begin delete from probe; end")
        with pytest.raises(Unhealthy, match=r"^wrote \d+, read back \[\]$"):
            await database(scene.store)

    play(scenario)


def test_the_database_check_fails_when_nothing_can_be_written(play: Play) -> None:
    async def scenario(scene: Scene) -> None:
        scene.store._writer.execute("pragma query_only = on")
        with pytest.raises(StoreError, match="readonly"):
            await database(scene.store)

    play(scenario)


@pytest.mark.parametrize(
    ("free", "error"),
    [
        (1000, ""),
        (100, ""),
        (99, "remaining available disk space percentage (9%) is below warning threshold available space percentage "
             "(10%)"),
        (30, "remaining available disk space percentage (3%) is below warning threshold available space percentage "
             "(10%)"),
        (29, "remaining available disk space percentage (2%) is below minimum threshold available space percentage "
             "(3%)"),
        (0, "remaining available disk space percentage (0%) is below minimum threshold available space percentage "
            "(3%)"),
    ],
)  # fmt: skip
def test_disk_space(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, free: int, error: str) -> None:
    usage = SimpleNamespace(f_bavail=free, f_blocks=1000, f_frsize=4096)
    monkeypatch.setattr(disk, "os", SimpleNamespace(statvfs=lambda _: usage))
    message = {"availableDiskBytes": free * 4096, "availableDiskPercentage": free // 10}
    if error:
        with pytest.raises(Unhealthy) as caught:
            asyncio.run(diskspace(tmp_path, 10, 3))
        assert str(caught.value) == error
        assert caught.value.message == message
    else:
        assert asyncio.run(diskspace(tmp_path, 10, 3)) == message


def test_disk_space_of_the_real_disk(tmp_path: Path) -> None:
    message = asyncio.run(diskspace(tmp_path, 0, 0))
    usage = os.statvfs(tmp_path)
    assert message["availableDiskBytes"] == pytest.approx(usage.f_bavail * usage.f_frsize, rel=0.05)
    assert 0 <= message["availableDiskPercentage"] <= 100


def test_network_stands_alone() -> None:
    """Without upstreams the messages are the calls to the engine; before the first of them the time since the start."""
    now = 5 * SECOND_NS
    traffic = EngineTraffic(lambda: now)
    now = 7 * SECOND_NS
    shown = {"connectedPeers": 0, "sendFailRate": 0}
    assert asyncio.run(network(traffic, None, 1)) == shown | {
        "timeSinceLastMsgReceived": "2s",
        "timeSinceLastMsgSent": "2s",
    }
    assert asyncio.run(network(None, None, 1)) == shown
    end = traffic.call()
    now = 8 * SECOND_NS
    end()
    now = 12 * SECOND_NS
    end()
    assert asyncio.run(network(traffic, None, 1)) == shown | {
        "timeSinceLastMsgReceived": "5s",
        "timeSinceLastMsgSent": "4s",
    }


def test_router_counts_what_is_outstanding() -> None:
    now = 0
    traffic = EngineTraffic(lambda: now)
    assert asyncio.run(router(traffic, None, 2)) == {"longestRunningRequest": "0s", "outstandingRequests": 0}
    ends = [traffic.call() for _ in range(2)]
    now = 1_500_000_000
    assert asyncio.run(router(traffic, None, 2)) == {"longestRunningRequest": "1.5s", "outstandingRequests": 2}
    third = traffic.call()
    with pytest.raises(Unhealthy, match=r"^the router is not healthy reason: .* too high \(3 > 2\)$") as caught:
        asyncio.run(router(traffic, None, 2))
    assert caught.value.message == {"longestRunningRequest": "1.5s", "outstandingRequests": 3}
    now = 301 * SECOND_NS
    with pytest.raises(Unhealthy) as caught:
        asyncio.run(router(traffic, None, 2))
    assert str(caught.value) == (
        "the router is not healthy reason: number of outstanding requests too high (3 > 2), "
        "time for outstanding requests 5m1s > 5m0s"
    )
    for end in (*ends, third, third):  # ending twice is harmless
        end()
    assert traffic.outstanding() == (0, 0)


def statuses(*bootstrapping: str) -> list[ChainCheck]:
    chains = primary_chains(b"x" * 32, b"c" * 32, b"1" * 32, b"2" * 32, b"3" * 32)
    waits = FollowStats(bootstrapped=False, failure=None, details={"state": "bootstrapping"}, connected=True)
    return [ChainCheck(chain, None, (lambda: waits) if chain.name in bootstrapping else None) for chain in chains]


def test_bootstrapped_lists_the_subnets_that_wait() -> None:
    assert asyncio.run(bootstrapped(statuses())) == []
    chains = statuses("X", "C")
    with pytest.raises(Unhealthy, match=r"^subnets not bootstrapped$") as caught:
        asyncio.run(bootstrapped(chains))
    assert caught.value.message == [id_text(PRIMARY_NETWORK)]


def test_a_chains_message() -> None:
    status = statuses()[0]
    networking = {"disconnectedValidators": [], "percentConnected": 1}
    assert asyncio.run(status.check()) == {
        "engine": {
            "consensus": {
                "avgAcceptanceTime": "0s",
                "lastAcceptedHeight": 0,
                "lastAcceptedID": id_text(b"2" * 32),
                "longestProcessingBlock": "0s",
                "processingBlocks": 0,
            },
            "vm": None,
        },
        "networking": networking,
    }
    assert asyncio.run(statuses("P")[0].check()) == {
        "engine": {"consensus": {}, "vm": None},
        "networking": networking,
        "following": {"state": "bootstrapping"},
    }


def test_shutting_down_is_reported(play: Play) -> None:
    async def scenario(scene: Scene) -> None:
        check = shutting_down()
        await scene.health.register(check)
        answer = await scene.once(check)
        assert (answer["message"], answer["error"]) == ({"isShuttingDown": True}, "server shutting down")

    play(scenario)


def test_all_checks_of_a_node_pass_at_once(play: Play, tmp_path: Path) -> None:
    async def scenario(scene: Scene) -> None:
        limits = Thresholds(0, 0, 10)
        traffic = EngineTraffic(lambda: 0)
        for check in node_checks(statuses(), scene.store, tmp_path, limits, traffic):
            await scene.health.register(check)
            scene.checks.append(check)
        await scene.health.run_once(scene.checks)
        names = ["C", "P", "X", "bootstrapped", "database", "diskspace", "network", "router"]
        assert list(await scene.passed()) == names
        assert all((await scene.passed()).values())
        assert await scene.passed(READINESS) == {"bootstrapped": True}
        wait_for_upstreams = {check.name for check in scene.checks if check.starting_s}
        assert wait_for_upstreams == {"bootstrapped", "network"}
        tagged = [r.name for r in await NodeReader(scene.store).health_results(HEALTH) if r.tags]
        assert tagged == ["C", "P", "X"]

    play(scenario)
