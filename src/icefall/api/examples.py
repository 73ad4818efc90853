"""Example parameters for every method that takes some; they work on a new local network."""

from typing import Any

from icefall.wire.genesis.networks import LOCAL_FUNDED_ADDRESS as _RICH

_X_ID = "2eNy1mUFdmaxXNj1eQHUe7Np4gju9sJsEtWQ4MX3ToiNKuADed"
_AVAX = "2fombhL7aGPwj3KH4bfrmJwW6PVnMobf9Y2fn9GwxiAAJyFDbe"
_BLOCK_0 = "2R2UY2pZMQr8nR9ywCdqn97Lp5a6hceqtLXkag6vH7KQSVvmst"

EXAMPLES: dict[str, dict[str, Any]] = {
    "health.health": {"tags": ["11111111111111111111111111111111LpoYY"]},
    "health.readiness": {"tags": []},
    "health.liveness": {},
    "admin.alias": {"endpoint": "health", "alias": "fitness"},
    "admin.aliasChain": {"chain": "X", "alias": "assets"},
    "admin.getChainAliases": {"chain": _X_ID},
    "admin.getLoggerLevel": {"loggerName": "main"},
    "admin.setLoggerLevel": {"loggerName": "X", "logLevel": "DEBUG"},
    "info.getBlockchainID": {"alias": "X"},
    "info.isBootstrapped": {"chain": "X"},
    "info.peers": {"nodeIDs": []},
    "avm.getAllBalances": {"address": _RICH},
    "avm.getAssetDescription": {"assetID": "AVAX"},
    "avm.getBalance": {"address": _RICH, "assetID": "AVAX"},
    "avm.getBlock": {"blockID": _BLOCK_0, "encoding": "json"},
    "avm.getBlockByHeight": {"height": "0", "encoding": "json"},
    "avm.getTx": {"txID": _AVAX, "encoding": "json"},
    "avm.getTxStatus": {"txID": _AVAX},
    "avm.getUTXOs": {"addresses": [_RICH], "limit": 5},
    "avm.issueTx": {"tx": "0x<signed transaction and checksum>"},
    "avm.getAddressTxs": {"address": _RICH, "assetID": "AVAX", "pageSize": 10},
    "index.getContainerByID": {"id": "<container ID>"},
    "index.getContainerByIndex": {"index": 0},
    "index.getContainerRange": {"startIndex": 0, "numToFetch": 10},
    "index.getIndex": {"id": "<container ID>"},
    "index.getLastAccepted": {"encoding": "hex"},
    "index.isAccepted": {"id": _BLOCK_0},
}
