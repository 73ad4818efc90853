"""The rows of the primary network interface."""

from icefall.api.describing import examples
from icefall.api.http.row import DATA, Rest, Weight
from icefall.api.networks.handlers import blocks, transactions, utxos
from icefall.api.networks.schema.assets import NetworkParams
from icefall.api.networks.schema.blocks import (
    NetworkDetails,
    PlatformBlockParams,
    PlatformBlocksParams,
    PrimaryNetworkBlock,
    PrimaryNetworkBlockPage,
)
from icefall.api.networks.schema.transactions import (
    PlatformBalancesParams,
    PlatformBalancesResult,
    PlatformTransaction,
    PlatformTransactionPage,
    PlatformTxParams,
    PlatformTxsParams,
    PlatformUtxoPage,
    PlatformUtxosParams,
)

NETWORK = "/v1/networks/{network}"
CHAIN = f"{NETWORK}/blockchains/{{blockchainId}}"

# fmt: off
NETWORKS_ENDPOINTS: tuple[Rest, ...] = (
    Rest(verb="GET", path=NETWORK, params=NetworkParams, result=NetworkDetails, handler=blocks.network_details,
         listeners=(DATA,), weight=Weight.XL, operation="getNetworkDetails",
         summary="Validators, delegators and stake of the primary network now."),
    Rest(verb="GET", path=f"{CHAIN}/blocks", params=PlatformBlocksParams, result=PrimaryNetworkBlockPage,
         handler=blocks.list_blocks, listeners=(DATA,), weight=Weight.MEDIUM,
         operation="listLatestPrimaryNetworkBlocks",
         summary="Blocks of the P-Chain, newest first."),
    Rest(verb="GET", path=f"{CHAIN}/blocks/{{blockId}}", params=PlatformBlockParams, result=PrimaryNetworkBlock,
         handler=blocks.get_block, listeners=(DATA,), weight=Weight.XL, operation="getBlockById",
         summary="A block of the P-Chain by its height or ID."),
    Rest(verb="GET", path=f"{CHAIN}/transactions", params=PlatformTxsParams, result=PlatformTransactionPage,
         handler=transactions.list_transactions, listeners=(DATA,), weight=Weight.XL,
         operation="listLatestPrimaryNetworkTransactions",
         summary="Transactions of the P-Chain, of all or of some addresses, newest first."),
    Rest(verb="GET", path=f"{CHAIN}/transactions/{{txHash}}", params=PlatformTxParams, result=PlatformTransaction,
         handler=transactions.get_transaction, listeners=(DATA,), weight=Weight.MEDIUM, operation="getTxByHash",
         examples=examples.PLATFORM_TX, summary="A transaction of the P-Chain by its ID."),
    Rest(verb="GET", path=f"{CHAIN}/transactions:listStaking", params=PlatformTxsParams,
         result=PlatformTransactionPage, handler=transactions.list_staking, listeners=(DATA,), weight=Weight.XL,
         operation="listActivePrimaryNetworkStakingTransactions",
         summary="Staking transactions of the P-Chain whose stake is active, newest first."),
    Rest(verb="GET", path=f"{CHAIN}/utxos", params=PlatformUtxosParams, result=PlatformUtxoPage,
         handler=utxos.list_utxos, listeners=(DATA,), weight=Weight.XL, operation="getUtxosByAddresses",
         summary="Outputs of addresses on the P-Chain, staked ones included, newest first."),
    Rest(verb="GET", path=f"{CHAIN}/balances", params=PlatformBalancesParams, result=PlatformBalancesResult,
         handler=utxos.balances, listeners=(DATA,), weight=Weight.XL, operation="getBalancesByAddresses",
         summary="Balances of addresses on the P-Chain by category, now or at an earlier time."),
)
# fmt: on
