"""What a network fixes for its P-Chain: fork times, staking limits, reward and fee parameters."""

from datetime import datetime
from typing import Any

import msgspec

from icefall.wire.errors import WireError
from icefall.wire.ids import FUJI_ID, MAINNET_ID

AVAX = 10**9  # in nAVAX
_DAY_S = 24 * 3600
_FOR_OTHERS = 1_607_144_400  # networks of one's own run every upgrade from 2020-12-05 05:00 on


class ForkTimes(msgspec.Struct, frozen=True):
    """When each upgrade that changes the P-Chain begins, by chain time in Unix seconds."""

    apricot_phase_5: int
    banff: int
    cortina: int
    durango: int
    etna: int


class RewardParameters(msgspec.Struct, frozen=True):
    """How much is minted for a stake. Rates are in millionths."""

    min_consumption_rate: int = 100_000
    max_consumption_rate: int = 120_000
    minting_period_s: int = 365 * _DAY_S
    supply_cap: int = 720_000_000 * AVAX


class StakingLimits(msgspec.Struct, frozen=True):
    """What getMinStake answers for the primary network, and how much may be delegated: a validator with its delegators
    weighs at most `max_weight_factor` times its own stake, and never more than `max_validator_stake`."""

    min_validator_stake: int = 2_000 * AVAX
    min_delegator_stake: int = 25 * AVAX
    max_validator_stake: int = 3_000_000 * AVAX
    max_weight_factor: int = 5


class DynamicFees(msgspec.Struct, frozen=True):
    """The price of gas (ACP-103): `weights` are of bandwidth, reads, writes and compute."""

    weights: tuple[int, int, int, int] = (1, 1_000, 1_000, 4)
    max_capacity: int = 1_000_000
    max_per_second: int = 100_000
    target_per_second: int = 50_000
    min_price: int = 1
    excess_conversion_constant: int = 2_164_043


class ValidatorFees(msgspec.Struct, frozen=True):
    """The continuous fee of an active L1 validator (ACP-77), in nAVAX per second."""

    capacity: int = 20_000
    target: int = 10_000
    min_price: int = 1
    excess_conversion_constant: int = 865_617


class PlatformParameters(msgspec.Struct, frozen=True):
    """All of them. `avax_asset_id` is the asset of stakes, rewards and fees of the primary network."""

    network_id: int
    avax_asset_id: bytes
    forks: ForkTimes
    rewards: RewardParameters = RewardParameters()
    limits: StakingLimits = StakingLimits()
    fees: DynamicFees = DynamicFees()
    validator_fees: ValidatorFees = ValidatorFees()


_FORKS = {
    MAINNET_ID: ForkTimes(1_638_468_000, 1_666_108_800, 1_682_434_800, 1_709_740_800, 1_734_368_400),
    FUJI_ID: ForkTimes(1_637_766_000, 1_664_805_600, 1_680_793_200, 1_707_840_000, 1_732_550_400),
}
_LIMITS = {FUJI_ID: StakingLimits(1 * AVAX, 1 * AVAX)}
_VALIDATOR_FEES = {
    MAINNET_ID: ValidatorFees(min_price=512, excess_conversion_constant=1_246_488_515),
    FUJI_ID: ValidatorFees(min_price=512, excess_conversion_constant=51_937_021),
}


def parameters_of(
    network_id: int,
    avax_asset_id: bytes,
    forks: ForkTimes | None = None,
    rewards: RewardParameters | None = None,
    limits: StakingLimits | None = None,
) -> PlatformParameters:
    """The parameters of a network. What is given counts for networks of one's own; public ones have theirs fixed."""
    if network_id in _FORKS:
        forks, rewards, limits = None, None, None
    return PlatformParameters(
        network_id,
        avax_asset_id,
        forks or _FORKS.get(network_id) or ForkTimes(*[_FOR_OTHERS] * 5),
        rewards or RewardParameters(),
        limits or _LIMITS.get(network_id, StakingLimits()),
        validator_fees=_VALIDATOR_FEES.get(network_id, ValidatorFees()),
    )


FORK_NAMES = ("apricotPhase5Time", "banffTime", "cortinaTime", "durangoTime", "etnaTime")


def fork_times(upgrades: dict[str, Any]) -> ForkTimes:
    """Read fork times from an upgrade file of the node, or from what `info.upgrades` answers."""
    return ForkTimes(*[fork_time(upgrades, name) for name in FORK_NAMES])


def fork_time(upgrades: dict[str, Any], name: str) -> int:
    """Read one of them, in Unix seconds."""
    text = upgrades.get(name)
    try:
        return int(datetime.fromisoformat(str(text).replace("Z", "+00:00")).timestamp())
    except ValueError as error:
        raise WireError(f"{name} must be a time such as 2024-03-06T16:00:00Z, got {text!r}") from error
