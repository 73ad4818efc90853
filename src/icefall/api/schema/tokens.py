"""Tokens as transfers and balances show them, and the metadata of single NFTs."""

from typing import Literal

from msgspec import UNSET, UnsetType

from icefall.api.schema.names import RestResult
from icefall.api.schema.parties import Price

IndexStatus = Literal[
    "unknown", "missing_token", "invalid_token_uri", "invalid_token_uri_scheme", "unreachable_token_uri",
    "throttled_token_uri", "metadata_content_too_large", "invalid_metadata", "invalid_metadata_json", "indexed",
    "unindexed",
    "UNKNOWN", "MISSING_TOKEN", "INVALID_TOKEN_URI", "INVALID_TOKEN_URI_SCHEME", "UNREACHABLE_TOKEN_URI",
    "THROTTLED_TOKEN_URI", "METADATA_CONTENT_TOO_LARGE", "INVALID_METADATA", "INVALID_METADATA_JSON", "INDEXED",
    "UNINDEXED",
]  # fmt: skip  # by dialect


class Erc20Token(RestResult, frozen=True, gc=False, kw_only=True):
    """Name, symbol and decimals are as the contract returns them now; how one that is not known is shown depends on
    the dialect. The same for all tokens and contracts."""

    address: str
    name: str | UnsetType = UNSET
    symbol: str | UnsetType = UNSET
    decimals: int | UnsetType = UNSET
    logo_uri: str | UnsetType = UNSET
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
    """`attributes` is JSON as text."""

    attributes: str | UnsetType = UNSET


class Erc1155Metadata(NftMetadataResult, frozen=True, gc=False):
    """`properties` is JSON as text."""

    decimals: int | UnsetType = UNSET
    properties: str | UnsetType = UNSET


class Erc721Token(RestResult, frozen=True, gc=False, kw_only=True):
    """`ownerAddress` is the owner now; absent once the token is burned."""

    address: str
    name: str | UnsetType = UNSET
    symbol: str | UnsetType = UNSET
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
