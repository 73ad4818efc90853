"""Transactions made by hand, right or wrong, and a state to try them on."""

from collections.abc import Callable, Sequence
from hashlib import sha256
from itertools import count
from typing import Any

from tests.xchain.memory_state import GENESIS, RULES, MemoryState

from icefall.wire.avm.codec import pack_tx, pack_unsigned
from icefall.wire.avm.types import (
    AnyCredential,
    BaseTx,
    CreateAssetTx,
    Credential,
    ExportTx,
    ImportTx,
    InitialState,
    Operation,
    OperationTx,
    Output,
    Owners,
    TransferableInput,
    TransferableOutput,
    TransferInput,
    TransferOutput,
    Tx,
    Utxo,
    UtxoId,
    Verifiable,
)
from icefall.wire.ids import hash256, input_id
from icefall.wire.keys import address_of, sign
from icefall.xchain.model import TxRefused

AVAX = RULES.fee_asset_id
C_CHAIN = GENESIS.c_chain_id
FEE = RULES.tx_fee
NOW_S = 1_800_000_000

_SECRETS = sorted((sha256(b"key" + bytes([index])).digest() for index in range(4)), key=address_of)
KEYS = tuple(_SECRETS)  # in the order of their addresses
ADDRESSES = tuple(address_of(secret) for secret in KEYS)
ALICE = Owners(0, 1, (ADDRESSES[0],))
BOB = Owners(0, 1, (ADDRESSES[1],))
BOTH = Owners(0, 2, ADDRESSES[:2])
NO_OWNERS = Owners(0, 0, ())
LATER = Owners(NOW_S + 1, 1, (ADDRESSES[0],))

_serial = count(1)


class World(MemoryState):
    """A state into which outputs and assets can be put out of thin air."""

    def fund(self, output: Output | None = None, asset_id: bytes = AVAX, txid: bytes = b"") -> Utxo:
        utxo = Utxo(txid or fresh_id(), 0, asset_id, output or TransferOutput(10 * FEE, ALICE))
        self.utxos[input_id(utxo.txid, 0)] = utxo
        return utxo

    def export(self, peer_chain_id: bytes, output: Output | None = None, asset_id: bytes = AVAX) -> Utxo:
        utxo = Utxo(fresh_id(), 0, asset_id, output or TransferOutput(10 * FEE, ALICE))
        self.put_atomic(peer_chain_id, utxo)
        return utxo

    def asset(self, *fxs: int) -> bytes:
        """The ID of a new asset that supports these."""
        states = tuple(InitialState(fx, ()) for fx in fxs)
        tx = pack_tx(CreateAssetTx(*place(), (), (), fresh_id(), "Some Asset", "SOME", 0, states))
        self.txs[tx.txid] = tx
        return tx.txid

    def some_tx(self) -> bytes:
        """The ID of a transaction that made no asset."""
        tx = pack_tx(BaseTx(*place(), (), (), fresh_id()))
        self.txs[tx.txid] = tx
        return tx.txid


def fresh_id() -> bytes:
    return hash256(next(_serial).to_bytes(8, "big"))


def place() -> tuple[int, bytes]:
    return RULES.network_id, RULES.chain_id


def out(amount: int = FEE, owners: Owners = ALICE, asset_id: bytes = AVAX) -> TransferableOutput:
    return TransferableOutput(asset_id, TransferOutput(amount, owners))


def spend(utxo: Utxo, amount: int | None = None, indices: tuple[int, ...] | None = None) -> TransferableInput:
    """The input that spends all of a UTXO, unless given otherwise."""
    held = utxo.output.amount if isinstance(utxo.output, TransferOutput) else 1
    signers = range(utxo.output.owners.threshold) if indices is None else indices
    given = TransferInput(held if amount is None else amount, tuple(signers))
    return TransferableInput(utxo.txid, utxo.output_index, utxo.asset_id, given)


def spend_any(amount: int = 10 * FEE, asset_id: bytes = AVAX, txid: bytes = b"\1" * 32) -> TransferableInput:
    """An input of something that need not exist."""
    return TransferableInput(txid, 0, asset_id, TransferInput(amount, (0,)))


def base(
    outputs: Sequence[TransferableOutput] = (), inputs: Sequence[TransferableInput] = (), memo: bytes = b""
) -> Any:
    return BaseTx(*place(), tuple(outputs), tuple(inputs), memo)


def create(
    *states: InitialState, name: str = "Some Asset", symbol: str = "SOME", denomination: int = 9, inputs: Any = None
) -> Any:
    paid = (spend_any(),) if inputs is None else tuple(inputs)
    return CreateAssetTx(*place(), (), paid, b"", name, symbol, denomination, states)


def operate(*operations: Operation, inputs: Sequence[TransferableInput] = (), outputs: Any = ()) -> Any:
    return OperationTx(*place(), tuple(outputs), tuple(inputs) or (spend_any(),), b"", operations)


def on(utxo: Utxo, operation: Any) -> Operation:
    return Operation(utxo.asset_id, (UtxoId(utxo.txid, utxo.output_index),), operation)


def import_(
    *imported: TransferableInput, source: bytes = C_CHAIN, outputs: Any = (), inputs: Any = (), memo: bytes = b""
) -> Any:
    return ImportTx(*place(), tuple(outputs), tuple(inputs), memo, source, imported)


def export(
    *exported: TransferableOutput, destination: bytes = C_CHAIN, outputs: Any = (), inputs: Any = (), memo: bytes = b""
) -> Any:
    return ExportTx(*place(), tuple(outputs), tuple(inputs), memo, destination, exported)


def unsigned_with(unsigned: BaseTx, *credentials: Verifiable) -> Tx:
    return pack_tx(unsigned, credentials)


def signed(unsigned: BaseTx, *signers: Sequence[bytes], fxs: Sequence[type[AnyCredential]] = ()) -> Tx:
    """With one credential per entry of `signers` (default: the first key signs every input)."""
    lists = signers or [KEYS[:1]] * len(unsigned.inputs)
    digest = hash256(pack_unsigned(unsigned))
    kinds = [*fxs, *[Credential] * (len(lists) - len(fxs))]
    return pack_tx(
        unsigned, [kind(tuple(sign(key, digest) for key in row)) for kind, row in zip(kinds, lists, strict=True)]
    )


def refusal_of(call: Callable[..., Any], *args: Any) -> str | None:
    """The text with which a call refuses; None if it does not."""
    try:
        call(*args)
    except TxRefused as refusal:
        return str(refusal)
    return None


def empty_credentials(number: int) -> list[Credential]:
    return [Credential(())] * number
