"""Blocks, and the transactions of one."""

import asyncio

from msgspec import UNSET, UnsetType

from icefall.api.dialect import Dialect
from icefall.api.paging import Paging
from icefall.api.presenting.knowledge import knowledge_for
from icefall.api.presenting.pages import pack_places, places_after
from icefall.api.presenting.rows import block, native
from icefall.api.schema.blocks import BlockParams, BlocksParams, BlockTxsParams, EvmBlock, EvmBlockPage
from icefall.api.schema.transactions import NativeTransaction, NativeTransactionPage
from icefall.errors import NotFound
from icefall.evm.reading.directory import ChainDirectory, EvmChain
from icefall.evm.reading.model import BlockRead

PIECE = 200  # transactions of a whole block read at a time: other requests get their turn in between


async def latest_blocks(ask: BlocksParams, chains: ChainDirectory, paging: Paging) -> EvmBlockPage:
    chain = await chains.find(ask.chain_id)
    (before,) = places_after("blocks", ask, paging) or (None,)
    rows = await chain.chain.blocks(before, ask.page_size + 1)
    token: str | UnsetType = UNSET
    if len(rows) > ask.page_size:
        rows.pop()
        token = paging.token("blocks", ask, pack_places(rows[-1].number))
    return EvmBlockPage(next_page_token=token, blocks=[block(chain.info.id, row) for row in rows])


async def get_block(ask: BlockParams, chains: ChainDirectory) -> EvmBlock:
    chain = await chains.find(ask.chain_id)
    return block(chain.info.id, await _block(chain, ask.block_id))


async def block_transactions(
    ask: BlockTxsParams, chains: ChainDirectory, paging: Paging, dialect: Dialect
) -> NativeTransactionPage:
    chain = await chains.find(ask.chain_id)
    number = (await _block(chain, ask.block_id)).number
    (before,) = places_after("blockTransactions", ask, paging) or (None,)
    if ask.page_size == 0:
        return NativeTransactionPage(transactions=await _whole(chain, dialect, number, before))
    found = await chain.chain.txs_of_block(number, before, ask.page_size + 1)
    txs = found[: ask.page_size]
    known = await knowledge_for(chain, dialect, txs=txs)
    token: str | UnsetType = UNSET
    if len(found) > len(txs):
        token = paging.token("blockTransactions", ask, pack_places(txs[-1].tx_index))
    return NativeTransactionPage(next_page_token=token, transactions=[native(known, tx) for tx in txs])


async def _whole(chain: EvmChain, dialect: Dialect, number: int, before: int | None) -> list[NativeTransaction]:
    shown: list[NativeTransaction] = []
    while txs := await chain.chain.txs_of_block(number, before, PIECE):
        known = await knowledge_for(chain, dialect, txs=txs)
        shown += [native(known, tx) for tx in txs]
        before = txs[-1].tx_index
        if len(txs) < PIECE:
            break
        await asyncio.sleep(0)
    return shown


async def _block(chain: EvmChain, block_id: int | bytes) -> BlockRead:
    found = await chain.chain.block(block_id)
    if found is None:
        name = block_id if isinstance(block_id, int) else f"0x{block_id.hex()}"
        raise NotFound(f"chain {chain.info.id} has no indexed block {name}")
    return found
