"""The reward of a stake, and how a delegation's reward is split. Integers only, in the order the node divides."""

from icefall.pchain.parameters import RewardParameters

SHARES_MAX = 1_000_000  # the whole of a reward, in millionths
_NS = 10**9
_UINT64_MAX = (1 << 64) - 1


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
