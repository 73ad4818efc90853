"""Examples: parameters of methods and paths. They return something on the demo, which a test checks."""

from typing import Any

from icefall.api.http.row import Rpc
from icefall.wire.ids import LOCAL_FUNDED_ADDRESS as _RICH

_X_ID = "2eNy1mUFdmaxXNj1eQHUe7Np4gju9sJsEtWQ4MX3ToiNKuADed"
_AVAX = "2fombhL7aGPwj3KH4bfrmJwW6PVnMobf9Y2fn9GwxiAAJyFDbe"
_CONTAINER = "TChiHRkFsqWuVK2uWUbjMQvuycjHMM1WomWkBWaNrqEAVajVN"  # of the X-Chain's first block
_BLOCK_0 = "2R2UY2pZMQr8nR9ywCdqn97Lp5a6hceqtLXkag6vH7KQSVvmst"
_PRIMARY = "11111111111111111111111111111111LpoYY"  # the primary network, and the P-Chain in it
_P_RICH = _RICH.replace("X-", "P-", 1)
_SUBNET = "uSwQXYC47XJ2KEHW6kdQZsPwVp3ymMKnQmkjChnRn6Fi41eWE"  # of the demo, made in the P-Chain's first block
_P_BLOCK_1 = "4x7b1ax6wnkJiVLDnoJSDnHKUzqpeLFTrPv5eBYmhjXNKsmH4"

# On the demo's chain 3210042: a token, an NFT, and a transaction with transfers and internal transactions.
TOKEN = {"address": "0x5A7Cf40d3b2A2FfEA2ad8fa63E5900690b53f411"}
CLONE = {"address": "0xf218eD0D8F2DCC1B4DD120ad790fB2fC9a7d4a43"}
NFT = {"address": "0x25A57710f3e2e1DcE49289A4200572C31C2dd4AC", "tokenId": "10"}
LOGO = {"address": "0x414846896BAF0Ef95f4BBD4A0416D3FbCa329f6d"}
PICTURE = {"address": NFT["address"], "tokenId": "55"}
PLATFORM_TX = {"txHash": _SUBNET}
NODE = {"nodeId": "NodeID-7Xhw2mDxuDS44j42TCB6U5579esbSt3Lg"}
X_CHAIN = {"blockchainId": "x-chain", "vertexHash": _BLOCK_0, "vertexHeight": "1"}
X_ASSET = {"blockchainId": "x-chain", "assetId": _AVAX}
BECH32_ADDRESSES = {"addresses": _RICH.removeprefix("X-")}
PENDING_REWARDS = {"nodeIds": NODE["nodeId"]}
PAID_REWARDS = {"nodeIds": "NodeID-3ra9PY5jVmQhSYtrv7ygrBTAqJz5DBTFU"}
# The demo's L1, and a validator of it.
L1_SUBNET = {"subnetId": "TRbAamautdYXZo3CqbZkWkGw1YEHjzMBM96sNBGhAu68B1Lr7"}
L1_NODE = {"nodeId": "NodeID-32JeLW4nznQJTD4BLYPQQX1eiMWZHmAjR"}
L1_VALIDATION = {"l1ValidationId": "2Y6n8oL6tWYsNuS7tVdfav23c7kACtMKVzFnTzd7L5SKmncL6i"}
MESSENGER_USER = {"address": "0x544D212d67c58e32A0820DE36F19426105ABDA37"}  # sent a message to another chain
TRANSFERS = {"txHash": "0xa865191dba5fd0192e0838fc0fe84e2660bde03475602983846f832b39d34f4b"}

# Bodies of webhooks. Nothing answers at this URL.
WEBHOOK: dict[str, Any] = {
    "eventType": "address_activity",
    "url": "https://example.com/deposits",
    "chainId": "3210042",
    "metadata": {"addresses": [TOKEN["address"]]},
}
ADDRESSES = {"addresses": [NFT["address"]]}
ABI: dict[str, Any] = {
    "abi": [{"type": "event", "name": "Paid", "inputs": [{"name": "amount", "type": "uint256", "indexed": False}]}]
}
READ: dict[str, Any] = {
    "function": "balanceOf(address)",
    "arguments": ["0x5d038640E1a2085e1e4fB53dAaca6807f892b00C"],
}
EXPORT: dict[str, Any] = {
    "type": "TRANSACTION_EXPORT_EVM",
    "options": {"addresses": ["0x5d038640E1a2085e1e4fB53dAaca6807f892b00C"], "includeChains": ["3210042"]},
}

COMPOSITE: dict[str, Any] = {
    "operator": "AND",
    "queries": [
        {
            "id": "holders",
            "type": "LatestBalance",
            "params": {
                "evmChainId": "3210042",
                "tokenType": "ERC20",
                "contractAddress": TOKEN["address"],
                "minBalance": "1",
            },
        }
    ],
}

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
    "platform.getBlock": {"blockID": _P_BLOCK_1, "encoding": "json"},
    "platform.getBlockByHeight": {"height": "0", "encoding": "json"},
    "platform.getTx": {"txID": _X_ID, "encoding": "hex"},
    "platform.getTxStatus": {"txID": _X_ID},
    "platform.issueTx": {"tx": "0x<signed transaction and checksum>"},
    "platform.getUTXOs": {"addresses": [_P_RICH], "limit": 5},
    "platform.getBalance": {"addresses": [_P_RICH]},
    "platform.getStake": {"addresses": [_P_RICH]},
    "platform.getRewardUTXOs": {"txID": _X_ID},
    "platform.getSubnet": {"subnetID": _SUBNET},
    "platform.getSubnets": {"ids": [_PRIMARY]},
    "platform.getStakingAssetID": {"subnetID": _PRIMARY},
    "platform.getCurrentValidators": {"subnetID": _PRIMARY},
    "platform.getL1Validator": {"validationID": "2BYb3d1da5kAsJGomHezopcKk3Qju6uikJ1nTLdSzdSasA3N7K"},
    "platform.getCurrentSupply": {"subnetID": _PRIMARY},
    "platform.getTotalStake": {"subnetID": _PRIMARY},
    "platform.getMinStake": {"subnetID": _PRIMARY},
    "platform.sampleValidators": {"size": 2},
    "platform.getValidatorsAt": {"height": 0},
    "platform.getAllValidatorsAt": {"height": 0},
    "platform.validatedBy": {"blockchainID": _X_ID},
    "platform.validates": {"subnetID": _PRIMARY},
    "platform.getBlockchainStatus": {"blockchainID": "X"},
    "index.getContainerByID": {"id": _CONTAINER},
    "index.getContainerByIndex": {"index": 0},
    "index.getContainerRange": {"startIndex": 0, "numToFetch": 10},
    "index.getIndex": {"id": _CONTAINER},
    "index.getLastAccepted": {"encoding": "hex"},
    "index.isAccepted": {"id": _CONTAINER},
}


def example_call(row: Rpc) -> dict[str, Any]:
    """A request of the method."""
    body: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "method": row.method}
    return body | ({"params": EXAMPLES[row.method]} if EXAMPLES.get(row.method) else {})
