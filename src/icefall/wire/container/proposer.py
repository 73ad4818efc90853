"""Containers: the proposer VM's wrapping around the blocks of the P-, X- and C-Chain.

A container's ID does not cover its signature, because the proposer signs that ID.
"""

import msgspec

from icefall.wire.errors import WireError
from icefall.wire.ids import hash256
from icefall.wire.packer import GENESIS_SIZE_MAX, VERSION_BYTES, Layout, pack_blob, reader, u32

SIGNED, OPTION, GRANITE = 0, 1, 2
EPOCH_DURATION_S = 30

_HEAD = Layout(32, "int64", "uint64")
_EPOCH = Layout("uint64", "uint64", "int64")


class Epoch(msgspec.Struct, frozen=True, gc=False):
    """A span of time during which one P-Chain height decides the proposers."""

    p_chain_height: int
    number: int
    start_time: int


class Container(msgspec.Struct, frozen=True, gc=False):
    """A wrapped block. An option has no time or height of its own, and only `GRANITE` ones have an epoch."""

    kind: int
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
    kind = source.type_id()
    if kind == OPTION:
        parent_id, inner = source.fixed(32), source.blob()
        source.finish()
        return Container(kind, parent_id, 0, 0, b"", inner, None, b"", raw, hash256(raw))
    if kind not in (SIGNED, GRANITE):
        raise WireError(f"couldn't unmarshal interface: unknown type ID {kind}")
    parent_id, timestamp, p_chain_height = source.take(_HEAD)
    certificate, inner = source.blob(), source.blob()
    epoch = Epoch(*source.take(_EPOCH)) if kind == GRANITE else None
    named = raw[: source.offset]
    signature = source.blob()
    source.finish()
    return Container(
        kind, parent_id, timestamp, p_chain_height, certificate, inner, epoch, signature, raw, hash256(named)
    )


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
    """A container built here: of the older kind without an epoch, as the first block of a chain is."""
    kind = SIGNED if epoch is None else GRANITE
    named = b"".join(
        (
            VERSION_BYTES + u32(kind),
            _HEAD.pack(parent_id, timestamp, p_chain_height),
            pack_blob(certificate) + pack_blob(inner),
            _EPOCH.pack(epoch.p_chain_height, epoch.number, epoch.start_time) if epoch else b"",
        )
    )
    raw = named + pack_blob(signature)
    return Container(
        kind, parent_id, timestamp, p_chain_height, certificate, inner, epoch, signature, raw, hash256(named)
    )


def next_epoch(parent: Container, duration_s: int = EPOCH_DURATION_S) -> Epoch:
    """The epoch of a block upon `parent`: a new one if the parent is past the end of the old one."""
    epoch = parent.epoch
    if epoch is None:
        return Epoch(parent.p_chain_height, 1, parent.timestamp)
    if parent.timestamp >= epoch.start_time + duration_s:
        return Epoch(parent.p_chain_height, epoch.number + 1, parent.timestamp)
    return epoch
