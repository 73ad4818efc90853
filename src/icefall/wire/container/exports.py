"""What the asset chain needs of a P-Chain or C-Chain block: its ID, parent, height and time, and what it exports."""

import msgspec

from icefall.wire.ids import input_id
from icefall.wire.packer import VERSION_BYTES, u32


class Export(msgspec.Struct, frozen=True, gc=False):
    """A UTXO put into another chain's memory."""

    destination_chain: bytes
    txid: bytes
    output_index: int
    output_raw: bytes  # asset ID, type ID and output, as in the transaction

    @property
    def utxo_id(self) -> bytes:
        return input_id(self.txid, self.output_index)

    @property
    def utxo_raw(self) -> bytes:
        """The UTXO's bytes as the receiving chain stores and sends them."""
        return VERSION_BYTES + self.txid + u32(self.output_index) + self.output_raw


class ForeignBlock(msgspec.Struct, frozen=True, gc=False):
    """A block of another chain. `time` is None where the block leaves it to its parent."""

    block_id: bytes
    parent_id: bytes
    height: int
    time: int | None
    txids: tuple[bytes, ...]
    exports: tuple[Export, ...]

    def exports_to(self, chain_id: bytes) -> list[Export]:
        """The exports to one chain."""
        return [export for export in self.exports if export.destination_chain == chain_id]
