"""Latest blocks and transactions of all chains together: newest first, at equal times in the order of the chains.

A page token holds the time, the chain and the position of the last item: in every other chain the page after it begins
at the newest block of that time, which takes a few queries to find.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, NamedTuple, TypeVar

from msgspec import UNSET, UnsetType

from icefall.api.dialect import Dialect
from icefall.api.handlers.chains import has_blocks, is_of_network
from icefall.api.paging import Paging
from icefall.api.presenting.context import context_for
from icefall.api.presenting.pages import cursor_of, pack_cursor
from icefall.api.presenting.transactions import block, native
from icefall.api.schema.blocks import AllBlocksParams, EvmBlockPage
from icefall.api.schema.transactions import AllTxsParams, NativeTransaction, NativeTransactionPage
from icefall.evm.positions import above, block_of
from icefall.evm.reading.directory import ChainDirectory, EvmChain
from icefall.evm.reading.model import BlockRead, TxRead

_STATUSES = {None: None, "failed": 0, "success": 1}
T = TypeVar("T")


class _Key(NamedTuple):
    """Sorts the items of all chains, newest last. `order` is higher for the chains that are listed first."""

    time: int
    order: int
    position: int


class _Part(NamedTuple, Generic[T]):
    """Items of one chain; `end`: what is below was not read, None where nothing is."""

    chain: EvmChain
    items: list[tuple[_Key, T]]
    end: _Key | None


class _Page(NamedTuple, Generic[T]):
    items: list[tuple[EvmChain, T]]
    end: _Key | None


async def all_blocks(params: AllBlocksParams, chains: ChainDirectory, paging: Paging) -> EvmBlockPage:
    async def read(chain: EvmChain, order: int, newest: int | None, position: int | None) -> _Part[BlockRead]:
        before = position if position is not None else None if newest is None else newest + 1
        rows = await chain.chain.blocks(before, params.page_size + 1)
        items = [(_Key(row.time, order, row.number), row) for row in rows[: params.page_size]]
        return _Part(chain, items, items[-1][0] if len(rows) > params.page_size else None)

    page = await _merged("allBlocks", params, chains, paging, read)
    shown = [block(chain.info.id, row) for chain, row in page.items]
    return EvmBlockPage(next_page_token=_token("allBlocks", params, paging, page.end, chains), blocks=shown)


async def all_transactions(
    params: AllTxsParams, chains: ChainDirectory, paging: Paging, dialect: Dialect
) -> NativeTransactionPage:
    """With a rare status a page may be short although more follow."""

    async def read(chain: EvmChain, order: int, newest: int | None, position: int | None) -> _Part[TxRead]:
        before = position if position is not None else None if newest is None else above(newest)
        txs, more = await chain.chain.newest_txs(before, params.page_size, _STATUSES[params.status])
        items = [(_Key(tx.location.time, order, tx.tx_at), tx) for tx in txs]
        if more is None:
            return _Part(chain, items, None)
        last = await chain.chain.block(block_of(more))
        return _Part(chain, items, _Key(last.time if last is not None else 0, order, more))

    page = await _merged("allTransactions", params, chains, paging, read)
    shown = await _shown(page.items, dialect)
    token = _token("allTransactions", params, paging, page.end, chains)
    return NativeTransactionPage(next_page_token=token, transactions=shown)


async def _shown(items: Sequence[tuple[EvmChain, TxRead]], dialect: Dialect) -> list[NativeTransaction]:
    """Names are read once for each chain."""
    txs_of: dict[EvmChain, list[TxRead]] = {}
    for chain, tx in items:
        txs_of.setdefault(chain, []).append(tx)
    contexts = {chain: await context_for(chain, dialect, txs) for chain, txs in txs_of.items()}
    return [native(contexts[chain], tx) for chain, tx in items]


async def _merged(
    route: str,
    params: AllBlocksParams | AllTxsParams,
    chains: ChainDirectory,
    paging: Paging,
    read: Callable[[EvmChain, int, int | None, int | None], Awaitable[_Part[T]]],
) -> _Page[T]:
    """`read` gets a chain, its order and where the page begins: at a block number, or inside the chain of the token."""
    after = cursor_of(route, params, paging)
    wanted = [chain for chain in chains.all() if is_of_network(chain.info, params.network) and await has_blocks(chain)]
    orders = _orders(chains)
    parts = []
    for chain in wanted:
        order = orders[chain.info.id]
        if after is None:
            parts.append(await read(chain, order, None, None))
            continue
        time, last_chain, position = after
        last_order = orders.get(str(last_chain), 0)
        if order == last_order:
            parts.append(await read(chain, order, None, position))
        elif (newest := await chain.chain.at_or_before(time if order < last_order else time - 1)) is not None:
            parts.append(await read(chain, order, newest.number, None))
    return _cut(parts, params.page_size)


def _orders(chains: ChainDirectory) -> dict[str, int]:
    every = chains.all()
    return {chain.info.id: len(every) - index for index, chain in enumerate(every)}


def _cut(parts: Sequence[_Part[T]], size: int) -> _Page[T]:
    """The newest items of all parts, not below what one of them has not read."""
    end = max((part.end for part in parts if part.end is not None), default=None)
    found = [(key, part.chain, item) for part in parts for key, item in part.items if end is None or key >= end]
    found.sort(key=lambda one: one[0], reverse=True)
    page = found[:size]
    if len(found) > size:
        end = page[-1][0]
    return _Page([(chain, item) for _, chain, item in page], end)


def _token(
    route: str,
    params: AllBlocksParams | AllTxsParams,
    paging: Paging,
    end: _Key | None,
    chains: ChainDirectory,
) -> str | UnsetType:
    if end is None:
        return UNSET
    chain_of = {order: chain_id for chain_id, order in _orders(chains).items()}
    return paging.token(route, params, pack_cursor(end.time, int(chain_of[end.order]), end.position))
