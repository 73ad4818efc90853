"""Lists of staking periods, rewards, subnets and chains are read by ranges of indexes, never sorted or scanned."""

from pathlib import Path

import pytest
from tests.store.opened import open_store

from icefall.evm.standards import load_statements
from icefall.node.store import PACKAGE

# What is read whole, because it is summed up: outputs that are locked, by an index that has no others.
SUMS = {"locked"}


@pytest.mark.parametrize("file", ["periods.sql", "subnet_lists.sql"])
def test_every_list_seeks(tmp_path: Path, file: str) -> None:
    statements = load_statements("icefall.pchain", file)
    store = open_store(tmp_path / "node.sqlite", PACKAGE)
    wrong = []
    for name in statements.names():
        text = statements.named(name)
        params = dict.fromkeys(("key", "low", "below", "limit", "state", "is_delegator", "role", "value", "seq"), 1)
        params |= dict.fromkeys(("owner", "is_node", "subnet_id", "asset_id", "chain_id", "status", "start"), 1)
        params |= {"validation_id": 1}
        given = (1,) if "?" in text else params
        plan = [row[3] for row in store.read(f"explain query plan {text}", given)]
        if name == "chains_of":  # the few chains of one subnet are put into order
            plan = [step for step in plan if "TEMP B-TREE" not in step]
        if any(step.startswith("SCAN") or "TEMP B-TREE" in step for step in plan) and name not in SUMS:
            wrong.append((name, plan))
    store.close()
    assert wrong == []
