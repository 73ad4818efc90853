"""Parties and tokens."""

from typing import TypeVar

from msgspec import UNSET, UnsetType

from icefall.api.presenting.knowledge import AnswerContext
from icefall.api.presenting.texts import address_text
from icefall.api.schema.parties import Party
from icefall.api.schema.tokens import (
    Erc20Token,
    Erc721Metadata,
    Erc721Token,
    Erc1155Metadata,
    Erc1155Token,
    IndexStatus,
)
from icefall.evm.enriching.reader import NftFacts, TokenFacts
from icefall.evm.model import ZERO_ADDRESS

_NO_TOKEN, _NO_NFT = TokenFacts(), NftFacts()


def party(known: AnswerContext, address: bytes, ref: int) -> Party:
    """`address` is empty for a creation that failed: nobody."""
    shown = known.parties.get(address)
    if shown is None:
        shown = known.parties[address] = _party(known.tokens.get(ref), address_text(address) if address else "")
    return shown


def _party(facts: TokenFacts | None, text: str) -> Party:
    if facts is None or not facts.is_read:
        return Party(address=text)
    decimals = UNSET if facts.decimals is None else facts.decimals
    return Party(name=facts.name or UNSET, symbol=facts.symbol or UNSET, decimals=decimals, address=text)


def erc20_token(known: AnswerContext, address: bytes, ref: int) -> Erc20Token:
    shown = known.erc20_tokens.get(address)
    if shown is None:
        facts = known.tokens.get(ref, _NO_TOKEN)
        shown = known.erc20_tokens[address] = Erc20Token(
            address=address_text(address),
            name=facts.name,
            symbol=facts.symbol,
            decimals=facts.decimals or 0,
            price=known.money.price(facts.price),
        )
    return shown


def erc721_token(known: AnswerContext, address: bytes, ref: int, token_id: int) -> Erc721Token:
    facts = known.tokens.get(ref, _NO_TOKEN)
    nft = known.nfts.get((ref, token_id), _NO_NFT)
    return Erc721Token(
        address=address_text(address),
        name=facts.name,
        symbol=facts.symbol,
        token_id=str(token_id),
        token_uri=nft.token_uri,
        metadata=erc721_metadata(known, nft),
        owner_address=owner_text(known.owners.get((address, token_id))),
    )


def owner_text(owner: bytes | None) -> str | UnsetType:
    return UNSET if owner is None or owner == ZERO_ADDRESS else address_text(owner)


def erc1155_token(known: AnswerContext, address: bytes, ref: int, token_id: int) -> Erc1155Token:
    nft = known.nfts.get((ref, token_id), _NO_NFT)
    return Erc1155Token(
        address=address_text(address),
        token_id=str(token_id),
        token_uri=nft.token_uri,
        metadata=erc1155_metadata(known, nft),
    )


def erc721_metadata(known: AnswerContext, nft: NftFacts) -> Erc721Metadata:
    told = nft.metadata
    return Erc721Metadata(
        index_status=_status(known, nft),
        metadata_last_updated_timestamp=_or_absent(nft.read_at),
        name=_or_absent(told.name),
        symbol=_or_absent(told.symbol),
        image_uri=_or_absent(told.image_uri),
        description=_or_absent(told.description),
        animation_uri=_or_absent(told.animation_uri),
        external_url=_or_absent(told.external_url),
        background=_or_absent(told.background),
        attributes=_or_absent(told.attributes),
    )


def erc1155_metadata(known: AnswerContext, nft: NftFacts) -> Erc1155Metadata:
    told = nft.metadata
    return Erc1155Metadata(
        index_status=_status(known, nft),
        metadata_last_updated_timestamp=_or_absent(nft.read_at),
        name=_or_absent(told.name),
        symbol=_or_absent(told.symbol),
        image_uri=_or_absent(told.image_uri),
        description=_or_absent(told.description),
        animation_uri=_or_absent(told.animation_uri),
        external_url=_or_absent(told.external_url),
        background=_or_absent(told.background),
        decimals=_or_absent(told.decimals),
        properties=_or_absent(told.properties),
    )


def _status(known: AnswerContext, nft: NftFacts) -> IndexStatus:
    return nft.status if known.dialect.index_status_is_upper else nft.status.lower()  # type: ignore[return-value]


T = TypeVar("T")


def _or_absent(value: T | None) -> T | UnsetType:
    return UNSET if value is None else value
