"""The description of a trace format: which requests give the calls and state diffs of a block, when an answer to one of
them is complete, and how it is decoded.

A new format is one module with its decoders and its `TraceFormat`, and one row of `TRACE_FORMATS` in decode.py. The row
says how upstreams are probed for it, and how blocks are fetched and decoded.
"""

from collections.abc import Callable, Sequence
from typing import Annotated, Any, NamedTuple, TypeVar

import msgspec

from icefall.wire.evm.hex import HexTexts
from icefall.wire.evm.types import Calls, IncompleteBlock, OtherTransactions, Trace, TxDiff

_T = TypeVar("_T")
JsonText = bytes | msgspec.Raw
Hash = Annotated[str, msgspec.Meta(pattern="^0x[0-9a-f]{64}$")]
RpcCall = tuple[str, tuple[Any, ...]]  # method and parameters
Joined = Callable[[Sequence[str], Sequence[JsonText]], bytes]

# The 16 bytes that CREATE3 libraries deploy with CREATE2: a proxy that runs CREATE on whatever it is called with.
CREATE3_PROXY_CODE = "0x67363d3d37363d34f03d5260086018f3"
# Where proxies store the address of their code: EIP-1967 (implementation, beacon) and EIP-1822.
IMPLEMENTATION_SLOTS = (
    b"360894a13ba1a3210667c828492db98dca3e2076cc3735a920a3ca505d382bbc",
    b"a3f0ad74e5423aebfd80d3ef4346578335a9a72aeaee59ff6cb3582b35133d50",
    b"c5f16f0fcc639fa48a6947836d9850f504798523bf8c9a3a87d5876cf622bcf7",
)


class Header(msgspec.Struct, frozen=True):
    """The fields of a block that its other parts must agree with."""

    number: int
    hash: str
    parent_hash: str
    txids: tuple[str, ...]


class TraceParts(NamedTuple):
    """The parts of a block's traces that one answer contains, each as a request for it alone would have given it."""

    calls: bytes | None = None
    diffs: bytes | None = None


class TxTraceRequest(NamedTuple):
    """The same request for one transaction, by its hash. `joined` makes of the hashes and answers of all transactions
    of a block what the request for the block gives."""

    call: Callable[[str, bool], RpcCall]
    joined: Joined


class TraceRequest(NamedTuple):
    """One way to request the calls of a block, its state diffs, or both at once."""

    name: str  # of the tracer or method; no two requests of all formats have the same
    gives_calls: bool
    gives_diffs: bool
    call: Callable[[int, bool], RpcCall]  # for a block's number; True: without code in diffs, where that is possible
    of_tx: TxTraceRequest
    check: Callable[[JsonText, Header], None]  # raises IncompleteBlock; used once, when an upstream is probed
    read: Callable[[JsonText, Header], TraceParts]  # raises IncompleteBlock; used for every block that is fetched
    limitation: str = ""  # what an index lacks, or takes longer for, where its traces come from this request

    @property
    def gives_both(self) -> bool:
        return self.gives_calls and self.gives_diffs


class TraceFormat(NamedTuple):
    """The traces of one family of EVM clients."""

    name: str
    requests: tuple[TraceRequest, ...]  # those that are preferred first; the first gives calls alone
    decode_calls: Callable[[bytes, HexTexts | None], tuple[Trace, ...]]
    decode_diffs: Callable[[bytes, HexTexts | None], tuple[TxDiff, ...]]
    decode_call_trees: Callable[[bytes], list[Calls]]  # every call of a block with its data, by transaction
    # Compares diffs with and without code: whether code was left out, which is None where there was none, and whether
    # a hash shows where code would have been. None: diffs of this format cannot be requested without code.
    code_left_out: Callable[[msgspec.Raw, msgspec.Raw], tuple[bool | None, bool]] | None = None


def calls_request(
    name: str,
    call: Callable[[int, bool], RpcCall],
    of_tx: TxTraceRequest,
    check: Callable[[JsonText, Header], None],
    limitation: str = "",
) -> TraceRequest:
    """Return a request for calls alone."""

    def read(raw: JsonText, header: Header) -> TraceParts:
        check(raw, header)
        return TraceParts(calls=bytes(raw))

    return TraceRequest(name, True, False, call, of_tx, check, read, limitation)


def diffs_request(
    name: str,
    call: Callable[[int, bool], RpcCall],
    of_tx: TxTraceRequest,
    check: Callable[[JsonText, Header], None],
    limitation: str = "",
) -> TraceRequest:
    """Return a request for state diffs alone."""

    def read(raw: JsonText, header: Header) -> TraceParts:
        check(raw, header)
        return TraceParts(diffs=bytes(raw))

    return TraceRequest(name, False, True, call, of_tx, check, read, limitation)


def joined_lists(txids: Sequence[str], answers: Sequence[JsonText]) -> bytes:
    """Join one list for each transaction to one of them all."""
    return b"[" + b",".join(inner for one in answers if (inner := bytes(one).strip()[1:-1].strip())) + b"]"


def joined_objects(txids: Sequence[str], answers: Sequence[JsonText]) -> bytes:
    """Join one object for each transaction, which does not name it, to a list of them."""
    rows = [b'{"transactionHash":"%b",' % txid.encode() for txid in txids]
    return b"[" + b",".join(row + bytes(one).lstrip()[1:] for row, one in zip(rows, answers, strict=True)) + b"]"


def check_txs(header: Header, txids: Sequence[str | None], what: str) -> None:
    """Check that a part of a block has one entry for each transaction, in order."""
    if len(txids) != len(header.txids):
        raise IncompleteBlock(f"block {header.number} has {len(header.txids)} transactions, but {len(txids)} {what}")
    if tuple(txids) != header.txids:
        raise OtherTransactions(f"the {what} of block {header.number} are of other transactions than {header.hash} has")


def decode_part(decoder: msgspec.json.Decoder[_T], raw: JsonText, what: str, *, is_deep: bool = False) -> _T:
    """Decode a part of a block. RecursionError is passed on if `is_deep`: the caller reads the text in pieces then."""
    try:
        return decoder.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise IncompleteBlock(f"{what}: {error}") from error
    except RecursionError as error:
        if is_deep:
            raise
        raise IncompleteBlock(f"{what}: {error}") from error
