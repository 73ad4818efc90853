"""Valid parameters for every method that takes any."""

import gzip
import json
from pathlib import Path
from typing import Any

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

# What to send, by the name of the method; what is not named is called without parameters.
INPUTS: dict[str, Any] = {
    "health.health": {"tags": ["11111111111111111111111111111111LpoYY"]},
    "health.readiness": {"tags": []},
    "admin.alias": {"endpoint": "health", "alias": "fitness"},
    "admin.aliasChain": {"chain": "X", "alias": "assets"},
    "admin.getChainAliases": {"chain": X_ID},
    "admin.getLoggerLevel": {"loggerName": "main"},
    "admin.setLoggerLevel": {"loggerName": "X", "logLevel": "DEBUG"},
    "info.getBlockchainID": {"alias": "X"},
    "info.isBootstrapped": {"chain": "X"},
    "info.peers": {"nodeIDs": []},
    "avm.getAllBalances": {"address": RICH},
    "avm.getAssetDescription": {"assetID": "AVAX"},
    "avm.getBalance": {"address": RICH, "assetID": "AVAX"},
    "avm.getBlock": {"blockID": "2R2UY2pZMQr8nR9ywCdqn97Lp5a6hceqtLXkag6vH7KQSVvmst"},
    "avm.getBlockByHeight": {"height": "0"},
    "avm.issueTx": {"tx": TX["tx"]},
    "avm.getTx": {"txID": TX["txID"]},
    "avm.getTxStatus": {"txID": TX["txID"]},
    "avm.getUTXOs": {"addresses": [RICH], "limit": 5},
    "avm.getAddressTxs": {"address": RICH, "assetID": "AVAX"},
    "index.getContainerByID": {"id": CONTAINER},
    "index.getContainerByIndex": {"index": 0},
    "index.getContainerRange": {"startIndex": 0, "numToFetch": "10"},
    "index.getIndex": {"id": CONTAINER},
    "index.getLastAccepted": {"encoding": "hex"},
    "index.isAccepted": {"id": CONTAINER, "encoding": "hex"},
}
