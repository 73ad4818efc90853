"""Lists of the primary network are read by ranges of indexes, never sorted or scanned."""

import re
from pathlib import Path

import pytest
from tests.store.opened import open_store

from icefall.evm.standards import load_statements
from icefall.node.store import PACKAGE

# What is read whole: outputs that are locked, by an index that has no others, for their sum; the one row that says how
# far P is; of vertices those without a child, by an index of two entries; once, in stores of an older release, what
# proposals moved.
WHOLE = {"locked", "incomplete", "childless", "moves_in_proposals"}
# The few chains of one subnet, and the transactions of a page, are put into order.
SORTED = {"chains_of", "txs_of_address_down"}
FILES = [
    ("pchain", "periods.sql"),
    ("pchain", "subnet_lists.sql"),
    ("pchain", "listing.sql"),
    ("pchain", "observed.sql"),
    ("pchain", "day_sums.sql"),
    ("xchain", "listing.sql"),
    ("xchain", "outputs.sql"),
    ("xchain", "vertices.sql"),
    ("node", "core_chain.sql"),
]


@pytest.mark.parametrize(("package", "file"), FILES)
def test_every_list_seeks(tmp_path: Path, package: str, file: str) -> None:
    statements = load_statements(f"icefall.{package}", file)
    store = open_store(tmp_path / "node.sqlite", PACKAGE)
    wrong, seen = [], 0
    for name in statements.names():
        text = statements.named(name)
        if not text.lstrip().startswith("select"):
            continue
        seen += 1
        names = set(re.findall(r"(?<!:):([a-z_]\w*)", text))
        given = dict.fromkeys(names, 1) if names else (1,) * text.count("?")
        plan = [row[3] for row in store.read(f"explain query plan {text}", given)]
        if name in SORTED:  # what a subquery has found is one page
            plan = [step for step in plan if "TEMP B-TREE" not in step and step != "SCAN found"]
        if any(step.startswith("SCAN") or "TEMP B-TREE" in step for step in plan) and name not in WHOLE:
            wrong.append((name, plan))
    store.close()
    assert seen
    assert wrong == []
