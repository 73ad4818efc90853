"""What an upstream sees of validators is stored once a minute; whatever it answers, nothing is lost or given up."""

import asyncio
import io
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.store.opened import open_store
from tests.sync.memory_chains import CHAIN_IDS
from tests.upstream.fake_clock import PollingClock
from tests.upstream.replay import FOREVER, Fault, Replay
from tests.waiting import LIMIT_S

from icefall.db.engine import Store
from icefall.node.store import PACKAGE
from icefall.node.sync.upstreams import NetworkIdentity, NodeUpstreams
from icefall.observe.log import LevelPage, Log
from icefall.pchain.observed import SHOWN_S, ObservedNode, ObservedNodes
from icefall.primary.observing import AFTER_FAILURE_S, EVERY_S, Observing
from icefall.upstream.client import Client, Retry
from icefall.upstream.node import UpstreamNode
from icefall.wire.ids import NODE_ID_PREFIX, id_text, short_id_text

A, B, C, OWN = (bytes([n]) * 20 for n in range(1, 5))
NOW = 1_900_000_000
VALIDATORS, PEERS = "platform.getCurrentValidators", "info.peers"


def name(node_id: bytes) -> str:
    return NODE_ID_PREFIX + short_id_text(node_id)


def answers() -> dict[str, Any]:
    return {
        VALIDATORS: {
            "validators": [
                {"nodeID": name(A), "uptime": "99.1234", "connected": True, "weight": "1"},
                {"nodeID": name(B), "uptime": "0.0000", "connected": False},
                {"nodeID": name(C)},
                {"nodeID": name(OWN), "uptime": "100.0000", "connected": True},
            ]
        },
        PEERS: {
            "numPeers": "2",
            "peers": [
                {"nodeID": name(A), "version": "avalanchego/1.14.2", "benched": ["C", id_text(CHAIN_IDS["X"]), "Q"]},
                {"nodeID": name(C), "version": "avalanchego/1.13.0", "benched": []},
                {"nodeID": name(bytes(20)), "version": "avalanchego/1.0.0"},  # no validator
            ],
        },
        "info.getNodeID": {"nodeID": name(OWN)},
        "info.getNodeVersion": {"version": "avalanchego/1.14.3"},
    }


SEEN = {
    A: ObservedNode(A, NOW, 991_234, True, "avalanchego/1.14.2", "CX"),
    B: ObservedNode(B, NOW, 0, False, "", ""),
    C: ObservedNode(C, NOW, 0, True, "avalanchego/1.13.0", ""),
    OWN: ObservedNode(OWN, NOW, 1_000_000, True, "avalanchego/1.14.3", ""),
}


class Scene(NamedTuple):
    loop: Observing
    store: Store
    upstreams: NodeUpstreams
    clock: PollingClock
    time: list[float]
    lines: io.StringIO

    async def seen(self) -> dict[bytes, ObservedNode]:
        return await ObservedNodes(self.store).of(SEEN, int(self.time[0]))

    def logged(self) -> list[str]:
        return [json.loads(line)["level"].lower() for line in self.lines.getvalue().splitlines()]


@asynccontextmanager
async def scene(folder: Path, *replays: Replay, limit_s: float = LIMIT_S) -> AsyncIterator[Scene]:
    async with AsyncExitStack() as stack:
        for one in replays:
            await stack.enter_async_context(one)
        clock, lines, time = PollingClock(), io.StringIO(), [float(NOW)]
        page = LevelPage.private(["main"])
        page.put("main", "OFF", "INFO")
        log = Log("main", "engine", page, None, lines, as_json=True)
        nodes = [UpstreamNode(Client(one.url, clock=clock, retry=Retry(attempts=2))) for one in replays]
        upstreams = NodeUpstreams(nodes, NetworkIdentity(12345, CHAIN_IDS), log, clock=clock)
        stack.push_async_callback(upstreams.close)
        await upstreams.probe_all()
        store = open_store(folder / "node.sqlite", PACKAGE)
        stack.callback(store.close)
        chain_ids = {letter: CHAIN_IDS[letter] for letter in "XC"}
        loop = Observing(upstreams, store, chain_ids, log, limit_s=limit_s, now=lambda: time[0])
        yield Scene(loop, store, upstreams, clock, time, lines)


def replay() -> Replay:
    made = Replay()
    made.platform = answers()
    return made


