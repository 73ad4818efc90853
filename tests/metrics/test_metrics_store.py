"""Rollups do not depend on how blocks were batched or rolled back, and the cost does not depend on what is stored."""

import os
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.evm.recordings import CHAINS, derived
from tests.metrics import naive
from tests.metrics.scene import Scene
from tests.metrics.synthetic import block, chain

from icefall.db.engine import Row, StatementParams, Transaction
from icefall.db.sqlite import SqliteStore
from icefall.evm.model import BlockRows
from icefall.evm.storing.store import PACKAGE
from icefall.metrics.catalogue import METRICS, WINDOWS_S
from icefall.metrics.rollup import SPAN_NAMES
from icefall.metrics.rows import RollupRow
from icefall.metrics.store import SQL, RollupWriter

SEEDS = int(os.environ.get("ICEFALL_FUZZ_SEEDS", "1"))
DAY_BLOCKS = int(os.environ.get("ICEFALL_FUZZ_DAY_BLOCKS", "30"))  # of the test of costs: empty blocks a day


def rows_of(name: str) -> list[BlockRows]:
    return [one.rows for one in derived(name)]


def put_all(scene: Scene, rows: Sequence[BlockRows], chance: random.Random) -> None:
    at = 0
    while at < len(rows):
        size = chance.choice((1, 2, 3, 17, 100, 700))
        scene.put(rows[at : at + size])
        at += size


@pytest.fixture(scope="module", params=CHAINS)
def whole(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, dict[str, list[Any]]]:
    scene = Scene(tmp_path_factory.mktemp(request.param) / "chain.sqlite")
    scene.put(rows_of(request.param))
    tables = scene.tables()
    scene.close()
    assert all(tables.values())
    return request.param, tables


@pytest.mark.parametrize("seed", range(SEEDS))
def test_any_cut_into_runs_gives_the_same_rows(whole: tuple[str, Any], seed: int, tmp_path: Path) -> None:
    name, tables = whole
    scene = Scene(tmp_path / "chain.sqlite")
    put_all(scene, rows_of(name), random.Random(seed))
    assert scene.tables() == tables
    scene.close()


@pytest.mark.parametrize("seed", range(SEEDS))
def test_rollbacks_leave_the_rows_of_a_straight_run(whole: tuple[str, Any], seed: int, tmp_path: Path) -> None:
    name, tables = whole
    rows, chance = rows_of(name), random.Random(seed)
    scene, plain = Scene(tmp_path / "chain.sqlite"), Scene(tmp_path / "plain.sqlite")
    at = -1  # newest block stored
    ancestors = sorted(chance.sample(range(len(rows)), 12))
    for ancestor in ancestors:
        put_all(scene, rows[at + 1 : ancestor + chance.choice((1, 2, 9, 300))], chance)
        scene.roll_back(ancestor)
        plain.put(rows[at + 1 : ancestor + 1])
        assert scene.tables() == plain.tables(), ancestor
        at = ancestor
    put_all(scene, rows[at + 1 :], chance)
    assert scene.tables() == tables
    scene.roll_back(-1)
    assert not any(scene.tables().values())
    scene.close()
    plain.close()


def test_rollback_across_hours_days_weeks_and_months(tmp_path: Path) -> None:
    """Roll back to the first block after each border, then to the last before it."""
    rows = rows_of("anvil-1")
    times = [one.block.time for one in rows]
    borders = {
        at
        for interval in SPAN_NAMES
        for at in range(1, len(rows) - 1)
        if naive.begin_of(interval, times[at]) != naive.begin_of(interval, times[at + 1])
    }
    scene, plain = Scene(tmp_path / "chain.sqlite"), Scene(tmp_path / "plain.sqlite")
    done = 0
    for border in sorted(random.Random(7).sample(sorted(borders), 30)):
        if border < done:
            continue
        scene.put(rows[done : border + 40])
        plain.put(rows[done : border + 1])
        scene.roll_back(border + 1)
        scene.roll_back(border)
        assert scene.tables() == plain.tables()
        done = border + 1
    scene.close()
    plain.close()


