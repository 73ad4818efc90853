"""The figures of a run side by side, by kind of store, and the aims that they miss with their profile.

Benchmarks that take --store note their figures here; the table comes at the end of the run.
"""

from typing import NamedTuple

from bench.machines import KINDS, Names, costs, table

STORED, INDEXED = "transfers stored/s (stores)", "transfers indexed/s (ingest)"
STORED_BYTES, INDEXED_BYTES = "bytes per transfer (stores)", "bytes per transfer (ingest)"
MIXED, MIXED_BYTES = "mixed transactions indexed/s (ingest)", "bytes per mixed transaction (ingest)"
FIRST_PAGE_MS, PAGE_CPU = "first page, p50 ms (stores)", "first page, CPU us (data)"
TRANSACTIONS, TRANSFERS, BALANCES = "4 transactions", "6 ERC-20 transfers", "13 ERC-20 balances"


class Aim(NamedTuple):
    """An aim for one kind of store: a figure, or a part of that of another kind in the same run."""

    subject: str
    kind: str
    limit: float
    of: str = ""
    is_least: bool = False

    def text(self) -> str:
        of = f" of {self.of}" if self.of else ""
        return f"{'at least' if self.is_least else 'at most'} {self.limit:g}{of}"

    def is_missed(self, value: float, other: float | None) -> bool:
        """Whether a figure misses it. `other`: of the kind with which it is compared; None where there is none."""
        if self.of and not other:
            return False
        share = value / other if self.of and other else value
        return share < self.limit if self.is_least else share > self.limit


AIMS = (
    Aim(STORED, "Citus", 0.6, "PostgreSQL", is_least=True),
    Aim(INDEXED, "Citus", 0.6, "PostgreSQL", is_least=True),
    Aim(STORED_BYTES, "PostgreSQL", 700),
    Aim(f"{FIRST_PAGE_MS}, {TRANSACTIONS}", "Citus", 2, "PostgreSQL"),
    Aim(f"{FIRST_PAGE_MS}, {TRANSFERS}", "Citus", 2, "PostgreSQL"),
    Aim(f"{PAGE_CPU}, {TRANSACTIONS}", "SQLite", 220),
    Aim(f"{PAGE_CPU}, {TRANSFERS}", "SQLite", 140),
    Aim(f"{PAGE_CPU}, {BALANCES}", "SQLite", 130),
)


class Figures:
    def __init__(self) -> None:
        self._figures: dict[str, dict[str, float]] = {}  # by subject and kind
        self._profiles: dict[tuple[str, str], str] = {}

    def note(self, subject: str, store: str, value: float, profile: str = "") -> None:
        """Note a figure of a store whose name begins with its kind. `profile`: where it goes, for a missed aim."""
        kind = store.partition(",")[0]
        self._figures.setdefault(subject, {})[kind] = value
        self._profiles[subject, kind] = profile

    def print_table(self) -> None:
        if not self._figures:
            return
        print("side by side")
        print(f"  {'figure':<50}" + "".join(f"{kind:>12}" for kind in KINDS) + "  aim")
        for subject, by_kind in self._figures.items():
            values = "".join(f"{by_kind[kind]:>12.4g}" if kind in by_kind else " " * 12 for kind in KINDS)
            aims = [aim for aim in AIMS if aim.subject == subject and aim.kind in by_kind]
            print(f"  {subject:<50}{values}  " + ", ".join(self._judged(aim) for aim in aims))
            for aim in aims:
                profile = self._profiles[subject, aim.kind]
                if profile and self._is_missed(aim):
                    print(f"    where it goes: {profile}")
        found = costs(self._figures, Names(INDEXED, INDEXED_BYTES, MIXED, MIXED_BYTES))
        if found:
            print("computed from these, for docs/scaling.md", *table(found), sep="\n")

    def _judged(self, aim: Aim) -> str:
        return f"{aim.kind} {aim.text()}: {'missed' if self._is_missed(aim) else 'reached'}"

    def _is_missed(self, aim: Aim) -> bool:
        by_kind = self._figures[aim.subject]
        return aim.is_missed(by_kind[aim.kind], by_kind.get(aim.of))


FIGURES = Figures()
