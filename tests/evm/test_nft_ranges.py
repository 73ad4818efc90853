"""Ranges of NFTs (ERC-2309): owners, lists and counts equal a plain model of the logs, on both engines, through
rollbacks, and a range of 2**255 IDs costs as much as one of two."""

import asyncio
import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.awaited import awaited
from tests.evm.digest import digests
from tests.evm.indexed import open_store
from tests.evm.nft_range_scene import ANN, BEN, MINTER, TOKEN, Move, block_of, minted, rows_of
from tests.store.opened import open_reader, tables_of

from icefall.evm.auditing.due import SQL as AUDIT
from icefall.evm.encoding import pack_uint
from icefall.evm.enriching.nft_loop import reindex_nft
from icefall.evm.model import ERC721, ZERO_ADDRESS
from icefall.evm.packed import ResolvedBlock
from icefall.evm.reading.balances import BalanceReader
from icefall.evm.reading.directory import lists_of
from icefall.evm.reading.holders import HolderReader
from icefall.evm.reading.model import PageRange
from icefall.evm.reading.tokens import TokenReader
from icefall.evm.reading.transfers import TransferReader
from icefall.evm.storing.holders import count_all
from icefall.evm.storing.store import ChainStore
from icefall.upstream.evm.errors import Reverted
from icefall.upstream.evm.state import At, ContractCall
from icefall.wire.evm.events import CONSECUTIVE_TRANSFER, Erc721Moved, Erc721RangeMoved, MalformedEvent, decode_log
from icefall.wire.evm.types import EventLog

HUGE = 2**255
ENGINES = pytest.mark.parametrize("engine", ["sqlite", "postgres"])
PARTIES = (MINTER, ANN, BEN)

# IDs 1 to 50 are minted; then single ones move, come back, stay where they are, and are burned.
HISTORY: tuple[tuple[Move, ...], ...] = (
    (minted(1, 50), minted(60, 61, BEN)),
    (Move(MINTER, ANN, 7),),
    (Move(MINTER, ANN, 1), Move(ANN, BEN, 7)),
    (minted(100, 120), Move(MINTER, ANN, 120), Move(ANN, MINTER, 120)),
    (Move(ANN, MINTER, 1), Move(MINTER, MINTER, 9), Move(BEN, ZERO_ADDRESS, 61)),
    (Move(MINTER, BEN, 50), Move(MINTER, ANN, 49)),
)


def owners_of(history: Sequence[Sequence[Move]]) -> dict[int, bytes]:
    found: dict[int, bytes] = {}
    for move in (move for moves in history for move in moves):
        found |= dict.fromkeys(move.ids, move.to)
    return found


def blocks_of(history: Sequence[Sequence[Move]]) -> list[ResolvedBlock]:
    return [block_of(number, moves) for number, moves in enumerate(history, 1)]


@contextmanager
def opened(path: Path) -> Iterator[ChainStore]:
    store = open_store(path)
    try:
        yield store
    finally:
        store.close()


async def trust(store: ChainStore) -> None:
    """Leave the mark of an audit of all blocks that found nothing."""
    await store.write(lambda tx: tx.run(AUDIT.put_checkpoint, {"block": 1_000, "credit": 0, "dropped_from": None}))


class StateOf:
    """The owners that a contract returns."""

    def __init__(self, owners: dict[int, bytes]) -> None:
        self._owners = owners

    async def balances(self, addresses: Sequence[bytes], at: At) -> list[int]:
        raise AssertionError

    async def answers(self, calls: Sequence[ContractCall], at: At) -> list[bytes | Reverted]:
        ids = [int.from_bytes(call.data[4:], "big") for call in calls]
        return [self._owners[one].rjust(32, b"\0") if one in self._owners else Reverted("no owner") for one in ids]


async def held_by(reader: BalanceReader, owner: bytes, size: int) -> list[int]:
    """All pages."""
    found: list[int] = []
    after = None
    while True:
        page, after = await reader.nfts(owner, after, size)
        found += [one.token_id for one in page]
        if after is None:
            return found


async def compare(path: Path, expected: dict[int, bytes], state: StateOf | None = None) -> None:
    """What readers return is what the model owns."""
    stored = open_reader(path)
    try:
        balances, tokens, holders = BalanceReader(stored, state), TokenReader(stored), HolderReader(stored)
        ids = sorted(expected)
        unknown = [one for one in (0, 55, 99_999) if one not in expected]
        owners = await balances.owners([(TOKEN, one) for one in [*ids, *unknown]])
        known = [None if expected[one] == ZERO_ADDRESS else expected[one] for one in ids]
        assert owners == [*known, *[None for _ in unknown]]
        for owner in PARTIES:
            for size in (1, 7, 100):
                assert await held_by(balances, owner, size) == [one for one in ids if expected[one] == owner]
        assert [one.token_id for one in await tokens.nfts(TOKEN, b"", 1_000)] == ids
        assert [one.token_id for one in await tokens.nfts(TOKEN, pack_uint(8), 5)] == [n for n in ids if n > 8][:5]
        assert all([(await tokens.nft(TOKEN, one)) is not None for one in ids])
        assert await tokens.nft(TOKEN, 99_999) is None
        counted = {row.address: row.balance for row in await holders.by_balance(TOKEN, ERC721, None, 10)}
        counts = {owner: sum(one == owner for one in expected.values()) for owner in PARTIES}
        assert counted == {owner: count for owner, count in counts.items() if count}
        totals = await holders.totals(TOKEN)
        assert sum(counts.values()) == (totals[0].tokens if totals else 0)
    finally:
        stored.close()


