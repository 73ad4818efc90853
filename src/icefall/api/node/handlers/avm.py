"""Handlers of the asset chain. Transactions to issue are forwarded to the engine."""

import asyncio
import time
from typing import NoReturn

import msgspec

from icefall.api.dialect import Dialect
from icefall.api.http.structs import NoParams
from icefall.api.node.addresses import AddressParser
from icefall.api.node.asset_objects import AssetHoldings, AssetObjects, HoldingsKey
from icefall.api.node.handlers.utxo_pages import PAGE_MAX, output_texts, requested_page
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
from icefall.xchain.ownership import UINT64_MAX
from icefall.xchain.reading import OVERHEAD, AssetChainReader
from icefall.xchain.store import NEWEST

_ATTEMPTS = 3


async def get_height(_: NoParams, chain: AssetChainReader) -> Height:
    return Height(str(await chain.height()))


async def get_tx_fee(_: NoParams, view: ChainView) -> TxFees:
    return TxFees(str(view.tx_fee), str(view.create_asset_tx_fee))


async def get_block(
    params: GetBlockParams, chain: AssetChainReader, view: ChainView, dialect: Dialect, objects: AssetObjects
) -> GetBlockResult:
    cached, key = objects.blocks.now(), (params.block_id, params.encoding)
    known = cached.get(key)
    if known is not None:
        return known
    raw = await chain.block(params.block_id)
    if raw is None and dialect.block_by_container_id:
        raw = await chain.block_in_container(params.block_id)
    if raw is None:
        raise CallFailed(f"couldn't get block with id {id_text(params.block_id)}: not found")
    made = _block(raw, params.encoding, view)
    objects.blocks.put(cached, key, made, len(made.block) + OVERHEAD)
    return made


async def get_block_by_height(
    params: BlockByHeightParams, chain: AssetChainReader, view: ChainView, objects: AssetObjects
) -> GetBlockResult:
    cached, key = objects.blocks.now(), (params.height, params.encoding)
    known = cached.get(key)
    if known is not None:
        return known
    raw = await chain.block_at(params.height)
    if raw is None:
        raise CallFailed(f"couldn't get block at height {params.height}: not found")
    made = _block(raw, params.encoding, view)
    objects.blocks.put(cached, key, made, len(made.block) + OVERHEAD)
    return made


def _block(raw: bytes, encoding: str, view: ChainView) -> GetBlockResult:
    if encoding == "json":
        return GetBlockResult(msgspec.Raw(block_json(unpack_block(raw, GENESIS_SIZE_MAX), view.naming)), encoding)
    return GetBlockResult(checksum_hex.encode(raw, encoding), encoding)


async def get_tx(params: GetTxParams, chain: AssetChainReader, view: ChainView, objects: AssetObjects) -> GetTxResult:
    if params.tx_id == EMPTY_ID:
        raise CallFailed("nil transaction ID")
    cached, key = objects.txs.now(), (params.tx_id, params.encoding)
    known = cached.get(key)
    if known is not None:
        return known
    raw = await chain.tx(params.tx_id)
    if raw is None:
        raise CallFailed("not found")
    if params.encoding == "json":
        tx: str | msgspec.Raw = msgspec.Raw(tx_json(unpack_tx(raw, GENESIS_SIZE_MAX), view.naming))
    else:
        tx = checksum_hex.encode(raw, params.encoding)
    made = GetTxResult(tx, params.encoding)
    objects.txs.put(cached, key, made, len(tx) + OVERHEAD)
    return made


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


async def get_asset_description(
    params: AssetParams, chain: AssetChainReader, view: ChainView, objects: AssetObjects
) -> AssetDescription:
    asset_id = _asset_id(params.asset_id, view)
    cached = objects.assets.now()
    known = cached.get(asset_id)
    if known is not None:
        return known
    raw = await chain.tx(asset_id)
    if raw is None:
        raise CallFailed("not found")
    tx = unpack_tx(raw, GENESIS_SIZE_MAX).unsigned
    if not isinstance(tx, CreateAssetTx):
        raise CallFailed("transaction doesn't create an asset")
    made = AssetDescription(id_text(asset_id), tx.name, tx.symbol, str(tx.denomination))
    objects.assets.put(cached, asset_id, made)
    return made


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
    params: BalanceParams, chain: AssetChainReader, view: ChainView, addresses: AddressParser, objects: AssetObjects
) -> Balance:
    address = await _owner(params.address, addresses)
    wanted = _asset_id(params.asset_id, view)
    held = (await _holdings(chain, HoldingsKey(address, params.include_partial), objects)).assets.get(wanted)
    if held is None:
        return Balance("0", [])
    if held.amount > UINT64_MAX:
        raise CallFailed("overflow")
    return Balance(str(held.amount), held.outputs)


async def get_all_balances(
    params: AddressParams, chain: AssetChainReader, view: ChainView, addresses: AddressParser, objects: AssetObjects
) -> AllBalances:
    address = await _owner(params.address, addresses)
    holdings = await _holdings(chain, HoldingsKey(address, params.include_partial), objects)
    held = [(view.asset_name(asset_id), min(UINT64_MAX, one.amount)) for asset_id, one in holdings.assets.items()]
    return AllBalances([AssetBalance(name, str(amount)) for name, amount in sorted(held)])


async def _holdings(chain: AssetChainReader, key: HoldingsKey, objects: AssetObjects) -> AssetHoldings:
    now_s = int(time.time())
    cached = objects.holdings.now()
    known = cached.get(key)
    if known is not None and known.since <= now_s < known.until:
        return known
    made = await _held_now(chain, key, now_s)
    objects.holdings.put(cached, key, made, 1 + made.count)
    return made


async def _held_now(chain: AssetChainReader, key: HoldingsKey, now_s: int) -> AssetHoldings:
    """What an address holds. Its outputs are read in bounded pieces, so that other requests can run in between, and
    from the start again when a block was accepted meanwhile."""
    for attempt in range(_ATTEMPTS):
        found = AssetHoldings(now_s, partial=key.partial)
        below, height = NEWEST, await chain.height()
        last_try = attempt == _ATTEMPTS - 1  # then in one piece, whatever its size
        while True:
            utxos = await chain.utxos(key.address, below, -1 if last_try else PAGE_MAX)
            found.add([utxo.raw for utxo in utxos])
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
        utxos=output_texts(page.utxos, params.encoding),
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
