"""Handlers of the asset chain. Transactions to issue are forwarded to the engine."""

import asyncio
import time
from typing import NoReturn

import msgspec

from icefall.api.dialect import Dialect
from icefall.api.http.structs import NoParams
from icefall.api.node.addresses import AddressParser
from icefall.api.node.handlers.utxo_pages import PAGE_MAX, requested_page
from icefall.api.node.schema.avm import (
    AddressParams,
    AddressTxs,
    AddressTxsParams,
    AllBalances,
    AssetBalance,
    AssetDescription,
    AssetParams,
    Balance,
    BalanceParams,
    BlockByHeightParams,
    GetBlockParams,
    GetBlockResult,
    GetTxParams,
    GetTxResult,
    Height,
    Index,
    Issued,
    IssueTxParams,
    TxFees,
    TxStatus,
    TxStatusParams,
    UtxoReference,
    Utxos,
    UtxosParams,
)
from icefall.errors import CallFailed
from icefall.ipc.socket import SocketClient
from icefall.node.chains import Chains
from icefall.wire.avm.codec import unpack_block, unpack_tx
from icefall.wire.avm.json import block_json, tx_json
from icefall.wire.avm.types import CreateAssetTx
from icefall.wire.errors import WireError
from icefall.wire.ids import EMPTY_ID, id_from_text, id_text
from icefall.wire.packer import GENESIS_SIZE_MAX
from icefall.wire.text import checksum_hex
from icefall.xchain.model import ChainView
from icefall.xchain.ownership import UINT64_MAX, spendable
from icefall.xchain.store import NEWEST, AssetChainReader

_ATTEMPTS = 3


async def get_height(_: NoParams, chain: AssetChainReader) -> Height:
    return Height(str(await chain.height()))


async def get_tx_fee(_: NoParams, view: ChainView) -> TxFees:
    return TxFees(str(view.tx_fee), str(view.create_asset_tx_fee))


async def get_block(
    params: GetBlockParams, chain: AssetChainReader, view: ChainView, dialect: Dialect
) -> GetBlockResult:
    raw = await chain.block(params.block_id)
    if raw is None and dialect.block_by_container_id:
        raw = await chain.block_in_container(params.block_id)
    if raw is None:
        raise CallFailed(f"couldn't get block with id {id_text(params.block_id)}: not found")
    return _block(raw, params.encoding, view)


async def get_block_by_height(params: BlockByHeightParams, chain: AssetChainReader, view: ChainView) -> GetBlockResult:
    raw = await chain.block_at(params.height)
    if raw is None:
        raise CallFailed(f"couldn't get block at height {params.height}: not found")
    return _block(raw, params.encoding, view)


def _block(raw: bytes, encoding: str, view: ChainView) -> GetBlockResult:
    if encoding == "json":
        return GetBlockResult(msgspec.Raw(block_json(unpack_block(raw, GENESIS_SIZE_MAX), view.naming)), encoding)
    return GetBlockResult(checksum_hex.encode(raw, encoding), encoding)


async def get_tx(params: GetTxParams, chain: AssetChainReader, view: ChainView) -> GetTxResult:
    if params.tx_id == EMPTY_ID:
        raise CallFailed("nil transaction ID")
    raw = await chain.tx(params.tx_id)
    if raw is None:
        raise CallFailed("not found")
    if params.encoding == "json":
        return GetTxResult(msgspec.Raw(tx_json(unpack_tx(raw, GENESIS_SIZE_MAX), view.naming)), params.encoding)
    return GetTxResult(checksum_hex.encode(raw, params.encoding), params.encoding)


async def get_tx_status(
    params: TxStatusParams, chain: AssetChainReader, view: ChainView, engine: SocketClient, dialect: Dialect
) -> TxStatus:
    if params.tx_id == EMPTY_ID:
        raise CallFailed("nil transaction ID")
    if await chain.tx(params.tx_id) is not None:
        return TxStatus("Accepted")
    if not dialect.four_tx_states:
        return TxStatus("Unknown")
    state = await engine.call("tx_state", chain=view.chain_id, txid=params.tx_id)
    if not state and await chain.tx(params.tx_id) is not None:  # accepted between the two calls
        state = "Accepted"
    if not state and await chain.refusal(params.tx_id) is not None:  # before the last restart
        state = "Rejected"
    return TxStatus(state or "Unknown")


async def get_asset_description(params: AssetParams, chain: AssetChainReader, view: ChainView) -> AssetDescription:
    asset_id = _asset_id(params.asset_id, view)
    raw = await chain.tx(asset_id)
    if raw is None:
        raise CallFailed("not found")
    tx = unpack_tx(raw, GENESIS_SIZE_MAX).unsigned
    if not isinstance(tx, CreateAssetTx):
        raise CallFailed("transaction doesn't create an asset")
    return AssetDescription(id_text(asset_id), tx.name, tx.symbol, str(tx.denomination))


