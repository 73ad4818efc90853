"""Turns fetched blocks into rows: decodes, verifies and derives them, in the processes of decoder_processes.py.

It does so in two steps, `verify` and `derive`; batches.py explains them, and what happens in between.

Those processes import this module and nothing else: it must not need the event loop or the clients of upstreams, which
take half as long again to import.
"""

import gc
import itertools
import os
import pickle
import struct
import traceback
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol

import msgspec

from icefall.evm.deriving.derive import contract_lookups, derive, raw_rows
from icefall.evm.deriving.packing import packed
from icefall.evm.model import NO_RAW, CodeChange, ContractInfo, ContractLookups, RawBlock, RawRows, StoredRaw
from icefall.evm.packed import PackedBlock, to_bytes
from icefall.observe.cpu_samples import watch_requests
from icefall.wire.errors import WireError
from icefall.wire.evm.decode import decode_full
from icefall.wire.evm.types import FullBlock, RootMismatch
from icefall.wire.evm.verify import verify_full

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

    from icefall.upstream.evm.block_parts import FetchedBlock

_HELD_MAX = 32  # chunks of a chain between the two steps; for an abandoned batch the second never comes
GC_THRESHOLDS = (50_000, 20, 100)  # rows and structs come and go by the million, none of them in a cycle
SIZE = struct.Struct("=Q")  # how many pieces or bytes follow in a pipe
Ticket = tuple[int, int]  # a chain, and the number of a chunk
_Parts = tuple[bytes, bytes, bytes | None, bytes | None, str, str]  # as decode_full takes them


class BlockOutline(msgspec.Struct, frozen=True):
    """The part of a verified block that the follower needs before it can be derived."""

    number: int
    block_hash: bytes
    parent_hash: bytes
    lookups: ContractLookups
    has_diffs: bool


class Rejection(msgspec.Struct, frozen=True):
    """The reason why the block at `index` of a chunk is invalid. `by_root`: found by a check that --verify-roots turns
    on."""

    index: int
    reason: str
    by_root: bool


class VerifiedChunk(msgspec.Struct, frozen=True):
    """A chunk after its first step: the blocks before the first invalid one."""

    ticket: Ticket
    outlines: list[BlockOutline]
    derived: list[PackedBlock]  # the rows of the first of them, up to one that needs a lookup
    unverified: list[str]  # descriptions of what could not be verified
    rejected: Rejection | None = None


class RawChunk(msgspec.Struct, frozen=True):
    """The logs and calls of the blocks before the first invalid one."""

    blocks: list[RawBlock]
    rejected: Rejection | None = None


class DecoderDied(Exception):
    """The decoding process has died: nothing is lost, the work must be done again."""


class DecoderState:
    """The verified blocks that wait for their second step, in the process that decodes them."""

    def __init__(self) -> None:
        self._held: dict[int, OrderedDict[int, tuple[int, list[tuple[FullBlock, RawRows]]]]] = {}  # from which index on

    def verify(
        self, ticket: Ticket, parts: Sequence[_Parts], roots: bool, raw: StoredRaw, fixed: ContractInfo
    ) -> VerifiedChunk:
        """Verify a chunk, and derive its first blocks. `fixed`: what is known of the chain without a lookup."""
        outlines: list[BlockOutline] = []
        derived: list[PackedBlock] = []
        unverified: dict[str, None] = {}
        held: list[tuple[FullBlock, RawRows]] = []
        rejected = None
        for index, part in enumerate(parts):
            try:
                full = decode_full(*part)
                unverified.update(dict.fromkeys(verify_full(full, None, roots=roots)))
                its_raw = _raw_rows(full, part, raw)
            except WireError as error:
                rejected = Rejection(index, str(error), isinstance(error, RootMismatch))
                break
            block = full.block
            lookups = contract_lookups(full)
            outlines.append(
                BlockOutline(block.number, block.block_hash, block.parent_hash, lookups, full.diffs is not None)
            )
            if held or lookups.code or lookups.probes:
                held.append((full, its_raw))
            else:
                derived.append(_packed(full, its_raw, fixed)[0])
        if held:
            chain, number = ticket
            of_chain = self._held.setdefault(chain, OrderedDict())
            of_chain[number] = len(derived), held
            while len(of_chain) > _HELD_MAX:
                of_chain.popitem(last=False)
        return VerifiedChunk(ticket, outlines, derived, list(unverified), rejected)

    def derive(self, ticket: Ticket, indices: range, info: ContractInfo) -> list[PackedBlock]:
        """The rows of the chunk's blocks at `indices`; stops early after a block whose code changes only state can
        show."""
        chain, number = ticket
        found_chunk = self._held.setdefault(chain, OrderedDict()).get(number)
        if found_chunk is None:
            raise DecoderDied("the process that verified these blocks has died")
        first, held = found_chunk
        has_code, found = dict(info.has_code), []
        info = msgspec.structs.replace(info, has_code=has_code)
        for full, raw in held[indices.start - first : indices.stop - first]:
            block, code_changes = _packed(full, raw, info)
            found.append(block)
            if any(change.has_code is None for change in code_changes):
                break
            has_code.update((change.address, bool(change.has_code)) for change in code_changes)
        if indices.start - first + len(found) == len(held):
            del self._held[chain][number]
        return found


