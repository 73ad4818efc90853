"""Holders of tokens: with balances on the chain data interface, as lists of addresses on the metrics interface."""

from msgspec import UNSET, UnsetType

from icefall.api.params.rest_kinds import (
    ChainName,
    Currency,
    EvmAddress,
    HoldersPageSize,
    PageSize,
    PageToken,
    Threshold,
    Timestamp,
)
from icefall.api.schema.names import Page, RestParams, RestResult
from icefall.api.schema.parties import Price


class HoldersParams(RestParams, frozen=True):
    chain_id: ChainName
    address: EvmAddress
    currency: Currency = "usd"
    page_token: PageToken = ""
    page_size: PageSize = 10


class NftHoldersParams(RestParams, frozen=True):
    chain_id: ChainName
    address: EvmAddress
    page_token: PageToken = ""
    page_size: HoldersPageSize = 1000


class HoldersAboveParams(RestParams, frozen=True):
    """From `startTimestamp` to before `endTimestamp`."""

    chain_id: ChainName
    address: EvmAddress
    threshold: Threshold
    start_timestamp: Timestamp = None
    end_timestamp: Timestamp = None
    page_token: PageToken = ""
    page_size: HoldersPageSize = 1000


class TokenHolder(RestResult, frozen=True, gc=False, kw_only=True):
    address: str
    balance: str
    balance_value: Price | UnsetType = UNSET


class HolderPage(Page, frozen=True, kw_only=True):
    """Largest first, without the zero address."""

    total_holders: int
    counted_to_block: str | UnsetType = UNSET
    is_trusted: bool
    holders: list[TokenHolder]


class ListedAddress(RestResult, frozen=True, gc=False):
    address: str
    sort_key: str


class AddressList(Page, frozen=True, kw_only=True):
    addresses: list[ListedAddress]


class NftHolderList(AddressList, frozen=True, kw_only=True):
    nft_collection_name: list[str] | UnsetType = UNSET
    nft_symbol: list[str] | UnsetType = UNSET
    total_holders: int
    total_tokens: int
