"""What an address holds, and the cursors of balance lists: the block of the first page, and the token it ended with."""

import struct
from typing import NamedTuple, cast

from msgspec import UNSET

from icefall.api.presenting.knowledge import AnswerContext
from icefall.api.presenting.money import Money
from icefall.api.presenting.texts import address_text
from icefall.api.presenting.tokens import erc721_metadata, erc1155_metadata
from icefall.api.schema.balances import Erc20TokenBalance, Erc721TokenBalance, Erc1155TokenBalance, NativeTokenBalance
from icefall.evm.enriching.reader import NftFacts, TokenFacts
from icefall.evm.enriching.reputation import Word
from icefall.evm.reading.directory import ChainInfo
from icefall.evm.reading.model import Erc20Held, Erc1155Held, NftHeld

_TOKEN_SIZE = 20
_NO_TOKEN, _NO_NFT = TokenFacts(), NftFacts()


class HeldCursor(NamedTuple):
    """`token` empty: from the beginning. `is_1155`: of lists that tell one standard after the other."""

    block: int
    token: bytes = b""
    token_id: int = 0
    is_1155: bool = False

    def pack(self) -> bytes:
        head = struct.pack(">Q?", self.block, self.is_1155)
        return head + self.token + self.token_id.to_bytes((self.token_id.bit_length() + 7) // 8, "big")

    @property
    def key(self) -> tuple[bytes, int] | None:
        return (self.token, self.token_id) if self.token else None


def unpack_cursor(raw: bytes) -> HeldCursor:
    block, is_1155 = struct.unpack_from(">Q?", raw)
    rest = raw[9:]
    return HeldCursor(block, rest[:_TOKEN_SIZE], int.from_bytes(rest[_TOKEN_SIZE:], "big"), is_1155)


def native_balance(money: Money, info: ChainInfo, balance: int, price: str | None) -> NativeTokenBalance:
    token = info.token
    return NativeTokenBalance(
        name=token.name,
        symbol=token.symbol,
        decimals=token.decimals,
        logo_uri=token.logo_uri or UNSET,
        chain_id=info.id,
        price=money.price(price),
        balance=str(balance),
        balance_value=money.worth(balance, token.decimals, price),
    )


def erc20_balance(known: AnswerContext, held: Erc20Held, reputation: str | None) -> Erc20TokenBalance:
    """Of a token whose decimals nobody knows, nobody knows the worth either."""
    facts = known.tokens.get(held.token_ref, _NO_TOKEN)
    worth = UNSET if facts.decimals is None else known.money.worth(held.balance, facts.decimals, facts.price)
    return Erc20TokenBalance(
        address=address_text(held.token),
        name=facts.name,
        symbol=facts.symbol,
        decimals=facts.decimals or 0,
        price=known.money.price(facts.price),
        chain_id=known.chain_id,
        balance=str(held.balance),
        balance_value=worth,
        token_reputation=cast(Word | None, reputation),
    )


def erc721_balance(known: AnswerContext, held: NftHeld) -> Erc721TokenBalance:
    facts = known.tokens.get(held.token_ref, _NO_TOKEN)
    nft = known.nfts.get((held.token_ref, held.token_id), _NO_NFT)
    return Erc721TokenBalance(
        address=address_text(held.token),
        name=facts.name,
        symbol=facts.symbol,
        token_id=str(held.token_id),
        token_uri=nft.token_uri,
        metadata=erc721_metadata(known, nft),
        owner_address=address_text(held.owner),
        chain_id=known.chain_id,
    )


def erc1155_balance(known: AnswerContext, held: Erc1155Held) -> Erc1155TokenBalance:
    nft = known.nfts.get((held.token_ref, held.token_id), _NO_NFT)
    return Erc1155TokenBalance(
        address=address_text(held.token),
        token_id=str(held.token_id),
        token_uri=nft.token_uri,
        metadata=erc1155_metadata(known, nft),
        chain_id=known.chain_id,
        balance=str(held.balance),
    )
