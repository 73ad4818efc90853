"""Writes one batch of consecutive blocks inside its transaction: IDs for addresses, then rows, balances and journal.

`BatchWriter.write` is the order of it. Everything is first gathered block by block, in chain order, because a block's
rows depend on those before it: a contract that is deployed anew, the number of changes without a log, a balance. Then
it is written table by table, in the order of keys.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from operator import itemgetter
from typing import NamedTuple

import msgspec

from icefall.db.engine import StoreError, Transaction
from icefall.evm.deriving.packing import Row
from icefall.evm.encoding import pack_uint
from icefall.evm.layouts.formulas import StorageLayout
from icefall.evm.model import ERC20, BlockRow
from icefall.evm.packed import BalanceChanges, PackedBlock, ResolvedBlock
from icefall.evm.storing.changed_words import KeyedWords, LoggedChanges
from icefall.evm.storing.folding import BalanceFolding, Baselines, BlockToFold
from icefall.evm.storing.id_slots import IdChanges, IdSlots
from icefall.evm.storing.rollback import TouchedAddresses, add_to_journal
from icefall.evm.storing.slot_folding import Erc20Balances, SlotKeys
from icefall.evm.storing.unclaimed import UnclaimedRoom
from icefall.evm.storing.writing import SQL, AddressIds, BatchRows, BlockIds, RowsOnServer, Steps, put_rows
from icefall.wire.errors import WireError
from icefall.wire.evm.storage import slot_changes

_BLOCKS_PER_STEP = 256
ProbedStandards = Sequence[tuple[bytes, int, str]]  # contract, the block it was read at, ProbedStandard
NO_LAYOUT = b""  # stored where a proof was refused


class FoundLayout(NamedTuple):
    """A token whose layout was proven at a block; `layout` None: refused. `block` -1: it has the same one as before.
    `is_other`: it had another one before, so that every balance may be another."""

    token: bytes
    block: int
    layout: StorageLayout | None
    is_other: bool


class _Interned(NamedTuple):
    """A block whose addresses have IDs."""

    block: ResolvedBlock
    first_id: int  # the first that the block may have given
    ids: BlockIds
    changes: BalanceChanges
    by_slots: IdChanges

    @property
    def folded(self) -> BlockToFold:
        slots = self.block.slots
        of_erc20 = {token: one for token, one in slots.items() if one.layout.standard == ERC20} if slots else slots
        return BlockToFold(self.changes, of_erc20, self.by_slots)

    @property
    def rows(self) -> PackedBlock:
        return self.block.rows


class BatchWriter:
    """The writing of one batch. `erc20` and `keys` are what earlier batches left in memory, and are updated.
    `is_embedded`: of the store, whose tables differ. `unclaimed_max`: see unclaimed.py."""

    def __init__(
        self,
        tx: Transaction,
        ids: AddressIds,
        erc20: Erc20Balances,
        keys: SlotKeys,
        baselines: Baselines,
        *,
        is_embedded: bool,
        unclaimed_max: int,
    ) -> None:
        self._tx = tx
        self._is_embedded = is_embedded
        self._ids = ids
        self._baselines = baselines
        self._gathered = BatchRows()
        self._room = UnclaimedRoom(tx, unclaimed_max)
        self._folding = BalanceFolding(tx, ids.of, baselines, erc20, keys, self._room, is_embedded=is_embedded)
        self._tokens: Mapping[int, int] = {}  # stored ones among the batch's contracts: changes without a log so far
        self._blocks: list[Row] = []
        self._native: list[Row] = []
        self._native_found_later: dict[int, list[int]] = {}  # by the block they changed at: addresses
        self._code: list[Row] = []
        self._reread: dict[int, None] = {}  # tokens whose name, symbol and decimals may have changed
        self._reread_later: dict[int, None] = {}  # the same, of those whose storage changed otherwise
        self.ids_by_block: list[BlockIds] = []
        self.words_dropped = 0

    @property
    def written(self) -> dict[str, int]:
        """The number of rows that were written, by table."""
        return {"native_balance": len(self._native), **self._gathered.written, **self._folding.written}

    def write(
        self, batch: Sequence[ResolvedBlock], probed: ProbedStandards, offset: int, layouts: Sequence[FoundLayout] = ()
    ) -> Steps:
        """Write the batch on top of the stored blocks. `offset`: the transactions before the first block ever."""
        first_new = self._ids.next_id(self._tx)
        blocks = self._intern(batch, [address for address, _, _ in probed])
        self.ids_by_block = [one.ids for one in blocks]
        yield
        self._folding.load([one.folded for one in blocks], first_new)
        yield
        self._tokens = self._stored_tokens(batch)
        yield from self._gather(blocks, offset)
        native = self._new_native(batch[0].rows.block.number)
        yield from self._write_rows(native)
        self._write_standards(probed)
        self._write_layouts(layouts)
        yield from put_rows(self._tx, SQL.put_native_balance, sorted(native.values(), key=itemgetter(0, 1)))
        add_to_journal(self._tx, self._native_found_later)
        self._tx.run_many(SQL.put_code, list({row[:2]: row for row in self._code}.values()))  # each once: the last
        yield from self._folding.write()
        self.words_dropped = self._room.write(self._ids.of)

    # -- IDs ---------------------------------------------------------------------------------------------------

    def _intern(self, batch: Sequence[ResolvedBlock], others: Sequence[bytes]) -> list[_Interned]:
        """Give every address of the batch an ID, in chain order."""
        changes = [block.rows.balance_changes() for block in batch]
        slots_of_ids = IdSlots(self._tx, self._ids, self._baselines, self._room)
        by_slots = slots_of_ids.changes(changes, [block.slots for block in batch])
        by_block = [
            [*block.rows.addresses, *_state_addresses(block), *slots.addresses()]
            for block, slots in zip(batch, by_slots, strict=True)
        ]
        contracts = [address for block in batch for address in _contracts(block.rows)]
        stored = [token for block in batch for token in (*block.slots, *block.other_storage)]
        self._ids.load(self._tx, [*chain.from_iterable(by_block), *others, *contracts, *stored])
        found = []
        for block, addresses, changed, slots in zip(batch, by_block, changes, by_slots, strict=True):
            first_id = self._ids.next_id(self._tx)
            self._ids.intern(self._tx, addresses)
            ids = [*map(self._ids.of, block.rows.addresses), None]
            found.append(_Interned(block, first_id, ids, changed, slots))
        self._ids.intern(self._tx, others)
        return found

    def _stored_tokens(self, batch: Sequence[ResolvedBlock]) -> dict[int, int]:
        """The contracts of the batch that have a row in `token`, and how often their storage changed without a log."""
        found = {self._ids.known(address) or 0 for block in batch for address in _contracts(block.rows)}
        return dict(self._tx.rows_of_each(SQL.known_tokens, [(token,) for token in sorted(found - {0})]))

    def _known_tokens(self, contracts: Iterable[bytes]) -> list[int]:
        """The IDs of those contracts that have a row in `token`, stored or gathered."""
        found = [number for contract in contracts if (number := self._ids.known(contract)) is not None]
        return [token for token in found if self._gathered.has_token(token) or token in self._tokens]

    # -- block by block ----------------------------------------------------------------------------------------

    def _gather(self, blocks: Sequence[_Interned], offset: int) -> Steps:
        tip = self._tx.rows(SQL.tip)
        parent, total = (tip[0][1], tip[0][3]) if tip else (None, offset)
        for index, one in enumerate(blocks):
            if index % _BLOCKS_PER_STEP == 0:
                yield
            block = one.rows.block
            if parent is not None and block.parent_hash != parent:
                raise StoreError(f"block {block.number} does not follow the stored one")
            parent, total = block.block_hash, total + block.tx_count
            for token in self._known_tokens(one.rows.deployed):
                self._gathered.restart_token(token, block.number)
            self._gathered.add(one.rows, one.ids)
            self._gather_state(one.block)
            journal = self._journal(one)
            left = self._folding.add(one.folded, frozenset(journal.holders_named))
            renamed = tuple(map(self._ids.of, _maybe_renamed(one, left)))
            journal = msgspec.structs.replace(journal, maybe_renamed=renamed)
            changed = (*journal.maybe_renamed, *journal.storage_changed_unlogged_again)
            self._reread_later.update(dict.fromkeys(changed))
            self._reread.update(dict.fromkeys((*journal.storage_changed_unlogged, *journal.code_changed)))
            self._blocks.append(_block_row(block, total, one.first_id, journal.pack()))

    def _gather_state(self, block: ResolvedBlock) -> None:
        """Add the rows of native balances and of code."""
        ids, number = self._ids.of, block.rows.block.number
        for row in block.native:
            before = None if row.before is None else pack_uint(row.before)
            self._native.append((ids(row.address), row.block, pack_uint(row.balance), before))
            if row.block < number:
                self._native_found_later.setdefault(row.block, []).append(ids(row.address))
        self._code += [(ids(address), number - 1, has) for address, has in block.earlier_code]
        self._code += [(ids(address), number, has) for address, has in block.code]

    def _journal(self, one: _Interned) -> TouchedAddresses:
        ids, rows, block = self._ids.of, one.rows, one.block
        unlogged: list[int] = []
        unlogged_again: list[int] = []
        for token in self._known_tokens(rows.storage_changed_unlogged):
            count = self._gathered.count_unlogged_change(token, self._tokens.get(token, 0))
            (unlogged_again if count & (count - 1) else unlogged).append(token)
        return TouchedAddresses(
            native=tuple(dict.fromkeys(ids(row.address) for row in block.native)),
            code=tuple(dict.fromkeys(ids(address) for address, _ in (*block.earlier_code, *block.code))),
            storage_changed_unlogged=tuple(unlogged),
            holders_named=tuple((one.ids[holder] or 0, one.ids[token] or 0) for holder, token in rows.holders_named),
            storage_changed_unlogged_again=tuple(unlogged_again),
            code_changed=tuple(self._known_tokens(rows.code_changed)),
        )

    # -- table by table ----------------------------------------------------------------------------------------

    def _write_rows(self, native: dict[tuple[int, int], Row]) -> Steps:
        """Write the rows of tables, on a server with those of `native` that go with a transaction."""
        self._ids.write(self._tx)
        self._tx.run_many(SQL.put_block, self._blocks)
        others = None if self._is_embedded else RowsOnServer(self._folding.erc20_balances, native)
        yield from self._gathered.write(self._tx, others)
        self._tx.run_many(SQL.reread_token, [(token,) for token in self._reread])
        self._tx.run_many(
            SQL.reread_token_later, [(token,) for token in self._reread_later if token not in self._reread]
        )

    def _write_standards(self, probed: ProbedStandards) -> None:
        found = [(self._ids.of(address), block, standard) for address, block, standard in probed]
        current = [row for row in found if not self._gathered.is_of_earlier_contract(row[0], row[1])]
        self._tx.run_many(SQL.put_probed_standard, current)

    def _write_layouts(self, layouts: Sequence[FoundLayout]) -> None:
        for one in layouts:
            token = self._ids.of(one.token)
            since = one.block if one.layout is not None else None
            packed = one.layout.pack() if one.layout is not None else NO_LAYOUT
            standard = one.layout.standard if one.layout is not None else None
            if since != -1:
                self._tx.run(SQL.put_earlier_layout, {"token": token, "block": one.block})
            self._tx.run(SQL.put_layout, {"layout": packed, "since": since, "token": token, "standard": standard})
            if one.is_other:
                self._tx.run(SQL.mark_untrusted, {"token": token, "block": one.block})

    def _new_native(self, first: int) -> dict[tuple[int, int], Row]:
        """Return the rows of native balances that are new, by address and block. Those before block `first` were found
        in state: a row of such a block is changed."""
        earlier = [(address, block) for address, block, _, _ in self._native if block < first]
        stored = set(self._tx.rows_of_each(SQL.stored_native, earlier))
        changed = [(balance, address, at) for address, at, balance, _ in self._native if (address, at) in stored]
        self._tx.run_many(SQL.restate_native, changed)
        new: dict[tuple[int, int], Row] = {}  # each once, so that a server can take them in as they are
        for address, at, balance, before in self._native:
            if (address, at) not in stored:
                earlier_row = new.get((address, at))
                new[address, at] = address, at, balance, earlier_row[3] if earlier_row else before
        return new


def _state_addresses(block: ResolvedBlock) -> Iterable[bytes]:
    """The addresses whose balance or code was changed, or read from state."""
    yield from (row.address for row in block.native)
    yield from (address for address, _ in (*block.earlier_code, *block.code))


def _maybe_renamed(one: _Interned, left: Mapping[bytes, KeyedWords | None]) -> Iterator[bytes]:
    """The tokens of which the block changed storage that no log explains, and that is no balance: it may be the name.
    `left`: of tokens with a layout, what is no balance; None: it cannot be read."""
    others = one.block.other_storage
    if not left and not others:
        return
    logged = LoggedChanges(one.changes, one.rows.approvals)
    for token, words in left.items():
        if words is None or logged.leave_some(token, words, has_layout=True):
            yield token
    for token, texts in others.items():
        try:
            changed = tuple(slot_changes(texts).items())
        except WireError:  # what an upstream sent
            yield token
            continue
        if logged.leave_some(token, changed, has_layout=False):
            yield token


def _contracts(rows: PackedBlock) -> Iterable[bytes]:
    """The contracts of which it matters whether they are tokens."""
    yield from rows.deployed
    yield from rows.storage_changed_unlogged
    yield from rows.code_changed


def _block_row(block: BlockRow, total: int, first_id: int, journal: bytes) -> Row:
    return (
        block.number,
        block.block_hash,
        block.parent_hash,
        block.time,
        block.tx_count,
        pack_uint(block.base_fee),
        pack_uint(block.gas_used),
        pack_uint(block.gas_limit),
        pack_uint(block.gas_cost),
        pack_uint(block.fees_spent),
        total,
        first_id,
        journal,
        block.fee_recipient,
        block.size,
        None if block.fees_burned is None else pack_uint(block.fees_burned),
    )
