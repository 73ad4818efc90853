"""How call data is stored: with runs of zeros packed, and without what a transfer of the same transaction repeats.

The functions `transfer` and `transferFrom` of a token log what they were called with. Where all that follows the
selector is the recipient and the value of the transaction's first ERC-20 transfer, or its sender, recipient and value,
only the number of these words is stored.
"""

import re

from icefall.evm.model import Erc20TransferRow

_RUN = re.compile(rb"\x00{1,255}")
_PACKED_RUN = re.compile(rb"\x00(.)", re.DOTALL)
_PACKED_RUNS = tuple(bytes([0, n]) for n in range(256))  # by length
_WORD = 32
REPEATS_TRANSFER = b"\0\0"  # no run of zeros has length 0
_REPEATS = {words * _WORD: REPEATS_TRANSFER + bytes([words]) for words in (2, 3)}  # by length


def pack_data(data: bytes) -> bytes:
    """Call data is mostly zeros: a run of them becomes a zero and its length."""
    return _RUN.sub(_pack_run, data)


def _pack_run(run: re.Match[bytes]) -> bytes:
    start, end = run.span()
    return _PACKED_RUNS[end - start]


def unpack_data(packed: bytes) -> bytes:
    return _PACKED_RUN.sub(lambda run: bytes(run[1][0]), packed)


def pack_input(arguments: bytes, transfer: Erc20TransferRow | None) -> bytes:
    """`arguments`: what follows the selector. `transfer`: the transaction's first of an ERC-20 token."""
    size = len(arguments)
    if transfer is not None and size in _REPEATS:
        repeated = _words(transfer.sender, transfer.to, transfer.value)[-size:]
        if arguments == repeated:
            return _REPEATS[size]
    return pack_data(arguments)


def unpack_input(packed: bytes, sender: bytes, recipient: bytes, value: int) -> bytes:
    """Of what begins with REPEATS_TRANSFER."""
    return _words(sender, recipient, value)[-packed[-1] * _WORD :]


def _words(sender: bytes, recipient: bytes, value: int) -> bytes:
    return sender.rjust(_WORD, b"\0") + recipient.rjust(_WORD, b"\0") + value.to_bytes(_WORD, "big")
