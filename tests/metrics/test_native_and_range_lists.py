"""Lists of addresses by native balances, and by NFTs that were moved as ranges: equal to a naive walk over a random
history, on both engines."""

import asyncio
import random
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from tests.api.made_chain import ID, ZERO_ADDRESS
from tests.evm.nft_range_scene import TOKEN as RANGES
from tests.evm.nft_range_scene import Move, rows_of
from tests.metrics.synthetic import address
from tests.metrics.test_address_lists import BLOCKS, DAY, START, Asked, History, day, query, texts
from tests.postgres.server import new_prefix, server_url

from icefall.compose.stores import Stores
from icefall.errors import BadRequest, Unavailable
from icefall.evm.deriving.packing import packed
from icefall.evm.model import NativeRow
from icefall.evm.packed import ResolvedBlock
from icefall.evm.reading import holdings, native_holdings
from icefall.evm.reading.moved_nfts import NftMove, OwnedSpans
from icefall.evm.storing.store import ChainStore

PEOPLE = [address(number) for number in range(40, 46)]
IDS = 12
WINDOWS = ((0, 0), (1, 2), (0, 7), (3, 5), (6, 6), (9, 9))
TIMES = [("AllTime", all), ("AnyTime", any)]


class NativeHistory(History):
    """Blocks that move ranges and single NFTs of a contract, and change native balances. `native` and `owned_ids` say
    what everyone had after each block; before the first change of PEOPLE[0] it had 7, and of the others nothing."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        chance = random.Random(seed)
        self.native: list[dict[bytes, int]] = [{PEOPLE[0]: 7}]
        self.owned_ids: list[dict[int, bytes]] = [{}]
        self.native_rows: list[tuple[NativeRow, ...]] = [()]
        named = False
        for number in range(1, BLOCKS):
            native, rows = dict(self.native[-1]), []
            for who in chance.sample(PEOPLE, chance.randrange(3)):
                had, has = native.get(who, 0), chance.choice((0, 1, 5, 7, 8, 300, 10**30))
                if has == had:
                    continue
                is_first = not any(one.address == who for each in self.native_rows for one in each)
                rows.append(NativeRow(who, number, has, had if is_first else None))
                native[who] = has
            owners, moves = dict(self.owned_ids[-1]), []
            for _ in range(chance.randrange(3)):
                move = _drawn(chance, owners)
                if move is not None and (move.last is not None or named):
                    moves.append(move)
                    owners |= dict.fromkeys(move.ids, move.to)
                    named = True
            self.native.append(native)
            self.owned_ids.append(owners)
            self.native_rows.append(tuple(rows))
            if moves:
                made = rows_of(number, moves)
                own = self.blocks[number].block
                self.blocks[number] = replace(made, block=replace(made.block, time=own.time))
        assert named

    def rich(self, first: int, end: int, least: int, quantifier: Callable[..., bool]) -> set[bytes]:
        states = self.states(first, end)
        return {one for one in PEOPLE if quantifier(self.native[at].get(one, 0) >= least for at in states)}

    def had_nfts(self, first: int, end: int, quantifier: Callable[..., bool]) -> set[bytes]:
        states = self.states(first, end)
        return {one for one in PEOPLE if quantifier(one in self.owned_ids[at].values() for at in states)}


def _drawn(chance: random.Random, owners: dict[int, bytes]) -> Move | None:
    """A range that is minted or moved, which may overlap others, or a single NFT."""
    to = chance.choice([*PEOPLE, ZERO_ADDRESS])
    first = chance.randrange(IDS)
    if chance.random() < 0.5:
        owner = owners.get(first, ZERO_ADDRESS)
        return Move(owner, to, first) if owner != to else None
    last = chance.randrange(first, IDS)
    owner = owners.get(first, ZERO_ADDRESS)
    return (
        Move(owner, to, first, last)
        if {owners.get(one, ZERO_ADDRESS) for one in range(first, last + 1)} == {owner} and owner != to
        else None
    )


class NativeAsked(Asked):
    async def put(self) -> None:
        assert isinstance(self._history, NativeHistory)
        chain = ChainStore(self._store)
        blocks = zip(self._history.blocks, self._history.native_rows, strict=True)
        await chain.commit([ResolvedBlock(packed(rows), native, ()) for rows, native in blocks])

    async def set_meta(self, **values: str) -> None:
        await ChainStore(self._store).put_meta(values)


@pytest.fixture(params=("sqlite", "postgres"))
def asked(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[NativeAsked, NativeHistory]]:
    (tmp_path / "chains").mkdir()
    url = "" if request.param == "sqlite" else server_url()
    history = NativeHistory(5)
    with closing(Stores(tmp_path, url, new_prefix())) as stores, closing(NativeAsked(stores, history)) as made:
        yield made, history


def native_query(kind: str, **params: Any) -> dict[str, Any]:
    return {"type": kind, "params": {"evmChainId": ID, **params}}


def test_native_balances_equal_a_naive_walk(
    asked: tuple[NativeAsked, NativeHistory], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(native_holdings, "_PIECE", 4)
    monkeypatch.setattr(native_holdings, "_CHANGES_PIECE", 2)
    scene, history = asked

    async def run() -> None:
        await scene.put()
        sizes = set()
        for least in (0, 1, 6, 7, 8, 301):
            now = texts({one for one, held in history.native[-1].items() if held >= max(least, 1)})
            assert await scene.found(native_query("LatestBalance", tokenType="NATIVE", minBalance=str(least))) == now
            for first, last in WINDOWS:
                begin, end = START + first * DAY, START + (last + 1) * DAY
                days = {"firstDate": day(first), "lastDate": day(last), "minBalance": str(least)}
                for name, quantifier in TIMES:
                    expected = texts(history.rich(begin, end, max(least, 1), quantifier))
                    assert await scene.found(native_query(f"{name}NativeBalance", **days)) == expected
                    sizes.add((name, len(expected)))
        assert len(sizes) > 6, "the answers differ"

    asyncio.run(run())


def test_ranges_of_nfts_equal_a_naive_walk(
    asked: tuple[NativeAsked, NativeHistory], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(holdings, "_PIECE", 3)
    scene, history = asked

    async def run() -> None:
        await scene.put()
        sizes = set()
        for first, last in WINDOWS:
            begin, end = START + first * DAY, START + (last + 1) * DAY
            for name, quantifier in TIMES:
                days = {"firstDate": day(first), "lastDate": day(last)}
                expected = texts(history.had_nfts(begin, end, quantifier))
                assert await scene.found(query(f"{name}NftHolders", RANGES, **days)) == expected
                sizes.add((name, len(expected)))
        assert len(sizes) > 3, "the answers differ"

    asyncio.run(run())


@pytest.mark.parametrize("seed", range(20))
def test_spans_of_ids_equal_single_ids(seed: int) -> None:
    """Any transfers, also of IDs that the sender does not have, and several in a block."""
    chance = random.Random(seed)
    moves, block = [], 0
    for _ in range(60):
        block += chance.randrange(3)
        first = chance.randrange(20)
        moves.append(NftMove(block, chance.randrange(1, 5), chance.randrange(1, 5), first, chance.randrange(first, 20)))
    expected: set[tuple[int, int]] = set()  # an owner and a block after which it had some ID
    owners: dict[int, int] = {}
    senders: dict[int, tuple[int, int]] = {}
    by_block = {at: [one for one in moves if one.block == at] for at in range(block + 2)}
    for at, here in by_block.items():
        for one in here:
            for token_id in range(one.first, one.last + 1):
                senders.setdefault(token_id, (one.sender, at))
                owners[token_id] = one.to
        expected |= {(owner, at) for owner in owners.values()}
    expected |= {(sender, at) for sender, until in senders.values() for at in range(until)}

    found: set[tuple[int, int]] = set()

    def note(owner: int, since: int, until: int) -> None:
        found.update((owner, at) for at in range(max(since, 0), until))

    ids = OwnedSpans(note)
    ids.take(moves)
    for owner, since in ids.owners():
        note(owner, since, block + 2)
    assert found == expected


def test_what_is_not_stored_is_refused(
    asked: tuple[NativeAsked, NativeHistory], monkeypatch: pytest.MonkeyPatch
) -> None:
    scene, history = asked
    days: dict[str, Any] = {"firstDate": day(0), "lastDate": day(7), "minBalance": "1"}
    always = native_query("AllTimeNativeBalance", **days)
    first_of = {one.address: one for each in history.native_rows for one in each if one.before is not None}
    unknown = replace(first_of[PEOPLE[1]], before=None)
    history.native_rows[unknown.block] = tuple(
        unknown if one.address == PEOPLE[1] else one for one in history.native_rows[unknown.block]
    )

    async def run() -> None:
        await scene.put()
        with pytest.raises(Unavailable, match="not in the index, and no upstream"):
            await scene.page(native_query("AllTimeNativeBalance", **{**days, "lastDate": day(0), "firstDate": day(0)}))
        for name, text in (("ADDRESSES_MAX", "native balances are not searched"), ("CHANGES_MAX", "more than 1 times")):
            with monkeypatch.context() as patch:
                patch.setattr(native_holdings, name, 1)
                with pytest.raises(BadRequest, match=text):
                    await scene.page(always)
        await scene.set_meta(has_diffs="0")
        with pytest.raises(BadRequest, match="native balances are not indexed on this chain"):
            await scene.page(always)

    asyncio.run(run())
