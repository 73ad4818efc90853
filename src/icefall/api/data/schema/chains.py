"""Parameters and results of chains, of their blocks, and the events of the live stream."""

from typing import Any, Literal

from msgspec import UNSET, UnsetType

from icefall.api.data.schema.tokens import NetworkToken
from icefall.api.http.rest_params import (
    BlockId,
    BlockPageSize,
    ChainName,
    Closest,
    EventTypes,
    EvmAddress,
    Feature,
    LastEventId,
    MaybeAddress,
    MaybeChain,
    Network,
    PageSize,
    PageToken,
    RequiredTimestamp,
)
from icefall.api.http.structs import Page, RestParams, RestResult


class ChainsParams(RestParams, frozen=True):
    network: Network = None
    feature: Feature = None


class ChainParams(RestParams, frozen=True):
    chain_id: ChainName


class AddressChainsParams(RestParams, frozen=True):
    address: EvmAddress


class UtilityAddresses(RestResult, frozen=True):
    multicall: str


class EvmChainResult(RestResult, frozen=True, kw_only=True):
    """A chain. `status` is `OK` while blocks are stored and the indexer is at the tip or makes progress."""

    chain_id: str
    status: Literal["OK", "UNAVAILABLE"]
    chain_name: str
    description: str
    platform_chain_id: str | UnsetType = UNSET
    subnet_id: str | UnsetType = UNSET
    vm_id: str | UnsetType = UNSET
    vm_name: Literal["EVM"] = "EVM"
    explorer_url: str | UnsetType = UNSET
    rpc_url: str
    ws_url: str | UnsetType = UNSET
    is_testnet: bool
    utility_addresses: UtilityAddresses | UnsetType = UNSET
    network_token: NetworkToken
    chain_logo_uri: str | UnsetType = UNSET
    private: bool
    enabled_features: list[Literal["nftIndexing", "webhooks", "teleporter"]]


class EvmChains(RestResult, frozen=True):
    chains: list[EvmChainResult]


class AddressChains(RestResult, frozen=True):
    """The chains on which an address occurs. `unindexedChains` is always empty: only indexed chains are known here."""

    indexed_chains: list[EvmChainResult]
    unindexed_chains: list[str]


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


class EvmBlockDetails(EvmBlock, frozen=True, gc=False):
    """An EvmBlock, and what the hosted service does not say of it. Blocks that an older release indexed lack it."""

    fee_recipient: str | UnsetType = UNSET
    size: int | UnsetType = UNSET
    fees_burned: str | UnsetType = UNSET


class EvmBlockDetailsPage(Page, frozen=True, kw_only=True):
    blocks: list[EvmBlockDetails]


class StreamParams(RestParams, frozen=True):
    chain_id: MaybeChain = None
    address: MaybeAddress = None
    types: EventTypes = ("blocks", "transactions")
    last_event_id: LastEventId = ""
    token: MaybeAddress = None


class TransferEvent(RestResult, frozen=True):
    """A transfer of the address or token. `transfer` is an item of the transfer lists."""

    chain_id: str
    transfer: Any


class RollbackEvent(RestResult, frozen=True):
    """A reorganisation: the blocks above `blockNumber` are no longer part of the chain, and those that replace them
    follow."""

    chain_id: str
    block_number: str


class SkippedEvent(RestResult, frozen=True):
    """The client was away for too long: the blocks from `startBlock` to before `endBlock` are not sent."""

    chain_id: str
    start_block: str
    end_block: str
