"""Logs and calls of single transactions, and logs of a contract, from one upstream."""

from collections.abc import Sequence
from contextlib import suppress

import msgspec

from icefall.upstream.client import InvalidAnswer
from icefall.upstream.evm.client import EvmClient
from icefall.upstream.evm.errors import NotThere, Unsupported
from icefall.wire.errors import WireError
from icefall.wire.evm.block import decode_receipts
from icefall.wire.evm.decode import TRACE_FORMATS, decode_tx_calls
from icefall.wire.evm.hex import amount, data, fixed
from icefall.wire.evm.trace_format import TraceFormat
from icefall.wire.evm.types import Calls, EventLog, Receipt

_NULL = b"null"


class FoundLog(msgspec.Struct, frozen=True, gc=False):
    """A log with its place in the chain."""

    log: EventLog
    block: int
    block_hash: bytes
    tx_hash: bytes
    tx_index: int


class _PlacedLogText(msgspec.Struct, gc=False, rename="camel"):
    address: str
    topics: list[str]
    data: str
    log_index: str
    block_number: str
    block_hash: str
    transaction_hash: str
    transaction_index: str


_logs = msgspec.json.Decoder(list[_PlacedLogText])


async def receipt(client: EvmClient, tx_hash: bytes) -> Receipt:
    """With its logs."""
    raw = bytes(await client.call("eth_getTransactionReceipt", _hex(tx_hash)))
    try:
        found = decode_receipts(b"[" + raw + b"]") if raw != _NULL else None
    except WireError as error:
        raise InvalidAnswer(str(error)) from error
    if not found:
        raise NotThere(f"{client.name} has no transaction {_hex(tx_hash)}")
    return found[0]


async def calls(client: EvmClient, tx_hash: bytes) -> Calls:
    """Fetch the calls of a transaction in the first trace format that the upstream has; Unsupported if it has none."""
    traces, raw = await _tx_traces(client, _hex(tx_hash))
    if raw == _NULL:
        raise NotThere(f"{client.name} has no transaction {_hex(tx_hash)}")
    try:
        return decode_tx_calls(raw, traces)
    except WireError as error:
        raise InvalidAnswer(str(error)) from error


async def _tx_traces(client: EvmClient, tx_hash: str) -> tuple[TraceFormat, bytes]:
    *preferred, last = TRACE_FORMATS
    for traces in preferred:
        method, params = traces.tx_call(tx_hash)
        with suppress(Unsupported):
            return traces, bytes(await client.call(method, *params))
    method, params = last.tx_call(tx_hash)
    return last, bytes(await client.call(method, *params))


async def logs(
    client: EvmClient, address: bytes, topics: Sequence[bytes | None], first: int, last: int
) -> list[FoundLog]:
    """Logs that a contract emitted in the blocks from `first` to `last`, in chain order. A topic None is any."""
    wanted = [None if topic is None else _hex(topic) for topic in topics]
    where = {"address": _hex(address), "fromBlock": hex(first), "toBlock": hex(last), "topics": wanted}
    raw = await client.call("eth_getLogs", where)
    try:
        found = [_found(text) for text in _logs.decode(raw)]
    except (msgspec.DecodeError, UnicodeDecodeError, WireError) as error:
        raise InvalidAnswer(f"logs: {error}") from error
    return sorted(found, key=lambda one: (one.block, one.log.index))


def _found(text: _PlacedLogText) -> FoundLog:
    topics = tuple([fixed(topic, 32) for topic in text.topics])
    log = EventLog(fixed(text.address, 20), topics, data(text.data), amount(text.log_index))
    return FoundLog(
        log,
        amount(text.block_number),
        fixed(text.block_hash, 32),
        fixed(text.transaction_hash, 32),
        amount(text.transaction_index),
    )


def _hex(value: bytes) -> str:
    return "0x" + value.hex()
