"""Latest blocks and transactions of all chains together."""

from collections.abc import Sequence

from msgspec import UNSET, UnsetType

from icefall.api.data.handlers.merging import ChainPart, MergeKey, cut_page, read_parts
from icefall.api.data.render.context import context_for
from icefall.api.data.render.transactions import block, native
from icefall.api.data.schema.chains import AllBlocksParams, EvmBlockPage
from icefall.api.data.schema.transactions import AllTxsParams, NativeTransactionPage
from icefall.api.data.schema.transfers import NativeTransaction
from icefall.api.dialect import Dialect
from icefall.api.http.paging import Paging, cursor_of
from icefall.evm.encoding import above, block_of
from icefall.evm.reading.directory import ChainDirectory, EvmChain
from icefall.evm.reading.model import BlockRead, TxRead

_STATUSES = {None: None, "failed": 0, "success": 1}


async def all_blocks(params: AllBlocksParams, chains: ChainDirectory, paging: Paging) -> EvmBlockPage:
    async def read(chain: EvmChain, order: int, before: int | None) -> ChainPart[BlockRead]:
        rows = await chain.blocks.page(before, params.page_size + 1)
        items = [(MergeKey(row.time, order, row.number), row) for row in rows[: params.page_size]]
        return ChainPart(chain, order, before, items, items[-1][0] if len(rows) > params.page_size else None)

    after = cursor_of("allBlocks", params, paging)
    page = cut_page(await read_parts(params.network, chains, after, read, lambda number: number + 1), params.page_size)
    rendered = [block(chain.info.id, row) for chain, row in page.items]
    return EvmBlockPage(next_page_token=_token("allBlocks", params, paging, page.cursor), blocks=rendered)


async def all_transactions(
    params: AllTxsParams, chains: ChainDirectory, paging: Paging, dialect: Dialect
) -> NativeTransactionPage:
    """List the newest transactions of all chains. A page with a rare status may be short although more follow."""

    async def read(chain: EvmChain, order: int, before: int | None) -> ChainPart[TxRead]:
        txs, more = await chain.blocks.newest_txs(before, params.page_size, _STATUSES[params.status])
        items = [(MergeKey(tx.location.time, order, tx.tx_at), tx) for tx in txs]
        if more is None:
            return ChainPart(chain, order, before, items, None)
        if items and items[-1][0].position == more:
            return ChainPart(chain, order, before, items, items[-1][0])
        last = await chain.blocks.block(block_of(more))
        return ChainPart(chain, order, before, items, MergeKey(last.time if last is not None else 0, order, more))

    after = cursor_of("allTransactions", params, paging)
    page = cut_page(await read_parts(params.network, chains, after, read, above), params.page_size)
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


def _token(route: str, params: AllBlocksParams | AllTxsParams, paging: Paging, cursor: bytes | None) -> str | UnsetType:
    return UNSET if cursor is None else paging.token(route, params, cursor)
