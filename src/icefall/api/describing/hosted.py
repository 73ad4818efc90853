"""Every operation of the hosted service, and how Icefall answers it: docs/hosted-api.md is made of this table and the
endpoint rows. An operation is served if a row has its verb and path; then DIFFERENCES says what is not the same, and
otherwise REASONS says why not.
"""

import re
from collections.abc import Iterable

from icefall.api.http.row import Rest, Rpc

_OPERATIONS = """
GET /v1/address/{address}/chains listAddressChains
GET /v1/apiLogs getApiLogs
GET /v1/apiUsageMetrics getApiUsageMetrics
GET /v1/avax/supply getAvaxSupply
GET /v1/avg_tps/{chainId}
GET /v1/blocks listLatestBlocksAllChains
GET /v1/chains supportedChains
GET /v1/chains/address/{address} getAddressChains
GET /v1/chains/allBlocks listAllLatestBlocks
GET /v1/chains/allTransactions listAllLatestTransactions
GET /v1/chains/{chainId} getChainInfo
GET /v1/chains/{chainId}/addresses/{address} getContractMetadata
GET /v1/chains/{chainId}/addresses/{address}/balances:getNative getNativeBalance
GET /v1/chains/{chainId}/addresses/{address}/balances:listCollectibles listCollectibleBalances
GET /v1/chains/{chainId}/addresses/{address}/balances:listErc1155 listErc1155Balances
GET /v1/chains/{chainId}/addresses/{address}/balances:listErc20 listErc20Balances
GET /v1/chains/{chainId}/addresses/{address}/balances:listErc721 listErc721Balances
GET /v1/chains/{chainId}/addresses/{address}/transactions listTransactions
GET /v1/chains/{chainId}/addresses/{address}/transactions:listErc1155 listErc1155Transactions
GET /v1/chains/{chainId}/addresses/{address}/transactions:listErc20 listErc20Transactions
GET /v1/chains/{chainId}/addresses/{address}/transactions:listErc721 listErc721Transactions
GET /v1/chains/{chainId}/addresses/{address}/transactions:listInternals listInternalTransactions
GET /v1/chains/{chainId}/addresses/{address}/transactions:listNative listNativeTransactions
GET /v1/chains/{chainId}/blocks getLatestBlocks
GET /v1/chains/{chainId}/blocks/{blockId} getBlock
GET /v1/chains/{chainId}/blocks/{blockId}/transactions getTransactionsForBlock
PATCH /v1/chains/{chainId}/contracts/{address} updateContractInfo
GET /v1/chains/{chainId}/contracts/{address}/deployments listContractDeployments
GET /v1/chains/{chainId}/contracts/{address}/transactions:getDeployment getDeploymentTransaction
GET /v1/chains/{chainId}/nfts/collections/{address}/tokens listTokens
GET /v1/chains/{chainId}/nfts/collections/{address}/tokens/{tokenId} getTokenDetails
POST /v1/chains/{chainId}/nfts/collections/{address}/tokens/{tokenId}:reindex reindexNft
GET /v1/chains/{chainId}/tokens/{address}/transfers listTransfers
GET /v1/chains/{chainId}/transactions listLatestTransactions
GET /v1/chains/{chainId}/transactions/{txHash} getTransaction
GET /v1/health-check data-health-check
GET /v1/icm/addresses/{address}/messages listIcmMessagesByAddress
GET /v1/icm/messages listIcmMessages
GET /v1/icm/messages/{messageId} getIcmMessage
GET /v1/live-check
POST /v1/media/uploadImage mediaControllerUploadImage
GET /v1/networks/{network} getNetworkDetails
GET /v1/networks/{network}/addresses:listChainIds getChainIdsForAddresses
GET /v1/networks/{network}/blockchains listBlockchains
GET /v1/networks/{network}/blockchains/{blockchainId} getBlockchainById
GET /v1/networks/{network}/blockchains/{blockchainId}/assets/{assetId} getAssetDetails
GET /v1/networks/{network}/blockchains/{blockchainId}/assets/{assetId}/transactions listAssetTransactions
GET /v1/networks/{network}/blockchains/{blockchainId}/balances getBalancesByAddresses
GET /v1/networks/{network}/blockchains/{blockchainId}/blocks listLatestPrimaryNetworkBlocks
GET /v1/networks/{network}/blockchains/{blockchainId}/blocks/{blockId} getBlockById
GET /v1/networks/{network}/blockchains/{blockchainId}/lastActivityTimestampByAddresses
POST /v1/networks/{network}/blockchains/{blockchainId}/lastActivityTimestampByAddresses
GET /v1/networks/{network}/blockchains/{blockchainId}/nodes/{nodeId}/blocks listPrimaryNetworkBlocksByNodeId
GET /v1/networks/{network}/blockchains/{blockchainId}/transactions listLatestPrimaryNetworkTransactions
GET /v1/networks/{network}/blockchains/{blockchainId}/transactions/{txHash} getTxByHash
GET /v1/networks/{network}/blockchains/{blockchainId}/transactions:listStaking listActivePrimaryNetworkStakingTransactions
GET /v1/networks/{network}/blockchains/{blockchainId}/utxos getUtxosByAddresses
POST /v1/networks/{network}/blockchains/{blockchainId}/utxos
GET /v1/networks/{network}/blockchains/{blockchainId}/vertices listLatestXChainVertices
GET /v1/networks/{network}/blockchains/{blockchainId}/vertices/{vertexHash} getVertexByHash
GET /v1/networks/{network}/blockchains/{blockchainId}/vertices:listByHeight getVertexByHeight
GET /v1/networks/{network}/delegators listDelegators
GET /v1/networks/{network}/l1Validators listL1Validators
GET /v1/networks/{network}/rewards listHistoricalPrimaryNetworkRewards
GET /v1/networks/{network}/rewards:listPending listPendingPrimaryNetworkRewards
GET /v1/networks/{network}/subnets listSubnets
GET /v1/networks/{network}/subnets/{subnetId} getSubnetById
GET /v1/networks/{network}/validators listValidators
GET /v1/networks/{network}/validators/{nodeId} getSingleValidatorDetails
POST /v1/notifications/access access
POST /v1/notifications/subscribe subscribe
POST /v1/notifications/subscriptions subscriptions
POST /v1/notifications/unsubscribe unsubscribe
POST /v1/operations/transactions:export postTransactionExportJob
GET /v1/operations/{operationId} getOperationResult
GET /v1/primaryNetworkRpcUsageMetrics getPrimaryNetworkRpcUsageMetrics
GET /v1/rpcUsageMetrics getRpcUsageMetrics
POST /v1/signatureAggregator/{network}/aggregateSignatures aggregateSignatures
GET /v1/signatureAggregator/{network}/aggregateSignatures/{txHash} getAggregatedSignatures
GET /v1/subnetRpcUsageMetrics getSubnetRpcUsageMetrics
GET /v1/teleporter/addresses/{address}/messages listTeleporterMessagesByAddress
GET /v1/teleporter/messages listTeleporterMessages
GET /v1/teleporter/messages/{messageId} getTeleporterMessage
GET /v1/transactions listLatestTransactionsAllChains
GET /v1/webhooks listWebhooks
POST /v1/webhooks createWebhook
DELETE /v1/webhooks/{id} deactivateWebhook
GET /v1/webhooks/{id} getWebhook
PATCH /v1/webhooks/{id} updateWebhook
DELETE /v1/webhooks/{id}/addresses removeAddressesFromWebhook
GET /v1/webhooks/{id}/addresses getAddressesFromWebhook
PATCH /v1/webhooks/{id}/addresses addAddressesToWebhook
POST /v1/webhooks:generateOrRotateSharedSecret generateOrRotateSharedSecret
GET /v1/webhooks:getSharedSecret getSharedSecret
GET /v2/chains listChains
GET /v2/chains/43114/btcb/bridged:getAddresses getAddressesByBtcbBridged
GET /v2/chains/{chainId} getChain
GET /v2/chains/{chainId}/addresses/{address}/transactions
GET /v2/chains/{chainId}/contracts/{address}/balances getAddressesByBalanceOverTime
GET /v2/chains/{chainId}/contracts/{address}/nfts:listHolders getNftHoldersByContractAddress
GET /v2/chains/{chainId}/metrics/{metric} getEvmChainMetrics
GET /v2/chains/{chainId}/rollingWindowMetrics/{metric} getEvmChainRollingWindowMetrics
GET /v2/chains/{chainId}/teleporterMetrics/{metric} getTeleporterMetricsByChain
GET /v2/health-check metrics-health-check
POST /v2/lookingGlass/compositeQuery compositeQueryV2
GET /v2/networks/{network}/metrics/{metric} getStakingMetrics
GET /v2/subnet/{subnetId}/metrics/{metric} getMetricsBySubnetId
GET /v2/subnets/{subnetId}/validators:getAddresses getValidatorsByDateRange
GET /v2/validation/{l1ValidationId}/metrics/{metric} getMetricsByValidationId
GET /v2/validator/{nodeId}/metrics/{metric} getMetricsByNodeId
GET /v2/validators/metrics/{metric} getTotalL1ValidatorMetrics
"""  # noqa: E501 - names of others
OPERATIONS = tuple(line for line in _OPERATIONS.strip().splitlines())

