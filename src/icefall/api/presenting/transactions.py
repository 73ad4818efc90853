"""Blocks and transactions as the chain data API returns them."""

from typing import Any

from msgspec import UNSET
from msgspec.structs import asdict

from icefall.api.presenting.context import AnswerContext, in_pieces
from icefall.api.presenting.hex import hash_text
from icefall.api.presenting.tokens import party
from icefall.api.presenting.transfers import nested_internal, nested_transfer
from icefall.api.schema.blocks import EvmBlock
from icefall.api.schema.transactions import FullNativeTransaction, Method, NativeTransaction, TransactionDetails
from icefall.evm.model import ERC20, ERC721, ERC1155
from icefall.evm.reading.model import BlockRead, FullTxRead, TxParts, TxRead


def block(chain_id: str, row: BlockRead) -> EvmBlock:
    return EvmBlock(
        chain_id=chain_id,
        block_number=str(row.number),
        block_timestamp=row.time,
        block_hash=hash_text(row.block_hash),
        tx_count=row.tx_count,
        base_fee=str(row.base_fee),
        gas_used=str(row.gas_used),
        gas_limit=str(row.gas_limit),
        gas_cost=str(row.gas_cost),
        parent_hash=hash_text(row.parent_hash),
        fees_spent=str(row.fees_spent),
        cumulative_transactions=str(row.cumulative_txs),
    )


def native(context: AnswerContext, tx: TxRead) -> NativeTransaction:
    return NativeTransaction(
        block_number=str(tx.location.block_number),
        block_timestamp=tx.location.time,
        block_hash=hash_text(tx.location.block_hash),
        chain_id=context.chain_id,
        block_index=tx.tx_index,
        tx_hash=hash_text(tx.location.tx_hash),
        tx_status="1" if tx.status else "0",
        tx_type=tx.type_id,
        gas_limit=str(tx.gas_limit),
        gas_used=str(tx.gas_used),
        gas_price=str(tx.gas_price),
        nonce=str(tx.nonce),
        from_=party(context, tx.sender, tx.sender_ref),
        to=party(context, tx.to, tx.to_ref),
        method=_method(context, tx),
        value=str(tx.value),
    )


def _method(context: AnswerContext, tx: TxRead) -> Method:
    name = context.method_names.get(tx.selector) if tx.selector else None
    return Method(tx.call_type.value, hash_text(tx.selector), UNSET if name is None else name)


def full_native(context: AnswerContext, full: FullTxRead) -> FullNativeTransaction:
    listed = native(context, full.tx)
    max_fee, max_priority_fee = full.tx.max_fee, full.tx.max_priority_fee
    return FullNativeTransaction(
        **asdict(listed),
        input=hash_text(full.input),
        base_fee_per_gas=str(full.base_fee),
        max_fee_per_gas=UNSET if max_fee is None else str(max_fee),
        max_priority_fee_per_gas=UNSET if max_priority_fee is None else str(max_priority_fee),
    )


async def details(context: AnswerContext, tx: TxRead, parts: TxParts) -> TransactionDetails:
    return TransactionDetails(native(context, tx), *await nested_lists(context, parts), parts.truncated or UNSET)


async def nested_lists(context: AnswerContext, parts: TxParts) -> tuple[list[Any], list[Any], list[Any], list[Any]]:
    """ERC-20, ERC-721 and ERC-1155 transfers, and internal transactions."""
    return (
        await in_pieces(parts.of(ERC20), lambda row: nested_transfer(context, row)),
        await in_pieces(parts.of(ERC721), lambda row: nested_transfer(context, row)),
        await in_pieces(parts.of(ERC1155), lambda row: nested_transfer(context, row)),
        await in_pieces(parts.internals, lambda row: nested_internal(context, row)),
    )
