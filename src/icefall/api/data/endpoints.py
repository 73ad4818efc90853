"""The rows of the chain data interface."""

from icefall.api.data.handlers import (
    all_chains,
    balances,
    blocks,
    chains,
    contracts,
    history,
    operations,
    pending,
    pictures,
    raw,
    search,
    stream,
    tokens,
    transactions,
    transfers,
    usage,
)
from icefall.api.data.handlers.operations import OPERATIONS
from icefall.api.data.schema.balances import (
    CollectibleBalances,
    Erc20Balances,
    Erc20BalancesParams,
    Erc721Balances,
    Erc1155Balances,
    Erc1155BalancesParams,
    NativeBalanceParams,
    NativeBalanceResult,
    NftBalancesParams,
)
from icefall.api.data.schema.chains import (
    AddressChains,
    AddressChainsParams,
    AllBlocksParams,
    BlockByTimeParams,
    BlockParams,
    BlocksParams,
    BlockTxsParams,
    ChainParams,
    ChainsParams,
    EvmBlock,
    EvmBlockDetails,
    EvmBlockDetailsPage,
    EvmBlockPage,
    EvmChainResult,
    EvmChains,
    StreamParams,
)
from icefall.api.data.schema.explorer import (
    BalanceHistoryPage,
    BalanceHistoryParams,
    IndexingParams,
    IndexingResult,
    PricePage,
    PricesParams,
    SearchParams,
    SearchResult,
    TokenPage,
    TokenParams,
    TokensParams,
    TokenSummary,
)
from icefall.api.data.schema.operations import OperationFileParams, OperationParams, OperationResult, OrderExport
from icefall.api.data.schema.tokens import (
    CollectionParams,
    Contract,
    ContractPage,
    ContractParams,
    DeploymentsParams,
    HolderPage,
    HoldersParams,
    Nft,
    NftPage,
    NftParams,
)
from icefall.api.data.schema.transactions import (
    AddressLogsParams,
    AllTxsParams,
    DeploymentParams,
    FilteredAddressPage,
    LatestTxsParams,
    LogPage,
    NativeTransactionPage,
    PendingTransaction,
    SortedAddressPage,
    TransactionDetailsPage,
    TransactionParams,
    TransactionTransfersPage,
    TransactionTransfersParams,
    TxLogsParams,
    WholeTransaction,
)
from icefall.api.data.schema.transfers import (
    AddressPage,
    Erc20TransferPage,
    Erc721TransferPage,
    Erc1155TransferPage,
    InternalTransactionPage,
    TokenTransferPage,
)
from icefall.api.data.schema.usage import LogsParams, RequestLogPage, UsageMetrics, UsageParams
from icefall.api.describing import examples
from icefall.api.http import service
from icefall.api.http.row import DATA, Rest, Weight, always_201
from icefall.api.http.service import HealthCheckParams, ServiceHealth
from icefall.evm.model import ERC20, ERC721, ERC1155

# fmt: off
USAGE_ENDPOINTS: tuple[Rest, ...] = (
    Rest(verb="GET", path="/v1/apiUsageMetrics", params=UsageParams, result=UsageMetrics,
         handler=usage.usage_metrics, listeners=(DATA,), weight=Weight.XXL, operation="getApiUsageMetrics",
         summary="Requests and units of a key by day, week or month; from this machine, without limits, of all."),
    Rest(verb="GET", path="/v1/apiLogs", params=LogsParams, result=RequestLogPage, handler=usage.api_logs,
         listeners=(DATA,), weight=Weight.XXL, operation="getApiLogs",
         summary="Single requests of a key, newest first; they are kept for 7 days."),
)
# fmt: on


CHAIN = "/v1/chains/{chainId}"
ADDRESS = f"{CHAIN}/addresses/{{address}}"
TRANSACTION = f"{CHAIN}/transactions/{{txHash}}"
TOKEN = f"{CHAIN}/tokens/{{address}}"

