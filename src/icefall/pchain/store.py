"""The P-Chain's rows as the engine writes them, and the state as it loads them."""

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from icefall.db.engine import BlockingReader, StoreError, Transaction
from icefall.db.statements import load
from icefall.pchain.model import (
    L1Validator,
    PlatformStaker,
    Priority,
    StakerState,
    Subnet,
    TxRow,
    UtxoRow,
    UtxoState,
)
from icefall.pchain.parameters import PlatformParameters, RewardParameters
from icefall.pchain.stakers import Members
from icefall.pchain.state import Changes, PlatformState, Position
from icefall.wire.avm.parts import pack_owners, unpack_owners
from icefall.wire.avm.types import Owners
from icefall.wire.packer import GENESIS_SIZE_MAX, Layout, Unpacker
from icefall.wire.pvm.codec import unpack_block, unpack_tx
from icefall.wire.pvm.parts import pack_committee, unpack_committee
from icefall.wire.pvm.types import PROPOSALS, BlsSigner, Committee, PlatformBlock

SQL = load("icefall.pchain", "writes.sql")
_CLEAR = tuple(SQL.named(name) for name in SQL.names() if name.startswith("clear_"))
_SIGN, _MODULUS = 1 << 63, 1 << 64
_MEMBER = Layout(20, "uint64", "uint8")
_KEY_SIZE = 48


def signed(number: int) -> int:
    """A number without sign, as the store holds it."""
    return number - _MODULUS if number >= _SIGN else number


def unsigned(number: int) -> int:
    """The number that `signed` stored."""
    return number + _MODULUS if number < 0 else number


def whole_sum(high: int, low: int) -> int:
    """The sum of numbers without sign, of whose upper and lower 32 bits the store has made sums."""
    return (high << 32) + low


def packed_owner(owners: Owners | None) -> bytes | None:
    return None if owners is None else pack_owners(owners)


def unpacked_owner(raw: bytes | None) -> Owners | None:
    return None if raw is None else unpack_owners(Unpacker(raw))


def unpacked_committee(raw: bytes) -> Committee:
    return unpack_committee(Unpacker(raw))


def packed_members(members: Members) -> bytes:
    """A validator set as one value."""
    return b"".join(
        _MEMBER.pack(node_id, weight, len(public_key)) + public_key
        for node_id, (weight, public_key) in sorted(members.items())
    )


def unpacked_members(raw: bytes) -> Members:
    source, members = Unpacker(raw), {}
    while source.offset < len(raw):
        node_id, weight, key_size = source.take(_MEMBER)
        members[node_id] = weight, source.fixed(key_size)
    return members


# -- writing -------------------------------------------------------------------------------------------------------


def put_first(tx: Transaction, genesis_hash: bytes, at: Position, changes: Changes) -> None:
    """The state at height 0, in the place of another one if there is one."""
    for statement in _CLEAR:
        tx.run(statement)
    tx.run(SQL.put_ledger, {"genesis_hash": genesis_hash, **_numbers(at)})
    _put_changes(tx, changes)


def put_changes(tx: Transaction, height_before: int, at: Position, changes: Changes) -> None:
    """Everything that blocks changed, and the new position: all of it, or nothing."""
    if not tx.run(SQL.advance_ledger, {"height_before": height_before, **_numbers(at)}):
        raise StoreError(f"P-Chain: block {height_before + 1} does not follow what is stored")
    _put_changes(tx, changes)


def _numbers(at: Position) -> dict[str, Any]:
    values = msgspec.structs.asdict(at)
    return values | {name: signed(values[name]) for name in ("fee_excess", "l1_excess", "accrued_fees")}


def _put_changes(tx: Transaction, changes: Changes) -> None:
    tx.run_many(
        SQL.put_block,
        [
            (
                b.height,
                b.block_id,
                b.block_type,
                b.time,
                b.tx_count,
                b.inner_at,
                b.inner_size,
                b.container_id,
                b.container,
            )
            for b in changes.blocks
        ],
    )
    _put_many(
        tx,
        SQL.put_tx,
        [
            (row.seq, row.tx.txid, row.height, row.tx.unsigned.type_id, int(row.is_committed), row.tx.raw)
            for row in changes.txs
        ],
    )
    _put_utxos(tx, changes.utxos.values())
    _put_many(tx, SQL.put_address_tx, sorted(changes.address_txs))
    _put_many(tx, SQL.put_staker, [_staker_row(*one) for one in changes.stakers.values()])
    _put_many(
        tx, SQL.put_delegatee_reward, [(signed(value), txid) for txid, value in changes.delegatee_rewards.items()]
    )
    _put_many(tx, SQL.put_supply, [(subnet, signed(value)) for subnet, value in changes.supplies.items()])
    _put_many(tx, SQL.put_subnet, [_subnet_row(one) for one in changes.subnets.values()])
    _put_many(tx, SQL.put_blockchain, changes.chains)
    _put_many(tx, SQL.put_l1_validator, [_l1_row(*one) for one in changes.l1_validators.values()])
    _put_many(
        tx,
        SQL.put_weight_change,
        [(c.subnet_id, c.height, c.node_id, signed(c.weight), c.public_key) for c in changes.weights],
    )
    _put_many(
        tx,
        SQL.put_validator_set,
        [(subnet_id, at, packed_members(members)) for subnet_id, at, members in changes.snapshots],
    )


def _put_many(tx: Transaction, statement: str, rows: Sequence[Any]) -> None:
    if rows:
        tx.run_many(statement, rows)


