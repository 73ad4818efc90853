"""Results of the X-Chain: outputs, transactions, balances, assets and vertices. Outputs and balances of C have these
shapes too."""

from typing import Literal

from msgspec import UNSET, UnsetType

from icefall.api.http.rest_params import PageSize, PageToken, SortOrder
from icefall.api.http.structs import Page, RestParams, RestResult
from icefall.api.networks.params import IdParam, NetworkName, PrimaryChain, Time, TxTypes, VertexHeight
from icefall.api.networks.schema.assets import NetworkAsset, PrimaryChainInfo
from icefall.api.networks.schema.transactions import CategoryAmount


class NetworkAssetParams(RestParams, frozen=True):
    network: NetworkName
    blockchain_id: PrimaryChain
    asset_id: IdParam


class AssetTxsParams(RestParams, frozen=True):
    network: NetworkName
    blockchain_id: PrimaryChain
    asset_id: IdParam
    tx_types: TxTypes = ()
    start_timestamp: Time = None
    end_timestamp: Time = None
    page_token: PageToken = ""
    page_size: PageSize = 10


class VerticesParams(RestParams, frozen=True):
    network: NetworkName
    blockchain_id: PrimaryChain
    page_token: PageToken = ""
    page_size: PageSize = 10


class VertexParams(RestParams, frozen=True):
    network: NetworkName
    blockchain_id: PrimaryChain
    vertex_hash: IdParam


class VerticesAtParams(RestParams, frozen=True):
    network: NetworkName
    blockchain_id: PrimaryChain
    vertex_height: VertexHeight
    sort_order: SortOrder = "desc"
    page_token: PageToken = ""
    page_size: PageSize = 10


class UtxoCredential(RestResult, frozen=True):
    """A signature for an output, in base64. The key is given where one transaction is asked for."""

    signature: str
    public_key: str | UnsetType = UNSET


class UtxoResult(RestResult, frozen=True, kw_only=True):
    """An output of X, or one that was exported from or to C."""

    addresses: list[str]
    asset: NetworkAsset
    consumed_on_chain_id: str
    consuming_tx_hash: str | UnsetType = UNSET
    created_on_chain_id: str
    utxo_id: str
    utxo_bytes: str | UnsetType = UNSET
    consuming_tx_timestamp: int | UnsetType = UNSET
    creation_tx_hash: str
    credentials: list[UtxoCredential] | UnsetType = UNSET
    group_id: int | UnsetType = UNSET
    locktime: int
    output_index: str
    payload: str | UnsetType = UNSET
    threshold: int
    timestamp: int
    utxo_type: str


class AssetDetails(RestResult, frozen=True):
    asset_id: str
    name: str
    symbol: str
    denomination: int
    type: Literal["secp256k1", "nft"]
    created_at_timestamp: int
    cap: Literal["fixed", "variable"]


class TransactionVertex(RestResult, frozen=True):
    hash: str
    height: int
    timestamp: int


class XTransaction(RestResult, frozen=True, kw_only=True):
    """A transaction of X. One that is linear is in a block. One from before the blocks is in vertices; it names none
    where no upstream has them."""

    tx_hash: str
    chain_format: Literal["linear", "non-linear"]
    timestamp: int
    tx_type: Literal["BaseTx", "CreateAssetTx", "OperationTx", "ImportTx", "ExportTx"]
    memo: str
    consumed_utxos: list[UtxoResult]
    emitted_utxos: list[UtxoResult]
    amount_unlocked: list[NetworkAsset]
    amount_created: list[NetworkAsset]
    source_chain: str | UnsetType = UNSET
    destination_chain: str | UnsetType = UNSET
    asset_created: AssetDetails | UnsetType = UNSET
    block_height: int | UnsetType = UNSET
    block_hash: str | UnsetType = UNSET
    vertices: list[TransactionVertex] | UnsetType = UNSET


class XTransactionPage(Page, frozen=True):
    transactions: list[XTransaction]
    chain_info: PrimaryChainInfo


class ChainUtxoPage(Page, frozen=True):
    utxos: list[UtxoResult]
    chain_info: PrimaryChainInfo


class AtomicAmount(CategoryAmount, frozen=True):
    """What is in the memory shared with another chain: exported there, or from there."""

    shared_with_chain_id: str


class XBalances(RestResult, frozen=True):
    locked: list[CategoryAmount]
    unlocked: list[CategoryAmount]
    atomic_memory_unlocked: list[AtomicAmount]
    atomic_memory_locked: list[AtomicAmount]


class XBalancesResult(RestResult, frozen=True):
    balances: XBalances
    chain_info: PrimaryChainInfo


class CBalances(RestResult, frozen=True):
    atomic_memory_unlocked: list[AtomicAmount]
    atomic_memory_locked: list[AtomicAmount]


class CBalancesResult(RestResult, frozen=True):
    balances: CBalances
    chain_info: PrimaryChainInfo


class XVertex(RestResult, frozen=True):
    vertex_hash: str
    parent_hashes: list[str]
    vertex_height: int
    vertex_index: int
    vertex_timestamp: int
    tx_count: int
    transactions: list[str]
    vertex_size_bytes: int


class XVertexPage(Page, frozen=True):
    vertices: list[XVertex]
    chain_info: PrimaryChainInfo
