"""The parts of a block as they came, decoded only as far as it takes to see that they are whole and of one block."""

from collections.abc import Sequence
from typing import Annotated, Any, TypeVar

import msgspec

from icefall.upstream.evm.deep import taken_apart_if_deep
from icefall.upstream.evm.errors import IncompleteAnswer, ReorgDuringFetch

EMPTY_ROOT = "0x56e81f171bcc55a6ff8345e692c0f86e5b48e01b996cadc001622fb5e363b421"  # of a trie without entries

_T = TypeVar("_T")
_Text = bytes | msgspec.Raw
Hex = Annotated[str, msgspec.Meta(pattern="^0x[0-9a-f]+$", max_length=66)]
Hash = Annotated[str, msgspec.Meta(pattern="^0x[0-9a-f]{64}$")]


class FetchedBlock(msgspec.Struct, frozen=True):
    """All parts of one block, byte for byte as one upstream gave them. None: it cannot give that part.

    `calls_by` and `diffs_by` name the request that gave them, which decides their shape: callTracer or trace_block,
    prestateTracer or trace_replayBlockTransactions. What muxTracer gave is taken apart into the former two.
    """

    number: int
    block: bytes
    receipts: bytes
    calls: bytes | None
    diffs: bytes | None
    calls_by: str = "callTracer"
    diffs_by: str = "prestateTracer"
    source: str = ""  # the upstream's name

    @property
    def size(self) -> int:
        return len(self.block) + len(self.receipts) + len(self.calls or b"") + len(self.diffs or b"")


class Header(msgspec.Struct, frozen=True):
    """What a block says of itself that the other parts must agree with."""

    number: int
    hash: str
    parent_hash: str
    txids: tuple[str, ...]


class _Tx(msgspec.Struct):
    hash: Hash


class _Block(msgspec.Struct, rename="camel"):
    number: Hex
    hash: Hash
    parent_hash: Hash
    transactions_root: Hash
    transactions: list[_Tx]


class BlockSummary(msgspec.Struct, rename="camel"):
    """A block asked for without its transactions."""

    number: Hex
    hash: Hash
    parent_hash: Hash
    transactions: list[str]
    block_extra_data: str | msgspec.UnsetType = msgspec.UNSET


class _Receipt(msgspec.Struct, rename="camel"):
    transaction_hash: Hash
    block_hash: Hash


class _Traced(msgspec.Struct, rename="camel"):
    result: msgspec.Raw = msgspec.Raw()
    tx_hash: Hash | None = None  # old clients leave it out
    error: str | None = None


class _Frame(msgspec.Struct):
    type: str


class _Diff(msgspec.Struct):
    pre: msgspec.Raw
    post: msgspec.Raw


class _Both(msgspec.Struct, rename={"calls": "callTracer", "diffs": "prestateTracer"}):
    calls: msgspec.Raw
    diffs: msgspec.Raw


class _Trace(msgspec.Struct, rename="camel"):
    trace_address: list[int]
    type: str
    transaction_hash: Hash | None = None  # a reward has none


class _Replayed(msgspec.Struct, rename="camel"):
    state_diff: msgspec.Raw
    transaction_hash: Hash | None = None


_BLOCK = msgspec.json.Decoder(_Block)
_SKETCH = msgspec.json.Decoder(BlockSummary)
_RECEIPTS = msgspec.json.Decoder(list[_Receipt])
_TRACED = msgspec.json.Decoder(list[_Traced])
_FRAME = msgspec.json.Decoder(_Frame)
_DIFF = msgspec.json.Decoder(_Diff)
_SIDES = msgspec.json.Decoder(dict[str, dict[str, dict[str, msgspec.Raw]]])
_BOTH = msgspec.json.Decoder(_Both)
_TRACES = msgspec.json.Decoder(list[_Trace])
_REPLAYED = msgspec.json.Decoder(list[_Replayed])


def header(raw: msgspec.Raw, number: int) -> Header:
    """A block asked for by number. One that shows no transactions must have a root that says so."""
    block = _decoded(_BLOCK, raw, f"block {number}")
    if int(block.number, 16) != number:
        raise IncompleteAnswer(f"asked for block {number}, got block {int(block.number, 16)}")
    if (not block.transactions) != (block.transactions_root == EMPTY_ROOT):
        raise IncompleteAnswer(f"block {number} shows {len(block.transactions)} transactions, its root says otherwise")
    return Header(number, block.hash, block.parent_hash, tuple(tx.hash for tx in block.transactions))


def sketch(raw: msgspec.Raw) -> BlockSummary:
    return _decoded(_SKETCH, raw, "a block")