# fmt: off
EXPLORER_ENDPOINTS: tuple[Rest, ...] = (
    Rest(verb="GET", path="/v1/search", params=SearchParams, result=SearchResult, handler=search.search,
         listeners=(DATA,), weight=Weight.MEDIUM, operation="search", ours=True,
         summary="Chains, blocks, transactions, addresses and tokens: by number, hash, address, or a part of a name."),
    Rest(verb="GET", path="/v1/stream", params=StreamParams, result=str, handler=stream.stream, listeners=(DATA,),
         weight=Weight.LARGE, media="text/event-stream", headers=(("cache-control", "no-store"),), is_stream=True,
         operation="stream", ours=True,
         summary="New blocks, transactions and transfers as they are indexed, as Server-Sent Events."),
    Rest(verb="GET", path=f"{TOKEN}/logo", params=TokenParams, result=bytes, handler=pictures.token_logo,
         listeners=(DATA,), weight=Weight.SMALL, media="image/png", headers=pictures.PICTURE_HEADERS,
         operation="getTokenLogo", ours=True, examples=examples.LOGO,
         summary="The logo of a token on the list, fetched for all readers: PNG, JPEG, GIF or WebP."),
    Rest(verb="GET", path=f"{CHAIN}/nfts/collections/{{address}}/tokens/{{tokenId}}/picture", params=NftParams,
         result=bytes, handler=pictures.nft_picture, listeners=(DATA,), weight=Weight.SMALL, media="image/png",
         headers=pictures.PICTURE_HEADERS, operation="getNftPicture", ours=True, examples=examples.PICTURE,
         summary="The picture of an NFT, fetched for all readers: PNG, JPEG, GIF or WebP."),
    Rest(verb="GET", path=f"{CHAIN}/blocks:getByTime", params=BlockByTimeParams, result=EvmBlock,
         handler=blocks.block_by_time, listeners=(DATA,), weight=Weight.SMALL, operation="getBlockByTime", ours=True,
         summary="The newest block at or before a time, or the oldest at or after it."),
    Rest(verb="GET", path=f"{CHAIN}/tokens", params=TokensParams, result=TokenPage, handler=tokens.list_tokens,
         listeners=(DATA,), weight=Weight.MEDIUM, operation="listChainTokens", ours=True,
         summary="Token contracts of a chain with their totals, all or those of one standard: newest first, or by"
                 " holders, transfers, market value (largest first) or name."),
    Rest(verb="GET", path=TOKEN, params=TokenParams, result=TokenSummary, handler=tokens.get_summary,
         listeners=(DATA,), weight=Weight.MEDIUM, operation="getTokenSummary", examples=examples.TOKEN, ours=True,
         summary="A token with its supply, holders, transfers, price and market value."),
    Rest(verb="GET", path=f"{TOKEN}/holders", params=HoldersParams, result=HolderPage,
         handler=tokens.token_holders, listeners=(DATA,), weight=Weight.MEDIUM, operation="listTokenHolders",
         examples=examples.TOKEN, ours=True, summary="Holders of a token with their balances, largest first."),
    Rest(verb="GET", path=f"{TOKEN}/prices", params=PricesParams, result=PricePage, handler=tokens.list_prices,
         listeners=(DATA,), weight=Weight.MEDIUM, operation="listTokenPrices", ours=True,
         summary="Price of a token now and by day of UTC, newest first; `native` is the chain's own token."),
    Rest(verb="GET", path=f"{ADDRESS}/balances:listHistory", params=BalanceHistoryParams,
         result=BalanceHistoryPage, handler=history.balance_history, listeners=(DATA,), weight=Weight.MEDIUM,
         operation="listBalanceHistory", ours=True,
         summary="Balance of an address over time, newest first: at every change, or at the end of every period."),
    Rest(verb="GET", path=f"{TRANSACTION}/logs", params=TxLogsParams, result=LogPage,
         handler=raw.transaction_logs, listeners=(DATA,), weight=Weight.MEDIUM, operation="listTransactionLogs",
         examples=examples.TRANSFERS, ours=True, summary="Event logs of a transaction, in their order."),
    Rest(verb="GET", path=f"{ADDRESS}/logs", params=AddressLogsParams, result=LogPage, handler=raw.address_logs,
         listeners=(DATA,), weight=Weight.LARGE, operation="listAddressLogs", examples=examples.TOKEN, ours=True,
         summary="Event logs that a contract emitted, newest first, all or those with given topics."),
    Rest(verb="GET", path=f"{CHAIN}/indexing", params=IndexingParams, result=IndexingResult,
         handler=chains.indexing, listeners=(DATA,), weight=Weight.FREE, operation="getIndexing", ours=True,
         summary="How far a chain is indexed, how fast, and the state of its upstreams."),
)
# fmt: on


