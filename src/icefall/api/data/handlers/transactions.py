"""Handlers of transactions: of a chain, of an address, and single ones with everything in them."""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import UNSET

from icefall.api.data.handlers.chains import network_token
from icefall.api.data.handlers.contracts import why_deployments_lack
from icefall.api.data.render.context import AnswerContext, NotRead, context_for, known_context, rendered
from icefall.api.data.render.text import RawJson
from icefall.api.data.render.transactions import details, full_native, internal, natives, transfer, whole_lists
from icefall.api.data.schema.transactions import (
    DeploymentParams,
    FilteredAddressPage,
    LatestTxsParams,
    NativeTransactionPage,
    NetworkTokenDetails,
    SortedAddressPage,
    TeleporterMessageInfo,
    TransactionDetailsPage,
    TransactionParams,
    TransactionTransfersPage,
    TransactionTransfersParams,
    WholeTransaction,
)
from icefall.api.data.schema.transfers import AddressPage
from icefall.api.dialect import Dialect
from icefall.api.http.paging import Paging, cursor_of, cut, pack_cursor, page_range
from icefall.api.http.structs import address_text, hash_text
from icefall.errors import NotFound
from icefall.evm.enriching.reader import NATIVE_ADDRESS
from icefall.evm.reading.directory import ChainDirectory, EvmChain
from icefall.evm.reading.links import links_of
from icefall.evm.reading.model import FullTxRead, InternalRead, MessageRead, TransferRead, TxParts, TxRead
from icefall.wire.ids import id_text

HISTORIC_AFTER_S = 24 * 3600
_INTERNAL_CURSOR = 3  # numbers
_STATUSES = {None: None, "failed": 0, "success": 1}


async def latest_transactions(
    params: LatestTxsParams, chains: ChainDirectory, paging: Paging, dialect: Dialect
) -> NativeTransactionPage:
    """List the newest transactions of a chain. A page with a rare status may be short although more follow."""
    chain = await chains.find(params.chain_id)
    (before,) = cursor_of("latest", params, paging) or (None,)
    txs, more = await chain.blocks.newest_txs(before, params.page_size, _STATUSES[params.status])
    token = UNSET if more is None else paging.token("latest", params, pack_cursor(more))
    return NativeTransactionPage(next_page_token=token, transactions=await rendered(chain, dialect, txs, natives))


async def list_native(
    params: AddressPage, chains: ChainDirectory, paging: Paging, dialect: Dialect
) -> NativeTransactionPage:
    chain = await chains.find(params.chain_id)
    found = await chain.lists.txs_of(params.address, page_range("listNative", params, paging), params.page_size + 1)
    txs, token = cut("listNative", params, paging, found)
    return NativeTransactionPage(next_page_token=token, transactions=await rendered(chain, dialect, txs, natives))


async def list_transactions(
    params: SortedAddressPage, chains: ChainDirectory, paging: Paging, dialect: Dialect
) -> TransactionDetailsPage:
    chain = await chains.find(params.chain_id)
    span, ascending = page_range("transactions", params, paging), params.sort_order == "asc"
    lists = chain.lists
    found = await lists.touched_txs(params.address, span, params.page_size + 1, ascending=ascending)
    txs, token = cut("transactions", params, paging, found)
    parts = await chain.transfers.parts_of_page(lists, params.address, txs)
    if len(parts) < len(txs):  # too much for one page
        txs = txs[: len(parts)]
        token = paging.token("transactions", params, pack_cursor(*txs[-1].cursor))
    if isinstance(params, FilteredAddressPage) and params.filter_spam_tokens:
        await _leave_out_spam(chain, parts.values())
    return TransactionDetailsPage(next_page_token=token, transactions=await _details(chain, dialect, txs, parts))


async def _details(
    chain: EvmChain, dialect: Dialect, txs: Sequence[TxRead], parts: Mapping[int, TxParts]
) -> list[RawJson]:
    """Render transactions with what is known already, or, if that is not enough, with what is read for them."""
    known = known_context(chain, dialect)
    if known is not None:
        try:
            return await details(known, txs, parts)
        except NotRead:
            pass
    return await details(await context_for(chain, dialect, [*txs, *_rows_in(parts.values())]), txs, parts)


async def _leave_out_spam(chain: EvmChain, parts: Iterable[TxParts]) -> None:
    """Leave out the transfers of tokens that the reputation list calls malicious; their transactions stay."""
    malicious = await chain.enriched.malicious_of(one.token for part in parts for one in part.transfers)
    for part in parts if malicious else ():
        part.transfers = [one for one in part.transfers if one.token not in malicious]


