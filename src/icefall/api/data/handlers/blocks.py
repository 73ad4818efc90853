"""Handlers of blocks, and of the transactions of one."""

import asyncio

from msgspec import UNSET, UnsetType

from icefall.api.data.render.context import context_for
from icefall.api.data.render.text import RawJson
from icefall.api.data.render.transactions import block, block_details, native
from icefall.api.data.schema.chains import (
    BlockByTimeParams,
    BlockParams,
    BlocksParams,
    BlockTxsParams,
    EvmBlockDetailsPage,
    EvmBlockPage,
)
from icefall.api.data.schema.transactions import NativeTransactionPage
from icefall.api.data.schema.transfers import NativeTransaction
from icefall.api.dialect import Dialect
from icefall.api.http.paging import Paging, cursor_of, pack_cursor
from icefall.errors import NotFound
from icefall.evm.reading.directory import ChainDirectory, EvmChain
from icefall.evm.reading.model import BlockRead

PIECE = 200  # transactions of a whole block read at a time, so that other requests can run in between


async def latest_blocks(params: BlocksParams, chains: ChainDirectory, paging: Paging) -> EvmBlockPage:
    chain, rows, token = await _newest(params, chains, paging)
    return EvmBlockPage(next_page_token=token, blocks=[block(chain.info.id, row) for row in rows])


async def latest_block_details(params: BlocksParams, chains: ChainDirectory, paging: Paging) -> EvmBlockDetailsPage:
    chain, rows, token = await _newest(params, chains, paging)
    return EvmBlockDetailsPage(next_page_token=token, blocks=[block_details(chain.info.id, row) for row in rows])


async def _newest(
    params: BlocksParams, chains: ChainDirectory, paging: Paging
) -> tuple[EvmChain, list[BlockRead], str | UnsetType]:
    chain = await chains.find(params.chain_id)
    (before,) = cursor_of("blocks", params, paging) or (None,)
    rows = await chain.blocks.page(before, params.page_size + 1)
    token: str | UnsetType = UNSET
    if len(rows) > params.page_size:
        rows.pop()
        token = paging.token("blocks", params, pack_cursor(rows[-1].number))
    return chain, rows, token


async def block_by_time(params: BlockByTimeParams, chains: ChainDirectory) -> RawJson:
    """The newest block that is not later, or with `closest=after` the oldest one that is not earlier."""
    chain = await chains.find(params.chain_id)
    if params.closest == "before":
        found = await chain.blocks.at_or_before(params.timestamp)
    else:
        earlier = await chain.blocks.at_or_before(params.timestamp - 1) if params.timestamp else None
        number = earlier.number + 1 if earlier is not None else await chain.blocks.lowest()
        found = None if number is None else await chain.blocks.block(number)
    if found is None:
        raise NotFound(f"chain {chain.info.id} has no indexed block {params.closest} {params.timestamp}")
    return block(chain.info.id, found)


async def get_block(params: BlockParams, chains: ChainDirectory) -> RawJson:
    chain = await chains.find(params.chain_id)
    return block(chain.info.id, await _block(chain, params.block_id))


async def get_block_details(params: BlockParams, chains: ChainDirectory) -> RawJson:
    chain = await chains.find(params.chain_id)
    return block_details(chain.info.id, await _block(chain, params.block_id))


async def block_transactions(
    params: BlockTxsParams, chains: ChainDirectory, paging: Paging, dialect: Dialect
) -> NativeTransactionPage:
    chain = await chains.find(params.chain_id)
    number = (await _block(chain, params.block_id)).number
    (before,) = cursor_of("blockTransactions", params, paging) or (None,)
    if params.page_size == 0:
        return NativeTransactionPage(transactions=await _whole(chain, dialect, number, before))
    found = await chain.blocks.txs_of_block(number, before, params.page_size + 1)
    txs = found[: params.page_size]
    context = await context_for(chain, dialect, txs)
    token: str | UnsetType = UNSET
    if len(found) > len(txs):
        token = paging.token("blockTransactions", params, pack_cursor(txs[-1].tx_index))
    return NativeTransactionPage(next_page_token=token, transactions=[native(context, tx) for tx in txs])


async def _whole(chain: EvmChain, dialect: Dialect, number: int, before: int | None) -> list[NativeTransaction]:
    rendered: list[NativeTransaction] = []
    while txs := await chain.blocks.txs_of_block(number, before, PIECE):
        context = await context_for(chain, dialect, txs)
        rendered += [native(context, tx) for tx in txs]
        before = txs[-1].tx_index
        if len(txs) < PIECE:
            break
        await asyncio.sleep(0)
    return rendered


async def _block(chain: EvmChain, block_id: int | bytes) -> BlockRead:
    found = await chain.blocks.block(block_id)
    if found is None:
        name = block_id if isinstance(block_id, int) else f"0x{block_id.hex()}"
        raise NotFound(f"chain {chain.info.id} has no indexed block {name}")
    return found
