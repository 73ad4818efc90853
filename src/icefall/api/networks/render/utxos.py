"""Outputs of the P-Chain: stored ones, those it shares with other chains, and those that an import took from one."""

from collections.abc import Iterable
from typing import Any, Literal

from msgspec import UNSET
from msgspec.structs import replace

from icefall.api.networks.network import PrimaryNetwork
from icefall.api.networks.schema.assets import NetworkAsset, PlatformUtxoResult, RewardType
from icefall.pchain.listing import ListedTx, ListedUtxo
from icefall.pchain.model import UtxoKind, UtxoState, plain_output
from icefall.wire.avm.codec import unpack_utxo as unpack_exported
from icefall.wire.errors import WireError
from icefall.wire.ids import PLATFORM_CHAIN, hash256, id_text, input_id
from icefall.wire.pvm.codec import unpack_utxo
from icefall.wire.pvm.types import PlatformInput, PlatformOutput, PlatformTx, StakeableInput
from icefall.wire.text import checksum_hex
from icefall.xchain.outputs import ListedOutput, amount_of
from icefall.xchain.ownership import Signers

_P = id_text(PLATFORM_CHAIN)
REWARD_TYPES: dict[UtxoKind, RewardType] = {
    UtxoKind.VALIDATOR_REWARD: "VALIDATOR",
    UtxoKind.DELEGATOR_REWARD: "DELEGATOR",
    UtxoKind.VALIDATOR_FEE: "VALIDATOR_FEE",
}
_signers = Signers(4096)


def stored_utxo(
    network: PrimaryNetwork,
    row: ListedUtxo,
    *,
    in_tx: bool = False,
    made: bool = False,
    with_bytes: bool = False,
) -> PlatformUtxoResult:
    """A stored output. In a transaction (`in_tx`) rewards say what they reward, and in the one that `made` it a stake
    is one for ever."""
    utxo = unpack_utxo(row.raw)
    amount, stakeable_locktime, owners = plain_output(utxo.output)
    asset = network.assets.amount(utxo.asset_id, amount)
    is_spent = row.state == UtxoState.SPENT
    is_staked = row.state == UtxoState.STAKED or (made and row.kind == UtxoKind.STAKE)
    return PlatformUtxoResult(
        addresses=network.addresses(owners.addresses),
        utxo_id=id_text(row.utxo_id),
        utxo_bytes=checksum_hex.encode(row.raw) if with_bytes else UNSET,
        tx_hash=id_text(utxo.txid),
        output_index=utxo.output_index,
        amount=asset.amount,
        asset_id=asset.asset_id,
        asset=asset,
        block_number=str(row.height or 0),
        block_timestamp=row.created_time,
        created_on_chain_id=_P,
        consumed_on_chain_id=_P,
        consuming_tx_hash=id_text(row.spent_txid) if is_spent and row.spent_txid is not None else UNSET,
        consuming_block_number=str(row.spent_height) if is_spent else UNSET,
        consuming_block_timestamp=row.spent_time if is_spent and row.spent_time is not None else UNSET,
        platform_locktime=owners.locktime,
        stakeable_locktime=stakeable_locktime or UNSET,
        threshold=owners.threshold,
        staked=is_staked,
        utxo_start_timestamp=UNSET if row.stake_start is None else row.stake_start,
        utxo_end_timestamp=UNSET if row.stake_end is None else row.stake_end,
        reward_type=REWARD_TYPES.get(row.kind, UNSET) if in_tx else UNSET,
        utxo_type=_utxo_type(stakeable_locktime),
    )


def _utxo_type(stakeable_locktime: int) -> Literal["STAKE", "TRANSFER"]:
    return "STAKE" if stakeable_locktime else "TRANSFER"


