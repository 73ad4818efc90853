"""The P-Chain's rows as the engine writes them, and the state as it loads them."""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from operator import itemgetter
from typing import Any

import msgspec

from icefall.db.engine import StoreError, Transaction
from icefall.db.statements import load
from icefall.pchain.changes import Changes, StakerChange
from icefall.pchain.l1_fees import FeeKey
from icefall.pchain.model import (
    FeeSum,
    L1Validator,
    PlatformStaker,
    Priority,
    Subnet,
    UtxoRow,
)
from icefall.pchain.parameters import RewardParameters
from icefall.pchain.stakers import Members
from icefall.pchain.state import Position
from icefall.pchain.sums import DelegationSums, StakeTotal
from icefall.wire.avm.parts import pack_owners, unpack_owners
from icefall.wire.avm.types import Owners
from icefall.wire.packer import Layout, Unpacker
from icefall.wire.pvm.parts import pack_committee, unpack_committee
from icefall.wire.pvm.types import BlsSigner, Committee

SQL = load("icefall.pchain", "writes.sql")
_CLEAR = tuple(SQL.named(name) for name in SQL.names() if name.startswith("clear_"))
_SIGN, _MODULUS = 1 << 63, 1 << 64
_MEMBER = Layout(20, "uint64", "uint8")
_PRIORITIES = {int(priority): priority for priority in Priority}
_KEY_SIZE = 48
_SIGNED = ("fee_excess", "l1_excess", "accrued_fees", "burned", "rewards_paid", "l1_fees")
# Roles in `p_stake_owner`
VALIDATOR_ROLE, DELEGATOR_ROLE, FEE_ROLE = 0, 1, 2
L1_ACTIVE, L1_INACTIVE, L1_REMOVED = 0, 1, 2
_ADDRESS_AND_MADE = itemgetter(2, 4)  # of a row for `change_owner`
AMOUNT_BIAS = 1 << 63  # amounts have 64 bits without a sign; less this, they sort as the store's signed numbers


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


@lru_cache(maxsize=1024)  # the same owners recur, in rows and in requests
def unpacked_owners(raw: bytes) -> Owners:
    return unpack_owners(Unpacker(raw))


def unpacked_owner(raw: bytes | None) -> Owners | None:
    return None if raw is None else unpacked_owners(raw)


@lru_cache(maxsize=1024)
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
    return values | {name: signed(values[name]) for name in _SIGNED}


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
                signed(b.supply),
                b.active_l1,
                signed(b.accrued_fees),
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
    _put_many(tx, SQL.put_address_tx, sorted(changes.address_txs | changes.payees))
    _put_many(tx, SQL.put_staker, [_staker_row(one) for one in changes.stakers.values()])
    _put_many(
        tx, SQL.put_delegatee_reward, [(signed(value), txid) for txid, value in changes.delegatee_rewards.items()]
    )
    _put_many(tx, SQL.put_delegations, [_delegations_row(*one) for one in changes.delegations.items()])
    _put_owners(tx, changes)
    _put_many(tx, SQL.put_stake_day, [_day_row(*one) for one in changes.stake_days.items()])
    _put_many(tx, SQL.put_supply, [(subnet, signed(value)) for subnet, value in changes.supplies.items()])
    _put_many(tx, SQL.put_subnet, [_subnet_row(one) for one in changes.subnets.values()])
    _put_many(tx, SQL.put_blockchain, changes.chains)
    _put_many(tx, SQL.put_fee_sum, [_fee_row(*one) for one in changes.l1_fees.items()])
    _put_many(tx, SQL.put_accrued_day, [(day, signed(accrued)) for day, accrued in changes.accrued_days])
    _put_many(tx, SQL.put_l1_move, _l1_moves(changes))
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
                    row.made,
                )
            )
            place = row.made, row.position, row.amount - AMOUNT_BIAS
            owners += [(address, state, *place) for address in dict.fromkeys(row.addresses)]
            continue
        before = row.position_before
        if row.returned_seq is None:
            spent.append((row.spent_seq, row.spent_time, before))
        else:
            returned = row.returned_seq, row.returned_time
            changed.append((row.position, state, *returned, row.spent_seq, row.spent_time, before))
        changed_owners += [
            (state, row.position, address, row.state_before, row.made) for address in dict.fromkeys(row.addresses)
        ]
    _put_many(tx, SQL.put_utxo, made)
    _put_many(tx, SQL.put_owner, sorted(owners))  # by address, as its indexes are: a page is then written once
    _put_many(tx, SQL.spend_utxo, spent)
    _put_many(tx, SQL.change_utxo, changed)
    _put_many(tx, SQL.change_owner, sorted(changed_owners, key=_ADDRESS_AND_MADE))


