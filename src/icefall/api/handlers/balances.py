"""What an address holds: the native token and ERC-20, ERC-721 and ERC-1155 tokens, by token address and ID.

All pages of a list are of the block that was the newest, or was asked for, when its first page was told. Only ERC-721
tokens are told as they are owned now.
"""

from collections.abc import Sequence
from typing import Any

from msgspec import UNSET, UnsetType

from icefall.api.dialect import Dialect
from icefall.api.paging import Paging
from icefall.api.presenting.holdings import (
    HeldCursor,
    erc20_balance,
    erc721_balance,
    erc1155_balance,
    native_balance,
    unpack_cursor,
)
from icefall.api.presenting.knowledge import AnswerContext
from icefall.api.presenting.money import Money
from icefall.api.schema.balances import (
    CollectibleBalances,
    Erc20Balances,
    Erc20BalancesParams,
    Erc721Balances,
    Erc721TokenBalance,
    Erc1155Balances,
    Erc1155BalancesParams,
    Erc1155TokenBalance,
    NativeBalanceParams,
    NativeBalanceResult,
    NativeTokenBalance,
    NftBalancesParams,
)
from icefall.errors import BadRequest, Unavailable
from icefall.evm.reading.directory import ChainDirectory, EvmChain
from icefall.evm.reading.model import Erc20Held, Erc1155Held, NftHeld

_ROUNDS_MAX = 5  # of reading on, where a page is full of tokens that are filtered out
MALICIOUS = "Malicious"


async def get_native(ask: NativeBalanceParams, chains: ChainDirectory, dialect: Dialect) -> NativeBalanceResult:
    chain = await chains.find(ask.chain_id)
    block = await _block_at(chain, ask.block_number)
    return NativeBalanceResult(await _native(chain, dialect, ask.address, block, ask.currency))


async def list_erc20(
    ask: Erc20BalancesParams, chains: ChainDirectory, paging: Paging, dialect: Dialect
) -> Erc20Balances:
    chain = await chains.find(ask.chain_id)
    start = await _start("erc20Balances", ask, paging, chain, ask.block_number)
    native = await _native(chain, dialect, ask.address, start.block, ask.currency)
    held, words, after = await _erc20_page(ask, chain, start)
    known = AnswerContext(
        chain.info.id,
        dialect,
        _money(dialect, ask.currency),
        chain.method_names,
        tokens=await chain.facts.priced_tokens((one.token_ref for one in held), ask.currency),
    )
    more = None if after is None else HeldCursor(start.block, after)
    return Erc20Balances(
        next_page_token=_token("erc20Balances", ask, paging, more),
        native_token_balance=native,
        erc20_token_balances=[erc20_balance(known, one, words.get(one.token)) for one in held],
    )


async def _erc20_page(
    ask: Erc20BalancesParams, chain: EvmChain, start: HeldCursor
) -> tuple[list[Erc20Held], dict[bytes, str], bytes | None]:
    """A page without spam where that is asked for, their reputations, and where the next begins."""
    held: list[Erc20Held] = []
    words: dict[bytes, str] = {}
    after: bytes | None = start.token or None
    for _ in range(_ROUNDS_MAX):
        wanted = ask.page_size - len(held)
        found, after = await chain.balances.erc20(ask.address, start.block, after, wanted, ask.contract_addresses)
        words |= await chain.facts.reputation(one.token for one in found)
        held += [one for one in found if not (ask.filter_spam_tokens and words.get(one.token) == MALICIOUS)]
        if after is None or len(held) >= ask.page_size:
            break
    return held, words, after


async def list_erc721(
    ask: NftBalancesParams, chains: ChainDirectory, paging: Paging, dialect: Dialect
) -> Erc721Balances:
    chain = await chains.find(ask.chain_id)
    start = await _start("erc721Balances", ask, paging, chain, None)
    native = await _native(chain, dialect, ask.address, start.block, "usd")
    held, after = await chain.balances.nfts(ask.address, start.key, ask.page_size, ask.contract_address)
    more = None if after is None else HeldCursor(start.block, *after)
    return Erc721Balances(
        next_page_token=_token("erc721Balances", ask, paging, more),
        native_token_balance=native,
        erc721_token_balances=await _erc721(chain, dialect, held),
    )