def shared_utxo(network: PrimaryNetwork, row: ListedOutput) -> PlatformUtxoResult:
    """An output that P has exported, or another chain to P. Its locktime is shown where P made it, as clients know."""
    utxo = unpack_exported(row.raw)
    owners = utxo.output.owners
    asset = network.assets.amount(utxo.asset_id, amount_of(utxo.output))
    return PlatformUtxoResult(
        addresses=network.addresses(owners.addresses),
        utxo_id=id_text(row.utxo_id),
        utxo_bytes=checksum_hex.encode(row.raw),
        tx_hash=id_text(utxo.txid),
        output_index=utxo.output_index,
        amount=asset.amount,
        asset_id=asset.asset_id,
        asset=asset,
        block_number=str(row.created_height),
        block_timestamp=row.created_time,
        created_on_chain_id=id_text(row.source),
        consumed_on_chain_id=id_text(row.destination),
        platform_locktime=owners.locktime if row.source == PLATFORM_CHAIN else UNSET,
        threshold=owners.threshold,
        staked=False,
        utxo_type="TRANSFER",
        **_consumed(row),
    )


def _consumed(row: ListedOutput | None) -> dict[str, Any]:
    """What consumed an output that chains share, if something did."""
    if row is None or row.spent_txid is None:
        return {}
    return {
        "consuming_tx_hash": id_text(row.spent_txid),
        "consuming_block_number": str(row.spent_height),
        "consuming_block_timestamp": row.spent_time,
    }


def exported_utxo(
    network: PrimaryNetwork, tx: ListedTx, index: int, out: PlatformOutput, destination: bytes, row: ListedOutput | None
) -> PlatformUtxoResult:
    """An output that a transaction put into another chain's memory; `row` is what is known of it there."""
    amount, stakeable_locktime, owners = plain_output(out.output)
    return PlatformUtxoResult(
        addresses=network.addresses(owners.addresses),
        utxo_id=id_text(input_id(tx.txid, index)),
        tx_hash=id_text(tx.txid),
        output_index=index,
        amount=str(amount),
        asset_id=id_text(out.asset_id),
        asset=network.assets.amount(out.asset_id, amount),
        block_number=str(tx.height),
        block_timestamp=tx.time,
        created_on_chain_id=_P,
        consumed_on_chain_id=id_text(destination),
        platform_locktime=owners.locktime,
        stakeable_locktime=stakeable_locktime or UNSET,
        threshold=owners.threshold,
        staked=False,
        utxo_type=_utxo_type(stakeable_locktime),
        **_consumed(row),
    )


def imported_utxo(
    network: PrimaryNetwork,
    row: ListedTx,
    tx: PlatformTx,
    position: int,
    given: PlatformInput,
    source: bytes,
    made: ListedOutput | None,
) -> PlatformUtxoResult:
    """An output of another chain that an import consumed. Where the export was not seen (`made` is None), its owners
    are those who signed, and its block and time are 0."""
    if made is not None:
        return replace(shared_utxo(network, made), utxo_bytes=UNSET)
    signatures = tx.credentials[position].signatures if position < len(tx.credentials) else ()
    digest = hash256(tx.raw[: tx.unsigned_size])
    try:
        owners = tuple(_signers(signature, digest) for signature in signatures)
    except WireError:  # no signature of any key
        owners = ()
    amount = given.input.input.amount if isinstance(given.input, StakeableInput) else given.input.amount
    return PlatformUtxoResult(
        addresses=network.addresses(owners),
        utxo_id=id_text(input_id(given.txid, given.output_index)),
        tx_hash=id_text(given.txid),
        output_index=given.output_index,
        amount=str(amount),
        asset_id=id_text(given.asset_id),
        asset=network.assets.amount(given.asset_id, amount),
        block_number="0",
        block_timestamp=0,
        created_on_chain_id=id_text(source),
        consumed_on_chain_id=_P,
        consuming_tx_hash=id_text(row.txid),
        consuming_block_number=str(row.height),
        consuming_block_timestamp=row.time,
        staked=False,
        utxo_type="TRANSFER",
    )


def sums(network: PrimaryNetwork, amounts: Iterable[tuple[bytes, int]]) -> list[NetworkAsset]:
    """Amounts added up by asset; those that are nothing are left out."""
    totals: dict[bytes, int] = {}
    for asset_id, amount in amounts:
        totals[asset_id] = totals.get(asset_id, 0) + amount
    return [network.assets.amount(asset_id, total) for asset_id, total in totals.items() if total > 0]
