"""What holds for all tests: their order, what is traced for coverage, and hypothesis without limits of time."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

ROOT = Path(__file__).parent
# xdist gives whole files to its processes in this order. What takes longest goes first: otherwise one process would be
# busy with such a file at the end while the others have nothing left to do.
SLOW = (
    "store/conformance/",
    "evm/adversarial/",
    "api/test_recorded.py",
    "demo/",
    "e2e/",
    "postgres/",
    "simulation/",
    "follow/",
    "evm/",
    "api/",
    "access/",
    "xchain/",
    "metrics/",
)
# Not traced for coverage, which adds half to their time: they repeat what other tests reach. anvil-1 is by far the
# longest recorded chain.
UNTRACED = (
    "anvil-1",
    "[citus-",
    "postgres/test_answers.py",
    "postgres/test_node_answers.py",
    "evm/adversarial/",
    "test_an_upstream_failure_changes_nothing",
    "test_batches_of_any_size_store_the_same",
    "test_a_run_costs_the_same_after_a_hundred_thousand_blocks",
    "test_a_hundred_thousand_utxos",
    "xchain/test_random_history.py",
)

settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: _rank(item.path.relative_to(ROOT).as_posix()))
    for item in items:
        if any(name in item.nodeid for name in UNTRACED):
            item.add_marker("no_cover")


def _rank(path: str) -> int:
    return next((rank for rank, prefix in enumerate(SLOW) if path.startswith(prefix)), len(SLOW))
