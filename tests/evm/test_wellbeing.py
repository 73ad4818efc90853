"""What is said of a chain when its indexer goes well, waits, stops, or is gone."""

from pathlib import Path

import pytest
from tests.awaited import awaited
from tests.evm.indexed import Log, indexing
from tests.upstream.evm_replay import EvmReplay

from icefall.db.engine import StoreError
from icefall.evm.following.follower import FollowerStatus
from icefall.evm.following.health import SILENT_S, ChainHealth, wellbeing
from icefall.evm.following.status import decode_status, encode_status, status_of
from icefall.evm.reading.directory import ChainInfo, TokenInfo, open_chain
from icefall.run.indexer import _tell

NOW = 1_800_000_000.0
INFO = ChainInfo("7", "seven", TokenInfo("n", "s", 18))


async def told(directory: Path, standing: FollowerStatus | None, now: float = NOW) -> ChainHealth:
    replay = EvmReplay("berlin-1")
    replay.shown = 3
    (directory / "chains").mkdir(exist_ok=True)
    async with indexing(directory / "chains" / "7.sqlite", replay) as it:
        await it.follower.run()
        if standing is not None:
            status = status_of(standing, {"blocks": 40}, ["no call traces"], NOW, 1000.0)
            await it.store.put_facts({"status": encode_status(status)})
    return await wellbeing(open_chain(INFO, directory).chain, now)


@awaited
async def test_a_chain_in_step(tmp_path: Path) -> None:
    standing = FollowerStatus(head=3, tip=3, audited_to=3, target=3, heard_at=999.0, blocks=4)
    found = await told(tmp_path, standing)
    assert found.synced
    assert found.complaint == ""
    assert found.told["lastIndexedBlock"] == 3
    assert found.told["degraded"] == ["no call traces"]
    assert found.counts["blocks"] == 44  # across restarts


@pytest.mark.parametrize(
    ("standing", "now", "says"),
    [
        (FollowerStatus(head=3, tip=3, audited_to=3, target=3, heard_at=999.0), NOW + SILENT_S + 1, "last heard of"),
        (FollowerStatus(head=3, tip=3, audited_to=3, target=3, problem="no answer"), NOW, "waits: no answer"),
        (FollowerStatus(head=3, problem="another chain", stopped=True), NOW, "stopped: another chain"),
        (None, NOW, "not said anything"),
        (
            FollowerStatus(head=3, tip=3, audited_to=3, target=3, heard_at=900.0),
            NOW,
            "nothing was heard of its upstream",
        ),
        (FollowerStatus(), NOW, "has not answered yet"),
    ],
)
@awaited
async def test_a_chain_that_is_not_followed(
    standing: FollowerStatus | None, now: float, says: str, tmp_path: Path
) -> None:
    found = await told(tmp_path, standing, now)
    assert says in found.complaint
    assert not found.synced


@awaited
async def test_a_chain_far_behind_is_well_but_not_synced(tmp_path: Path) -> None:
    found = await told(tmp_path, FollowerStatus(head=900, tip=3, audited_to=3, target=900, heard_at=999.0))
    assert found.complaint == ""
    assert not found.synced


@awaited
async def test_a_chain_without_a_file(tmp_path: Path) -> None:
    found = await wellbeing(open_chain(INFO, tmp_path).chain, NOW)
    assert "not indexed yet" in found.complaint


def test_a_status_reads_back() -> None:
    status = status_of(FollowerStatus(head=5, problem="x"), {}, [], NOW, 0.0)
    assert decode_status(encode_status(status)) == status


@awaited
async def test_a_last_word_that_cannot_be_stored_does_not_spoil_the_end() -> None:
    """On a full disk too, whoever is told to stop has stopped as told."""

    class Full:
        log = Log()

        async def tell(self, *, last: bool) -> None:
            raise StoreError("the store failed: database or disk is full")

    await _tell(Full(), last=True)  # type: ignore[arg-type]
    assert [line[0] for line in Full.log.lines] == ["the status cannot be stored"]
