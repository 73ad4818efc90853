"""What staking earns and what using the chain costs: rewards, the price of gas, the continuous fee of L1 validators.

Integers only, in the order in which the node divides.
"""

import msgspec

from icefall.pchain.parameters import DynamicFees, RewardParameters, ValidatorFees
from icefall.wire.pvm import types as t
from icefall.wire.pvm.warp import unpack_message

SHARES_MAX = 1_000_000  # the whole of a reward, in millionths
_NS = 10**9
_UINT64_MAX = (1 << 64) - 1
_SIGNATURE, _KEY_PROOF, _WARP_MESSAGE, _WARP_SIGNER, _WARP_READS = 200, 1_050, 1_000, 5, 23


# -- rewards -------------------------------------------------------------------------------------------------------


def potential_reward(rates: RewardParameters, duration_s: int, amount: int, supply: int) -> int:
    """What a stake of `amount` over this time mints, if `supply` exists already."""
    duration, period = duration_s * _NS, rates.minting_period_s * _NS
    rate = (rates.max_consumption_rate - rates.min_consumption_rate) * duration + rates.min_consumption_rate * period
    remaining = rates.supply_cap - supply
    reward = remaining * rate * amount * duration // (period * SHARES_MAX) // supply // period
    return min(reward, remaining)


def split_reward(reward: int, shares: int) -> tuple[int, int]:
    """What of a delegation's reward its validator gets, and what the delegator. `shares` are in millionths."""
    rest = SHARES_MAX - shares
    net = rest * reward // SHARES_MAX if rest * reward <= _UINT64_MAX else rest * (reward // SHARES_MAX)
    return reward - net, net


# -- gas -----------------------------------------------------------------------------------------------------------


def fake_exponential(factor: int, numerator: int, denominator: int) -> int:
    """Approximate factor * e**(numerator / denominator) with integers, as the node does."""
    i, term, total = 1, factor * denominator, 0
    while term > 0:
        total += term
        term = term * numerator // (denominator * i)
        i += 1
        if total > _UINT64_MAX * denominator:
            return _UINT64_MAX
    return min(total // denominator, _UINT64_MAX)


class FeeState(msgspec.Struct, frozen=True, gc=False):
    """How much gas may be used now, and how much more than the target was used lately."""

    capacity: int = 0
    excess: int = 0

    def after(self, fees: DynamicFees, seconds: int) -> "FeeState":
        """The state when so much time has passed."""
        capacity = min(self.capacity + fees.max_per_second * seconds, fees.max_capacity)
        return FeeState(capacity, max(0, self.excess - fees.target_per_second * seconds))

    def used(self, gas: int) -> "FeeState | None":
        """The state after a block of this gas; None if there is not so much."""
        return None if gas > self.capacity else FeeState(self.capacity - gas, min(self.excess + gas, _UINT64_MAX))

    def price(self, fees: DynamicFees) -> int:
        """The price of gas in nAVAX."""
        return fake_exponential(fees.min_price, self.excess, fees.excess_conversion_constant)


# type of transaction -> reads, writes and compute besides its inputs, outputs, signatures and messages
_INTRINSIC: dict[type, tuple[int, int, int]] = {
    t.PlatformBaseTx: (0, 0, 0),
    t.PlatformImportTx: (0, 0, 0),
    t.PlatformExportTx: (0, 0, 0),
    t.CreateSubnetTx: (0, 1, 0),
    t.CreateChainTx: (3, 1, 0),
    t.AddSubnetValidatorTx: (3, 3, 0),
    t.RemoveSubnetValidatorTx: (1, 3, 0),
    t.TransferSubnetOwnershipTx: (1, 1, 0),
    t.AddPermissionlessValidatorTx: (1, 3, 0),
    t.AddPermissionlessDelegatorTx: (1, 2, 0),
    t.ConvertSubnetToL1Tx: (3, 2, 0),
    t.RegisterL1ValidatorTx: (5 + _WARP_READS, 6, _KEY_PROOF + _WARP_MESSAGE),
    t.SetL1ValidatorWeightTx: (3 + _WARP_READS, 5, _WARP_MESSAGE),
    t.IncreaseL1ValidatorBalanceTx: (1, 5, 0),
    t.DisableL1ValidatorTx: (1, 6, 0),
}


def gas_of(tx: t.PlatformTx, fees: DynamicFees) -> int | None:
    """The gas of a transaction; None for types that have none, because they are not accepted any more."""
    unsigned = tx.unsigned
    row = _INTRINSIC.get(type(unsigned))
    if row is None or not isinstance(unsigned, t.PlatformBaseTx):
        return None
    reads, writes, compute = row
    inputs = unsigned.inputs
    outputs = len(unsigned.outputs)
    if isinstance(unsigned, t.PlatformImportTx):
        inputs = inputs + unsigned.imported_inputs
    elif isinstance(unsigned, t.PlatformExportTx):
        outputs += len(unsigned.exported_outputs)
    elif isinstance(unsigned, t.AddPermissionlessValidatorTx | t.AddPermissionlessDelegatorTx):
        outputs += len(unsigned.stake)
        if isinstance(unsigned, t.AddPermissionlessValidatorTx) and unsigned.signer is not None:
            compute += _KEY_PROOF
    elif isinstance(unsigned, t.ConvertSubnetToL1Tx):
        writes += 4 * len(unsigned.validators)
        compute += _KEY_PROOF * len(unsigned.validators)
    elif isinstance(unsigned, t.RegisterL1ValidatorTx | t.SetL1ValidatorWeightTx):
        compute += _WARP_SIGNER * unpack_message(unsigned.message).signers_count
    signatures = len(getattr(unsigned, "authorization", ()))
    for one in inputs:
        spending = one.input.input if isinstance(one.input, t.StakeableInput) else one.input
        signatures += len(spending.signature_indices)
    reads += len(inputs)
    writes += len(inputs) + outputs
    of_bandwidth, of_read, of_write, of_compute = fees.weights
    compute += _SIGNATURE * signatures
    return len(tx.raw) * of_bandwidth + reads * of_read + writes * of_write + compute * of_compute


# -- L1 validators -------------------------------------------------------------------------------------------------


def validator_price(fees: ValidatorFees, excess: int) -> int:
    """What an active L1 validator pays per second."""
    return fake_exponential(fees.min_price, excess, fees.excess_conversion_constant)


def validator_cost(fees: ValidatorFees, active: int, excess: int, seconds: int) -> int:
    """What each active L1 validator pays for the next `seconds`, if their number stays."""
    if active == fees.target:
        return min(seconds * validator_price(fees, excess), _UINT64_MAX)
    cost = 0
    for passed in range(seconds):
        if excess == 0 and active < fees.target:
            return min(cost + (seconds - passed) * fees.min_price, _UINT64_MAX)
        excess = max(0, excess + active - fees.target)
        cost += validator_price(fees, excess)
        if cost >= _UINT64_MAX:
            return _UINT64_MAX
    return cost


def validator_excess(fees: ValidatorFees, active: int, excess: int, seconds: int) -> int:
    """The excess after so much time."""
    return min(max(0, excess + (active - fees.target) * seconds), _UINT64_MAX)
