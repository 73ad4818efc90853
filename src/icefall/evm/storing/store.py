"""The chain's file, as its one writer sees it: whole runs of blocks go in, or come out again from the newest down."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

import msgspec

from icefall.db.engine import Store, StoreError, Transaction
from icefall.db.statements import load
from icefall.evm.amounts import pack_uint, unpack_uint
from icefall.evm.following.settling import SettledBlock
from icefall.evm.model import BlockRow, BlockRows
from icefall.evm.storing.addresses import AddressBook
from icefall.evm.storing.folding import BalanceFolding, Baselines
from icefall.evm.storing.journal import TouchedAddresses
from icefall.evm.storing.rollback import undo_above
from icefall.evm.storing.writing import BatchRows, Ids, addresses_in

SQL = load("icefall.evm.storing", "writes.sql")
PACKAGE = "icefall.evm"


def store_path(data_dir: Path, chain_id: str) -> Path:
    return data_dir / "chains" / f"{chain_id}.sqlite"


class Rollups(Protocol):
    """Whoever else keeps rows in this file; told inside the transaction that changes it."""

    def put_run(self, tx: Transaction, run: Sequence[BlockRows], ids: Ids) -> None: ...

    def undo_above(self, tx: Transaction, ancestor: int) -> None: ...


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
        self._book = AddressBook()
        self.read = store.read

    # -- what is there -----------------------------------------------------------------------------------------

    def tip(self) -> Tip | None:
        rows = self.read(SQL.tip)
        return Tip(*rows[0]) if rows else None

    def block_hash(self, number: int) -> bytes | None:
        rows = self.read(SQL.block_hash, {"number": number})
        return rows[0][0] if rows else None

    def lowest(self) -> int | None:
        rows = self.read(SQL.lowest_block)
        return rows[0][0] if rows else None

    def fact(self, name: str) -> str | None:
        rows = self.read(SQL.fact, {"name": name})
        return rows[0][0] if rows else None

    async def put_facts(self, facts: dict[str, str]) -> None:
        await self._store.write(
            lambda tx: tx.run_many(SQL.put_fact, [{"name": name, "value": value} for name, value in facts.items()])
        )

    def id_of(self, address: bytes) -> int | None:
        rows = self.read(SQL.address_id, (address,))
        return rows[0][0] if rows else None

    def newest_native(self, address: bytes) -> tuple[int, int] | None:
        """Balance, and the block it changed at."""
        rows = self.read(SQL.newest_native, (address,))
        return (unpack_uint(rows[0][0]), rows[0][1]) if rows else None

    def has_code(self, address: bytes) -> bool | None:
        number = self.id_of(address)
        rows = self.read(SQL.newest_code, (number,)) if number is not None else []
        return bool(rows[0][0]) if rows else None

    def token_kind(self, address: bytes) -> str | None:
        number = self.id_of(address)
        rows = self.read(SQL.token_kind, (number,)) if number is not None else []
        return rows[0][0] if rows else None

    # -- changing it -------------------------------------------------------------------------------------------

    async def commit(
        self,
        run: Sequence[SettledBlock],
        kinds: Sequence[tuple[bytes, int, str]] = (),
        baselines: Baselines | None = None,
        facts: Mapping[str, str] | None = None,
    ) -> None:
        """Consecutive blocks on top of the stored ones; all of them with their checkpoint, or none.

        `kinds`: contracts that were asked what they are, with the block they were asked at. `facts`: of the chain.
        """
        try:
            self._store.write_here(lambda tx: self._put_all(tx, run, kinds, baselines or {}, facts or {}))
        except BaseException:
            self._book.forget()
            raise
        self._book.trim()

    async def roll_back(self, ancestor: int) -> None:
        """Take away every block above `ancestor`, and all that came of them."""

        def change(tx: Transaction) -> None:
            undo_above(tx, ancestor)
            for rollup in self._rollups:
                rollup.undo_above(tx, ancestor)

        self._book.forget()
        await self._store.write(change)

    async def write(self, change: Callable[[Transaction], None]) -> None:
        await self._store.write(change)

    def close(self) -> None:
        self._store.close()

    def _put_all(
        self,
        tx: Transaction,
        run: Sequence[SettledBlock],
        kinds: Sequence[tuple[bytes, int, str]],
        baselines: Baselines,
        facts: Mapping[str, str],
    ) -> None:
        self._put_run(tx, run, kinds, baselines)
        tx.run_many(SQL.put_fact, [{"name": name, "value": value} for name, value in facts.items()])

    def _put_run(
        self,
        tx: Transaction,
        run: Sequence[SettledBlock],
        kinds: Sequence[tuple[bytes, int, str]],
        baselines: Baselines,
    ) -> None:
        found = tx.rows(SQL.tip)
        parent, total = (found[0][1], found[0][3]) if found else (None, self._offset)
        ids = self._book.of
        gathered, folding = BatchRows(ids), BalanceFolding(tx, ids, baselines)
        blocks, balances, codes = [], [], []
        for settled in run:
            rows = settled.rows
            if parent is not None and rows.block.parent_hash != parent:
                raise StoreError(f"block {rows.block.number} does not follow the stored one")
            parent, total = rows.block.block_hash, total + rows.block.tx_count
            first_id = self._book.next_id(tx)
            self._book.intern(tx, addresses_in(rows))
            self._book.intern(tx, [row.address for row in settled.native])
            self._book.intern(tx, [address for address, _ in (*settled.asked_code, *settled.code)])
            gathered.add(rows)
            folding.add(rows)
            blocks.append(_block_params(rows.block, total, first_id, self._touched(tx, settled, gathered).pack()))
            before = [None if row.before is None else pack_uint(row.before) for row in settled.native]
            balances += [
                (ids(row.address), row.block, pack_uint(row.balance), had)
                for row, had in zip(settled.native, before, strict=True)
            ]
            codes += [(ids(address), rows.block.number - 1, has) for address, has in settled.asked_code]
            codes += [(ids(address), rows.block.number, has) for address, has in settled.code]
        self._book.intern(tx, [address for address, _, _ in kinds])
        tx.run_many(SQL.put_block, blocks)
        gathered.write(tx)
        tx.run_many(SQL.put_token_kind, [(ids(address), block, kind) for address, block, kind in kinds])
        balances.sort(key=lambda row: row[:2])
        tx.run_many(SQL.put_native_balance, balances)
        tx.run_many(SQL.put_code, codes)
        folding.write()
        for rollup in self._rollups:
            rollup.put_run(tx, [settled.rows for settled in run], ids)

    def _touched(self, tx: Transaction, settled: SettledBlock, gathered: BatchRows) -> TouchedAddresses:
        ids, rows = self._book.of, settled.rows
        moved = {(move.token, party) for move in rows.erc20_transfers for party in (move.sender, move.to)}
        named = [one for one in rows.erc20_deltas if (one.token, one.holder) not in moved]
        silent = []
        for contract in rows.silent_contracts:
            known = tx.rows(SQL.address_id, (contract,))
            silent += [row[0] for row in known if gathered.saw(row[0]) or tx.rows(SQL.standards, row)]
        return TouchedAddresses(
            native=tuple(dict.fromkeys(ids(row.address) for row in settled.native)),
            code=tuple(dict.fromkeys(ids(address) for address, _ in (*settled.asked_code, *settled.code))),
            silent=tuple(silent),
            named=tuple((ids(one.holder), ids(one.token)) for one in named),
        )


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
