"""Writes the rows of blocks, table by table, with the IDs that stand for addresses. Balances are in folding.py.

The store gives each address a small integer ID, in the order in which they first appear on the chain. The rows
themselves are made in the process that decodes (deriving/packing.py).
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import itemgetter
from typing import Any, NamedTuple

from icefall.db.engine import StoreError, Transaction
from icefall.evm.deriving.packing import ADDRESSES, Row
from icefall.evm.encoding import BITS, PER_BLOCK, pack_uint
from icefall.evm.packed import PackedBlock, columns_of
from icefall.evm.standards import load_statements

SQL = load_statements("icefall.evm.storing", "writes.sql")

# A generator that works in pieces of a few milliseconds and yields between them, so that the event loop can run.
Steps = Iterator[None]
BlockIds = Sequence[int | None]  # of the addresses of a block, in their order; the last is None, for no address

_IDS_CACHED = 200_000
_ROWS_PER_STEP = 4096
_BLOCK_BITS = ~(PER_BLOCK - 1)
GROUP_BITS = 2  # lists of a server are found by groups of four blocks
NO_BALANCE = b""  # of a sender, in a transaction that does not have it
_first = itemgetter(0)

# By table: the statement that inserts a row, whose column list is the order of the row's values.
INSERTS = {table: SQL.named(f"put_{table}") for table in ADDRESSES}


class AddressIds:
    """The IDs of addresses, as the writer uses them. Call `clear` after a transaction that did not commit: its new IDs
    do not exist."""

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
        """Read the IDs of a whole batch at once. What has none then is not in the store."""
        ids = self._ids
        unread = [(address,) for address in dict.fromkeys(addresses) if address not in ids]
        ids.update(tx.rows_of_each(SQL.address_ids, unread))

    def intern(self, tx: Transaction, addresses: Iterable[bytes]) -> None:
        """Give an ID to each that has none. They must have been loaded."""
        ids, number = self._ids, self.next_id(tx)
        for address in addresses:
            if address not in ids:
                ids[address] = number
                self._fresh.append((number, address))
                number += 1
        self._next = number

    def write(self, tx: Transaction) -> None:
        """Store the IDs that were given."""
        tx.run_many(SQL.put_address, self._fresh)
        self._fresh = []

    def next_id(self, tx: Transaction) -> int:
        if self._next is None:
            self._next = int(tx.rows(SQL.next_address)[0][0])
        return self._next

    def known(self, address: bytes) -> int | None:
        return self._ids.get(address)

    def trim(self) -> None:
        """Bound the memory, between batches."""
        if len(self._ids) > _IDS_CACHED:
            self._ids.clear()


def put_rows(tx: Transaction, insert: str, rows: Sequence[Row]) -> Steps:
    for at in range(0, len(rows), _ROWS_PER_STEP):
        tx.run_many(insert, rows[at : at + _ROWS_PER_STEP])
        yield


class RowsOnServer(NamedTuple):
    """Rows that a server stores with others: ERC-20 balances with transfers, and native ones by address and block, of
    which those are taken out that go with a transaction."""

    erc20_balances: Sequence[Row]
    native: dict[tuple[int, int], Row]


class BatchRows:
    """The packed rows of a batch, written table by table in the order of their keys: neighbours share pages."""

    def __init__(self) -> None:
        self._blocks: list[tuple[PackedBlock, BlockIds]] = []
        self._tokens: dict[int, tuple[int, int]] = {}  # first block, standards
        self._restarted: dict[int, int] = {}  # tokens deployed anew, by the block
        self._unlogged_changes: dict[int, int] = {}  # how often the storage of a token changed without a log
        self._reread: list[tuple[int, int, int]] = []  # token, first and last token ID
        self.written: dict[str, int] = {}  # rows by table

    def add(self, block: PackedBlock, ids: BlockIds) -> None:
        self._blocks.append((block, ids))
        of: Callable[[int], Any] = ids.__getitem__
        for token, standards in block.standards.items():
            self._add_token(of(token), block.block.number, standards)
        self._reread += [(of(token), first, last) for token, first, last in block.rereads]

    def restart_token(self, token: int, block: int) -> None:
        """Note another contract at the same address: only its own transfers say of which standard it is."""
        self._restarted[token] = block
        first, _ = self._tokens.get(token, (block, 0))
        self._tokens[token] = first, 0

    def is_of_earlier_contract(self, token: int, block: int) -> bool:
        """Tell whether the address was deployed anew after that block."""
        return block < self._restarted.get(token, 0)

    def count_unlogged_change(self, token: int, stored: int) -> int:
        """Count a change of a token's storage without a log, and return how many there are with the `stored` ones."""
        self._unlogged_changes[token] = count = self._unlogged_changes.get(token, stored) + 1
        return count

    def has_token(self, token: int) -> bool:
        return token in self._tokens

    def _add_token(self, token: int, block: int, standard: int) -> None:
        first, standards = self._tokens.get(token, (block, 0))
        self._tokens[token] = first, standards | standard

    def _rows_of(self, table: str) -> list[Row]:
        rows: list[Row] = []
        addresses = ADDRESSES[table]
        for block, ids in self._blocks:
            packed = block.tables.get(table)
            if packed is not None:
                values: list[Iterable[Any]] = list(columns_of(packed))
                for at in addresses:
                    values[at] = map(ids.__getitem__, values[at])
                rows.extend(zip(*values, strict=True))
        return rows

    def _rows_on_server(self, others: RowsOnServer) -> dict[str, list[Row]]:
        """The rows of tables that a server stores in another form."""
        transfers = sorted(self._rows_of("erc20"), key=_first)
        marks, touches = touch_marks(transfers, self._rows_of("touch_of"))
        rows = transfers_with_balances(transfers, others.erc20_balances)
        txs = txs_with_balances(sorted(self._rows_of("tx"), key=_first), others.native)
        grouped = [(address, tx_at >> BITS + GROUP_BITS, tx_at) for address, tx_at in touches]
        return {"touch_of": grouped, "tx": txs, "erc20": [(*row, mark) for row, mark in zip(rows, marks, strict=True)]}

    def write(self, tx: Transaction, others: RowsOnServer | None = None) -> Steps:
        """Write the rows. `others`: those that a server stores with them; None for an embedded store."""
        on_server = {} if others is None else self._rows_on_server(others)
        for table, insert in INSERTS.items():
            if others is not None and not insert.postgres:
                continue
            rows = on_server.pop(table) if table in on_server else self._rows_of(table)
            self.written[table] = len(rows)
            rows.sort(key=_first)  # which is enough: rows of an address were gathered in chain order
            yield from put_rows(tx, insert, rows)
        tx.run_many(SQL.restart_token, [(token,) for token in self._restarted])
        tx.run_many(SQL.put_token, [(token, *seen) for token, seen in sorted(self._tokens.items())])
        tx.run_many(SQL.put_unlogged_changes, [(count, token) for token, count in self._unlogged_changes.items()])
        tx.run_many(SQL.put_standards_since, [(block, token) for token, block in self._restarted.items()])
        ranges = [(token, pack_uint(first), pack_uint(last)) for token, first, last in _merged(self._reread)]
        tx.run_many(SQL.reread_nfts, ranges)


