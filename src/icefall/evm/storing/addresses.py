"""Interned addresses: the store gives each a small integer ID, in the order in which they first appear on the chain."""

from collections.abc import Callable, Iterable

from icefall.db.engine import Transaction
from icefall.db.statements import load

SQL = load("icefall.evm.storing", "writes.sql")
_KEPT = 200_000


class AddressIds:
    """IDs as the writer uses them. Call `clear` after a transaction that did not commit: its new IDs do not exist."""

    def __init__(self) -> None:
        self._ids: dict[bytes, int] = {}
        self._next: int | None = None
        self._fresh: list[tuple[int, bytes]] = []
        self.of: Callable[[bytes], int] = self._ids.__getitem__  # no method of ours: it is called 20 times per transfer

    def clear(self) -> None:
        self._ids.clear()
        self._fresh.clear()
        self._next = None

    def load(self, tx: Transaction, addresses: Iterable[bytes]) -> None:
        """Reads the IDs of a whole batch at once. What has none then is not in the store."""
        ids = self._ids
        unread = [(address,) for address in dict.fromkeys(addresses) if address not in ids]
        ids.update(tx.rows_of_each(SQL.address_ids, unread))

    def intern(self, tx: Transaction, addresses: Iterable[bytes]) -> None:
        """Gives an ID to each that has none. They must have been loaded."""
        ids, number = self._ids, self.next_id(tx)
        for address in addresses:
            if address not in ids:
                ids[address] = number
                self._fresh.append((number, address))
                number += 1
        self._next = number

    def write(self, tx: Transaction) -> None:
        """Stores the IDs that were given."""
        tx.run_many(SQL.put_address, self._fresh)
        self._fresh = []

    def next_id(self, tx: Transaction) -> int:
        if self._next is None:
            self._next = int(tx.rows(SQL.next_address)[0][0])
        return self._next

    def known(self, address: bytes) -> int | None:
        return self._ids.get(address)

    def trim(self) -> None:
        """Between batches: keeps memory bounded."""
        if len(self._ids) > _KEPT:
            self._ids.clear()
