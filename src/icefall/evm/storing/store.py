"""The store of one chain, as its writer uses it: batches of blocks are committed whole and rolled back from the tip."""

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from operator import itemgetter
from pathlib import Path
from typing import Protocol, TypeVar

import msgspec

from icefall.db.engine import Store, StoreError, Transaction
from icefall.db.statements import load
from icefall.evm.encoding import block_of, pack_uint, unpack_uint
from icefall.evm.model import BlockRow
from icefall.evm.packed import PackedBlock, ResolvedBlock
from icefall.evm.storing.addresses import AddressIds
from icefall.evm.storing.folding import NO_ID, BalanceFolding, Baselines, Erc20Balances, HeldKey
from icefall.evm.storing.journal import TouchedAddresses
from icefall.evm.storing.raw import put_raw
from icefall.evm.storing.recent import RecentRows, clear_recent
from icefall.evm.storing.rollback import count_rollback, roll_back_above
from icefall.evm.storing.writing import BatchRows, Row, put_rows

SQL = load("icefall.evm.storing", "writes.sql")
CLEAR = load("icefall.evm.storing", "clear.sql")
PACKAGE = "icefall.evm"
T = TypeVar("T")
_BALANCES_KEPT = 100_000  # in memory
_BLOCKS_PER_STEP = 256
BlockIds = Sequence[int | None]  # of the addresses of a block, in their order; the last is None, for no address


def store_path(data_dir: Path, chain_id: str) -> Path:
    return data_dir / "chains" / f"{chain_id}.sqlite"


class Rollups(Protocol):
    """Rows derived from blocks and kept in the same file: changed in the transaction that changes the blocks."""

    def put_batch(self, tx: Transaction, batch: Sequence[PackedBlock], ids: Sequence[BlockIds]) -> None: ...

    def roll_back_above(self, tx: Transaction, ancestor: int) -> None: ...


class Tip(msgspec.Struct, frozen=True, gc=False):
    """The newest stored block."""

    number: int
    block_hash: bytes
    time: int
    cumulative_txs: int