# What a client of the hosted service notices, by the label of an operation.
DIFFERENCES: dict[str, str] = {
    "GET /v1/apiLogs": "only of keys of this installation, for some days",
    "GET /v1/apiUsageMetrics": "there are no organisations: counts are by key",
    "GET /v1/chains": "the chains that are indexed here",
    "POST /v1/chains/{chainId}/nfts/collections/{address}/tokens/{tokenId}:reindex": "with a key, or from this machine",
    "GET /v1/health-check": "details name stores and chains of this installation",
    "GET /v2/health-check": "details name stores and chains of this installation",
    "GET /v1/operations/{operationId}": "metadata also has progress, rows and expiresAt",
    "POST /v1/operations/transactions:export": "EVM chains only; a ZIP archive of CSV files of our own columns",
    "POST /v1/webhooks": "EVM address activity only; also confirmations, order and a first block",
    "GET /v2/chains/{chainId}/addresses/{address}/transactions": "filterSpamTokens is ignored",
    "GET /v2/chains/{chainId}/metrics/{metric}": "the series of /v1/metrics",
    "GET /v2/chains/{chainId}/rollingWindowMetrics/{metric}": "the windows up to now, exact to the block",
}
_NOT_YET = "not yet"
# Why an operation is not served, by the beginning of its path.
REASONS: dict[str, str] = {
    "/v1/avax/supply": "needs all fees that the C-Chain ever burned",
    "/v1/chains/{chainId}/contracts/{address}": "changes data of the hosted service; names come from the chain",
    "/v1/icm/": _NOT_YET,
    "/v1/media/": "stores images for the hosted service's own pages",
    "/v1/networks/": _NOT_YET,
    "/v1/notifications/": "push messages to the hosted service's own app; webhooks do the same for servers",
    "/v1/primaryNetworkRpcUsageMetrics": "usage of the hosted service's RPC nodes",
    "/v1/rpcUsageMetrics": "usage of the hosted service's RPC nodes",
    "/v1/signatureAggregator/": "needs connections to validators, which only a node has",
    "/v1/subnetRpcUsageMetrics": "usage of the hosted service's RPC nodes",
    "/v1/teleporter/": _NOT_YET,
    "/v2/chains/43114/btcb/": "about one token of one chain; token holders answer it for any token",
    "/v2/chains/{chainId}/teleporterMetrics/": _NOT_YET,
    "/v2/lookingGlass/": "not yet; `holders` and `balances` of a contract answer parts of it",
    "/v2/networks/": _NOT_YET,
    "/v2/subnet/": _NOT_YET,
    "/v2/subnets/": _NOT_YET,
    "/v2/validation/": _NOT_YET,
    "/v2/validator/": _NOT_YET,
    "/v2/validators/": _NOT_YET,
}
_PARAMETER = re.compile(r"\{\w+\}")


