"""Webhooks that start at a block that was stored before: the same events as if they had been there, each once, whatever
is repeated."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.webhooks.scene import ID, Scene, Sends, blocks, busiest, transactions_of

from icefall.db.engine import Transaction
from icefall.evm.indexing.decoder import RawChunk
from icefall.evm.model import NO_RAW, BlockRows, RawBlock
from icefall.webhooks import filling
from icefall.webhooks.filling import WebhookFilling
from icefall.webhooks.model import INACTIVE
from icefall.webhooks.outbox import FillSource

FIRST = 3
WHOLE = 600  # blocks of the recorded chain


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    made = Scene(tmp_path)
    yield made
    made.close()


class Again:
    """An upstream, and the decoder of its blocks, that has the recorded ones."""

    def __init__(self, rows: Sequence[BlockRows]) -> None:
        self.rows = {one.block.number: one for one in rows}
        self.fetched: list[int] = []

    async def fetch_without_diffs(self, numbers: range, *, calls: bool) -> AsyncIterator[int]:
        for number in numbers:
            self.fetched.append(number)
            yield number

    async def raw(self, fetched: Sequence[int], **_: Any) -> RawChunk:
        rows = [self.rows[number] for number in fetched]
        return RawChunk([RawBlock(one.block.number, one.block.block_hash, one.raw) for one in rows], None)


class Forgetful:
    """A source whose process is killed before it notes what was matched."""

    def __init__(self, source: FillSource) -> None:
        self.unfilled = source.unfilled

    async def put_filled(self, webhook: str, block: int) -> None:
        raise ConnectionError


def filling_of(scene: Scene, again: Again, source: Any = None) -> WebhookFilling:
    return WebhookFilling(
        ID,
        scene.store._store,
        source or scene.registry,
        again,  # type: ignore[arg-type]
        again,  # type: ignore[arg-type]
        verify_roots=True,
        clock=lambda: scene.now,
    )


def test_a_webhook_gets_the_events_of_blocks_that_were_stored_before(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(filling, "STEP_BLOCKS", 4)
    rows, watched, sends = blocks()[:WHOLE], busiest(), Sends()
    again = Again(rows)

    async def run() -> None:
        await scene.put(rows[:-1])
        await scene.webhook(watched, start_block=FIRST, include_logs=1)
        await scene.put(rows[-1:])
        with pytest.raises(ConnectionError):
            await filling_of(scene, again, Forgetful(scene.registry)).step()
        await scene.delivery(sends).drain()
        fills = filling_of(scene, again)
        while await fills.step():
            await scene.delivery(sends).drain()
        assert not await filling_of(scene, again).step()

    asyncio.run(run())
    wanted = [one for one in rows if one.block.number >= FIRST]
    expected = set(hashes_in(watched, wanted, rows))
    assert sorted(sends.hashes()) == sorted(expected)
    assert len({one["messageId"] for one in sends.bodies()}) == len(expected)
    assert set(again.fetched) == {one.block.number for one in wanted[:-1]}
    assert any("logs" in one["event"] for one in sends.bodies())


def hashes_in(watched: bytes, of: Sequence[BlockRows], rows: Sequence[BlockRows]) -> list[str]:
    """The transactions of some of the blocks that an address takes part in."""
    own = {f"0x{tx.tx_hash.hex()}" for block in of for tx in block.txs}
    return [one for one in transactions_of(watched, rows) if one in own]


@pytest.mark.parametrize("decoded_before", [0, 1, 3])
def test_a_webhook_starts_where_no_block_follows_yet(decoded_before: int, scene: Scene) -> None:
    """Blocks that were decoded before the webhook was known may still be stored after it has started: they come without
    logs, and are matched later too."""
    rows, watched, sends = blocks()[:WHOLE], busiest(), Sends()
    half = len(rows) // 2
    without_logs = [
        msgspec.structs.replace(one, raw=NO_RAW) if at < decoded_before else one for at, one in enumerate(rows[half:])
    ]

    async def fill() -> None:
        fills = filling_of(scene, Again(rows))
        while await fills.step():
            pass
        await scene.delivery(sends).drain()

    def expected(until: int) -> list[str]:
        return hashes_in(watched, rows[FIRST:until], rows)

    async def run() -> None:
        await scene.put(rows[:half])
        later = await scene.webhook(watched, number=2, start_block=half)
        await scene.webhook(watched, start_block=FIRST, include_logs=1)
        await scene.outbox.start_older(scene.store.tip)
        await fill()
        assert sorted(sends.hashes()) == sorted(expected(half)), "all of them, and no block has followed"
        await scene.registry.change(later.id, scene.now, status=INACTIVE)
        await scene.put(without_logs[:2])
        await scene.put(without_logs[2:])
        await fill()

    asyncio.run(run())
    assert sorted(sends.hashes()) == sorted(expected(len(rows)))
    assert len({one["messageId"] for one in sends.bodies()}) == len(sends.sent)


def test_the_filling_waits_for_blocks_that_replace_others(scene: Scene) -> None:
    """The blocks that are left to match were rolled back: nothing is fetched until they are stored again."""
    rows, again = blocks(), Again(blocks())

    async def run() -> None:
        await scene.put(rows[:10])
        await scene.webhook(busiest(), start_block=FIRST)
        await scene.outbox.start_older(scene.store.tip)
        await scene.store.roll_back(FIRST - 1)
        assert not await filling_of(scene, again).step()
        assert again.fetched == []
        await scene.put(rows[FIRST:6])
        while await filling_of(scene, again).step():
            pass
        found = await scene.registry.unfilled(ID)
        assert found is not None
        assert (found.first, found.end) == (6, 10)

    asyncio.run(run())


def test_the_ids_are_those_of_a_webhook_that_was_there_all_the_time(scene: Scene, tmp_path: Path) -> None:
    rows, watched = blocks()[:WHOLE], busiest()
    early, late = Sends(), Sends()
    other = Scene(tmp_path / "other")

    async def run() -> None:
        await scene.put(rows[:-1])
        await scene.webhook(watched, start_block=0)
        await scene.put(rows[-1:])
        fills = filling_of(scene, Again(rows))
        while await fills.step():
            pass
        await scene.delivery(late).drain()
        await other.webhook(watched, start_block=0)
        await other.put(rows)
        await other.delivery(early).drain()

    try:
        asyncio.run(run())
    finally:
        other.close()
    assert {body for _, body, _ in early.sent} == {body for _, body, _ in late.sent}
    assert len(early.sent) == len(late.sent) > 5


def test_a_block_that_is_not_the_stored_one_adds_nothing(scene: Scene) -> None:
    rows = blocks()
    again = Again(rows)

    async def run() -> None:
        await scene.put(rows[:5])
        await scene.webhook(busiest(), start_block=0)
        await scene.put(rows[5:6])
        again.rows[1] = again.rows[2]
        assert await filling_of(scene, again).step()
        found = await scene.registry.unfilled(ID)
        assert found is not None
        assert found.first == 0

    asyncio.run(run())
    assert scene.store._store.read("select count(*) from webhook_outbox where tx_at < 1000")[0][0] == 0


def test_an_inactive_webhook_is_not_matched(scene: Scene) -> None:
    rows = blocks()

    async def run() -> None:
        await scene.put(rows[:5])
        made = await scene.webhook(busiest(), start_block=0)
        await scene.put(rows[5:6])
        assert await scene.registry.unfilled(ID) is not None
        await scene.registry.change(made.id, scene.now, status=INACTIVE)
        assert await scene.registry.unfilled(ID) is None

    asyncio.run(run())


class Counted:
    """A transaction that counts the calls that may be round trips to a server."""

    def __init__(self, tx: Transaction) -> None:
        self._tx = tx
        self.calls = 0

    def rows(self, *given: Any) -> list[Any]:
        self.calls += 1
        return self._tx.rows(*given)

    def rows_of_each(self, *given: Any) -> list[Any]:
        self.calls += 1
        return self._tx.rows_of_each(*given)


def test_addresses_that_the_chain_does_not_know_cost_no_round_trip_each(scene: Scene) -> None:
    """The indexer stores nothing meanwhile: 100,000 of them took two minutes."""
    unknown = [(2**100 + number).to_bytes(20, "big") for number in range(500)]

    def touched(tx: Transaction, addresses: Sequence[bytes]) -> tuple[int, dict[int, set[int]]]:
        counted = Counted(tx)
        found = filling._touched(counted, addresses, 0, len(blocks()))  # type: ignore[arg-type]
        return counted.calls, found

    async def run() -> None:
        await scene.put(blocks())
        one = await scene.store._store.write(lambda tx: touched(tx, [busiest()]))
        assert sum(map(len, one[1].values())) > 20
        assert await scene.store._store.write(lambda tx: touched(tx, [busiest(), *unknown])) == one

    asyncio.run(run())
