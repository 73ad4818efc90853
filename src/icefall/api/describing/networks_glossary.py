"""The meaning of the fields and parameters of the primary network interface; `glossary.py` and `param_glossary.py` hold
the others, and what these do not say anew.
"""

_ASSET: dict[str, str] = {
    "name": "Name of the asset; empty where the X-Chain here does not know it.",
    "symbol": "Symbol of the asset; empty where the X-Chain here does not know it.",
    "type": "Kind of asset.",
}

NETWORKS_FIELDS: dict[str, str] = {
    # -- assets and owners ----------------------------------------------------------------------------------------
    **{
        f"{shape}.{name}": text
        for shape in ("NetworkAsset", "CategoryAmount", "SharedAmount")
        for name, text in _ASSET.items()
    },
    "assetId": "ID of the asset.",
    "amount": "Amount in the asset's smallest unit.",
    "utxoCount": "How many outputs make up the amount.",
    "sharedWithChainId": "ID of the chain at the other end of the shared memory.",
    "SharedAmount.status": "pendingImport: exported here by the other chain. pendingExport: exported there.",
    "PrimaryChainInfo.network": "Name under which the network is served.",
    "chainInfo": "Chain and network of the answer.",
    "OwnershipInfo.addresses": "Addresses of the owner.",
    "ManagerDetails.blockchainId": "ID of the chain of the contract that manages the validators.",
    "contractAddress": "Address of that contract in hex.",
    "BlsCredentials.publicKey": "BLS public key in hex.",
    # -- outputs --------------------------------------------------------------------------------------------------
    "PlatformUtxoResult.addresses": "Owners of the output; of an imported one, who signed for it.",
    "utxoId": "ID of the output.",
    "PlatformUtxoResult.txHash": "ID of the transaction that made it; of a reward, the staking transaction.",
    "PlatformUtxoResult.asset": "Asset of the output, with its amount.",
    "PlatformUtxoResult.blockNumber": "Height of the block that made it; 0 for one that was imported.",
    "PlatformUtxoResult.blockTimestamp": "Time of that block in Unix seconds; 0 for one that was imported.",
    "createdOnChainId": "ID of the chain that made it.",
    "consumedOnChainId": "ID of the chain on which it can be consumed: another one if it was exported.",
    "consumingTxHash": "ID of the transaction that consumed it.",
    "consumingBlockNumber": "Height of that transaction's block.",
    "consumingBlockTimestamp": "Time of that block, in Unix seconds.",
    "platformLocktime": "Unix seconds until which it is locked; 0: it is not.",
    "stakeableLocktime": "Unix seconds until which it can be staked but not spent; absent where it can be spent.",
    "PlatformUtxoResult.staked": "Whether it is at stake now; where it was made, whether as a stake.",
    "utxoStartTimestamp": "When its stake began, in Unix seconds.",
    "utxoEndTimestamp": "When its stake ends, in Unix seconds.",
    "rewardType": "Whose reward it is: of a validator, of a delegator, or a validator's share of delegators' rewards.",
    "utxoType": "STAKE: it can be staked before it can be spent. TRANSFER: any other.",
    "PlatformUtxoPage.utxos": "The outputs, newest first unless sorted otherwise.",
    # -- balances -------------------------------------------------------------------------------------------------
    "PlatformBalancesResult.balances": "Balances by category, each by asset.",
    "unlockedUnstaked": "What can be spent.",
    "unlockedStaked": "What is at stake and can be spent when the stake ends.",
    "lockedPlatform": "What is locked.",
    "PlatformBalances.lockedStakeable": "What can be staked but not spent.",
    "lockedStaked": "What is at stake and still locked when the stake ends.",
    "pendingStaked": "What is at stake from a later time on.",
    "atomicMemoryUnlocked": "What is exported to another chain or from one, and was not imported yet.",
    "atomicMemoryLocked": "What of that is locked.",
    # -- blocks ---------------------------------------------------------------------------------------------------
    "PrimaryNetworkBlock.blockHash": "ID of the block, without its proposer's wrapping; of C, its hash in hex.",
    "PrimaryNetworkBlock.parentHash": "ID of the block before it.",
    "blockType": "Type of the block, such as BanffStandardBlock.",
    "PrimaryNetworkBlock.transactions": "IDs of its transactions; of C, of its atomic ones.",
    "blockSizeBytes": "Size without the proposer's wrapping.",
    "proposerDetails": "Proposer's wrapping; block 0 has none.",
    "proposerId": "ID of the wrapped block.",
    "proposerParentId": "ID of the wrapped block before it.",
    "proposerNodeId": "NodeID of the proposer; absent where none signed.",
    "proposerPChainHeight": "Height of the P-Chain that decided who may propose.",
    "proposerTimestamp": "Time that the proposer gave it, in Unix seconds.",
    # -- network details ------------------------------------------------------------------------------------------
    "validatorDetails": "The current validators of the primary network.",
    "delegatorDetails": "The current delegators of the primary network.",
    "validatorCount": "Number of validators.",
    "totalAmountStaked": "Sum of their stakes, in nAVAX.",
    "estimatedAnnualStakingReward": "Sum of the rewards of all current stakes if all are paid, in nAVAX.",
    "stakingDistributionByVersion": "Stake by version of the validators' programs, delegations included.",
    "StakingDistribution.version": "Version of the program; offline where it is not known.",
    "StakingDistribution.amountStaked": "Stake of its validators and their delegators, in nAVAX.",
    "stakingRatio": "Share of the supply that is staked, delegations included.",
    # -- transactions ---------------------------------------------------------------------------------------------
    "PlatformTransaction.txHash": "ID of the transaction.",
    "PlatformTransaction.txType": "Type of the transaction, such as ImportTx.",
    "PlatformTransaction.blockHash": "ID of its block.",
    "consumedUtxos": "Outputs it consumed, imported ones included.",
    "emittedUtxos": "Outputs it made: its own, exported ones, its stake, a refund, or rewards.",
    "PlatformTransaction.sourceChain": "ID of the chain it imports from.",
    "destinationChain": "ID of the chain it exports to.",
    "PlatformTransaction.value": "What it made, by asset.",
    "amountBurned": "What it consumed and did not make, stake or pay in again, by asset.",
    "PlatformTransaction.amountStaked": "What it staked, by asset.",
    "amountL1ValidatorBalanceBurned": "What it paid into the balances of L1 validators.",
    "startTimestamp": "When its stake begins, in Unix seconds.",
    "endTimestamp": "When its stake ends, in Unix seconds.",
    "delegationFeePercent": "Share of delegators' rewards that the validator takes, in percent.",
    "nodeId": "NodeID of the validator.",
    "PlatformTransaction.subnetId": "ID of the subnet it is about; of one that creates a subnet, its own.",
    "L1ValidatorOfTx.subnetId": "ID of the L1's subnet.",
    "l1ValidatorManagerDetails": "Contract that manages the validators from now on.",
    "l1ValidatorDetails": "L1 validators that it adds, as they are right after it.",
    "validationId": "ID of the validator.",
    "validationIdHex": "ID of the validator in hex.",
    "remainingBalance": "Balance right after the transaction, in nAVAX.",
    "balanceChange": "What the transaction added to the balance, in nAVAX.",
    "blsCredentials": "BLS key of the validator.",
    "estimatedReward": "What is paid at the end if the validator was online enough.",
    "rewardTxHash": "ID of the transaction that ended the stake.",
    "rewardAddresses": "Who gets the reward of the stake.",
    "memo": "Memo in hex.",
    "stakingTxHash": "ID of the staking transaction that it ends.",
    "subnetOwnershipInfo": "Owner that it gives the subnet.",
    "blockchainInfo": "Chain that it creates.",
    "genesisData": "Genesis of the chain: its JSON, or else its bytes in hex. Only where one transaction is asked for.",
}

