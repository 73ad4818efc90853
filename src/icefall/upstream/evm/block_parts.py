"""The parts of a block as an upstream sent them, decoded only as far as needed to check that they are complete and
belong to one block."""

from collections.abc import Sequence
from typing import Annotated, Any, TypeVar

import msgspec

from icefall.upstream.evm.errors import IncompleteAnswer, ReorgDuringFetch
from icefall.wire.evm import trie
from icefall.wire.text.jsondeep import decode_any_depth

EMPTY_ROOT = "0x" + trie.EMPTY_ROOT.hex()  # of a trie without entries

_T = TypeVar("_T")
_Text = bytes | msgspec.Raw
Hex = Annotated[str, msgspec.Meta(pattern="^0x[0-9a-f]+$", max_length=66)]
Hash = Annotated[str, msgspec.Meta(pattern="^0x[0-9a-f]{64}$")]


class FetchedBlock(msgspec.Struct, frozen=True):
    """All parts of one block, byte for byte as one upstream sent them. None: it cannot send that part.

    `calls_by` and `diffs_by` name the method or tracer they come from, which decides their shape: callTracer or
    trace_block, prestateTracer or trace_replayBlockTransactions. The result of muxTracer is split into the former two.
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
    """The fields of a block that its other parts must agree with."""

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


class _PlainTx(msgspec.Struct, gc=False):
    hash: str


class _PlainBlock(msgspec.Struct, gc=False, rename="camel"):
    """The same, with a number and hashes that are yet to be checked: all at once, in a third of the time."""

    number: str
    hash: str
    parent_hash: str
    transactions_root: str
    transactions: list[_PlainTx]


class BlockSummary(msgspec.Struct, rename="camel"):
    """A block fetched without its transactions."""

    number: Hex
    hash: Hash
    parent_hash: Hash
    transactions: list[str]
    block_extra_data: str | msgspec.UnsetType = msgspec.UNSET
    block_gas_cost: str | msgspec.UnsetType | None = msgspec.UNSET


class _Receipt(msgspec.Struct, gc=False, rename="camel"):
    """Hashes need no pattern here: they must equal those of the header."""

    transaction_hash: str
    block_hash: str


class _Traced(msgspec.Struct, rename="camel"):
    result: msgspec.Raw = msgspec.Raw()
    tx_hash: str | None = None  # old clients leave it out
    error: str | None = None


class _Frame(msgspec.Struct):
    type: str


class _Diff(msgspec.Struct):
    pre: msgspec.Raw
    post: msgspec.Raw


class _MuxTrace(msgspec.Struct, gc=False, rename={"calls": "callTracer", "diffs": "prestateTracer"}):
    calls: msgspec.Raw
    diffs: msgspec.Raw


class _TracedMux(msgspec.Struct, gc=False, rename="camel"):
    result: _MuxTrace | None = None
    tx_hash: str | None = None
    error: str | None = None


class _Trace(msgspec.Struct, rename="camel"):
    trace_address: list[int]
    type: str
    transaction_hash: Hash | None = None  # a reward has none


class _Replay(msgspec.Struct, rename="camel"):
    state_diff: msgspec.Raw
    transaction_hash: Hash | None = None


_BLOCK = msgspec.json.Decoder(_Block)
_PLAIN_BLOCK = msgspec.json.Decoder(_PlainBlock)
_HASH_SIZE = 66
_NO_DIGITS = str.maketrans("", "", "0123456789abcdef")
_SUMMARY = msgspec.json.Decoder(BlockSummary)
_RECEIPTS = msgspec.json.Decoder(list[_Receipt])
_TRACED = msgspec.json.Decoder(list[_Traced])
_FRAME = msgspec.json.Decoder(_Frame)
_DIFF = msgspec.json.Decoder(_Diff)
_SIDES = msgspec.json.Decoder(dict[str, dict[str, dict[str, msgspec.Raw]]])
_TRACED_MUX = msgspec.json.Decoder(list[_TracedMux])
_TRACES = msgspec.json.Decoder(list[_Trace])
_REPLAYED = msgspec.json.Decoder(list[_Replay])


def decode_header(raw: msgspec.Raw, number: int) -> Header:
    """A block fetched by number. One without transactions must have the root of an empty trie."""
    block = _decoded(_PLAIN_BLOCK, raw, f"block {number}")
    txids = tuple([tx.hash for tx in block.transactions])
    hashes = [block.hash, block.parent_hash, block.transactions_root, *txids]
    if block.number != hex(number) or not _are_hashes(hashes):
        got = int(_decoded(_BLOCK, raw, f"block {number}").number, 16)  # or which of them is not a hash
        if got != number:
            raise IncompleteAnswer(f"requested block {number}, got block {got}")
    if (not block.transactions) != (block.transactions_root == EMPTY_ROOT):
        raise IncompleteAnswer(
            f"block {number} has {len(block.transactions)} transactions, which does not match its root"
        )
    return Header(number, block.hash, block.parent_hash, txids)


def decode_summary(raw: msgspec.Raw) -> BlockSummary:
    return _decoded(_SUMMARY, raw, "a block")


def check_receipts(raw: _Text, header: Header) -> None:
    """One per transaction, in order, and of this block."""
    receipts = _decoded(_RECEIPTS, raw, f"the receipts of block {header.number}")
    _same_txs(header, [receipt.transaction_hash for receipt in receipts], "receipts")
    if any(receipt.block_hash != header.hash for receipt in receipts):
        raise ReorgDuringFetch(f"the receipts of block {header.number} are of another block than {header.hash}")


def check_calls(raw: _Text, header: Header) -> None:
    decode_any_depth(raw, lambda text: _check_traced(text, header, "call traces", _FRAME))


def check_diffs(raw: _Text, header: Header) -> None:
    decode_any_depth(raw, lambda text: _check_traced(text, header, "state diffs", _DIFF))


def check_mux_traces(raw: msgspec.Raw, header: Header) -> None:
    calls, diffs = split_mux_traces(raw, header)
    check_calls(calls, header)
    check_diffs(diffs, header)


def split_mux_traces(raw: msgspec.Raw, header: Header) -> tuple[bytes, bytes]:
    """The result of muxTracer as callTracer and prestateTracer would each have sent it. What a trace contains is only
    checked where it is decoded: reading it once more here would cost as much as splitting."""
    (calls, diffs), cut = decode_any_depth(raw, lambda text: _split_mux(text, header))
    return (calls, diffs) if cut is None else (cut.restored(calls), cut.restored(diffs))


def check_trace_block(raw: msgspec.Raw, header: Header) -> None:
    """Parity's flat list: one root call per transaction."""
    rows = _decoded(_TRACES, raw, f"the traces of block {header.number}")
    roots = [row.transaction_hash for row in rows if not row.trace_address and row.type != "reward"]
    _same_txs(header, roots, "call traces")


