"""Rewards, gas and the continuous fee for the naive P-Chain, second by second and byte by byte."""

from typing import Any

from icefall.pchain.parameters import DynamicFees, ValidatorFees
from icefall.wire.pvm import types as t
from icefall.wire.pvm.warp import unpack_message

_MILLION = 1_000_000
_MOST = 2**64 - 1


def reward_of(rates: tuple[int, int, int, int], seconds: int, amount: int, supply: int) -> int:
    """What a stake mints; `rates` are the lowest and highest rate, the minting period and the cap."""
    low, high, period_s, cap = rates
    d, period = seconds * 10**9, period_s * 10**9
    numerator = (cap - supply) * ((high - low) * d + low * period) * amount * d
    found = numerator // (period * _MILLION)
    found //= supply
    found //= period
    return min(found, cap - supply)


def shares_of(reward: int, shares: int) -> tuple[int, int]:
    """What the validator gets of a delegation's reward, and what the delegator."""
    product = (_MILLION - shares) * reward
    net = product // _MILLION if product <= _MOST else (_MILLION - shares) * (reward // _MILLION)
    return reward - net, net


def price_of(lowest: int, excess: int, constant: int) -> int:
    step, term, total = 1, lowest * constant, 0
    while term > 0:
        total += term
        term = term * excess // (constant * step)
        step += 1
    return min(total // constant, _MOST)


def cost_of(fees: ValidatorFees, active: int, excess: int, seconds: int) -> int:
    """The continuous fee of each active L1 validator, one second after another."""
    total = 0
    for _ in range(seconds):
        if active != fees.target:
            excess = max(0, excess + active - fees.target)
        total += price_of(fees.min_price, excess, fees.excess_conversion_constant)
    return total


# type of transaction -> reads, writes, compute
_OWN: dict[int, tuple[int, int, int]] = {
    34: (0, 0, 0),
    17: (0, 0, 0),
    18: (0, 0, 0),
    16: (0, 1, 0),
    15: (3, 1, 0),
    13: (3, 3, 0),
    23: (1, 3, 0),
    33: (1, 1, 0),
    25: (1, 3, 0),
    26: (1, 2, 0),
    35: (3, 2, 0),
    36: (28, 6, 2050),
    37: (26, 5, 1000),
    38: (1, 5, 0),
    39: (1, 6, 0),
}


def gas_used(tx: t.PlatformTx, fees: DynamicFees) -> int:
    """The gas of a signed transaction."""
    body: Any = tx.unsigned
    reads, writes, compute = _OWN[body.type_id]
    for one in (*body.inputs, *getattr(body, "imported_inputs", ())):
        inner = one.input.input if isinstance(one.input, t.StakeableInput) else one.input
        reads, writes, compute = reads + 1, writes + 1, compute + 200 * len(inner.signature_indices)
    writes += len(body.outputs) + len(getattr(body, "stake", ())) + len(getattr(body, "exported_outputs", ()))
    compute += 200 * len(getattr(body, "authorization", ()))
    if getattr(body, "signer", None) is not None:
        compute += 1050
    if body.type_id == 35:
        writes, compute = writes + 4 * len(body.validators), compute + 1050 * len(body.validators)
    if body.type_id in (36, 37):
        bits = "".join(f"{byte:b}" for byte in unpack_message(body.message).signers)
        compute += 5 * bits.count("1")
    bandwidth, read, write, work = fees.weights
    return len(tx.raw) * bandwidth + reads * read + writes * write + compute * work
