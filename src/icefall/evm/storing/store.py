"""The store of one chain, as its writer uses it: batches of blocks are committed whole and rolled back from the tip."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol, TypeVar

import msgspec

from icefall.db.engine import Store, Transaction
from icefall.evm.encoding import block_of, pack_uint, unpack_uint
from icefall.evm.layouts.formulas import StorageLayout, unpack_layout
from icefall.evm.packed import PackedBlock, ResolvedBlock
from icefall.evm.standards import load_statements
from icefall.evm.storing.batch import BatchWriter, FoundLayout, ProbedStandards
from icefall.evm.storing.folding import NO_ID, Baselines, HeldKey
from icefall.evm.storing.messages import count_batch
from icefall.evm.storing.raw import put_raw
from icefall.evm.storing.recent import RecentRows, clear_recent
from icefall.evm.storing.rollback import count_rollback, roll_back_above
from icefall.evm.storing.slot_folding import Erc20Balances, SlotKeys
from icefall.evm.storing.unclaimed import UNCLAIMED_MAX
from icefall.evm.storing.writing import SQL, AddressIds, BlockIds, Steps

CLEAR = load_statements("icefall.evm.storing", "clear.sql")
PACKAGE = "icefall.evm"
T = TypeVar("T")
_BALANCES_CACHED = 100_000


def store_path(data_dir: Path, chain_id: str) -> Path:
    return data_dir / "chains" / f"{chain_id}.sqlite"


class Rollups(Protocol):
    """The writer of rows that are summed up over blocks, in the transaction that changes the blocks."""

    def put_batch(self, tx: Transaction, batch: Sequence[PackedBlock], ids: Sequence[BlockIds]) -> None: ...

    def roll_back_above(self, tx: Transaction, ancestor: int) -> None: ...


class Tip(msgspec.Struct, frozen=True, gc=False):
    """The newest stored block."""

    number: int
    block_hash: bytes
    time: int
    cumulative_txs: int


class ChainStore:
    """The store of a chain. `offset`: transactions before the first block of an index that begins inside a chain.
    `before_commit` is awaited with each batch before its transaction begins. `unclaimed_max`: see unclaimed.py."""

    def __init__(
        self,
        store: Store,
        rollups: Sequence[Rollups] = (),
        offset: int = 0,
        before_commit: Callable[[Sequence[PackedBlock]], Awaitable[None]] | None = None,
        *,
        unclaimed_max: int = UNCLAIMED_MAX,
    ) -> None:
        self._store = store
        self._rollups = rollups
        self._before_commit = before_commit
        self._offset = offset
        self.unclaimed_max = unclaimed_max
        self.words_dropped = 0  # of the storage of tokens, since it was opened
        self._ids = AddressIds()
        self._erc20: Erc20Balances = {}
        self._keys: SlotKeys = {}
        self._recent = RecentRows() if store.is_embedded else None  # None: on a server
        self.read = store.read
        self.read_each = store.read_each

    @property
    def is_embedded(self) -> bool:
        return self._store.is_embedded

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
        """The hash of a stored block, or of the one before the first, which that one names as its parent."""
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
        """The balance of each address and the block it changed at; None: nothing is stored of it."""
        found = self.read_each(SQL.newest_native, [{"address": address} for address in addresses])
        return [(unpack_uint(rows[0][0]), rows[0][1]) if rows else None for rows in found]

    def has_code(self, address: bytes) -> bool | None:
        number = self.id_of(address)
        rows = self.read(SQL.newest_code, (number,)) if number is not None else []
        return bool(rows[0][0]) if rows else None

    def probed_standard(self, address: bytes) -> str | None:
        number = self.id_of(address)
        rows = self.read(SQL.probed_standard, (number,)) if number is not None else []
        return rows[0][0] if rows else None

    def layouts(self, contracts: Sequence[bytes]) -> dict[bytes, StorageLayout | None]:
        """The tokens among the contracts of which it was found out where they store balances; None: a proof was
        refused."""
        found = {}
        for address, rows in zip(
            contracts, self.read_each(SQL.layout, [{"address": one} for one in contracts]), strict=True
        ):
            for (packed,) in rows:
                found[address] = unpack_layout(packed) if packed else None
        return found

    def unclaimed_words(self, tokens: Sequence[bytes]) -> dict[bytes, int]:
        """How many words without a known holder are stored of each token; more than may be where some were dropped."""
        params = [{"address": token, "most": self.unclaimed_max} for token in tokens]
        found = zip(tokens, self.read_each(SQL.unclaimed_words_of, params), strict=True)
        return {token: rows[0][0] for token, rows in found if rows}

    def not_held(self, keys: Sequence[HeldKey]) -> list[HeldKey]:
        """The keys of which nothing is stored: the token's logs have not named the holder before."""
        without_id = [key for key in keys if key[2] == NO_ID]
        with_id = [key for key in keys if key[2] != NO_ID]
        params = [{"token": token, "holder": holder} for token, holder, _ in without_id]
        held = {key for key, rows in zip(without_id, self.read_each(SQL.held_erc20, params), strict=True) if rows}
        params_with_id = [
            {"token": token, "holder": holder, "token_id": pack_uint(token_id)} for token, holder, token_id in with_id
        ]
        for statement in SQL.each("held_{by_id}"):
            found = self.read_each(statement, params_with_id)
            held |= {key for key, rows in zip(with_id, found, strict=True) if rows}
        return [key for key in (*without_id, *with_id) if key not in held]

    def not_named(self, nfts: Sequence[HeldKey]) -> list[HeldKey]:
        """The NFTs of which nothing is stored: no log has named them before."""
        params = [{"token": token, "token_id": pack_uint(token_id)} for token, _, token_id in nfts]
        found = self.read_each(SQL.named_nft, params)
        return [key for key, rows in zip(nfts, found, strict=True) if not rows]

    # -- writing -----------------------------------------------------------------------------------------------

    async def commit(
        self,
        batch: Sequence[ResolvedBlock],
        probed: ProbedStandards = (),
        baselines: Baselines | None = None,
        meta: Mapping[str, str] | None = None,
        layouts: Sequence[FoundLayout] = (),
    ) -> None:
        """Store consecutive blocks on top of the stored ones; all of them with their checkpoint, or none.

        `probed`: contracts whose token standard was found out, with the block it was read at.
        """

        writer: BatchWriter | None = None

        def change(tx: Transaction) -> Steps:
            nonlocal writer
            writer = self._writer(tx, baselines or {})
            yield from self._put_batch(tx, writer, batch, probed, layouts)
            _put_meta(tx, meta or {})

        if self._before_commit is not None:
            await self._before_commit([block.rows for block in batch])
        try:
            await self._store.write_in_steps(change)
        except BaseException:
            self._forget()
            raise
        if writer is not None:
            self.words_dropped += writer.words_dropped
        self._ids.trim()
        if len(self._erc20) > _BALANCES_CACHED:
            self._erc20.clear()
        if len(self._keys) > _BALANCES_CACHED:
            self._keys.clear()

    def _forget(self) -> None:
        """Drop everything cached of rows: those of the last transaction are not stored, or not any more."""
        self._ids.clear()
        self._erc20.clear()
        self._keys.clear()
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

    def _writer(self, tx: Transaction, baselines: Baselines) -> BatchWriter:
        return BatchWriter(
            tx,
            self._ids,
            self._erc20,
            self._keys,
            baselines,
            is_embedded=self._store.is_embedded,
            unclaimed_max=self.unclaimed_max,
        )

    def _put_batch(
        self,
        tx: Transaction,
        writer: BatchWriter,
        batch: Sequence[ResolvedBlock],
        probed: ProbedStandards,
        layouts: Sequence[FoundLayout],
    ) -> Steps:
        yield from writer.write(batch, probed, self._offset, layouts)
        rows = [block.rows for block in batch]
        put_raw(tx, rows)
        count_batch(tx, rows)
        for rollup in self._rollups:
            yield
            rollup.put_batch(tx, rows, writer.ids_by_block)
        if self._recent:
            yield from self._recent.move(tx, writer.written)


def _put_meta(tx: Transaction, meta: Mapping[str, str]) -> None:
    tx.run_many(SQL.put_meta, [{"name": name, "value": value} for name, value in meta.items()])
