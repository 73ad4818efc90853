"""Blocks executed one after another: checks of linkage, the step of time, transactions, proposals and their options."""

from icefall.pchain.fees import gas_of, split_reward, validator_cost, validator_excess
from icefall.pchain.l1_fees import ended_days
from icefall.pchain.model import ExecutedBlock, ExecutionFailed, PlatformStaker, Priority, StakerState, UtxoKind
from icefall.pchain.state import PlatformState
from icefall.pchain.transactions import abort_staking, execute_tx, stake_of
from icefall.wire.avm.types import Owners, TransferOutput
from icefall.wire.ids import PRIMARY_NETWORK, id_text, input_id
from icefall.wire.pvm import types as t


def execute_block(state: PlatformState, block: t.PlatformBlock) -> ExecutedBlock:
    """Execute the block after the last one. ExecutionFailed, with the state spoilt: it cannot be that block."""
    if block.height != state.height + 1:
        raise ExecutionFailed(f"its height is {block.height}, where {state.height + 1} belongs")
    if block.parent_id != state.block_id:
        raise ExecutionFailed(
            f"its parent is {id_text(block.parent_id)}, but the block before is {id_text(state.block_id)}"
        )
    if block.time is not None and block.time < state.time:
        raise ExecutionFailed(f"its time is {block.time}, before the chain's {state.time}")
    banff = state.parameters.forks.banff
    if (block.time is None) != (state.time < banff) and (block.time is None or block.time < banff):
        raise ExecutionFailed(f"type {int(block.block_type)} is not possible at {state.time} with Banff at {banff}")
    is_option = block.block_type in t.COMMITS or block.block_type in t.ABORTS
    if (state.proposal is not None) != is_option:
        raise ExecutionFailed("a proposal and the block that decides it must follow each other")
    state.height, state.block_id = block.height, block.block_id
    if block.proposal is not None:
        state.proposal = block  # all of it takes effect with the option
    elif state.proposal is not None:
        _decide(state, state.proposal, is_committed=block.block_type in t.COMMITS)
        state.proposal = None
    else:
        _decision_block(state, block)
    state.finish_block()
    time = state.time if block.time is None else block.time
    tx_count = len(block.txs) + (block.proposal is not None)
    return ExecutedBlock(
        block.height,
        block.block_id,
        int(block.block_type),
        time,
        tx_count,
        len(block.raw),
        state.supplies[PRIMARY_NETWORK],
        state.active_l1_count,
        state.accrued_fees,
    )


def _decision_block(state: PlatformState, block: t.PlatformBlock) -> None:
    """Step to the block's time and apply its transactions; then deactivate what cannot pay another second."""
    if block.time is not None:
        advance_time(state, block.time)
    if state.time >= state.parameters.forks.etna:
        _use_gas(state, block.txs)
    for tx in block.txs:
        execute_tx(state, tx, block.height)
    if state.active_l1_count:
        fees = state.parameters.validator_fees
        next_second = validator_cost(fees, state.active_l1_count, state.l1_excess, 1)
        state.deactivate_l1(state.accrued_fees + next_second, also_equal=False)


def _use_gas(state: PlatformState, txs: tuple[t.PlatformTx, ...]) -> None:
    fees, gas = state.parameters.fees, 0
    for tx in txs:
        needed = gas_of(tx, fees)
        if needed is None:
            raise ExecutionFailed(f"transaction {id_text(tx.txid)} of type {tx.unsigned.type_id} came after Etna")
        gas += needed
    after = state.fee.used(gas)
    if after is None:
        raise ExecutionFailed(f"it uses {gas} gas, of which there is {state.fee.capacity}")
    state.fee = after


def advance_time(state: PlatformState, time: int) -> None:
    """Begin pending stakers, end permissioned ones, and move the fee states."""
    for staker in _due(state, time):
        state.begin(staker)
    while (first := state.current.first()) is not None:
        if first.end > time or first.priority != Priority.PERMISSIONED:
            break
        state.end(first, StakerState.REWARDED)
    parameters = state.parameters
    seconds = time - state.time
    if time >= parameters.forks.etna and seconds:
        state.fee = state.fee.after(parameters.fees, seconds)
        for day, end in ended_days(state.time, time) if state.active_l1_count else ():
            _accrue_until(state, end)
            state.changes.accrued_days.append((day, state.accrued_fees))
        _accrue_until(state, time)
        state.deactivate_l1(state.accrued_fees, also_equal=True)
    state.time = time


def _accrue_until(state: PlatformState, time: int) -> None:
    """Let time pass for the active L1 validators, whose number stays."""
    fees, active, seconds = state.parameters.validator_fees, state.active_l1_count, time - state.time
    cost = validator_cost(fees, active, state.l1_excess, seconds)
    state.accrued_fees += cost
    state.l1_fees += active * cost
    state.l1_excess = validator_excess(fees, active, state.l1_excess, seconds)
    state.time = time


