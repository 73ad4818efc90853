"""The rows of the chain data interface."""

from icefall.api import examples
from icefall.api.endpoints.explorer import EXPLORER_ENDPOINTS
from icefall.api.endpoints.row import DATA, Rest, Weight
from icefall.api.handlers import all_chains, balances, blocks, chains, contracts, nfts, service, transactions, transfers
from icefall.api.schema import balances as w
from icefall.api.schema import blocks as b
from icefall.api.schema import chains as c
from icefall.api.schema import contracts as k
from icefall.api.schema import nfts as n
from icefall.api.schema import transactions as t
from icefall.api.schema import transfers as f
from icefall.api.schema.service import HealthCheckParams, ServiceHealth
from icefall.api.schema.tokens import Erc721Token, Erc1155Token

CHAIN = "/v1/chains/{chainId}"
ADDRESS = f"{CHAIN}/addresses/{{address}}"
CONTRACT = f"{CHAIN}/contracts/{{address}}"
COLLECTION = f"{CHAIN}/nfts/collections/{{address}}"

# fmt: off
CHAIN_DATA_ENDPOINTS: tuple[Rest, ...] = (
    # -- chains -------------------------------------------------------------------------------------------------
    Rest(verb="GET", path="/v1/chains", params=c.ChainsParams, result=c.EvmChains, handler=chains.supported_chains,
         listeners=(DATA,), weight=Weight.FREE, operation="supportedChains",
         summary="The indexed chains, optionally of one network or with one feature."),
    Rest(verb="GET", path=CHAIN, params=c.ChainParams, result=c.EvmChainResult, handler=chains.get_chain,
         listeners=(DATA,), weight=Weight.FREE, operation="getChainInfo",
         summary="A chain by EVM chain ID, blockchain ID or alias."),
    Rest(verb="GET", path="/v1/chains/address/{address}", params=c.AddressChainsParams, result=c.AddressChains,
         handler=chains.address_chains, listeners=(DATA,), weight=Weight.FREE, operation="getAddressChains",
         deprecated="use /v1/address/{address}/chains", summary="The chains on which an address occurs."),
    Rest(verb="GET", path="/v1/chains/allBlocks", params=b.AllBlocksParams, result=b.EvmBlockPage,
         handler=all_chains.all_blocks, listeners=(DATA,), weight=Weight.FREE, operation="listAllLatestBlocks",
         deprecated="use /v1/blocks", summary="Indexed blocks of all chains, newest first."),
    Rest(verb="GET", path="/v1/chains/allTransactions", params=t.AllTxsParams, result=t.NativeTransactionPage,
         handler=all_chains.all_transactions, listeners=(DATA,), weight=Weight.FREE,
         operation="listAllLatestTransactions", deprecated="use /v1/transactions",
         summary="Transactions of all chains, newest first, all or those that failed or succeeded."),
    Rest(verb="GET", path="/v1/address/{address}/chains", params=c.AddressChainsParams, result=c.AddressChains,
         handler=chains.address_chains, listeners=(DATA,), weight=Weight.MEDIUM, operation="listAddressChains",
         summary="The chains on which an address occurs."),

    # -- blocks -------------------------------------------------------------------------------------------------
    Rest(verb="GET", path="/v1/blocks", params=b.AllBlocksParams, result=b.EvmBlockPage,
         handler=all_chains.all_blocks, listeners=(DATA,), weight=Weight.MEDIUM, operation="listLatestBlocksAllChains",
         summary="Indexed blocks of all chains, newest first."),
    Rest(verb="GET", path=f"{CHAIN}/blocks", params=b.BlocksParams, result=b.EvmBlockPage, handler=blocks.latest_blocks,
         listeners=(DATA,), weight=Weight.SMALL, operation="getLatestBlocks", keeps_answers=True,
         summary="Indexed blocks, newest first."),
    Rest(verb="GET", path=f"{CHAIN}/blocks/{{blockId}}", params=b.BlockParams, result=b.EvmBlock,
         handler=blocks.get_block, listeners=(DATA,), weight=Weight.SMALL, operation="getBlock", keeps_answers=True,
         summary="A block by number or hash."),
    Rest(verb="GET", path=f"{CHAIN}/blocks/{{blockId}}/transactions", params=b.BlockTxsParams,
         result=t.NativeTransactionPage, handler=blocks.block_transactions, listeners=(DATA,), weight=Weight.MEDIUM,
         operation="getTransactionsForBlock", keeps_answers=True,
         summary="Transactions of a block, last first; with `pageSize` 0, the default, all of them."),

    # -- transactions -------------------------------------------------------------------------------------------
    Rest(verb="GET", path="/v1/transactions", params=t.AllTxsParams, result=t.NativeTransactionPage,
         handler=all_chains.all_transactions, listeners=(DATA,), weight=Weight.MEDIUM,
         operation="listLatestTransactionsAllChains",
         summary="Transactions of all chains, newest first, all or those that failed or succeeded."),
    Rest(verb="GET", path=f"{CHAIN}/transactions", params=t.LatestTxsParams, result=t.NativeTransactionPage,
         handler=transactions.latest_transactions, listeners=(DATA,), weight=Weight.MEDIUM,
         operation="listLatestTransactions", keeps_answers=True,
         summary="Transactions of a chain, newest first, all or those that failed or succeeded."),
    Rest(verb="GET", path=f"{CHAIN}/transactions/{{txHash}}", params=t.TransactionParams, result=t.WholeTransaction,
         handler=transactions.get_transaction, listeners=(DATA,), weight=Weight.MEDIUM, operation="getTransaction",
         summary="A transaction with its transfers and internal transactions, the first 2,000 of them."),
    Rest(verb="GET", path=f"{CHAIN}/transactions/{{txHash}}/transfers", params=t.TransactionTransfersParams,
         result=t.TransactionTransfersPage, handler=transactions.list_parts, listeners=(DATA,), weight=Weight.MEDIUM,
         operation="listTransactionTransfers", keeps_answers=True, examples=examples.TRANSFERS, ours=True,
         summary="All transfers of a transaction in log order, then its internal transactions."),
    Rest(verb="GET", path=f"{ADDRESS}/transactions", params=t.SortedAddressPage, result=t.TransactionDetailsPage,
         handler=transactions.list_transactions, listeners=(DATA,), weight=Weight.MEDIUM, operation="listTransactions",
         keeps_answers=True,
         summary="Transactions an address took part in, with its transfers and internal transactions in them."),
    Rest(verb="GET", path=f"{ADDRESS}/transactions:listNative", params=f.AddressPage, result=t.NativeTransactionPage,
         handler=transactions.list_native, listeners=(DATA,), weight=Weight.MEDIUM,
         operation="listNativeTransactions", keeps_answers=True,
         summary="Transactions an address sent, received or was created by, newest first."),
    Rest(verb="GET", path=f"{ADDRESS}/transactions:listErc20", params=f.AddressPage, result=f.Erc20TransferPage,
         handler=transfers.list_erc20, listeners=(DATA,), weight=Weight.MEDIUM,
         operation="listErc20Transactions", keeps_answers=True,
         summary="ERC-20 transfers of an address, newest first."),
    Rest(verb="GET", path=f"{ADDRESS}/transactions:listErc721", params=f.AddressPage, result=f.Erc721TransferPage,
         handler=transfers.list_erc721, listeners=(DATA,), weight=Weight.MEDIUM, operation="listErc721Transactions",
         keeps_answers=True, summary="ERC-721 transfers of an address, newest first."),
    Rest(verb="GET", path=f"{ADDRESS}/transactions:listErc1155", params=f.AddressPage, result=f.Erc1155TransferPage,
         handler=transfers.list_erc1155, listeners=(DATA,), weight=Weight.MEDIUM, operation="listErc1155Transactions",
         keeps_answers=True,
         summary="ERC-1155 transfers of an address, newest first; a batch is one item per token ID."),
    Rest(verb="GET", path=f"{ADDRESS}/transactions:listInternals", params=f.AddressPage,
         result=f.InternalTransactionPage, handler=transfers.list_internals, listeners=(DATA,), weight=Weight.MEDIUM,
         operation="listInternalTransactions", keeps_answers=True,
         summary="Internal calls with value and internal creations of an address, newest first."),
    Rest(verb="GET", path=f"{CHAIN}/tokens/{{address}}/transfers", params=f.AddressPage, result=f.TokenTransferPage,
         handler=transfers.list_transfers, listeners=(DATA,), weight=Weight.MEDIUM, operation="listTransfers",
         keeps_answers=True, examples=examples.TOKEN, summary="Transfers of a token of any standard, newest first."),

    # -- contracts ----------------------------------------------------------------------------------------------
    Rest(verb="GET", path=f"{CONTRACT}/transactions:getDeployment", params=t.DeploymentParams,
         result=t.WholeTransaction, handler=transactions.get_deployment, listeners=(DATA,), weight=Weight.MEDIUM,
         operation="getDeploymentTransaction", examples=examples.TOKEN,
         summary="The transaction that deployed a contract."),
    Rest(verb="GET", path=f"{CONTRACT}/deployments", params=k.DeploymentsParams, result=k.ContractPage,
         handler=contracts.contract_deployments, listeners=(DATA,), weight=Weight.MEDIUM,
         operation="listContractDeployments",
         keeps_answers=True, summary="Contracts an account or a contract deployed, newest first."),
    Rest(verb="GET", path=ADDRESS, params=k.ContractParams, result=k.Contract, handler=contracts.contract_metadata,
         listeners=(DATA,), weight=Weight.MEDIUM, operation="getContractMetadata",
         keeps_answers=True, examples=examples.TOKEN,
         summary="A contract: its standard, names and deployment."),

    # -- NFTs ---------------------------------------------------------------------------------------------------
    Rest(verb="GET", path=f"{COLLECTION}/tokens", params=n.CollectionParams, result=n.NftPage,
         handler=nfts.list_tokens, listeners=(DATA,), weight=Weight.MEDIUM, operation="listTokens", keeps_answers=True,
         examples=examples.NFT, summary="NFTs of a contract with their metadata, by token ID."),
    Rest(verb="GET", path=f"{COLLECTION}/tokens/{{tokenId}}", params=n.NftParams, result=Erc721Token | Erc1155Token,
         handler=nfts.get_token, listeners=(DATA,), weight=Weight.MEDIUM, operation="getTokenDetails",
         keeps_answers=True,
         examples=examples.NFT, summary="A single NFT with its metadata and, of an ERC-721 token, its owner."),
    Rest(verb="POST", path=f"{COLLECTION}/tokens/{{tokenId}}:reindex", params=n.NftParams, result=str,
         handler=nfts.reindex, listeners=(DATA,), weight=Weight.SMALL, operation="reindexNft", protected=True,
         examples=examples.NFT, success=201, status=lambda _: 201,
         summary="Reads the metadata of an NFT again, in the background; with an API key, or from this machine."),

    # -- balances -----------------------------------------------------------------------------------------------
    Rest(verb="GET", path=f"{ADDRESS}/balances:getNative", params=w.NativeBalanceParams, result=w.NativeBalanceResult,
         handler=balances.get_native, listeners=(DATA,), weight=Weight.MEDIUM, operation="getNativeBalance",
         keeps_answers=True, summary="Balance of an address in the native token, now or right after `blockNumber`."),
    Rest(verb="GET", path=f"{ADDRESS}/balances:listErc20", params=w.Erc20BalancesParams, result=w.Erc20Balances,
         handler=balances.list_erc20, listeners=(DATA,), weight=Weight.MEDIUM, operation="listErc20Balances",
         keeps_answers=True,
         summary="ERC-20 balances of an address by token, now or right after `blockNumber`, without malicious tokens."),
    Rest(verb="GET", path=f"{ADDRESS}/balances:listErc721", params=w.NftBalancesParams, result=w.Erc721Balances,
         handler=balances.list_erc721, listeners=(DATA,), weight=Weight.MEDIUM, operation="listErc721Balances",
         keeps_answers=True, summary="ERC-721 tokens an address owns now, by token and ID."),
    Rest(verb="GET", path=f"{ADDRESS}/balances:listErc1155", params=w.Erc1155BalancesParams, result=w.Erc1155Balances,
         handler=balances.list_erc1155, listeners=(DATA,), weight=Weight.MEDIUM, operation="listErc1155Balances",
         keeps_answers=True,
         summary="ERC-1155 balances of an address by token and ID, now or right after `blockNumber`."),
    Rest(verb="GET", path=f"{ADDRESS}/balances:listCollectibles", params=w.NftBalancesParams,
         result=w.CollectibleBalances, handler=balances.list_collectibles, listeners=(DATA,), weight=Weight.MEDIUM,
         operation="listCollectibleBalances", keeps_answers=True,
         summary="ERC-721 and then ERC-1155 tokens of an address, by token and ID."),

    # -- the service itself -------------------------------------------------------------------------------------
    Rest(verb="GET", path="/v1/health-check", params=HealthCheckParams, result=ServiceHealth,
         handler=service.health_check, status=service.verdict, listeners=(DATA,), weight=Weight.FREE, keyless=True,
         operation="data-health-check",
         summary="Whether this service can answer and its chains are followed; with `strict=true` 503 if not."),
    *EXPLORER_ENDPOINTS,
)
# fmt: on
