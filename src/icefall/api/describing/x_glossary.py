"""The meaning of the fields and parameters of X, of the atomic side of C and of addresses on every chain;
`networks_glossary.py` has those of the P-Chain, and what these do not say anew.
"""

_ASSET: dict[str, str] = {
    "name": "Name of the asset; empty where the X-Chain here does not know it.",
    "symbol": "Symbol of the asset; empty where the X-Chain here does not know it.",
    "type": "Kind of asset.",
}

X_FIELDS: dict[str, str] = {
    **{f"{shape}.{name}": text for shape in ("AtomicAmount", "AssetDetails") for name, text in _ASSET.items()},
    # -- outputs --------------------------------------------------------------------------------------------------
    "utxoBytes": "The output in hex with a checksum, as wallets need it; in lists of outputs only.",
    "UtxoResult.addresses": "Owners of the output; of one whose export was not seen here, who signed for it.",
    "UtxoResult.asset": "Asset of the output, with its amount: an NFT is one, the right to mint is 0.",
    "UtxoResult.threshold": "How many of its owners must sign.",
    "UtxoResult.locktime": "Unix seconds until which it is locked; 0: it is not.",
    "UtxoResult.timestamp": "When it was made, in Unix seconds; 0 where its export was not seen here.",
    "UtxoResult.utxoType": "Kind of output: transfer, mint, nft-mint, nft-transfer, property-mint or property-owned.",
    "consumingTxTimestamp": "When it was consumed, in Unix seconds.",
    "creationTxHash": "ID of the transaction that made it.",
    "UtxoResult.credentials": "Signatures for it, once it is consumed.",
    "EvmInput.credentials": "Signatures for the amount.",
    "groupId": "Group of the NFT.",
    "payload": "Content of the NFT, in hex.",
    "UtxoCredential.signature": "Signature in base64.",
    "UtxoCredential.publicKey": "Public key of the signature in base64; only where one transaction is asked for.",
    "ChainUtxoPage.utxos": "The outputs, newest first unless sorted otherwise.",
    # -- assets and balances ----------------------------------------------------------------------------------------
    "createdAtTimestamp": "When the asset was created, in Unix seconds.",
    "cap": "variable: more of it can be made. fixed: no more can.",
    "XBalancesResult.balances": "Balances by category, each by asset.",
    "CBalancesResult.balances": "Balances by category, each by asset.",
    "XBalances.locked": "What is locked.",
    "XBalances.unlocked": "What can be spent.",
    # -- transactions ---------------------------------------------------------------------------------------------
    **{
        f"{shape}.{name}": text
        for shape in ("XTransaction", "CTransaction")
        for name, text in {
            "txHash": "ID of the transaction.",
            "txType": "Type of the transaction, such as ImportTx.",
            "timestamp": "Time of its block in Unix seconds; of one from before block 1 of X, that of block 0.",
            "sourceChain": "ID of the chain that it takes from.",
            "blockHash": "ID of its block; of C, its hash in hex.",
        }.items()
    },
    "chainFormat": "linear: in a block. non-linear: from before the blocks of X.",
    "amountUnlocked": "What it consumed, by asset.",
    "amountCreated": "What it made, by asset.",
    "assetCreated": "Asset that it created.",
    "blockHeight": "Height of its block.",
    "XTransaction.vertices": "Vertices that hold it, at most 128; none where no upstream has them.",
    "TransactionVertex.hash": "ID of the vertex.",
    "TransactionVertex.height": "Height of the vertex.",
    "TransactionVertex.timestamp": "Time of the vertex, in Unix seconds.",
    "evmInputs": "What an export takes from accounts of the C-Chain.",
    "evmOutputs": "What an import gives to accounts of the C-Chain.",
    "fromAddress": "Account that gives.",
    "toAddress": "Account that gets.",
    "EvmInput.asset": "Asset that it gives, with the amount in the asset's own unit.",
    "EvmOutput.asset": "Asset that it gets, with the amount in the asset's own unit.",
    # -- vertices -------------------------------------------------------------------------------------------------
    "XVertexPage.vertices": "The vertices.",
    "vertexHash": "ID of the vertex.",
    "parentHashes": "IDs of the vertices before it.",
    "vertexHeight": "Height of the vertex.",
    "vertexIndex": "Position of the vertex in the index of the upstream that it was read from.",
    "vertexTimestamp": "Time of block 0 in Unix seconds: vertices have no time, and none is later.",
    "vertexSizeBytes": "Size of the vertex.",
    "XVertex.transactions": "IDs of its transactions, in their order.",
    # -- addresses ------------------------------------------------------------------------------------------------
    "LastActivity.timestamp": "Time of the transaction's block, in Unix seconds.",
    "LastActivity.blockNumber": "Height of the transaction's block.",
    "LastActivity.txHash": "ID of the transaction.",
    "LastActivity.network": "Name under which the network is served.",
    "isConsumed": "Whether the transaction consumed that output; else it made it.",
    "ChainsOfAddress.address": "The address.",
    "ChainsOfAddress.blockchainIds": "IDs of the chains on which it ever owned an output, of C in the shared memory.",
    "ChainsOfAddressesResult.addresses": "The addresses, in the order of the query.",
    "AddressesBody.addresses": "Bech32 addresses separated by commas, 1,024 at most.",
}

_OPERATIONS = (
    "listPrimaryNetworkBlocksByNodeId",
    "getUtxosByAddressesV2",
    "getLastActivityTimestampByAddresses",
    "getLastActivityTimestampByAddressesV2",
    "getAssetDetails",
    "listAssetTransactions",
    "listLatestXChainVertices",
    "getVertexByHash",
    "getVertexByHeight",
    "getChainIdsForAddresses",
)
_OF_ADDRESSES = ("getLastActivityTimestampByAddresses", "getChainIdsForAddresses")
_LISTS = ("listPrimaryNetworkBlocksByNodeId", "listAssetTransactions")
_OF_X = ("getAssetDetails", "listAssetTransactions", "listLatestXChainVertices", "getVertexByHash", "getVertexByHeight")

X_PARAMS: dict[str, str] = {
    **{f"{one}.network": "Name of the network; `--network-name` says which besides its own." for one in _OPERATIONS},
    **{f"{one}.blockchainId": "x-chain, or the ID of the X-Chain." for one in _OF_X},
    **{f"{one}.endTimestamp": "End of the time frame in Unix seconds: inclusive." for one in _LISTS},
    **{f"{one}.addresses": "Bech32 addresses separated by commas, 64 at most." for one in _OF_ADDRESSES},
    "listPrimaryNetworkBlocksByNodeId.nodeId": "NodeID of the proposer.",
    "assetId": "ID of the asset.",
    "getUtxosByAddresses.assetId": "Only outputs of this asset.",
    "getUtxosByAddressesV2.assetId": "Only outputs of this asset.",
    "minUtxoAmount": "Only outputs of this amount or more.",
    "sortBy": "timestamp: by when they were made. amount: by how much they hold, on X and C.",
    "vertexHash": "ID of the vertex.",
    "vertexHeight": "Height of the vertices.",
}