def _asset_id(text: str, view: ChainView) -> bytes:
    """Read an asset, which is named by its genesis alias or by its ID."""
    asset_id = view.asset_ids.get(text)
    if asset_id is not None:
        return asset_id
    try:
        return id_from_text(text)
    except WireError:
        raise CallFailed(f"asset '{text}' not found") from None


async def get_balance(
    params: BalanceParams, chain: AssetChainReader, view: ChainView, addresses: AddressParser
) -> Balance:
    address = await _owner(params.address, addresses)
    wanted = _asset_id(params.asset_id, view)
    outputs = await _spendable(chain, address, partial=params.include_partial)
    total = sum([amount for asset_id, amount, _, _ in outputs if asset_id == wanted])
    if total > UINT64_MAX:
        raise CallFailed("overflow")
    references = [UtxoReference(id_text(txid), at) for asset_id, _, txid, at in outputs if asset_id == wanted]
    return Balance(str(total), references)


async def get_all_balances(
    params: AddressParams, chain: AssetChainReader, view: ChainView, addresses: AddressParser
) -> AllBalances:
    address = await _owner(params.address, addresses)
    totals: dict[bytes, int] = {}
    for asset_id, amount, _, _ in await _spendable(chain, address, partial=params.include_partial):
        totals[asset_id] = min(UINT64_MAX, totals.get(asset_id, 0) + amount)
    named = sorted((view.asset_name(asset_id), total) for asset_id, total in totals.items())
    return AllBalances([AssetBalance(name, str(total)) for name, total in named])


async def _spendable(chain: AssetChainReader, address: bytes, *, partial: bool) -> list[tuple[bytes, int, bytes, int]]:
    """The outputs that count towards an address's balance now. Read in bounded pieces, so that other requests can run
    in between, and from the start again when a block was accepted meanwhile."""
    now_s = int(time.time())
    for attempt in range(_ATTEMPTS):
        found: list[tuple[bytes, int, bytes, int]] = []
        below, height = NEWEST, await chain.height()
        last_try = attempt == _ATTEMPTS - 1  # then in one piece, whatever its size
        while True:
            utxos = await chain.utxos(address, below, -1 if last_try else PAGE_MAX)
            found += spendable([utxo.raw for utxo in utxos], now_s, partial=partial)
            if last_try or len(utxos) < PAGE_MAX:
                break
            below = utxos[-1].position
            await asyncio.sleep(0)
        if last_try or below == NEWEST or await chain.height() == height:
            return found
    raise AssertionError("the last try always returns")


async def _owner(text: str, addresses: AddressParser) -> bytes:
    try:
        return await addresses.parse(text)
    except CallFailed as error:
        raise CallFailed(f"problem parsing address '{text}': {error}") from error


async def get_utxos(
    params: UtxosParams,
    chain: AssetChainReader,
    view: ChainView,
    addresses: AddressParser,
    chains: Chains,
    dialect: Dialect,
) -> Utxos:
    page = await requested_page(params, chain, view.chain_id, addresses, chains)
    if page.utxos and params.encoding == "json":
        _cannot_encode(page.utxos[0].utxo_id)
    return Utxos(
        num_fetched=str(len(page.utxos)),
        utxos=[checksum_hex.encode(utxo.raw, params.encoding) for utxo in page.utxos],
        end_index=Index(addresses.text(page.end.address), id_text(page.end.utxo_id)),
        encoding=params.encoding,
        source_chain=params.source_chain if params.source_chain and dialect.shows_source_chain else msgspec.UNSET,
    )


def _cannot_encode(utxo_id: bytes) -> NoReturn:
    raise CallFailed(f"couldn't encode UTXO {id_text(utxo_id)} as string: unsupported encoding in method")


async def issue_tx(params: IssueTxParams, view: ChainView, engine: SocketClient) -> Issued:
    txid = await engine.call("issue_tx", chain=view.chain_id, tx=params.tx, encoding=params.encoding)
    return Issued(id_text(txid))


async def get_address_txs(
    params: AddressTxsParams, chain: AssetChainReader, view: ChainView, addresses: AddressParser
) -> AddressTxs:
    address = await _owner(params.address, addresses)
    asset_id = _asset_id(params.asset_id, view) if params.asset_id else b""
    size = params.page_size if 0 < params.page_size <= PAGE_MAX else PAGE_MAX
    below = min(params.cursor, NEWEST) or NEWEST
    rows = await chain.address_txs(address, asset_id, below, size + 1)
    cursor = str(rows[size - 1][0]) if len(rows) > size else msgspec.UNSET
    return AddressTxs([id_text(txid) for _, txid, _ in rows[:size]], cursor)
