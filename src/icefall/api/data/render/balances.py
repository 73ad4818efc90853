"""Balances of an address as the chain data API returns them, and the cursors of their lists."""

import struct
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from msgspec import UNSET, Raw

from icefall.api.data.render.context import AnswerContext
from icefall.api.data.render.text import Money, RawJson, json_text, quoted
from icefall.api.data.render.tokens import (
    decimals_or_unknown,
    erc721_metadata,
    erc1155_metadata,
    logo_or_absent,
    text_or_unknown,
    unread_or_absent,
)
from icefall.api.data.schema.balances import Erc721TokenBalance, Erc1155TokenBalance, NativeTokenBalance, NftBalance
from icefall.api.http.structs import address_text
from icefall.evm.enriching.reader import NftDetails, TokenDetails
from icefall.evm.model import ERC721, ERC1155
from icefall.evm.reading.directory import ChainInfo
from icefall.evm.reading.model import Erc20Held, IdHeld, NftHeld

_HEAD = ">Q32sB"
_TOKEN_SIZE = 20
_NO_TOKEN, _NO_NFT = TokenDetails(), NftDetails()


class BalanceCursor(NamedTuple):
    """The block of the first page, and the last token listed, empty if there is none yet. `part` counts the standards
    that are listed already, in a list that has the tokens of one after those of another."""

    block: int
    block_hash: bytes
    token: bytes = b""
    token_id: int = 0
    part: int = 0

    def after(self, token: bytes, token_id: int = 0, *, part: int = 0) -> "BalanceCursor":
        """Return the cursor with which the next page of the same list begins."""
        return BalanceCursor(self.block, self.block_hash, token, token_id, part)

    def pack(self) -> bytes:
        head = struct.pack(_HEAD, self.block, self.block_hash, self.part)
        return head + self.token + self.token_id.to_bytes((self.token_id.bit_length() + 7) // 8, "big")

    @property
    def key(self) -> tuple[bytes, int] | None:
        return (self.token, self.token_id) if self.token else None


def unpack_balance_cursor(raw: bytes) -> BalanceCursor:
    block, block_hash, part = struct.unpack_from(_HEAD, raw)
    rest = raw[struct.calcsize(_HEAD) :]
    return BalanceCursor(block, block_hash, rest[:_TOKEN_SIZE], int.from_bytes(rest[_TOKEN_SIZE:], "big"), part)


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
        balance_value=money.value(balance, token.decimals, price),
    )


def erc20_balances(context: AnswerContext, held: Sequence[Erc20Held]) -> list[RawJson]:
    """Render each as an Erc20TokenBalance. A balance of a token without decimals has no value."""
    known, texts = context.tokens, context.held_tokens
    items: list[RawJson] = []
    for one in held:
        key = (one.token, one.token_ref)
        details = known.get(one.token_ref) or _NO_TOKEN
        token = texts.get(key)
        if token is None:
            token = texts[key] = _held_token(context, one.token, details)
        value, price, reputation = "", details.price, one.reputation
        if price is not None and details.decimals is not None:
            value = f',"balanceValue":{json_text(context.money.value(one.balance, details.decimals, price))}'
        reputed = "null" if reputation is None else quoted(reputation)
        items.append(Raw(f'{{{token},"balance":"{one.balance}"{value},"tokenReputation":{reputed}}}'))
    return items


def _held_token(context: AnswerContext, address: bytes, details: TokenDetails) -> str:
    """The fields of an Erc20TokenBalance up to the balance."""
    fields = {
        "address": address_text(address),
        "name": text_or_unknown(context.dialect, details.name),
        "symbol": text_or_unknown(context.dialect, details.symbol),
        "decimals": decimals_or_unknown(context.dialect, details.decimals),
        "logoUri": logo_or_absent(details),
        "namesRead": unread_or_absent(context.dialect, is_read=details.is_read),
        "ercType": "ERC-20",
        "price": context.money.price(details.price),
        "isListed": details.is_listed or UNSET,
        "chainId": context.chain_id,
    }
    return json_text({name: value for name, value in fields.items() if value is not UNSET})[1:-1]


def erc721_balance(context: AnswerContext, held: NftHeld) -> Erc721TokenBalance:
    details = context.tokens.get(held.token_ref) or _NO_TOKEN
    nft = context.nfts.get((held.token_ref, held.token_id), _NO_NFT)
    return Erc721TokenBalance(
        address=address_text(held.token),
        name=text_or_unknown(context.dialect, details.name),
        symbol=text_or_unknown(context.dialect, details.symbol),
        names_read=unread_or_absent(context.dialect, is_read=details.is_read),
        token_id=str(held.token_id),
        token_uri=nft.token_uri,
        metadata=erc721_metadata(context, nft),
        owner_address=address_text(held.owner),
        chain_id=context.chain_id,
    )


def erc1155_balance(context: AnswerContext, held: IdHeld) -> Erc1155TokenBalance:
    nft = context.nfts.get((held.token_ref, held.token_id), _NO_NFT)
    return Erc1155TokenBalance(
        address=address_text(held.token),
        token_id=str(held.token_id),
        token_uri=nft.token_uri,
        metadata=erc1155_metadata(context, nft),
        chain_id=context.chain_id,
        balance=str(held.balance),
    )


# A balance of a standard whose tokens have IDs, by its number: of an NftHeld or an IdHeld.
NFT_BALANCE: dict[int, Callable[[AnswerContext, Any], NftBalance]] = {ERC721: erc721_balance, ERC1155: erc1155_balance}
