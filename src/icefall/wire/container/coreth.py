"""C-Chain blocks, decoded only as far as height, parent and what their atomic transactions export."""

from typing import NamedTuple

import msgspec

from icefall.wire.avm.parts import unpack_transferable_input, unpack_transferable_output
from icefall.wire.container.proposer import Export, ForeignBlock
from icefall.wire.errors import WireError
from icefall.wire.evm import rlp
from icefall.wire.evm.rlp import keccak256
from icefall.wire.ids import hash256, input_id
from icefall.wire.packer import VERSION_BYTES, Layout, Unpacker, reader

_IMPORT, _EXPORT, _CREDENTIAL = 0, 1, 9
_HEAD = Layout("uint32", 32, 32)
_EVM_OUTPUT = Layout(20, "uint64", 32)
_EVM_INPUT = Layout(20, "uint64", 32, "uint64")
_NUMBER, _TIME, _FIELDS_MIN = 8, 11, 16


class AtomicMove(msgspec.Struct, frozen=True, gc=False):
    """An amount that an import credits to an account of the C-Chain, or an export takes from it (then negative)."""

    address: bytes
    amount: int  # in the asset's own unit; AVAX has nine decimal places there, eighteen here
    asset_id: bytes


class AtomicImport(NamedTuple):
    """An output that the C-Chain took out of what another chain exported to it."""

    source_chain: bytes
    utxo_id: bytes


class _AtomicTxs:
    """The IDs, imports, exports and moves of the atomic transactions of a block."""

    __slots__ = ("exports", "imports", "moves", "txids")

    def __init__(self) -> None:
        self.txids: list[bytes] = []
        self.imports: list[AtomicImport] = []
        self.exports: list[Export] = []
        self.moves: list[AtomicMove] = []


def unpack_coreth_block(raw: bytes) -> ForeignBlock:
    """A C-Chain block without its proposer's wrapping: RLP of header, transactions, uncles, version, atomic bytes."""
    parts = rlp.slices(raw)
    if len(parts) != 5:
        raise WireError(f"C-Chain: a block has 5 parts, got {len(parts)}")
    header = rlp.slices(parts[0])
    if len(header) < _FIELDS_MIN:
        raise WireError(f"C-Chain: a header has at least {_FIELDS_MIN} fields, got {len(header)}")
    parent_id = rlp.string(header[0])
    if len(parent_id) != 32:
        raise WireError(f"C-Chain: a parent hash has 32 bytes, got {len(parent_id)}")
    atomic = _unpack(rlp.string(parts[4]))
    return ForeignBlock(
        block_id=keccak256(parts[0]),
        parent_id=parent_id,
        height=rlp.to_number(rlp.string(header[_NUMBER])),
        time=rlp.to_number(rlp.string(header[_TIME])),
        txids=tuple(atomic.txids),
        exports=tuple(atomic.exports),
    )


def unpack_atomic_moves(raw: bytes) -> list[AtomicMove]:
    """Return what the atomic transactions in `blockExtraData` change on the C-Chain itself, in order."""
    return _unpack(raw).moves


def unpack_shared_memory(block_raw: bytes) -> tuple[list[AtomicImport], list[Export]]:
    """Return what a C-Chain block imports and exports."""
    found = _unpack(rlp.string(rlp.slices(block_raw)[4]))
    return found.imports, found.exports


def _unpack(raw: bytes) -> _AtomicTxs:
    """A list of transactions, or in old blocks a single one."""
    if not raw:
        return _AtomicTxs()
    try:
        return _unpack_list(reader(raw))
    except WireError as error:
        try:
            return _unpack_one(reader(raw))
        except WireError:
            raise error from None  # most likely a damaged list, so that error is the useful one


def _unpack_list(source: Unpacker) -> _AtomicTxs:
    found = _AtomicTxs()
    for _ in range(source.count()):
        _tx(source, found)
    source.finish()
    return found


def _unpack_one(source: Unpacker) -> _AtomicTxs:
    found = _AtomicTxs()
    _tx(source, found)
    source.finish()
    return found


def _tx(source: Unpacker, found: _AtomicTxs) -> None:
    start = source.offset
    type_id = source.type_id()
    if type_id not in (_IMPORT, _EXPORT):
        raise WireError(f"C-Chain: unknown atomic transaction type {type_id}")
    _, _, peer = source.take(_HEAD)
    exported: list[bytes] = []
    for _ in range(source.count()):
        if type_id == _IMPORT:
            spent = unpack_transferable_input(source)
            found.imports.append(AtomicImport(peer, input_id(spent.txid, spent.output_index)))
        else:
            address, amount, asset_id, _ = source.take(_EVM_INPUT)
            found.moves.append(AtomicMove(address, -amount, asset_id))
    for _ in range(source.count()):
        if type_id == _IMPORT:
            found.moves.append(AtomicMove(*source.take(_EVM_OUTPUT)))
        else:
            exported.append(_output_slice(source))
    _credentials(source)
    txid = hash256(VERSION_BYTES + source.raw[start : source.offset])
    found.txids.append(txid)
    # Unlike the P-Chain's, these outputs are counted from 0: there are no others.
    found.exports.extend(Export(peer, txid, index, output) for index, output in enumerate(exported))


def _output_slice(source: Unpacker) -> bytes:
    start = source.offset
    unpack_transferable_output(source)
    return source.raw[start : source.offset]


def _credentials(source: Unpacker) -> None:
    for _ in range(source.count()):
        type_id = source.type_id()
        if type_id != _CREDENTIAL:
            raise WireError(f"C-Chain: type {type_id} where a credential belongs")
        source.arrays(source.count(), 65)