def txs_with_balances(txs: Sequence[Row], native: dict[tuple[int, int], Row]) -> list[Row]:
    """Add the native balance of the sender to transactions in the order of the chain, as a server stores it: the one
    after a block is in the sender's last transaction of the block. Those that are used are taken out of `native`: by
    address and block (address, block, balance, balance before), of which the first of an address has the last."""
    find = native.get
    rows = []
    for row in reversed(txs):
        key = row[2], row[0] >> BITS
        found = find(key)
        if found is None or found[3] is not None:
            rows.append((*row, NO_BALANCE))
        else:
            del native[key]
            rows.append((*row, found[2]))
    rows.reverse()
    return rows


def transfers_with_balances(transfers: Sequence[Row], balances: Iterable[Row]) -> list[Row]:
    """Add the balances of sender and recipient to ERC-20 transfers in the order of the chain, as a server stores them:
    a row more would cost it 28 bytes besides the values, and the key once more in an index. The balance after a block
    is in the last transfer of the block that names the holder, and None in the others."""
    left = {(holder, token, block): balance for holder, token, block, balance in balances}
    take = left.pop
    rows = []
    for row in reversed(transfers):
        block, token, sender, recipient = row[0] >> BITS, row[2], row[3], row[4]
        rows.append((*row, take((sender, token, block), None), take((recipient, token, block), None)))
    if left:
        holder, token, block = next(iter(left))
        raise StoreError(f"block {block}: holder {holder} has another balance of token {token}, but no transfer")
    rows.reverse()
    return rows


def touch_marks(transfers: Iterable[Row], touches: Iterable[Row]) -> tuple[list[int], list[Row]]:
    """Return for each ERC-20 transfer whether it is the first of its transaction that names a touched sender (1) or
    recipient (2), and the touches that no transfer names: the others are marks of transfers on a server."""
    left = dict.fromkeys(touches)
    marks = []
    for log_at, tx_index, _, sender, recipient, *_ in transfers:
        tx_at = log_at & _BLOCK_BITS | tx_index
        mark = 0
        for bit, key in ((1, (sender, tx_at)), (2, (recipient, tx_at))):
            if key in left:
                del left[key]
                mark |= bit
        marks.append(mark)
    return marks, list(left)


def _merged(ranges: list[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    """The ranges without overlaps: a contract may announce the same million changed tokens a thousand times."""
    found: list[tuple[int, int, int]] = []
    for token, first, last in sorted(ranges):
        if found and found[-1][0] == token and first <= found[-1][2]:
            found[-1] = token, found[-1][1], max(last, found[-1][2])
        else:
            found.append((token, first, last))
    return found
