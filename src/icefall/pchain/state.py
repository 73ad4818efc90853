"""The P-Chain's state while blocks are executed: small sets in memory, the rest read through a `Lookup`.

Everything that changes is noted in `Changes`, which the store writes in one transaction.
"""

from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Iterable

import msgspec

from icefall.pchain.changes import Changes, L1Move, StakerChange
from icefall.pchain.fees import FeeState, potential_reward
from icefall.pchain.l1_fees import FeeKey, FeeScope, change_of_paying, changed_sum, has_paid, scopes_of
from icefall.pchain.model import (
    BEGINS_AS,
    ExecutionFailed,
    FeeSum,
    L1Validator,
    Lookup,
    PlatformStaker,
    StakerState,
    Subnet,
    TxRow,
    UtxoKind,
    UtxoRow,
    UtxoState,
    plain_output,
)
from icefall.pchain.parameters import PlatformParameters
from icefall.pchain.stakers import StakerSet, ValidatorSets
from icefall.pchain.sums import DAY_S, DelegationSums, StakeBook
from icefall.wire.ids import EMPTY_ID, PRIMARY_NETWORK, id_text, input_id
from icefall.wire.pvm.codec import pack_utxo
from icefall.wire.pvm.types import PlatformBlock, PlatformTx, PlatformUtxo

GENESIS_SEQ = -1  # stands for the transaction of outputs that were there from the start


class Position(msgspec.Struct, frozen=True, gc=False):
    """The last block, and the numbers that change with every block."""

    height: int = -1
    block_id: bytes = EMPTY_ID
    time: int = 0
    next_seq: int = 0
    next_position: int = 0
    fee_capacity: int = 0
    fee_excess: int = 0
    l1_excess: int = 0
    accrued_fees: int = 0
    burned: int = 0
    rewards_paid: int = 0
    l1_fees: int = 0


