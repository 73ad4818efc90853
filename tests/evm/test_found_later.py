"""What a later block finds out about an earlier one is rolled back with the earlier one, in any order of rollbacks."""

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest
from tests.awaited import awaited
from tests.evm.indexed import open_store
from tests.metrics.synthetic import address, assembled, native

from icefall.evm.deriving.packing import packed
from icefall.evm.encoding import unpack_uint
from icefall.evm.model import NativeRow
from icefall.evm.packed import ResolvedBlock
from icefall.evm.storing.store import ChainStore

SENDER, X = address(1), address(2)
Code = tuple[tuple[bytes, bool], ...]


def block(
    number: int, branch: int = 0, parent: int = 0, rows: Sequence[NativeRow] = (), earlier_code: Code = ()
) -> ResolvedBlock:
    txs = (native(number, 0, SENDER, SENDER, 1, branch),)
    made = assembled(number, 1_700_000_000 + number, txs, branch=branch, parent_branch=parent)
    return ResolvedBlock(packed(made), tuple(rows), (), earlier_code)


def balances_of_x(store: ChainStore) -> list[tuple[int, int]]:
    """Its stored balances, each with the block from which on it counts."""
    rows = store.read("select block, balance from native_balance where address = ? order by block", (store.id_of(X),))
    return [(number, unpack_uint(balance)) for number, balance in rows]


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
@pytest.mark.parametrize("at_once", [True, False])
@awaited
async def test_a_balance_that_is_found_later_is_rolled_back_with_the_block_it_changed_at(
    tmp_path: Path, engine: str, at_once: bool
) -> None:
    with closing(open_store(tmp_path / f"chain.{engine}")) as store:
        found = [NativeRow(X, 132, 5000, None), NativeRow(X, 134, 4000, None)]
        blocks = [
            block(130),
            block(131, rows=[NativeRow(X, 131, 100, 0)]),
            block(132),
            block(133),
            block(134, rows=found),
        ]
        for batch in [blocks] if at_once else [[one] for one in blocks]:
            await store.commit(batch)
        assert balances_of_x(store) == [(131, 100), (132, 5000), (134, 4000)]
        await store.roll_back(133)
        assert balances_of_x(store) == [(131, 100), (132, 5000)]
        await store.commit([block(134, branch=1)])
        await store.roll_back(131)
        assert balances_of_x(store) == [(131, 100)]
        await store.commit([block(132, branch=2)])
        await store.roll_back(130)
        assert store.id_of(X) is None


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
@awaited
async def test_code_that_was_read_as_of_the_block_before_does_not_outlive_it(tmp_path: Path, engine: str) -> None:
    """Block 3 needs the code of X as of block 2. On another branch X is created at block 2."""
    with closing(open_store(tmp_path / f"chain.{engine}")) as store:
        paid = [NativeRow(X, 1, 7, 0)]  # X is known before
        await store.commit([block(1, rows=paid), block(2), block(3, earlier_code=((X, False),)), block(4)])
        assert store.has_code(X) is False
        await store.roll_back(2)
        await store.roll_back(1)
        assert store.has_code(X) is None