def _put_owners(tx: Transaction, changes: Changes) -> None:
    """Note who gets the rewards of stakers that are new, and what has become of others; then what was paid."""
    new = {row.tx.txid for row in changes.txs}
    changed, owners = [], []
    for staker, state, *_ in changes.stakers.values():
        if staker.txid in new:
            role = DELEGATOR_ROLE if staker.is_delegator else VALIDATOR_ROLE
            addresses = staker.validation_owner.addresses if staker.validation_owner is not None else ()
            owners += [(address, role, int(state), staker.seq) for address in dict.fromkeys(addresses)]
        else:
            changed.append((int(state), staker.seq))
        fees = dict.fromkeys(changes.fee_owners.get(staker.txid, ()))
        owners += [(address, FEE_ROLE, int(state), staker.seq) for address in fees]
    _put_many(tx, SQL.change_stake_owner, changed)
    _put_many(tx, SQL.put_stake_owner, owners)
    paid = []
    for row, node_id in changes.rewards:
        paid += [(node_id, 1, row.position), *[(one, 0, row.position) for one in dict.fromkeys(row.addresses)]]
    _put_many(tx, SQL.put_reward_of, paid)


def _delegations_row(txid: bytes, sums: DelegationSums) -> tuple[Any, ...]:
    count, weight, fees, ever_count, ever_weight, prepaid, capacity = msgspec.structs.astuple(sums)
    return count, str(weight), str(fees), ever_count, str(ever_weight), str(prepaid), signed(capacity), txid


def _day_row(key: tuple[bytes, int], total: StakeTotal) -> tuple[Any, ...]:
    weights = str(total.validator_weight), str(total.delegator_weight), str(total.reward)
    return *key, total.validators, total.delegators, *weights


def _staker_row(change: StakerChange) -> tuple[Any, ...]:
    staker, state, height, ended_seq = change
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
        staker.seq,
        int(staker.is_delegator),
        staker.validator_seq,
        ended_seq,
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
        subnet.conversion_txid,
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
        L1_REMOVED if validator.is_removed else L1_ACTIVE if validator.is_active else L1_INACTIVE,
        validator.inactive_since,
        validator.proof_of_possession,
    )


def _l1_moves(changes: Changes) -> list[tuple[Any, ...]]:
    """What transactions did to validators of L1s: weight and balance after them, and by how much that one changed."""
    rows = []
    for move in changes.l1_moves:
        if move.seq is None:
            continue
        before = move.before.balance_at(move.accrued_fees) if move.before is not None else 0
        after = move.after.balance_at(move.accrued_fees)
        weight = 0 if move.after.is_removed else move.after.weight
        row = move.seq, move.after.validation_id, signed(weight), signed(after), str(after - before)
        rows.append(row)
    return rows


def _fee_row(at: tuple[FeeKey, int], known: FeeSum) -> tuple[Any, ...]:
    return *at[0], known.day, known.active, known.paying, str(known.paid), signed(known.since)


# -- reading -------------------------------------------------------------------------------------------------------


def subnet_of(subnet_id: bytes, row: tuple[Any, ...], minting_period_s: int) -> Subnet:
    """A subnet, from the columns behind its ID."""
    owner, seq, txid, asset_id, low, high, cap, validator_min, delegator_min, *converted = row
    rewards = RewardParameters(unsigned(low), unsigned(high), minting_period_s, unsigned(cap)) if txid else None
    minimums = unsigned(validator_min), unsigned(delegator_min)
    return Subnet(subnet_id, unpacked_owners(owner), seq, txid, asset_id, rewards, *minimums, *converted)


def staker_of_row(row: tuple[Any, ...]) -> tuple[PlatformStaker, int]:
    """A staker and its delegatee reward."""
    txid, subnet_id, node_id, weight, start, end, reward, priority, shares, own, delegation, *rest = row
    key, proof, seq, validator_seq, delegatee = rest
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
        _PRIORITIES[priority],
        shares,
        *owners,
        signer,
        seq,
        validator_seq,
    )
    return staker, unsigned(delegatee)


def l1_validator_of_row(row: tuple[Any, ...]) -> L1Validator:
    validation_id, subnet_id, node_id, key, weight, start, nonce, end, *rest = row
    remaining, deactivation, inactive_since, proof = rest
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
        inactive_since=inactive_since,
        proof_of_possession=proof,
    )


def fee_sum_of_row(row: tuple[Any, ...]) -> FeeSum:
    day, active, paying, paid, since = row
    return FeeSum(day, active, paying, int(paid), unsigned(since))