async def list_erc1155(
    ask: Erc1155BalancesParams, chains: ChainDirectory, paging: Paging, dialect: Dialect
) -> Erc1155Balances:
    chain = await chains.find(ask.chain_id)
    start = await _start("erc1155Balances", ask, paging, chain, ask.block_number)
    native = await _native(chain, dialect, ask.address, start.block, "usd")
    contract = ask.contract_address
    held, after = await chain.balances.erc1155(ask.address, start.block, start.key, ask.page_size, contract)
    more = None if after is None else HeldCursor(start.block, *after)
    return Erc1155Balances(
        next_page_token=_token("erc1155Balances", ask, paging, more),
        native_token_balance=native,
        erc1155_token_balances=await _erc1155(chain, dialect, held),
    )


async def list_collectibles(
    ask: NftBalancesParams, chains: ChainDirectory, paging: Paging, dialect: Dialect
) -> CollectibleBalances:
    """ERC-721 tokens first, then ERC-1155 tokens."""
    chain = await chains.find(ask.chain_id)
    start = await _start("collectibles", ask, paging, chain, None)
    told: list[Erc721TokenBalance | Erc1155TokenBalance] = []
    more: HeldCursor | None = None
    key = start.key
    if not start.is_1155:
        nfts, after = await chain.balances.nfts(ask.address, key, ask.page_size, ask.contract_address)
        told += await _erc721(chain, dialect, nfts)
        more = HeldCursor(start.block, is_1155=True) if after is None else HeldCursor(start.block, *after)
        key = None
    if more is None or more.is_1155:
        wanted = ask.page_size - len(told)
        held, after = await chain.balances.erc1155(ask.address, start.block, key, max(wanted, 1), ask.contract_address)
        if wanted:
            told += await _erc1155(chain, dialect, held)
            more = None if after is None else HeldCursor(start.block, *after)._replace(is_1155=True)
        elif not held and after is None:
            more = None  # the page ended just with the last of all
    return CollectibleBalances(next_page_token=_token("collectibles", ask, paging, more), collectible_balances=told)


async def _erc721(chain: EvmChain, dialect: Dialect, held: Sequence[NftHeld]) -> list[Erc721TokenBalance]:
    known = await _known_nfts(chain, dialect, held)
    return [erc721_balance(known, one) for one in held]


async def _erc1155(chain: EvmChain, dialect: Dialect, held: Sequence[Erc1155Held]) -> list[Erc1155TokenBalance]:
    known = await _known_nfts(chain, dialect, held)
    return [erc1155_balance(known, one) for one in held]


async def _known_nfts(chain: EvmChain, dialect: Dialect, held: Sequence[NftHeld | Erc1155Held]) -> AnswerContext:
    return AnswerContext(
        chain.info.id,
        dialect,
        _money(dialect, "usd"),
        chain.method_names,
        tokens=await chain.facts.priced_tokens((one.token_ref for one in held), "usd"),
        nfts=await chain.facts.nft_metadata((one.token_ref, one.token_id) for one in held),
    )


def _money(dialect: Dialect, currency: str) -> Money:
    return Money(currency, as_numbers=dialect.prices_are_numbers)


async def _native(chain: EvmChain, dialect: Dialect, address: bytes, block: int, currency: str) -> NativeTokenBalance:
    balance = await chain.balances.native(address, block)
    price = await chain.facts.native_price(currency)
    return native_balance(_money(dialect, currency), chain.info, balance, price)


# -- which block, which page -------------------------------------------------------------------------------------------


async def _start(route: str, ask: Any, paging: Paging, chain: EvmChain, asked: int | None) -> HeldCursor:
    """Where a page begins: at the block its token holds, or on the first page the one asked for, or the newest."""
    cursor = paging.after(route, ask)
    if cursor is None:
        return HeldCursor(await _block_at(chain, asked))
    start = unpack_cursor(cursor)
    tip = await chain.chain.tip()
    if tip is None or start.block > tip.number:
        raise Unavailable(f"block {start.block}, which this list is about, is being indexed again")
    return start


async def _block_at(chain: EvmChain, asked: int | None) -> int:
    tip = await chain.chain.tip()
    if tip is None:
        raise Unavailable(f"no block of chain {chain.info.id} has been indexed yet")
    if asked is None:
        return tip.number
    if asked > tip.number:
        raise BadRequest(f"blockNumber must be at most {tip.number}, the newest indexed block, got {asked}")
    lowest = await chain.chain.lowest() or 0
    if asked < lowest:
        raise BadRequest(f"blockNumber must be at least {lowest}, the first indexed block, got {asked}")
    return asked


def _token(route: str, ask: Any, paging: Paging, more: HeldCursor | None) -> str | UnsetType:
    return UNSET if more is None else paging.token(route, ask, more.pack())
