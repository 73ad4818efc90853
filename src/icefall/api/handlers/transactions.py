"""Transactions: of a chain, of an address, and one by one with everything in it."""

import time
from contextlib import suppress

from msgspec import UNSET

from icefall.api.dialect import Dialect
from icefall.api.paging import Paging
from icefall.api.presenting.chains import network_token
from icefall.api.presenting.knowledge import AnswerContext, knowledge_for
from icefall.api.presenting.pages import cut, pack_places, places_after, span_of
from icefall.api.presenting.rows import details, full_native, native
from icefall.api.presenting.texts import address_text, hash_text
from icefall.api.presenting.transfers import nested_erc20, nested_erc721, nested_erc1155, nested_internal
from icefall.api.schema.transactions import (
    DeploymentParams,
    LatestTxsParams,
    NativeTransactionPage,
    NetworkTokenDetails,
    SortedAddressPage,
    TeleporterMessageInfo,
    TransactionDetailsPage,
    TransactionParams,
    WholeTransaction,
)
from icefall.api.schema.transfers import AddressPage
from icefall.errors import NotFound
from icefall.evm.enriching.prices import NATIVE_ADDRESS
from icefall.evm.reading.directory import ChainDirectory, EvmChain
from icefall.evm.reading.model import FullTxRead, MessageRead
from icefall.wire.ids import id_text

HISTORIC_AFTER_S = 24 * 3600
_STATUSES = {None: None, "failed": 0, "success": 1}


async def latest_transactions(
    ask: LatestTxsParams, chains: ChainDirectory, paging: Paging, dialect: Dialect
) -> NativeTransactionPage:
    """With a status that hardly occurs a page may be short and yet not be the last."""
    chain = await chains.find(ask.chain_id)
    (before,) = places_after("latest", ask, paging) or (None,)
    txs, more = await chain.chain.newest_txs(before, ask.page_size, _STATUSES[ask.status])
    known = await knowledge_for(chain, dialect, txs=txs)
    token = UNSET if more is None else paging.token("latest", ask, pack_places(more))
    return NativeTransactionPage(next_page_token=token, transactions=[native(known, tx) for tx in txs])


async def list_native(
    ask: AddressPage, chains: ChainDirectory, paging: Paging, dialect: Dialect
) -> NativeTransactionPage:
    chain = await chains.find(ask.chain_id)
    found = await chain.chain.txs_of(ask.address, span_of("listNative", ask, paging), ask.page_size + 1)
    txs, token = cut("listNative", ask, paging, found)
    known = await knowledge_for(chain, dialect, txs=txs)
    return NativeTransactionPage(next_page_token=token, transactions=[native(known, tx) for tx in txs])


async def list_transactions(
    ask: SortedAddressPage, chains: ChainDirectory, paging: Paging, dialect: Dialect
) -> TransactionDetailsPage:
    chain = await chains.find(ask.chain_id)
    span, ascending = span_of("transactions", ask, paging), ask.sort_order == "asc"
    found = await chain.chain.touched_txs(ask.address, span, ask.page_size + 1, ascending=ascending)
    txs, token = cut("transactions", ask, paging, found)
    parts = await chain.transfers.parts_of_page(ask.address, txs)
    known = await knowledge_for(chain, dialect, txs=txs, parts=list(parts.values()))
    return TransactionDetailsPage(
        next_page_token=token, transactions=[details(known, tx, parts[tx.tx_at]) for tx in txs]
    )


async def get_transaction(ask: TransactionParams, chains: ChainDirectory, dialect: Dialect) -> WholeTransaction:
    chain = await chains.find(ask.chain_id)
    full = await chain.chain.tx(ask.tx_hash)
    if full is None:
        raise NotFound(f"chain {chain.info.id} has no indexed transaction {hash_text(ask.tx_hash)}")
    return await _whole(chain, chains, dialect, full, "usd")


async def get_deployment(ask: DeploymentParams, chains: ChainDirectory, dialect: Dialect) -> WholeTransaction:
    chain = await chains.find(ask.chain_id)
    made = await chain.transfers.deployment(ask.address)
    full = await chain.chain.full_tx_at(made.tx_at) if made else None
    if full is None:
        raise NotFound(f"no indexed transaction of chain {chain.info.id} deployed {address_text(ask.address)}")
    return await _whole(chain, chains, dialect, full, ask.currency)


async def _whole(
    chain: EvmChain, chains: ChainDirectory, dialect: Dialect, full: FullTxRead, currency: str
) -> WholeTransaction:
    parts = await chain.transfers.parts_of_tx(full.tx.tx_at)
    message = await chain.transfers.message(full.tx.tx_at)
    known = await knowledge_for(chain, dialect, txs=[full.tx], parts=[parts], currency=currency)
    return WholeTransaction(
        [nested_erc20(known, row) for row in parts.erc20],
        [nested_erc721(known, row) for row in parts.erc721],
        [nested_erc1155(known, row) for row in parts.erc1155],
        [nested_internal(known, row) for row in parts.internals],
        await _network_token(chain, known, full.tx.place.time, currency),
        full_native(known, full),
        await _message(message, chains) if message else UNSET,
    )


async def _network_token(chain: EvmChain, known: AnswerContext, tx_time: int, currency: str) -> NetworkTokenDetails:
    historic = None
    if time.time() - tx_time > HISTORIC_AFTER_S:
        historic = await chain.facts.historic_price(NATIVE_ADDRESS, currency, tx_time)
    current = await chain.facts.native_price(currency)
    return NetworkTokenDetails(network_token(chain.info.token), known.money.price(current), known.money.price(historic))


async def _message(message: MessageRead, chains: ChainDirectory) -> TeleporterMessageInfo:
    """The other chain goes by its EVM chain ID where it is one of ours."""
    peer = id_text(message.peer_blockchain_id)
    with suppress(NotFound):
        peer = (await chains.find(peer)).info.id
    if message.is_source:
        return TeleporterMessageInfo(hash_text(message.message_id), "SOURCE_TRANSACTION", destination_chain_id=peer)
    return TeleporterMessageInfo(hash_text(message.message_id), "DESTINATION_TRANSACTION", source_chain_id=peer)
