"""Parties and tokens as the chain data API returns them."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, TypeVar

from msgspec import UNSET, UnsetType

from icefall.api.data.render.context import AnswerContext
from icefall.api.data.render.text import Money, json_text
from icefall.api.data.schema.tokens import (
    Erc20Token,
    Erc721Metadata,
    Erc721Token,
    Erc1155Metadata,
    Erc1155Token,
    IndexStatus,
    Nft,
    Party,
)
from icefall.api.dialect import DIALECTS, Dialect
from icefall.api.http.structs import address_text
from icefall.evm.enriching.reader import NftDetails, TokenDetails
from icefall.evm.model import ERC721, ERC1155, ZERO_ADDRESS

_NO_TOKEN, _NO_NFT = TokenDetails(), NftDetails()


def party(context: AnswerContext, address: bytes, ref: int) -> str:
    """Render a Party as JSON. `address` is empty for a creation that failed."""
    rendered = context.parties.get((address, ref))
    if rendered is None:
        details = context.token(ref)
        text = address_text(address) if address else ""
        rendered = f'{{"address":"{text}"}}' if details is None else json_text(_token_party(details, text))
        context.parties[address, ref] = rendered
    return rendered


def _token_party(details: TokenDetails, text: str) -> Party:
    """Render a token as a party. A field that is not known is absent in both dialects: most parties are not tokens."""
    decimals = _or_absent(details.decimals)
    return Party(
        name=details.name or UNSET,
        symbol=details.symbol or UNSET,
        decimals=decimals,
        logo_uri=logo_or_absent(details),
        address=text,
    )


def text_or_unknown(dialect: Dialect, text: str) -> str | UnsetType:
    """A name or symbol; an empty one is not known."""
    return text or ("" if dialect.unknown_is_empty else UNSET)


def logo_or_absent(details: TokenDetails) -> str | UnsetType:
    """The logo of a token that is on the token list; absent in both dialects where there is none."""
    return details.logo_uri or UNSET


def decimals_or_unknown(dialect: Dialect, decimals: int | None) -> int | UnsetType:
    if decimals is None:
        return 0 if dialect.unknown_is_empty else UNSET
    return decimals


def unread_or_absent(dialect: Dialect, *, is_read: bool) -> bool | UnsetType:
    """False where fields are empty because they were not read yet; absent everywhere else."""
    return False if dialect.unknown_is_empty and not is_read else UNSET


def erc20_token(context: AnswerContext, address: bytes, ref: int) -> str:
    """Render an Erc20Token as JSON."""
    rendered = context.erc20_tokens.get((address, ref))
    if rendered is None:
        details = context.token(ref) or _NO_TOKEN
        rendered = context.erc20_tokens[address, ref] = _erc20_text(
            context.dialect.name, context.money, address, details
        )
    return rendered


@lru_cache(maxsize=4096)  # most transfers are of a few tokens
def _erc20_text(dialect_name: str, money: Money, address: bytes, details: TokenDetails) -> str:
    dialect = DIALECTS[dialect_name]
    return json_text(
        Erc20Token(
            address=address_text(address),
            name=text_or_unknown(dialect, details.name),
            symbol=text_or_unknown(dialect, details.symbol),
            decimals=decimals_or_unknown(dialect, details.decimals),
            logo_uri=logo_or_absent(details),
            names_read=unread_or_absent(dialect, is_read=details.is_read),
            price=money.price(details.price),
        )
    )


def erc721_token(context: AnswerContext, address: bytes, ref: int, token_id: int) -> Erc721Token:
    details = context.tokens.get(ref) or _NO_TOKEN
    nft = context.nfts.get((ref, token_id), _NO_NFT)
    return Erc721Token(
        address=address_text(address),
        name=text_or_unknown(context.dialect, details.name),
        symbol=text_or_unknown(context.dialect, details.symbol),
        names_read=unread_or_absent(context.dialect, is_read=details.is_read),
        token_id=str(token_id),
        token_uri=nft.token_uri,
        metadata=erc721_metadata(context, nft),
        owner_address=owner_text(context.owners.get((address, token_id))),
    )


def owner_text(owner: bytes | None) -> str | UnsetType:
    return UNSET if owner is None or owner == ZERO_ADDRESS else address_text(owner)


def erc1155_token(context: AnswerContext, address: bytes, ref: int, token_id: int) -> Erc1155Token:
    nft = context.nfts.get((ref, token_id), _NO_NFT)
    return Erc1155Token(
        address=address_text(address),
        token_id=str(token_id),
        token_uri=nft.token_uri,
        metadata=erc1155_metadata(context, nft),
    )


# An NFT of a standard, by its number.
NFT_TOKENS: dict[int, Callable[[AnswerContext, bytes, int, int], Nft]] = {ERC721: erc721_token, ERC1155: erc1155_token}


def erc721_metadata(context: AnswerContext, nft: NftDetails) -> Erc721Metadata:
    return Erc721Metadata(**_metadata(context, nft), attributes=_or_absent(nft.metadata.attributes))


def erc1155_metadata(context: AnswerContext, nft: NftDetails) -> Erc1155Metadata:
    decimals, properties = _or_absent(nft.metadata.decimals), _or_absent(nft.metadata.properties)
    return Erc1155Metadata(**_metadata(context, nft), decimals=decimals, properties=properties)


def _metadata(context: AnswerContext, nft: NftDetails) -> dict[str, Any]:
    """The fields that both standards have."""
    metadata = nft.metadata
    return {
        "index_status": _status(context, nft),
        "metadata_last_updated_timestamp": _or_absent(nft.read_at),
        "name": _or_absent(metadata.name),
        "symbol": _or_absent(metadata.symbol),
        "image_uri": _or_absent(metadata.image_uri),
        "description": _or_absent(metadata.description),
        "animation_uri": _or_absent(metadata.animation_uri),
        "external_url": _or_absent(metadata.external_url),
        "background": _or_absent(metadata.background),
    }


def _status(context: AnswerContext, nft: NftDetails) -> IndexStatus:
    return nft.status if context.dialect.index_status_is_upper else nft.status.lower()  # type: ignore[return-value]


T = TypeVar("T")


def _or_absent(value: T | None) -> T | UnsetType:
    return UNSET if value is None else value
