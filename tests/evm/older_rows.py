"""Transactions as releases up to migration 0009 stored them."""

from pathlib import Path

from tests.evm.digest import plain_inputs
from tests.store.opened import open_store, tables_of

from icefall.db.engine import Row, Transaction
from icefall.evm.amounts import pack_uint, unpack_uints
from icefall.evm.call_data import pack_data
from icefall.evm.storing.store import PACKAGE


def older_amounts(packed: bytes) -> bytes:
    return b"".join([b"\xff" if number is None else pack_uint(number) for number in unpack_uints(packed)])


def write_older_form(path: Path) -> int:
    """Into the rows of a store. Returns how many had been smaller."""
    with tables_of(path) as tables:
        _, stored = tables.rows("tx", "tx_at, input, amounts")
        inputs = plain_inputs(tables, [(at, packed) for at, packed, _ in stored])
        older: list[Row] = [
            (pack_data(plain), older_amounts(amounts), at)
            for plain, (at, _, amounts) in zip(inputs, stored, strict=True)
        ]
    store = open_store(path, PACKAGE)

    def write(tx: Transaction) -> None:
        tx.run_many("update tx set input = ?, amounts = ? where tx_at = ?", older)

    store.write_here(write)
    store.close()
    return sum(len(plain) > len(packed) for (plain, _, _), (_, packed, _) in zip(older, stored, strict=True))
