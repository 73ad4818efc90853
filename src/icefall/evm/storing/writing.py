"""The rows of blocks, table by table. Balances and ownership are in folding.py.

`TableRows` makes them, in the process that decodes (packing.py); `BatchRows` writes those of a batch.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import itemgetter
from typing import Any

from icefall.db.engine import Transaction
from icefall.db.statements import load
from icefall.evm.encoding import BITS, PackedUints, pack_input, pack_kind, pack_uint
from icefall.evm.model import (
    ERC20,
    ERC721,
    ERC1155,
    BlockRows,
    Erc20Delta,
    Erc20TransferRow,
    Erc721TransferRow,
    Erc1155Delta,
    Erc1155TransferRow,
)
from icefall.evm.packed import PackedBlock, columns_of

SQL = load("icefall.evm.storing", "writes.sql")

_ROWS_PER_STEP = 4096
HASH_PREFIX = 4  # bytes of a transaction's hash by which its block is found

_first = itemgetter(0)
Row = tuple[Any, ...]
Ids = Callable[[bytes], int]

# By table: the statement that inserts a row, whose column list is the order of the row's values.
INSERTS = {
    "tx": SQL.put_tx,
    "tx_by_hash": SQL.put_tx_by_hash,
    "native_of": SQL.put_native_of,
    "touch_of": SQL.put_touch_of,
    "erc20": SQL.put_erc20,
    "erc20_in": SQL.put_erc20_in,
    "erc20_of": SQL.put_erc20_of,
    "erc721": SQL.put_erc721,
    "erc721_of": SQL.put_erc721_of,
    "erc1155": SQL.put_erc1155,
    "erc1155_of": SQL.put_erc1155_of,
    "nft": SQL.put_nft,
    "internal": SQL.put_internal,
    "internal_of": SQL.put_internal_of,
    "deployment": SQL.put_deployment,
    "deployed_by": SQL.put_deployed_by,
    "message": SQL.put_message,
}
# By table: which values of a row are addresses.
ADDRESSES = {
    "tx": (2, 3),
    "native_of": (0,),
    "touch_of": (0,),
    "erc20": (2, 3, 4),
    "erc20_in": (0,),
    "erc20_of": (0,),
    "erc721": (2, 3, 4),
    "erc721_of": (0,),
    "erc1155": (3, 4, 5),
    "erc1155_of": (0,),
    "nft": (0,),
    "internal": (3, 4),
    "internal_of": (0,),
    "deployment": (0, 3),
    "deployed_by": (0,),
}


def addresses_in(rows: BlockRows) -> Iterable[bytes]:
    """Every address in the rows of a block, in a fixed order."""
    seen: dict[bytes, None] = {}
    for tx in rows.txs:
        seen[tx.sender] = seen[tx.to] = None
    moves: tuple[Erc20TransferRow | Erc721TransferRow | Erc1155TransferRow, ...] = (
        *rows.erc20_transfers,
        *rows.erc721_transfers,
        *rows.erc1155_transfers,
    )
    for move in moves:
        seen[move.token] = seen[move.sender] = seen[move.to] = None
    for call in rows.internals:
        seen[call.sender] = seen[call.to] = None
    for made in rows.deployments:
        seen[made.address] = seen[made.creator] = None
    changes: tuple[Erc20Delta | Erc1155Delta, ...] = (*rows.erc20_deltas, *rows.erc1155_deltas)
    for held in changes:
        seen[held.token] = seen[held.holder] = None
    for nft in rows.nft_owners:
        seen[nft.token] = seen[nft.owner] = seen[nft.owner_before] = None
    for change in rows.metadata_changes:
        seen[change.token] = None
    seen.pop(b"", None)
    return seen


class TableRows:
    """Rows gathered over blocks. `ids`: of their addresses."""

    def __init__(self, ids: Ids) -> None:
        self._ids = ids
        self._packed = PackedUints()
        self._rows: dict[str, list[Row]] = {table: [] for table in INSERTS}
        self.standards: dict[int, int] = {}  # by token, as bits

    def of_table(self, table: str) -> list[Row]:
        return self._rows[table]

    def add(self, rows: BlockRows) -> None:
        base = rows.block.number << BITS
        self._add_txs(rows, base)
        self._add_erc20(rows, base)
        self._add_erc721(rows, base)
        self._add_erc1155(rows, base)
        self._add_internals(rows, base)
        self._add_deployments(rows, base)
        self._rows["message"].extend(
            (base | one.tx_index, one.message_id, one.peer_blockchain_id, one.is_source) for one in rows.messages
        )

    def _add_txs(self, rows: BlockRows, base: int) -> None:
        ids, txs, direct, packed = self._ids, self._rows["tx"], self._rows["native_of"], self._packed
        parties = []
        prefixes: dict[bytes, None] = {}  # of hashes, each once
        transfers = {move.tx_index: move for move in reversed(rows.erc20_transfers)}  # the first one of each
        for tx in rows.txs:
            at, sender, to = base | tx.tx_index, ids(tx.sender), ids(tx.to)
            kind, selector = pack_kind(tx)
            txs.append(
                (
                    at,
                    tx.tx_hash,
                    sender,
                    to,
                    kind,
                    packed[tx.value]
                    + packed[tx.nonce]
                    + packed[tx.gas_limit]
                    + packed[tx.gas_used]
                    + packed[tx.gas_price]
                    + packed[tx.max_fee]
                    + packed[tx.max_priority_fee],
                    selector,
                    pack_input(tx.input[len(tx.selector) :], transfers.get(tx.tx_index)),
                )
            )
            prefixes[tx.tx_hash[:HASH_PREFIX]] = None
            direct.append((sender, at))
            if to != sender:
                direct.append((to, at))
            parties.append((sender, to))
        self._rows["tx_by_hash"].extend([(prefix, rows.block.number) for prefix in prefixes])
        touched = self._rows["touch_of"]
        for one in rows.participants:  # each address once per transaction
            address, tx_index = ids(one.address), one.tx_index
            if address not in parties[tx_index]:
                touched.append((address, base | tx_index))

    def _add_erc20(self, rows: BlockRows, base: int) -> None:
        ids, transfers, by_address = self._ids, self._rows["erc20"], self._rows["erc20_of"]
        first_logs: dict[int, int] = {}  # by token
        last_logs: dict[int, int] = {}
        for move in rows.erc20_transfers:
            at, token, sender, to = base | move.log_index, ids(move.token), ids(move.sender), ids(move.to)
            transfers.append((at, move.tx_index, token, sender, to, pack_uint(move.value)))
            last_logs[token] = move.log_index
            first_logs.setdefault(token, move.log_index)
            by_address.append((sender, at))
            if to != sender:
                by_address.append((to, at))
        self._rows["erc20_in"].extend(
            [(token, rows.block.number, first, last_logs[token]) for token, first in first_logs.items()]
        )
        for address in {held.token for held in rows.erc20_deltas}:  # Deposit and Withdrawal make a token too
            self._add_standard(ids(address), ERC20)

    def _add_erc721(self, rows: BlockRows, base: int) -> None:
        ids, number, nfts = self._ids, rows.block.number, self._rows["nft"]
        transfers, by_address = self._rows["erc721"], self._rows["erc721_of"]
        for move in rows.erc721_transfers:
            at, token, sender, to = base | move.log_index, ids(move.token), ids(move.sender), ids(move.to)
            token_id = pack_uint(move.token_id)
            transfers.append((at, move.tx_index, token, sender, to, token_id))
            by_address.append((sender, at))
            if to != sender:
                by_address.append((to, at))
            self._add_standard(token, ERC721)
            nfts.append((token, token_id, number))

    def _add_erc1155(self, rows: BlockRows, base: int) -> None:
        ids, number, nfts = self._ids, rows.block.number, self._rows["nft"]
        transfers, by_address = self._rows["erc1155"], set()
        for move in rows.erc1155_transfers:
            at, token, sender, to = base | move.log_index, ids(move.token), ids(move.sender), ids(move.to)
            token_id = pack_uint(move.token_id)
            transfers.append((at, move.position, move.tx_index, token, sender, to, token_id, pack_uint(move.value)))
            by_address |= {(sender, at), (to, at)}  # once for a batch
            self._add_standard(token, ERC1155)
            nfts.append((token, token_id, number))
        self._rows["erc1155_of"].extend(by_address)

    def _add_internals(self, rows: BlockRows, base: int) -> None:
        ids, calls, by_address = self._ids, self._rows["internal"], self._rows["internal_of"]
        for call in rows.internals:
            at, sender = base | call.tx_index, ids(call.sender)
            to = ids(call.to) if call.to else None
            value, limit, used = pack_uint(call.value), pack_uint(call.gas_limit), pack_uint(call.gas_used)
            calls.append((at, call.frame, call.kind, sender, to, value, limit, used, call.is_reverted))
            by_address.append((sender, at, call.frame))
            if to is not None and to != sender:
                by_address.append((to, at, call.frame))

    def _add_deployments(self, rows: BlockRows, base: int) -> None:
        ids, by_address = self._ids, set()
        for made in rows.deployments:
            at, creator = base | made.tx_index, ids(made.creator)
            self._rows["deployment"].append((ids(made.address), at, made.frame, creator))
            by_address |= {(creator, at, made.frame), (ids(rows.txs[made.tx_index].sender), at, made.frame)}
        self._rows["deployed_by"].extend(by_address)

    def _add_standard(self, token: int, standard: int) -> None:
        self.standards[token] = self.standards.get(token, 0) | standard


def put_rows(tx: Transaction, insert: str, rows: Sequence[Row]) -> Iterator[None]:
    """In steps of a few milliseconds."""
    for at in range(0, len(rows), _ROWS_PER_STEP):
        tx.run_many(insert, rows[at : at + _ROWS_PER_STEP])
        yield


class BatchRows:
    """The packed rows of a batch, written table by table in the order of their keys: neighbours share pages."""

    def __init__(self) -> None:
        self._blocks: list[tuple[PackedBlock, Sequence[int | None]]] = []
        self._tokens: dict[int, tuple[int, int]] = {}  # first block, standards
        self._restarted: dict[int, int] = {}  # tokens deployed anew, by the block
        self._silent_changes: dict[int, int] = {}  # how often the storage of a token changed without a log
        self._reread: list[tuple[int, int, int]] = []  # token, first and last token ID
        self.written: dict[str, int] = {}  # rows by table

    def add(self, block: PackedBlock, ids: Sequence[int | None]) -> None:
        """`ids`: of its addresses in their order, and None at the end for no address."""
        self._blocks.append((block, ids))
        of: Callable[[int], Any] = ids.__getitem__
        for token, standards in block.standards.items():
            self._add_token(of(token), block.block.number, standards)
        self._reread += [(of(token), first, last) for token, first, last in block.rereads]

    def restart_token(self, token: int, block: int) -> None:
        """Another contract at the same address: only its own transfers say of which standard it is."""
        self._restarted[token] = block
        first, _ = self._tokens.get(token, (block, 0))
        self._tokens[token] = first, 0

    def is_of_earlier_contract(self, token: int, block: int) -> bool:
        """Whether the address was deployed anew after that block."""
        return block < self._restarted.get(token, 0)

    def count_silent_change(self, token: int, stored: int) -> int:
        """How often, with the `stored` ones."""
        self._silent_changes[token] = count = self._silent_changes.get(token, stored) + 1
        return count

    def has_token(self, token: int) -> bool:
        return token in self._tokens

    def _add_token(self, token: int, block: int, standard: int) -> None:
        first, standards = self._tokens.get(token, (block, 0))
        self._tokens[token] = first, standards | standard

    def _rows_of(self, table: str) -> list[Row]:
        rows: list[Row] = []
        addresses = ADDRESSES.get(table, ())
        for block, ids in self._blocks:
            packed = block.tables.get(table)
            if packed is not None:
                values: list[Iterable[Any]] = list(columns_of(packed))
                for at in addresses:
                    values[at] = map(ids.__getitem__, values[at])
                rows.extend(zip(*values, strict=True))
        return rows

    def write(self, tx: Transaction) -> Iterator[None]:
        """In steps."""
        for table, insert in INSERTS.items():
            rows = self._rows_of(table)
            self.written[table] = len(rows)
            rows.sort(key=_first)  # which is enough: rows of an address were gathered in chain order
            yield from put_rows(tx, insert, rows)
        tx.run_many(SQL.restart_token, [(token,) for token in self._restarted])
        tx.run_many(SQL.put_token, [(token, *seen) for token, seen in sorted(self._tokens.items())])
        tx.run_many(SQL.put_silent_changes, [(count, token) for token, count in self._silent_changes.items()])
        tx.run_many(SQL.put_standards_since, [(block, token) for token, block in self._restarted.items()])
        ranges = [(token, pack_uint(first), pack_uint(last)) for token, first, last in _merged(self._reread)]
        tx.run_many(SQL.reread_nfts, ranges)


def _merged(ranges: list[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    """Without overlaps: a contract may announce the same million changed tokens a thousand times."""
    found: list[tuple[int, int, int]] = []
    for token, first, last in sorted(ranges):
        if found and found[-1][0] == token and first <= found[-1][2]:
            found[-1] = token, found[-1][1], max(last, found[-1][2])
        else:
            found.append((token, first, last))
    return found
