"""Blocks, transactions, transfers and internal transactions as JSON, with the fields of the schema in their order."""

from collections.abc import Mapping, Sequence
from functools import lru_cache, partial

from msgspec import Raw

from icefall.api.data.render.context import PIECE, AnswerContext, NotRead, in_pieces
from icefall.api.data.render.text import RawJson, json_text, quoted
from icefall.api.data.render.tokens import NFT_TOKENS, erc20_token, party
from icefall.api.http.structs import address_text
from icefall.evm.encoding import INDEX_BITS
from icefall.evm.model import ERC20
from icefall.evm.reading.model import BlockRead, FullTxRead, InternalRead, TransferRead, TxLocation, TxParts, TxRead
from icefall.evm.standards import BY_NUMBER, STANDARDS


def transfer(context: AnswerContext, row: TransferRead) -> RawJson:
    """Render a transfer as an item of a list: an Erc20Transfer and so on."""
    return Raw(f"{{{_location(row.location)},{_transfer_fields(context, row)}}}")


def transfers(context: AnswerContext, rows: Sequence[TransferRead]) -> list[RawJson]:
    """Render the items of a list, as `transfer` does, without two calls for each of them."""
    items: list[RawJson] = []
    for row in rows:
        at = row.location
        block = _block_fields(at.block_number, at.time, at.block_hash)
        items.append(Raw(f'{{{block},"txHash":"0x{at.tx_hash.hex()}",{_transfer_fields(context, row)}}}'))
    return items


def nested_transfer(context: AnswerContext, row: TransferRead) -> str:
    """Render a transfer without its transaction, as JSON: Erc20TransferDetails and so on."""
    return f"{{{_transfer_fields(context, row)}}}"


def internals(context: AnswerContext, rows: Sequence[InternalRead]) -> list[RawJson]:
    """Render each as an InternalTransaction."""
    return [internal(context, row) for row in rows]


def internal(context: AnswerContext, row: InternalRead) -> RawJson:
    """Render an InternalTransaction."""
    return Raw(f"{{{_location(row.location)},{_internal_fields(context, row)}}}")


def nested_internal(context: AnswerContext, row: InternalRead) -> str:
    """Render InternalTransactionDetails as JSON."""
    return f"{{{_internal_fields(context, row)}}}"


# -- the fields of both forms, in the order of the schema -------------------------------------------------------------


@lru_cache(maxsize=4096)  # pages of many addresses show the same blocks
def _block_fields(number: int, time: int, block_hash: bytes) -> str:
    return f'"blockNumber":"{number}","blockTimestamp":{time},"blockHash":"0x{block_hash.hex()}"'


def _location(at: TxLocation) -> str:
    return f'{_block_fields(at.block_number, at.time, at.block_hash)},"txHash":"0x{at.tx_hash.hex()}"'


def _transfer_fields(context: AnswerContext, row: TransferRead) -> str:
    known, sender, to = context.parties, row.sender, row.to
    sender_text = known.get((sender, row.sender_ref)) or party(context, sender, row.sender_ref)
    to_text = known.get((to, row.to_ref)) or party(context, to, row.to_ref)
    if row.standard == ERC20:
        token = context.erc20_tokens.get((row.token, row.token_ref)) or erc20_token(context, row.token, row.token_ref)
        return (
            f'"from":{sender_text},"to":{to_text},"logIndex":{row.log_at & INDEX_BITS},'
            f'"value":"{row.value}","erc20Token":{token}'
        )
    if context.is_partial:
        raise NotRead
    parties = f'"from":{sender_text},"to":{to_text},"logIndex":{row.log_at & INDEX_BITS}'
    standard = BY_NUMBER[row.standard]
    value = f',"value":"{row.value}"' if standard.has_amounts else ""
    nft = json_text(NFT_TOKENS[row.standard](context, row.token, row.token_ref, row.token_id))
    last = f',"lastTokenId":"{row.value}"' if row.value and not standard.has_amounts else ""
    return f'{parties}{value},"{standard.table}Token":{nft}{last}'


