"""What each type of transaction does to the state. Signatures and flow are not verified again: blocks are final."""

from collections.abc import Callable
from typing import Annotated

import msgspec

from icefall.pchain.model import (
    ChainRow,
    ExecutionFailed,
    Exported,
    Imported,
    L1Validator,
    PlatformStaker,
    Priority,
    StakerState,
    Subnet,
    UtxoKind,
    UtxoState,
    is_primary,
    plain_output,
)
from icefall.pchain.parameters import RewardParameters
from icefall.pchain.state import PlatformState
from icefall.pchain.sums import burned_by
from icefall.wire.avm.types import Owners, TransferOutput
from icefall.wire.ids import id_text, input_id
from icefall.wire.pvm import types as t
from icefall.wire.pvm.codec import pack_utxo
from icefall.wire.pvm.warp import conversion_id, first_validation_id, registration_in, weight_in

WithStake = t.AddValidatorTx | t.AddDelegatorTx | t.AddPermissionlessValidatorTx | t.AddPermissionlessDelegatorTx
Staking = WithStake | t.AddSubnetValidatorTx

# type of transaction -> the fork from which it is accepted; and that from which it is not
_FROM: dict[type, str] = {
    t.AddPermissionlessValidatorTx: "banff",
    t.AddPermissionlessDelegatorTx: "banff",
    t.RemoveSubnetValidatorTx: "banff",
    t.TransformSubnetTx: "banff",
    t.PlatformBaseTx: "durango",
    t.TransferSubnetOwnershipTx: "durango",
    t.ConvertSubnetToL1Tx: "etna",
    t.RegisterL1ValidatorTx: "etna",
    t.SetL1ValidatorWeightTx: "etna",
    t.IncreaseL1ValidatorBalanceTx: "etna",
    t.DisableL1ValidatorTx: "etna",
}
_UNTIL: dict[type, str] = {t.AddValidatorTx: "durango", t.AddDelegatorTx: "durango", t.TransformSubnetTx: "etna"}


def execute_tx(state: PlatformState, tx: t.PlatformTx, height: int) -> None:
    """Apply a transaction that takes effect with its block, or a proposal that was committed."""
    kind = type(tx.unsigned)
    special = _EFFECTS.get(kind)
    if special is None:
        raise ExecutionFailed(f"transaction {id_text(tx.txid)} of type {tx.unsigned.type_id} cannot stand there")
    _check_fork(state, tx, kind)
    seq = _transfer(state, tx, height, is_committed=True)
    state.burned += burned_by(tx.unsigned, state.parameters.avax_asset_id)
    special(state, tx, seq)


def _check_fork(state: PlatformState, tx: t.PlatformTx, kind: type) -> None:
    """A transaction at a time that does not know its type shows that we have other fork times than the network."""
    begin, end = _FROM.get(kind), _UNTIL.get(kind)
    if begin is None and end is None:
        return
    forks = state.parameters.forks
    if (begin and state.time < getattr(forks, begin)) or (end and state.time >= getattr(forks, end)):
        raise ExecutionFailed(
            f"transaction {id_text(tx.txid)} of type {tx.unsigned.type_id} is not possible at {state.time} with the "
            f"fork times that are set here: {begin or end} at {getattr(forks, begin or end or '')}"
        )


def abort_staking(state: PlatformState, tx: t.PlatformTx, height: int) -> None:
    """Apply a staking proposal that was aborted: its stake is given back at once, behind its other outputs."""
    seq = _transfer(state, tx, height, is_committed=False)
    state.burned += burned_by(tx.unsigned, state.parameters.avax_asset_id)
    assert isinstance(tx.unsigned, t.PlatformBaseTx)
    for index, out in enumerate(stake_of(tx.unsigned), len(tx.unsigned.outputs)):
        state.add_utxo(t.PlatformUtxo(tx.txid, index, out.asset_id, out.output), seq)
    note_payees(state, tx.unsigned, seq)


def reward_owner_of(unsigned: t.UnsignedTx) -> Owners | None:
    """Who gets the reward of a stake itself; what a validator takes of its delegators' may go to others."""
    owner = getattr(unsigned, "validation_rewards_owner", None) or getattr(unsigned, "rewards_owner", None)
    assert owner is None or isinstance(owner, Owners)
    return owner


def note_payees(state: PlatformState, unsigned: t.UnsignedTx, seq: int) -> None:
    """A transaction that stakes is one of those who get its reward too."""
    owner = reward_owner_of(unsigned)
    if owner is not None:
        state.changes.payees.update((address, seq) for address in owner.addresses)


