"""Blocks, transactions and vertices of the X-Chain: a page is read in few statements."""

from collections.abc import Sequence

from msgspec import UNSET

from icefall.api.networks.network import PrimaryNetwork, asset_name
from icefall.api.networks.render.blocks import proposer_of
from icefall.api.networks.render.outputs import asset_of, credentials_of, listed_utxo, unseen_utxo
from icefall.api.networks.render.utxos import sums
from icefall.api.networks.schema.blocks import PrimaryNetworkBlock
from icefall.api.networks.schema.x_chain import AssetDetails, TransactionVertex, UtxoResult, XTransaction, XVertex
from icefall.wire.avm.codec import unpack_block, unpack_tx
from icefall.wire.avm.types import CreateAssetTx, ExportTx, ImportTx, Tx
from icefall.wire.avm.utxos import consumed, exported, imported, produced
from icefall.wire.ids import hash256, id_from_text, id_text, input_id
from icefall.wire.packer import GENESIS_SIZE_MAX
from icefall.xchain.listed import assets_of
from icefall.xchain.listing import AssetChainBlock, AssetChainTx
from icefall.xchain.outputs import ListedOutput
from icefall.xchain.vertices import StoredVertex, VertexOfTx

_Known = dict[tuple[bytes, bytes], ListedOutput]
_BLOCK_TYPE = "StandardBlock"


def x_block(row: AssetChainBlock) -> PrimaryNetworkBlock:
    block = unpack_block(row.inner, GENESIS_SIZE_MAX)
    txs = [id_text(tx.txid) for tx in block.txs]
    return PrimaryNetworkBlock(
        block_number=str(row.height),
        block_hash=id_text(row.block_id),
        parent_hash=id_text(block.parent_id),
        block_timestamp=block.time,
        block_type=_BLOCK_TYPE,
        tx_count=len(txs),
        transactions=txs,
        block_size_bytes=row.inner_size,
        proposer_details=proposer_of(row.container, row.inner_size),
    )


def asset_details(txid: bytes, unsigned: CreateAssetTx, time: int) -> AssetDetails:
    found = asset_name(unsigned)
    return AssetDetails(
        asset_id=id_text(txid),
        name=found.name,
        symbol=found.symbol,
        denomination=found.denomination,
        type=found.type,
        created_at_timestamp=time,
        cap=found.cap,
    )


def utxo_count(raw: bytes) -> int:
    """How many outputs a transaction consumes and makes."""
    tx = unpack_tx(raw, GENESIS_SIZE_MAX)
    return len(_utxo_ids(tx))


def _utxo_ids(tx: Tx) -> list[bytes]:
    """The IDs of outputs that a transaction consumes or makes, on whichever chain."""
    taken = [input_id(one.txid, one.output_index) for one in (*consumed(tx), *imported(tx))]
    return taken + [input_id(one.txid, one.output_index) for one in (*produced(tx), *exported(tx))]


async def x_transactions(
    network: PrimaryNetwork, rows: Sequence[AssetChainTx], *, with_keys: bool = False
) -> list[XTransaction]:
    """Transactions as they are sent. `with_keys`: with the keys of their signatures, which take long to recover."""
    txs = [unpack_tx(row.raw, GENESIS_SIZE_MAX) for row in rows]
    ids = [utxo_id for tx in txs for utxo_id in _utxo_ids(tx)]
    known = await network.outputs.with_ids(list(dict.fromkeys(ids)))
    await network.assets.load({asset for tx in txs for asset in assets_of(tx)})
    of_dag = [row.seq for row in rows if not row.is_linear]
    vertices = await network.vertices.of_txs(of_dag) if of_dag else {}
    return [
        _transaction(network, row, tx, known, vertices.get(row.seq, []), with_keys=with_keys)
        for row, tx in zip(rows, txs, strict=True)
    ]


def vertex(row: StoredVertex, txids: Sequence[bytes], time: int) -> XVertex:
    """A vertex as it is sent. `time` is that of block 0: a vertex has none of its own, and none is later."""
    return XVertex(
        vertex_hash=id_text(row.vertex_id),
        parent_hashes=[id_text(one) for one in row.parent_ids],
        vertex_height=row.height,
        vertex_index=row.number,
        vertex_timestamp=time,
        tx_count=len(txids),
        transactions=[id_text(one) for one in txids],
        vertex_size_bytes=row.size,
    )


def _transaction(
    network: PrimaryNetwork,
    row: AssetChainTx,
    tx: Tx,
    known: _Known,
    vertices: Sequence[VertexOfTx],
    *,
    with_keys: bool,
) -> XTransaction:
    unsigned, own = tx.unsigned, network.x_chain_id
    made = [known[input_id(one.txid, one.output_index), own] for one in (*produced(tx), *exported(tx))]
    taken = _consumed(network, row, tx, known, with_keys=with_keys)
    fields = {
        "tx_hash": id_text(row.txid),
        "timestamp": row.time,
        "tx_type": type(unsigned).__name__,
        "memo": f"0x{unsigned.memo.hex()}",
        "consumed_utxos": taken,
        "emitted_utxos": [listed_utxo(network, one) for one in made],
        "amount_unlocked": sums(network, [(id_from_text(one.asset.asset_id), int(one.asset.amount)) for one in taken]),
        "amount_created": sums(network, map(asset_of, made)),
        "source_chain": id_text(unsigned.source_chain) if isinstance(unsigned, ImportTx) else UNSET,
        "destination_chain": id_text(unsigned.destination_chain) if isinstance(unsigned, ExportTx) else UNSET,
        "asset_created": asset_details(row.txid, unsigned, row.time) if isinstance(unsigned, CreateAssetTx) else UNSET,
    }
    if row.is_linear:
        fields |= {"chain_format": "linear", "block_height": row.height, "block_hash": id_text(row.block_id)}
    else:
        named = [
            TransactionVertex(hash=id_text(one.vertex_id), height=one.height, timestamp=row.time) for one in vertices
        ]
        fields |= {"chain_format": "non-linear", "vertices": named}
    return XTransaction(**fields)  # type: ignore[arg-type]


def _consumed(
    network: PrimaryNetwork, row: AssetChainTx, tx: Tx, known: _Known, *, with_keys: bool
) -> list[UtxoResult]:
    """What a transaction consumed, imported outputs last, each with the signatures for it."""
    digest = hash256(tx.unsigned_raw)
    key_digest = digest if with_keys else None
    found: list[UtxoResult] = []
    own = consumed(tx)
    for number, one in enumerate(own):
        signatures = _signatures(tx, number)
        output = known[input_id(one.txid, one.output_index), network.x_chain_id]
        found.append(listed_utxo(network, output, credentials=credentials_of(signatures, key_digest)))
    if isinstance(tx.unsigned, ImportTx):
        source = tx.unsigned.source_chain
        for number, given in enumerate(tx.unsigned.imported_inputs, len(own)):
            signatures = _signatures(tx, number)
            exported_there = known.get((input_id(given.txid, given.output_index), source))
            if exported_there is None:
                consumer, signed = (row.txid, row.time), (signatures, digest)
                found.append(unseen_utxo(network, given, source, network.x_chain_id, consumer, signed))
            else:
                credentials = credentials_of(signatures, key_digest)
                found.append(listed_utxo(network, exported_there, credentials=credentials))
    return found


def _signatures(tx: Tx, number: int) -> tuple[bytes, ...]:
    credential = tx.credentials[number] if number < len(tx.credentials) else None
    return getattr(credential, "signatures", ())
