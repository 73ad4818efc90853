"""Blocks and transactions as the interface writes them."""

from msgspec import UNSET
from msgspec.structs import asdict

from icefall.api.presenting.knowledge import AnswerContext
from icefall.api.presenting.texts import hash_text
from icefall.api.presenting.tokens import party
from icefall.api.presenting.transfers import nested_erc20, nested_erc721, nested_erc1155, nested_internal
from icefall.api.schema.blocks import EvmBlock
from icefall.api.schema.transactions import FullNativeTransaction, Method, NativeTransaction, TransactionDetails
from icefall.evm.reading.model import BlockRead, FullTxRead, Parts, TxRead


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


def native(known: AnswerContext, tx: TxRead) -> NativeTransaction:
    return NativeTransaction(
        block_number=str(tx.place.block_number),
        block_timestamp=tx.place.time,
        block_hash=hash_text(tx.place.block_hash),
        chain_id=known.chain_id,
        block_index=tx.tx_index,
        tx_hash=hash_text(tx.place.tx_hash),
        tx_status="1" if tx.status else "0",
        tx_type=tx.type_id,
        gas_limit=str(tx.gas_limit),
        gas_used=str(tx.gas_used),
        gas_price=str(tx.gas_price),
        nonce=str(tx.nonce),
        from_=party(known, tx.sender, tx.sender_ref),
        to=party(known, tx.to, tx.to_ref),
        method=_method(known, tx),
        value=str(tx.value),
    )


def _method(known: AnswerContext, tx: TxRead) -> Method:
    name = known.method_names.get(tx.selector) if tx.selector else None
    return Method(tx.call_type.value, hash_text(tx.selector), UNSET if name is None else name)


def full_native(known: AnswerContext, full: FullTxRead) -> FullNativeTransaction:
    listed = native(known, full.tx)
    max_fee, max_priority_fee = full.tx.max_fee, full.tx.max_priority_fee
    return FullNativeTransaction(
        **asdict(listed),
        input=hash_text(full.input),
        base_fee_per_gas=str(full.base_fee),
        max_fee_per_gas=UNSET if max_fee is None else str(max_fee),
        max_priority_fee_per_gas=UNSET if max_priority_fee is None else str(max_priority_fee),
    )


def details(known: AnswerContext, tx: TxRead, parts: Parts) -> TransactionDetails:
    return TransactionDetails(
        native(known, tx),
        [nested_erc20(known, row) for row in parts.erc20],
        [nested_erc721(known, row) for row in parts.erc721],
        [nested_erc1155(known, row) for row in parts.erc1155],
        [nested_internal(known, row) for row in parts.internals],
    )