class ChainStore:
    """`offset`: transactions before the first block of an index that begins inside a chain."""

    def __init__(self, store: Store, rollups: Sequence[Rollups] = (), offset: int = 0) -> None:
        self._store = store
        self._rollups = rollups
        self._offset = offset
        self._ids = AddressIds()
        self._erc20: Erc20Balances = {}
        self._recent = RecentRows() if store.opening is not None else None  # None: on a server
        self.read = store.read
        self.read_each = store.read_each

    # -- reading -----------------------------------------------------------------------------------------------

    def tip(self) -> Tip | None:
        rows = self.read(SQL.tip)
        return Tip(*rows[0]) if rows else None

    def block_hash(self, number: int) -> bytes | None:
        rows = self.read(SQL.block_hash, {"number": number})
        return rows[0][0] if rows else None

    def newest_busy_block(self) -> int | None:
        """The number of the newest block with transactions."""
        rows = self.read(SQL.newest_tx)
        return block_of(rows[0][0]) if rows else None

    def hash_at(self, number: int) -> bytes | None:
        """As `block_hash`; also of the block before the first stored one, which that one names as its parent."""
        rows = self.read(SQL.block_hash, {"number": number}) or self.read(SQL.parent_hash, {"number": number + 1})
        return rows[0][0] if rows else None

    def lowest(self) -> int | None:
        rows = self.read(SQL.lowest_block)
        return rows[0][0] if rows else None

    def meta(self, name: str) -> str | None:
        rows = self.read(SQL.meta, {"name": name})
        return rows[0][0] if rows else None

    async def put_meta(self, meta: Mapping[str, str]) -> None:
        await self._store.write(lambda tx: _put_meta(tx, meta))

    def id_of(self, address: bytes) -> int | None:
        rows = self.read(SQL.address_id, (address,))
        return rows[0][0] if rows else None

    def newest_native(self, addresses: Sequence[bytes]) -> list[tuple[int, int] | None]:
        """Of each, the balance and the block it changed at."""
        found = self.read_each(SQL.newest_native, [{"address": address} for address in addresses])
        return [(unpack_uint(rows[0][0]), rows[0][1]) if rows else None for rows in found]

    def has_code(self, address: bytes) -> bool | None:
        number = self.id_of(address)
        rows = self.read(SQL.newest_code, (number,)) if number is not None else []
        return bool(rows[0][0]) if rows else None

    def token_kind(self, address: bytes) -> str | None:
        number = self.id_of(address)
        rows = self.read(SQL.token_kind, (number,)) if number is not None else []
        return rows[0][0] if rows else None

    def not_held(self, keys: Sequence[HeldKey]) -> list[HeldKey]:
        """Those of which nothing is stored: the token's logs have not named the holder before."""
        by_statement: dict[str, list[HeldKey]] = {SQL.held_erc20: [], SQL.held_erc1155: []}
        for key in keys:
            by_statement[SQL.held_erc20 if key[2] == NO_ID else SQL.held_erc1155].append(key)
        found = []
        for statement, some in by_statement.items():
            params = [
                {"token": token, "holder": holder} | ({} if token_id == NO_ID else {"token_id": pack_uint(token_id)})
                for token, holder, token_id in some
            ]
            found += [key for key, rows in zip(some, self.read_each(statement, params), strict=True) if not rows]
        return found

    # -- writing -----------------------------------------------------------------------------------------------

    async def commit(
        self,
        batch: Sequence[ResolvedBlock],
        kinds: Sequence[tuple[bytes, int, str]] = (),
        baselines: Baselines | None = None,
        meta: Mapping[str, str] | None = None,
    ) -> None:
        """Consecutive blocks on top of the stored ones; all of them with their checkpoint, or none.

        `kinds`: contracts whose token standard was found out, with the block it was read at.
        """

        def change(tx: Transaction) -> Iterator[None]:
            yield from self._put_batch(tx, batch, kinds, baselines or {})
            _put_meta(tx, meta or {})

        try:
            await self._store.write_in_steps(change)
        except BaseException:
            self._forget()
            raise
        self._ids.trim()
        if len(self._erc20) > _BALANCES_KEPT:
            self._erc20.clear()

    def _forget(self) -> None:
        """What is kept in memory of rows that are not stored, or not any more."""
        self._ids.clear()
        self._erc20.clear()
        if self._recent:
            self._recent.forget()

    async def roll_back(self, ancestor: int) -> None:
        """Delete every block above `ancestor`, and everything derived from them."""

        def change(tx: Transaction) -> None:
            roll_back_above(tx, ancestor)
            for rollup in self._rollups:
                rollup.roll_back_above(tx, ancestor)

        self._forget()
        await self._store.write(change)

    async def start_anew(self, meta: Mapping[str, str]) -> None:
        """Delete everything that comes from blocks."""

        def change(tx: Transaction) -> None:
            for name in CLEAR.names():
                tx.run(getattr(CLEAR, name))
            if self._recent:
                clear_recent(tx)
            count_rollback(tx)
            _put_meta(tx, meta)

        self._forget()
        await self._store.write(change)

    async def write(self, change: Callable[[Transaction], T]) -> T:
        return await self._store.write(change)

    def close(self) -> None:
        self._store.close()

    def _put_batch(
        self,
        tx: Transaction,
        batch: Sequence[ResolvedBlock],
        kinds: Sequence[tuple[bytes, int, str]],
        baselines: Baselines,
    ) -> Iterator[None]:
        """In steps."""
        found = tx.rows(SQL.tip)
        parent, total = (found[0][1], found[0][3]) if found else (None, self._offset)
        ids = self._ids.of
        first_new = self._ids.next_id(tx)
        first_ids = self._intern(tx, batch, [address for address, _, _ in kinds])
        by_block: list[BlockIds] = [[*map(ids, block.rows.addresses), None] for block in batch]
        changes = [block.rows.balance_changes() for block in batch]
        gathered, folding = BatchRows(), BalanceFolding(tx, ids, baselines, self._erc20)
        yield
        folding.load(changes, first_new)
        yield
        tokens = self._stored_tokens(tx, batch)
        blocks, codes, balances = [], [], list[Row]()
        reread: dict[int, None] = {}
        for index, (block, first_id, its_ids, changed) in enumerate(
            zip(batch, first_ids, by_block, changes, strict=True)
        ):
            if index % _BLOCKS_PER_STEP == 0:
                yield
            rows, number = block.rows, block.rows.block.number
            if parent is not None and rows.block.parent_hash != parent:
                raise StoreError(f"block {number} does not follow the stored one")
            parent, total = rows.block.block_hash, total + rows.block.tx_count
            for token in self._known_tokens(rows.deployed, tokens, gathered):
                gathered.restart_token(token, number)
            gathered.add(rows, its_ids)
            folding.add(changed)
            touched = self._touched(block, its_ids, tokens, gathered)
            reread.update(dict.fromkeys((*touched.silent, *touched.recoded)))
            blocks.append(_block_params(rows.block, total, first_id, touched.pack()))
            for row in block.native:
                before = None if row.before is None else pack_uint(row.before)
                balances.append((ids(row.address), row.block, pack_uint(row.balance), before))
            codes += [(ids(address), number - 1, has) for address, has in block.earlier_code]
            codes += [(ids(address), number, has) for address, has in block.code]
        self._ids.write(tx)
        tx.run_many(SQL.put_block, blocks)
        yield from gathered.write(tx)
        tx.run_many(SQL.reread_token, [(token,) for token in reread])
        found_kinds = [(ids(address), block, kind) for address, block, kind in kinds]
        current = [row for row in found_kinds if not gathered.is_of_earlier_contract(row[0], row[1])]
        tx.run_many(SQL.put_token_kind, current)
        yield from _put_native(tx, balances, batch[0].rows.block.number)
        tx.run_many(SQL.put_code, codes)
        yield from folding.write()
        all_rows = [block.rows for block in batch]
        put_raw(tx, all_rows)
        for rollup in self._rollups:
            yield
            rollup.put_batch(tx, all_rows, by_block)
        if self._recent:
            yield from self._recent.move(tx, {"native_balance": len(balances), **gathered.written, **folding.written})

    def _intern(self, tx: Transaction, batch: Sequence[ResolvedBlock], others: Sequence[bytes]) -> list[int]:
        """Gives every address of the batch an ID, in chain order; the first that each block may give."""
        by_block = [[*block.rows.addresses, *_state_addresses(block)] for block in batch]
        contracts = [address for block in batch for address in _contracts(block.rows)]
        self._ids.load(tx, [*chain.from_iterable(by_block), *others, *contracts])
        first_ids = []
        for addresses in by_block:
            first_ids.append(self._ids.next_id(tx))
            self._ids.intern(tx, addresses)
        self._ids.intern(tx, others)
        return first_ids

    def _stored_tokens(self, tx: Transaction, batch: Sequence[ResolvedBlock]) -> dict[int, int]:
        """The contracts of the batch that have a row in `token`, and how often their storage changed silently."""
        found = {self._ids.known(address) or 0 for block in batch for address in _contracts(block.rows)}
        return dict(tx.rows_of_each(SQL.known_tokens, [(token,) for token in sorted(found - {0})]))

    def _known_tokens(self, contracts: Iterable[bytes], stored: Container[int], gathered: BatchRows) -> list[int]:
        """The IDs of those contracts that have a row in `token`, stored or gathered."""
        found = [number for contract in contracts if (number := self._ids.known(contract)) is not None]
        return [token for token in found if gathered.has_token(token) or token in stored]

    def _touched(
        self, block: ResolvedBlock, its_ids: BlockIds, stored: Mapping[int, int], gathered: BatchRows
    ) -> TouchedAddresses:
        ids, rows = self._ids.of, block.rows
        silent: list[int] = []
        silent_again: list[int] = []
        for token in self._known_tokens(rows.silent_contracts, stored, gathered):
            count = gathered.count_silent_change(token, stored.get(token, 0))
            (silent_again if count & (count - 1) else silent).append(token)
        return TouchedAddresses(
            native=tuple(dict.fromkeys(ids(row.address) for row in block.native)),
            code=tuple(dict.fromkeys(ids(address) for address, _ in (*block.earlier_code, *block.code))),
            silent=tuple(silent),
            named=tuple((its_ids[holder] or 0, its_ids[token] or 0) for holder, token in rows.named),
            silent_again=tuple(silent_again),
            recoded=tuple(self._known_tokens(rows.recoded_contracts, stored, gathered)),
        )


