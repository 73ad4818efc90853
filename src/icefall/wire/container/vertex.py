"""Vertices: the containers of X before its blocks. Each names its parents and holds transactions, but no time."""

from itertools import pairwise

import msgspec

from icefall.wire.errors import WireError
from icefall.wire.ids import hash256
from icefall.wire.packer import Layout, Unpacker, pack_arrays, pack_blob, u16, u32, u64

PARENTS_MAX = TXS_MAX = 128
SIZE_MAX = 1 << 20
ORDINARY, STOP = 0, 1  # codec versions: the last vertex has one of its own, and no transactions

_VERSION = Layout("length")
_HEAD = Layout(32, "uint64")


class Vertex(msgspec.Struct, frozen=True, gc=False):
    """A vertex; parents and transactions are in the order of their IDs."""

    vertex_id: bytes
    chain_id: bytes
    height: int
    parents: tuple[bytes, ...]
    txs: tuple[bytes, ...]
    is_stop: bool
    size: int


def unpack_vertex(raw: bytes) -> Vertex:
    """A vertex, checked as far as its bytes tell: the rules of form that every node applies to them."""
    if len(raw) > SIZE_MAX:
        raise WireError(f"a vertex has at most {SIZE_MAX} bytes, got {len(raw)}")
    source = Unpacker(raw)
    (version,) = source.take(_VERSION)
    if version not in (ORDINARY, STOP):
        raise WireError(f"a vertex is of codec version 0 or 1, got {version}")
    chain_id, height = source.take(_HEAD)
    epoch = source.u32() if version == ORDINARY else 0
    parents = source.arrays(_at_most(source.count(), PARENTS_MAX, "parents"), 32)
    txs: tuple[bytes, ...] = ()
    if version == ORDINARY:
        txs = tuple([source.blob() for _ in range(_at_most(source.count(), TXS_MAX, "transactions"))])
        if not txs:
            raise WireError("a vertex has at least one transaction")
    source.finish()
    if epoch:
        raise WireError(f"the epoch of a vertex must be 0, got {epoch}")
    if not _is_ascending(parents):
        raise WireError("the parents of a vertex are not in the order of their IDs")
    if not _is_ascending([hash256(one) for one in txs]):
        raise WireError("the transactions of a vertex are not in the order of their IDs")
    return Vertex(hash256(raw), chain_id, height, parents, txs, version == STOP, len(raw))


def pack_vertex(chain_id: bytes, height: int, parents: tuple[bytes, ...], txs: tuple[bytes, ...]) -> bytes:
    """The bytes of a vertex; without transactions, those of the last one."""
    head = chain_id + u64(height)
    ordered = pack_arrays(tuple(sorted(parents)))
    if not txs:
        return u16(STOP) + head + ordered
    listed = b"".join(pack_blob(one) for one in sorted(txs, key=hash256))
    return u16(ORDINARY) + head + u32(0) + ordered + u32(len(txs)) + listed


def _at_most(count: int, limit: int, what: str) -> int:
    if count > limit:
        raise WireError(f"a vertex has at most {limit} {what}, got {count}")
    return count


def _is_ascending(ids: tuple[bytes, ...] | list[bytes]) -> bool:
    return all(one < other for one, other in pairwise(ids))
