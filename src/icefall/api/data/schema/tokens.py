"""Tokens, NFTs, contracts and holders: the parts of transfers and balances, and the parameters and results of their own
lists.
"""

from typing import Annotated, Any, Literal, get_args

from msgspec import UNSET, Meta, UnsetType

from icefall.api.http.rest_params import (
    ChainName,
    Currency,
    EvmAddress,
    PageSize,
    PageToken,
    TokenId,
)
from icefall.api.http.structs import Page, RestParams, RestResult

CurrencyCode = Literal[
    "usd", "eur", "aud", "cad", "chf", "clp", "cny", "czk", "dkk", "gbp", "hkd", "huf", "jpy", "nzd"
]  # fmt: skip


class Party(RestResult, frozen=True, gc=False, kw_only=True):
    """An address. The other fields are present for a token whose contract returns them, or which is on the token
    list."""

    name: str | UnsetType = UNSET
    symbol: str | UnsetType = UNSET
    decimals: int | UnsetType = UNSET
    logo_uri: str | UnsetType = UNSET
    address: str


class Price(RestResult, frozen=True, gc=False):
    currency_code: CurrencyCode
    value: str | float  # by dialect


class NetworkToken(RestResult, frozen=True):
    name: str
    symbol: str
    decimals: int
    logo_uri: str | UnsetType = UNSET
    description: str | UnsetType = UNSET


IndexStatus = Literal[
    "unknown", "missing_token", "invalid_token_uri", "invalid_token_uri_scheme", "unreachable_token_uri",
    "throttled_token_uri", "metadata_content_too_large", "invalid_metadata", "invalid_metadata_json", "indexed",
    "unindexed",
    "UNKNOWN", "MISSING_TOKEN", "INVALID_TOKEN_URI", "INVALID_TOKEN_URI_SCHEME", "UNREACHABLE_TOKEN_URI",
    "THROTTLED_TOKEN_URI", "METADATA_CONTENT_TOO_LARGE", "INVALID_METADATA", "INVALID_METADATA_JSON", "INDEXED",
    "UNINDEXED",
]  # fmt: skip  # by dialect


class Erc20Token(RestResult, frozen=True, gc=False, kw_only=True):
    """An ERC-20 token. Name, symbol and decimals are as the contract returns them now, else as the token list has them;
    how one that is not known is written depends on the dialect. The same holds for all tokens and contracts."""

    address: str
    name: str | UnsetType = UNSET
    symbol: str | UnsetType = UNSET
    decimals: int | UnsetType = UNSET
    logo_uri: str | UnsetType = UNSET
    names_read: bool | UnsetType = UNSET
    erc_type: Literal["ERC-20"] = "ERC-20"
    price: Price | UnsetType = UNSET


class NftMetadataResult(RestResult, frozen=True, gc=False):
    """The metadata fields of both standards."""

    index_status: IndexStatus
    metadata_last_updated_timestamp: int | UnsetType = UNSET
    name: str | UnsetType = UNSET
    symbol: str | UnsetType = UNSET
    image_uri: str | UnsetType = UNSET
    description: str | UnsetType = UNSET
    animation_uri: str | UnsetType = UNSET
    external_url: str | UnsetType = UNSET
    background: str | UnsetType = UNSET


class Erc721Metadata(NftMetadataResult, frozen=True, gc=False):
    """The metadata of an ERC-721 token. `attributes` is JSON as text."""

    attributes: str | UnsetType = UNSET


class Erc1155Metadata(NftMetadataResult, frozen=True, gc=False):
    """The metadata of an ERC-1155 token. `properties` is JSON as text."""

    decimals: int | UnsetType = UNSET
    properties: str | UnsetType = UNSET


class Erc721Token(RestResult, frozen=True, gc=False, kw_only=True):
    """An ERC-721 token. `ownerAddress` is the owner now; absent once the token is burned."""

    address: str
    name: str | UnsetType = UNSET
    symbol: str | UnsetType = UNSET
    names_read: bool | UnsetType = UNSET
    erc_type: Literal["ERC-721"] = "ERC-721"
    token_id: str
    token_uri: str
    metadata: Erc721Metadata
    owner_address: str | UnsetType = UNSET


