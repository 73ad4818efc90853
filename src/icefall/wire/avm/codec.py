"""Bytes of the asset chain's transactions, UTXOs, blocks and genesis, both ways."""

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from icefall.wire.avm.parts import (
    CREDENTIAL,
    STATE,
    misplaced,
    pack_operation,
    pack_part,
    pack_transferable_input,
    pack_transferable_output,
    unpack_in,
    unpack_operation,
    unpack_transferable_input,
    unpack_transferable_output,
)
from icefall.wire.avm.types import (
    BaseTx,
    Block,
    CreateAssetTx,
    ExportTx,
    GenesisAsset,
    ImportTx,
    InitialState,
    OperationTx,
    TransferableInput,
    TransferableOutput,
    Tx,
    Utxo,
    Verifiable,
)
from icefall.wire.errors import WireError
from icefall.wire.ids import EMPTY_ID, hash256
from icefall.wire.packer import (
    GENESIS_SIZE_MAX,
    SIZE_MAX,
    VERSION_BYTES,
    Layout,
    Unpacker,
    checked_count,
    pack_arrays,
    pack_blob,
    pack_string,
    reader,
    u32,
)

_T = TypeVar("_T")
_BaseFields = tuple[int, bytes, tuple[TransferableOutput, ...], tuple[TransferableInput, ...], bytes]

_BASE_HEAD = Layout("uint32", 32, "count")
_UTXO_HEAD = Layout(32, "uint32", 32)
_BLOCK_HEAD = Layout(32, "uint64", "uint64", 32, "count")


def unpack_tx(raw: bytes, size_max: int = SIZE_MAX) -> Tx:
    """A signed transaction; nothing may follow it."""
    source = reader(raw, size_max)
    unsigned = _unpack_unsigned(source)
    unsigned_size = source.offset
    credentials = _list(source, _unpack_credential)
    source.finish()
    return Tx(unsigned, credentials, raw, unsigned_size, hash256(raw))


def pack_tx(unsigned: BaseTx, credentials: Iterable[Verifiable] = ()) -> Tx:
    """A transaction built here rather than received."""
    unsigned_raw = pack_unsigned(unsigned)
    signers = tuple(credentials)
    raw = unsigned_raw + pack_arrays(tuple(map(pack_part, signers)))
    return Tx(unsigned, signers, raw, len(unsigned_raw), hash256(raw))


def pack_unsigned(unsigned: BaseTx) -> bytes:
    """Pack what is hashed and signed: version, type ID and body."""
    return VERSION_BYTES + u32(unsigned.type_id) + _PACK[unsigned.type_id](unsigned)


def unpack_utxo(raw: bytes) -> Utxo:
    """A UTXO as `avm.getUTXOs` sends it."""
    source = reader(raw)
    txid, output_index, asset_id = source.take(_UTXO_HEAD)
    utxo = Utxo(txid, output_index, asset_id, unpack_in(STATE, source))
    source.finish()
    return utxo


def pack_utxo(utxo: Utxo) -> bytes:
    return VERSION_BYTES + utxo.txid + u32(utxo.output_index) + utxo.asset_id + pack_part(utxo.output)


def unpack_block(raw: bytes, size_max: int = SIZE_MAX) -> Block:
    """A block as the chain's own IDs know it, without the proposer's wrapping."""
    source = reader(raw, size_max)
    type_id = source.type_id()
    if type_id != Block.type_id:
        raise misplaced(type_id, "block.Block")
    parent_id, height, time, merkle_root, count = source.take(_BLOCK_HEAD)
    txs = tuple([_unpack_tx_in_block(source) for _ in range(checked_count(count))])
    source.finish()
    return Block(parent_id, height, time, merkle_root, txs, raw, hash256(raw))


def pack_block(parent_id: bytes, height: int, time: int, txs: Iterable[Tx], merkle_root: bytes = EMPTY_ID) -> Block:
    """A block built here rather than received."""
    inside = tuple(txs)
    head = VERSION_BYTES + u32(Block.type_id) + _BLOCK_HEAD.pack(parent_id, height, time, merkle_root, len(inside))
    raw = head + b"".join(tx.raw[len(VERSION_BYTES) :] for tx in inside)
    return Block(parent_id, height, time, merkle_root, inside, raw, hash256(raw))


def unpack_genesis(raw: bytes) -> tuple[GenesisAsset, ...]:
    """The assets a chain starts with."""
    source = reader(raw, GENESIS_SIZE_MAX)
    assets = _list(source, lambda at: GenesisAsset(at.string(), _unpack_create_asset(at)))
    source.finish()
    return assets


def pack_genesis(assets: Iterable[GenesisAsset]) -> bytes:
    return VERSION_BYTES + pack_arrays(tuple(pack_string(row.alias) + _pack_create_asset(row.asset) for row in assets))


