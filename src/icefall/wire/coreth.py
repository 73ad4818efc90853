"""C-Chain blocks, read for their place in the chain and for what their atomic transactions export."""

from icefall.wire import rlp
from icefall.wire.avm_parts import unpack_transferable_input, unpack_transferable_output
from icefall.wire.errors import WireError
from icefall.wire.foreign import Export, ForeignBlock
from icefall.wire.ids import hash256
from icefall.wire.keccak import keccak256
from icefall.wire.packer import VERSION_BYTES, Layout, Reader, reader

_IMPORT, _EXPORT, _CREDENTIAL = 0, 1, 9
_HEAD = Layout("uint32", 32, 32)
_EVM_OUTPUT = Layout(20, "uint64", 32)
_EVM_INPUT = Layout(20, "uint64", 32, "uint64")
_NUMBER, _TIME, _FIELDS_MIN = 8, 11, 16

_Atomic = tuple[list[bytes], list[Export]]


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
    txids, exports = unpack_atomic_txs(rlp.string(parts[4]))
    return ForeignBlock(
        block_id=keccak256(parts[0]),
        parent_id=parent_id,
        height=rlp.to_number(rlp.string(header[_NUMBER])),
        time=rlp.to_number(rlp.string(header[_TIME])),
        txids=tuple(txids),
        exports=tuple(exports),
    )


def unpack_atomic_txs(raw: bytes) -> _Atomic:
    """IDs and exports of the atomic transactions in `blockExtraData`: a list, or in old blocks a single one."""
    if not raw:
        return [], []
    try:
        return _unpack_list(reader(raw))
    except WireError as error:
        try:
            return _unpack_one(reader(raw))
        except WireError:
            raise error from None  # most likely a damaged list, so its complaint is the useful one


def _unpack_list(source: Reader) -> _Atomic:
    found: _Atomic = ([], [])
    for _ in range(source.count()):
        _tx(source, found)
    source.finish()
    return found


def _unpack_one(source: Reader) -> _Atomic:
    found: _Atomic = ([], [])
    _tx(source, found)
    source.finish()
    return found


def _tx(source: Reader, found: _Atomic) -> None:
    start = source.offset
    type_id = source.type_id()
    if type_id not in (_IMPORT, _EXPORT):
        raise WireError(f"C-Chain: unknown atomic transaction type {type_id}")
    _, _, peer = source.take(_HEAD)
    exported: list[bytes] = []
    for _ in range(source.count()):
        if type_id == _IMPORT:
            unpack_transferable_input(source)
        else:
            source.take(_EVM_INPUT)
    for _ in range(source.count()):
        if type_id == _IMPORT:
            source.take(_EVM_OUTPUT)
        else:
            exported.append(_output_slice(source))
    _credentials(source)
    txid = hash256(VERSION_BYTES + source.raw[start : source.offset])
    found[0].append(txid)
    # Unlike the P-Chain's, these outputs are counted from 0: there are no others.
    found[1].extend(Export(peer, txid, index, output) for index, output in enumerate(exported))


def _output_slice(source: Reader) -> bytes:
    start = source.offset
    unpack_transferable_output(source)
    return source.raw[start : source.offset]


def _credentials(source: Reader) -> None:
    for _ in range(source.count()):
        type_id = source.type_id()
        if type_id != _CREDENTIAL:
            raise WireError(f"C-Chain: type {type_id} where a credential belongs")
        source.arrays(source.count(), 65)
