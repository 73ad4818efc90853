"""Outputs of X and of the memory that X, P and C share, as clients of X and C know them."""

import base64
from collections.abc import Iterable, Sequence

from msgspec import UNSET, UnsetType

from icefall.api.networks.network import PrimaryNetwork
from icefall.api.networks.schema.x_chain import UtxoCredential, UtxoResult
from icefall.wire.avm.codec import unpack_utxo
from icefall.wire.avm.types import NftMintOutput, NftTransferOutput, TransferableInput, TransferOutput
from icefall.wire.errors import WireError
from icefall.wire.ids import hash160, id_text, input_id
from icefall.wire.keys import recover_key
from icefall.wire.text import checksum_hex
from icefall.xchain.outputs import OUTPUT_TYPES, ListedOutput, amount_of


def asset_of(row: ListedOutput) -> tuple[bytes, int]:
    """The asset of an output, and how much of it there is."""
    utxo = unpack_utxo(row.raw)
    return utxo.asset_id, amount_of(utxo.output)


def listed_utxo(
    network: PrimaryNetwork,
    row: ListedOutput,
    *,
    with_bytes: bool = False,
    credentials: list[UtxoCredential] | UnsetType = UNSET,
) -> UtxoResult:
    """A stored output."""
    utxo = unpack_utxo(row.raw)
    output = utxo.output
    nft = output if isinstance(output, NftTransferOutput) else None
    group = output.group_id if isinstance(output, NftTransferOutput | NftMintOutput) else UNSET
    return UtxoResult(
        addresses=network.addresses(output.owners.addresses),
        asset=network.assets.amount(utxo.asset_id, amount_of(output)),
        consumed_on_chain_id=id_text(row.destination),
        consuming_tx_hash=UNSET if row.spent_txid is None else id_text(row.spent_txid),
        created_on_chain_id=id_text(row.source),
        utxo_id=id_text(row.utxo_id),
        utxo_bytes=checksum_hex.encode(row.raw) if with_bytes else UNSET,
        consuming_tx_timestamp=UNSET if row.spent_time is None else row.spent_time,
        creation_tx_hash=id_text(utxo.txid),
        credentials=credentials,
        group_id=group,
        locktime=output.owners.locktime,
        output_index=str(utxo.output_index),
        payload=f"0x{nft.payload.hex()}" if nft else UNSET,
        threshold=output.owners.threshold,
        timestamp=row.created_time,
        utxo_type=OUTPUT_TYPES[type(output)],
    )


def unseen_utxo(
    network: PrimaryNetwork,
    given: TransferableInput,
    source: bytes,
    destination: bytes,
    consumed: tuple[bytes, int],
    signed: tuple[Sequence[bytes], bytes],
) -> UtxoResult:
    """An imported output whose export was not seen here: its owners are those who signed, and its time is 0. `consumed`
    is by which transaction and when, `signed` the signatures and the hash that they sign."""
    txid, time = consumed
    signatures, digest = signed
    return UtxoResult(
        addresses=network.addresses(_signers(signatures, digest)),
        asset=network.assets.amount(given.asset_id, given.input.amount),
        consumed_on_chain_id=id_text(destination),
        consuming_tx_hash=id_text(txid),
        created_on_chain_id=id_text(source),
        utxo_id=id_text(input_id(given.txid, given.output_index)),
        consuming_tx_timestamp=time,
        creation_tx_hash=id_text(given.txid),
        locktime=0,
        output_index=str(given.output_index),
        threshold=len(signatures),
        timestamp=0,
        utxo_type=OUTPUT_TYPES[TransferOutput],
    )


def _signers(signatures: Iterable[bytes], digest: bytes) -> list[bytes]:
    try:
        return [hash160(recover_key(signature, digest)) for signature in signatures]
    except WireError:
        return []


def credentials_of(signatures: Iterable[bytes], digest: bytes | None) -> list[UtxoCredential]:
    """Signatures in base64, and who made them where the hash that they sign is given."""
    found = []
    for signature in signatures:
        key: str | UnsetType = UNSET
        if digest is not None:
            try:
                key = base64.b64encode(recover_key(signature, digest)).decode()
            except WireError:
                key = UNSET
        found.append(UtxoCredential(signature=base64.b64encode(signature).decode(), public_key=key))
    return found
