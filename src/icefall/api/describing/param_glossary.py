"""The meaning of every parameter of the interfaces, as `glossary.py` has it for fields. An entry of `operation.name`
goes before that of `name`.
"""

from icefall.api.describing.caller_glossary import CALLER_PARAMS
from icefall.api.describing.messages_glossary import MESSAGES_PARAMS
from icefall.api.describing.networks_glossary import NETWORKS_PARAMS
from icefall.api.describing.platform_glossary import PLATFORM_PARAMS
from icefall.api.describing.staking_glossary import STAKING_PARAMS
from icefall.api.describing.x_glossary import X_PARAMS

PARAMS: dict[str, str] = {
    "orgId": "Accepted and ignored: there are no organisations here.",
    "apiKeyId": "Only requests with the key of this name.",
    "requestPath": "Only requests to this path.",
    "requestType": "Only requests of this kind.",
    "responseCode": "Only answers with this HTTP status.",
    "groupBy": "Counts are given per value of this.",
    "address": "Address: 0x and 40 hex digits, in any case.",
    "avm.getAddressTxs.address": "Address on the X-Chain.",
    "avm.getAllBalances.address": "Address on the X-Chain.",
    "avm.getBalance.address": "Address on the X-Chain.",
    "stream.address": "Only transactions and transfers of this address.",
    "stream.token": "Only transfers of this token; with an address, those of both.",
    "stream.chainId": "Only this chain; without it all.",
    "types": "Kinds of events, separated by commas; transfers need an address.",
    "lastEventId": "ID of the last event received; browsers send it as the header Last-Event-ID.",
    "listTokenPrices.address": "Contract of the token, or `native` for the chain's own token.",
    "addresses": "Addresses on the X-Chain, 1,024 at most.",
    "alias": "New name, at most 512 characters; of info.getBlockchainID, the name to look up.",
    "assetID": "ID or alias of the asset.",
    "blockID": "ID of the block.",
    "blockId": "Number or hash of the block.",
    "blockNumber": "Balances right after this block; without it, at the newest one.",
    "chain": "ID or alias of the chain.",
    "chainId": "EVM chain ID, blockchain ID or alias of a chain.",
    "closest": "before: the newest block that is not later. after: the oldest one that is not earlier.",
    "contractAddress": "Only this contract.",
    "listBalanceHistory.contractAddress": "ERC-20 token; without it the native token.",
    "contractAddresses": "Only these tokens, zero balances included: 1 to 100 addresses, separated by commas. "
    "Addresses that are not ERC-20 tokens are left out.",
    "currency": "Currency of prices and values.",
    "cursor": "Where the page begins: `cursor` of the page before.",
    "displayLevel": "Lowest level to show on the terminal.",
    "encoding": "hex, or json where there is a JSON form.",
    "endBlock": "End of the range: exclusive, this block is not in it. Without it the range ends at the newest one.",
    "endTimestamp": "End of the time frame in Unix seconds: exclusive.",
    "endpoint": "The part of the path after /ext/.",
    "ercType": "Only tokens of this standard.",
    "feature": "Only chains with this feature.",
    "filterSpamTokens": "Leave out tokens that the reputation list calls malicious.",
    "height": "Height of the block.",
    "id": "ID of the container.",
    "includePartial": "Also count what is locked, or needs further signatures.",
    "index": "Number of the container, from 0.",
    "limit": "Most UTXOs in the answer, up to 1,024.",
    "logLevel": "Lowest level to write to log files.",
    "loggerName": "One logger; without it all.",
    "metric": "Name of the series; `/v1/metrics` lists them.",
    "network": "Only chains of this kind of network; fuji and testnet mean the same.",
    "nodeIDs": "Only these peers.",
    "numToFetch": "Number of containers, up to 1,024.",
    "pageSize": "Most items in a page.",
    "getTransactionsForBlock.pageSize": "Most items in a page; 0 is the whole block.",
    "pageToken": "`nextPageToken` of the page before; valid for 24 hours and for the same query.",
    "query": "Address, transaction or block hash, block number, or the beginning of a token's name or symbol.",
    "sortOrder": "desc: newest first. asc: oldest first.",
    "sourceChain": "Chain from which the UTXOs were exported.",
    "startBlock": "First block of the range: inclusive. Without it the range begins with the first indexed block.",
    "startIndex": "First container, from 0.",
    "avm.getUTXOs.startIndex": "Where the page begins: `endIndex` of the page before.",
    "startTimestamp": "Start of the time frame in Unix seconds: inclusive.",
    "status": "Only transactions that failed, or that succeeded.",
    "strict": "Answer 503 when something is down.",
    "tag": "Only checks with this tag, and global ones; may be repeated.",
    "tags": "Only checks with one of these tags, and global ones.",
    "timeInterval": "Length of a period.",
    "listBalanceHistory.timeInterval": "The balance at the end of every such period; without it, at every change.",
    "timestamp": "Time in Unix seconds.",
    "threshold": "Amount in the token's smallest unit that must be exceeded.",
    "tokenId": "ID of the NFT in its contract, in decimal.",
    "topic0": "Only logs with this first topic: the hash of the event's signature.",
    "topic1": "Only logs with this second topic.",
    "topic2": "Only logs with this third topic.",
    "topic3": "Only logs with this fourth topic.",
    "tx": "The signed transaction, in hex with a checksum.",
    "txHash": "Hash of the transaction: 0x and 64 hex digits.",
    "txID": "ID of the transaction.",
}
PARAMS |= PLATFORM_PARAMS | NETWORKS_PARAMS | X_PARAMS | STAKING_PARAMS | CALLER_PARAMS | MESSAGES_PARAMS

_OF_WEBHOOKS = (
    "getWebhook", "updateWebhook", "deactivateWebhook", "getAddressesFromWebhook", "addAddressesToWebhook",
    "removeAddressesFromWebhook", "listWebhookMessages", "countWebhookMessages", "replayWebhook", "testWebhook",
)  # fmt: skip
PARAMS |= {f"{operation}.id": "ID of the webhook." for operation in _OF_WEBHOOKS}
PARAMS |= {
    "listWebhooks.status": "Only webhooks that are active, or inactive.",
    "listWebhookMessages.status": "Only messages with this status.",
}


def param_text(operation: str, name: str) -> str:
    return PARAMS.get(f"{operation}.{name}") or PARAMS.get(name, "")
