"""Blocks of the P-Chain with their proposer's wrapping."""

from msgspec import UNSET, UnsetType

from icefall.api.networks.schema.blocks import PrimaryNetworkBlock, ProposerDetails
from icefall.pchain.listing import ListedBlock
from icefall.wire.container.proposer import OPTION, unpack_container
from icefall.wire.ids import id_text, node_id_text
from icefall.wire.pvm.codec import unpack_block
from icefall.wire.pvm.types import BlockType


def block_type_name(block_type: BlockType) -> str:
    """Write a type as clients know it: `BanffStandardBlock`."""
    return "".join(word.capitalize() for word in block_type.name.split("_")) + "Block"


def platform_block(row: ListedBlock) -> PrimaryNetworkBlock:
    block = unpack_block(row.inner)
    txs = [id_text(tx.txid) for tx in (*block.txs, *([block.proposal] if block.proposal is not None else []))]
    return PrimaryNetworkBlock(
        block_number=str(row.height),
        block_hash=id_text(row.block_id),
        parent_hash=id_text(block.parent_id),
        block_timestamp=row.time if block.time is None else block.time,
        block_type=block_type_name(block.block_type),
        tx_count=len(txs),
        transactions=txs,
        block_size_bytes=row.inner_size,
        current_supply=UNSET if row.supply is None else str(row.supply),
        active_l1_validators=UNSET if row.active_l1 is None else row.active_l1,
        l1_validators_accrued_fees=UNSET if row.accrued_fees is None else row.accrued_fees,
        proposer_details=proposer_of(row.container, row.inner_size),
    )


def proposer_of(raw: bytes, inner_size: int) -> ProposerDetails | UnsetType:
    """The wrapping; block 0 and blocks from before the proposer VM have none."""
    if inner_size == len(raw):
        return UNSET
    container = unpack_container(raw)
    known = ProposerDetails(
        proposer_id=id_text(container.container_id), proposer_parent_id=id_text(container.parent_id)
    )
    if container.type_id == OPTION:
        return known
    return ProposerDetails(
        proposer_id=known.proposer_id,
        proposer_parent_id=known.proposer_parent_id,
        proposer_node_id=node_id_text(container.certificate) if container.certificate else UNSET,
        proposer_p_chain_height=container.p_chain_height,
        proposer_timestamp=container.timestamp,
    )
