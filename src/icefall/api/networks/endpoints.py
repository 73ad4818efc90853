"""The rows of the primary network interface."""

from icefall.api.describing import examples
from icefall.api.http.row import DATA, Rest, Weight
from icefall.api.networks.handlers import any_chain, rewards, subnets, supply, transactions, validators
from icefall.api.networks.schema.assets import NetworkParams
from icefall.api.networks.schema.blocks import (
    NetworkDetails,
    PlatformBlockParams,
    PlatformBlocksParams,
    PrimaryNetworkBlock,
    PrimaryNetworkBlockPage,
)
from icefall.api.networks.schema.c_chain import ChainUtxosParams
from icefall.api.networks.schema.subnets import (
    AvaxSupply,
    BlockchainPage,
    NetworkBlockchain,
    NetworkBlockchainParams,
    NetworkSubnet,
    NetworkSubnetParams,
    NetworkSubnetsParams,
    NoQuery,
    SubnetPage,
)
from icefall.api.networks.schema.transactions import (
    ListedTxsParams,
    PlatformBalancesParams,
    PlatformTransactionPage,
    PlatformTxParams,
    PlatformTxsParams,
)
from icefall.api.networks.schema.validators import (
    DelegatorPage,
    DelegatorsParams,
    HistoricalRewardPage,
    L1ValidatorPage,
    L1ValidatorsParams,
    NetworkValidatorsParams,
    PaidRewardsParams,
    PendingRewardPage,
    RewardsParams,
    ValidatorPage,
    ValidatorParams,
)
from icefall.api.networks.x_endpoints import X_ENDPOINTS

NETWORK = "/v1/networks/{network}"
CHAIN = f"{NETWORK}/blockchains/{{blockchainId}}"

