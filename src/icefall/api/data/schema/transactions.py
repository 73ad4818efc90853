"""Parameters and results of transactions: in lists, of an address with its transfers, single ones with everything in
them, and their raw logs and calls.
"""

from typing import Literal

from msgspec import UNSET, UnsetType

from icefall.api.data.schema.abis import DecodedData
from icefall.api.data.schema.tokens import NetworkToken, Price
from icefall.api.data.schema.transfers import (
    AddressPage,
    InternalTransaction,
    InternalTransactionDetails,
    NativeTransaction,
    NestedTransfers,
    TokenTransferPage,
    TransactionDetails,
)
from icefall.api.http.rest_params import (
    CallsPageSize,
    ChainName,
    Currency,
    EndBlock,
    EvmAddress,
    MaybeTopic,
    Network,
    PageSize,
    PageToken,
    SortOrder,
    StartBlock,
    StatusFilter,
    Switch,
    TxHash,
)
from icefall.api.http.structs import Page, RestParams, RestResult


class LatestTxsParams(RestParams, frozen=True):
    chain_id: ChainName
    page_token: PageToken = ""
    page_size: PageSize = 10
    status: StatusFilter = None


class AllTxsParams(RestParams, frozen=True):
    network: Network = None
    page_token: PageToken = ""
    page_size: PageSize = 10
    status: StatusFilter = None


class TransactionParams(RestParams, frozen=True):
    chain_id: ChainName
    tx_hash: TxHash


class PendingTransaction(RestResult, frozen=True, kw_only=True):
    """A transaction as the upstream knows it. `tx_state`: `indexed` here; `included` in a block that is not indexed;
    `pending`: no block holds it; `unknown` to the upstream, or there is none. What follows is of the second and third.
    """

    chain_id: str
    tx_hash: str
    tx_state: Literal["indexed", "included", "pending", "unknown"]
    block_number: str | UnsetType = UNSET
    from_: str | UnsetType = UNSET
    to: str | UnsetType = UNSET
    value: str | UnsetType = UNSET
    nonce: str | UnsetType = UNSET
    tx_type: int | UnsetType = UNSET
    gas_limit: str | UnsetType = UNSET
    gas_price: str | UnsetType = UNSET
    max_fee_per_gas: str | UnsetType = UNSET
    max_priority_fee_per_gas: str | UnsetType = UNSET
    method_name: str | UnsetType = UNSET


class SortedAddressPage(AddressPage, frozen=True):
    sort_order: SortOrder = "desc"


class FilteredAddressPage(SortedAddressPage, frozen=True):
    filter_spam_tokens: Switch = False


class DeploymentParams(RestParams, frozen=True):
    chain_id: ChainName
    address: EvmAddress
    currency: Currency = "usd"


class FullNativeTransaction(NativeTransaction, frozen=True, gc=False):
    input: str
    base_fee_per_gas: str
    max_fee_per_gas: str | UnsetType = UNSET
    max_priority_fee_per_gas: str | UnsetType = UNSET


class NativeTransactionPage(Page, frozen=True, kw_only=True):
    transactions: list[NativeTransaction]


class TransactionDetailsPage(Page, frozen=True, kw_only=True):
    transactions: list[TransactionDetails]


class NetworkTokenDetails(RestResult, frozen=True):
    """The native token and its prices. `historicalPrice` is that of the transaction's day (UTC), for transactions older
    than 24 hours."""

    network_token: NetworkToken
    current_price: Price | UnsetType = UNSET
    historical_price: Price | UnsetType = UNSET


class TeleporterMessageInfo(RestResult, frozen=True):
    teleporter_message_id: str
    direction: Literal["SOURCE_TRANSACTION", "DESTINATION_TRANSACTION"]
    source_chain_id: str
    destination_chain_id: str


class WholeTransaction(NestedTransfers, frozen=True):
    """A transaction and everything in it. `truncated` is true where it has more than 2,000 transfers or internal
    transactions: all of them are at `.../{txHash}/transfers`."""

    internal_transactions: list[InternalTransactionDetails]
    network_token_details: NetworkTokenDetails
    native_transaction: FullNativeTransaction
    teleporter_message_info: TeleporterMessageInfo | UnsetType = UNSET
    truncated: bool | UnsetType = UNSET


class TransactionTransfersParams(RestParams, frozen=True):
    chain_id: ChainName
    tx_hash: TxHash
    page_token: PageToken = ""
    page_size: PageSize = 10


class TransactionTransfersPage(TokenTransferPage, frozen=True, kw_only=True):
    """All token transfers of a transaction in log order, then its internal transactions in their order."""

    internal_transactions: list[InternalTransaction]


class TxLogsParams(RestParams, frozen=True):
    chain_id: ChainName
    tx_hash: TxHash
    page_token: PageToken = ""
    page_size: PageSize = 10


class AddressLogsParams(RestParams, frozen=True):
    """The range is from `startBlock` up to, but not including, `endBlock`."""

    chain_id: ChainName
    address: EvmAddress
    topic0: MaybeTopic = None
    topic1: MaybeTopic = None
    topic2: MaybeTopic = None
    topic3: MaybeTopic = None
    page_token: PageToken = ""
    page_size: PageSize = 10
    start_block: StartBlock = None
    end_block: EndBlock = None


class CallsParams(RestParams, frozen=True):
    chain_id: ChainName
    tx_hash: TxHash
    page_token: PageToken = ""
    page_size: CallsPageSize = 100


class LogResult(RestResult, frozen=True, kw_only=True):
    block_number: str
    block_timestamp: int
    block_hash: str
    tx_hash: str
    log_index: int
    address: str
    topics: list[str]
    data: str
    event_signature: str | UnsetType = UNSET
    decoded_log: DecodedData | UnsetType = UNSET


class LogPage(Page, frozen=True, kw_only=True):
    logs: list[LogResult]


class CallResult(RestResult, frozen=True, kw_only=True):
    """One call. `parentIndex` is absent for the transaction itself; `isTruncated` is true if input or output is cut."""

    index: int
    depth: int
    parent_index: int | UnsetType = UNSET
    call_type: str
    from_: str
    to: str
    value: str
    gas_limit: str
    gas_used: str
    input: str
    output: str
    is_reverted: bool
    error: str | UnsetType = UNSET
    revert_reason: str | UnsetType = UNSET
    method_name: str | UnsetType = UNSET
    is_truncated: bool | UnsetType = UNSET
    decoded_input: DecodedData | UnsetType = UNSET
    decoded_error: DecodedData | UnsetType = UNSET


class CallPage(Page, frozen=True, kw_only=True):
    """A page of calls in the order in which they were made: each call before those it makes."""

    calls: list[CallResult]


class RevertReason(RestResult, frozen=True, kw_only=True):
    tx_hash: str
    tx_status: Literal["0", "1"]
    is_reverted: bool
    error: str | UnsetType = UNSET
    revert_data: str | UnsetType = UNSET
    revert_reason: str | UnsetType = UNSET
    decoded_error: DecodedData | UnsetType = UNSET