_OPERATIONS = (
    "getNetworkDetails",
    "listLatestPrimaryNetworkBlocks",
    "getBlockById",
    "listLatestPrimaryNetworkTransactions",
    "getTxByHash",
    "listActivePrimaryNetworkStakingTransactions",
    "getUtxosByAddresses",
    "getBalancesByAddresses",
)
_LISTS = ("listLatestPrimaryNetworkBlocks", *_OPERATIONS[3:4], *_OPERATIONS[5:6])
_OF_ADDRESSES = ("listLatestPrimaryNetworkTransactions", *_OPERATIONS[5:])

NETWORKS_PARAMS: dict[str, str] = {
    **{f"{one}.network": "Name of the network; `--network-name` says which besides its own." for one in _OPERATIONS},
    "blockchainId": "p-chain, x-chain or c-chain, or the ID of one; stakes are of the P-Chain only.",
    "getBlockById.blockId": "Height or ID of the block.",
    "getTxByHash.txHash": "ID of the transaction.",
    **{f"{one}.endTimestamp": "End of the time frame in Unix seconds: inclusive." for one in _LISTS},
    **{f"{one}.addresses": "Bech32 addresses separated by commas, 64 at most." for one in _OF_ADDRESSES},
    "txTypes": "Only transactions of these types, separated by commas.",
    "includeSpent": "Also list outputs that are spent.",
    "blockTimestamp": "Balances at this time in Unix seconds; without it, now.",
}
