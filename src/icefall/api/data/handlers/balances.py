"""Balances of an address: the native token and tokens of each standard, by token address and ID.

All pages of a list show the same block: the requested one, or the newest when the first page was served. If a
reorganisation removes that block, the list cannot be continued. Only ERC-721 tokens are listed as they are owned now.
"""

from collections.abc import Sequence
from typing import Any, TypeVar

from msgspec import UNSET, UnsetType

from icefall.api.data.render.balances import (
    NFT_BALANCE,
    BalanceCursor,
    erc20_balances,
    native_balance,
    unpack_balance_cursor,
)
from icefall.api.data.render.context import AnswerContext, balances_context
from icefall.api.data.render.text import Money, money_of
from icefall.api.data.schema.balances import (
    NFT_BALANCES,
    CollectibleBalances,
    Erc20Balances,
    Erc20BalancesParams,
    NativeBalanceParams,
    NativeBalanceResult,
    NativeTokenBalance,
    NftBalance,
    NftBalancesParams,
)
from icefall.api.dialect import Dialect
from icefall.api.http.paging import Paging
from icefall.api.http.row import Charged, Handler, Weight
from icefall.api.http.structs import Page
from icefall.errors import BadRequest, Unavailable
from icefall.evm.reading.balances import CallBudget
from icefall.evm.reading.directory import ChainDirectory, EvmChain
from icefall.evm.reading.model import BlockRead, Erc20Held, IdHeld, NftHeld
from icefall.evm.standards import WITH_IDS, TokenStandard

CALLS_PER_SMALL = 20  # contract calls for which a request pays a Small weight more
_ROUNDS_MAX = 5  # of reading further, where a page is full of tokens that are filtered out
MALICIOUS = "Malicious"
T = TypeVar("T")


async def get_native(params: NativeBalanceParams, chains: ChainDirectory, dialect: Dialect) -> NativeBalanceResult:
    chain = await chains.find(params.chain_id)
    block = await block_at(chain, params.block_number)
    return NativeBalanceResult(await _native(chain, dialect, params.address, block.number, params.currency))


async def list_erc20(
    params: Erc20BalancesParams, chains: ChainDirectory, paging: Paging, dialect: Dialect
) -> Erc20Balances | Charged:
    chain, budget = await chains.find(params.chain_id), CallBudget()
    start = await _start("balances:listErc20", params, paging, chain, params.block_number)
    native = await chain.balances.native(params.address, start.block)
    held, after = await _erc20_page(params, chain, start, budget)
    context = await balances_context(chain, dialect, [one.token_ref for one in held], params.currency)
    price = await chain.enriched.native_price(params.currency)
    more = None if after is None else start.after(after)
    result = Erc20Balances(
        next_page_token=_token("balances:listErc20", params, paging, more),
        native_token_balance=native_balance(context.money, chain.info, native, price),
        erc20_token_balances=erc20_balances(context, held),
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
        if params.filter_spam_tokens:
            found = [one for one in found if one.reputation != MALICIOUS]
        held += found
        if after is None or len(held) >= params.page_size or not budget.left:
            break
    return held, after


def _list_of(standard: TokenStandard) -> Handler:
    """The handler of the list of one standard whose tokens have IDs."""
    route, field = f"balances:list{standard.label}", f"{standard.table}_token_balances"

    async def list_page(params: Any, chains: ChainDirectory, paging: Paging, dialect: Dialect) -> Page | Charged:
        chain, budget = await chains.find(params.chain_id), CallBudget()
        start = await _start(route, params, paging, chain, getattr(params, "block_number", None))
        native = await _native(chain, dialect, params.address, start.block, "usd")
        held, after = await chain.balances.with_ids(
            standard, params.address, start.block, start.key, params.page_size, params.contract_address, budget
        )
        token = _token(route, params, paging, None if after is None else start.after(*after))
        items = {field: await _rendered(chain, dialect, standard, held)}
        page: Any = NFT_BALANCES[standard.number]
        return charged(page(next_page_token=token, native_token_balance=native, **items), budget)

    return list_page


list_standard = {standard.number: _list_of(standard) for standard in WITH_IDS}


async def list_collectibles(
    params: NftBalancesParams, chains: ChainDirectory, paging: Paging, dialect: Dialect
) -> CollectibleBalances | Charged:
    """List the NFTs of an address, those of one standard after those of another."""
    chain, budget = await chains.find(params.chain_id), CallBudget()
    start = await _start("balances:listCollectibles", params, paging, chain, None)
    rendered: list[NftBalance] = []
    more: BalanceCursor | None = start
    while more is not None and budget.left:
        standard, wanted = WITH_IDS[more.part], params.page_size - len(rendered)
        held, after = await chain.balances.with_ids(
            standard, params.address, start.block, more.key, max(wanted, 1), params.contract_address, budget
        )
        if wanted:
            rendered += await _rendered(chain, dialect, standard, held)
        elif held or after is not None:
            break  # the page is full, and the next one begins with this standard
        if after is not None:
            more = start.after(*after, part=more.part)
            break
        more = start.after(b"", part=more.part + 1) if more.part + 1 < len(WITH_IDS) else None
    token = _token("balances:listCollectibles", params, paging, more)
    return charged(CollectibleBalances(next_page_token=token, collectible_balances=rendered), budget)


def charged(result: T, budget: CallBudget) -> T | Charged:
    units = budget.spent // CALLS_PER_SMALL * Weight.SMALL
    return Charged(result, units) if units else result


async def _rendered(
    chain: EvmChain, dialect: Dialect, standard: TokenStandard, held: Sequence[NftHeld | IdHeld]
) -> list[NftBalance]:
    context = await _nft_context(chain, dialect, held)
    return [NFT_BALANCE[standard.number](context, one) for one in held]


async def _nft_context(chain: EvmChain, dialect: Dialect, held: Sequence[NftHeld | IdHeld]) -> AnswerContext:
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
    """Find where a page begins: at the block in its page token; the first page begins at `block` or at the newest."""
    cursor = paging.after(route, params)
    if cursor is None:
        first = await block_at(chain, block)
        return BalanceCursor(first.number, first.block_hash)
    start = unpack_balance_cursor(cursor)
    pinned = await chain.blocks.block(start.block_hash)
    if pinned is None:
        raise BadRequest(
            f"pageToken belongs to a list at block {start.block} (0x{start.block_hash.hex()}), which a reorganisation "
            "has removed: start again without pageToken"
        )
    return start


async def block_at(chain: EvmChain, number: int | None) -> BlockRead:
    """Return the block of a number, or the newest; BadRequest if it is not indexed."""
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