def _internal_fields(context: AnswerContext, row: InternalRead) -> str:
    return (
        f'"from":{party(context, row.sender, row.sender_ref)},"to":{party(context, row.to, row.to_ref)},'
        f'"internalTxType":{quoted(row.kind)},"value":"{row.value}",'
        f'"isReverted":{"true" if row.is_reverted else "false"},'
        f'"gasUsed":"{row.gas_used}","gasLimit":"{row.gas_limit}"'
    )


_TRUNCATED = ',"truncated":true'
_TRANSFER_LISTS = tuple((standard.number, f'"{standard.table}Transfers":[') for standard in STANDARDS)
_NO_LISTS = "".join(f"{name}]," for _, name in _TRANSFER_LISTS) + '"internalTransactions":[]'
# The JSON before and after the only transfer of a transaction, by its standard.
_AROUND_ONE = {
    number: (f"{head}{name}{{", f"}}{tail}")
    for number, name in _TRANSFER_LISTS
    for head, _, tail in (_NO_LISTS.partition(name),)
}
Lists = Sequence[list[str]]  # the transfers of each standard, and then the internal transactions, as JSON


def block(chain_id: str, row: BlockRead) -> RawJson:
    """Render an EvmBlock."""
    return Raw(f"{{{_whole_block_fields(chain_id, row)}}}")


def block_details(chain_id: str, row: BlockRead) -> RawJson:
    """Render an EvmBlockDetails."""
    more = ""
    if row.fee_recipient is not None:
        more += f',"feeRecipient":"{address_text(row.fee_recipient)}"'
    if row.size is not None:
        more += f',"size":{row.size}'
    if row.fees_burned is not None:
        more += f',"feesBurned":"{row.fees_burned}"'
    return Raw(f"{{{_whole_block_fields(chain_id, row)}{more}}}")


def _whole_block_fields(chain_id: str, row: BlockRead) -> str:
    return (
        f'"chainId":{quoted(chain_id)},"blockNumber":"{row.number}","blockTimestamp":{row.time},'
        f'"blockHash":"0x{row.block_hash.hex()}","txCount":{row.tx_count},"baseFee":"{row.base_fee}",'
        f'"gasUsed":"{row.gas_used}","gasLimit":"{row.gas_limit}","gasCost":"{row.gas_cost}",'
        f'"parentHash":"0x{row.parent_hash.hex()}","feesSpent":"{row.fees_spent}",'
        f'"cumulativeTransactions":"{row.cumulative_txs}"'
    )


def natives(context: AnswerContext, txs: Sequence[TxRead]) -> list[RawJson]:
    """Render each as a NativeTransaction."""
    return [native(context, tx) for tx in txs]


def native(context: AnswerContext, tx: TxRead) -> RawJson:
    """Render a NativeTransaction."""
    return Raw(f"{{{_native_fields(context, tx)}}}")


def full_native(context: AnswerContext, full: FullTxRead) -> RawJson:
    """Render a FullNativeTransaction."""
    max_fee, max_priority_fee = full.tx.max_fee, full.tx.max_priority_fee
    return Raw(
        f'{{{_native_fields(context, full.tx)},"input":"0x{full.input.hex()}","baseFeePerGas":"{full.base_fee}"'
        + ("" if max_fee is None else f',"maxFeePerGas":"{max_fee}"')
        + ("" if max_priority_fee is None else f',"maxPriorityFeePerGas":"{max_priority_fee}"')
        + "}"
    )


def _native_fields(context: AnswerContext, tx: TxRead) -> str:
    at, known, sender, to, selector = tx.location, context.parties, tx.sender, tx.to, tx.selector
    method = _method(tx.call_type._value_, selector, context.method_names.of(to, selector) if selector else None)
    return (
        f"{_block_and_chain(at.block_number, at.time, at.block_hash, context.chain_id)},"
        f'"blockIndex":{tx.tx_at & INDEX_BITS},'
        f'"txHash":"0x{at.tx_hash.hex()}","txStatus":"{tx.status}","txType":{tx.type_id},'
        f'"gasLimit":"{tx.gas_limit}","gasUsed":"{tx.gas_used}","gasPrice":"{tx.gas_price}","nonce":"{tx.nonce}",'
        f'"from":{known.get((sender, tx.sender_ref)) or party(context, sender, tx.sender_ref)},'
        f'"to":{known.get((to, tx.to_ref)) or party(context, to, tx.to_ref)},"method":{method},"value":"{tx.value}"'
    )