def genesis_txs(assets: Iterable[GenesisAsset]) -> list[Tx]:
    """The unsigned transactions whose IDs are the genesis assets' IDs."""
    return [pack_tx(row.asset) for row in assets]


def genesis_from_asset_tx(raw: bytes, alias: str = "AVAX") -> bytes:
    """Genesis bytes of a chain with one asset, from that asset's transaction as another node sends it."""
    tx = unpack_tx(raw, GENESIS_SIZE_MAX)
    if not isinstance(tx.unsigned, CreateAssetTx):
        raise WireError("transaction doesn't create an asset")
    return pack_genesis([GenesisAsset(alias, tx.unsigned)])


def _unpack_tx_in_block(source: Unpacker) -> Tx:
    """Unpack a transaction inside a block: it has no version there, yet its ID is that of the bytes with one."""
    start = source.offset
    unsigned = _unpack_unsigned(source)
    unsigned_size = source.offset - start + len(VERSION_BYTES)
    credentials = _list(source, _unpack_credential)
    raw = VERSION_BYTES + source.raw[start : source.offset]
    return Tx(unsigned, credentials, raw, unsigned_size, hash256(raw))


def _unpack_unsigned(source: Unpacker) -> BaseTx:
    type_id = source.type_id()
    unpack = _UNPACK.get(type_id)
    if unpack is None:
        raise misplaced(type_id, "txs.UnsignedTx")
    return unpack(source)


def _unpack_credential(source: Unpacker) -> Verifiable:
    credential: Verifiable = unpack_in(CREDENTIAL, source)
    return credential


def _list(source: Unpacker, unpack: Callable[[Unpacker], _T]) -> tuple[_T, ...]:
    return tuple([unpack(source) for _ in range(source.count())])


def _base_fields(source: Unpacker) -> _BaseFields:
    network_id, blockchain_id, count = source.take(_BASE_HEAD)
    outputs = tuple([unpack_transferable_output(source) for _ in range(checked_count(count))])
    return network_id, blockchain_id, outputs, _list(source, unpack_transferable_input), source.blob()


def _unpack_create_asset(source: Unpacker) -> CreateAssetTx:
    base = _base_fields(source)
    return CreateAssetTx(*base, source.string(), source.string(), source.u8(), _list(source, _unpack_state))


def _unpack_state(source: Unpacker) -> InitialState:
    return InitialState(source.u32(), _list(source, lambda at: unpack_in(STATE, at)))


def _unpack_operation_tx(source: Unpacker) -> OperationTx:
    return OperationTx(*_base_fields(source), _list(source, unpack_operation))


def _unpack_import(source: Unpacker) -> ImportTx:
    return ImportTx(*_base_fields(source), source.fixed(32), _list(source, unpack_transferable_input))


def _unpack_export(source: Unpacker) -> ExportTx:
    return ExportTx(*_base_fields(source), source.fixed(32), _list(source, unpack_transferable_output))


def _pack_base(tx: BaseTx) -> bytes:
    return b"".join(
        (
            u32(tx.network_id),
            tx.blockchain_id,
            pack_arrays(tuple(map(pack_transferable_output, tx.outputs))),
            pack_arrays(tuple(map(pack_transferable_input, tx.inputs))),
            pack_blob(tx.memo),
        )
    )


def _pack_create_asset(tx: CreateAssetTx) -> bytes:
    states = tuple(
        u32(state.fx_index) + pack_arrays(tuple(map(pack_part, state.outputs))) for state in tx.initial_states
    )
    names = pack_string(tx.name) + pack_string(tx.symbol) + bytes([tx.denomination])
    return _pack_base(tx) + names + pack_arrays(states)


def _pack_operation_tx(tx: OperationTx) -> bytes:
    return _pack_base(tx) + pack_arrays(tuple(map(pack_operation, tx.operations)))


def _pack_import(tx: ImportTx) -> bytes:
    inputs = pack_arrays(tuple(map(pack_transferable_input, tx.imported_inputs)))
    return _pack_base(tx) + tx.source_chain + inputs


def _pack_export(tx: ExportTx) -> bytes:
    return (
        _pack_base(tx) + tx.destination_chain + pack_arrays(tuple(map(pack_transferable_output, tx.exported_outputs)))
    )


_UNPACK: dict[int, Callable[[Unpacker], BaseTx]] = {
    BaseTx.type_id: lambda source: BaseTx(*_base_fields(source)),
    CreateAssetTx.type_id: _unpack_create_asset,
    OperationTx.type_id: _unpack_operation_tx,
    ImportTx.type_id: _unpack_import,
    ExportTx.type_id: _unpack_export,
}
_PACK: dict[int, Callable[[Any], bytes]] = {
    BaseTx.type_id: _pack_base,
    CreateAssetTx.type_id: _pack_create_asset,
    OperationTx.type_id: _pack_operation_tx,
    ImportTx.type_id: _pack_import,
    ExportTx.type_id: _pack_export,
}
