"""P-Chain blocks as the other chains see them: height, parent, transaction IDs and exports.

The whole block is decoded for it, because a transaction in it has no length and ends only where its last field does.
"""

from collections.abc import Iterator

from icefall.wire.container.proposer import Export, ForeignBlock, unpack_container
from icefall.wire.errors import WireError
from icefall.wire.pvm.codec import unpack_block
from icefall.wire.pvm.parts import pack_transferable_output
from icefall.wire.pvm.types import PlatformBlock, PlatformExportTx, PlatformTx


def block_in_container(raw: bytes) -> bytes:
    """The block inside a container, which in the time before there were proposers is the container itself."""
    try:
        return unpack_container(raw).inner
    except WireError:
        return raw


def unpack_platform_block(raw: bytes) -> ForeignBlock:
    """Read a P-Chain block without its proposer's wrapping."""
    return foreign_block(unpack_block(raw))


def foreign_block(block: PlatformBlock) -> ForeignBlock:
    """Reduce a decoded block to what the other chains need of it."""
    txs = block.txs if block.proposal is None else (*block.txs, block.proposal)
    exports = tuple([export for tx in txs for export in _exports(tx)])
    txids = tuple([tx.txid for tx in txs])
    return ForeignBlock(block.block_id, block.parent_id, block.height, block.time, txids, exports)


def _exports(tx: PlatformTx) -> Iterator[Export]:
    """The exported outputs, whose indices follow those of the ordinary ones."""
    unsigned = tx.unsigned
    if isinstance(unsigned, PlatformExportTx):
        for index, output in enumerate(unsigned.exported_outputs, len(unsigned.outputs)):
            yield Export(unsigned.destination_chain, tx.txid, index, pack_transferable_output(output))
