"""The parts of a block as an upstream sent them, decoded only as far as needed to check that they are complete and
belong to one block, and headers whose hash is proven by recomputing it."""

from collections.abc import Callable, Sequence
from typing import Annotated, TypeVar

import msgspec

from icefall.upstream.client import InvalidAnswer
from icefall.upstream.evm.errors import IncompleteAnswer, ReorgDuringFetch
from icefall.wire.errors import WireError
from icefall.wire.evm import block as wire_block
from icefall.wire.evm import rlp
from icefall.wire.evm.geth_format import GETH
from icefall.wire.evm.hashes import header_hash, is_known_layout
from icefall.wire.evm.trace_format import Hash, Header, JsonText, check_txs
from icefall.wire.evm.types import DecodedBlock, OtherTransactions

EMPTY_ROOT = "0x" + rlp.EMPTY_ROOT.hex()  # of a trie without entries

_T = TypeVar("_T")
Hex = Annotated[str, msgspec.Meta(pattern="^0x[0-9a-f]+$", max_length=66)]


class FetchedBlock(msgspec.Struct, frozen=True):
    """All parts of one block, byte for byte as one upstream sent them. None: it cannot send that part.

    The formats are names of `TRACE_FORMATS` in wire/evm/decode.py; empty where no such traces were fetched.
    """

    number: int
    block: bytes
    receipts: bytes
    calls: bytes | None
    diffs: bytes | None
    calls_format: str = GETH.name
    diffs_format: str = GETH.name
    source: str = ""  # the upstream's name

    @property
    def size(self) -> int:
        return len(self.block) + len(self.receipts) + len(self.calls or b"") + len(self.diffs or b"")


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
    """A block whose number and hashes are yet to be checked: all at once, in a third of the time."""

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
    """A receipt. Hashes need no pattern here: they must equal those of the header."""

    transaction_hash: str
    block_hash: str


_BLOCK = msgspec.json.Decoder(_Block)
_PLAIN_BLOCK = msgspec.json.Decoder(_PlainBlock)
_HASH_SIZE = 66
_NO_DIGITS = str.maketrans("", "", "0123456789abcdef")
_SUMMARY = msgspec.json.Decoder(BlockSummary)
_RECEIPTS = msgspec.json.Decoder(list[_Receipt])


def decode_header(raw: msgspec.Raw, number: int) -> Header:
    """Decode what the other parts of a block are checked against. A block without transactions must have the root of an
    empty trie."""
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


def check_receipts(raw: JsonText, header: Header) -> None:
    """Check that there is one receipt for each transaction, in order, and that all are of this block."""
    checked(_check_receipts, raw, header)


def _check_receipts(raw: JsonText, header: Header) -> None:
    receipts = _decoded(_RECEIPTS, raw, f"the receipts of block {header.number}")
    check_txs(header, [receipt.transaction_hash for receipt in receipts], "receipts")
    if any(receipt.block_hash != header.hash for receipt in receipts):
        raise ReorgDuringFetch(f"the receipts of block {header.number} are of another block than {header.hash}")


def checked(check: Callable[[JsonText, Header], _T], raw: JsonText, header: Header) -> _T:
    """Run a check of a trace format; what is wrong with the answer is raised as a failure of the upstream."""
    try:
        return check(raw, header)
    except OtherTransactions as error:
        raise ReorgDuringFetch(str(error)) from error
    except WireError as error:
        raise IncompleteAnswer(str(error)) from error


def proven_header(raw: msgspec.Raw, number: int, name: str) -> DecodedBlock:
    """Decode the header of block `number` that the upstream `name` sent. InvalidAnswer if its hash is not the one it
    claims; a layout that is not known cannot be checked."""
    try:
        header = wire_block.decode_header(bytes(raw))
    except WireError as error:
        raise IncompleteAnswer(f"{name} sent block {number} with an invalid {error}") from error
    if header.number != number:
        raise IncompleteAnswer(f"requested block {number}, got block {header.number}")
    if is_known_layout(header) and header_hash(header) != header.block_hash:
        raise InvalidAnswer(f"{name} sent block {number} with a hash that is not that of its header")
    return header


def _are_hashes(texts: Sequence[str]) -> bool:
    """Check all texts at once, which takes a fraction of the time of a pattern for each."""
    joined, prefixes = "".join(texts), "x" * len(texts)
    return (
        set(map(len, texts)) == {_HASH_SIZE}
        and joined[::_HASH_SIZE] == "0" * len(texts)
        and joined[1::_HASH_SIZE] == prefixes == joined.translate(_NO_DIGITS)
    )


def json_list(items: Sequence[bytes | msgspec.Raw]) -> bytes:
    return b"[" + b",".join(items) + b"]"


def _decoded(decoder: msgspec.json.Decoder[_T], raw: JsonText, what: str) -> _T:
    try:
        return decoder.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise IncompleteAnswer(f"{what}: {error}") from error
