"""Raw logs and calls from the store are what an upstream answers, whenever they were stored."""

import asyncio
import random
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.awaited import awaited
from tests.evm import filling_crash
from tests.evm.digest import digests
from tests.evm.indexed import ALL_RAW, NO_RAW, InlineBlockDecoder, fill, indexing
from tests.evm.reading_scene import copied, expected, indexed, now
from tests.evm.recordings import CHAINS, EVERY_CHAIN
from tests.evm.test_reorgs import branch
from tests.forked import exit_code_of
from tests.store.opened import open_store, tables_of
from tests.upstream.evm_recording import recorded_blocks
from tests.upstream.evm_replay import EvmFault, EvmReplay
from tests.upstream.evm_scene import upstream_of
from tests.upstream.replay import FOREVER
from tests.upstream.threaded import in_thread

from icefall.db.engine import BlockingReader
from icefall.evm.indexing.decoder import RawChunk
from icefall.evm.indexing.filling import RawFilling
from icefall.evm.indexing.follower import BlockRange
from icefall.evm.model import StoredRaw
from icefall.evm.reading.chain import ChainReader
from icefall.evm.reading.model import PageRange, TxRead
from icefall.evm.reading.raw import LogRead, RawReader
from icefall.evm.storing.raw import SQL, drop_marks, drop_some
from icefall.evm.storing.store import PACKAGE
from icefall.upstream.client import UpstreamFailure
from icefall.upstream.evm.block_parts import FetchedBlock
from icefall.wire.evm.block import decode_receipts
from icefall.wire.evm.decode import decode_tx_calls
from icefall.wire.evm.geth_format import GETH
from icefall.wire.evm.types import EventLog

ENGINES = ("sqlite", "postgres")
RAW_TABLES = ("block", "tx", "log", "call_tree", "meta")


async def marks(path: Path) -> dict[str, int]:
    with tables_of(path) as tables:
        return {name: int(value) for name, value in tables.rows("meta", "name, value")[1] if name.endswith("s_from")}


async def all_txs(reader: BlockingReader) -> list[TxRead]:
    found: list[TxRead] = []
    while True:
        rows, _ = await ChainReader(reader).newest_txs(found[-1].tx_at if found else None, 500, None)
        found += rows
        if not rows:
            return found


async def all_logs(
    reader: RawReader, address: bytes, topics: Sequence[bytes | None], size: int, first: int = 0
) -> list[LogRead]:
    """Page by page, as a client reads them."""
    found: list[LogRead] = []
    before: tuple[int, ...] | None = None
    while True:
        rows, more = await reader.logs_of(address, topics, PageRange(first, None, before), size)
        assert len(rows) <= size
        found += rows
        if more is None:
            return found
        before = (more,)


