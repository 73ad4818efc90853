"""The followers of X, P and C against nodes that fail in every way, killed again and again: they end with what a clean
run stores."""

from pathlib import Path

import pytest
from tests.simulation.node_upstreams import COUNTS
from tests.simulation.simulated_follower import SimulatedFollower
from tests.simulation.simulated_program import SEEDS, play, report
from tests.xchain.stored import digest

pytestmark = pytest.mark.no_cover  # tests/sync traces the same lines


class CleanRuns:
    """The digest that every run with as many containers must end with."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._found: dict[int, str] = {}

    def digest(self, number: int) -> str:
        if number not in self._found:
            directory = self._directory / str(number)
            directory.mkdir()
            play(SimulatedFollower(number, directory, clean=True))
            self._found[number] = digest(directory)
        return self._found[number]


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory) -> CleanRuns:
    return CleanRuns(tmp_path_factory.mktemp("clean"))


@pytest.mark.parametrize("seed", SEEDS)
def test_a_run_with_faults_and_crashes_ends_with_the_clean_digest(seed: int, clean: CleanRuns, tmp_path: Path) -> None:
    expected = clean.digest(seed % len(COUNTS))
    simulation = SimulatedFollower(seed, tmp_path)
    play(simulation)
    assert digest(tmp_path) == expected, report(simulation)


def test_a_seed_is_one_schedule(tmp_path: Path) -> None:
    traces = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        simulation = SimulatedFollower(26, tmp_path / name)
        play(simulation)
        traces.append(simulation.events.lines)
    assert traces[0] == traces[1]
    assert len(traces[0]) > 12, "little happened"