# -- logs ------------------------------------------------------------------------------------------------------------


def test_a_log_of_a_range_is_decoded_where_its_shape_is_right() -> None:
    good = minted(3, HUGE).log(0)
    assert decode_log(good) == Erc721RangeMoved(ZERO_ADDRESS, MINTER, 3, HUGE)
    assert decode_log(minted(3, 3).log(0)) == Erc721Moved(ZERO_ADDRESS, MINTER, 3)
    malformed = MalformedEvent("ConsecutiveTransfer")
    assert decode_log(minted(4, 3).log(0)) == malformed
    assert decode_log(EventLog(TOKEN, good.topics[:3], good.data, 0)) == malformed
    assert decode_log(EventLog(TOKEN, (CONSECUTIVE_TRANSFER, *good.topics[1:]), good.data * 2, 0)) == malformed


def test_ranges_of_a_block_that_name_an_id_twice_are_known() -> None:
    moves = [minted(1, 5), minted(6, 9), minted(9, 12), Move(MINTER, ANN, 20), minted(15, 25), minted(30, 2**256 - 1)]
    found = rows_of(1, moves).nft_ranges
    assert [(one.first_id, one.is_known) for one in found] == [
        (2, False), (7, False), (10, True), (16, True), (31, False),
    ]  # fmt: skip


# -- owners, lists and counts ------------------------------------------------------------------------------------------


@ENGINES
@pytest.mark.parametrize("at_once", [True, False])
def test_every_owner_and_list_after_every_block(engine: str, at_once: bool, tmp_path: Path) -> None:
    path = tmp_path / f"chain.{engine}"

    async def run() -> None:
        with opened(path) as store:
            await trust(store)
            blocks = blocks_of(HISTORY)
            if at_once:
                await store.commit(blocks)
            for number, block in enumerate(blocks, 1):
                if not at_once:
                    await store.commit([block])
                    await count_all(store._store)
                    await compare(path, owners_of(HISTORY[:number]))
            await count_all(store._store)
            await compare(path, owners_of(HISTORY))
            assert store.read("select count(*) from nft_range") == [(3,)]

    asyncio.run(run())


@ENGINES
def test_blocks_rolled_back_leave_nothing_behind(engine: str, tmp_path: Path) -> None:
    """Roll back to every block, and index other blocks on top."""
    whole = blocks_of(HISTORY)

    async def run() -> None:
        for ancestor in range(1, len(HISTORY)):
            path, clean = tmp_path / f"{ancestor}.{engine}", tmp_path / f"clean{ancestor}.{engine}"
            with opened(path) as store, opened(clean) as fresh:
                await store.commit(whole)
                await count_all(store._store)
                await store.roll_back(ancestor)
                await fresh.commit(whole[:ancestor])
                await count_all(fresh._store)
            assert digests(path) == digests(clean), ancestor
            with opened(path) as store:
                await trust(store)
                other = (*HISTORY[:ancestor], (minted(200, 230, ANN), Move(ANN, BEN, 230)))
                await store.commit([block_of(ancestor + 1, other[-1], branch=1)])
                await count_all(store._store)
                await compare(path, owners_of(other))

    asyncio.run(run())


@pytest.mark.parametrize("seed", range(4))
def test_random_histories_with_rollbacks(seed: int, tmp_path: Path) -> None:
    draw, path = random.Random(seed), tmp_path / "chain.sqlite"
    history: list[list[Move]] = []
    branches: list[int] = []

    def next_block() -> list[Move]:
        owned, moves = owners_of(history), list[Move]()
        for _ in range(draw.randrange(4)):
            if draw.random() < 0.4 or not owned:
                first = max(owned, default=0) + draw.randrange(1, 5)
                moves.append(minted(first, first + draw.randrange(1, 9), draw.choice(PARTIES)))
            else:
                token_id = draw.choice(list(owned))
                if owned[token_id] == ZERO_ADDRESS:
                    continue
                moves.append(Move(owned[token_id], draw.choice((*PARTIES, ZERO_ADDRESS)), token_id))
            owned |= dict.fromkeys(moves[-1].ids, moves[-1].to)
        return moves

    async def run() -> None:
        with opened(path) as store:
            await trust(store)
            for step in range(25):
                if history and draw.random() < 0.3:
                    ancestor = draw.randrange(1, len(history) + 1)
                    del history[ancestor:], branches[ancestor:]
                    await store.roll_back(ancestor)
                    await trust(store)
                batch = []
                for _ in range(draw.randrange(1, 4)):
                    parent = branches[-1] if branches else 0
                    moves = next_block()
                    history.append(moves)
                    branches.append(step + 1)
                    batch.append(block_of(len(history), moves, step + 1, parent))
                await store.commit(batch)
                if draw.random() < 0.5:
                    await count_all(store._store)
            await count_all(store._store)
        await compare(path, owners_of(history))

    asyncio.run(run())