def stake_of(unsigned: t.UnsignedTx) -> tuple[t.PlatformOutput, ...]:
    """The outputs that a transaction locks as its stake."""
    return unsigned.stake if isinstance(unsigned, WithStake) else ()


def _transfer(state: PlatformState, tx: t.PlatformTx, height: int, *, is_committed: bool) -> int:
    unsigned = tx.unsigned
    assert isinstance(unsigned, t.PlatformBaseTx)
    seq = state.add_tx(tx, height, is_committed=is_committed)
    for one in unsigned.inputs:
        spending = one.input.input if isinstance(one.input, t.StakeableInput) else one.input
        state.spend(input_id(one.txid, one.output_index), one.asset_id, spending.amount, seq)
    for index, out in enumerate(unsigned.outputs):
        state.add_utxo(t.PlatformUtxo(tx.txid, index, out.asset_id, out.output), seq)
    return seq


def _nothing(state: PlatformState, tx: t.PlatformTx, seq: int) -> None:
    """A plain transfer."""


def _import(state: PlatformState, tx: t.PlatformTx, seq: int) -> None:
    unsigned = tx.unsigned
    assert isinstance(unsigned, t.PlatformImportTx)
    taken = [input_id(one.txid, one.output_index) for one in unsigned.imported_inputs]
    state.changes.imported += [Imported(unsigned.source_chain, utxo_id) for utxo_id in taken]


def _export(state: PlatformState, tx: t.PlatformTx, seq: int) -> None:
    unsigned = tx.unsigned
    assert isinstance(unsigned, t.PlatformExportTx)
    for index, out in enumerate(unsigned.exported_outputs, len(unsigned.outputs)):
        addresses = plain_output(out.output)[2].addresses
        raw = pack_utxo(t.PlatformUtxo(tx.txid, index, out.asset_id, out.output))
        state.changes.exported.append(Exported(unsigned.destination_chain, input_id(tx.txid, index), raw, addresses))
        state.changes.address_txs.update([(address, seq) for address in addresses])


# -- subnets -------------------------------------------------------------------------------------------------------


def _create_subnet(state: PlatformState, tx: t.PlatformTx, seq: int) -> None:
    assert isinstance(tx.unsigned, t.CreateSubnetTx)
    state.put_subnet(Subnet(tx.txid, tx.unsigned.owner, seq))


def _create_chain(state: PlatformState, tx: t.PlatformTx, seq: int) -> None:
    unsigned = tx.unsigned
    assert isinstance(unsigned, t.CreateChainTx)
    state.changes.chains.append(
        ChainRow(tx.txid, unsigned.subnet_id, unsigned.chain_name, unsigned.vm_id, seq, _evm_chain_id(unsigned.genesis))
    )


class _ConfigWithId(msgspec.Struct):
    chainId: Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)]  # noqa: N815


class _GenesisWithId(msgspec.Struct):
    config: _ConfigWithId


def _evm_chain_id(genesis: bytes) -> int | None:
    """The chain ID in the genesis of an EVM chain; None where it is none."""
    try:
        return msgspec.json.decode(genesis, type=_GenesisWithId).config.chainId
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _transfer_ownership(state: PlatformState, tx: t.PlatformTx, seq: int) -> None:
    unsigned = tx.unsigned
    assert isinstance(unsigned, t.TransferSubnetOwnershipTx)
    state.put_subnet(msgspec.structs.replace(state.subnet(unsigned.subnet_id), owner=unsigned.owner))


def _transform(state: PlatformState, tx: t.PlatformTx, seq: int) -> None:
    unsigned = tx.unsigned
    assert isinstance(unsigned, t.TransformSubnetTx)
    state.put_subnet(
        msgspec.structs.replace(
            state.subnet(unsigned.subnet_id),
            transformation_txid=tx.txid,
            asset_id=unsigned.asset_id,
            rewards=RewardParameters(
                unsigned.min_consumption_rate,
                unsigned.max_consumption_rate,
                state.parameters.rewards.minting_period_s,  # that of the primary network
                unsigned.maximum_supply,
            ),
            min_validator_stake=unsigned.min_validator_stake,
            min_delegator_stake=unsigned.min_delegator_stake,
        )
    )
    state.set_supply(unsigned.subnet_id, unsigned.initial_supply)