def check_replay(raw: msgspec.Raw, header: Header) -> None:
    rows = _decoded(_REPLAYED, raw, f"the state diffs of block {header.number}")
    _same_txs(header, [row.transaction_hash for row in rows], "state diffs")
    if any(bytes(memoryview(row.state_diff)[:1]) != b"{" for row in rows):
        raise IncompleteAnswer(f"a state diff of block {header.number} is missing")


def accounts_with(raw: msgspec.Raw, field: str) -> set[tuple[int, str, str]]:
    """Which accounts of some state diffs have a field: transaction index, side (pre or post), address."""
    rows = _decoded(_TRACED, raw, "state diffs")
    return {
        (index, side, address)
        for index, row in enumerate(rows)
        for side, accounts in _decoded(_SIDES, row.result, "a state diff").items()
        for address, account in accounts.items()
        if field in account
    }


def _are_hashes(texts: Sequence[str]) -> bool:
    """Together, which takes a fraction of the time of a pattern for each."""
    joined, prefixes = "".join(texts), "x" * len(texts)
    return (
        set(map(len, texts)) == {_HASH_SIZE}
        and joined[::_HASH_SIZE] == "0" * len(texts)
        and joined[1::_HASH_SIZE] == prefixes == joined.translate(_NO_DIGITS)
    )


def json_list(items: Sequence[bytes | msgspec.Raw]) -> bytes:
    return b"[" + b",".join(items) + b"]"


def _check_traced(text: _Text, header: Header, what: str, shape: msgspec.json.Decoder[Any]) -> None:
    for row in _traced(text, header, what):
        _decoded(shape, row.result, f"one of the {what} of block {header.number}", deep=True)


def _split_mux(text: _Text, header: Header) -> tuple[bytes, bytes]:
    calls: list[bytes | msgspec.Raw] = []
    diffs: list[bytes | msgspec.Raw] = []
    rows = _decoded(_TRACED_MUX, text, f"the traces of block {header.number}", deep=True)
    _check_rows(rows, header, "traces")
    for txid, row in zip(header.txids, rows, strict=True):
        if row.result is None:
            raise IncompleteAnswer(f"one of the traces of block {header.number} is missing")
        start = b'},{"txHash":"%b","result":' % txid.encode()
        calls += start, row.result.calls
        diffs += start, row.result.diffs
    return _closed_list(calls), _closed_list(diffs)


def _closed_list(pieces: list[bytes | msgspec.Raw]) -> bytes:
    """A list of objects, each of which closes the one before: joined once, because traces are large."""
    if not pieces:
        return b"[]"
    pieces[0] = b"[" + bytes(pieces[0]).removeprefix(b"},")
    return b"".join((*pieces, b"}]"))


def _traced(raw: _Text, header: Header, what: str) -> list[_Traced]:
    rows = _decoded(_TRACED, raw, f"the {what} of block {header.number}", deep=True)
    _check_rows(rows, header, what)
    return rows


def _check_rows(rows: Sequence[_Traced | _TracedMux], header: Header, what: str) -> None:
    """Of the transactions of the block, and none of them an error."""
    for row in rows:
        if row.error is not None:
            raise IncompleteAnswer(f"the {what} of block {header.number} lack one: {row.error[:200]}")
    txids = [row.tx_hash for row in rows]
    _same_txs(header, list(header.txids[: len(rows)]) if set(txids) == {None} else txids, what)


def _same_txs(header: Header, txids: Sequence[str | None], what: str) -> None:
    if len(txids) != len(header.txids):
        raise IncompleteAnswer(f"block {header.number} has {len(header.txids)} transactions, but {len(txids)} {what}")
    if tuple(txids) != header.txids:
        raise ReorgDuringFetch(f"the {what} of block {header.number} are of other transactions than {header.hash} has")


def _decoded(decoder: msgspec.json.Decoder[_T], raw: _Text, what: str, *, deep: bool = False) -> _T:
    """With `deep`, RecursionError is passed on: the caller reads the text in pieces then."""
    try:
        return decoder.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise IncompleteAnswer(f"{what}: {error}") from error
    except RecursionError as error:
        if deep:
            raise
        raise IncompleteAnswer(f"{what}: {error}") from error
