"""How many machines, how much disk and how many days a chain takes, computed from the figures of a run: the table of
docs/scaling.md, as it stands there.

Two ways to count a transaction: as plain ERC-20 transfers, of which a busy chain has several in one, and as one of a
recorded chain with all kinds of calls. A pair of figures is both, the better one first.
"""

from collections.abc import Mapping
from typing import NamedTuple

KINDS = ("SQLite", "PostgreSQL", "Citus")
GROWTH = 7 / 6  # the time of a long index against that of a short one, which fits into memory
C_CHAIN_TXS, C_CHAIN_TRANSFERS = 1e9, 3e9
L1S, L1_TPS, YEAR_S = 100, 5, 365.25 * 86_400
L1_TRANSFERS_PER_TX = 1  # a transaction of such a chain is taken as one plain transfer
DISK = 4e12  # of one machine


class Costs(NamedTuple):
    """What one kind of store takes: bytes and seconds of one writer per plain transfer and per mixed transaction."""

    plain_bytes: float
    mixed_bytes: float
    plain_s: float
    mixed_s: float


def costs(figures: Mapping[str, Mapping[str, float]], names: "Names") -> dict[str, Costs]:
    """Return the costs of each kind that was measured. A recorded chain is indexed into SQLite alone: others have the
    same share there as with plain transfers."""
    per_s, size = figures.get(names.indexed, {}), figures.get(names.indexed_bytes, {})
    mixed, mixed_size = figures.get(names.mixed, {}), figures.get(names.mixed_bytes, {})
    found = {}
    for kind in KINDS:
        if kind in per_s and kind in size and "SQLite" in mixed and "SQLite" in per_s:
            slower, larger = per_s["SQLite"] / per_s[kind], size[kind] / size["SQLite"]
            found[kind] = Costs(
                size[kind], mixed_size["SQLite"] * larger, GROWTH / per_s[kind], GROWTH / mixed["SQLite"] * slower
            )
    return found


class Names(NamedTuple):
    """The subjects of the figures."""

    indexed: str
    indexed_bytes: str
    mixed: str
    mixed_bytes: str


def table(found: Mapping[str, Costs]) -> list[str]:
    """Return the lines of the table in Markdown."""
    kinds = [kind for kind in KINDS if kind in found]
    per_year = L1S * L1_TPS * YEAR_S
    rows = [
        ("**C-Chain**: a billion transactions, three billion transfers", [""] * len(kinds)),
        ("first index, one writer of two cores", [_c_chain_days(found[kind]) for kind in kinds]),
        ("disk", [_c_chain_disk(found[kind]) for kind in kinds]),
        (
            f"**A hundred L1s of {L1_TPS} transactions per second**: {per_year / 1e9:.1f} billion a year",
            [""] * len(kinds),
        ),
        ("at the tip, 500 per second, cores of writers", [_tip(found[kind]) for kind in kinds]),
        ("disk per year", [_pair(*_year_bytes(found[kind]), 1e12, "TB") for kind in kinds]),
        ("machines with disks of 4 TB, for a year", [_machines(found[kind]) for kind in kinds]),
        ("index of a past year, one writer of two cores", [_year_days(found[kind]) for kind in kinds]),
    ]
    lines = ["| | " + " | ".join(kinds) + " |", "|---" * (len(kinds) + 1) + "|"]
    return lines + [f"| {label} | " + " | ".join(cells) + " |" for label, cells in rows]


def _c_chain_days(one: Costs) -> str:
    return _pair(C_CHAIN_TRANSFERS * one.plain_s, C_CHAIN_TXS * one.mixed_s, 86_400, "days")


def _c_chain_disk(one: Costs) -> str:
    return _pair(C_CHAIN_TRANSFERS * one.plain_bytes, C_CHAIN_TXS * one.mixed_bytes, 1e12, "TB")


def _year_bytes(one: Costs) -> tuple[float, float]:
    txs = L1S * L1_TPS * YEAR_S
    return txs * L1_TRANSFERS_PER_TX * one.plain_bytes, txs * one.mixed_bytes


def _year_days(one: Costs) -> str:
    txs = L1S * L1_TPS * YEAR_S
    return _pair(txs * L1_TRANSFERS_PER_TX * one.plain_s, txs * one.mixed_s, 86_400, "days")


def _tip(one: Costs) -> str:
    """The cores that writers need, of which one has two."""
    return _pair(2 * L1S * L1_TPS * one.plain_s, 2 * L1S * L1_TPS * one.mixed_s, 1, "")


def _machines(one: Costs) -> str:
    low, high = sorted(-(-size // DISK) for size in _year_bytes(one))
    return f"{low:.0f} to {high:.0f}" if low < high else f"{low:.0f}"


def _pair(first: float, second: float, unit: float, name: str) -> str:
    low, high = (_short(value / unit) for value in sorted((first, second)))
    return f"{low} to {high} {name}".rstrip() if low != high else f"{low} {name}".rstrip()


def _short(value: float) -> str:
    return f"{value:.0f}" if value >= 10 else f"{value:.1f}"
