"""Bytes of the P-Chain's blocks, transactions, UTXOs and genesis, both ways.

A transaction in a block has no length, so one of an unknown type makes the rest of the block unreadable: the error
names the type's number.
"""

from collections.abc import Iterable

from icefall.wire.avm.parts import pack_part
from icefall.wire.avm.types import Credential
from icefall.wire.errors import WireError
from icefall.wire.ids import hash256
from icefall.wire.packer import (
    GENESIS_SIZE_MAX,
    SIZE_MAX,
    VERSION_BYTES,
    Layout,
    Unpacker,
    pack_arrays,
    reader,
    u32,
    u64,
)
from icefall.wire.pvm.bodies import TX_NAMES, pack_unsigned, unpack_unsigned
from icefall.wire.pvm.parts import (
    UnexpectedType,
    pack_output,
    unexpected,
    unpack_credential,
    unpack_list,
    unpack_output,
)
from icefall.wire.pvm.types import (
    BlockType,
    PlatformBlock,
    PlatformGenesis,
    PlatformTx,
    PlatformUtxo,
    StakeableOutput,
    UnsignedTx,
)

_VERSION_SIZE = len(VERSION_BYTES)
_COMMON = Layout(32, "uint64")
_UTXO_HEAD = Layout(32, "uint32", 32, "type")
_PLAIN_UTXO = Layout(_VERSION_SIZE, 32, "uint32", 32, "type", "uint64", "uint64")
_STAKEABLE_UTXO = Layout(_VERSION_SIZE, 32, "uint32", 32, "type", "uint64", "type", "uint64", "uint64")
_UTXO_TYPE = slice(70, 74)
_STAKEABLE = u32(StakeableOutput.type_id)
_BLOCK_TYPES = {int(block_type): block_type for block_type in BlockType}
_TIMED = frozenset({BlockType.BANFF_PROPOSAL, BlockType.BANFF_ABORT, BlockType.BANFF_COMMIT, BlockType.BANFF_STANDARD})

# The node's names of what stands in a place of a transaction, and of what does not stand there alone.
_INTERFACES = {
    "transaction": "txs.UnsignedTx",
    "output": "avax.TransferableOut",
    "locked output": "avax.TransferableOut",
    "input": "avax.TransferableIn",
    "locked input": "avax.TransferableIn",
    "owner": "fx.Owner",
    "authorization": "verify.Verifiable",
    "signer": "signer.Signer",
    "credential": "verify.Verifiable",
}
_OTHER_NAMES = {
    5: "secp256k1fx.TransferInput",
    7: "secp256k1fx.TransferOutput",
    9: "secp256k1fx.Credential",
    10: "secp256k1fx.Input",
    11: "secp256k1fx.OutputOwners",
    21: "stakeable.LockIn",
    22: "stakeable.LockOut",
    27: "signer.Empty",
    28: "signer.ProofOfPossession",
}


def unpack_tx(raw: bytes, size_max: int = SIZE_MAX) -> PlatformTx:
    """Read a signed transaction; nothing may follow it."""
    source = reader(raw, size_max)
    tx = _unpack_tx(source)
    source.finish()
    return tx


def refusal_text(error: WireError) -> str:
    """What the node says of bytes that are no transaction: it has a text of its own for types in a wrong place."""
    interface = _INTERFACES.get(error.place) if isinstance(error, UnexpectedType) else None
    if not isinstance(error, UnexpectedType) or interface is None:
        return str(error)
    name = _OTHER_NAMES.get(error.type_id) or TX_NAMES.get(error.type_id)
    if name is None:
        return f"couldn't unmarshal interface: unknown type ID {error.type_id}"
    return f"couldn't unmarshal interface: *{name} does not implement interface {interface}"


def pack_tx(unsigned: UnsignedTx, credentials: Iterable[Credential] = ()) -> PlatformTx:
    """Write a transaction built here rather than received."""
    unsigned_raw = VERSION_BYTES + pack_unsigned(unsigned)
    signers = tuple(credentials)
    raw = unsigned_raw + pack_arrays(tuple(map(pack_part, signers)))
    return PlatformTx(unsigned, signers, raw, len(unsigned_raw), hash256(raw))


