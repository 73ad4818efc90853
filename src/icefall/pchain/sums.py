"""Sums over stakers, kept while blocks are executed: the delegations to each validator, and what is staked in each
subnet at the end of each day. Sums can exceed 64 bits, so they are stored as text."""

import msgspec

from icefall.pchain.fees import split_reward
from icefall.pchain.model import L1Validator, PlatformStaker, Priority, plain_output
from icefall.pchain.parameters import StakingLimits
from icefall.wire.pvm import types as t

DAY_S = 24 * 3600
ALL_SUBNETS = b""  # stands for the sums over all subnets, the primary network included


class DelegationSums(msgspec.Struct, frozen=True, gc=False):
    """The delegations to a validator: those of now, with its share of their potential rewards; all of its period; what
    it was paid of that share when delegations ended; and how much more may be delegated."""

    count: int = 0
    weight: int = 0
    fees: int = 0
    ever_count: int = 0
    ever_weight: int = 0
    prepaid: int = 0
    capacity: int = 0


class StakeTotal(msgspec.Struct, frozen=True, gc=False):
    """What is staked in a subnet: its validators, those of an L1 included, its delegators, and their potential
    rewards."""

    validators: int = 0
    validator_weight: int = 0
    delegators: int = 0
    delegator_weight: int = 0
    reward: int = 0


def capacity_of(limits: StakingLimits, validator: PlatformStaker, delegated: int) -> int:
    """How much more may be delegated to a validator of the primary network. Others have no such number here."""
    if validator.priority != Priority.VALIDATOR:
        return 0
    most = min(limits.max_weight_factor * validator.weight, limits.max_validator_stake)
    return max(0, most - validator.weight - delegated)


class StakeBook:
    """The sums. `delegations` are by the validator's transaction; `touched` are the subnets whose total has changed
    since the last block."""

    def __init__(self, limits: StakingLimits) -> None:
        self._limits = limits
        self.totals: dict[bytes, StakeTotal] = {}
        self.delegations: dict[bytes, DelegationSums] = {}
        self.touched: set[bytes] = set()

    def count_staker(self, staker: PlatformStaker, sign: int) -> None:
        """Add a current staker to the totals, or with sign -1 take it out."""
        weight = sign * staker.weight
        if staker.is_delegator:
            self._add(staker.subnet_id, StakeTotal(0, 0, sign, weight, sign * staker.potential_reward))
        else:
            self._add(staker.subnet_id, StakeTotal(sign, weight, 0, 0, sign * staker.potential_reward))

    def count_l1(self, validator: L1Validator, sign: int) -> None:
        """Add a validator of an L1, active or not, or take it out."""
        if not validator.is_removed:
            self._add(validator.subnet_id, StakeTotal(sign, sign * validator.weight))

    def _add(self, subnet_id: bytes, change: StakeTotal) -> None:
        for key in (subnet_id, ALL_SUBNETS):
            before = self.totals.get(key, StakeTotal())
            added = zip(msgspec.structs.astuple(before), msgspec.structs.astuple(change), strict=True)
            self.totals[key] = StakeTotal(*[one + other for one, other in added])
            self.touched.add(key)

    def begin_validator(self, validator: PlatformStaker) -> DelegationSums:
        """Count a validator. Before Banff its delegators come first if they begin at the same second."""
        before = self.delegations.get(validator.txid, DelegationSums())
        found = msgspec.structs.replace(before, capacity=capacity_of(self._limits, validator, before.weight))
        self.delegations[validator.txid] = found
        return found

    def delegate(self, validator: PlatformStaker, delegator: PlatformStaker, sign: int) -> DelegationSums:
        """Count a delegation that begins, or with sign -1 one that ends."""
        before = self.delegations.get(validator.txid, DelegationSums())
        fee, _ = split_reward(delegator.potential_reward, validator.shares)
        begun, weight = max(sign, 0), before.weight + sign * delegator.weight
        found = DelegationSums(
            before.count + sign,
            weight,
            before.fees + sign * fee,
            before.ever_count + begun,
            before.ever_weight + begun * delegator.weight,
            before.prepaid,
            capacity_of(self._limits, validator, weight),
        )
        self.delegations[validator.txid] = found
        return found

    def prepay(self, validator: PlatformStaker, fee: int) -> DelegationSums:
        """Note what a validator is paid when a delegation ends, as it was before Cortina."""
        before = self.delegations.get(validator.txid, DelegationSums())
        found = msgspec.structs.replace(before, prepaid=before.prepaid + fee)
        self.delegations[validator.txid] = found
        return found


def burned_by(unsigned: t.UnsignedTx, asset_id: bytes) -> int:
    """How much of an asset a transaction consumes and neither makes, stakes, exports nor pays into balances."""
    if not isinstance(unsigned, t.PlatformBaseTx):
        return 0
    taken, made = unsigned.inputs, unsigned.outputs
    if type(unsigned) is not t.PlatformBaseTx:
        taken += getattr(unsigned, "imported_inputs", ())
        made += getattr(unsigned, "exported_outputs", ()) + getattr(unsigned, "stake", ())
    left = -balance_paid(unsigned)
    for given in taken:
        if given.asset_id == asset_id:
            left += _input_amount(given)
    for out in made:
        if out.asset_id == asset_id:
            left -= plain_output(out.output)[0]
    return left


def _input_amount(given: t.PlatformInput) -> int:
    return given.input.input.amount if isinstance(given.input, t.StakeableInput) else given.input.amount


def balance_paid(unsigned: t.UnsignedTx) -> int:
    """What a transaction pays into the balances of L1 validators, in nAVAX."""
    if isinstance(unsigned, t.ConvertSubnetToL1Tx):
        return sum(one.balance for one in unsigned.validators)
    if isinstance(unsigned, t.RegisterL1ValidatorTx | t.IncreaseL1ValidatorBalanceTx):
        return unsigned.balance
    return 0
