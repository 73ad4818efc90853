"""Numbers of the P-Chain: rewards, the price of gas, the continuous fee, the order of stakers, fork times."""

import msgspec
import pytest

from icefall.pchain.fees import (
    FeeState,
    fake_exponential,
    potential_reward,
    split_reward,
    validator_cost,
    validator_excess,
)
from icefall.pchain.model import L1Validator, PlatformStaker, Priority
from icefall.pchain.parameters import AVAX, DynamicFees, RewardParameters, ValidatorFees, fork_times, parameters_of
from icefall.pchain.stakers import StakerSet, ValidatorSets
from icefall.pchain.store import packed_members, signed, unpacked_members, unsigned
from icefall.wire.errors import WireError
from icefall.wire.ids import EMPTY_SHORT_ID, FUJI_ID, MAINNET_ID, PRIMARY_NETWORK, hash256
from icefall.wire.pvm.types import Committee

RATES = RewardParameters()
YEAR_S = 365 * 24 * 3600
NO_OWNER = Committee(0, ())


def staker(name: bytes, end: int, priority: Priority, weight: int = 1, node: bytes = b"n" * 20) -> PlatformStaker:
    return PlatformStaker(hash256(name), PRIMARY_NETWORK, node, weight, 0, end, 0, priority)


def test_rewards_grow_with_time_and_never_pass_the_cap() -> None:
    supply = 360_000_000 * AVAX
    whole = potential_reward(RATES, YEAR_S, 2_000 * AVAX, supply)
    assert whole == 2_000 * AVAX * 12 // 100  # a whole period at the highest rate, while half of the cap is minted
    assert 2 * potential_reward(RATES, YEAR_S // 2, 2_000 * AVAX, supply) < whole
    assert potential_reward(RATES, YEAR_S, supply * 1000, supply) == RATES.supply_cap - supply
    assert potential_reward(RATES, YEAR_S, AVAX, RATES.supply_cap) == 0


@pytest.mark.parametrize(
    ("reward", "shares", "expected"),
    [(1_000, 20_000, (20, 980)), (1_001, 20_000, (21, 980)), (7, 1_000_000, (7, 0)), (7, 0, (0, 7)), (0, 5, (0, 0))],
)
def test_a_reward_is_split_with_the_rest_to_the_validator(reward: int, shares: int, expected: tuple[int, int]) -> None:
    assert split_reward(reward, shares) == expected


def test_a_split_that_would_overflow_divides_first() -> None:
    reward = (1 << 63) + 1_234_567
    fee, net = split_reward(reward, 20_000)
    assert (fee + net, net) == (reward, 980_000 * (reward // 1_000_000))


def test_the_price_of_gas_follows_its_excess() -> None:
    fees = DynamicFees()
    state = FeeState(capacity=10, excess=1_000_000)
    assert state.after(fees, 3) == FeeState(300_010, 850_000)
    assert state.after(fees, 1_000) == FeeState(fees.max_capacity, 0)
    assert (state.used(11), state.used(10)) == (None, FeeState(0, 1_000_010))
    assert FeeState(0, 0).price(fees) == 1
    assert FeeState(0, fees.excess_conversion_constant).price(fees) == 2  # e, rounded down
    assert fake_exponential(1, 10**9, 1) == (1 << 64) - 1


def test_the_continuous_fee_doubles_up_second_by_second() -> None:
    fees = ValidatorFees(min_price=512, excess_conversion_constant=51_937_021)
    assert validator_cost(fees, 0, 0, 86_400 * 365) == 512 * 86_400 * 365
    assert validator_cost(fees, fees.target, 10**8, 7) == 7 * fake_exponential(512, 10**8, 51_937_021)
    prices = [fake_exponential(512, 2_000 * second, 51_937_021) for second in range(1, 5)]
    assert validator_cost(fees, fees.target + 2_000, 0, 4) == sum(prices)
    assert validator_cost(fees, fees.target - 10, 25, 9) == sum(
        fake_exponential(512, max(0, 25 - 10 * second), 51_937_021) for second in range(1, 10)
    )
    assert validator_excess(fees, fees.target - 10, 25, 9) == 0
    assert validator_excess(fees, fees.target + 10, 25, 9) == 115


def test_stakers_end_by_time_then_priority_then_transaction() -> None:
    stakers = [
        staker(b"a", 5, Priority.VALIDATOR),
        staker(b"b", 5, Priority.DELEGATOR),
        staker(b"c", 4, Priority.VALIDATOR, node=b"m" * 20),
        staker(b"d", 5, Priority.DELEGATOR),
    ]
    current = StakerSet(pending=False)
    for one in stakers:
        current.add(one)
    delegators = sorted((stakers[1], stakers[3]), key=lambda one: one.txid)
    assert list(current) == [stakers[2], *delegators, stakers[0]]
    current.remove(stakers[2])
    assert current.first() == delegators[0]
    assert current.validator(PRIMARY_NETWORK, b"n" * 20) == stakers[0]


def test_a_delegation_may_begin_before_its_validator_at_the_same_second() -> None:
    sets = ValidatorSets()
    sets.add_staker(staker(b"b", 5, Priority.DELEGATOR, weight=3))
    sets.add_staker(staker(b"a", 5, Priority.VALIDATOR, weight=4))
    assert [(change.weight, change.node_id) for change in sets.changes(1)] == [(7, b"n" * 20)]
    sets.remove_staker(staker(b"a", 5, Priority.VALIDATOR, weight=4))
    sets.remove_staker(staker(b"b", 5, Priority.DELEGATOR, weight=3))
    assert [change.weight for change in sets.changes(2)] == [0]
    assert sets.changes(3) == []


def test_inactive_l1_validators_are_summed_up() -> None:
    sets, subnet = ValidatorSets(), hash256(b"subnet")
    rows = [
        L1Validator(hash256(name), subnet, name * 20, name * 48, 1 << 63, 0, 0, end, NO_OWNER, NO_OWNER)
        for name, end in ((b"a", 0), (b"b", 9), (b"c", 0))
    ]
    for one in rows:
        sets.replace_l1(None, one)
    sets.changes(1)
    assert sets.members[subnet] == {EMPTY_SHORT_ID: (1 << 64, b""), b"b" * 20: (1 << 63, b"b" * 48)}
    sets.replace_l1(rows[1], msgspec.structs.replace(rows[1], end_accumulated_fee=0))
    sets.replace_l1(rows[0], msgspec.structs.replace(rows[0], is_removed=True))
    sets.changes(2)
    assert sets.members[subnet] == {EMPTY_SHORT_ID: (1 << 64, b"")}


def test_numbers_without_sign_and_sets_survive_the_store() -> None:
    for number in (0, 1, (1 << 63) - 1, 1 << 63, (1 << 64) - 1):
        assert -(1 << 63) <= signed(number) < 1 << 63
        assert unsigned(signed(number)) == number
    members = {b"a" * 20: (1, b""), b"b" * 20: ((1 << 64) - 1, b"k" * 48)}
    assert unpacked_members(packed_members(members)) == members


def test_public_networks_have_fixed_parameters() -> None:
    given = RewardParameters(1, 2, 3, 4)
    for network_id in (MAINNET_ID, FUJI_ID):
        assert parameters_of(network_id, b"", None, given).rewards == RATES
        assert parameters_of(network_id, b"").forks.banff > parameters_of(99, b"").forks.banff
    assert parameters_of(99, b"", None, given).rewards == given


def test_fork_times_are_read_from_an_upgrade_file() -> None:
    names = ("apricotPhase5Time", "banffTime", "cortinaTime", "durangoTime", "etnaTime")
    times = fork_times({name: f"2026-11-17T18:40:0{second}Z" for second, name in enumerate(names)})
    assert [one - times.apricot_phase_5 for one in msgspec.structs.astuple(times)] == [0, 1, 2, 3, 4]
    with pytest.raises(WireError, match="etnaTime must be a time such as"):
        fork_times(dict.fromkeys(names[:4], "2026-11-17T18:40:00Z"))