def _remove_subnet_validator(state: PlatformState, tx: t.PlatformTx, seq: int) -> None:
    unsigned = tx.unsigned
    assert isinstance(unsigned, t.RemoveSubnetValidatorTx)
    at = unsigned.subnet_id, unsigned.node_id
    staker = state.current.validator(*at) or state.pending.validator(*at)
    if staker is None:
        raise ExecutionFailed(f"transaction {id_text(tx.txid)} removes a validator that is not there")
    state.end(staker, StakerState.REMOVED, seq)


# -- staking -------------------------------------------------------------------------------------------------------

# type of transaction, whether it is of the primary network -> pending and current priority
_PRIORITIES = {
    (t.AddValidatorTx, True): (Priority.PENDING_VALIDATOR, Priority.VALIDATOR),
    (t.AddDelegatorTx, True): (Priority.PENDING_APRICOT_DELEGATOR, Priority.DELEGATOR),
    (t.AddSubnetValidatorTx, False): (Priority.PENDING_PERMISSIONED, Priority.PERMISSIONED),
    (t.AddPermissionlessValidatorTx, True): (Priority.PENDING_VALIDATOR, Priority.VALIDATOR),
    (t.AddPermissionlessValidatorTx, False): (Priority.PENDING_SUBNET_VALIDATOR, Priority.SUBNET_VALIDATOR),
    (t.AddPermissionlessDelegatorTx, True): (Priority.PENDING_DELEGATOR, Priority.DELEGATOR),
    (t.AddPermissionlessDelegatorTx, False): (Priority.PENDING_SUBNET_DELEGATOR, Priority.SUBNET_DELEGATOR),
}


def staker_of(tx: t.PlatformTx, priority_index: int) -> PlatformStaker:
    """The staker of a transaction, with the time that it names and no reward yet. Index 0: pending, 1: current."""
    unsigned = tx.unsigned
    subnet_id = getattr(unsigned, "subnet_id", bytes(32))
    rows = _PRIORITIES.get((type(unsigned), is_primary(subnet_id)))
    if rows is None or not isinstance(unsigned, Staking):
        raise ExecutionFailed(f"transaction {id_text(tx.txid)} is none that stakes there")
    owners: tuple[Owners | None, Owners | None] = (None, None)
    shares, signer = 0, None
    if isinstance(unsigned, t.AddPermissionlessValidatorTx):
        owners = unsigned.validation_rewards_owner, unsigned.delegation_rewards_owner
        shares, signer = unsigned.shares, unsigned.signer
    elif isinstance(unsigned, t.AddValidatorTx):
        owners, shares = (unsigned.rewards_owner, unsigned.rewards_owner), unsigned.shares
    elif not isinstance(unsigned, t.AddSubnetValidatorTx):
        owners = unsigned.rewards_owner, None
    of = unsigned.validator
    return PlatformStaker(
        tx.txid, subnet_id, of.node_id, of.weight, of.start, of.end, 0, rows[priority_index], shares, *owners, signer
    )


def _stake(state: PlatformState, tx: t.PlatformTx, seq: int) -> None:
    """A staker begins with its block from Durango on; before, it waits for the start that it names."""
    if state.time >= state.parameters.forks.durango:
        staker = staker_of(tx, 1)
        reward = 0
        if staker.validation_owner is not None:
            reward = state.mint(staker.subnet_id, staker.end - state.time, staker.weight)
        staker = msgspec.structs.replace(staker, start=state.time, potential_reward=reward, seq=seq)
    else:
        staker = msgspec.structs.replace(staker_of(tx, 0), seq=seq)
    state.add_staker(staker)
    put_stake(state, tx, staker, seq)


def put_stake(state: PlatformState, tx: t.PlatformTx, staker: PlatformStaker, seq: int) -> None:
    """Note the outputs at stake, and who gets the reward. They have numbers behind the other outputs and become unspent
    when the stake ends."""
    assert isinstance(tx.unsigned, t.PlatformBaseTx)
    note_payees(state, tx.unsigned, seq)
    for index, out in enumerate(stake_of(tx.unsigned), len(tx.unsigned.outputs)):
        row = state.add_utxo(t.PlatformUtxo(tx.txid, index, out.asset_id, out.output), seq, UtxoKind.STAKE)
        row.state, row.stake_start, row.stake_end = UtxoState.STAKED, staker.start, staker.end


# -- L1s -----------------------------------------------------------------------------------------------------------


def _end_of(state: PlatformState, balance: int) -> int:
    return state.accrued_fees + balance if balance else 0