# -- with the block ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("chain", CHAINS)
def test_logs_and_calls_are_those_of_the_upstream(chain: str) -> None:
    scene = indexed(chain)
    reader = RawReader(scene.reader, None)
    by_contract: dict[bytes, list[EventLog]] = {}
    answers = {}
    for block in recorded_blocks(chain).values():
        traces = msgspec.json.decode(block.calls or b"[]", type=list[dict[str, msgspec.Raw]])
        for receipt, trace in zip(decode_receipts(block.receipts) or (), traces, strict=True):
            answers[receipt.tx_hash] = receipt.logs, decode_tx_calls(bytes(trace["result"]), GETH)
            for log in receipt.logs:
                by_contract.setdefault(log.address, []).append(log)
    txs = now(all_txs(scene.reader))
    assert len(txs) == len(answers) > 100
    for tx in txs:
        logs, calls = answers[tx.location.tx_hash]
        assert events(now(reader.logs_of_tx(tx, None, 1_000))) == [*logs]
        assert now(reader.calls_of_tx(tx)) == calls
    for address, every in by_contract.items():
        some = every[len(every) // 2]
        for topics in ((), some.topics[:1], (None, *some.topics[1:2]), some.topics):
            expected = [log for log in every if fits(log, topics)][::-1]
            assert events(now(all_logs(reader, address, topics, 70))) == expected


def events(logs: Sequence[LogRead]) -> list[EventLog]:
    return [EventLog(log.address, log.topics, log.data, log.log_index) for log in logs]


def fits(log: EventLog, topics: Sequence[bytes | None]) -> bool:
    return len(log.topics) >= len(topics) and all(
        wanted in (None, topic) for wanted, topic in zip(topics, log.topics, strict=False)
    )


def test_a_range_of_blocks_page_by_page() -> None:
    scene = indexed("geth-1")
    reader = RawReader(scene.reader, None)
    tx = next(tx for tx in now(all_txs(scene.reader)) if now(reader.logs_of_tx(tx, None, 1)))
    (log,) = now(reader.logs_of_tx(tx, None, 1))
    every = now(all_logs(reader, log.address, (), 1_000))
    first = every[len(every) // 2].location.block_number
    expected = [one for one in every if one.location.block_number >= first]
    assert 0 < len(expected) < len(every)
    assert now(all_logs(reader, log.address, (), 3, first)) == expected


def test_a_block_that_was_replaced_is_not_answered_for() -> None:
    scene = indexed("geth-1")
    tx = next(tx for tx in now(all_txs(scene.reader)) if tx.location.block_number > 5)
    other = tx.location.__class__(tx.location.block_number, b"\7" * 32, tx.location.time, tx.location.tx_hash)
    gone = tx.__class__(other, *(getattr(tx, name) for name in tx.__struct_fields__[1:]))
    reader = RawReader(scene.reader, None)
    with pytest.raises(Exception, match="was replaced"):
        now(reader.logs_of_tx(gone, None, 5))
    with pytest.raises(Exception, match="was replaced"):
        now(reader.calls_of_tx(gone))


@awaited
async def test_a_reorganisation_replaces_them(tmp_path: Path) -> None:
    reorganised, clean = tmp_path / "chain.sqlite", tmp_path / "clean.sqlite"
    first = max(branch("before")) - 40
    replay = EvmReplay("anvil-1", branch("before"))
    async with indexing(reorganised, replay, blocks=BlockRange(first, replay.head)) as it:
        await it.follower.run()
        before = await marks(reorganised)
        with_logs = digests(reorganised)["log"]
        replay.blocks = branch("after")
        ancestor = min(n for n, block in branch("after").items() if block.hash != branch("before")[n].hash) - 1
        await it.store.roll_back(ancestor)
        await it.follower.run()
    async with indexing(clean, replay, blocks=BlockRange(first, replay.head)) as it:
        await it.follower.run()
    now_stored, wanted = digests(reorganised), digests(clean)
    assert [now_stored[table] for table in RAW_TABLES] == [wanted[table] for table in RAW_TABLES]
    assert now_stored["log"] != with_logs
    assert await marks(reorganised) == before == {"logs_from": first, "calls_from": first}


@awaited
async def test_with_both_settings_off_nothing_is_stored(tmp_path: Path) -> None:
    path, replay = tmp_path / "chain.sqlite", EvmReplay("berlin-1")
    async with indexing(path, replay, kept=NO_RAW) as it:
        await it.follower.run()
    with tables_of(path) as tables:
        assert tables.rows("log")[1] == tables.rows("call_tree")[1] == []
    assert await marks(path) == {}


@pytest.mark.parametrize("parts", ["logs", "calls"])
@awaited
async def test_one_of_the_two(parts: str, tmp_path: Path) -> None:
    path, replay = tmp_path / "chain.sqlite", EvmReplay("berlin-1")
    async with indexing(path, replay, kept=StoredRaw(**{parts: True})) as it:
        await it.follower.run()
        await fill(path, it.upstream, StoredRaw(**{parts: True}))
    assert await marks(path) == {f"{parts}_from": 0}
    with tables_of(path) as tables:
        assert bool(tables.rows("log")[1]) == (parts == "logs")
        assert bool(tables.rows("call_tree")[1]) == (parts == "calls")


@awaited
async def test_an_upstream_without_tracers_leaves_no_mark_for_calls(tmp_path: Path) -> None:
    path, replay = tmp_path / "chain.sqlite", EvmReplay("geth-1")
    replay.off |= {"debug_traceBlockByNumber"}
    async with indexing(path, replay, blocks=BlockRange(last=40)) as it:
        await it.follower.run()
        assert await marks(path) == {"logs_from": 0}
        with pytest.raises(UpstreamFailure):
            await fill(path, it.upstream)
        assert await marks(path) == {"logs_from": 0}


# -- in the background -------------------------------------------------------------------------------------------------


FILLED = CHAINS if EVERY_CHAIN else ("cchain-1", "geth-1")


@pytest.mark.parametrize(("chain", "engine"), [*((chain, "sqlite") for chain in FILLED), ("berlin-1", "postgres")])
def test_blocks_stored_without_get_theirs_later(chain: str, engine: str, tmp_path: Path) -> None:
    """The newest third is stored with them: the settings were changed in between."""
    path, replay = tmp_path / f"chain.{engine}", EvmReplay(chain)
    border = replay.head * 2 // 3

    async def run() -> None:
        async with indexing(path, replay, blocks=BlockRange(last=border), kept=NO_RAW) as it:
            await it.follower.run()
        async with indexing(path, replay) as it:
            await it.follower.run()
            assert await marks(path) == {"logs_from": border + 1, "calls_from": border + 1}
            assert await fill(path, it.upstream) > 2
            assert await fill(path, it.upstream) == 1  # looks once whether there is anything to delete

    asyncio.run(run())
    assert digests(path) == expected(chain)
    assert now(marks(path)) == {"logs_from": 0, "calls_from": 0}


@awaited
async def test_each_kind_goes_on_where_it_is(tmp_path: Path) -> None:
    path, replay = tmp_path / "chain.sqlite", EvmReplay("berlin-1")
    async with indexing(path, replay, kept=NO_RAW) as it:
        await it.follower.run()
        store = open_store(path, PACKAGE)
        logs = RawFilling(store, it.upstream, InlineBlockDecoder(), StoredRaw(logs=True), verify_roots=True)
        for _ in range(2):
            assert await logs.step()
        store.close()
        assert set(await marks(path)) == {"logs_from"}
        await fill(path, it.upstream)
    assert digests(path) == expected("berlin-1")


class _Interrupted(InlineBlockDecoder):
    """Something happens while the blocks of a step are being decoded."""

    def __init__(self, store: Any, ancestor: int) -> None:
        super().__init__()
        self._store, self._ancestor = store, ancestor

    async def raw(self, blocks: Sequence[FetchedBlock], *, roots: bool, raw: StoredRaw) -> RawChunk:
        await self._store.roll_back(self._ancestor)
        return await super().raw(blocks, roots=roots, raw=raw)


@awaited
async def test_a_rollback_in_the_middle_of_a_step(tmp_path: Path) -> None:
    path, replay = tmp_path / "chain.sqlite", EvmReplay("berlin-1")
    async with indexing(path, replay, kept=NO_RAW) as it:
        await it.follower.run()
        store = open_store(path, PACKAGE)
        step = RawFilling(store, it.upstream, _Interrupted(it.store, 60), ALL_RAW, verify_roots=True).step
        assert await step()  # looks for what is to be deleted
        assert await step()
        assert await marks(path) == {}
        store.close()
        assert await fill(path, it.upstream) > 1
        assert await marks(path) == {"logs_from": 0, "calls_from": 0}
    async with indexing(path, replay) as it:
        await it.follower.run()
    assert digests(path) == expected("berlin-1")


@awaited
async def test_a_rollback_below_the_mark(tmp_path: Path) -> None:
    path, replay = tmp_path / "chain.sqlite", EvmReplay("berlin-1")
    async with indexing(path, replay, blocks=BlockRange(last=80), kept=NO_RAW) as it:
        await it.follower.run()
    async with indexing(path, replay, blocks=BlockRange(last=100)) as it:
        await it.follower.run()
        await it.store.roll_back(60)
        assert await marks(path) == {"logs_from": 61, "calls_from": 61}
    async with indexing(path, replay) as it:
        await it.follower.run()
        await fill(path, it.upstream)
    assert digests(path) == expected("berlin-1")


@awaited
async def test_an_upstream_that_changes_logs_is_not_believed(tmp_path: Path) -> None:
    path, replay = tmp_path / "chain.sqlite", EvmReplay("berlin-1")
    async with indexing(path, replay, kept=NO_RAW) as it:
        await it.follower.run()
        change = EvmFault(
            "eth_getBlockReceipts",
            times=FOREVER,
            change=lambda raw: raw.replace(b'"topics":["0xddf', b'"topics":["0xdda'),
        )
        replay.evm_faults = [change]
        with pytest.raises(UpstreamFailure):
            await fill(path, it.upstream)
        with tables_of(path) as tables:
            topics = {topic for (topic,) in tables.rows("log", "topic0")[1]}
        assert not any(topic.startswith(b"\xdd\xa0") for topic in topics)
        replay.evm_faults = []
        await it.upstream.probe_all()
        await fill(path, it.upstream)
    assert digests(path) == expected("berlin-1")


@awaited
async def test_switched_off_and_on_again(tmp_path: Path) -> None:
    expected("berlin-1")
    path = copied("berlin-1", tmp_path / "chain.sqlite")
    store = open_store(path, PACKAGE)
    await store.write(partial(drop_marks, kinds=StoredRaw(calls=True)))
    while await store.write(partial(drop_some, kinds=StoredRaw(calls=True))):
        pass
    assert await marks(path) == {"calls_from": 0}
    assert store.read(SQL.hashes, {"first": 0, "end": 1})
    with tables_of(path) as tables:
        assert tables.rows("log")[1] == []
        assert tables.rows("call_tree")[1]
    store.close()
    async with upstream_of(EvmReplay("berlin-1")) as upstream:
        await fill(path, upstream)
    assert digests(path) == expected("berlin-1")


@pytest.mark.parametrize("engine", ENGINES)
def test_kill_9_while_filling(engine: str, tmp_path: Path) -> None:
    path, source, kills = tmp_path / f"chain.{engine}", random.Random(17), 0
    with in_thread(EvmReplay("berlin-1")) as replay:

        async def without() -> None:
            async with indexing(path, EvmReplay("berlin-1"), kept=NO_RAW) as it:
                await it.follower.run()

        asyncio.run(without())
        while exit_code_of(filling_crash.run, path, replay.url, replay.chain_id, source.randint(20, 120)) != 0:
            kills += 1
    assert kills >= 2
    assert digests(path) == expected("berlin-1")