def shape_of(label: str) -> str:
    """A verb and a path without the names of its parameters, which may differ."""
    return _PARAMETER.sub("{}", label)


def reason_of(label: str) -> str:
    """Why an operation is not served; empty if that is not said."""
    path = label.partition(" ")[2]
    return max(((len(begin), text) for begin, text in REASONS.items() if path.startswith(begin)), default=(0, ""))[1]


def hosted_markdown(rows: Iterable[Rest | Rpc]) -> str:
    """The page: one line for each operation."""
    served = {shape_of(row.label): row for row in rows if isinstance(row, Rest)}
    lines, counts = [], {"yes": 0, "differs": 0, "no": 0}
    for operation in OPERATIONS:
        verb, path, name = (*operation.split(" "), "")[:3]
        label = f"{verb} {path}"
        row = served.get(shape_of(label))
        note = reason_of(label) if row is None else DIFFERENCES.get(label, "")
        state = "no" if row is None else "differs" if note else "yes"
        counts[state] += 1
        lines.append(f"| `{label}` | {f'`{name}`' if name else ''} | {state} | {note} |".replace("|  |", "| |"))
    head = [
        "# The hosted service's operations",
        "",
        f"All {len(OPERATIONS)} operations of the hosted service, and whether Icefall serves them: "
        f"{counts['yes']} as they are, {counts['differs']}",
        f"with a difference that a client may notice, and {counts['no']} not. [dialects.md](dialects.md) has the "
        "differences in form,",
        "[api.md](api.md) what Icefall serves besides.",
        "Generated from `src/icefall/api/describing/hosted.py` and the endpoint rows by `make docs`.",
        "",
        "| call | operation | served | difference, or why not |",
        "|---|---|---|---|",
    ]
    return "\n".join([*head, *lines, ""])