def _convert(state: PlatformState, tx: t.PlatformTx, seq: int) -> None:
    unsigned = tx.unsigned
    assert isinstance(unsigned, t.ConvertSubnetToL1Tx)
    state.put_subnet(
        msgspec.structs.replace(
            state.subnet(unsigned.subnet_id),
            conversion_id=conversion_id(unsigned),
            manager_chain_id=unsigned.chain_id,
            manager_address=unsigned.address,
            conversion_txid=tx.txid,
        )
    )
    for position, one in enumerate(unsigned.validators):
        state.put_l1(
            L1Validator(
                first_validation_id(unsigned.subnet_id, position),
                unsigned.subnet_id,
                one.node_id,
                one.signer.public_key,
                one.weight,
                state.time,
                0,
                _end_of(state, one.balance),
                one.remaining_balance_owner,
                one.deactivation_owner,
                proof_of_possession=one.signer.proof_of_possession,
            )
        )


def _register(state: PlatformState, tx: t.PlatformTx, seq: int) -> None:
    unsigned = tx.unsigned
    assert isinstance(unsigned, t.RegisterL1ValidatorTx)
    message = registration_in(unsigned.message)
    if message.validation_id in state.l1:
        raise ExecutionFailed(f"L1 validator {id_text(message.validation_id)} is registered already")
    state.put_l1(
        L1Validator(
            message.validation_id,
            message.subnet_id,
            message.node_id,
            message.public_key,
            message.weight,
            state.time,
            0,
            _end_of(state, unsigned.balance),
            message.remaining_balance_owner,
            message.deactivation_owner,
            proof_of_possession=unsigned.proof_of_possession,
        )
    )


def _refund(state: PlatformState, tx: t.PlatformTx, seq: int, validator: L1Validator) -> None:
    """Pay back what is left of an active validator's balance, behind the transaction's own outputs."""
    if not validator.is_active:
        return
    assert isinstance(tx.unsigned, t.PlatformBaseTx)
    owner = validator.remaining_balance_owner
    output = TransferOutput(
        validator.end_accumulated_fee - state.accrued_fees, Owners(0, owner.threshold, owner.addresses)
    )
    asset_id = state.parameters.avax_asset_id
    state.add_utxo(t.PlatformUtxo(tx.txid, len(tx.unsigned.outputs), asset_id, output), seq)


def _set_weight(state: PlatformState, tx: t.PlatformTx, seq: int) -> None:
    assert isinstance(tx.unsigned, t.SetL1ValidatorWeightTx)
    message = weight_in(tx.unsigned.message)
    validator = state.l1_validator(message.validation_id)
    changed = msgspec.structs.replace(validator, weight=message.weight, min_nonce=message.nonce + 1)
    if message.weight == 0:
        _refund(state, tx, seq, validator)
        changed = msgspec.structs.replace(validator, is_removed=True)
    state.put_l1(changed)


def _increase_balance(state: PlatformState, tx: t.PlatformTx, seq: int) -> None:
    assert isinstance(tx.unsigned, t.IncreaseL1ValidatorBalanceTx)
    validator = state.l1_validator(tx.unsigned.validation_id)
    end = (validator.end_accumulated_fee if validator.is_active else state.accrued_fees) + tx.unsigned.balance
    state.put_l1(msgspec.structs.replace(validator, end_accumulated_fee=end))


def _disable(state: PlatformState, tx: t.PlatformTx, seq: int) -> None:
    assert isinstance(tx.unsigned, t.DisableL1ValidatorTx)
    validator = state.l1_validator(tx.unsigned.validation_id)
    _refund(state, tx, seq, validator)
    state.put_l1(msgspec.structs.replace(validator, end_accumulated_fee=0))  # noted too where it was inactive already


_EFFECTS: dict[type, Callable[[PlatformState, t.PlatformTx, int], None]] = {
    t.PlatformBaseTx: _nothing,
    t.AddValidatorTx: _stake,
    t.AddSubnetValidatorTx: _stake,
    t.AddDelegatorTx: _stake,
    t.CreateChainTx: _create_chain,
    t.CreateSubnetTx: _create_subnet,
    t.PlatformImportTx: _import,
    t.PlatformExportTx: _export,
    t.RemoveSubnetValidatorTx: _remove_subnet_validator,
    t.TransformSubnetTx: _transform,
    t.AddPermissionlessValidatorTx: _stake,
    t.AddPermissionlessDelegatorTx: _stake,
    t.TransferSubnetOwnershipTx: _transfer_ownership,
    t.ConvertSubnetToL1Tx: _convert,
    t.RegisterL1ValidatorTx: _register,
    t.SetL1ValidatorWeightTx: _set_weight,
    t.IncreaseL1ValidatorBalanceTx: _increase_balance,
    t.DisableL1ValidatorTx: _disable,
}
