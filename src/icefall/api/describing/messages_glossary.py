"""The meaning of the fields and parameters of messages between chains; `glossary.py` and `param_glossary.py` hold the
others, and what these do not say anew.
"""

MESSAGES_FIELDS: dict[str, str] = {
    "icmContractAddress": "Messenger contract that sent or received the message.",
    "teleporterContractAddress": "Messenger contract that sent or received the message.",
    "sourceBlockchainId": "Blockchain ID of the chain that sent the message; empty if it is unknown.",
    "destinationBlockchainId": "Blockchain ID of the chain that the message is for.",
    "sourceEvmChainId": "EVM chain ID of the source; empty if it is unknown.",
    "destinationEvmChainId": "EVM chain ID of the destination; empty if it is unknown.",
    "messageNonce": "Number of the message among those of its messenger and source.",
    "messageExecuted": "Whether the call with the message succeeded, at its delivery or when it was tried again.",
    "receipts": "Receipts that the message carries, of messages that went the other way.",
    "receivedMessageNonce": "Number of the message that was received.",
    "relayerRewardAddress": "Address that is rewarded for delivering it.",
    "receiptDelivered": "Whether the receipt of this message came back to its source.",
    "rewardDetails": "Fee of the message, which whoever delivers it gets; zeros where there is none or it is unknown.",
    "RewardDetails.name": "Name of the token; empty where it is not known.",
    "RewardDetails.symbol": "Symbol of the token; empty where it is not known.",
    "RewardDetails.decimals": "Decimal places of the token; 0 where they are not known.",
    "RewardDetails.value": "Amount in the token's smallest unit, with what was added since.",
    "sourceTransaction": "Transaction that sent the message first; absent where the source is not indexed.",
    "destinationTransaction": "Transaction that delivered the message; absent while none is indexed.",
    "SourceTransaction.timestamp": "Time of its block in Unix seconds.",
    "DestinationTransaction.timestamp": "Time of its block in Unix seconds.",
    "gasSpent": "Fee that the transaction paid: gas used times its price, in wei.",
    "rewardRedeemer": "Address that can redeem the reward.",
    "delivererAddress": "Address that delivered the message.",
}
_OF_BOTH = {
    "messageId": "ID of the message, the same on both chains: 64 hex digits without 0x.",
    "from": "Address that sent the message, on its source.",
    "to": "Contract that is called with the message, on its destination.",
    "data": "Bytes of the message, in hex; absent where there are none.",
    "status": "pending: sent, and not received on an indexed chain. delivered: both are indexed, whether or not its "
    "call succeeded. delivered_source_not_indexed: only that it was received is indexed.",
}
for _form in ("Icm", "Teleporter"):
    MESSAGES_FIELDS |= {f"{_form}MessageResult.{name}": text for name, text in _OF_BOTH.items()}
    MESSAGES_FIELDS[f"{_form}MessagePage.messages"] = "The messages, newest first."

MESSAGES_FIELDS |= {
    "IcmPoint.timestamp": "Beginning of the period in Unix seconds.",
    "IcmPoint.value": "Messages of the period. Each counts once: where it was sent, or, if that chain is not indexed, "
    "where it was received.",
    "srcBlockchainId": "Blockchain ID of the chain that sent the messages, empty if it is unknown; only where "
    "`groupBy` names it.",
    "destBlockchainId": "Blockchain ID of the chain that the messages are for; only where `groupBy` names it.",
    "IcmSeries.results": "Points, newest first. Periods without messages are left out.",
    "IcmSummary.result": "A row, or with `groupBy` one for each source, destination or pair that has messages.",
    "IcmWindows.lastHour": "Messages of the last hour. Windows end now and begin with a whole hour.",
    "IcmWindows.lastDay": "Messages of the last 24 hours.",
    "lastWeek": "Messages of the last 7 days.",
    "IcmWindows.lastMonth": "Messages of the last 30 days.",
    "last90Days": "Messages of the last 90 days.",
    "IcmWindows.lastYear": "Messages of the last 365 days.",
    "IcmWindows.allTime": "All messages.",
    "TeleporterMetricResult.result": "The count.",
    "TeleporterValue.value": "Transactions since the first indexed block.",
}
MESSAGES_FIELDS |= {
    "CompositeQuery.queries": "The questions, 10 at most.",
    "CompositeQuery.operator": "AND: addresses that all questions have found. OR: those that any has found.",
    "CompositeQuery.pageToken": "`nextPageToken` of the page before.",
    "CompositeQuery.pageSize": "Most addresses in the answer.",
    "AddressQuery.id": "Name of the question in the answer, each another one.",
    "AddressQuery.type": "LatestBalance, AllTimeErc20Balance, AnyTimeErc20Balance, AllTimeNftHolders or "
    "AnyTimeNftHolders. AllTime: throughout the time. AnyTime: at some moment of it.",
    "AddressQuery.params": "What the question is about.",
    "QueryParams.evmChainId": "EVM chain ID, blockchain ID or alias of a chain.",
    "QueryParams.contractAddress": "The token or the collection.",
    "QueryParams.minBalance": "Least balance in the token's smallest unit.",
    "QueryParams.tokenType": "ERC20; NATIVE is not answered here.",
    "QueryParams.firstDate": "First day (UTC), as 2024-12-31.",
    "QueryParams.lastDate": "Last day (UTC), which is included.",
    "QueryParams.startTs": "First second of the time in Unix seconds, instead of days.",
    "QueryParams.endTs": "Last second of the time, which is included.",
    "subQueryCounts": "How many addresses each question has found, by its `id`.",
    "totalCount": "How many addresses there are on all pages.",
    "CompositeAnswer.addresses": "The addresses, in order.",
}

MESSAGES_PARAMS: dict[str, str] = {
    "messageId": "ID of the message: 64 hex digits, with or without 0x.",
    "sourceBlockchainId": "Only messages from this chain: blockchain ID, or EVM chain ID or alias if it is indexed.",
    "destinationBlockchainId": "Only messages to this chain, given as `sourceBlockchainId`.",
    "listIcmMessages.blockchainId": "Only messages from or to this chain, given as `sourceBlockchainId`.",
    "listTeleporterMessages.blockchainId": "Only messages from or to this chain, given as `sourceBlockchainId`.",
    "srcBlockchainId": "Only messages from this chain: blockchain ID, or EVM chain ID or alias if it is indexed.",
    "destBlockchainId": "Only messages to this chain, given as `srcBlockchainId`.",
    "getICMTimeseries.groupBy": "Counts by srcBlockchainId, destBlockchainId, or both, separated by a comma.",
    "getICMSummary.groupBy": "Counts by srcBlockchainId, destBlockchainId, or both, separated by a comma.",
    "getTeleporterMetricsByChain.metric": "Transactions that sent messages, that received some, or the sum of both.",
    "from": "Only messages that this address sent.",
    "to": "Only messages to this address.",
}