# -- cost ------------------------------------------------------------------------------------------------------------


@ENGINES
@awaited
async def test_a_range_of_half_of_all_ids_is_one_row(engine: str, tmp_path: Path) -> None:
    path = tmp_path / f"chain.{engine}"
    with opened(path) as store:
        await trust(store)
        await store.commit([block_of(1, [minted(5, 5 + HUGE)]), block_of(2, [Move(MINTER, ANN, HUGE)])])
        await count_all(store._store)
    with tables_of(path) as tables:
        counts = {name: len(tables.rows(name)[1]) for name in ("erc721", "nft_range", "nft_owner", "nft_held", "nft")}
    assert counts == {"erc721": 2, "nft_range": 1, "nft_owner": 2, "nft_held": 2, "nft": 2}
    stored = open_reader(path)
    try:
        balances, holders = BalanceReader(stored, None), HolderReader(stored)
        page, after = await balances.nfts(MINTER, None, 3)
        assert [one.token_id for one in page] == [5, 6, 7]
        page, after = await balances.nfts(MINTER, (TOKEN, HUGE - 2), 3)
        assert [one.token_id for one in page] == [HUGE - 1, HUGE + 1, HUGE + 2]
        page, after = await balances.nfts(MINTER, (TOKEN, HUGE + 3), 3)
        assert ([one.token_id for one in page], after) == ([HUGE + 4, HUGE + 5], None)
        counted = {row.address: row.balance for row in await holders.by_balance(TOKEN, ERC721, None, 10)}
        assert counted == {MINTER: HUGE, ANN: 1}
        lists = lists_of(stored)
        for rows in (
            await lists.transfers_of(ERC721, MINTER, PageRange(), 10),
            await TransferReader(stored).in_token(TOKEN, PageRange(), 10),
        ):
            assert [(row.token_id, row.value) for row in rows] == [(HUGE, 0), (5, 5 + HUGE)]
    finally:
        stored.close()


@awaited
async def test_many_moved_ids_of_a_range_make_pages_short_and_no_page_long(tmp_path: Path) -> None:
    path = tmp_path / "chain.sqlite"
    with opened(path) as store:
        await trust(store)
        gone = [Move(MINTER, ANN, one) for one in range(1, 4_000)]
        await store.commit([block_of(1, [minted(0, HUGE)]), block_of(2, gone)])
    stored = open_reader(path)
    try:
        page, after = await BalanceReader(stored, None).nfts(MINTER, (TOKEN, 0), 10)
        assert (page, after is not None) == ([], True)
        page, _ = await BalanceReader(stored, None).nfts(MINTER, after, 10)
        assert [one.token_id for one in page] == list(range(4_000, 4_010))
    finally:
        stored.close()


# -- ranges that are not new -----------------------------------------------------------------------------------------


@ENGINES
@pytest.mark.parametrize("at_once", [True, False])
@pytest.mark.parametrize(
    "second", [Move(MINTER, BEN, 10, 20), minted(45, 70, BEN), Move(ANN, BEN, 3, 4)], ids=["part", "beyond", "single"]
)
@awaited
async def test_a_range_of_known_ids_is_read_from_state(
    engine: str, at_once: bool, second: Move, tmp_path: Path
) -> None:
    path, history = tmp_path / f"chain.{engine}", ((minted(1, 50),), (Move(MINTER, ANN, 3),), (second,))
    with opened(path) as store:
        await trust(store)
        blocks = blocks_of(history)
        for batch in [blocks] if at_once else [[block] for block in blocks]:
            await store.commit(batch)
        assert store.read("select count(*) from token where untrusted_since is not null") == [(1,)]
    expected, stored = owners_of(history), open_reader(path)
    try:
        balances = BalanceReader(stored, StateOf(expected))
        ids = sorted(expected)
        assert await balances.owners([(TOKEN, one) for one in ids]) == [expected[one] for one in ids]
        for owner in PARTIES:
            assert await held_by(balances, owner, 100) == [one for one in ids if expected[one] == owner]
    finally:
        stored.close()


# -- metadata --------------------------------------------------------------------------------------------------------


@ENGINES
@awaited
async def test_the_metadata_of_an_id_of_a_range_is_read_when_it_is_asked_for(engine: str, tmp_path: Path) -> None:
    with opened(tmp_path / f"chain.{engine}") as store:
        await store.commit([block_of(0, []), *blocks_of([[minted(1, 50)]])])
        for token_id in (20, 51):
            await reindex_nft(store._store, TOKEN, pack_uint(token_id))
        due = "select token_id, first_block from nft where retry_at = 0 order by token_id"
        assert store.read(due) == [(pack_uint(1), 1), (pack_uint(20), 1)]
        await store.roll_back(0)
        assert store.read(due) == []
