"""A recorded chain on PostgreSQL: its lists, balances and metrics over HTTP are those of the recording.

The tests themselves are those of SQLite, on other fixtures.
"""

from collections.abc import Iterator

import pytest
from tests.api.data_naive import Naive, naive
from tests.api.data_scene import Served, data_server
from tests.api.test_data_answers import (  # noqa: F401
    test_block_ranges,
    test_blocks_and_their_transactions,
    test_contracts,
    test_deployments,
    test_lists_of_addresses,
    test_newest_transactions_by_status,
    test_transactions_with_what_concerns_an_address,
    test_transfers_of_tokens,
    test_whole_transactions,
)
from tests.evm.recordings import derived
from tests.metrics.scene import Scene
from tests.metrics.test_metrics_recorded import test_series_equal_a_recomputation as test_series  # noqa: F401

CHAIN = "geth-1"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("answers")
    with data_server(folder, chains=(CHAIN,), store="postgres") as program:
        yield program


@pytest.fixture
def recorded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Naive | tuple[str, Scene]:
    """What the tests of the chain data interface compare with, or the chain with its metrics."""
    return request.getfixturevalue("metrics") if "metric" in request.fixturenames else naive(CHAIN)


@pytest.fixture(scope="module")
def metrics(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Scene]]:
    scene = Scene(tmp_path_factory.mktemp(CHAIN) / "chain.postgres")
    rows = [one.rows for one in derived(CHAIN)]
    for at in range(0, len(rows), 100):
        scene.put(rows[at : at + 100])
    yield CHAIN, scene
    scene.close()
