"""Raw logs and calls of transactions."""

from typing import Literal

from msgspec import UNSET, UnsetType

from icefall.api.params.rest_kinds import (
    CallsPageSize,
    ChainName,
    EndBlock,
    EvmAddress,
    MaybeTopic,
    PageSize,
    PageToken,
    StartBlock,
    TxHash,
)
from icefall.api.schema.names import Page, RestParams, RestResult


class TxLogsParams(RestParams, frozen=True):
    chain_id: ChainName
    tx_hash: TxHash
    page_token: PageToken = ""
    page_size: PageSize = 10


class AddressLogsParams(RestParams, frozen=True):
    """Blocks from `startBlock` up to, but not including, `endBlock`."""

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


class LogResult(RestResult, frozen=True, gc=False, kw_only=True):
    block_number: str
    block_timestamp: int
    block_hash: str
    tx_hash: str
    log_index: int
    address: str
    topics: list[str]
    data: str
    event_signature: str | UnsetType = UNSET


class LogPage(Page, frozen=True, kw_only=True):
    logs: list[LogResult]


class CallResult(RestResult, frozen=True, gc=False, kw_only=True):
    """One call. `parentIndex` is absent for the transaction itself; `isTruncated`: input or output is cut."""

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


class CallPage(Page, frozen=True, kw_only=True):
    """In the order in which they were made: each call before those it makes."""

    calls: list[CallResult]


class RevertReason(RestResult, frozen=True, kw_only=True):
    tx_hash: str
    tx_status: Literal["0", "1"]
    is_reverted: bool
    error: str | UnsetType = UNSET
    revert_data: str | UnsetType = UNSET
    revert_reason: str | UnsetType = UNSET