def _put_utxos(tx: Transaction, utxos: Iterable[UtxoRow]) -> None:
    """Insert new outputs as they are at the end of the batch, and change stored ones."""
    made, owners, spent, changed, changed_owners = [], [], [], [], []
    for row in utxos:
        state = int(row.state)
        if row.position_before is None:
            made.append(
                (
                    row.position,
                    row.utxo_id,
                    row.raw,
                    b"".join(row.addresses),
                    row.asset_id,
                    signed(row.amount),
                    state,
                    int(row.kind),
                    signed(row.locktime),
                    signed(row.stakeable_locktime),
                    row.created_seq,
                    row.created_time,
                    row.stake_start,
                    row.stake_end,
                    row.reward_of,
                    row.returned_seq,
                    row.returned_time,
                    row.spent_seq,
                    row.spent_time,
                )
            )
            owners += [(address, state, row.position) for address in dict.fromkeys(row.addresses)]
            continue
        before = row.position_before
        if row.returned_seq is None:
            spent.append((row.spent_seq, row.spent_time, before))
        else:
            returned = row.returned_seq, row.returned_time
            changed.append((row.position, state, *returned, row.spent_seq, row.spent_time, before))
        changed_owners += [
            (state, row.position, address, row.state_before, before) for address in dict.fromkeys(row.addresses)
        ]
    _put_many(tx, SQL.put_utxo, made)
    _put_many(tx, SQL.put_owner, owners)
    _put_many(tx, SQL.spend_utxo, spent)
    _put_many(tx, SQL.change_utxo, changed)
    _put_many(tx, SQL.change_owner, changed_owners)


def _staker_row(staker: PlatformStaker, state: StakerState, height: int) -> tuple[Any, ...]:
    signer = staker.signer
    return (
        staker.txid,
        staker.subnet_id,
        staker.node_id,
        int(state),
        int(staker.priority),
        staker.start,
        signed(staker.end),
        signed(staker.weight),
        signed(staker.potential_reward),
        staker.shares,
        packed_owner(staker.validation_owner),
        packed_owner(staker.delegation_owner),
        signer.public_key if signer else None,
        signer.proof_of_possession if signer else None,
        height,
    )


def _subnet_row(subnet: Subnet) -> tuple[Any, ...]:
    rewards = subnet.rewards or RewardParameters(0, 0, 0, 0)
    return (
        subnet.subnet_id,
        pack_owners(subnet.owner),
        subnet.transformation_txid,
        subnet.asset_id,
        signed(rewards.min_consumption_rate),
        signed(rewards.max_consumption_rate),
        signed(rewards.supply_cap),
        signed(subnet.min_validator_stake),
        signed(subnet.min_delegator_stake),
        subnet.conversion_id,
        subnet.manager_chain_id,
        subnet.manager_address,
        subnet.seq,
    )


def _l1_row(validator: L1Validator, height: int) -> tuple[Any, ...]:
    return (
        validator.validation_id,
        validator.subnet_id,
        validator.node_id,
        validator.public_key,
        signed(validator.weight),
        validator.start,
        signed(validator.min_nonce),
        signed(validator.end_accumulated_fee),
        pack_committee(validator.remaining_balance_owner),
        pack_committee(validator.deactivation_owner),
        int(validator.is_removed),
        height,
    )


# -- reading -------------------------------------------------------------------------------------------------------


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


def subnet_of(subnet_id: bytes, row: tuple[Any, ...], minting_period_s: int) -> Subnet:
    """A subnet, from the columns behind its ID."""
    owner, seq, txid, asset_id, low, high, cap, validator_min, delegator_min, *converted = row
    rewards = RewardParameters(unsigned(low), unsigned(high), minting_period_s, unsigned(cap)) if txid else None
    minimums = unsigned(validator_min), unsigned(delegator_min)
    return Subnet(subnet_id, unpack_owners(Unpacker(owner)), seq, txid, asset_id, rewards, *minimums, *converted)


def _utxo_row(row: tuple[Any, ...]) -> UtxoRow:
    position, utxo_id, raw, addresses, asset_id, amount, state = row
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
    )


def split_addresses(joined: bytes) -> tuple[bytes, ...]:
    return tuple([joined[at : at + 20] for at in range(0, len(joined), 20)])


def staker_of_row(row: tuple[Any, ...]) -> tuple[PlatformStaker, int]:
    """A staker and its delegatee reward."""
    txid, subnet_id, node_id, weight, start, end, reward, priority, shares, own, delegation, key, proof, delegatee = row
    signer = BlsSigner(key, proof) if key is not None else None
    owners = unpacked_owner(own), unpacked_owner(delegation)
    staker = PlatformStaker(
        txid,
        subnet_id,
        node_id,
        unsigned(weight),
        start,
        unsigned(end),
        unsigned(reward),
        Priority(priority),
        shares,
        *owners,
        signer,
    )
    return staker, unsigned(delegatee)


def l1_validator_of_row(row: tuple[Any, ...]) -> L1Validator:
    validation_id, subnet_id, node_id, key, weight, start, nonce, end, remaining, deactivation = row
    return L1Validator(
        validation_id,
        subnet_id,
        node_id,
        key,
        unsigned(weight),
        start,
        unsigned(nonce),
        unsigned(end),
        unpacked_committee(remaining),
        unpacked_committee(deactivation),
    )


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
    )
    state.proposal = _undecided(store, state.height)
    return state


def _undecided(store: BlockingReader, height: int) -> PlatformBlock | None:
    """The last block, if it is a proposal that the next one decides."""
    rows = store.read(SQL.last_block, {"height": height})
    block = unpack_block(rows[0][0]) if height and rows and rows[0][0] is not None else None
    return block if block is not None and block.block_type in PROPOSALS else None
