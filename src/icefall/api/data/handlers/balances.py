"""Balances of an address: the native token and ERC-20, ERC-721 and ERC-1155 tokens, by token address and ID.

All pages of a list show the same block: the requested one, or the newest when the first page was served. If a
reorganisation removes that block, the list cannot be continued. Only ERC-721 tokens are listed as they are owned now.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

from msgspec import UNSET, UnsetType

from icefall.api.data.render.balances import (
    BalanceCursor,
    erc20_balance,
    erc721_balance,
    erc1155_balance,
    native_balance,
    unpack_balance_cursor,
)
from icefall.api.data.render.context import AnswerContext, balances_context
from icefall.api.data.render.text import Money, money_of
from icefall.api.data.schema.balances import (
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
from icefall.api.dialect import Dialect
from icefall.api.http.paging import Paging
from icefall.api.http.row import Charged, Handler, Weight
from icefall.api.http.structs import Page
from icefall.errors import BadRequest, Unavailable
from icefall.evm.reading.balances import BalanceReader, CallBudget, NftKey
from icefall.evm.reading.directory import ChainDirectory, EvmChain
from icefall.evm.reading.model import BlockRead, Erc20Held, Erc1155Held, NftHeld

CALLS_PER_SMALL = 20  # contract calls for which a request pays a Small weight more
_ROUNDS_MAX = 5  # of reading further, where a page is full of tokens that are filtered out
MALICIOUS = "Malicious"
T = TypeVar("T")
Read = Callable[[BalanceReader, Any, BalanceCursor, CallBudget], Awaitable[tuple[Sequence[Any], NftKey | None]]]
Render = Callable[[EvmChain, Dialect, Any], Awaitable[Sequence[Any]]]


async def get_native(params: NativeBalanceParams, chains: ChainDirectory, dialect: Dialect) -> NativeBalanceResult:
    chain = await chains.find(params.chain_id)
    block = await _block_at(chain, params.block_number)
    return NativeBalanceResult(await _native(chain, dialect, params.address, block.number, params.currency))


async def list_erc20(
    params: Erc20BalancesParams, chains: ChainDirectory, paging: Paging, dialect: Dialect
) -> Erc20Balances | Charged:
    chain, budget = await chains.find(params.chain_id), CallBudget()
    start = await _start("balances:listErc20", params, paging, chain, params.block_number)
    native = await _native(chain, dialect, params.address, start.block, params.currency)
    held, after = await _erc20_page(params, chain, start, budget)
    context = await balances_context(chain, dialect, [one.token_ref for one in held], params.currency)
    more = None if after is None else start.after(after)
    result = Erc20Balances(
        next_page_token=_token("balances:listErc20", params, paging, more),
        native_token_balance=native,
        erc20_token_balances=[erc20_balance(context, one) for one in held],
    )
    return charged(result, budget)


async def _erc20_page(
    params: Erc20BalancesParams, chain: EvmChain, start: BalanceCursor, budget: CallBudget
) -> tuple[list[Erc20Held], bytes | None]:
    """A page, without spam if that is requested, and where the next page begins."""
    held: list[Erc20Held] = []
    after: bytes | None = start.token or None
    for _ in range(_ROUNDS_MAX):
        wanted = params.page_size - len(held)
        found, after = await chain.balances.erc20(
            params.address, start.block, after, wanted, params.contract_addresses, budget
        )
        held += [one for one in found if not (params.filter_spam_tokens and one.reputation == MALICIOUS)]
        if after is None or len(held) >= params.page_size or not budget.left:
            break
    return held, after


def _list_of(route: str, read: Read, render: Render, page: Callable[..., Page], field: str) -> Handler:
    """The handler of one list of NFTs: `read` returns the tokens of a page and the key of the last one if more follow,
    `render` makes items of them, `field` of `page` holds those."""

    async def list_page(params: Any, chains: ChainDirectory, paging: Paging, dialect: Dialect) -> Page | Charged:
        chain, budget = await chains.find(params.chain_id), CallBudget()
        start = await _start(route, params, paging, chain, getattr(params, "block_number", None))
        native = await _native(chain, dialect, params.address, start.block, "usd")
        held, after = await read(chain.balances, params, start, budget)
        token = _token(route, params, paging, None if after is None else start.after(*after))
        items = {field: await render(chain, dialect, held)}
        return charged(page(next_page_token=token, native_token_balance=native, **items), budget)

    return list_page


async def _read_erc721(
    balances: BalanceReader, params: NftBalancesParams, start: BalanceCursor, budget: CallBudget
) -> tuple[list[NftHeld], NftKey | None]:
    return await balances.nfts(params.address, start.key, params.page_size, params.contract_address, budget)


async def _read_erc1155(
    balances: BalanceReader, params: Erc1155BalancesParams, start: BalanceCursor, budget: CallBudget
) -> tuple[list[Erc1155Held], NftKey | None]:
    return await balances.erc1155(
        params.address, start.block, start.key, params.page_size, params.contract_address, budget
    )


async def list_collectibles(
    params: NftBalancesParams, chains: ChainDirectory, paging: Paging, dialect: Dialect
) -> CollectibleBalances | Charged:
    """List the NFTs of an address: its ERC-721 tokens first, then its ERC-1155 tokens."""
    chain = await chains.find(params.chain_id)
    start = await _start("balances:listCollectibles", params, paging, chain, None)
    rendered: list[Erc721TokenBalance | Erc1155TokenBalance] = []
    more: BalanceCursor | None = None
    key, budget = start.key, CallBudget()
    if not start.is_1155:
        nfts, after = await chain.balances.nfts(params.address, key, params.page_size, params.contract_address, budget)
        rendered += await _erc721(chain, dialect, nfts)
        more = start.after(b"", is_1155=True) if after is None else start.after(*after)
        key = None
    if budget.left and (more is None or more.is_1155):
        wanted = params.page_size - len(rendered)
        held, after = await chain.balances.erc1155(
            params.address, start.block, key, max(wanted, 1), params.contract_address, budget
        )
        if wanted:
            rendered += await _erc1155(chain, dialect, held)
            more = None if after is None else start.after(*after, is_1155=True)
        elif not held and after is None:
            more = None  # the page ended with the last token of all
    token = _token("balances:listCollectibles", params, paging, more)
    return charged(CollectibleBalances(next_page_token=token, collectible_balances=rendered), budget)


def charged(result: T, budget: CallBudget) -> T | Charged:
    units = budget.spent // CALLS_PER_SMALL * Weight.SMALL
    return Charged(result, units) if units else result


async def _erc721(chain: EvmChain, dialect: Dialect, held: Sequence[NftHeld]) -> list[Erc721TokenBalance]:
    context = await _nft_context(chain, dialect, held)
    return [erc721_balance(context, one) for one in held]


async def _erc1155(chain: EvmChain, dialect: Dialect, held: Sequence[Erc1155Held]) -> list[Erc1155TokenBalance]:
    context = await _nft_context(chain, dialect, held)
    return [erc1155_balance(context, one) for one in held]


async def _nft_context(chain: EvmChain, dialect: Dialect, held: Sequence[NftHeld | Erc1155Held]) -> AnswerContext:
    return AnswerContext(
        chain.info.id,
        dialect,
        _money(dialect, "usd"),
        chain.method_names,
        tokens=await chain.enriched.priced_tokens((one.token_ref for one in held), "usd"),
        nfts=await chain.enriched.nft_metadata((one.token_ref, one.token_id) for one in held),
    )


def _money(dialect: Dialect, currency: str) -> Money:
    return money_of(currency, as_numbers=dialect.prices_are_numbers)


async def _native(chain: EvmChain, dialect: Dialect, address: bytes, block: int, currency: str) -> NativeTokenBalance:
    balance = await chain.balances.native(address, block)
    price = await chain.enriched.native_price(currency)
    return native_balance(_money(dialect, currency), chain.info, balance, price)


list_erc721 = _list_of("balances:listErc721", _read_erc721, _erc721, Erc721Balances, "erc721_token_balances")
list_erc1155 = _list_of("balances:listErc1155", _read_erc1155, _erc1155, Erc1155Balances, "erc1155_token_balances")


# -- which block, which page -------------------------------------------------------------------------------------------


async def _start(route: str, params: Any, paging: Paging, chain: EvmChain, block: int | None) -> BalanceCursor:
    """Find where a page begins: at the block in its page token; the first page begins at `block` or at the newest."""
    cursor = paging.after(route, params)
    if cursor is None:
        first = await _block_at(chain, block)
        return BalanceCursor(first.number, first.block_hash)
    start = unpack_balance_cursor(cursor)
    pinned = await chain.blocks.block(start.block_hash)
    if pinned is None:
        raise BadRequest(
            f"pageToken belongs to a list at block {start.block} (0x{start.block_hash.hex()}), which a reorganisation "
            "has removed: start again without pageToken"
        )
    return start


async def _block_at(chain: EvmChain, number: int | None) -> BlockRead:
    found = await (chain.blocks.tip() if number is None else chain.blocks.block(number))
    if found is not None:
        return found
    tip, lowest = await chain.blocks.tip(), await chain.blocks.lowest()
    if tip is None or lowest is None:
        raise Unavailable(f"no block of chain {chain.info.id} has been indexed yet")
    if number is not None and number < lowest:
        raise BadRequest(f"blockNumber must be at least {lowest}, the first indexed block, got {number}")
    raise BadRequest(f"blockNumber must be at most {tip.number}, the newest indexed block, got {number}")


def _token(route: str, params: Any, paging: Paging, more: BalanceCursor | None) -> str | UnsetType:
    return UNSET if more is None else paging.token(route, params, more.pack())
