"""Blocks and atomic transactions of the C-Chain."""

from collections.abc import Sequence

from icefall.api.networks.network import PrimaryNetwork
from icefall.api.networks.render.blocks import proposer_of
from icefall.api.networks.render.outputs import asset_of, credentials_of, listed_utxo, unseen_utxo
from icefall.api.networks.render.utxos import sums
from icefall.api.networks.schema.blocks import PrimaryNetworkBlock
from icefall.api.networks.schema.c_chain import CTransaction, EvmInput, EvmOutput
from icefall.api.networks.schema.x_chain import UtxoResult
from icefall.node.core_chain import CoreBlock, StoredCoreTx
from icefall.wire.container.core_txs import CoreTx, unpack_core_tx
from icefall.wire.container.coreth import unpack_coreth_block
from icefall.wire.container.platform import block_in_container
from icefall.wire.ids import id_text, input_id
from icefall.xchain.outputs import ListedOutput

_Known = dict[tuple[bytes, bytes], ListedOutput]
_BLOCK_TYPE = "Standard"
_NO_MEMO = "0x"


def c_block(row: CoreBlock) -> PrimaryNetworkBlock | None:
    """A block with the IDs of its atomic transactions; None where its bytes were not kept."""
    if row.container is None:
        return None
    inner = block_in_container(row.container)
    block = unpack_coreth_block(inner)
    return PrimaryNetworkBlock(
        block_number=str(row.height),
        block_hash=f"0x{row.block_id.hex()}",
        parent_hash=f"0x{block.parent_id.hex()}",
        block_timestamp=row.time,
        block_type=_BLOCK_TYPE,
        tx_count=len(block.txids),
        transactions=[id_text(txid) for txid in block.txids],
        block_size_bytes=len(inner),
        proposer_details=proposer_of(row.container, len(inner)),
    )


async def c_transactions(
    network: PrimaryNetwork, rows: Sequence[StoredCoreTx], *, with_keys: bool = False
) -> list[CTransaction]:
    """Transactions as they are sent. `with_keys`: with the keys of their signatures, which take long to recover."""
    txs = [unpack_core_tx(row.raw) for row in rows]
    ids = [input_id(one.txid, one.output_index) for tx in txs for one in tx.inputs]
    ids += [input_id(tx.txid, index) for tx in txs for index in range(len(tx.outputs))]
    known = await network.outputs.with_ids(list(dict.fromkeys(ids)))
    assets = {one.asset_id for tx in txs for one in tx.inputs} | {one.asset_id for tx in txs for one in tx.accounts}
    await network.assets.load(assets | {one.asset_id for tx in txs for one in tx.outputs})
    return [
        (_import if tx.is_import else _export)(network, row, tx, known, with_keys=with_keys)
        for row, tx in zip(rows, txs, strict=True)
    ]


def _fields(network: PrimaryNetwork, row: StoredCoreTx, tx: CoreTx) -> dict[str, object]:
    chains = tx.peer_chain, network.c_chain_id
    source, destination = chains if tx.is_import else chains[::-1]
    return {
        "tx_hash": id_text(row.txid),
        "block_height": row.height,
        "block_hash": f"0x{row.block_id.hex()}",
        "timestamp": row.time,
        "memo": _NO_MEMO,
        "source_chain": id_text(source),
        "destination_chain": id_text(destination),
    }


def _import(network: PrimaryNetwork, row: StoredCoreTx, tx: CoreTx, known: _Known, *, with_keys: bool) -> CTransaction:
    accounts = [(one.asset_id, one.amount) for one in tx.accounts]
    return CTransaction(
        tx_type="ImportTx",
        evm_outputs=[
            EvmOutput(to_address=f"0x{one.address.hex()}", asset=network.assets.amount(one.asset_id, one.amount))
            for one in tx.accounts
        ],
        consumed_utxos=_consumed(network, row, tx, known, with_keys=with_keys),
        amount_unlocked=sums(network, [(one.asset_id, one.input.amount) for one in tx.inputs]),
        amount_created=sums(network, accounts),
        **_fields(network, row, tx),  # type: ignore[arg-type]
    )


def _consumed(
    network: PrimaryNetwork, row: StoredCoreTx, tx: CoreTx, known: _Known, *, with_keys: bool
) -> list[UtxoResult]:
    found: list[UtxoResult] = []
    for number, given in enumerate(tx.inputs):
        signatures = _signatures(tx, number)
        output = known.get((input_id(given.txid, given.output_index), tx.peer_chain))
        if output is None:
            consumer, signed = (row.txid, row.time), (signatures, tx.digest)
            found.append(unseen_utxo(network, given, tx.peer_chain, network.c_chain_id, consumer, signed))
        else:
            credentials = credentials_of(signatures, tx.digest if with_keys else None)
            found.append(listed_utxo(network, output, credentials=credentials))
    return found


def _export(network: PrimaryNetwork, row: StoredCoreTx, tx: CoreTx, known: _Known, *, with_keys: bool) -> CTransaction:
    made = [known[input_id(tx.txid, index), network.c_chain_id] for index in range(len(tx.outputs))]
    digest = tx.digest if with_keys else None
    return CTransaction(
        tx_type="ExportTx",
        evm_inputs=[
            EvmInput(
                from_address=f"0x{one.address.hex()}",
                asset=network.assets.amount(one.asset_id, one.amount),
                credentials=credentials_of(_signatures(tx, number), digest),
            )
            for number, one in enumerate(tx.accounts)
        ],
        emitted_utxos=[listed_utxo(network, one) for one in made],
        amount_unlocked=sums(network, [(one.asset_id, one.amount) for one in tx.accounts]),
        amount_created=sums(network, map(asset_of, made)),
        **_fields(network, row, tx),  # type: ignore[arg-type]
    )


def _signatures(tx: CoreTx, number: int) -> tuple[bytes, ...]:
    return tx.signatures[number] if number < len(tx.signatures) else ()