CHAIN = "/v1/chains/{chainId}"
ADDRESS = f"{CHAIN}/addresses/{{address}}"
CONTRACT = f"{CHAIN}/contracts/{{address}}"
COLLECTION = f"{CHAIN}/nfts/collections/{{address}}"

# fmt: off
CHAIN_DATA_ENDPOINTS: tuple[Rest, ...] = (
    # -- chains -------------------------------------------------------------------------------------------------
    Rest(verb="GET", path="/v1/chains", params=ChainsParams, result=EvmChains, handler=chains.supported_chains,
         listeners=(DATA,), weight=Weight.FREE, operation="supportedChains",
         summary="The indexed chains, optionally of one network or with one feature."),
    Rest(verb="GET", path=CHAIN, params=ChainParams, result=EvmChainResult, handler=chains.get_chain,
         listeners=(DATA,), weight=Weight.FREE, operation="getChainInfo",
         summary="A chain by EVM chain ID, blockchain ID or alias."),
    Rest(verb="GET", path="/v1/chains/address/{address}", params=AddressChainsParams, result=AddressChains,
         handler=chains.address_chains, listeners=(DATA,), weight=Weight.FREE, operation="getAddressChains",
         deprecated="use /v1/address/{address}/chains", summary="The chains on which an address occurs."),
    Rest(verb="GET", path="/v1/chains/allBlocks", params=AllBlocksParams, result=EvmBlockPage,
         handler=all_chains.all_blocks, listeners=(DATA,), weight=Weight.FREE, operation="listAllLatestBlocks",
         deprecated="use /v1/blocks", summary="Indexed blocks of all chains, newest first."),
    Rest(verb="GET", path="/v1/chains/allTransactions", params=AllTxsParams, result=NativeTransactionPage,
         handler=all_chains.all_transactions, listeners=(DATA,), weight=Weight.FREE,
         operation="listAllLatestTransactions", deprecated="use /v1/transactions",
         summary="Transactions of all chains, newest first, all or those that failed or succeeded."),
    Rest(verb="GET", path="/v1/address/{address}/chains", params=AddressChainsParams, result=AddressChains,
         handler=chains.address_chains, listeners=(DATA,), weight=Weight.MEDIUM, operation="listAddressChains",
         summary="The chains on which an address occurs."),

    # -- blocks -------------------------------------------------------------------------------------------------
    Rest(verb="GET", path="/v1/blocks", params=AllBlocksParams, result=EvmBlockPage,
         handler=all_chains.all_blocks, listeners=(DATA,), weight=Weight.MEDIUM, operation="listLatestBlocksAllChains",
         summary="Indexed blocks of all chains, newest first."),
    Rest(verb="GET", path=f"{CHAIN}/blocks", params=BlocksParams, result=EvmBlockPage, handler=blocks.latest_blocks,
         listeners=(DATA,), weight=Weight.SMALL, operation="getLatestBlocks", cacheable=True,
         summary="Indexed blocks, newest first."),
    Rest(verb="GET", path=f"{CHAIN}/blocks/{{blockId}}", params=BlockParams, result=EvmBlock,
         handler=blocks.get_block, listeners=(DATA,), weight=Weight.SMALL, operation="getBlock", cacheable=True,
         summary="A block by number or hash."),
    Rest(verb="GET", path=f"{CHAIN}/blocks:listDetails", params=BlocksParams, result=EvmBlockDetailsPage,
         handler=blocks.latest_block_details, listeners=(DATA,), weight=Weight.SMALL, operation="listBlockDetails",
         ours=True, cacheable=True,
         summary="Indexed blocks, newest first, with fee recipient, size and burned fees."),
    Rest(verb="GET", path=f"{CHAIN}/blocks/{{blockId}}/details", params=BlockParams, result=EvmBlockDetails,
         handler=blocks.get_block_details, listeners=(DATA,), weight=Weight.SMALL, operation="getBlockDetails",
         ours=True, cacheable=True, summary="A block, with fee recipient, size and burned fees."),
    Rest(verb="GET", path=f"{CHAIN}/blocks/{{blockId}}/transactions", params=BlockTxsParams,
         result=NativeTransactionPage, handler=blocks.block_transactions, listeners=(DATA,), weight=Weight.MEDIUM,
         operation="getTransactionsForBlock", cacheable=True,
         summary="Transactions of a block, last first; with `pageSize` 0, the default, all of them."),

    # -- transactions -------------------------------------------------------------------------------------------
    Rest(verb="GET", path="/v1/transactions", params=AllTxsParams, result=NativeTransactionPage,
         handler=all_chains.all_transactions, listeners=(DATA,), weight=Weight.MEDIUM,
         operation="listLatestTransactionsAllChains",
         summary="Transactions of all chains, newest first, all or those that failed or succeeded."),
    Rest(verb="GET", path=f"{CHAIN}/transactions", params=LatestTxsParams, result=NativeTransactionPage,
         handler=transactions.latest_transactions, listeners=(DATA,), weight=Weight.MEDIUM,
         operation="listLatestTransactions", cacheable=True,
         summary="Transactions of a chain, newest first, all or those that failed or succeeded."),
    Rest(verb="GET", path=f"{CHAIN}/transactions/{{txHash}}", params=TransactionParams, result=WholeTransaction,
         handler=transactions.get_transaction, listeners=(DATA,), weight=Weight.MEDIUM, operation="getTransaction",
         summary="A transaction with its transfers and internal transactions, the first 2,000 of them."),
    Rest(verb="GET", path=f"{TRANSACTION}/pending", params=TransactionParams, result=PendingTransaction,
         handler=pending.pending_transaction, listeners=(DATA,), weight=Weight.MEDIUM,
         operation="getPendingTransaction", ours=True,
         summary="What the upstream knows of a transaction that is not indexed: whether it is pending."),
    Rest(verb="GET", path=f"{CHAIN}/transactions/{{txHash}}/transfers", params=TransactionTransfersParams,
         result=TransactionTransfersPage, handler=transactions.list_parts, listeners=(DATA,), weight=Weight.MEDIUM,
         operation="listTransactionTransfers", cacheable=True, examples=examples.TRANSFERS, ours=True,
         summary="All transfers of a transaction in log order, then its internal transactions."),
    Rest(verb="GET", path=f"{ADDRESS}/transactions", params=SortedAddressPage, result=TransactionDetailsPage,
         handler=transactions.list_transactions, listeners=(DATA,), weight=Weight.MEDIUM, operation="listTransactions",
         cacheable=True,
         summary="Transactions an address took part in, with its transfers and internal transactions in them."),
    Rest(verb="GET", path=f"{ADDRESS}/transactions:listNative", params=AddressPage, result=NativeTransactionPage,
         handler=transactions.list_native, listeners=(DATA,), weight=Weight.MEDIUM,
         operation="listNativeTransactions", cacheable=True,
         summary="Transactions an address sent, received or was created by, newest first."),
    Rest(verb="GET", path=f"{ADDRESS}/transactions:listErc20", params=AddressPage, result=Erc20TransferPage,
         handler=transfers.list_standard[ERC20], listeners=(DATA,), weight=Weight.MEDIUM,
         operation="listErc20Transactions", cacheable=True,
         summary="ERC-20 transfers of an address, newest first."),
    Rest(verb="GET", path=f"{ADDRESS}/transactions:listErc721", params=AddressPage, result=Erc721TransferPage,
         handler=transfers.list_standard[ERC721], listeners=(DATA,), weight=Weight.MEDIUM,
         operation="listErc721Transactions", cacheable=True, summary="ERC-721 transfers of an address, newest first."),
    Rest(verb="GET", path=f"{ADDRESS}/transactions:listErc1155", params=AddressPage, result=Erc1155TransferPage,
         handler=transfers.list_standard[ERC1155], listeners=(DATA,), weight=Weight.MEDIUM,
         operation="listErc1155Transactions", cacheable=True,
         summary="ERC-1155 transfers of an address, newest first; a batch is one item per token ID."),
    Rest(verb="GET", path=f"{ADDRESS}/transactions:listInternals", params=AddressPage,
         result=InternalTransactionPage, handler=transfers.list_internals, listeners=(DATA,), weight=Weight.MEDIUM,
         operation="listInternalTransactions", cacheable=True,
         summary="Internal calls with value and internal creations of an address, newest first."),
    Rest(verb="GET", path=f"{CHAIN}/tokens/{{address}}/transfers", params=AddressPage, result=TokenTransferPage,
         handler=transfers.list_transfers, listeners=(DATA,), weight=Weight.MEDIUM, operation="listTransfers",
         cacheable=True, examples=examples.TOKEN, summary="Transfers of a token of any standard, newest first."),

    # -- contracts ----------------------------------------------------------------------------------------------
    Rest(verb="GET", path=f"{CONTRACT}/transactions:getDeployment", params=DeploymentParams,
         result=WholeTransaction, handler=transactions.get_deployment, listeners=(DATA,), weight=Weight.MEDIUM,
         operation="getDeploymentTransaction", examples=examples.TOKEN,
         summary="The transaction that deployed a contract."),
    Rest(verb="GET", path=f"{CONTRACT}/deployments", params=DeploymentsParams, result=ContractPage,
         handler=contracts.contract_deployments, listeners=(DATA,), weight=Weight.MEDIUM,
         operation="listContractDeployments",
         cacheable=True, summary="Contracts an account or a contract deployed, newest first."),
    Rest(verb="GET", path=ADDRESS, params=ContractParams, result=Contract, handler=contracts.contract_metadata,
         listeners=(DATA,), weight=Weight.MEDIUM, operation="getContractMetadata",
         cacheable=True, examples=examples.TOKEN,
         summary="A contract: its standard, names and deployment."),

    # -- NFTs ---------------------------------------------------------------------------------------------------
    Rest(verb="GET", path=f"{COLLECTION}/tokens", params=CollectionParams, result=NftPage,
         handler=tokens.list_nfts, listeners=(DATA,), weight=Weight.MEDIUM, operation="listTokens", cacheable=True,
         examples=examples.NFT, summary="NFTs of a contract with their metadata, by token ID."),
    Rest(verb="GET", path=f"{COLLECTION}/tokens/{{tokenId}}", params=NftParams, result=Nft,
         handler=tokens.get_token, listeners=(DATA,), weight=Weight.MEDIUM, operation="getTokenDetails",
         cacheable=True,
         examples=examples.NFT, summary="A single NFT with its metadata and, of an ERC-721 token, its owner."),
    Rest(verb="POST", path=f"{COLLECTION}/tokens/{{tokenId}}:reindex", params=NftParams, result=str,
         handler=tokens.reindex, listeners=(DATA,), weight=Weight.SMALL, operation="reindexNft", protected=True,
         examples=examples.NFT, success=201, status=lambda _: 201,
         summary="Reads the metadata of an NFT again, in the background; with an API key, or from this machine."),

    # -- balances -----------------------------------------------------------------------------------------------
    Rest(verb="GET", path=f"{ADDRESS}/balances:getNative", params=NativeBalanceParams, result=NativeBalanceResult,
         handler=balances.get_native, listeners=(DATA,), weight=Weight.MEDIUM, operation="getNativeBalance",
         cacheable=True, summary="Balance of an address in the native token, now or right after `blockNumber`."),
    Rest(verb="GET", path=f"{ADDRESS}/balances:listErc20", params=Erc20BalancesParams, result=Erc20Balances,
         handler=balances.list_erc20, listeners=(DATA,), weight=Weight.MEDIUM, operation="listErc20Balances",
         cacheable=True,
         summary="ERC-20 balances of an address by token, now or right after `blockNumber`, without malicious tokens."),
    Rest(verb="GET", path=f"{ADDRESS}/balances:listErc721", params=NftBalancesParams, result=Erc721Balances,
         handler=balances.list_standard[ERC721], listeners=(DATA,), weight=Weight.MEDIUM,
         operation="listErc721Balances", cacheable=True,
         summary="ERC-721 tokens an address owns now, by token and ID."),
    Rest(verb="GET", path=f"{ADDRESS}/balances:listErc1155", params=Erc1155BalancesParams, result=Erc1155Balances,
         handler=balances.list_standard[ERC1155], listeners=(DATA,), weight=Weight.MEDIUM,
         operation="listErc1155Balances", cacheable=True,
         summary="ERC-1155 balances of an address by token and ID, now or right after `blockNumber`."),
    Rest(verb="GET", path=f"{ADDRESS}/balances:listCollectibles", params=NftBalancesParams,
         result=CollectibleBalances, handler=balances.list_collectibles, listeners=(DATA,), weight=Weight.MEDIUM,
         operation="listCollectibleBalances", cacheable=True,
         summary="ERC-721 and then ERC-1155 tokens of an address, by token and ID."),

    # -- the service itself -------------------------------------------------------------------------------------
    Rest(verb="GET", path="/v1/health-check", params=HealthCheckParams, result=ServiceHealth,
         handler=service.health_check, status=service.verdict, listeners=(DATA,), weight=Weight.FREE, keyless=True,
         never_limited=True, operation="data-health-check",
         summary="Whether this service can answer and its chains are followed; with `strict=true` 503 if not."),
    *EXPLORER_ENDPOINTS,
)
# fmt: on


