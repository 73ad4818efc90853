"""What holds for all tests: their order, what is traced for coverage, and hypothesis without limits of time."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

ROOT = Path(__file__).parent
# xdist gives whole files to its processes in this order. What takes longest goes first: otherwise one process would be
# busy with such a file at the end while the others have nothing left to do.
_AREAS = ("demo/", "e2e/", "simulation/", "follow/", "evm/", "api/", "access/", "xchain/", "metrics/")
SLOW = ("api/test_recorded.py", *_AREAS)
# By far the longest recorded chain. Tracing it for coverage doubles its time and shows nothing that the others do not.
LONG_CHAIN = "anvil-1"

settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: _rank(item.path.relative_to(ROOT).as_posix()))
    for item in items:
        if LONG_CHAIN in item.name:
            item.add_marker("no_cover")


def _rank(path: str) -> int:
    return next((rank for rank, prefix in enumerate(SLOW) if path.startswith(prefix)), len(SLOW))
