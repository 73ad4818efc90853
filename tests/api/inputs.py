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

# What to send, by the name of the method: what the docs show, except where a fresh network has nothing to show.
INPUTS: dict[str, Any] = EXAMPLES | {
    "avm.issueTx": {"tx": TX["tx"]},
    "avm.getTx": {"txID": TX["txID"]},
    "avm.getTxStatus": {"txID": TX["txID"]},
    "index.getContainerByID": {"id": CONTAINER},
    "index.getContainerRange": {"startIndex": 0, "numToFetch": "10"},
    "index.getIndex": {"id": CONTAINER},
    "index.isAccepted": {"id": CONTAINER, "encoding": "hex"},
}