# fmt: off
NETWORKS_ENDPOINTS: tuple[Rest, ...] = (
    Rest(verb="GET", path=NETWORK, params=NetworkParams, result=NetworkDetails, handler=supply.network_details,
         listeners=(DATA,), weight=Weight.XL, operation="getNetworkDetails",
         summary="Validators, delegators and stake of the primary network now."),
    Rest(verb="GET", path=f"{CHAIN}/blocks", params=PlatformBlocksParams, result=PrimaryNetworkBlockPage,
         handler=any_chain.list_blocks, listeners=(DATA,), weight=Weight.MEDIUM,
         operation="listLatestPrimaryNetworkBlocks",
         summary="Blocks of a chain, newest first."),
    Rest(verb="GET", path=f"{CHAIN}/blocks/{{blockId}}", params=PlatformBlockParams, result=PrimaryNetworkBlock,
         handler=any_chain.get_block, listeners=(DATA,), weight=Weight.XL, operation="getBlockById",
         summary="A block of a chain by its height or ID."),
    Rest(verb="GET", path=f"{CHAIN}/transactions", params=ListedTxsParams, result=any_chain.AnyTransactionPage,
         handler=any_chain.list_transactions, listeners=(DATA,), weight=Weight.XL,
         operation="listLatestPrimaryNetworkTransactions",
         summary="Transactions of a chain, of all or of some addresses, newest first; of C, its atomic ones."),
    Rest(verb="GET", path=f"{CHAIN}/transactions/{{txHash}}", params=PlatformTxParams, result=any_chain.AnyTransaction,
         handler=any_chain.get_transaction, listeners=(DATA,), weight=Weight.MEDIUM, operation="getTxByHash",
         examples=examples.PLATFORM_TX, summary="A transaction of a chain by its ID; of C, an atomic one."),
    Rest(verb="GET", path=f"{CHAIN}/transactions:listStaking", params=PlatformTxsParams,
         result=PlatformTransactionPage, handler=transactions.list_staking, listeners=(DATA,), weight=Weight.XL,
         operation="listActivePrimaryNetworkStakingTransactions",
         summary="Staking transactions of the P-Chain whose stake is active, newest first."),
    Rest(verb="GET", path=f"{CHAIN}/utxos", params=ChainUtxosParams, result=any_chain.AnyUtxoPage,
         handler=any_chain.list_utxos, listeners=(DATA,), weight=Weight.XL, operation="getUtxosByAddresses",
         summary="Outputs of addresses on a chain, staked ones included, newest first."),
    Rest(verb="GET", path=f"{CHAIN}/balances", params=PlatformBalancesParams, result=any_chain.AnyBalances,
         handler=any_chain.balances, listeners=(DATA,), weight=Weight.XL, operation="getBalancesByAddresses",
         summary="Balances of addresses on a chain by category, now or at an earlier time."),
    *X_ENDPOINTS,
    Rest(verb="GET", path=f"{NETWORK}/validators", params=NetworkValidatorsParams, result=ValidatorPage,
         handler=validators.list_validators, listeners=(DATA,), weight=Weight.MEDIUM, operation="listValidators",
         summary="Validation periods of the primary network and of subnets, newest first."),
    Rest(verb="GET", path=f"{NETWORK}/validators/{{nodeId}}", params=ValidatorParams, result=ValidatorPage,
         handler=validators.get_validator, listeners=(DATA,), weight=Weight.MEDIUM,
         operation="getSingleValidatorDetails", examples=examples.NODE,
         summary="Validation periods of one node in all subnets, newest first."),
    Rest(verb="GET", path=f"{NETWORK}/delegators", params=DelegatorsParams, result=DelegatorPage,
         handler=validators.list_delegators, listeners=(DATA,), weight=Weight.MEDIUM, operation="listDelegators",
         summary="Delegations, of all or of some nodes or reward addresses, newest first."),
    Rest(verb="GET", path=f"{NETWORK}/l1Validators", params=L1ValidatorsParams, result=L1ValidatorPage,
         handler=validators.list_l1_validators, listeners=(DATA,), weight=Weight.MEDIUM,
         operation="listL1Validators", summary="Validators of L1s with their balances, newest first."),
    Rest(verb="GET", path=f"{NETWORK}/subnets", params=NetworkSubnetsParams, result=SubnetPage,
         handler=subnets.list_subnets, listeners=(DATA,), weight=Weight.MEDIUM, operation="listSubnets",
         summary="Subnets with their owners and blockchains, newest first."),
    Rest(verb="GET", path=f"{NETWORK}/subnets/{{subnetId}}", params=NetworkSubnetParams, result=NetworkSubnet,
         handler=subnets.get_subnet, listeners=(DATA,), weight=Weight.MEDIUM, operation="getSubnetById",
         summary="A subnet by its ID."),
    Rest(verb="GET", path=f"{NETWORK}/blockchains", params=NetworkSubnetsParams, result=BlockchainPage,
         handler=subnets.list_blockchains, listeners=(DATA,), weight=Weight.MEDIUM, operation="listBlockchains",
         summary="Blockchains of all subnets, newest first."),
    Rest(verb="GET", path=CHAIN, params=NetworkBlockchainParams, result=NetworkBlockchain,
         handler=subnets.get_blockchain, listeners=(DATA,), weight=Weight.MEDIUM, operation="getBlockchainById",
         summary="A blockchain with its genesis."),
    Rest(verb="GET", path=f"{NETWORK}/rewards", params=PaidRewardsParams, result=HistoricalRewardPage,
         handler=rewards.list_paid, listeners=(DATA,), weight=Weight.XL,
         operation="listHistoricalPrimaryNetworkRewards", examples=examples.PAID_REWARDS,
         summary="Rewards that were paid to addresses or for nodes, newest first."),
    Rest(verb="GET", path=f"{NETWORK}/rewards:listPending", params=RewardsParams, result=PendingRewardPage,
         handler=rewards.list_pending, listeners=(DATA,), weight=Weight.XL,
         operation="listPendingPrimaryNetworkRewards", examples=examples.PENDING_REWARDS,
         summary="Rewards that current stakes of addresses or nodes will pay, newest first."),
    Rest(verb="GET", path="/v1/avax/supply", params=NoQuery, result=AvaxSupply, handler=supply.get_avax_supply,
         listeners=(DATA,), weight=Weight.XL, operation="getAvaxSupply",
         summary="How much AVAX there is, and how much of it is staked, locked and burned."),
)
# fmt: on
