"""The indexer against upstreams that fail in every way, killed again and again: it stores what a clean run stores."""

from collections.abc import Collection
from pathlib import Path

import pytest
from tests.evm.digest import digests, untrusted_tokens
from tests.simulation.evm_chains import WORLDS, world
from tests.simulation.simulated_indexer import SimulatedIndexer
from tests.simulation.simulated_program import SEEDS, play, report
from tests.store.opened import tables_of

pytestmark = pytest.mark.no_cover  # tests/evm traces the same lines


class CleanRuns:
    """The digest that every run in a world must end with."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._found: dict[int, dict[str, str]] = {}

    def path(self, number: int) -> Path:
        return self._directory / f"{number}.sqlite"

    def digest(self, number: int, from_state: Collection[bytes] = ()) -> dict[str, str]:
        if number not in self._found:
            play(SimulatedIndexer(number, self._directory, clean=True))
            self._found[number] = digests(self.path(number))
        return digests(self.path(number), from_state) if from_state else self._found[number]


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory) -> CleanRuns:
    return CleanRuns(tmp_path_factory.mktemp("clean"))


@pytest.mark.parametrize("seed", SEEDS)
def test_a_run_with_faults_and_crashes_ends_with_the_clean_digest(seed: int, clean: CleanRuns, tmp_path: Path) -> None:
    """Where an upstream refused state for a time, more tokens may be untrusted, or since another block: balances from
    before the index were not known, and blocks were not audited. Their balances are read from state."""
    simulation = SimulatedIndexer(seed, tmp_path)
    play(simulation)
    from_state = untrusted_tokens(simulation.path) if simulation.lacked_state else ()
    expected = clean.digest(seed % WORLDS, from_state)
    got = digests(simulation.path, from_state)
    assert got == expected, report(simulation)


def test_a_seed_is_one_schedule(tmp_path: Path) -> None:
    traces = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        simulation = SimulatedIndexer(4, tmp_path / name)
        play(simulation)
        traces.append(simulation.events.lines)
    assert traces[0] == traces[1]
    assert len(traces[0]) > 6, "little happened"


def test_block_0_is_remembered_wherever_the_index_begins(clean: CleanRuns) -> None:
    for number in (0, 1):
        clean.digest(number)
        with tables_of(clean.path(number)) as tables:
            meta: dict[str, str] = dict(tables.rows("meta", "name, value")[1])
        assert meta["genesis_hash"] == world(number).true.blocks[0].sent.hash
