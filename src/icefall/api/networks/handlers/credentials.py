"""The signatures with which listed outputs of X, C and the shared memory were consumed: some reads for a whole page."""

from collections.abc import Iterator, Sequence

from icefall.api.networks.network import PrimaryNetwork
from icefall.api.networks.render.outputs import credentials_of
from icefall.api.networks.schema.x_chain import UtxoCredential
from icefall.wire.avm.codec import unpack_tx
from icefall.wire.avm.utxos import consumed, imported
from icefall.wire.container.core_txs import unpack_core_tx
from icefall.wire.ids import PLATFORM_CHAIN, input_id
from icefall.wire.packer import GENESIS_SIZE_MAX
from icefall.wire.pvm.codec import unpack_tx as unpack_platform_tx
from icefall.wire.pvm.types import PlatformImportTx
from icefall.xchain.outputs import ListedOutput

_Signed = Iterator[tuple[bytes, Sequence[bytes]]]  # the ID of an output, and the signatures for it


async def credentials_of_spent(
    network: PrimaryNetwork, rows: Sequence[ListedOutput]
) -> dict[bytes, list[UtxoCredential]]:
    """The credentials of those that are consumed, by the ID of the output."""
    spenders: dict[bytes, dict[bytes, None]] = {}
    for row in rows:
        if row.spent_txid is not None:
            spenders.setdefault(row.destination, {})[row.spent_txid] = None
    signed: dict[bytes, Sequence[bytes]] = {}
    for raw in await network.x_lists.raw_txs(list(spenders.get(network.x_chain_id, ()))):
        signed.update(_on_x(raw))
    for raw in await network.c_lists.raw_txs(list(spenders.get(network.c_chain_id, ()))):
        signed.update(_on_c(raw))
    on_p = list(spenders.get(PLATFORM_CHAIN, ()))
    for tx in (await network.lists.txs_with_ids(on_p)).values() if on_p else ():
        signed.update(_on_p(tx.raw))
    return {
        row.utxo_id: credentials_of(signed[row.utxo_id], None)
        for row in rows
        if row.spent_txid is not None and row.utxo_id in signed
    }


def _on_x(raw: bytes) -> _Signed:
    tx = unpack_tx(raw, GENESIS_SIZE_MAX)
    for given, credential in zip((*consumed(tx), *imported(tx)), tx.credentials, strict=False):
        yield input_id(given.txid, given.output_index), getattr(credential, "signatures", ())


def _on_c(raw: bytes) -> _Signed:
    tx = unpack_core_tx(raw)
    for given, signatures in zip(tx.inputs, tx.signatures, strict=False):
        yield input_id(given.txid, given.output_index), signatures


def _on_p(raw: bytes) -> _Signed:
    tx = unpack_platform_tx(raw, GENESIS_SIZE_MAX)
    if isinstance(tx.unsigned, PlatformImportTx):
        credentials = tx.credentials[len(tx.unsigned.inputs) :]
        for given, credential in zip(tx.unsigned.imported_inputs, credentials, strict=False):
            yield input_id(given.txid, given.output_index), credential.signatures
