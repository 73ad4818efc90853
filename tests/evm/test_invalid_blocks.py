"""A block that cannot be proven: those before it are stored, and the chain goes on once an upstream proves it."""

import asyncio
import re
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.awaited import awaited
from tests.evm.digest import digests
from tests.evm.indexed import Indexing, indexing
from tests.evm.test_follow_chain import CHAIN, Digests, shown, until
from tests.upstream.evm_recording import recorded_blocks
from tests.upstream.evm_replay import EvmFault, EvmReplay
from tests.upstream.evm_scene import RecordingLog, slept
from tests.upstream.replay import FOREVER

from icefall.evm.indexing.batches import BATCH_BLOCKS
from icefall.evm.indexing.follower import PAUSE_S, BlockRange

BAD, LAST = 60, 80
BLOCK, RECEIPTS, TRACE = "eth_getBlockByNumber", "eth_getBlockReceipts", "debug_traceBlockByNumber"
SETTING = "--verify-roots=false, or verify_roots = false in its [[chain]]"


class Tampering(NamedTuple):
    """`found` is in the message; `by_root`: only the check of roots finds it."""

    method: str
    pattern: bytes
    becomes: bytes
    found: str
    by_root: bool = False

    @property
    def fault(self) -> EvmFault:
        return EvmFault(self.method, number=BAD, times=FOREVER, change=self.change)

    def change(self, raw: bytes) -> bytes:
        changed, count = re.subn(self.pattern, self.becomes, raw, count=1)
        assert count or self.method == BLOCK, "nothing to change"  # a block is also fetched without transactions
        return changed


TAMPERINGS = {
    "a status": Tampering(
        RECEIPTS, rb'"status":"0x1"', rb'"status":"0x0"', "its receipts do not give its receiptsRoot", True
    ),
    "an amount": Tampering(
        BLOCK, rb'"value":"0x[0-9a-f]+"', rb'"value":"0x77"', "its transactions do not give its transactionsRoot", True
    ),
    "a header": Tampering(BLOCK, rb'"stateRoot":"0x..', rb'"stateRoot":"0x77', "its header hashes to"),
    "a hash": Tampering(BLOCK, rb'"hash":"0x..', rb'"hash":"0x77', ""),
    "used gas": Tampering(RECEIPTS, rb'"gasUsed":"0x[0-9a-f]+"', rb'"gasUsed":"0x7"', "gas adds up to"),
    "a trace": Tampering(TRACE, rb'"value":"0x[0-9a-f]+"', rb'"value":"0x7"', "is of another transaction"),
    "a frame without a type": Tampering(TRACE, rb'"type":"CALL"', rb'"kind":"CALL"', "missing required field `type`"),
    "half a diff": Tampering(TRACE, rb'"post":', rb'"past":', "missing required field `post`"),
    "no hex digits": Tampering(RECEIPTS, rb'"status":"0x1"', rb'"status":"0xg"', "expected"),
}


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory) -> Digests:
    async def run() -> Digests:
        path = tmp_path_factory.mktemp("clean") / "chain.sqlite"
        async with indexing(path, shown(EvmReplay(CHAIN), LAST), audited=False) as it:
            await it.follower.run()
        return digests(path)

    return asyncio.run(run())


def tampered(name: str) -> EvmReplay:
    replay = shown(EvmReplay(CHAIN), LAST)
    replay.evm_faults = [TAMPERINGS[name].fault]
    return replay


@pytest.mark.parametrize("name", TAMPERINGS)
@awaited
async def test_blocks_before_it_are_stored_and_it_is_fetched_until_it_is_valid(
    name: str, clean: Digests, tmp_path: Path
) -> None:
    assert BATCH_BLOCKS > LAST, "it is in the middle of a batch"
    replay, tampering = tampered(name), TAMPERINGS[name]
    async with indexing(tmp_path / "chain.sqlite", replay, roots=True, audited=False) as it:
        status = it.follower.status
        await until(it.follower, lambda: status.tip == BAD - 1 and bool(status.problem))
        assert not status.synced
        assert not status.stopped
        assert f"block {BAD}" in status.problem
        assert tampering.found in status.problem
        assert (SETTING in status.problem) == tampering.by_root, "it names the setting where that helps"
        assert it.upstream.pool.disabled() == {}
        replay.evm_faults = []
        await it.follower.run()
        assert (status.synced, status.problem) == (True, "")
        assert digests(tmp_path / "chain.sqlite") == clean


