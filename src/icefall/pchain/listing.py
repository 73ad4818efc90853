"""Lists of the P-Chain for a worker: blocks, transactions and outputs, read page by page and never further."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec

from icefall.db.engine import Reader, Row
from icefall.db.statements import load
from icefall.errors import Unavailable
from icefall.pchain.model import Priority, StakerState, UtxoKind, UtxoState, plain_output
from icefall.pchain.store import AMOUNT_BIAS, unsigned
from icefall.wire.pvm.codec import unpack_utxo
from icefall.xchain.listing import first_at
from icefall.xchain.store import NEWEST

SQL = load("icefall.pchain", "listing.sql")


class ListedBlock(msgspec.Struct, frozen=True, gc=False):
    """An executed block. `time` is the chain time after it; `container` holds the block's own bytes at `inner_at`. The
    last three are the supply of AVAX, active validators of L1s and accrued fees after it; None: an older release
    executed it."""

    height: int
    block_id: bytes
    time: int
    container: bytes
    inner_at: int
    inner_size: int
    supply: int | None
    active_l1: int | None
    accrued_fees: int | None

    @property
    def inner(self) -> bytes:
        return self.container[self.inner_at : self.inner_at + self.inner_size]


class ListedL1Move(NamedTuple):
    """What a transaction did to a validator of an L1: weight and balance after it, and the change of the balance."""

    seq: int
    validation_id: bytes
    node_id: bytes
    subnet_id: bytes
    weight: int
    balance: int
    change: int


class ListedTx(msgspec.Struct, frozen=True, gc=False):
    """An accepted transaction with its block."""

    seq: int
    txid: bytes
    height: int
    type_id: int
    is_committed: bool
    raw: bytes
    block_id: bytes
    time: int


class ListedUtxo(msgspec.Struct, frozen=True, gc=False):
    """An output with the transactions that made and spent it. `height` is None for an output of the genesis. `made`
    orders outputs by when they were made, `position` by when they became spendable."""

    position: int
    utxo_id: bytes
    raw: bytes
    state: UtxoState
    kind: UtxoKind
    created_seq: int
    created_time: int
    stake_start: int | None
    stake_end: int | None
    returned_seq: int | None
    spent_time: int | None
    height: int | None
    spent_txid: bytes | None
    spent_height: int | None
    made: int


def place_of(row: ListedUtxo) -> tuple[int, int]:
    """The place of an output among those of an address by amount, and by when they were made."""
    return plain_output(unpack_utxo(row.raw).output)[0] - AMOUNT_BIAS, row.made


class ListedStaker(msgspec.Struct, frozen=True, gc=False):
    """A period of staking. `height` is the block of its last change."""

    txid: bytes
    state: StakerState
    subnet_id: bytes
    node_id: bytes
    weight: int
    start: int
    end: int
    potential_reward: int
    priority: Priority
    shares: int
    height: int


class AmountRow(NamedTuple):
    """What decides to which balance an output belongs at some time."""

    made: int
    asset_id: bytes
    amount: int
    locktime: int
    stakeable_locktime: int
    created_time: int
    stake_start: int | None
    stake_end: int | None
    returned_time: int | None
    spent_time: int | None
    addresses: bytes
    raw: bytes


class PlatformLists:
    """The lists of the P-Chain in a store. If there is no `reader` the chain is not executed here, and every read is
    refused."""

    def __init__(self, reader: Reader | None) -> None:
        self._reader = reader

    @property
    def _store(self) -> Reader:
        if self._reader is None:
            raise Unavailable("the P-Chain of this network is not executed here, because its genesis is not known")
        return self._reader

    # -- blocks ---------------------------------------------------------------------------------------------------

    async def blocks(self, low: int, below: int, limit: int) -> list[ListedBlock]:
        """Blocks of a range of heights, newest first."""
        key = {"low": low, "below": below, "limit": limit}
        return [_block(row) for row in await self._store.rows(SQL.blocks, key)]

    async def block(self, which: int | bytes) -> ListedBlock | None:
        """A block by its height or its ID."""
        if isinstance(which, bytes):
            rows = await self._store.rows(SQL.block_by_id, {"block_id": which})
            return _block(rows[0]) if rows else None
        found = await self.blocks(which, which + 1, 1) if which < NEWEST else []
        return found[0] if found else None

    async def blocks_at(self, heights: Sequence[int]) -> list[ListedBlock]:
        """Blocks of given heights, newest first."""
        rows = await self._store.rows_of_each(SQL.block_of, [(one,) for one in heights]) if heights else []
        return sorted(map(_block, rows), key=lambda one: -one.height)

    async def first_height(self, time: int, count: int) -> int:
        """The first of `count` heights whose block is not earlier than `time`."""
        return await first_at(0, count, lambda height: self._at(SQL.block_time, {"height": height}), time)

    # -- transactions ---------------------------------------------------------------------------------------------

    async def tx_count(self) -> int:
        return int((await self._store.rows(SQL.tx_count))[0][0])

    async def first_seq(self, time: int, count: int) -> int:
        """The number of the first transaction whose block is not earlier than `time`."""
        return await first_at(0, count, lambda seq: self._at(SQL.tx_time, {"seq": seq}), time)

    async def _at(self, statement: str, key: dict[str, int]) -> int:
        return int((await self._store.rows(statement, key))[0][0])

    async def txs(self, low: int, below: int, limit: int, *, upwards: bool) -> list[ListedTx]:
        """Transactions of a range of numbers, in their order or newest first."""
        key = {"low": low, "below": below, "limit": limit}
        return _txs(await self._store.rows(SQL.txs_up if upwards else SQL.txs_down, key))

    async def txs_of(
        self, addresses: Iterable[bytes], low: int, below: int, limit: int, *, upwards: bool
    ) -> list[ListedTx]:
        """Transactions that took from one of the addresses or gave to it."""
        statement = SQL.txs_of_address_up if upwards else SQL.txs_of_address_down
        found: dict[int, ListedTx] = {}
        for address in addresses:
            key = {"address": address, "low": low, "below": below, "limit": limit}
            found.update((one.seq, one) for one in _txs(await self._store.rows(statement, key)))
        return [found[seq] for seq in sorted(found, reverse=not upwards)][:limit]

    async def txs_of_l1(
        self, validation_id: bytes, low: int, below: int, limit: int, *, upwards: bool
    ) -> list[ListedTx]:
        """Transactions that created or changed a validator of an L1."""
        if await self._store.rows(SQL.l1_moves_missing):
            raise Unavailable(
                "the P-Chain was executed by an earlier release, which did not store what transactions did to "
                "validators of L1s: follow the network in a new --data-dir"
            )
        key = {"validation_id": validation_id, "low": low, "below": below, "limit": limit}
        return _txs(await self._store.rows(SQL.txs_of_l1_up if upwards else SQL.txs_of_l1_down, key))

    async def l1_moves_of(self, seqs: Sequence[int]) -> dict[int, list[ListedL1Move]]:
        """What transactions did to validators of L1s."""
        rows = await self._store.rows_of_each(SQL.l1_moves_of, [(seq,) for seq in seqs]) if seqs else []
        found: dict[int, list[ListedL1Move]] = {}
        for seq, validation_id, node_id, subnet_id, weight, balance, change in rows:
            move = ListedL1Move(
                seq, validation_id, node_id, subnet_id, unsigned(weight), unsigned(balance), int(change)
            )
            found.setdefault(seq, []).append(move)
        return found

    async def txs_with_ids(self, txids: Sequence[bytes]) -> dict[bytes, ListedTx]:
        rows = await self._store.rows_of_each(SQL.tx_of, [(txid,) for txid in txids]) if txids else []
        return {one.txid: one for one in _txs(rows)}

    async def txid_at(self, seq: int) -> bytes:
        txid: bytes = (await self._store.rows(SQL.txid_at, {"seq": seq}))[0][0]
        return txid

    # -- outputs --------------------------------------------------------------------------------------------------

    async def utxos_with_ids(self, utxo_ids: Sequence[bytes]) -> dict[bytes, ListedUtxo]:
        rows = await self._store.rows_of_each(SQL.utxo_of, [(one,) for one in utxo_ids]) if utxo_ids else []
        return {one.utxo_id: one for one in map(_utxo, rows)}

    async def rewards_of(self, seq: int) -> list[ListedUtxo]:
        """What was paid for the stake of a transaction."""
        return [_utxo(row) for row in await self._store.rows(SQL.rewards_of, {"seq": seq})]

    async def utxos_of(
        self,
        addresses: Iterable[bytes],
        states: Iterable[UtxoState],
        beyond: tuple[int, int] | None,
        limit: int,
        *,
        upwards: bool,
        by_amount: bool = False,
    ) -> list[ListedUtxo]:
        """Outputs of the addresses beyond the place of one, in the order in which they were made, or by amount."""
        statement = SQL.named(f"utxos{'_by_amount' if by_amount else ''}_{'up' if upwards else 'down'}")
        amount, made = beyond or ((-NEWEST - 1, -1) if upwards else (NEWEST, NEWEST))
        found: dict[tuple[int, int], ListedUtxo] = {}
        for address in addresses:
            for state in states:
                key = {"address": address, "state": int(state), "limit": limit, "above" if upwards else "below": made}
                key |= {"amount": amount} if by_amount else {}
                rows = map(_utxo, await self._store.rows(statement, key))
                found.update((place_of(one) if by_amount else (0, one.made), one) for one in rows)
        return [found[place] for place in sorted(found, reverse=not upwards)][:limit]

    async def owns(self, address: bytes) -> bool:
        """Whether an address ever owned an output."""
        return bool(await self._store.rows(SQL.owns, {"address": address}))

    async def amounts(self, address: bytes, state: UtxoState, above: int, limit: int) -> list[AmountRow]:
        """A piece of the outputs of an address, for its balances."""
        key = {"address": address, "state": int(state), "above": above, "limit": limit}
        rows = [AmountRow(*row) for row in await self._store.rows(SQL.amounts, key)]
        return [
            row._replace(
                amount=unsigned(row.amount),
                locktime=unsigned(row.locktime),
                stakeable_locktime=unsigned(row.stakeable_locktime),
            )
            for row in rows
        ]

    # -- stakers --------------------------------------------------------------------------------------------------

    async def stakers_with_ids(self, txids: Sequence[bytes]) -> dict[bytes, ListedStaker]:
        rows = await self._store.rows_of_each(SQL.staker_of, [(txid,) for txid in txids]) if txids else []
        return {row[0]: _staker(row) for row in rows}


def _block(row: Row) -> ListedBlock:
    *known, supply, active, accrued = row
    after = (None, None, None) if supply is None else (unsigned(supply), active, unsigned(accrued))
    return ListedBlock(*known, *after)


def _txs(rows: Iterable[Row]) -> list[ListedTx]:
    return [
        ListedTx(seq, txid, height, type_id, bool(committed), raw, block_id, time)
        for seq, txid, height, type_id, committed, raw, block_id, time in rows
    ]


def _utxo(row: Row) -> ListedUtxo:
    position, utxo_id, raw, state, kind, *rest = row
    return ListedUtxo(position, utxo_id, raw, UtxoState(state), UtxoKind(kind), *rest)


def _staker(row: Row) -> ListedStaker:
    txid, state, subnet_id, node_id, weight, start, end, reward, priority, shares, height = row
    return ListedStaker(
        txid,
        StakerState(state),
        subnet_id,
        node_id,
        unsigned(weight),
        start,
        unsigned(end),
        unsigned(reward),
        Priority(priority),
        shares,
        height,
    )
