"""Raw logs of a transaction or a contract, the call tree of a transaction, and why it reverted."""

from collections.abc import Mapping, Sequence

from msgspec import UNSET, UnsetType

from icefall.api.data.handlers.decoding import decoded_data, indexed_tx
from icefall.api.data.schema.transactions import (
    AddressLogsParams,
    CallPage,
    CallResult,
    CallsParams,
    LogPage,
    LogResult,
    RevertReason,
    TransactionParams,
    TxLogsParams,
)
from icefall.api.http.paging import Paging, cursor_of, cut, pack_cursor, page_range
from icefall.api.http.structs import address_text, hash_text
from icefall.evm.reading.directory import ChainDirectory, EvmChain
from icefall.evm.reading.raw import LogRead
from icefall.wire.evm.abi_json import ContractAbi
from icefall.wire.evm.events import EVENT_SIGNATURES, reason_of
from icefall.wire.evm.types import Calls, TreeCall

DATA_MAX = 4096  # bytes of input or output that a list of calls shows
_ERROR_MAX = 300  # characters; a client may quote what the contract says
_TX_LOGS, _LOGS, _CALLS = "transactionLogs", "addressLogs", "calls"


async def transaction_logs(params: TxLogsParams, chains: ChainDirectory, paging: Paging) -> LogPage:
    chain = await chains.find(params.chain_id)
    (after,) = cursor_of(_TX_LOGS, params, paging) or (None,)
    tx = (await indexed_tx(chain, params.tx_hash)).tx
    rows, token = cut(_TX_LOGS, params, paging, await chain.raw.logs_of_tx(tx, after, params.page_size + 1))
    return LogPage(next_page_token=token, logs=await _logs(chain, rows))


async def address_logs(params: AddressLogsParams, chains: ChainDirectory, paging: Paging) -> LogPage:
    chain = await chains.find(params.chain_id)
    topics = _wanted(params)
    span = page_range(_LOGS, params, paging)
    rows, more = await chain.raw.logs_of(params.address, topics, span, params.page_size)
    token = UNSET if more is None else paging.token(_LOGS, params, pack_cursor(more))
    return LogPage(next_page_token=token, logs=await _logs(chain, rows))


def _wanted(params: AddressLogsParams) -> Sequence[bytes | None]:
    """The topics to look for, up to the last one that was given: a log need not have more."""
    topics = [params.topic0, params.topic1, params.topic2, params.topic3]
    while topics and topics[-1] is None:
        topics.pop()
    return topics


async def list_calls(params: CallsParams, chains: ChainDirectory, paging: Paging) -> CallPage:
    chain = await chains.find(params.chain_id)
    (start,) = cursor_of(_CALLS, params, paging) or (0,)
    calls = await chain.raw.calls_of_tx((await indexed_tx(chain, params.tx_hash)).tx)
    end = start + params.page_size
    token = paging.token(_CALLS, params, pack_cursor(end)) if end < len(calls) else UNSET
    parents, span = _parents(calls), range(start, min(end, len(calls)))
    abis = await chain.abis(calls[index].to for index in span)
    rendered = [_call(chain, index, calls[index], parents[index], abis) for index in span]
    return CallPage(next_page_token=token, calls=rendered)


async def revert_reason(params: TransactionParams, chains: ChainDirectory) -> RevertReason:
    chain = await chains.find(params.chain_id)
    tx = (await indexed_tx(chain, params.tx_hash)).tx
    if tx.status:
        return RevertReason(tx_hash=hash_text(params.tx_hash), tx_status="1", is_reverted=False)
    root = (await chain.raw.calls_of_tx(tx))[0]
    abi = (await chain.abis([root.to])).get(root.to)
    return RevertReason(
        tx_hash=hash_text(params.tx_hash),
        tx_status="0",
        is_reverted=True,
        error=root.error[:_ERROR_MAX] or UNSET,
        revert_data=hash_text(root.output[:DATA_MAX]) if root.output else UNSET,
        revert_reason=_reason(root),
        decoded_error=decoded_data(chain.contracts.error(root.output, abi)),
    )


async def _logs(chain: EvmChain, rows: Sequence[LogRead]) -> list[LogResult]:
    abis = await chain.abis(row.address for row in rows)
    return [_log(chain, row, abis.get(row.address)) for row in rows]


def _log(chain: EvmChain, row: LogRead, abi: ContractAbi | None) -> LogResult:
    signature = EVENT_SIGNATURES.get(row.topics[0]) if row.topics else None
    return LogResult(
        block_number=str(row.location.block_number),
        block_timestamp=row.location.time,
        block_hash=hash_text(row.location.block_hash),
        tx_hash=hash_text(row.location.tx_hash),
        log_index=row.log_index,
        address=address_text(row.address),
        topics=[hash_text(topic) for topic in row.topics],
        data=hash_text(row.data),
        event_signature=signature or UNSET,
        decoded_log=decoded_data(chain.contracts.event(row.topics, row.data, abi)),
    )


def _parents(calls: Calls) -> list[int | UnsetType]:
    """The index of the call around each one: the last one before it that is less deep."""
    last_at: dict[int, int] = {}
    parents: list[int | UnsetType] = []
    for index, call in enumerate(calls):
        last_at[call.depth] = index
        parents.append(last_at[call.depth - 1] if call.depth else UNSET)
    return parents


def _call(
    chain: EvmChain, index: int, call: TreeCall, parent: int | UnsetType, abis: Mapping[bytes, ContractAbi]
) -> CallResult:
    abi = abis.get(call.to)
    is_cut = len(call.input) > DATA_MAX or len(call.output) > DATA_MAX
    is_creation = call.opcode.startswith("CREATE")
    return CallResult(
        index=index,
        depth=call.depth,
        parent_index=parent,
        call_type=call.opcode,
        from_=address_text(call.sender),
        to=address_text(call.to) if call.to else "",
        value=str(call.value),
        gas_limit=str(call.gas),
        gas_used=str(call.gas_used),
        input=hash_text(call.input[:DATA_MAX]),
        output=hash_text(call.output[:DATA_MAX]),
        is_reverted=call.is_reverted,
        error=call.error[:_ERROR_MAX] or UNSET,
        revert_reason=_reason(call) if call.error else UNSET,
        method_name=UNSET if is_creation else chain.contracts.name(call.input, abi) or UNSET,
        is_truncated=True if is_cut else UNSET,
        decoded_input=UNSET if is_creation else decoded_data(chain.contracts.call(call.input, abi)),
        decoded_error=decoded_data(chain.contracts.error(call.output, abi)) if call.error else UNSET,
    )


def _reason(call: TreeCall) -> str | UnsetType:
    return reason_of(call.output) or UNSET
