"""Blocks."""

from icefall.api.params.rest_kinds import (
    BlockId,
    BlockPageSize,
    ChainName,
    Closest,
    Network,
    PageSize,
    PageToken,
    RequiredTimestamp,
)
from icefall.api.schema.names import Page, RestParams, RestResult


class BlocksParams(RestParams, frozen=True):
    chain_id: ChainName
    page_token: PageToken = ""
    page_size: PageSize = 10


class AllBlocksParams(RestParams, frozen=True):
    network: Network = None
    page_token: PageToken = ""
    page_size: PageSize = 10


class BlockByTimeParams(RestParams, frozen=True):
    chain_id: ChainName
    timestamp: RequiredTimestamp
    closest: Closest = "before"


class BlockParams(RestParams, frozen=True):
    chain_id: ChainName
    block_id: BlockId


class BlockTxsParams(RestParams, frozen=True):
    """A page size of 0 is the whole block."""

    chain_id: ChainName
    block_id: BlockId
    page_token: PageToken = ""
    page_size: BlockPageSize = 0


class EvmBlock(RestResult, frozen=True, gc=False):
    chain_id: str
    block_number: str
    block_timestamp: int
    block_hash: str
    tx_count: int
    base_fee: str
    gas_used: str
    gas_limit: str
    gas_cost: str
    parent_hash: str
    fees_spent: str
    cumulative_transactions: str


class EvmBlockPage(Page, frozen=True, kw_only=True):
    blocks: list[EvmBlock]