@lru_cache(maxsize=4096)
def _block_and_chain(number: int, time: int, block_hash: bytes, chain_id: str) -> str:
    return f'{_block_fields(number, time, block_hash)},"chainId":{quoted(chain_id)}'


@lru_cache(maxsize=4096)  # most transactions call a few functions
def _method(call_type: str, selector: bytes, name: str | None) -> str:
    named = "" if name is None else f',"methodName":{quoted(name)}'
    return f'{{"callType":"{call_type}","methodHash":"0x{selector.hex()}"{named}}}'


async def details(context: AnswerContext, txs: Sequence[TxRead], parts: Mapping[int, TxParts]) -> list[RawJson]:
    """Render TransactionDetails, with the parts of each transaction by its position."""
    rendered: list[RawJson] = []
    for tx in txs:
        of_tx = parts[tx.tx_at]
        transfers, internals = of_tx.transfers, of_tx.internals
        if not internals and len(transfers) == 1:  # as most transactions have
            before, after = _AROUND_ONE[transfers[0].standard]
            lists = before + _transfer_fields(context, transfers[0]) + after
        elif not transfers and not internals:
            lists = _NO_LISTS
        elif _are_few(of_tx):
            lists = _lists_at_once(context, of_tx)
        else:
            *named, calls = map(",".join, await _nested_lists(context, of_tx))
            named = [f"{name}{texts}]," for (_, name), texts in zip(_TRANSFER_LISTS, named, strict=True)]
            lists = f'{"".join(named)}"internalTransactions":[{calls}]'
        truncated = _TRUNCATED if of_tx.truncated else ""
        rendered.append(Raw(f'{{"nativeTransaction":{{{_native_fields(context, tx)}}},{lists}{truncated}}}'))
    return rendered


async def whole_lists(context: AnswerContext, parts: TxParts) -> dict[str, list[RawJson]]:
    """Render the transfers and the internal transactions of a transaction, by their field in WholeTransaction."""
    names = [*(f"{standard.table}_transfers" for standard in STANDARDS), "internal_transactions"]
    lists = await _nested_lists(context, parts)
    return {name: [Raw(text) for text in texts] for name, texts in zip(names, lists, strict=True)}


def _are_few(parts: TxParts) -> bool:
    return len(parts.transfers) <= PIECE and len(parts.internals) <= PIECE


def _lists_at_once(context: AnswerContext, parts: TxParts) -> str:
    """Render the nested lists at once, without a coroutine for each of many transactions."""
    texts: dict[int, str] = {}  # of the standards that there are
    for row in parts.transfers:
        known, text = texts.get(row.standard), nested_transfer(context, row)
        texts[row.standard] = text if known is None else f"{known},{text}"
    internals = ",".join([nested_internal(context, row) for row in parts.internals]) if parts.internals else ""
    named = "".join([f"{name}{texts.get(number, '')}]," for number, name in _TRANSFER_LISTS])
    return f'{named}"internalTransactions":[{internals}]'


async def _nested_lists(context: AnswerContext, parts: TxParts) -> Lists:
    """Render the nested lists as JSON, in pieces between which other requests can run."""
    lists: dict[int, list[str]] = {standard.number: [] for standard in STANDARDS}
    texts = await in_pieces(parts.transfers, partial(nested_transfer, context))
    for row, text in zip(parts.transfers, texts, strict=True):
        lists[row.standard].append(text)
    internals = await in_pieces(parts.internals, partial(nested_internal, context))
    return [*lists.values(), internals]