def test_another_branch_after_a_rollback(tmp_path: Path) -> None:
    """Different blocks, with other addresses under the same address IDs."""
    old, new = chain(seed=1, count=300), chain(seed=1, count=200)
    new += chain(seed=2, count=150, after=new[-1], branch_before=1)
    scene, plain = Scene(tmp_path / "chain.sqlite"), Scene(tmp_path / "plain.sqlite")
    scene.put(old)
    scene.roll_back(199)
    scene.put(new[200:])
    plain.put(new)
    assert scene.tables() == plain.tables()
    scene.close()
    plain.close()


@pytest.mark.parametrize("seed", range(1, 5))
def test_random_chains_equal_a_recomputation(seed: int, tmp_path: Path) -> None:
    """Equal times, gaps of weeks, reorganisations: every metric in every interval."""
    chance = random.Random(seed)
    rows = chain(seed, 120)
    scene = Scene(tmp_path / "chain.sqlite")
    for fork in sorted(chance.sample(range(1, 120), 4)):
        kept = scene.tip() + 1
        put_all(scene, rows[kept:fork], chance)
        put_all(scene, chain(100 + fork, 40, after=rows[fork - 1], branch_before=seed), chance)
        scene.roll_back(fork - 1)
    put_all(scene, rows[scene.tip() + 1 :], chance)
    blocks = naive.seen_rows(rows)
    for metric in METRICS:
        for span in metric.spans:
            assert scene.series(metric.name, SPAN_NAMES[span]) == naive.series(metric.name, SPAN_NAMES[span], blocks)
        for now in chance.sample([one.time for one in blocks], 5) if metric.has_rolling else ():
            windows = {name: naive.window(metric.name, seconds, now, blocks) for name, seconds in WINDOWS_S.items()}
            windows["all_time"] = naive.window(metric.name, None, now, blocks)
            assert scene.rolling(metric.name, now) == windows
    scene.close()


def test_rollback_to_the_tip_or_before_the_first_block(tmp_path: Path) -> None:
    scene = Scene(tmp_path / "chain.sqlite")
    rows = chain(seed=3, count=50, first=1000)
    scene.put(rows)
    tables = scene.tables()
    scene.roll_back(1049)
    assert scene.tables() == tables
    scene.roll_back(999)
    assert not any(scene.tables().values())
    scene.close()


def test_cumulative_txs_begin_with_the_configured_offset(tmp_path: Path) -> None:
    scene = Scene(tmp_path / "chain.sqlite", offset=5000)
    rows = chain(seed=4, count=400, first=1000)
    scene.put(rows[:250])
    scene.put(rows[250:])
    scene.roll_back(1300)
    total = 5000 + sum(one.block.tx_count for one in rows[:301])
    assert scene.series("cumulative_tx_count", "day")[0][1] == total
    scene.close()


def test_a_block_older_than_its_parent_counts_at_its_parents_time(tmp_path: Path) -> None:
    scene = Scene(tmp_path / "chain.sqlite")
    day = 86_400 * 20_000
    rows = [block(number, day + time, 2) for number, time in enumerate((0, 10, 90_000, 50, 90_010), 1)]
    scene.put(rows[:3])
    scene.put(rows[3:])
    assert scene.series("tx_count", "day") == [(day + 86_400, 6), (day, 4)]
    tables = scene.tables()
    scene.roll_back(4)
    scene.put(rows[4:])
    assert scene.tables() == tables
    assert scene.rolling("tx_count", day + 90_005)["last_hour"] == 4
    scene.close()


# -- cost --------------------------------------------------------------------------------------------------------


