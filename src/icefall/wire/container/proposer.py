"""Containers: the proposer VM's wrapping around the blocks of the P-, X- and C-Chain.

A container's ID does not cover its signature, because the proposer signs that ID.
"""

import msgspec

from icefall.wire.errors import WireError
from icefall.wire.ids import hash256, input_id
from icefall.wire.packer import GENESIS_SIZE_MAX, VERSION_BYTES, Layout, pack_blob, reader, u32

SIGNED, OPTION, GRANITE = 0, 1, 2
EPOCH_DURATION_S = 30

_HEAD = Layout(32, "int64", "uint64")
_CERTIFICATE_AT = len(VERSION_BYTES) + 4 + _HEAD.size + 4  # behind the type, the head and the certificate's length
_EPOCH = Layout("uint64", "uint64", "int64")


class Epoch(msgspec.Struct, frozen=True, gc=False):
    """A span of time during which one P-Chain height decides the proposers."""

    p_chain_height: int
    number: int
    start_time: int


class Container(msgspec.Struct, frozen=True, gc=False):
    """A wrapped block. An option has no time or height of its own, and only `GRANITE` ones have an epoch."""

    type_id: int
    parent_id: bytes
    timestamp: int
    p_chain_height: int
    certificate: bytes
    inner: bytes
    epoch: Epoch | None
    signature: bytes
    raw: bytes
    container_id: bytes


def unpack_container(raw: bytes) -> Container:
    """A container; every byte must belong to it."""
    source = reader(raw, GENESIS_SIZE_MAX)
    type_id = source.type_id()
    if type_id == OPTION:
        parent_id, inner = source.fixed(32), source.blob()
        source.finish()
        return Container(type_id, parent_id, 0, 0, b"", inner, None, b"", raw, hash256(raw))
    if type_id not in (SIGNED, GRANITE):
        raise WireError(f"couldn't unmarshal interface: unknown type ID {type_id}")
    parent_id, timestamp, p_chain_height = source.take(_HEAD)
    certificate, inner = source.blob(), source.blob()
    epoch = Epoch(*source.take(_EPOCH)) if type_id == GRANITE else None
    named = raw[: source.offset]
    signature = source.blob()
    source.finish()
    return Container(
        type_id, parent_id, timestamp, p_chain_height, certificate, inner, epoch, signature, raw, hash256(named)
    )


def certificate_in(raw: bytes, inner_at: int) -> bytes:
    """The proposer's certificate in a container whose block begins at `inner_at`; empty if no proposer signed it, as
    those of a block that is not wrapped, of which `inner_at` is 0."""
    return raw[_CERTIFICATE_AT : max(inner_at - 4, 0)]


def pack_container(
    parent_id: bytes,
    timestamp: int,
    p_chain_height: int,
    inner: bytes,
    *,
    epoch: Epoch | None = None,
    certificate: bytes = b"",
    signature: bytes = b"",
) -> Container:
    """A container built here: of the older type, without an epoch, as the first block of a chain is."""
    type_id = SIGNED if epoch is None else GRANITE
    named = b"".join(
        (
            VERSION_BYTES + u32(type_id),
            _HEAD.pack(parent_id, timestamp, p_chain_height),
            pack_blob(certificate) + pack_blob(inner),
            _EPOCH.pack(epoch.p_chain_height, epoch.number, epoch.start_time) if epoch else b"",
        )
    )
    raw = named + pack_blob(signature)
    return Container(
        type_id, parent_id, timestamp, p_chain_height, certificate, inner, epoch, signature, raw, hash256(named)
    )


def next_epoch(parent: Container, duration_s: int = EPOCH_DURATION_S) -> Epoch:
    """The epoch of a block upon `parent`: a new one if the parent is past the end of the old one."""
    epoch = parent.epoch
    if epoch is None:
        return Epoch(parent.p_chain_height, 1, parent.timestamp)
    if parent.timestamp >= epoch.start_time + duration_s:
        return Epoch(parent.p_chain_height, epoch.number + 1, parent.timestamp)
    return epoch


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