def _state_addresses(block: ResolvedBlock) -> Iterable[bytes]:
    """Addresses whose balance or code was changed, or read from state."""
    yield from (row.address for row in block.native)
    yield from (address for address, _ in (*block.earlier_code, *block.code))


def _contracts(rows: PackedBlock) -> Iterable[bytes]:
    """Contracts of which it matters whether they are tokens."""
    yield from rows.deployed
    yield from rows.silent_contracts
    yield from rows.recoded_contracts


def _put_native(tx: Transaction, balances: list[Row], first: int) -> Iterator[None]:
    """In steps. Those before block `first` were found in state: where there is a row of that block, it is changed."""
    earlier = [(address, block) for address, block, _, _ in balances if block < first]
    stored = set(tx.rows_of_each(SQL.stored_native, earlier))
    changed = [(balance, address, block) for address, block, balance, _ in balances if (address, block) in stored]
    tx.run_many(SQL.restate_native, changed)
    new = [row for row in balances if row[:2] not in stored] if stored else balances
    new.sort(key=itemgetter(0, 1))
    yield from put_rows(tx, SQL.put_native_balance, new)


def _put_meta(tx: Transaction, meta: Mapping[str, str]) -> None:
    tx.run_many(SQL.put_meta, [{"name": name, "value": value} for name, value in meta.items()])


def _block_params(block: BlockRow, total: int, first_id: int, touched: bytes) -> tuple[object, ...]:
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
        touched,
    )
