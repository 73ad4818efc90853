"""The encoding of stored values: positions, numbers, call data, kinds of transactions and call trees. Pure.

A position in a chain is one integer that sorts like the chain: the block number, then an index inside the block.
Numbers take as few bytes as they can. Call data is mostly zeros, and often repeats the transfer that it asked for.
"""

import re
import zlib
from itertools import islice
from typing import Any

import msgspec

from icefall.evm.model import CallType, Erc20TransferRow, NativeTx
from icefall.wire.evm.types import Calls, TreeCall

# -- positions ---------------------------------------------------------------------------------------------------

BITS = 24  # transactions, or logs, of one block
PER_BLOCK = 1 << BITS
INDEX_BITS = PER_BLOCK - 1
BLOCK_MAX = (1 << (63 - BITS)) - 1


def position_of(block: int, index: int) -> int:
    """The position of transaction or log number `index` of a block."""
    return block << BITS | index


def block_of(position: int) -> int:
    return position >> BITS


def index_of(position: int) -> int:
    return position & INDEX_BITS


def above(block: int) -> int:
    """The first position that lies in a later block."""
    return (block + 1) << BITS


# -- numbers -----------------------------------------------------------------------------------------------------

_from_bytes = int.from_bytes  # found once: pages unpack a hundred numbers
_SIZES = tuple(bytes([n]) for n in range(256))
_SMALL = tuple(bytes([1, n]) if n else b"\x00" for n in range(256))
# Where several numbers are packed, these codes take the place of a length, which is 32 at most:
_ITSELF = 0x20  # up to 0x7f: a number from 1 to 95, plus this
_ROUND = 0x80  # the power of ten with which the next byte is multiplied, plus this
_ABSENT = 0xFF
_POWERS = tuple(10**n for n in range(_ABSENT - _ROUND))
_COUNT_MAX = 1 << 30  # more numbers than are ever packed together


def pack_uint(number: int) -> bytes:
    """Pack a number as a length byte and its bytes, big-endian without leading zeros."""
    if number < 256:
        return _SMALL[number]
    size = (number.bit_length() + 7) >> 3
    return _SIZES[size] + number.to_bytes(size, "big")


def unpack_uint(packed: bytes) -> int:
    return _from_bytes(packed[1:], "big")


class PackedUints(dict[int | None, bytes]):
    """A cache of numbers as `unpack_uints` reads them, one after another; None is an absent one. Each is packed once:
    prices and limits repeat. People and wallets choose round ones."""

    def __missing__(self, number: int | None) -> bytes:
        packed = self[number] = _packed(number)
        return packed


def _packed(number: int | None) -> bytes:
    if number is None:
        return _SIZES[_ABSENT]
    if 0 < number < _ROUND - _ITSELF:
        return _SIZES[_ITSELF + number]
    if number < 256 or number % 10:
        return pack_uint(number)
    digits, power = number, 0
    while not digits % 10:
        digits, power = digits // 10, power + 1
    return bytes([_ROUND + power, digits]) if digits < 256 else pack_uint(number)


def unpack_uints(packed: bytes, count: int = _COUNT_MAX) -> list[Any]:
    """Return the numbers that `PackedUints` packed, one after another, or the first `count` of them."""
    numbers: list[Any] = []
    add, rest = numbers.append, iter(packed)
    for code in islice(rest, count):
        if code >= _ROUND:
            add(None if code == _ABSENT else next(rest) * _POWERS[code - _ROUND])
        elif code > _ITSELF:
            add(code - _ITSELF)
        elif code > 2:
            add(_from_bytes(islice(rest, code), "big"))
        else:  # the shortest lengths are the most frequent
            add(next(rest) << 8 | next(rest) if code == 2 else next(rest) if code else 0)
    return numbers


# -- call data ---------------------------------------------------------------------------------------------------

_RUN = re.compile(rb"\x00{1,255}")
_PACKED_RUN = re.compile(rb"\x00(.)", re.DOTALL)
_PACKED_RUNS = tuple(bytes([0, n]) for n in range(256))  # by length
_WORD = 32
REPEATS_TRANSFER = b"\0\0"  # no run of zeros has length 0
_REPEATS = {words * _WORD: REPEATS_TRANSFER + bytes([words]) for words in (2, 3)}  # by length


