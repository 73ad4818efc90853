"""The P-Chain's state as the engine loads it, and what execution reads of the store."""

from collections.abc import Sequence
from typing import Any

from icefall.db.engine import BlockingReader
from icefall.pchain.model import FeeSum, Subnet, TxRow, UtxoRow, UtxoState
from icefall.pchain.parameters import PlatformParameters
from icefall.pchain.state import PlatformState, Position
from icefall.pchain.store import SQL, fee_sum_of_row, l1_validator_of_row, staker_of_row, subnet_of, unsigned
from icefall.pchain.sums import DelegationSums
from icefall.wire.packer import GENESIS_SIZE_MAX
from icefall.wire.pvm.codec import unpack_block, unpack_tx
from icefall.wire.pvm.types import PROPOSALS, PlatformBlock


class StoredLookup:
    """What execution reads of the stored state. `prefetch` reads what a batch consumes in one round trip."""

    def __init__(self, store: BlockingReader, parameters: PlatformParameters) -> None:
        self._store = store
        self._parameters = parameters
        self._fetched: dict[bytes, UtxoRow | None] = {}

    def prefetch(self, utxo_ids: Sequence[bytes]) -> None:
        found = self._store.read_each(SQL.utxo, [{"utxo_id": utxo_id} for utxo_id in utxo_ids])
        rows = (_utxo_row(rows[0]) if rows else None for rows in found)
        self._fetched = dict(zip(utxo_ids, rows, strict=True))

    def utxo(self, utxo_id: bytes) -> UtxoRow | None:
        if utxo_id in self._fetched:
            return self._fetched.pop(utxo_id)
        rows = self._store.read(SQL.utxo, {"utxo_id": utxo_id})
        return _utxo_row(rows[0]) if rows else None

    def tx(self, txid: bytes) -> TxRow | None:
        rows = self._store.read(SQL.tx, {"txid": txid})
        if not rows:
            return None
        seq, height, is_committed, raw = rows[0]
        return TxRow(seq, unpack_tx(raw, GENESIS_SIZE_MAX), height, bool(is_committed))

    def subnet(self, subnet_id: bytes) -> Subnet | None:
        rows = self._store.read(SQL.subnet, {"subnet_id": subnet_id})
        return subnet_of(subnet_id, rows[0], self._parameters.rewards.minting_period_s) if rows else None

    def fee_sum(self, scope: int, key: bytes) -> FeeSum | None:
        rows = self._store.read(SQL.fee_sum, {"scope": scope, "key": key})
        return fee_sum_of_row(rows[0]) if rows else None


def _utxo_row(row: tuple[Any, ...]) -> UtxoRow:
    position, utxo_id, raw, addresses, asset_id, amount, state, made = row
    return UtxoRow(
        position,
        utxo_id,
        raw,
        (addresses,) if len(addresses) == 20 else split_addresses(addresses),
        asset_id,
        unsigned(amount),
        UtxoState(state),
        position_before=position,
        state_before=state,
        made=made,
    )


def split_addresses(joined: bytes) -> tuple[bytes, ...]:
    return tuple([joined[at : at + 20] for at in range(0, len(joined), 20)])


def delegation_sums(row: Sequence[Any]) -> DelegationSums:
    count, weight, fees, ever_count, ever_weight, prepaid, capacity = row
    return DelegationSums(count, int(weight), int(fees), ever_count, int(ever_weight), int(prepaid), unsigned(capacity))


def stored_genesis(store: BlockingReader) -> tuple[bytes, bytes] | None:
    """The hash of the genesis that the stored chain began with, and the ID of its block 0; None: there is no chain."""
    rows = store.read(SQL.genesis)
    return (rows[0][0], rows[0][1]) if rows else None


def load_state(store: BlockingReader, parameters: PlatformParameters) -> PlatformState:
    """The state after the last executed block."""
    _, *numbers = store.read(SQL.ledger)[0]
    numbers[6:] = map(unsigned, numbers[6:])
    state = PlatformState(parameters, StoredLookup(store, parameters), Position(*numbers))
    state.load(
        map(staker_of_row, store.read(SQL.stakers)),
        map(l1_validator_of_row, store.read(SQL.l1_validators)),
        {subnet: unsigned(supply) for subnet, supply in store.read(SQL.supplies)},
        dict(store.read(SQL.changes_since_snapshot)),
        {row[0]: delegation_sums(row[1:]) for row in store.read(SQL.delegations)},
    )
    if not store.read(SQL.any_stake_day):
        state.book.touched.update(state.book.totals)  # stored by a release without those sums
    state.proposal = _undecided(store, state.height)
    return state


def _undecided(store: BlockingReader, height: int) -> PlatformBlock | None:
    """The last block, if it is a proposal that the next one decides."""
    rows = store.read(SQL.last_block, {"height": height})
    block = unpack_block(rows[0][0]) if height and rows and rows[0][0] is not None else None
    return block if block is not None and block.block_type in PROPOSALS else None