def check_receipts(raw: _Text, of: Header) -> None:
    """One for each transaction, in order, and of this very block."""
    receipts = _decoded(_RECEIPTS, raw, f"the receipts of block {of.number}")
    _same_txs(of, [receipt.transaction_hash for receipt in receipts], "receipts")
    if any(receipt.block_hash != of.hash for receipt in receipts):
        raise ReorgDuringFetch(f"the receipts of block {of.number} are of another block than {of.hash}")


def check_calls(raw: msgspec.Raw, of: Header) -> None:
    taken_apart_if_deep(raw, lambda text: _check_traced(text, of, "call traces", _FRAME))


def check_diffs(raw: msgspec.Raw, of: Header) -> None:
    taken_apart_if_deep(raw, lambda text: _check_traced(text, of, "state diffs", _DIFF))


def taken_apart(raw: msgspec.Raw, of: Header) -> tuple[bytes, bytes]:
    """What muxTracer said, as callTracer and as prestateTracer would have said it."""
    (calls, diffs), flat = taken_apart_if_deep(raw, lambda text: _both(text, of))
    return (calls, diffs) if flat is None else (flat.restored(calls), flat.restored(diffs))


def check_trace_block(raw: msgspec.Raw, of: Header) -> None:
    """Parity's flat list: as many beginnings as transactions."""
    rows = _decoded(_TRACES, raw, f"the traces of block {of.number}")
    roots = [row.transaction_hash for row in rows if not row.trace_address and row.type != "reward"]
    _same_txs(of, roots, "call traces")


def check_replay(raw: msgspec.Raw, of: Header) -> None:
    rows = _decoded(_REPLAYED, raw, f"the state diffs of block {of.number}")
    _same_txs(of, [row.transaction_hash for row in rows], "state diffs")
    if any(bytes(memoryview(row.state_diff)[:1]) != b"{" for row in rows):
        raise IncompleteAnswer(f"a state diff of block {of.number} is missing")


def places_of(raw: msgspec.Raw, field: str) -> set[tuple[int, str, str]]:
    """Where in some state diffs a field of an account is given: transaction, side, address."""
    rows = _decoded(_TRACED, raw, "state diffs")
    return {
        (place, side, address)
        for place, row in enumerate(rows)
        for side, accounts in _decoded(_SIDES, row.result, "a state diff").items()
        for address, account in accounts.items()
        if field in account
    }


def joined(items: Sequence[bytes | msgspec.Raw]) -> bytes:
    return b"[" + b",".join(items) + b"]"


def _check_traced(text: _Text, of: Header, what: str, shape: msgspec.json.Decoder[Any]) -> None:
    for row in _traced(text, of, what):
        _decoded(shape, row.result, f"one of the {what} of block {of.number}", deep=True)


def _both(text: _Text, of: Header) -> tuple[bytes, bytes]:
    calls, diffs = [], []
    for txid, row in zip(of.txids, _traced(text, of, "traces"), strict=True):
        both = _decoded(_BOTH, row.result, f"one of the traces of block {of.number}", deep=True)
        _decoded(_FRAME, both.calls, f"one of the call traces of block {of.number}", deep=True)
        _decoded(_DIFF, both.diffs, f"one of the state diffs of block {of.number}")
        start = b'{"txHash":"' + txid.encode() + b'","result":'
        calls.append(b"".join((start, both.calls, b"}")))
        diffs.append(b"".join((start, both.diffs, b"}")))
    return joined(calls), joined(diffs)


def _traced(raw: _Text, of: Header, what: str) -> list[_Traced]:
    rows = _decoded(_TRACED, raw, f"the {what} of block {of.number}", deep=True)
    for row in rows:
        if row.error is not None:
            raise IncompleteAnswer(f"the {what} of block {of.number} lack one: {row.error[:200]}")
    told = [row.tx_hash for row in rows]
    _same_txs(of, list(of.txids[: len(rows)]) if set(told) == {None} else told, what)
    return rows


def _same_txs(of: Header, txids: Sequence[str | None], what: str) -> None:
    if len(txids) != len(of.txids):
        raise IncompleteAnswer(f"block {of.number} has {len(of.txids)} transactions, but {len(txids)} {what}")
    if tuple(txids) != of.txids:
        raise ReorgDuringFetch(f"the {what} of block {of.number} are of other transactions than {of.hash} has")


def _decoded(decoder: msgspec.json.Decoder[_T], raw: _Text, what: str, *, deep: bool = False) -> _T:
    """Where things may lie `deep`, RecursionError goes through: there is another way."""
    try:
        return decoder.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise IncompleteAnswer(f"{what}: {error}") from error
    except RecursionError as error:
        if deep:
            raise
        raise IncompleteAnswer(f"{what}: {error}") from error