async def get_transaction(params: TransactionParams, chains: ChainDirectory, dialect: Dialect) -> WholeTransaction:
    chain = await chains.find(params.chain_id)
    return await _whole(chain, chains, dialect, await _full(chain, params.tx_hash), "usd")


async def list_parts(
    params: TransactionTransfersParams, chains: ChainDirectory, paging: Paging, dialect: Dialect
) -> TransactionTransfersPage:
    """List the transfers of a transaction, then its internal transactions, whose cursor is (their frame, 0, 0)."""
    chain = await chains.find(params.chain_id)
    after, size = cursor_of("transactionTransfers", params, paging), params.page_size
    tx_at = (await _full(chain, params.tx_hash)).tx.tx_at
    in_transfers = after is None or len(after) < _INTERNAL_CURSOR
    transfers = await chain.transfers.of_tx(tx_at, after, size + 1) if in_transfers else []
    frame = -1 if in_transfers or after is None else after[0]
    internals = await chain.transfers.internals_of_tx(tx_at, frame, size + 1 - len(transfers))
    more = len(transfers) + len(internals) > size
    if more and internals:
        internals.pop()
    elif more:
        transfers.pop()
    end = (internals[-1].frame, 0, 0) if internals else transfers[-1].cursor if transfers else ()
    context = await context_for(chain, dialect, [*transfers, *internals])
    return TransactionTransfersPage(
        next_page_token=paging.token("transactionTransfers", params, pack_cursor(*end)) if more else UNSET,
        transfers=[transfer(context, row) for row in transfers],
        internal_transactions=[internal(context, row) for row in internals],
    )


async def _full(chain: EvmChain, tx_hash: bytes) -> FullTxRead:
    full = await chain.blocks.tx(tx_hash)
    if full is None:
        raise NotFound(f"chain {chain.info.id} has no indexed transaction {hash_text(tx_hash)}")
    return full


async def get_deployment(params: DeploymentParams, chains: ChainDirectory, dialect: Dialect) -> WholeTransaction:
    chain = await chains.find(params.chain_id)
    deployment = await chain.transfers.deployment(params.address)
    full = await chain.blocks.full_tx_at(deployment.tx_at) if deployment else None
    if full is None:
        address, why = address_text(params.address), await why_deployments_lack(chain)
        raise NotFound(f"no indexed transaction of chain {chain.info.id} deployed {address}{why}")
    return await _whole(chain, chains, dialect, full, params.currency)


async def _whole(
    chain: EvmChain, chains: ChainDirectory, dialect: Dialect, full: FullTxRead, currency: str
) -> WholeTransaction:
    message = await chain.transfers.message(full.tx.tx_at)
    async with chains.large_answers.place() as place:
        parts = await chain.transfers.parts_of_tx(full.tx.tx_at, place)
        context = await context_for(chain, dialect, [full.tx, *_rows_in([parts])], currency)
        return WholeTransaction(
            **await whole_lists(context, parts),
            network_token_details=await _network_token(chain, context, full.tx.location.time, currency),
            native_transaction=full_native(context, full),
            teleporter_message_info=await _message(message, chain, chains) if message else UNSET,
            truncated=parts.truncated or UNSET,
        )


def _rows_in(parts: Iterable[TxParts]) -> Iterator[TransferRead | InternalRead]:
    for part in parts:
        yield from part.transfers
        yield from part.internals


async def _network_token(chain: EvmChain, context: AnswerContext, tx_time: int, currency: str) -> NetworkTokenDetails:
    historic = None
    if time.time() - tx_time > HISTORIC_AFTER_S:
        historic = await chain.enriched.historic_price(NATIVE_ADDRESS, currency, tx_time)
    current = await chain.enriched.native_price(currency)
    return NetworkTokenDetails(
        network_token(chain.info.token), context.money.price(current), context.money.price(historic)
    )


async def _message(message: MessageRead, chain: EvmChain, chains: ChainDirectory) -> TeleporterMessageInfo:
    """Render a message with both of its chains. The other one has its EVM chain ID if it is indexed here or the P-Chain
    names it, else its blockchain ID."""
    links = await links_of(chains)
    await links.learn([message.peer_blockchain_id])
    peer = links.evm_chain_id(message.peer_blockchain_id) or id_text(message.peer_blockchain_id)
    source, destination = (chain.info.id, peer) if message.is_source else (peer, chain.info.id)
    return TeleporterMessageInfo(
        teleporter_message_id=hash_text(message.message_id),
        direction="SOURCE_TRANSACTION" if message.is_source else "DESTINATION_TRANSACTION",
        source_chain_id=source,
        destination_chain_id=destination,
    )
