"""The rows of the primary network interface."""

from icefall.api.describing import examples
from icefall.api.http.row import DATA, Rest, Weight
from icefall.api.networks.handlers import any_chain, blocks, transactions
from icefall.api.networks.schema.assets import NetworkParams
from icefall.api.networks.schema.blocks import (
    NetworkDetails,
    PlatformBlockParams,
    PlatformBlocksParams,
    PrimaryNetworkBlock,
    PrimaryNetworkBlockPage,
)
from icefall.api.networks.schema.c_chain import ChainUtxosParams
from icefall.api.networks.schema.transactions import (
    PlatformBalancesParams,
    PlatformTransactionPage,
    PlatformTxParams,
    PlatformTxsParams,
)
from icefall.api.networks.x_endpoints import X_ENDPOINTS

NETWORK = "/v1/networks/{network}"
CHAIN = f"{NETWORK}/blockchains/{{blockchainId}}"

# fmt: off
NETWORKS_ENDPOINTS: tuple[Rest, ...] = (
    Rest(verb="GET", path=NETWORK, params=NetworkParams, result=NetworkDetails, handler=blocks.network_details,
         listeners=(DATA,), weight=Weight.XL, operation="getNetworkDetails",
         summary="Validators, delegators and stake of the primary network now."),
    Rest(verb="GET", path=f"{CHAIN}/blocks", params=PlatformBlocksParams, result=PrimaryNetworkBlockPage,
         handler=any_chain.list_blocks, listeners=(DATA,), weight=Weight.MEDIUM,
         operation="listLatestPrimaryNetworkBlocks",
         summary="Blocks of a chain, newest first."),
    Rest(verb="GET", path=f"{CHAIN}/blocks/{{blockId}}", params=PlatformBlockParams, result=PrimaryNetworkBlock,
         handler=any_chain.get_block, listeners=(DATA,), weight=Weight.XL, operation="getBlockById",
         summary="A block of a chain by its height or ID."),
    Rest(verb="GET", path=f"{CHAIN}/transactions", params=PlatformTxsParams, result=any_chain.AnyTransactionPage,
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
)
# fmt: on