# fmt: off
# What the hosted service has added to its interface later.
FURTHER_ENDPOINTS: tuple[Rest, ...] = (
    Rest(verb="GET", path="/v2/chains/{chainId}/addresses/{address}/transactions", params=FilteredAddressPage,
         result=TransactionDetailsPage, handler=transactions.list_transactions, listeners=(DATA,),
         weight=Weight.MEDIUM, operation="listTransactionsV2", cacheable=True,
         summary="The same as the call of version 1; transfers of tokens with a bad reputation can be left out."),
    Rest(verb="GET", path="/v1/live-check", result=ServiceHealth, handler=service.live_check, listeners=(DATA,),
         weight=Weight.FREE, keyless=True, never_limited=True, operation="live-check",
         summary="Whether this service runs: it answers without looking at any store."),
)
# fmt: on


OPERATION = f"{OPERATIONS}/{{operationId}}"

# fmt: off
OPERATION_ENDPOINTS: tuple[Rest, ...] = (
    Rest(verb="POST", path=f"{OPERATIONS}/transactions:export", body=OrderExport, result=OperationResult,
         handler=operations.order_export, listeners=(DATA,), weight=Weight.MEDIUM, operation="postTransactionExportJob",
         protected=True, success=201, status=always_201, body_example=examples.EXPORT,
         summary="Orders an export of the transactions and transfers of addresses as CSV files in a ZIP archive."),
    Rest(verb="GET", path=OPERATION, params=OperationParams, result=OperationResult,
         handler=operations.get_operation, listeners=(DATA,), weight=Weight.SMALL, operation="getOperationResult",
         protected=True, summary="How far an export is, and the link to its file."),
    Rest(verb="DELETE", path=OPERATION, params=OperationParams, result=OperationResult,
         handler=operations.cancel_operation, listeners=(DATA,), weight=Weight.SMALL, operation="cancelOperation",
         protected=True, ours=True, summary="Cancels an export, or removes its file."),
    Rest(verb="GET", path=f"{OPERATION}/files/{{fileName}}", params=OperationFileParams, result=bytes,
         handler=operations.download, listeners=(DATA,), weight=Weight.SMALL, operation="downloadExport", keyless=True,
         media="application/zip", headers=(("content-disposition", "attachment"),
                                           ("x-content-type-options", "nosniff")),
         ours=True, summary="The file of an export: `downloadUrl` is such a link, which works without a key."),
)
# fmt: on