def _packed(full: FullBlock, raw: RawRows, info: ContractInfo) -> tuple[PackedBlock, Sequence[CodeChange]]:
    rows = derive(full, info)
    return packed(rows if raw is NO_RAW else msgspec.structs.replace(rows, raw=raw)), rows.code_changes


def decode_raw(parts: Sequence[_Parts], roots: bool, raw: StoredRaw) -> RawChunk:
    """Verify and pack the logs and calls of blocks that are stored already."""
    found: list[RawBlock] = []
    for index, part in enumerate(parts):
        try:
            full = decode_full(*part)
            verify_full(full, None, roots=roots)
            found.append(RawBlock(full.block.number, full.block.block_hash, _raw_rows(full, part, raw)))
        except WireError as error:
            return RawChunk(found, Rejection(index, str(error), isinstance(error, RootMismatch)))
    return RawChunk(found)


def _raw_rows(full: FullBlock, part: _Parts, raw: StoredRaw) -> RawRows:
    return raw_rows(full, part[2], part[4], raw) if raw.logs or raw.calls or raw.matched else NO_RAW


class BlockDecoder(Protocol):
    async def verify(
        self, chain: int, blocks: "Sequence[FetchedBlock]", fixed: ContractInfo, *, roots: bool, raw: StoredRaw
    ) -> VerifiedChunk: ...

    async def derive(self, ticket: Ticket, indices: range, info: ContractInfo) -> list[PackedBlock]: ...

    async def raw(self, blocks: "Sequence[FetchedBlock]", *, roots: bool, raw: StoredRaw) -> RawChunk: ...

    def close(self) -> None: ...


def parts_of(blocks: "Sequence[FetchedBlock]") -> list[Any]:
    """The fetched blocks as they are sent, which are `_Parts` in the other process."""
    whole = _sent_whole
    return [
        (whole(one.block), whole(one.receipts), whole(one.calls), whole(one.diffs), one.calls_format, one.diffs_format)
        for one in blocks
    ]


def _sent_whole(part: bytes | None) -> pickle.PickleBuffer | bytes | None:
    """The part as a piece of its own in the pipe, which is not copied before and arrives as the same bytes."""
    return pickle.PickleBuffer(part) if isinstance(part, bytes) else part


_state = DecoderState()  # of the other process


def verify_here(
    ticket: Ticket, parts: Sequence[_Parts], roots: bool, raw: StoredRaw, fixed: ContractInfo
) -> tuple[VerifiedChunk, bytes]:
    """Verify a chunk in this process, and return the rows that are ready beside the rest."""
    chunk = _state.verify(ticket, parts, roots, raw, fixed)
    return msgspec.structs.replace(chunk, derived=[]), to_bytes(chunk.derived)


def derive_here(ticket: Ticket, indices: range, info: ContractInfo) -> bytes:
    return to_bytes(_state.derive(ticket, indices, info))


def serve(requests: "Sequence[Connection[Any, Any]]", answers: "Connection[Any, Any]") -> None:
    """Run the other process: make the calls it is sent, one from each pipe in turn, until the process that started it
    closes them or ends in any other way."""
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLDS)
    watch_requests()
    with suppress(BrokenPipeError), ExitStack() as opened:
        files = [opened.enter_context(open(pipe.fileno(), "rb", closefd=False)) for pipe in requests]
        incoming = itertools.cycle(files)
        while sent := _next_frame(next(incoming)):
            work, args = pickle.loads(sent[0], buffers=sent[1:])  # noqa: S301 - of the process that started this one
            outcome: tuple[bool, Any]
            try:
                outcome = True, work(*args)
            except Exception as error:
                error.add_note(traceback.format_exc())  # where it was raised would be lost on the way
                outcome = False, error
            answer = pickle.dumps(outcome, pickle.HIGHEST_PROTOCOL)
            rest = memoryview(SIZE.pack(len(answer)) + answer)
            while rest:
                rest = rest[os.write(answers.fileno(), rest) :]


def _next_frame(incoming: BinaryIO) -> list[bytes]:
    """The pieces of a frame; none where there is no frame, or not all of it: its writer was killed meanwhile."""
    head = incoming.read(SIZE.size)
    count = SIZE.unpack(head)[0] if len(head) == SIZE.size else 0
    sizes = incoming.read(SIZE.size * count)
    if len(sizes) < SIZE.size * count:
        return []
    pieces = []
    for (size,) in SIZE.iter_unpack(sizes):
        pieces.append(incoming.read(size))
        if len(pieces[-1]) < size:
            return []
    return pieces


def frame(work: Callable[..., Any], args: tuple[Any, ...]) -> list[bytes | memoryview]:
    """Pack a call as it goes through a pipe: the number of its pieces, their sizes, and the pieces."""
    parts: list[pickle.PickleBuffer] = []
    pickled = pickle.dumps((work, args), pickle.HIGHEST_PROTOCOL, buffer_callback=parts.append)
    pieces = [memoryview(pickled), *[part.raw() for part in parts]]
    return [b"".join(map(SIZE.pack, [len(pieces), *map(len, pieces)])), *pieces]