def _due(state: PlatformState, time: int) -> list[PlatformStaker]:
    due = []
    for staker in state.pending:
        if staker.start > time:
            break
        due.append(staker)
    return due


# -- proposals -----------------------------------------------------------------------------------------------------


def _decide(state: PlatformState, block: t.PlatformBlock, *, is_committed: bool) -> None:
    """Apply a proposal block, now that its option is known. Its other transactions count whichever option won."""
    if block.time is not None:
        _decision_block(state, block)
    tx = block.proposal
    assert tx is not None
    unsigned = tx.unsigned
    if isinstance(unsigned, t.AdvanceTimeTx):
        state.add_tx(tx, block.height, is_committed=is_committed)
        if is_committed:
            if unsigned.time < state.time:
                raise ExecutionFailed(f"it sets the time {unsigned.time}, before the chain's {state.time}")
            advance_time(state, unsigned.time)
    elif isinstance(unsigned, t.RewardValidatorTx):
        seq = state.add_tx(tx, block.height, is_committed=is_committed)
        _reward(state, unsigned.staking_txid, seq, is_committed=is_committed)
    elif is_committed:
        execute_tx(state, tx, block.height)
    else:
        abort_staking(state, tx, block.height)


def _reward(state: PlatformState, staking_txid: bytes, seq: int, *, is_committed: bool) -> None:
    """The first staker leaves: its stake returns, and with a commit its reward is paid."""
    staker = state.current.first()
    if staker is None or staker.txid != staking_txid or staker.priority == Priority.PERMISSIONED:
        raise ExecutionFailed(f"it rewards {id_text(staking_txid)}, which is not the staker that ends first")
    if staker.end != state.time:
        raise ExecutionFailed(f"it rewards a staker at {state.time} that ends at {staker.end}")
    staking = state.tx(staking_txid)
    stake = stake_of(staking.tx.unsigned)
    assert isinstance(staking.tx.unsigned, t.PlatformBaseTx)
    index = len(staking.tx.unsigned.outputs)
    for offset in range(len(stake)):
        state.release(input_id(staking_txid, index + offset), seq)
    payments = _delegator_payments if staker.is_delegator else _validator_payments
    index += len(stake)
    for kind, owners, amount in payments(state, staker, is_committed=is_committed):
        utxo = t.PlatformUtxo(staking_txid, index, stake[0].asset_id, TransferOutput(amount, owners))
        row = state.add_utxo(utxo, seq, kind)
        row.reward_of = staking.seq
        state.changes.rewards.append((row, staker.node_id))
        if row.asset_id == state.parameters.avax_asset_id:
            state.rewards_paid += amount
        index += 1
    if not is_committed:
        state.set_supply(staker.subnet_id, state.supplies[staker.subnet_id] - staker.potential_reward)
    state.end(staker, StakerState.REWARDED if is_committed else StakerState.NOT_REWARDED, seq)


_Payment = tuple[UtxoKind, Owners, int]


def _validator_payments(state: PlatformState, staker: PlatformStaker, *, is_committed: bool) -> list[_Payment]:
    """A validator's share of its delegators' rewards is paid also if its own is not."""
    assert staker.validation_owner is not None
    assert staker.delegation_owner is not None
    payments = []
    if is_committed and staker.potential_reward:
        payments.append((UtxoKind.VALIDATOR_REWARD, staker.validation_owner, staker.potential_reward))
    accrued = state.delegatee_rewards.get(staker.txid, 0)
    if accrued:
        payments.append((UtxoKind.VALIDATOR_FEE, staker.delegation_owner, accrued))
    return payments


def _delegator_payments(state: PlatformState, staker: PlatformStaker, *, is_committed: bool) -> list[_Payment]:
    """The validator's share waits for the validator's own end if that began after Cortina, and is paid now if not."""
    if not is_committed:
        return []
    validator = state.current.validator(staker.subnet_id, staker.node_id)
    if validator is None or validator.delegation_owner is None or staker.validation_owner is None:
        raise ExecutionFailed(f"the delegation {id_text(staker.txid)} has no validator")
    fee, net = split_reward(staker.potential_reward, validator.shares)
    payments = [(UtxoKind.DELEGATOR_REWARD, staker.validation_owner, net)] if net else []
    if fee and validator.start >= state.parameters.forks.cortina:
        state.accrue(validator, fee)
    elif fee:
        payments.append((UtxoKind.VALIDATOR_FEE, validator.delegation_owner, fee))
        state.changes.delegations[validator.txid] = state.book.prepay(validator, fee)
    return payments
