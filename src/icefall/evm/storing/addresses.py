"""Interned addresses: the store gives each a small integer ID, in the order in which they first appear on the chain."""

from collections.abc import Iterable

from icefall.db.engine import Transaction
from icefall.db.statements import load

SQL = load("icefall.evm.storing", "writes.sql")
_KEPT = 200_000


class AddressIds:
    """IDs as the writer uses them. Call `clear` after a transaction that did not commit: its new IDs do not exist."""

    def __init__(self) -> None:
        self._ids: dict[bytes, int] = {}
        self._next: int | None = None

    def clear(self) -> None:
        self._ids.clear()
        self._next = None

    def intern(self, tx: Transaction, addresses: Iterable[bytes]) -> None:
        """Makes sure that each has an ID, which `of` then returns without a query, until the next batch."""
        ids = self._ids
        fresh = []
        for address in addresses:
            if address not in ids:
                known = tx.rows(SQL.address_id, (address,))
                if known:
                    ids[address] = known[0][0]
                else:
                    ids[address] = number = self.next_id(tx)
                    self._next = number + 1
                    fresh.append((number, address))
        if fresh:
            tx.run_many(SQL.put_address, fresh)

    def next_id(self, tx: Transaction) -> int:
        if self._next is None:
            self._next = int(tx.rows(SQL.next_address)[0][0])
        return self._next

    def of(self, address: bytes) -> int:
        return self._ids[address]

    def trim(self) -> None:
        """Between batches: keeps memory bounded."""
        if len(self._ids) > _KEPT:
            self._ids.clear()
