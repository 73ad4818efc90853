"""Valid parameters for every method that takes any."""

import gzip
import json
from pathlib import Path
from typing import Any

from icefall.api.describing.examples import EXAMPLES

SCENARIO = Path(__file__).parent.parent / "vectors" / "scenario-1" / "scenario.jsonl.gz"
X_ID = "2eNy1mUFdmaxXNj1eQHUe7Np4gju9sJsEtWQ4MX3ToiNKuADed"
RICH = "X-local18jma8ppw3nhx5r4ap8clazz0dps7rv5u00z96u"


def first_accepted() -> dict[str, Any]:
    """The first transaction of a recorded history that began as ours does."""
    with gzip.open(SCENARIO) as lines:
        every = (json.loads(line) for line in lines)
        return next(row for row in every if row["chain"] == "X" and row["accepted"])


TX = first_accepted()
CONTAINER = "<the block that accepted it>"
P_BLOCK_0 = "<block 0 of the P-Chain>"  # it depends on when the network began

# What to send, by the name of the method: what the docs show, except where a fresh network has nothing to show.
INPUTS: dict[str, Any] = EXAMPLES | {
    "avm.issueTx": {"tx": TX["tx"]},
    "avm.getTx": {"txID": TX["txID"]},
    "avm.getTxStatus": {"txID": TX["txID"]},
    "platform.getBlock": {"blockID": P_BLOCK_0},
    "index.getContainerByID": {"id": CONTAINER},
    "index.getContainerRange": {"startIndex": 0, "numToFetch": "10"},
    "index.getIndex": {"id": CONTAINER},
    "index.isAccepted": {"id": CONTAINER, "encoding": "hex"},
}
# What a fresh network of its own cannot answer, with its text. Good answers: tests/pchain/test_recorded_answers.py.
REFUSED = {
    "platform.issueTx": "problem decoding transaction: encoding/hex: invalid byte: U+003C '<'",
    "platform.getSubnet": "not found",
    "platform.getL1Validator": (
        'fetching L1 validator "2BYb3d1da5kAsJGomHezopcKk3Qju6uikJ1nTLdSzdSasA3N7K" failed: not found'
    ),
}
