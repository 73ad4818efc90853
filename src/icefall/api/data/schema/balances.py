"""Parameters and results of balances of an address."""

from typing import Literal

from msgspec import UNSET, UnsetType

from icefall.api.data.schema.tokens import Erc721Metadata, Erc1155Metadata, Price
from icefall.api.http.rest_params import (
    BalancePageSize,
    BlockNumber,
    ChainName,
    Currency,
    EvmAddress,
    EvmAddresses,
    MaybeAddress,
    NotOffered,
    PageToken,
    Switch,
)
from icefall.api.http.structs import Page, RestParams, RestResult
from icefall.evm.model import ERC721, ERC1155


class NativeBalanceParams(RestParams, frozen=True):
    chain_id: ChainName
    address: EvmAddress
    block_number: BlockNumber = None
    currency: Currency = "usd"


class Erc20BalancesParams(RestParams, frozen=True):
    chain_id: ChainName
    address: EvmAddress
    block_number: BlockNumber = None
    page_token: PageToken = ""
    page_size: BalancePageSize = 10
    filter_spam_tokens: Switch = True
    contract_addresses: EvmAddresses = ()
    currency: Currency = "usd"


class NftBalancesParams(RestParams, frozen=True):
    """An address and a page. Owners of ERC-721 tokens at an older block are not offered."""

    chain_id: ChainName
    address: EvmAddress
    page_token: PageToken = ""
    page_size: BalancePageSize = 10
    contract_address: MaybeAddress = None
    block_number: NotOffered = None


class Erc1155BalancesParams(RestParams, frozen=True):
    chain_id: ChainName
    address: EvmAddress
    block_number: BlockNumber = None
    page_token: PageToken = ""
    page_size: BalancePageSize = 10
    contract_address: MaybeAddress = None


class NativeTokenBalance(RestResult, frozen=True, kw_only=True):
    name: str
    symbol: str
    decimals: int
    logo_uri: str | UnsetType = UNSET
    chain_id: str
    price: Price | UnsetType = UNSET
    balance: str
    balance_value: Price | UnsetType = UNSET


class Erc20TokenBalance(RestResult, frozen=True, gc=False, kw_only=True):
    """A balance. `tokenReputation` is null for a token without a verdict: the only field of this interface that may be
    null."""

    address: str
    name: str | UnsetType = UNSET
    symbol: str | UnsetType = UNSET
    decimals: int | UnsetType = UNSET
    logo_uri: str | UnsetType = UNSET
    names_read: bool | UnsetType = UNSET
    erc_type: Literal["ERC-20"] = "ERC-20"
    price: Price | UnsetType = UNSET
    is_listed: bool | UnsetType = UNSET
    chain_id: str
    balance: str
    balance_value: Price | UnsetType = UNSET
    token_reputation: Literal["Malicious", "Benign"] | None


class Erc721TokenBalance(RestResult, frozen=True, gc=False, kw_only=True, tag_field="ercType", tag="ERC-721"):
    address: str
    name: str | UnsetType = UNSET
    symbol: str | UnsetType = UNSET
    names_read: bool | UnsetType = UNSET
    token_id: str
    token_uri: str
    metadata: Erc721Metadata
    owner_address: str | UnsetType = UNSET
    chain_id: str


class Erc1155TokenBalance(RestResult, frozen=True, gc=False, kw_only=True, tag_field="ercType", tag="ERC-1155"):
    address: str
    token_id: str
    token_uri: str
    metadata: Erc1155Metadata
    chain_id: str
    balance: str


class NativeBalanceResult(RestResult, frozen=True):
    native_token_balance: NativeTokenBalance


class Erc20Balances(Page, frozen=True, kw_only=True):
    native_token_balance: NativeTokenBalance
    erc20_token_balances: list[Erc20TokenBalance]


class Erc721Balances(Page, frozen=True, kw_only=True):
    native_token_balance: NativeTokenBalance
    erc721_token_balances: list[Erc721TokenBalance]


class Erc1155Balances(Page, frozen=True, kw_only=True):
    native_token_balance: NativeTokenBalance
    erc1155_token_balances: list[Erc1155TokenBalance]


# The page of balances of one standard whose tokens have IDs, by its number.
NFT_BALANCES: dict[int, type[Page]] = {ERC721: Erc721Balances, ERC1155: Erc1155Balances}
NftBalance = Erc721TokenBalance | Erc1155TokenBalance


class CollectibleBalances(Page, frozen=True, kw_only=True):
    collectible_balances: list[NftBalance]
