"""The health of a chain whose indexer is synced, waits, has stopped or no longer runs."""

from pathlib import Path

import pytest
from tests.awaited import awaited
from tests.evm.indexed import Log, indexing
from tests.upstream.evm_replay import EvmReplay

from icefall.compose.indexer import store_status
from icefall.compose.stores import Stores
from icefall.db.engine import StoreError
from icefall.evm.health import SILENT_S, ChainHealth, chain_health
from icefall.evm.indexing.follower import FollowerStatus
from icefall.evm.reading.directory import ChainInfo, EvmChain, TokenInfo
from icefall.evm.status import decode_status, encode_status, status_of

NOW = 1_800_000_000.0
INFO = ChainInfo("7", "seven", TokenInfo("n", "s", 18))


async def stored_health(directory: Path, status: FollowerStatus | None, now: float = NOW) -> ChainHealth:
    replay = EvmReplay("berlin-1")
    replay.shown = 3
    (directory / "chains").mkdir(exist_ok=True)
    async with indexing(directory / "chains" / "7.sqlite", replay) as it:
        await it.follower.run()
        if status is not None:
            stored = status_of(status, {"blocks": 40}, ["no call traces"], NOW, 1000.0)
            await it.store.put_meta({"status": encode_status(stored)})
    return await chain_health(EvmChain(INFO, Stores(directory).chain_reader(INFO.id)).blocks, now)


@awaited
async def test_a_synced_chain(tmp_path: Path) -> None:
    status = FollowerStatus(head=3, tip=3, target=3, upstream_seen_at=999.0, blocks=4)
    found = await stored_health(tmp_path, status)
    assert found.synced
    assert found.problem == ""
    assert found.details["lastIndexedBlock"] == 3
    assert found.details["degraded"] == ["no call traces"]
    assert found.counts["blocks"] == 44  # across restarts


@pytest.mark.parametrize(
    ("status", "now", "problem"),
    [
        (
            FollowerStatus(head=3, tip=3, target=3, upstream_seen_at=999.0),
            NOW + SILENT_S + 1,
            "last reported",
        ),
        (FollowerStatus(head=3, tip=3, target=3, problem="no answer"), NOW, "retrying: no answer"),
        (FollowerStatus(head=3, problem="another chain", stopped=True), NOW, "stopped: another chain"),
        (None, NOW, "not reported a status"),
        (
            FollowerStatus(head=3, tip=3, target=3, upstream_seen_at=900.0),
            NOW,
            "its upstream has not answered for",
        ),
        (FollowerStatus(), NOW, "has not answered yet"),
    ],
)
@awaited
async def test_a_chain_that_is_not_followed(
    status: FollowerStatus | None, now: float, problem: str, tmp_path: Path
) -> None:
    found = await stored_health(tmp_path, status, now)
    assert problem in found.problem
    assert not found.synced


@awaited
async def test_a_chain_far_behind_has_no_problem_but_is_not_synced(tmp_path: Path) -> None:
    found = await stored_health(tmp_path, FollowerStatus(head=900, tip=3, target=900, upstream_seen_at=999.0))
    assert found.problem == ""
    assert not found.synced


@awaited
async def test_a_chain_without_blocks_is_not_up(tmp_path: Path) -> None:
    (tmp_path / "chains").mkdir()
    status = FollowerStatus(head=900, target=900, upstream_seen_at=999.0)
    async with indexing(tmp_path / "chains" / "7.sqlite", EvmReplay("berlin-1")) as it:
        await it.store.put_meta({"status": encode_status(status_of(status, {}, [], NOW, 1000.0))})
    found = await chain_health(EvmChain(INFO, Stores(tmp_path).chain_reader(INFO.id)).blocks, NOW)
    assert found.problem == "no block is indexed yet"
    assert not found.is_available


@awaited
async def test_a_chain_without_a_store(tmp_path: Path) -> None:
    found = await chain_health(EvmChain(INFO, Stores(tmp_path).chain_reader(INFO.id)).blocks, NOW)
    assert "not indexed yet" in found.problem


def test_a_new_indexer_knows_when_the_upstream_answered_last() -> None:
    """A restart does not make a chain unhealthy before its upstream had time to answer."""
    before = status_of(FollowerStatus(head=3, tip=3, target=3, upstream_seen_at=999.0), {}, [], NOW, 1000.0)
    started = status_of(FollowerStatus(), {}, [], NOW + 5, 0.0, previous=before)
    assert started.upstream_seen_at == before.upstream_seen_at == NOW - 1


def test_a_status_reads_back() -> None:
    status = status_of(FollowerStatus(head=5, problem="x"), {}, [], NOW, 0.0)
    assert decode_status(encode_status(status)) == status


@awaited
async def test_a_status_that_cannot_be_stored_does_not_fail_the_shutdown() -> None:
    class Full:
        log = Log()

        async def store_status(self, *, last: bool) -> None:
            raise StoreError("the store failed: database or disk is full")

    await store_status(Full(), last=True)  # type: ignore[arg-type]
    assert [line[0] for line in Full.log.lines] == ["the status cannot be stored"]
