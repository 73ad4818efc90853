"""Latest blocks and transactions of all chains together: newest first, at equal times in the order of the chains.

A page token holds the time of the last item, and for each chain where the next page begins in it, the chain of the last
item first. A chain that the token does not name begins at its newest block of that time, which takes a few queries to
find: those that are too many for a token, and those added since it was issued.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, NamedTuple, TypeVar

from msgspec import UNSET, UnsetType

from icefall.access.page_tokens import CURSOR_SIZE_MAX
from icefall.api.data.handlers.chains import has_blocks, is_of_network
from icefall.api.data.render.context import context_for
from icefall.api.data.render.transactions import block, native
from icefall.api.data.schema.chains import AllBlocksParams, EvmBlockPage
from icefall.api.data.schema.transactions import AllTxsParams, NativeTransactionPage
from icefall.api.data.schema.transfers import NativeTransaction
from icefall.api.dialect import Dialect
from icefall.api.http.paging import Paging, cursor_of, pack_cursor
from icefall.evm.encoding import above, block_of
from icefall.evm.reading.directory import ChainDirectory, EvmChain
from icefall.evm.reading.model import BlockRead, TxRead

_STATUSES = {None: None, "failed": 0, "success": 1}
_CHAINS_MAX = (CURSOR_SIZE_MAX - 8) // 16  # of a token: a time, and a number and a position for each
T = TypeVar("T")


class _Key(NamedTuple):
    """Sorts the items of all chains, newest last. `order` is higher for the chains that are listed first."""

    time: int
    order: int
    position: int


class _Part(NamedTuple, Generic[T]):
    """The items of one chain below `before`. `end` is the position below which nothing was read; None if everything
    was."""

    chain: EvmChain
    order: int
    before: int | None
    items: list[tuple[_Key, T]]
    end: _Key | None

    def next_before(self, end: _Key) -> int:
        """Return where the page after `end` begins in this chain."""
        left = next((key for key, _ in self.items if key < end), None)
        if left is not None:
            return left.position + 1
        if self.end is not None:
            return self.end.position
        return self.items[-1][0].position if self.items else self.before or 0


class _Page(NamedTuple, Generic[T]):
    """One page of items. `cursor` is where the next page begins, None after the last."""

    items: list[tuple[EvmChain, T]]
    cursor: bytes | None


async def all_blocks(params: AllBlocksParams, chains: ChainDirectory, paging: Paging) -> EvmBlockPage:
    async def read(chain: EvmChain, order: int, before: int | None) -> _Part[BlockRead]:
        rows = await chain.blocks.page(before, params.page_size + 1)
        items = [(_Key(row.time, order, row.number), row) for row in rows[: params.page_size]]
        return _Part(chain, order, before, items, items[-1][0] if len(rows) > params.page_size else None)

    page = await _merged(params, chains, cursor_of("allBlocks", params, paging), read, lambda number: number + 1)
    rendered = [block(chain.info.id, row) for chain, row in page.items]
    return EvmBlockPage(next_page_token=_token("allBlocks", params, paging, page.cursor), blocks=rendered)


async def all_transactions(
    params: AllTxsParams, chains: ChainDirectory, paging: Paging, dialect: Dialect
) -> NativeTransactionPage:
    """List the newest transactions of all chains. A page with a rare status may be short although more follow."""

    async def read(chain: EvmChain, order: int, before: int | None) -> _Part[TxRead]:
        txs, more = await chain.blocks.newest_txs(before, params.page_size, _STATUSES[params.status])
        items = [(_Key(tx.location.time, order, tx.tx_at), tx) for tx in txs]
        if more is None:
            return _Part(chain, order, before, items, None)
        if items and items[-1][0].position == more:
            return _Part(chain, order, before, items, items[-1][0])
        last = await chain.blocks.block(block_of(more))
        return _Part(chain, order, before, items, _Key(last.time if last is not None else 0, order, more))

    page = await _merged(params, chains, cursor_of("allTransactions", params, paging), read, above)
    rendered = await _rendered(page.items, dialect)
    token = _token("allTransactions", params, paging, page.cursor)
    return NativeTransactionPage(next_page_token=token, transactions=rendered)


async def _rendered(items: Sequence[tuple[EvmChain, TxRead]], dialect: Dialect) -> list[NativeTransaction]:
    """Render transactions of several chains; the names of their parties are read once for each chain."""
    txs_of: dict[EvmChain, list[TxRead]] = {}
    for chain, tx in items:
        txs_of.setdefault(chain, []).append(tx)
    contexts = {chain: await context_for(chain, dialect, txs) for chain, txs in txs_of.items()}
    return [native(contexts[chain], tx) for chain, tx in items]


async def _merged(
    params: AllBlocksParams | AllTxsParams,
    chains: ChainDirectory,
    after: tuple[int, ...] | None,
    read: Callable[[EvmChain, int, int | None], Awaitable[_Part[T]]],
    behind: Callable[[int], int],
) -> _Page[T]:
    """Merge the newest items of all chains into a page. `read` gets a chain, its order and the position below which the
    page begins in it; `behind` is the position after all of a block."""
    every = chains.all()
    orders = {chain.info.id: len(every) - index for index, chain in enumerate(every)}
    time, starts = (0, {}) if after is None else (after[0], dict(zip(map(str, after[1::2]), after[2::2], strict=True)))
    last_order = orders.get(next(iter(starts), ""), 0)
    parts = []
    for chain in every:
        if not is_of_network(chain.info, params.network) or not await has_blocks(chain):
            continue
        order, before = orders[chain.info.id], starts.get(chain.info.id)
        if after is not None and before is None:
            newest = await chain.blocks.at_or_before(time if order < last_order else time - 1)
            before = 0 if newest is None else behind(newest.number)
        parts.append(await read(chain, order, before))
    return _cut(parts, params.page_size)


def _cut(parts: Sequence[_Part[T]], size: int) -> _Page[T]:
    """The newest items of all parts, not below what one of them has not read."""
    end = max((part.end for part in parts if part.end is not None), default=None)
    found = [(key, part.chain, item) for part in parts for key, item in part.items if end is None or key >= end]
    found.sort(key=lambda one: one[0], reverse=True)
    page = found[:size]
    if len(found) > size:
        end = page[-1][0]
    return _Page([(chain, item) for _, chain, item in page], None if end is None else _cursor(parts, end))


def _cursor(parts: Sequence[_Part[T]], end: _Key) -> bytes:
    numbers = [end.time]
    for part in sorted(parts, key=lambda part: part.order != end.order)[:_CHAINS_MAX]:
        numbers += int(part.chain.info.id), part.next_before(end)
    return pack_cursor(*numbers)


def _token(route: str, params: AllBlocksParams | AllTxsParams, paging: Paging, cursor: bytes | None) -> str | UnsetType:
    return UNSET if cursor is None else paging.token(route, params, cursor)
