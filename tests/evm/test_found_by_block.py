"""What is found through its block: transactions by their hash, and transfers of a token among those of others."""

import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.awaited import awaited
from tests.evm.indexed import open_store
from tests.evm.reading_scene import paged
from tests.metrics.synthetic import address, assembled, native
from tests.store.opened import open_reader

from icefall.evm.deriving.packing import packed
from icefall.evm.model import BlockRows, Erc20TransferRow, NativeTx
from icefall.evm.packed import ResolvedBlock
from icefall.evm.reading.chain import ChainReader
from icefall.evm.reading.model import PageRange
from icefall.evm.reading.transfers import TransferReader
from icefall.evm.storing.store import ChainStore

SAME = b"\x01\x02\x03\x04"  # how the hashes begin
TOKENS, ANN, BEN = [address(number) for number in range(4)], address(10), address(11)


@contextmanager
def stored(path: Path) -> Iterator[ChainStore]:
    store = open_store(path)
    try:
        yield store
    finally:
        store.close()


async def put(store: ChainStore, blocks: Sequence[BlockRows]) -> None:
    await store.commit([ResolvedBlock(packed(rows), (), ()) for rows in blocks])


def block(number: int, txs: Sequence[NativeTx], transfers: Sequence[Erc20TransferRow] = ()) -> BlockRows:
    return assembled(number, 1_700_000_000 + number, tuple(txs), tuple(transfers))


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
@awaited
async def test_hashes_may_begin_alike_in_one_block_and_in_several(tmp_path: Path, engine: str) -> None:
    path = tmp_path / f"chain.{engine}"

    def tx(number: int, index: int) -> NativeTx:
        return replace(native(number, index, ANN, BEN, 1), tx_hash=SAME + bytes([number, index]) + bytes(26))

    with stored(path) as store:
        await put(store, [block(number, [tx(number, index) for index in range(3)]) for number in range(3)])
        assert store.read("select count(*) from tx_by_hash") == [(3,)]
        reader = open_reader(path)
        chain = ChainReader(reader)

        async def found(number: int, index: int) -> int | None:
            full = await chain.tx(tx(number, index).tx_hash)
            return full.tx.tx_at if full else None

        for number in range(3):
            assert [await found(number, index) for index in range(4)] == [number << 24 | at for at in range(3)] + [None]
        await store.roll_back(1)
        assert [await found(number, 2) for number in range(3)] == [2, 1 << 24 | 2, None]
        assert store.read("select count(*) from tx_by_hash") == [(2,)]
        reader.close()


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
@awaited
async def test_transfers_of_a_token_among_those_of_others(tmp_path: Path, engine: str) -> None:
    path, draw = tmp_path / f"chain.{engine}", random.Random(7)
    moves: dict[bytes, list[int]] = {token: [] for token in TOKENS}
    blocks = []
    for number in range(40):
        logs = sorted(draw.sample(range(30), draw.randrange(12)))  # logs between are of no transfer
        transfers = []
        for log in logs:
            token = draw.choices(TOKENS, [20, 5, 1, 0])[0]
            transfers.append(Erc20TransferRow(0, log, token, ANN, BEN, 1))
            moves[token].append(number << 24 | log)
        blocks.append(block(number, [native(number, 0, ANN, BEN, 1)], transfers))
    assert [len(found) for found in moves.values()][:3] > [100, 30, 3]
    with stored(path) as store:
        await put(store, blocks)
        reader = open_reader(path)
        transfers_of = TransferReader(reader)
        for token, expected in moves.items():
            of_token = partial(transfers_of.in_token, token)
            for size in (1, 3, 100):
                assert [row.cursor[0] for row in paged(of_token, PageRange(), size)] == expected[::-1]
            rows = paged(of_token, PageRange(10, 20), 4)
            assert [row.cursor[0] for row in rows] == [at for at in expected[::-1] if 10 <= at >> 24 < 20]
        reader.close()
