"""The UTXOs that a transaction makes and spends. Numbering runs on from the base outputs into the special ones."""

from collections.abc import Callable, Iterator
from typing import Any

from icefall.wire.avm.types import (
    CreateAssetTx,
    ExportTx,
    ImportTx,
    MintOperation,
    NftMintOperation,
    NftTransferOperation,
    NftTransferOutput,
    OperationTx,
    Output,
    PropertyBurnOperation,
    PropertyMintOperation,
    Tx,
    Utxo,
    UtxoId,
)

# What an operation makes, in order.
_MADE: dict[type, Callable[[Any], list[Output]]] = {
    MintOperation: lambda op: [op.mint_output, op.transfer_output],
    NftMintOperation: lambda op: [NftTransferOutput(op.group_id, op.payload, owners) for owners in op.outputs],
    NftTransferOperation: lambda op: [op.output],
    PropertyMintOperation: lambda op: [op.mint_output, op.owned_output],
    PropertyBurnOperation: lambda op: [],
}


def produced(tx: Tx) -> list[Utxo]:
    """UTXOs that stay on this chain."""
    made: list[tuple[bytes, Output]] = [(out.asset_id, out.output) for out in tx.unsigned.outputs]
    made.extend(_special(tx))
    return [Utxo(tx.txid, index, asset_id, output) for index, (asset_id, output) in enumerate(made)]


def exported(tx: Tx) -> list[Utxo]:
    """UTXOs that an export puts into another chain's memory."""
    if not isinstance(tx.unsigned, ExportTx):
        return []
    first = len(tx.unsigned.outputs)
    return [
        Utxo(tx.txid, first + index, out.asset_id, out.output) for index, out in enumerate(tx.unsigned.exported_outputs)
    ]


def consumed(tx: Tx) -> list[UtxoId]:
    """UTXOs of this chain that are spent, in the order of the credentials that unlock them."""
    spent = [UtxoId(at.txid, at.output_index) for at in tx.unsigned.inputs]
    if isinstance(tx.unsigned, OperationTx):
        for operation in tx.unsigned.operations:
            spent.extend(operation.utxo_ids)
    return spent


def imported(tx: Tx) -> list[UtxoId]:
    """UTXOs that an import takes out of this chain's memory."""
    if not isinstance(tx.unsigned, ImportTx):
        return []
    return [UtxoId(at.txid, at.output_index) for at in tx.unsigned.imported_inputs]


def _special(tx: Tx) -> Iterator[tuple[bytes, Output]]:
    unsigned = tx.unsigned
    if isinstance(unsigned, CreateAssetTx):
        for state in unsigned.initial_states:
            for output in state.outputs:
                yield tx.txid, output
    elif isinstance(unsigned, OperationTx):
        for operation in unsigned.operations:
            for output in _MADE[type(operation.operation)](operation.operation):
                yield operation.asset_id, output
