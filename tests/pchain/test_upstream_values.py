"""Values that AvalancheGo's own tests fix: gas of signed transactions, rewards, prices and the continuous fee."""

import json
import math
from typing import Any

import pytest
from tests.wire.wire_vectors import VECTORS

from icefall.pchain.fees import (
    FeeState,
    fake_exponential,
    gas_of,
    potential_reward,
    validator_cost,
    validator_excess,
)
from icefall.pchain.parameters import AVAX, DynamicFees, RewardParameters, ValidatorFees
from icefall.wire.pvm.codec import pack_tx, unpack_tx

GAS: dict[str, Any] = json.loads((VECTORS / "platform_gas.json").read_bytes())
MOST = 2**64 - 1
DAY_S = 24 * 3600
YEAR_S, WEEK_S = 365 * DAY_S, 7 * DAY_S
MILLION = 10**6 * AVAX
CAP = 720 * MILLION
PER_DOUBLING = 10_000 * DAY_S
K = int(PER_DOUBLING / math.log(2))


@pytest.mark.parametrize("row", GAS["txs"], ids=lambda row: row["name"])
def test_gas_of_signed_transactions(row: dict[str, Any]) -> None:
    """A transaction of before Etna has no gas."""
    raw = bytes.fromhex(row["tx"])
    tx = unpack_tx(raw)
    assert pack_tx(tx.unsigned, tx.credentials).raw == raw
    assert gas_of(tx, DynamicFees(weights=tuple(GAS["weights"]))) == row["gas"]
    assert row["bandwidth"] in (None, len(raw))


@pytest.mark.parametrize(
    ("duration_s", "amount", "supply", "reward"),
    [
        (YEAR_S, MILLION, 360 * MILLION, 120_000 * AVAX),
        (YEAR_S, MILLION, 400 * MILLION, 96_000 * AVAX),
        (YEAR_S, 2 * MILLION, 400 * MILLION, 192_000 * AVAX),
        (YEAR_S, MILLION, CAP, 0),
        (DAY_S, MILLION, 360 * MILLION, 274_122_724_713),
        (DAY_S, AVAX // 200, 360 * MILLION, 1_370),
        (DAY_S, MILLION, 400 * MILLION, 219_298_179_771),
        (DAY_S, 2 * MILLION, 400 * MILLION, 438_596_359_542),
        (DAY_S, MILLION, CAP, 0),
    ],
)
def test_rewards(duration_s: int, amount: int, supply: int, reward: int) -> None:
    assert potential_reward(RewardParameters(), duration_s, amount, supply) == reward


@pytest.mark.parametrize(
    ("lowest", "excess", "constant", "price"),
    [
        (1, 0, 1, 1),
        (1, 1, 1, 2),
        (1, 2, 1, 6),
        (1, 10_000, 10_000, 2),
        (1, 1_000_000, 10_000, MOST),
        (10, 10_000_000, 1_000_000, 220_264),
        (MOST, MOST, 1, MOST),
        (2**32 - 1, 1, 1, 11_674_931_546),
        (6_786_177_901_268_885_274, 1, 1, MOST - 11),
        (6_786_177_901_268_885_274, MOST, MOST, MOST - 1),
    ],
)
def test_prices(lowest: int, excess: int, constant: int, price: int) -> None:
    assert fake_exponential(lowest, excess, constant) == price


@pytest.mark.parametrize(
    ("active", "excess", "target", "seconds", "cost", "excess_after"),
    [
        (10, 0, 10_000, 60, 122_880, 0),
        (10_000, 0, 10_000, 60, 122_880, 0),
        (10_000, PER_DOUBLING, 10_000, 60, 245_760, PER_DOUBLING),
        (10_000, K, 10_000, 60, 334_020, K),
        (15_000, 0, 10_000, 60, 122_880, 5_000 * 60),
        (9_000, 6 * 3600 * 1_000, 10_000, DAY_S, 177_321_939, 0),
        (10_000, K, 10_000, DAY_S, 480_988_800, K),
        (15_000, 0, 10_000, DAY_S, 211_438_809, 5_000 * DAY_S),
        (10_000, 0, 10_000, WEEK_S, 1_238_630_400, 0),
        (MOST, 1, 0, 1, MOST, MOST),
        (2**32 - 1, 0, 0, 10, 1_948_429_840_780_833_612, (2**32 - 1) * 10),
    ],
)
def test_the_continuous_fee(active: int, excess: int, target: int, seconds: int, cost: int, excess_after: int) -> None:
    fees = ValidatorFees(target=target, min_price=2_048, excess_conversion_constant=K)
    assert validator_cost(fees, active, excess, seconds) == cost
    assert validator_excess(fees, active, excess, seconds) == excess_after


@pytest.mark.parametrize(
    ("before", "most", "rate", "target", "seconds", "after"),
    [
        ((10, 0), 20, 10, 0, 2, (20, 0)),
        ((10, 0), 30, 10, 0, 1, (20, 0)),
        ((10, 10), 20, 10, 10, 2, (20, 0)),
        ((10, 10), 20, 10, 5, 1, (20, 5)),
    ],
)
def test_gas_over_time(
    before: tuple[int, int], most: int, rate: int, target: int, seconds: int, after: tuple[int, int]
) -> None:
    fees = DynamicFees(max_capacity=most, max_per_second=rate, target_per_second=target)
    assert FeeState(*before).after(fees, seconds) == FeeState(*after)


@pytest.mark.parametrize(
    ("before", "gas", "after"),
    [((10, 10), 5, (5, 15)), ((10, 10), 10, (0, 20)), ((10, 10), 11, None), ((10, MOST), 1, (9, MOST))],
)
def test_gas_of_a_block(before: tuple[int, int], gas: int, after: tuple[int, int] | None) -> None:
    assert FeeState(*before).used(gas) == (FeeState(*after) if after else None)
