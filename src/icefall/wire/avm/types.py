"""Values of the asset chain: transactions, outputs, inputs, operations, credentials, UTXOs, blocks.

Plain immutable values. Byte layouts are in `parts` and `codec`, JSON is in `json`.
"""

from typing import ClassVar, TypeAlias

import msgspec


class Owners(msgspec.Struct, frozen=True, gc=False):
    """The condition for spending: signatures of `threshold` of the `addresses`, from `locktime` (Unix seconds) on."""

    locktime: int
    threshold: int
    addresses: tuple[bytes, ...]


class TransferInput(msgspec.Struct, frozen=True, gc=False):
    type_id: ClassVar[int] = 5
    amount: int
    signature_indices: tuple[int, ...]


class MintOutput(msgspec.Struct, frozen=True, gc=False):
    type_id: ClassVar[int] = 6
    owners: Owners


class TransferOutput(msgspec.Struct, frozen=True, gc=False):
    type_id: ClassVar[int] = 7
    amount: int
    owners: Owners


class MintOperation(msgspec.Struct, frozen=True, gc=False):
    type_id: ClassVar[int] = 8
    signature_indices: tuple[int, ...]
    mint_output: MintOutput
    transfer_output: TransferOutput


class Credential(msgspec.Struct, frozen=True, gc=False):
    type_id: ClassVar[int] = 9
    signatures: tuple[bytes, ...]


class NftMintOutput(msgspec.Struct, frozen=True, gc=False):
    type_id: ClassVar[int] = 10
    group_id: int
    owners: Owners


class NftTransferOutput(msgspec.Struct, frozen=True, gc=False):
    type_id: ClassVar[int] = 11
    group_id: int
    payload: bytes
    owners: Owners


class NftMintOperation(msgspec.Struct, frozen=True, gc=False):
    """Makes one token per entry of `outputs`."""

    type_id: ClassVar[int] = 12
    signature_indices: tuple[int, ...]
    group_id: int
    payload: bytes
    outputs: tuple[Owners, ...]


class NftTransferOperation(msgspec.Struct, frozen=True, gc=False):
    type_id: ClassVar[int] = 13
    signature_indices: tuple[int, ...]
    output: NftTransferOutput


class NftCredential(msgspec.Struct, frozen=True, gc=False):
    type_id: ClassVar[int] = 14
    signatures: tuple[bytes, ...]


class PropertyMintOutput(msgspec.Struct, frozen=True, gc=False):
    type_id: ClassVar[int] = 15
    owners: Owners


class PropertyOwnedOutput(msgspec.Struct, frozen=True, gc=False):
    type_id: ClassVar[int] = 16
    owners: Owners


class PropertyMintOperation(msgspec.Struct, frozen=True, gc=False):
    type_id: ClassVar[int] = 17
    signature_indices: tuple[int, ...]
    mint_output: PropertyMintOutput
    owned_output: PropertyOwnedOutput


class PropertyBurnOperation(msgspec.Struct, frozen=True, gc=False):
    type_id: ClassVar[int] = 18
    signature_indices: tuple[int, ...]


class PropertyCredential(msgspec.Struct, frozen=True, gc=False):
    type_id: ClassVar[int] = 19
    signatures: tuple[bytes, ...]


Output: TypeAlias = (
    TransferOutput | MintOutput | NftMintOutput | NftTransferOutput | PropertyMintOutput | PropertyOwnedOutput
)
FxOperation: TypeAlias = (
    MintOperation | NftMintOperation | NftTransferOperation | PropertyMintOperation | PropertyBurnOperation
)
AnyCredential: TypeAlias = Credential | NftCredential | PropertyCredential
# The codec accepts any Fx value in the position of a credential; only verification refuses it.
Verifiable: TypeAlias = AnyCredential | Output | FxOperation | TransferInput


class UtxoId(msgspec.Struct, frozen=True, gc=False):
    """Names an output by the transaction that made it."""

    txid: bytes
    output_index: int


class TransferableOutput(msgspec.Struct, frozen=True, gc=False):
    asset_id: bytes
    output: TransferOutput


class TransferableInput(msgspec.Struct, frozen=True, gc=False):
    txid: bytes
    output_index: int
    asset_id: bytes
    input: TransferInput


class Operation(msgspec.Struct, frozen=True, gc=False):
    asset_id: bytes
    utxo_ids: tuple[UtxoId, ...]
    operation: FxOperation


class InitialState(msgspec.Struct, frozen=True, gc=False):
    """First outputs of a new asset, under the Fx that `fx_index` counts."""

    fx_index: int
    outputs: tuple[Output, ...]


class BaseTx(msgspec.Struct, frozen=True, gc=False):
    """A plain transfer, and the part that every other transaction starts with."""

    type_id: ClassVar[int] = 0
    network_id: int
    blockchain_id: bytes
    outputs: tuple[TransferableOutput, ...]
    inputs: tuple[TransferableInput, ...]
    memo: bytes


class CreateAssetTx(BaseTx, frozen=True, gc=False):
    type_id: ClassVar[int] = 1
    name: str
    symbol: str
    denomination: int
    initial_states: tuple[InitialState, ...]


class OperationTx(BaseTx, frozen=True, gc=False):
    type_id: ClassVar[int] = 2
    operations: tuple[Operation, ...]


class ImportTx(BaseTx, frozen=True, gc=False):
    type_id: ClassVar[int] = 3
    source_chain: bytes
    imported_inputs: tuple[TransferableInput, ...]


class ExportTx(BaseTx, frozen=True, gc=False):
    type_id: ClassVar[int] = 4
    destination_chain: bytes
    exported_outputs: tuple[TransferableOutput, ...]


class Tx(msgspec.Struct, frozen=True, gc=False):
    """A transaction with its credentials, and the bytes it came from: those are stored and sent, never rebuilt."""

    unsigned: BaseTx
    credentials: tuple[Verifiable, ...]
    raw: bytes
    unsigned_size: int
    txid: bytes

    @property
    def unsigned_raw(self) -> bytes:
        """The bytes whose hash the signatures sign."""
        return self.raw[: self.unsigned_size]


class Utxo(msgspec.Struct, frozen=True, gc=False):
    txid: bytes
    output_index: int
    asset_id: bytes
    output: Output


class Block(msgspec.Struct, frozen=True, gc=False):
    type_id: ClassVar[int] = 20
    parent_id: bytes
    height: int
    time: int
    merkle_root: bytes
    txs: tuple[Tx, ...]
    raw: bytes
    block_id: bytes


class GenesisAsset(msgspec.Struct, frozen=True, gc=False):
    """An asset that exists from the start, known by an alias."""

    alias: str
    asset: CreateAssetTx
