"""NFTs of a collection: the tokens of one ERC-721 or ERC-1155 contract."""

from typing import Annotated, Any

from msgspec import Meta

from icefall.api.params.rest_kinds import ChainName, EvmAddress, PageSize, PageToken, TokenId
from icefall.api.schema.names import Page, RestParams

_ONE_OF_TWO = {"items": {"anyOf": [{"$ref": f"#/components/schemas/{kind}Token"} for kind in ("Erc721", "Erc1155")]}}


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
    """By token ID. Burned ERC-721 tokens are listed too, without an owner."""

    tokens: Annotated[list[Any], Meta(extra_json_schema=_ONE_OF_TWO)]