@pytest.mark.parametrize("name", TAMPERINGS)
@awaited
async def test_it_is_taken_from_another_upstream(name: str, clean: Digests, tmp_path: Path) -> None:
    forging, sound = tampered(name), shown(EvmReplay(CHAIN), LAST)
    async with indexing(tmp_path / "chain.sqlite", forging, sound, roots=True, audited=False) as it:
        problems = await _run_and_collect_problems(it)
        assert problems == set(), "another upstream was asked at once"
        assert digests(tmp_path / "chain.sqlite") == clean
        assert isinstance(it.upstream._log, RecordingLog)
        failed = [one["upstream"] for text, one in it.upstream._log.lines if text == "upstream failed, backing off"]
        assert failed == [forging.url]


async def _run_and_collect_problems(it: Indexing) -> set[str]:
    running = asyncio.create_task(it.follower.run())
    problems = set()
    while not running.done():
        problems.add(it.follower.status.problem)
        await asyncio.sleep(0)
    running.result()
    return problems - {""}


@awaited
async def test_the_first_of_two_upstreams_proves_it_later(clean: Digests, tmp_path: Path) -> None:
    first, second = tampered("a status"), tampered("an amount")
    async with indexing(tmp_path / "chain.sqlite", first, second, roots=True, audited=False) as it:
        status = it.follower.status
        await until(it.follower, lambda: status.tip == BAD - 1 and bool(status.problem))
        first.evm_faults = []
        await it.follower.run()
        assert digests(tmp_path / "chain.sqlite") == clean


@awaited
async def test_pauses_between_attempts_grow(tmp_path: Path) -> None:
    replay = tampered("a status")
    async with indexing(tmp_path / "chain.sqlite", replay, roots=True, blocks=BlockRange(), audited=False) as it:

        def paused() -> list[float]:
            return [seconds for seconds in slept(it.upstream) if seconds in _pauses()]

        running = asyncio.create_task(it.follower.run())
        try:
            while not replay.asked(RECEIPTS) or PAUSE_S[1] not in paused():
                await asyncio.sleep(0)
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
        assert paused() == _pauses()
        warnings = [fields["reason"] for message, fields in it.log.lines if message == "indexing paused, retrying"]
        assert len(warnings) == 1, "a problem that stays is logged once"


def _pauses() -> list[float]:
    found = [PAUSE_S[0]]
    while found[-1] < PAUSE_S[1]:
        found.append(min(2 * found[-1], PAUSE_S[1]))
    return found


@awaited
async def test_without_the_check_of_roots_it_is_stored(tmp_path: Path) -> None:
    async with indexing(tmp_path / "chain.sqlite", tampered("a status"), roots=False, audited=False) as it:
        await it.follower.run()
        assert it.follower.status.synced


@awaited
async def test_an_upstream_that_contradicts_itself_causes_no_rollback(tmp_path: Path) -> None:
    """Its block is valid but of another branch, while by its own account the stored blocks are still its chain."""
    stretch, branch = (recorded_blocks("anvil-1", f"reorg1_{when}_blocks") for when in ("before", "after"))
    turn = max(stretch)
    replay = EvmReplay("anvil-1", {n: b for n, b in recorded_blocks("anvil-1").items() if n < min(stretch)} | stretch)
    replay.evm_faults = [
        EvmFault(BLOCK, number=turn, result=branch[turn].block, times=FOREVER),
        EvmFault(RECEIPTS, number=turn, result=branch[turn].receipts, times=FOREVER),
    ]
    async with indexing(
        tmp_path / "chain.sqlite", replay, blocks=BlockRange(first=turn - 20), roots=True, audited=False
    ) as it:
        status = it.follower.status
        await until(it.follower, lambda: status.tip == turn - 1 and bool(status.problem))
        assert f"block {turn}: its parent" in status.problem
        replay.evm_faults = []
        await until(it.follower, lambda: status.synced)
        assert (status.tip, status.reorgs) == (turn, 0)