class PlatformState:
    """The state after the last executed block. When execution fails, it is of no use any more and loaded anew."""

    def __init__(self, parameters: PlatformParameters, lookup: Lookup, at: Position = Position()) -> None:  # noqa: B008
        self.parameters = parameters
        self.lookup = lookup
        self.height, self.block_id, self.time = at.height, at.block_id, at.time
        self.next_seq, self.next_position = at.next_seq, at.next_position
        self.fee = FeeState(at.fee_capacity, at.fee_excess)
        self.l1_excess, self.accrued_fees = at.l1_excess, at.accrued_fees
        self.burned, self.rewards_paid, self.l1_fees = at.burned, at.rewards_paid, at.l1_fees
        self.book = StakeBook(parameters.limits)
        self.current = StakerSet(pending=False)
        self.pending = StakerSet(pending=True)
        self.delegatee_rewards: dict[bytes, int] = defaultdict(int)
        self.supplies: dict[bytes, int] = {}
        self.l1: dict[bytes, L1Validator] = {}
        self._l1_ends: list[tuple[int, bytes]] = []  # active ones, by the end of their balance
        self._fee_sums: dict[FeeKey, FeeSum] = {}  # those that have changed
        self.sets = ValidatorSets()
        self.proposal: PlatformBlock | None = None  # decided by the next block
        self.changes = Changes()
        self._accrued_before = at.accrued_fees  # with the last block

    @property
    def position(self) -> Position:
        return Position(
            self.height,
            self.block_id,
            self.time,
            self.next_seq,
            self.next_position,
            self.fee.capacity,
            self.fee.excess,
            self.l1_excess,
            self.accrued_fees,
            self.burned,
            self.rewards_paid,
            self.l1_fees,
        )

    def take_changes(self) -> Changes:
        """What changed since the last call."""
        taken, self.changes = self.changes, Changes()
        taken.l1_after = self.l1
        return taken

    # -- transactions and outputs ---------------------------------------------------------------------------------

    def add_tx(self, tx: PlatformTx, height: int, *, is_committed: bool) -> int:
        """Note an accepted transaction; returns its number."""
        seq = self.next_seq
        self.next_seq += 1
        row = TxRow(seq, tx, height, is_committed)
        self.changes.txs.append(row)
        self.changes.tx_of[tx.txid] = row
        return seq

    def tx(self, txid: bytes) -> TxRow:
        found = self.changes.tx_of.get(txid) or self.lookup.tx(txid)
        if found is None:
            raise ExecutionFailed(f"transaction {id_text(txid)} was never accepted")
        return found

    def add_utxo(self, utxo: PlatformUtxo, seq: int, kind: UtxoKind = UtxoKind.PLAIN) -> UtxoRow:
        amount, stakeable_locktime, owners = plain_output(utxo.output)
        changes, utxo_id = self.changes, input_id(utxo.txid, utxo.output_index)
        row = UtxoRow(
            self.next_position,
            utxo_id,
            pack_utxo(utxo),
            owners.addresses,
            utxo.asset_id,
            amount,
            UtxoState.UNSPENT,
            kind,
            owners.locktime,
            stakeable_locktime,
            seq,
            self.time,
            made=self.next_position,
        )
        self.next_position += 1
        if utxo_id in changes.utxos:
            raise ExecutionFailed(f"output {utxo.output_index} of {id_text(utxo.txid)} exists already")
        changes.utxos[utxo_id] = row
        if seq != GENESIS_SEQ:
            for address in owners.addresses:
                changes.address_txs.add((address, seq))
        return row

    def spend(self, utxo_id: bytes, asset_id: bytes, amount: int, seq: int) -> None:
        """Consume an unspent output. It must exist, and hold what the input says."""
        row = self.changes.utxos.get(utxo_id) or self._loaded(utxo_id)
        if row is None or row.state != UtxoState.UNSPENT:
            why = "is not there" if row is None else "is staked" if row.state == UtxoState.STAKED else "is spent"
            raise ExecutionFailed(f"it consumes output {id_text(utxo_id)}, which {why}")
        if row.amount != amount or row.asset_id != asset_id:
            raise ExecutionFailed(
                f"it consumes {amount} of {id_text(asset_id)} from {id_text(utxo_id)}, which has not that"
            )
        row.state, row.spent_seq, row.spent_time = UtxoState.SPENT, seq, self.time
        for address in row.addresses:
            self.changes.address_txs.add((address, seq))

    def release(self, utxo_id: bytes, seq: int) -> None:
        """Give back a stake: its output becomes unspent."""
        row = self.changes.utxos.get(utxo_id) or self._loaded(utxo_id)
        if row is None or row.state != UtxoState.STAKED:
            raise ExecutionFailed(f"the stake {id_text(utxo_id)} is not there")
        row.state, row.returned_seq, row.returned_time = UtxoState.UNSPENT, seq, self.time
        row.position = self.next_position
        self.next_position += 1
        self.changes.returned.update([(address, seq) for address in row.addresses])

    def _loaded(self, utxo_id: bytes) -> UtxoRow | None:
        row = self.lookup.utxo(utxo_id)
        if row is not None:
            self.changes.utxos[utxo_id] = row
        return row

    # -- subnets and supply ---------------------------------------------------------------------------------------

    def subnet(self, subnet_id: bytes) -> Subnet:
        found = self.changes.subnets.get(subnet_id) or self.lookup.subnet(subnet_id)
        if found is None:
            raise ExecutionFailed(f"there is no subnet {id_text(subnet_id)}")
        return found

    def put_subnet(self, subnet: Subnet) -> None:
        self.changes.subnets[subnet.subnet_id] = subnet

    def set_supply(self, subnet_id: bytes, supply: int) -> None:
        self.supplies[subnet_id] = self.changes.supplies[subnet_id] = supply

    def mint(self, subnet_id: bytes, duration_s: int, weight: int) -> int:
        """The potential reward of a staker that begins, which counts as supply from then on."""
        rates = self.parameters.rewards
        if subnet_id != PRIMARY_NETWORK:
            elastic = self.subnet(subnet_id).rewards
            if elastic is None:
                raise ExecutionFailed(f"subnet {id_text(subnet_id)} is not elastic, so that no stake is possible there")
            rates = elastic
        supply = self.supplies[subnet_id]
        reward = potential_reward(rates, duration_s, weight, supply)
        self.set_supply(subnet_id, supply + reward)
        return reward

    # -- stakers --------------------------------------------------------------------------------------------------

    def add_staker(self, staker: PlatformStaker) -> None:
        """Add a pending or current staker, as its priority says."""
        validator = None
        if staker.is_delegator:
            at = staker.subnet_id, staker.node_id
            validator = self.current.validator(*at)
            if validator is None or (staker.is_pending and validator.end < staker.end):
                validator = self.pending.validator(*at) or validator  # it begins at the same second, or later
            staker = msgspec.structs.replace(staker, validator_seq=validator.seq if validator is not None else None)
        self.load_staker(staker)
        state = StakerState.PENDING if staker.is_pending else StakerState.CURRENT
        self.changes.stakers[staker.txid] = StakerChange(staker, state, self.height)
        if not staker.is_pending and not staker.is_delegator:
            self.changes.delegations[staker.txid] = self.book.begin_validator(staker)
        elif not staker.is_pending and validator is not None:
            self.changes.delegations[validator.txid] = self.book.delegate(validator, staker, 1)
            if validator.delegation_owner is not None:
                self.changes.fee_owners[staker.txid] = validator.delegation_owner.addresses

    def load_staker(self, staker: PlatformStaker) -> None:
        """Put a staker into its set, with the weight that it has there."""
        if staker.is_pending:
            self.pending.add(staker)
            return
        self.current.add(staker)
        self.sets.add_staker(staker)
        self.book.count_staker(staker, 1)

    def begin(self, staker: PlatformStaker) -> None:
        """A pending staker becomes a current one."""
        self.pending.remove(staker)
        priority, reward = BEGINS_AS[staker.priority], 0
        if staker.validation_owner is not None:
            reward = self.mint(staker.subnet_id, staker.end - staker.start, staker.weight)
        self.add_staker(msgspec.structs.replace(staker, priority=priority, potential_reward=reward))

    def end(self, staker: PlatformStaker, state: StakerState, seq: int | None = None) -> None:
        """A current or pending staker leaves, because of transaction `seq` or because its time is over."""
        if staker.is_pending:
            self.pending.remove(staker)
        else:
            self.current.remove(staker)
            self.sets.remove_staker(staker)
            self.book.count_staker(staker, -1)
            self.delegatee_rewards.pop(staker.txid, None)
            self.book.delegations.pop(staker.txid, None)
            validator = self.current.validator(staker.subnet_id, staker.node_id) if staker.is_delegator else None
            if validator is not None:
                self.changes.delegations[validator.txid] = self.book.delegate(validator, staker, -1)
        self.changes.stakers[staker.txid] = StakerChange(staker, state, self.height, seq)

    def accrue(self, validator: PlatformStaker, amount: int) -> None:
        """Add to what a validator gets for its delegators when it ends."""
        self.delegatee_rewards[validator.txid] += amount
        self.changes.delegatee_rewards[validator.txid] = self.delegatee_rewards[validator.txid]

    # -- validators of L1s ----------------------------------------------------------------------------------------

    @property
    def active_l1_count(self) -> int:
        return len(self._l1_ends)

    def put_l1(self, validator: L1Validator, *, by_time: bool = False, lost: int = 0) -> None:
        """Add or replace a validator of an L1, because of the newest transaction or `by_time`. `lost`: what was left of
        its balance and is not paid back."""
        before = self.l1.get(validator.validation_id)
        was_active = before is not None and before.is_active
        if was_active != validator.is_active:
            validator = self._change_fees(validator, lost)
        self.load_l1(validator, before)
        seq = None if by_time else self.next_seq - 1
        self.changes.l1_moves.append(L1Move(self.height, seq, before, validator, self.accrued_fees))
        self.changes.l1_validators[validator.validation_id] = validator, self.height

    def _change_fees(self, validator: L1Validator, lost: int) -> L1Validator:
        """Note in the sums of fees that a validator begins or ceases to pay, and in it until when it has paid."""
        time, accrued, begins = self.time, self.accrued_fees, validator.is_active
        own = self._fee_sum((FeeScope.VALIDATION, validator.validation_id))
        paying = change_of_paying(validator, own, time, accrued, lost)
        for key in scopes_of(validator):
            changed = changed_sum(self._fee_sum(key), time, accrued, begins=begins, paying=paying, lost=lost)
            self._fee_sums[key] = self.changes.l1_fees[key, time // DAY_S] = changed
        if begins or not has_paid(own, accrued, lost):
            return validator
        return msgspec.structs.replace(validator, inactive_since=time if lost else time - 1)

    def _fee_sum(self, key: FeeKey) -> FeeSum | None:
        return self._fee_sums.get(key) or self.lookup.fee_sum(*key)

    def load_l1(self, validator: L1Validator, before: L1Validator | None = None) -> None:
        if before is not None and before.is_active:
            ends = before.end_accumulated_fee, before.validation_id
            del self._l1_ends[bisect_left(self._l1_ends, ends)]
        if validator.is_active:
            insort(self._l1_ends, (validator.end_accumulated_fee, validator.validation_id))
        if validator.is_removed:
            self.l1.pop(validator.validation_id, None)
        else:
            self.l1[validator.validation_id] = validator
        if before is not None:
            self.book.count_l1(before, -1)
        self.book.count_l1(validator, 1)
        self.sets.replace_l1(before, validator)

    def l1_validator(self, validation_id: bytes) -> L1Validator:
        found = self.l1.get(validation_id)
        if found is None:
            raise ExecutionFailed(f"there is no L1 validator {id_text(validation_id)}")
        return found

    def deactivate_l1(self, fees: int, *, also_equal: bool) -> None:
        """Deactivate the L1 validators whose balances end before `fees`, or just there."""
        while self._l1_ends:
            end, validation_id = self._l1_ends[0]
            if end > fees or (end == fees and not also_equal):
                return
            lost = end - self.accrued_fees
            self.l1_fees += lost
            validator = msgspec.structs.replace(self.l1[validation_id], end_accumulated_fee=0)
            self.put_l1(validator, by_time=True, lost=lost)

    # -- the end of a block ---------------------------------------------------------------------------------------

    def finish_block(self) -> None:
        """Note what the block changed in validator sets and in sums."""
        self.changes.accrued.append((self._accrued_before, self.accrued_fees))
        self._accrued_before = self.accrued_fees
        for subnet_id in self.book.touched:
            self.changes.stake_days[subnet_id, self.time // DAY_S] = self.book.totals[subnet_id]
        self.book.touched.clear()
        if not self.sets.is_touched:
            return
        changed = self.sets.changes(self.height)
        self.changes.weights += changed
        for subnet_id in self.sets.snapshots_due(changed):
            self.changes.snapshots.append((subnet_id, self.height, dict(self.sets.members[subnet_id])))

    def load(
        self,
        stakers: Iterable[tuple[PlatformStaker, int]],
        l1_validators: Iterable[L1Validator],
        supplies: dict[bytes, int],
        changes_since_snapshot: dict[bytes, int],
        delegations: dict[bytes, DelegationSums],
    ) -> None:
        """Fill the sets with stored rows: stakers with their delegatee reward, validators of L1s, supplies, sums."""
        for staker, reward in stakers:
            self.load_staker(staker)
            if reward:
                self.delegatee_rewards[staker.txid] = reward
        for validator in l1_validators:
            self.load_l1(validator)
        self.supplies = dict(supplies)
        self.book.delegations = delegations
        self.book.touched.clear()
        self.sets.changes(self.height)  # they are stored already
        self.sets.changes_since_snapshot.clear()
        self.sets.changes_since_snapshot.update(changes_since_snapshot)
        self.changes = Changes()
