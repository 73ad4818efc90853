"""Rows as releases up to migration 0009 stored them."""

import struct
from pathlib import Path

from tests.evm.digest import plain_inputs
from tests.store.opened import open_store, tables_of

from icefall.db.engine import Row, Transaction
from icefall.evm.encoding import CALL_TYPES, REPEATS_TRANSFER, pack_data, pack_uint, selector_of, unpack_uints
from icefall.evm.storing.rollback import unpack_touched
from icefall.evm.storing.store import PACKAGE


def older_amounts(packed: bytes) -> bytes:
    return b"".join([b"\xff" if number is None else pack_uint(number) for number in unpack_uints(packed)])


def older_touched(packed: bytes) -> bytes:
    touched = unpack_touched(packed)
    flat = [number for pair in touched.holders_named for number in pair]
    lists = [touched.native, touched.code, touched.storage_changed_unlogged, flat]
    numbers = [*map(len, lists), *(number for one in lists for number in one)]
    later = touched.storage_changed_unlogged_again, touched.code_changed
    if any(later):
        numbers += [number for one in later for number in (len(one), *one)]
    return struct.pack(f"<{len(numbers)}I", *numbers) if packed else b""


def write_older_form(path: Path) -> int:
    """Into the rows of a store. Returns in how many transactions call data had been left out."""
    with tables_of(path) as tables:
        _, stored = tables.rows("tx", "tx_at, input, amounts, kind, selector")
        inputs = plain_inputs(tables, [row[:2] for row in stored])
        older: list[Row] = []
        for plain, (at, _, amounts, kind, selector) in zip(inputs, stored, strict=True):
            plain_kind = kind & ~3 | CALL_TYPES.index(CALL_TYPES[kind & 3])
            older.append((pack_data(plain), older_amounts(amounts), plain_kind, selector_of(kind, selector), at))
        journal = [(older_touched(touched), number) for number, touched in tables.rows("block", "number, touched")[1]]
    store = open_store(path, PACKAGE)

    def write(tx: Transaction) -> None:
        tx.run_many("update tx set input = ?, amounts = ?, kind = ?, selector = ? where tx_at = ?", older)
        tx.run_many("update block set touched = ? where number = ?", journal)

    store.write_here(write)
    store.close()
    return sum(packed.startswith(REPEATS_TRANSFER) for _, packed, *_ in stored)
