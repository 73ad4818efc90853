"""Blocks and transactions as JSON, with the fields of the schema in their order."""

from msgspec import UNSET, Raw

from icefall.api.presenting.context import AnswerContext, in_pieces
from icefall.api.presenting.json_text import Ready, quoted
from icefall.api.presenting.tokens import party
from icefall.api.presenting.transfers import nested_internal, nested_transfer
from icefall.api.schema.transactions import TransactionDetails
from icefall.evm.model import ERC20, ERC721, ERC1155
from icefall.evm.reading.model import BlockRead, FullTxRead, TxParts, TxRead


def block(chain_id: str, row: BlockRead) -> Ready:
    """An EvmBlock."""
    return Raw(
        f'{{"chainId":{quoted(chain_id)},"blockNumber":"{row.number}","blockTimestamp":{row.time},'
        f'"blockHash":"0x{row.block_hash.hex()}","txCount":{row.tx_count},"baseFee":"{row.base_fee}",'
        f'"gasUsed":"{row.gas_used}","gasLimit":"{row.gas_limit}","gasCost":"{row.gas_cost}",'
        f'"parentHash":"0x{row.parent_hash.hex()}","feesSpent":"{row.fees_spent}",'
        f'"cumulativeTransactions":"{row.cumulative_txs}"}}'
    )


def native(context: AnswerContext, tx: TxRead) -> Ready:
    """A NativeTransaction."""
    return Raw(f"{{{_native_fields(context, tx)}}}")


def full_native(context: AnswerContext, full: FullTxRead) -> Ready:
    """A FullNativeTransaction."""
    max_fee, max_priority_fee = full.tx.max_fee, full.tx.max_priority_fee
    return Raw(
        f'{{{_native_fields(context, full.tx)},"input":"0x{full.input.hex()}","baseFeePerGas":"{full.base_fee}"'
        + ("" if max_fee is None else f',"maxFeePerGas":"{max_fee}"')
        + ("" if max_priority_fee is None else f',"maxPriorityFeePerGas":"{max_priority_fee}"')
        + "}"
    )


def _native_fields(context: AnswerContext, tx: TxRead) -> str:
    at = tx.location
    return (
        f'"blockNumber":"{at.block_number}","blockTimestamp":{at.time},"blockHash":"0x{at.block_hash.hex()}",'
        f'"chainId":{quoted(context.chain_id)},"blockIndex":{tx.tx_index},"txHash":"0x{at.tx_hash.hex()}",'
        f'"txStatus":"{1 if tx.status else 0}","txType":{tx.type_id},"gasLimit":"{tx.gas_limit}",'
        f'"gasUsed":"{tx.gas_used}","gasPrice":"{tx.gas_price}","nonce":"{tx.nonce}",'
        f'"from":{party(context, tx.sender, tx.sender_ref)},"to":{party(context, tx.to, tx.to_ref)},'
        f'"method":{_method(context, tx)},"value":"{tx.value}"'
    )


def _method(context: AnswerContext, tx: TxRead) -> str:
    name = context.method_names.get(tx.selector) if tx.selector else None
    named = "" if name is None else f',"methodName":{quoted(name)}'
    return f'{{"callType":"{tx.call_type.value}","methodHash":"0x{tx.selector.hex()}"{named}}}'


async def details(context: AnswerContext, tx: TxRead, parts: TxParts) -> TransactionDetails:
    return TransactionDetails(native(context, tx), *await nested_lists(context, parts), parts.truncated or UNSET)


async def nested_lists(
    context: AnswerContext, parts: TxParts
) -> tuple[list[Ready], list[Ready], list[Ready], list[Ready]]:
    """ERC-20, ERC-721 and ERC-1155 transfers, and internal transactions."""
    lists: dict[int, list[Ready]] = {ERC20: [], ERC721: [], ERC1155: []}
    shown = await in_pieces(parts.transfers, lambda row: nested_transfer(context, row))
    for row, text in zip(parts.transfers, shown, strict=True):
        lists[row.standard].append(text)
    internals = await in_pieces(parts.internals, lambda row: nested_internal(context, row))
    return lists[ERC20], lists[ERC721], lists[ERC1155], internals
