"""P-Chain blocks, decoded only as far as height, parent and exports.

Transactions in a block carry no length, so each must be read to its end to find the next. The table of types lists the
fields after the type ID; only exports are returned.
"""

from collections.abc import Callable

from icefall.wire.container.proposer import Export, ForeignBlock
from icefall.wire.errors import WireError
from icefall.wire.ids import hash256
from icefall.wire.packer import VERSION_BYTES, Layout, Unpacker, reader

_Skip = Callable[[Unpacker], object]

_EXPORT = 18
_SECP_INPUT, _SECP_OUTPUT, _CREDENTIAL, _INPUT, _OWNERS = 5, 7, 9, 10, 11
_LOCKED_INPUT, _LOCKED_OUTPUT, _NO_SIGNER, _PROOF_OF_POSSESSION = 21, 22, 27, 28

_COMMON = Layout(32, "uint64")
_BASE = Layout("uint32", 32)


def _fields(*fields: str | int) -> _Skip:
    layout = Layout(*fields)
    return lambda source: source.take(layout)


def _many(skip: _Skip) -> _Skip:
    def skip_all(source: Unpacker) -> None:
        for _ in range(source.count()):
            skip(source)

    return skip_all


def _type_in(source: Unpacker, *expected: int) -> int:
    type_id = source.type_id()
    if type_id not in expected:
        raise WireError(f"P-Chain: type {type_id} where {' or '.join(map(str, expected))} belongs")
    return type_id


def _owners(source: Unpacker) -> None:
    source.take(_OWNERS_HEAD)
    source.arrays(source.count(), 20)


def _owner(source: Unpacker) -> None:
    _type_in(source, _OWNERS)
    _owners(source)


def _authority(source: Unpacker) -> None:
    _type_in(source, _INPUT)
    source.u32s(source.count())


def _output(source: Unpacker) -> None:
    source.fixed(32)
    if _type_in(source, _SECP_OUTPUT, _LOCKED_OUTPUT) == _LOCKED_OUTPUT:
        source.u64()
        _type_in(source, _SECP_OUTPUT)
    source.u64()
    _owners(source)


def _input(source: Unpacker) -> None:
    source.take(_INPUT_HEAD)
    if _type_in(source, _SECP_INPUT, _LOCKED_INPUT) == _LOCKED_INPUT:
        source.u64()
        _type_in(source, _SECP_INPUT)
    source.u64()
    source.u32s(source.count())


def _signer(source: Unpacker) -> None:
    if _type_in(source, _NO_SIGNER, _PROOF_OF_POSSESSION) == _PROOF_OF_POSSESSION:
        source.fixed(48 + 96)


def _credential(source: Unpacker) -> None:
    _type_in(source, _CREDENTIAL)
    source.arrays(source.count(), 65)


def _committee(source: Unpacker) -> None:
    source.u32()
    source.arrays(source.count(), 20)


def _first_l1_validator(source: Unpacker) -> None:
    source.blob()
    source.take(_L1_VALIDATOR)
    _committee(source)
    _committee(source)


_OWNERS_HEAD = Layout("uint64", "uint32")
_INPUT_HEAD = Layout(32, "uint32", 32)
_L1_VALIDATOR = Layout("uint64", "uint64", 48, 96)

_id = _fields(32)
_u32 = _fields("uint32")
_u64 = _fields("uint64")
_validator = _fields(20, "uint64", "uint64", "uint64")
_blob: _Skip = Unpacker.blob
_string: _Skip = Unpacker.string
_outputs = _many(_output)
_inputs = _many(_input)

# type ID -> what follows the base fields
_WITH_BASE: dict[int, tuple[_Skip, ...]] = {
    12: (_validator, _outputs, _owner, _u32),  # AddValidator
    13: (_validator, _id, _authority),  # AddSubnetValidator
    14: (_validator, _outputs, _owner),  # AddDelegator
    15: (_id, _string, _id, _many(_id), _blob, _authority),  # CreateChain
    16: (_owner,),  # CreateSubnet
    17: (_id, _inputs),  # Import
    23: (_fields(20, 32), _authority),  # RemoveSubnetValidator
    24: (_fields(32, 32, *["uint64"] * 6, *["uint32"] * 3, "uint64", "uint8", "uint32"), _authority),  # TransformSubnet
    25: (_validator, _id, _signer, _outputs, _owner, _owner, _u32),  # AddPermissionlessValidator
    26: (_validator, _id, _outputs, _owner),  # AddPermissionlessDelegator
    33: (_id, _authority, _owner),  # TransferSubnetOwnership
    34: (),  # Base
    35: (_fields(32, 32), _blob, _many(_first_l1_validator), _authority),  # ConvertSubnetToL1
    36: (_u64, _fields(96), _blob),  # RegisterL1Validator
    37: (_blob,),  # SetL1ValidatorWeight
    38: (_id, _u64),  # IncreaseL1ValidatorBalance
    39: (_id, _authority),  # DisableL1Validator
}
_WITHOUT_BASE: dict[int, _Skip] = {
    19: _u64,  # AdvanceTime
    20: _id,  # RewardValidator
}

_Found = tuple[list[bytes], list[Export]]  # transaction IDs and exports met so far


def unpack_platform_block(raw: bytes) -> ForeignBlock:
    """A P-Chain block without its proposer's wrapping."""
    source = reader(raw)
    type_id = source.type_id()
    found: _Found = ([], [])
    time = None
    if type_id in (29, 30, 31, 32):  # Banff blocks have a time
        time = source.u64()
    if type_id == 29:
        _txs(source, found)
    if type_id not in (0, 1, 2, 3, 4, 29, 30, 31, 32):
        raise WireError(f"P-Chain: unknown block type {type_id}")
    parent_id, height = source.take(_COMMON)
    if type_id in (3, 32):  # standard
        _txs(source, found)
    elif type_id in (0, 4, 29):  # proposal and atomic
        _tx(source, found)
    source.finish()
    txids, exports = found
    return ForeignBlock(hash256(raw), parent_id, height, time, tuple(txids), tuple(exports))


def _txs(source: Unpacker, found: _Found) -> None:
    for _ in range(source.count()):
        _tx(source, found)


def _tx(source: Unpacker, found: _Found) -> None:
    start = source.offset
    type_id = source.type_id()
    outputs_count = 0
    exported: list[bytes] = []
    destination = b""
    if type_id in _WITHOUT_BASE:
        _WITHOUT_BASE[type_id](source)
    elif type_id == _EXPORT:
        outputs_count = _base(source)
        destination = source.fixed(32)
        exported = _output_slices(source)
    elif type_id in _WITH_BASE:
        _base(source)
        for skip in _WITH_BASE[type_id]:
            skip(source)
    else:
        raise WireError(f"P-Chain: unknown transaction type {type_id}")
    _many(_credential)(source)
    txid = hash256(VERSION_BYTES + source.raw[start : source.offset])
    found[0].append(txid)
    found[1].extend(Export(destination, txid, outputs_count + i, output) for i, output in enumerate(exported))


def _base(source: Unpacker) -> int:
    """Skips the base fields and returns the number of outputs: the indices of exported outputs follow theirs."""
    source.take(_BASE)
    count = source.count()
    for _ in range(count):
        _output(source)
    _inputs(source)
    source.blob()
    return count


def _output_slices(source: Unpacker) -> list[bytes]:
    slices = []
    for _ in range(source.count()):
        start = source.offset
        _output(source)
        slices.append(source.raw[start : source.offset])
    return slices
