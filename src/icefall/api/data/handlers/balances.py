"""Balances of an address: the native token and ERC-20, ERC-721 and ERC-1155 tokens, by token address and ID.

All pages of a list show the same block: the requested one, or the newest when the first page was served. If a
reorganisation removes that block, the list cannot be continued. Only ERC-721 tokens are listed as they are owned now.
"""

from collections.abc import Sequence
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
from icefall.api.http.row import Charged, Weight
from icefall.errors import BadRequest, Unavailable
from icefall.evm.reading.balances import CallBudget
from icefall.evm.reading.directory import ChainDirectory, EvmChain
from icefall.evm.reading.model import BlockRead, Erc20Held, Erc1155Held, NftHeld

CALLS_PER_SMALL = 20  # contract calls for which a request pays a Small weight more
_ROUNDS_MAX = 5  # of reading further, where a page is full of tokens that are filtered out
MALICIOUS = "Malicious"
T = TypeVar("T")


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


async def list_erc721(
    params: NftBalancesParams, chains: ChainDirectory, paging: Paging, dialect: Dialect
) -> Erc721Balances | Charged:
    chain, budget = await chains.find(params.chain_id), CallBudget()
    start = await _start("balances:listErc721", params, paging, chain, None)
    native = await _native(chain, dialect, params.address, start.block, "usd")
    contract = params.contract_address
    held, after = await chain.balances.nfts(params.address, start.key, params.page_size, contract, budget)
    more = None if after is None else start.after(*after)
    result = Erc721Balances(
        next_page_token=_token("balances:listErc721", params, paging, more),
        native_token_balance=native,
        erc721_token_balances=await _erc721(chain, dialect, held),
    )
    return charged(result, budget)


async def list_erc1155(
    params: Erc1155BalancesParams, chains: ChainDirectory, paging: Paging, dialect: Dialect
) -> Erc1155Balances | Charged:
    chain, budget = await chains.find(params.chain_id), CallBudget()
    start = await _start("balances:listErc1155", params, paging, chain, params.block_number)
    native = await _native(chain, dialect, params.address, start.block, "usd")
    contract = params.contract_address
    held, after = await chain.balances.erc1155(
        params.address, start.block, start.key, params.page_size, contract, budget
    )
    more = None if after is None else start.after(*after)
    result = Erc1155Balances(
        next_page_token=_token("balances:listErc1155", params, paging, more),
        native_token_balance=native,
        erc1155_token_balances=await _erc1155(chain, dialect, held),
    )
    return charged(result, budget)


async def list_collectibles(
    params: NftBalancesParams, chains: ChainDirectory, paging: Paging, dialect: Dialect
) -> CollectibleBalances | Charged:
    """ERC-721 tokens first, then ERC-1155 tokens."""
    chain = await chains.find(params.chain_id)
    start = await _start("balances:listCollectibles", params, paging, chain, None)
    shown: list[Erc721TokenBalance | Erc1155TokenBalance] = []
    more: BalanceCursor | None = None
    key, budget = start.key, CallBudget()
    if not start.is_1155:
        nfts, after = await chain.balances.nfts(params.address, key, params.page_size, params.contract_address, budget)
        shown += await _erc721(chain, dialect, nfts)
        more = start.after(b"", is_1155=True) if after is None else start.after(*after)
        key = None
    if budget.left and (more is None or more.is_1155):
        wanted = params.page_size - len(shown)
        held, after = await chain.balances.erc1155(
            params.address, start.block, key, max(wanted, 1), params.contract_address, budget
        )
        if wanted:
            shown += await _erc1155(chain, dialect, held)
            more = None if after is None else start.after(*after, is_1155=True)
        elif not held and after is None:
            more = None  # the page ended with the last token of all
    token = _token("balances:listCollectibles", params, paging, more)
    return charged(CollectibleBalances(next_page_token=token, collectible_balances=shown), budget)


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


# -- which block, which page -------------------------------------------------------------------------------------------


async def _start(route: str, params: Any, paging: Paging, chain: EvmChain, block: int | None) -> BalanceCursor:
    """Where a page begins: at the block in its page token; for the first page, at `block` or the newest."""
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