class Counting:
    """A transaction that counts statements and their rows."""

    def __init__(self, tx: Transaction) -> None:
        self.tx, self.count = tx, Counter[str]()

    def rows(self, statement: str, params: StatementParams = ()) -> list[Row]:
        found = self.tx.rows(statement, params)
        self.count.update(statements=1, rows=len(found))
        return found

    def rows_of_each(self, statement: str, keys: Sequence[Sequence[Any]]) -> list[Row]:
        found = self.tx.rows_of_each(statement, keys)
        self.count.update(statements=1, rows=len(found))
        return found

    def run(self, statement: str, params: StatementParams = ()) -> int:
        self.count.update(statements=1)
        return self.tx.run(statement, params)

    def run_many(self, statement: str, params: Sequence[StatementParams]) -> None:
        self.count.update(statements=1, rows=len(params))
        self.tx.run_many(statement, params)


class Watched(RollupWriter):
    """Records the cost of each call."""

    def __init__(self) -> None:
        super().__init__(lambda: 0)
        self.costs: list[Counter[str]] = []

    def put_batch(self, tx: Transaction, *rest: Any) -> None:
        counting = Counting(tx)
        super().put_batch(counting, *rest)
        self.costs.append(counting.count)

    def roll_back_above(self, tx: Transaction, ancestor: int) -> None:
        counting = Counting(tx)
        super().roll_back_above(counting, ancestor)
        self.costs.append(counting.count)


def test_a_run_costs_the_same_after_a_hundred_days(tmp_path: Path) -> None:
    """Empty blocks for most of a day, then a run with 100 transactions of new addresses, part of which is rolled back
    and written again. ICEFALL_FUZZ_DAY_BLOCKS=1000 makes a hundred thousand blocks of it."""
    scene, watched = Scene(tmp_path / "chain.sqlite"), Watched()
    scene.chain._rollups = [watched]
    puts, rollbacks = [], []
    number, begin = 1, 86_400 * 20_000
    for day in range(100):
        time = begin + day * 86_400
        scene.put([block(number + at, time + at * (60_000 // DAY_BLOCKS), 0) for at in range(DAY_BLOCKS)])
        run = [block(number + DAY_BLOCKS + at, time + 61_200 + at, 2) for at in range(50)]
        scene.put(run)
        puts.append(watched.costs[-1])
        scene.roll_back(number + DAY_BLOCKS + 19)
        rollbacks.append(watched.costs[-1])
        scene.put(run[20:])
        number += DAY_BLOCKS + 50
    assert len({cost["statements"] for cost in puts}) == 1
    assert len({cost["rows"] for cost in puts}) == 1
    assert len({cost["statements"] for cost in rollbacks}) == 1
    rows = [cost["rows"] for cost in rollbacks]
    assert max(rows) - min(rows) <= 31 + 7  # days of a month and of a week
    assert puts[0]["statements"] < 20
    scene.close()


def test_rollup_row_names_the_columns_of_its_table(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "chain.sqlite", PACKAGE)
    columns = tuple(row[1] for row in store.read("select * from pragma_table_info('rollup')"))
    store.close()
    assert columns == RollupRow._fields


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SqliteStore]:
    store = SqliteStore(tmp_path_factory.mktemp("empty") / "chain.sqlite", PACKAGE)
    yield store
    store.close()


@pytest.mark.parametrize("name", SQL.names())
def test_no_statement_scans_a_table(name: str, empty: SqliteStore) -> None:
    statement = getattr(SQL, name)
    names = ("span", "period", "first", "last", "end", "block", "hour", "number", "address", "addresses", "creation")
    given: Any = dict.fromkeys((*names, "at"), 1) if ":" in statement else (1,) * statement.count("?")
    if "json_each" in statement:
        given["addresses"] = "[1]"
    plan = [row[3] for row in empty.read(f"explain query plan {statement}", given)]
    allowed = ("SCAN json_each", "SCAN given VIRTUAL", "SCAN CONSTANT")  # lists of the caller
    scans = [step for step in plan if step.startswith("SCAN") and not step.startswith(allowed)]
    assert scans == []