def test_what_the_upstream_sees_is_stored_with_its_time_and_forgotten_after_an_hour(tmp_path: Path) -> None:
    async def run() -> None:
        upstream = replay()
        async with scene(tmp_path, upstream) as it:
            assert await it.loop.ask_once()
            assert await it.seen() == SEEN
            it.time[0] = NOW + SHOWN_S
            assert await it.seen() == SEEN
            it.time[0] += 1
            assert await it.seen() == {}
            upstream.platform[VALIDATORS]["validators"] = [{"nodeID": name(B), "uptime": "50"}]
            assert await it.loop.ask_once()
            assert it.store.read("select node_id, time, uptime from observed_node") == [(B, NOW + SHOWN_S + 1, 500_000)]

    asyncio.run(run())


def nonsense(method: str, result: Any) -> dict[str, Any]:
    return {**answers(), method: result}


FAILURES: dict[str, tuple[dict[str, Any], list[Fault]]] = {
    "refusal": ({}, []),
    "not found": (answers(), [Fault(VALIDATORS, FOREVER, status=404)]),
    "busy": (answers(), [Fault(VALIDATORS, FOREVER, status=503)]),
    "no JSON": (answers(), [Fault(VALIDATORS, FOREVER, body=b"[1")]),
    "truncated peers": (answers(), [Fault(PEERS, FOREVER, keep=0.5)]),
    "no answer": (answers(), [Fault(PEERS, FOREVER, hang_s=LIMIT_S)]),
    "no list": (nonsense(VALIDATORS, {"validators": None}), []),
    "uptime of more than all": (nonsense(VALIDATORS, {"validators": [{"nodeID": name(A), "uptime": "100.1"}]}), []),
    "uptime that is none": (nonsense(VALIDATORS, {"validators": [{"nodeID": name(A), "uptime": "NaN"}]}), []),
    "a node that is none": (nonsense(VALIDATORS, {"validators": [{"nodeID": "NodeID-1", "uptime": "1"}]}), []),
    "a long version": (nonsense(PEERS, {"peers": [{"nodeID": name(A), "version": "x" * 101}]}), []),
}


@pytest.mark.parametrize("failure", FAILURES)
def test_a_failure_keeps_what_is_stored_and_leaves_the_upstream_to_the_followers(failure: str, tmp_path: Path) -> None:
    async def run() -> None:
        upstream = replay()
        async with scene(tmp_path, upstream, limit_s=0.2 if failure == "no answer" else LIMIT_S) as it:
            assert await it.loop.ask_once()
            upstream.platform, upstream.faults = FAILURES[failure]
            for _ in range(2):
                it.time[0] += 60
                assert not await it.loop.ask_once()
            assert await it.seen() == SEEN
            assert it.logged() == ["warn"]  # once
            assert it.upstreams.usable() == list(it.upstreams.members)
            assert it.upstreams.failing() == {}
            upstream.platform, upstream.faults = answers(), []
            assert await it.loop.ask_once()
            assert it.logged() == ["warn", "info"]
            assert {one.time for one in (await it.seen()).values()} == {NOW + 120}

    asyncio.run(run())


def test_without_its_info_interface_an_upstream_still_tells_uptimes(tmp_path: Path) -> None:
    async def run() -> None:
        upstream = replay()
        upstream.faults = [Fault(PEERS, FOREVER, status=404)]
        async with scene(tmp_path, upstream) as it:
            assert await it.loop.ask_once()
            assert (await it.seen())[A] == ObservedNode(A, NOW, 991_234, True, "", "")

    asyncio.run(run())


def test_the_next_upstream_is_asked_where_one_fails(tmp_path: Path) -> None:
    async def run() -> None:
        first, second = replay(), replay()
        first.platform = {}
        async with scene(tmp_path, first, second) as it:
            assert await it.loop.ask_once()
            assert await it.seen() == SEEN
            assert it.logged() == []

    asyncio.run(run())


def test_it_asks_once_a_minute_and_sooner_after_a_failure(tmp_path: Path) -> None:
    async def run() -> None:
        upstream = replay()
        upstream.faults = [Fault(VALIDATORS, 2, status=404)]
        async with scene(tmp_path, upstream) as it:
            it.clock.slept.clear()
            task = asyncio.create_task(it.loop.run())
            async with asyncio.timeout(LIMIT_S):
                while len(it.clock.slept) < 4:
                    assert not task.done()
                    await asyncio.sleep(0.001)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            assert it.clock.slept[:4] == [AFTER_FAILURE_S, AFTER_FAILURE_S, EVERY_S, EVERY_S]

    asyncio.run(run())
