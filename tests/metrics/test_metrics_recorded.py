"""On every recorded chain, every metric in every interval equals a recomputation from the recorded blocks."""

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from tests.evm.recordings import CHAINS, derived
from tests.metrics import naive
from tests.metrics.scene import NOW, Scene

from icefall.metrics.catalogue import METRICS, WINDOWS_S
from icefall.metrics.rollup import SPAN_NAMES

DAYS = Path(__file__).parent.parent / "vectors" / "metrics"
CASES = [(metric.name, SPAN_NAMES[span]) for metric in METRICS for span in metric.spans]
ROLLING = [metric.name for metric in METRICS if metric.has_rolling]


@cache
def blocks(chain: str) -> list[naive.Seen]:
    return naive.seen(derived(chain))


@pytest.fixture(scope="module", params=CHAINS)
def recorded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Scene]]:
    scene = Scene(tmp_path_factory.mktemp(request.param) / "chain.sqlite")
    rows = [one.rows for one in derived(request.param)]
    for at in range(0, len(rows), 100):
        scene.put(rows[at : at + 100])
    yield request.param, scene
    scene.close()


@pytest.mark.parametrize(("metric", "interval"), CASES)
def test_series_equal_a_recomputation(recorded: tuple[str, Scene], metric: str, interval: str) -> None:
    chain, scene = recorded
    series, counted = scene.series(metric, interval), naive.series(metric, interval, blocks(chain))
    assert series == counted
    assert {type(value) for _, value in series} == {float if metric.startswith(("avg", "max_tps", "max_gps")) else int}


@pytest.mark.parametrize("metric", ROLLING)
def test_rolling_windows_equal_a_recomputation(recorded: tuple[str, Scene], metric: str) -> None:
    chain, scene = recorded
    times = [block.time for block in blocks(chain)]
    last = times[-1]
    moments = [last, last + 1, last + 3599, last + 3600, last + 86_399, last + 40 * 86_400, last + 400 * 86_400]
    moments += [times[0], times[0] - 1, *(time + shift for time in times[:: len(times) // 4] for shift in (-1, 0, 7))]
    for now in moments:
        expected = {name: naive.window(metric, seconds, now, blocks(chain)) for name, seconds in WINDOWS_S.items()}
        expected["all_time"] = naive.window(metric, None, now, blocks(chain))
        assert scene.rolling(metric, now) == expected, now


@pytest.mark.parametrize("chain", sorted(path.name.partition("_")[0] for path in DAYS.glob("*_days.json")))
def test_daily_totals_equal_the_recorded_ones(chain: str, tmp_path: Path) -> None:
    """Counted by another program when the chains were recorded."""
    scene = Scene(tmp_path / "chain.sqlite")
    scene.put([one.rows for one in derived(chain)])
    days: list[Any] = json.loads((DAYS / f"{chain}_days.json").read_text())["days"]
    days_of = {metric.name: dict(scene.series(metric.name, "day")) for metric in METRICS}
    scene.close()
    assert list(days_of["tx_count"])[::-1] == [day["timestamp"] for day in days]
    for day in days:
        at = day["timestamp"]
        assert days_of["tx_count"][at] == day["txCount"]
        assert days_of["gas_used"][at] == int(day.get("gasUsed", 0))
        assert days_of["fees_paid"][at] == int(day.get("feesPaidWei", 0))
        assert days_of["max_gas_price"][at] == int(day.get("maxGasPrice", 0))
        if day.get("prevBlockTimestamp") is not None:
            assert days_of["avg_tps"][at] == day["txPerSecondOverThatSpan"]
    assert any(day["blocks"] == 0 for day in days)


def test_a_chain_without_blocks_has_no_points(tmp_path: Path) -> None:
    scene = Scene(tmp_path / "chain.sqlite")
    for metric, interval in CASES:
        assert scene.page(metric, interval) == ([], None)
    assert set(scene.rolling("tx_count", NOW).values()) == {0}
    scene.put([derived("anvil-1")[0].rows])  # block 0 is no point
    assert scene.series("avg_tps", "day") == []
    scene.close()