def pack_data(data: bytes) -> bytes:
    """Pack data that is mostly zeros: a run of them becomes a zero and its length."""
    return _RUN.sub(_pack_run, data)


def _pack_run(run: re.Match[bytes]) -> bytes:
    start, end = run.span()
    return _PACKED_RUNS[end - start]


def unpack_data(packed: bytes) -> bytes:
    return _PACKED_RUN.sub(lambda run: bytes(run[1][0]), packed)


def pack_input(arguments: bytes, transfer: Erc20TransferRow | None) -> bytes:
    """Pack the arguments of a call, which follow its selector. `transfer` is the first ERC-20 one of its
    transaction."""
    size = len(arguments)
    if transfer is not None and size in _REPEATS:
        repeated = _words(transfer.sender, transfer.to, transfer.value)[-size:]
        if arguments == repeated:
            return _REPEATS[size]
    return pack_data(arguments)


def unpack_input(packed: bytes, sender: bytes, recipient: bytes, value: int) -> bytes:
    """The arguments of a call whose packed form begins with REPEATS_TRANSFER."""
    return _words(sender, recipient, value)[-packed[-1] * _WORD :]


def _words(sender: bytes, recipient: bytes, value: int) -> bytes:
    return sender.rjust(_WORD, b"\0") + recipient.rjust(_WORD, b"\0") + value.to_bytes(_WORD, "big")


# -- kinds of transactions ---------------------------------------------------------------------------------------

TRANSFER = bytes.fromhex("a9059cbb")  # transfer(address,uint256)
_TRANSFER_CALL = 3  # a contract call with that selector, which is not stored then
CALL_TYPES = (*CallType, CallType.CONTRACT_CALL)  # by the lowest two bits
IMPLIED_SELECTORS = (b"", b"", b"", TRANSFER)  # by the same: the selector where none is stored
_CALL_NUMBERS = {call_type: number for number, call_type in enumerate(CallType)}


def pack_kind(tx: NativeTx) -> tuple[int, bytes]:
    """The kind of a transaction and its selector, as they are stored."""
    kind = tx.type_id << 3 | tx.status << 2
    if tx.selector == TRANSFER:
        return kind | _TRANSFER_CALL, b""
    return kind | _CALL_NUMBERS[tx.call_type], tx.selector


def selector_of(kind: int, stored: bytes) -> bytes:
    return stored or IMPLIED_SELECTORS[kind & 3]


# -- call trees --------------------------------------------------------------------------------------------------

_COMPRESSION = 6
_WIDE = 1 << 63


class _StoredCall(msgspec.Struct, array_like=True, gc=False):
    """A TreeCall as it is stored; numbers of more than 63 bits are bytes."""

    depth: int
    opcode: str
    sender: bytes
    to: bytes
    value: int | bytes
    gas: int
    gas_used: int
    input: bytes
    output: bytes
    error: str
    is_reverted: bool


_calls_decoder = msgspec.msgpack.Decoder(tuple[_StoredCall, ...])


def pack_calls(calls: Calls) -> bytes:
    """Pack the calls of a transaction: MessagePack, compressed. Most of it is zeros and repeated addresses."""
    stored = [msgspec.structs.astuple(call) for call in calls]
    narrow = [(*row[:4], row[4] if row[4] < _WIDE else row[4].to_bytes(32, "big"), *row[5:]) for row in stored]
    return zlib.compress(msgspec.msgpack.encode(narrow), _COMPRESSION)


def unpack_calls(packed: bytes) -> Calls:
    rows = _calls_decoder.decode(zlib.decompress(packed))
    return tuple(
        TreeCall(
            row.depth,
            row.opcode,
            row.sender,
            row.to,
            int.from_bytes(row.value, "big") if isinstance(row.value, bytes) else row.value,
            row.gas,
            row.gas_used,
            row.input,
            row.output,
            row.error,
            row.is_reverted,
        )
        for row in rows
    )
