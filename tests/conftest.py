"""What holds for all tests: their order, what is traced for coverage, and hypothesis without limits of time."""

import gc
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from tests.made_once import use_folder_of
from tests.slowest import seconds_of_files

ROOT = Path(__file__).parent
# xdist gives whole files to its processes: first those that mostly wait for an AvalancheGo, then pages of the Explorer,
# then the slowest of the others (slowest.py).
FIRST = ("pchain/test_live_", "explorer/")
# The files of the Explorer share a browser and a demo. So many processes have one of each, however many there are.
BROWSERS = 2
# Each given to one process as if it were one file: for they all parse the whole program, or need a cluster of Citus.
TOGETHER = (
    ("tests/tidy/",),
    ("tests/store/conformance/", "tests/store/test_statement_counts.py", "tests/store/test_one_history.py"),
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
    "test_a_run_costs_the_same_after_a_hundred_days",
    "xchain/test_random_history.py",
)

# A thousand tests open a store of their own, and each commit of it waits for the disk: where there is enough memory,
# temporary files are kept there. Before anything asks where they belong; the processes of xdist inherit it.
MEMORY, ENOUGH = Path("/dev/shm"), 6 << 30
if "TMPDIR" not in os.environ and MEMORY.is_dir():
    shared, physical = os.statvfs(MEMORY), os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if min(shared.f_bavail * shared.f_frsize, physical // 2) > ENOUGH:
        os.environ["TMPDIR"] = str(MEMORY)
        tempfile.tempdir = None

gc.disable()  # until all tests are collected: nothing of that is garbage

settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")


@pytest.fixture(scope="session", autouse=True)
def _made_once(tmp_path_factory: pytest.TempPathFactory) -> None:
    use_folder_of(tmp_path_factory)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    seconds = seconds_of_files()
    ranks = {path: _rank(path.relative_to(ROOT).as_posix(), seconds) for path in {item.path for item in items}}
    items.sort(key=lambda item: ranks[item.path])
    for item in items:
        if any(name in item.nodeid for name in UNTRACED):
            item.add_marker("no_cover")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    if config.getvalue("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling  # type: ignore[import-untyped]

    taken, groups = [0.0] * BROWSERS, {}
    for path, seconds in seconds_of_files().items():
        if path.startswith("explorer/"):
            place = taken.index(min(taken))
            taken[place] += seconds
            groups[f"tests/{path}"] = f"tests/explorer/{place}"

    class ByFile(LoadFileScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            group = next((prefixes[0] for prefixes in TOGETHER if nodeid.startswith(prefixes)), None)
            scope = str(super()._split_scope(nodeid))
            return group or groups.get(scope, scope)

    return ByFile(config, log)


def pytest_collection_finish() -> None:
    """What was collected stays until the end: thousands of tests, which the garbage collector need not visit again, not
    even once."""
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)  # tests make rows by the thousand, few of them in a cycle
    gc.enable()


def _rank(path: str, seconds: Mapping[str, float]) -> tuple[int, float]:
    place = next((place for place, prefix in enumerate(FIRST) if path.startswith(prefix)), len(FIRST))
    return place, -seconds.get(path, 0.0)