class Erc1155Token(RestResult, frozen=True, gc=False, kw_only=True):
    address: str
    erc_type: Literal["ERC-1155"] = "ERC-1155"
    token_id: str
    token_uri: str
    metadata: Erc1155Metadata


ErcType = Literal["ERC-20", "ERC-721", "ERC-1155"]
Nft = Erc721Token | Erc1155Token
_ANY_NFT = {"items": {"anyOf": [{"$ref": f"#/components/schemas/{one.__name__}"} for one in get_args(Nft)]}}


class CollectionParams(RestParams, frozen=True):
    chain_id: ChainName
    address: EvmAddress
    page_token: PageToken = ""
    page_size: PageSize = 10


class NftParams(RestParams, frozen=True):
    chain_id: ChainName
    address: EvmAddress
    token_id: TokenId


class NftPage(Page, frozen=True, kw_only=True):
    """A page of NFTs by token ID. Burned ERC-721 tokens are listed too, without an owner."""

    tokens: Annotated[list[Any], Meta(extra_json_schema=_ANY_NFT)]


class ContractParams(RestParams, frozen=True):
    chain_id: ChainName
    address: EvmAddress


class DeploymentsParams(RestParams, frozen=True):
    chain_id: ChainName
    address: EvmAddress
    page_token: PageToken = ""
    page_size: PageSize = 10


class DeploymentDetails(RestResult, frozen=True):
    """The deployment of a contract. `deployerAddress` sent the transaction; `deployerContractAddress` is the contract
    that ran the creation."""

    tx_hash: str
    deployer_address: str
    deployer_contract_address: str | UnsetType = UNSET


class Erc20Contract(RestResult, frozen=True, kw_only=True, tag_field="ercType", tag="ERC-20"):
    name: str | UnsetType = UNSET
    symbol: str | UnsetType = UNSET
    decimals: int | UnsetType = UNSET
    names_read: bool | UnsetType = UNSET
    address: str
    deployment_details: DeploymentDetails | UnsetType = UNSET


class NftContract(RestResult, frozen=True, kw_only=True):
    name: str | UnsetType = UNSET
    symbol: str | UnsetType = UNSET
    names_read: bool | UnsetType = UNSET
    address: str
    deployment_details: DeploymentDetails | UnsetType = UNSET


class Erc721Contract(NftContract, frozen=True, kw_only=True, tag_field="ercType", tag="ERC-721"):
    pass


class Erc1155Contract(NftContract, frozen=True, kw_only=True, tag_field="ercType", tag="ERC-1155"):
    pass


class UnknownContract(RestResult, frozen=True, kw_only=True, tag_field="ercType", tag="UNKNOWN"):
    """A contract without token transfers."""

    address: str
    deployment_details: DeploymentDetails | UnsetType = UNSET


Contract = Erc20Contract | Erc721Contract | Erc1155Contract | UnknownContract
NFT_CONTRACTS: dict[str, type[Erc721Contract | Erc1155Contract]] = {
    "ERC-721": Erc721Contract,
    "ERC-1155": Erc1155Contract,
}


class ContractPage(Page, frozen=True, kw_only=True):
    contracts: list[Contract]


class HoldersParams(RestParams, frozen=True):
    chain_id: ChainName
    address: EvmAddress
    currency: Currency = "usd"
    page_token: PageToken = ""
    page_size: PageSize = 10


class TokenHolder(RestResult, frozen=True, gc=False, kw_only=True):
    address: str
    balance: str
    balance_value: Price | UnsetType = UNSET


class HolderPage(Page, frozen=True, kw_only=True):
    """A page of holders, largest first, without the zero address."""

    total_holders: int
    counted_to_block: str | UnsetType = UNSET
    is_trusted: bool
    balance_source: Literal["storage", "audited", "logs"]
    holders: list[TokenHolder]