def unpack_block(raw: bytes, size_max: int = SIZE_MAX) -> PlatformBlock:
    """Read a block without its proposer's wrapping."""
    source = reader(raw, size_max)
    type_id = source.type_id()
    block_type = _BLOCK_TYPES.get(type_id)
    if block_type is None:
        raise unexpected(type_id, "block")
    time = source.u64() if block_type in _TIMED else None
    txs: tuple[PlatformTx, ...] = ()
    proposal = None
    if block_type is BlockType.BANFF_PROPOSAL:
        txs = unpack_list(source, _unpack_tx)
    parent_id, height = source.take(_COMMON)
    if block_type is BlockType.BANFF_STANDARD or block_type is BlockType.APRICOT_STANDARD:
        txs = unpack_list(source, _unpack_tx)
    elif block_type is BlockType.APRICOT_ATOMIC:
        txs = (_unpack_tx(source),)
    elif block_type is BlockType.BANFF_PROPOSAL or block_type is BlockType.APRICOT_PROPOSAL:
        proposal = _unpack_tx(source)
    source.finish()
    return PlatformBlock(block_type, parent_id, height, time, txs, proposal, raw, hash256(raw))


def pack_block(
    block_type: BlockType,
    parent_id: bytes,
    height: int,
    *,
    time: int | None = None,
    txs: Iterable[PlatformTx] = (),
    proposal: PlatformTx | None = None,
) -> PlatformBlock:
    """Write a block built here rather than received."""
    inside = tuple(txs)
    packed = [tx.raw[_VERSION_SIZE:] for tx in inside]
    pieces = [VERSION_BYTES, u32(block_type)]
    if block_type in _TIMED:
        pieces.append(u64(time or 0))
    if block_type is BlockType.BANFF_PROPOSAL:
        pieces.append(pack_arrays(tuple(packed)))
    pieces.append(_COMMON.pack(parent_id, height))
    if block_type in (BlockType.BANFF_STANDARD, BlockType.APRICOT_STANDARD):
        pieces.append(pack_arrays(tuple(packed)))
    elif block_type is BlockType.APRICOT_ATOMIC:
        pieces.extend(packed)
    if proposal is not None:
        pieces.append(proposal.raw[_VERSION_SIZE:])
    raw = b"".join(pieces)
    return PlatformBlock(block_type, parent_id, height, time, inside, proposal, raw, hash256(raw))


def unpack_utxo(raw: bytes) -> PlatformUtxo:
    """Read a UTXO as `platform.getUTXOs` sends it."""
    source = reader(raw)
    utxo = _unpack_utxo(source)
    source.finish()
    return utxo


def held_in_utxo(raw: bytes) -> tuple[bytes, int, bytes, int, int, int]:
    """Read what a stored UTXO holds, without its owners: transaction ID, output index, asset ID, until when it can only
    be staked (0: it is no stakeable output), amount, and locktime of its owners."""
    if raw[_UTXO_TYPE] == _STAKEABLE:
        _, txid, output_index, asset_id, _, stakeable_until, _, amount, locktime = _STAKEABLE_UTXO.unpack_from(raw)
        return txid, output_index, asset_id, stakeable_until, amount, locktime
    _, txid, output_index, asset_id, _, amount, locktime = _PLAIN_UTXO.unpack_from(raw)
    return txid, output_index, asset_id, 0, amount, locktime


def pack_utxo(utxo: PlatformUtxo) -> bytes:
    return VERSION_BYTES + utxo.txid + u32(utxo.output_index) + utxo.asset_id + pack_output(utxo.output)


def unpack_genesis(raw: bytes) -> PlatformGenesis:
    """Read the bytes that block 0 hashes."""
    source = reader(raw, GENESIS_SIZE_MAX)
    genesis = PlatformGenesis(
        unpack_list(source, _unpack_genesis_utxo),
        unpack_list(source, _unpack_tx),
        unpack_list(source, _unpack_tx),
        source.u64(),
        source.u64(),
        source.string(),
    )
    source.finish()
    return genesis


def genesis_block(genesis_raw: bytes) -> PlatformBlock:
    """Block 0, which no container holds: a commit upon the hash of the genesis bytes."""
    return pack_block(BlockType.APRICOT_COMMIT, hash256(genesis_raw), 0)


def _unpack_tx(source: Unpacker) -> PlatformTx:
    """Read a transaction: inside a block it has no version, yet its ID is that of the bytes with one."""
    start = source.offset
    unsigned = unpack_unsigned(source)
    unsigned_size = source.offset - start + _VERSION_SIZE
    credentials = unpack_list(source, unpack_credential)
    raw = VERSION_BYTES + source.raw[start : source.offset]
    return PlatformTx(unsigned, credentials, raw, unsigned_size, hash256(raw))


def _unpack_utxo(source: Unpacker) -> PlatformUtxo:
    txid, output_index, asset_id, type_id = source.take(_UTXO_HEAD)
    return PlatformUtxo(txid, output_index, asset_id, unpack_output(source, type_id))


def _unpack_genesis_utxo(source: Unpacker) -> tuple[PlatformUtxo, bytes]:
    return _unpack_utxo(source), source.blob()
