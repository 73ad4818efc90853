"""Parameters and results that an explorer needs besides the lists: search, tokens, prices, balance history, and the
state of the index.
"""

from typing import Literal

from msgspec import UNSET, UnsetType

from icefall.api.data.schema.tokens import CurrencyCode, ErcType, Price
from icefall.api.http.rest_params import (
    ChainName,
    Currency,
    EvmAddress,
    MaybeAddress,
    MaybeErcType,
    MaybeInterval,
    PageSize,
    PageToken,
    SearchPageSize,
    SearchText,
    Timestamp,
    TokenOrder,
    TokenOrNative,
)
from icefall.api.http.structs import Page, RestParams, RestResult


class SearchParams(RestParams, frozen=True):
    query: SearchText
    page_size: SearchPageSize = 10


class TokensParams(RestParams, frozen=True):
    chain_id: ChainName
    erc_type: MaybeErcType = None
    sort_by: TokenOrder = None
    page_token: PageToken = ""
    page_size: PageSize = 10


class TokenParams(RestParams, frozen=True):
    chain_id: ChainName
    address: EvmAddress


class PricesParams(RestParams, frozen=True):
    chain_id: ChainName
    address: TokenOrNative
    currency: Currency = "usd"
    start_timestamp: Timestamp = None
    end_timestamp: Timestamp = None
    page_token: PageToken = ""
    page_size: PageSize = 10


class BalanceHistoryParams(RestParams, frozen=True):
    """The time frame is from `startTimestamp` to before `endTimestamp`."""

    chain_id: ChainName
    address: EvmAddress
    contract_address: MaybeAddress = None
    time_interval: MaybeInterval = None
    start_timestamp: Timestamp = None
    end_timestamp: Timestamp = None
    page_token: PageToken = ""
    page_size: PageSize = 10


class IndexingParams(RestParams, frozen=True):
    chain_id: ChainName


class FoundChain(RestResult, frozen=True, kw_only=True, tag_field="type", tag="chain"):
    """A chain, with the symbol of its native token."""

    chain_id: str
    chain_name: str
    symbol: str


class FoundBlock(RestResult, frozen=True, kw_only=True, tag_field="type", tag="block"):
    chain_id: str
    chain_name: str
    block_number: str
    block_hash: str
    block_timestamp: int


class FoundTransaction(RestResult, frozen=True, kw_only=True, tag_field="type", tag="transaction"):
    chain_id: str
    chain_name: str
    tx_hash: str
    block_number: str
    block_timestamp: int


class FoundAddress(RestResult, frozen=True, kw_only=True, tag_field="type", tag="address"):
    chain_id: str
    chain_name: str
    address: str
    is_contract: bool


class FoundToken(RestResult, frozen=True, kw_only=True, tag_field="type", tag="token"):
    chain_id: str
    chain_name: str
    address: str
    erc_type: ErcType
    name: str | UnsetType = UNSET
    symbol: str | UnsetType = UNSET
    decimals: int | UnsetType = UNSET


Found = FoundChain | FoundBlock | FoundTransaction | FoundAddress | FoundToken


class SearchResult(RestResult, frozen=True):
    """The things found, empty if there are none on any chain."""

    results: list[Found]


class TokenSummary(RestResult, frozen=True, kw_only=True):
    """A token and its totals, which are absent while nothing of it is counted."""

    address: str
    erc_type: ErcType
    name: str | UnsetType = UNSET
    symbol: str | UnsetType = UNSET
    decimals: int | UnsetType = UNSET
    first_block: str
    price: Price | UnsetType = UNSET
    logo_uri: str | UnsetType = UNSET
    holders: int | UnsetType = UNSET
    transfers: int | UnsetType = UNSET
    total_supply: str | UnsetType = UNSET
    market_value: Price | UnsetType = UNSET
    is_listed: bool = False
    listed_namesake: str | UnsetType = UNSET


class TokenPage(Page, frozen=True, kw_only=True):
    """A page of tokens, the newest contract first unless `sortBy` says otherwise. A page with `ercType` may be short
    although more follow."""

    tokens: list[TokenSummary]


class DailyPrice(RestResult, frozen=True):
    timestamp: int
    value: str | float  # by dialect


class PricePage(Page, frozen=True, kw_only=True):
    """A page of daily prices, newest first; days without a price are left out."""

    currency_code: CurrencyCode
    current_price: str | float | UnsetType = UNSET
    prices: list[DailyPrice]


class BalanceAtTime(RestResult, frozen=True, gc=False):
    timestamp: int
    block_number: str
    balance: str


class BalanceHistoryPage(Page, frozen=True, kw_only=True):
    """A page of balances, newest first."""

    history: list[BalanceAtTime]


class UpstreamResult(RestResult, frozen=True, kw_only=True):
    name: str
    state: Literal["usable", "backing off", "disabled"]
    problem: str | UnsetType = UNSET


class IndexingResult(RestResult, frozen=True, kw_only=True):
    chain_id: str
    first_block: str | UnsetType = UNSET
    last_block: str | UnsetType = UNSET
    head_block: str | UnsetType = UNSET
    is_synced: bool
    is_running: bool
    blocks_per_second: float
    eta_seconds: int | UnsetType = UNSET
    audited_to_block: str | UnsetType = UNSET
    audits_dropped: int
    words_dropped: int
    logs_stored_from_block: str | UnsetType = UNSET
    calls_stored_from_block: str | UnsetType = UNSET
    refolded_to_block: str | UnsetType = UNSET
    refold_target_block: str | UnsetType = UNSET
    problem: str | UnsetType = UNSET
    limitations: list[str]
    upstreams: list[UpstreamResult]
