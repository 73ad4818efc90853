"""Reads single values from one upstream of an EVM chain: balances, code and the results of contract calls at a block,
logs, and the receipt and calls of a transaction."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import msgspec

from icefall.upstream.client import MALFORMED, InvalidAnswer
from icefall.upstream.evm.block_parts import decode_summary
from icefall.upstream.evm.client import Call, EvmClient, Outcome
from icefall.upstream.evm.errors import IncompleteAnswer, NoState, NotThere, Reverted, RpcRefusal, Unsupported
from icefall.upstream.evm.probe import quantity
from icefall.wire.errors import WireError
from icefall.wire.evm.block import decode_receipts, decode_tx
from icefall.wire.evm.decode import TRACE_FORMATS, decode_tx_calls
from icefall.wire.evm.hashes import tx_bytes
from icefall.wire.evm.hex import amount, data, fixed
from icefall.wire.evm.rlp import keccak256
from icefall.wire.evm.trace_format import TraceFormat
from icefall.wire.evm.types import Calls, EventLog, PlacedTx, Receipt

_TEXT = msgspec.json.Decoder(str)
WORD = 32


class ContractCall(NamedTuple):
    to: bytes
    data: bytes


class StateCall(NamedTuple):
    """A contract call at a block of its own."""

    call: ContractCall
    at: "At"


At = int | bytes  # a block's number or, unambiguous in a reorganisation, its hash


async def balances(client: EvmClient, addresses: Sequence[bytes], at: At) -> list[int]:
    """Native balances in wei, in order."""
    outcomes = await _call(client, "eth_getBalance", [(_hex(address),) for address in addresses], at)
    return [quantity(outcome, "eth_getBalance") for outcome in outcomes]


async def codes(client: EvmClient, addresses: Sequence[bytes], at: At) -> list[bytes]:
    """The code of each address, in order; empty where there is none."""
    outcomes = await _call(client, "eth_getCode", [(_hex(address),) for address in addresses], at)
    return [_data(outcome, "eth_getCode") for outcome in outcomes]


async def storage(client: EvmClient, slots: Sequence[tuple[bytes, bytes]], at: At) -> list[bytes]:
    """The word in each slot of a contract, in order; zero where nothing is stored."""
    params = [(_hex(address), _hex(slot)) for address, slot in slots]
    outcomes = await _call(client, "eth_getStorageAt", params, at)
    return [_data(outcome, "eth_getStorageAt").rjust(WORD, b"\0") for outcome in outcomes]


async def answers(
    client: EvmClient, calls: Sequence[ContractCall], at: At, gas: int | None = None
) -> list[bytes | Reverted]:
    """What each contract returns, in order: nothing where there is no code, Reverted where it fails. `gas`: the limit
    of each call, where it is not the upstream's.

    Any other refusal is raised: it comes from the upstream, not from the contract.
    """
    limit = {} if gas is None else {"gas": hex(gas)}
    params = [({"to": _hex(call.to), "data": _hex(call.data), **limit},) for call in calls]
    outcomes = await _call(client, "eth_call", params, at)
    return [outcome if isinstance(outcome, Reverted) else _data(outcome, "eth_call") for outcome in outcomes]


async def results(client: EvmClient, calls: Sequence[StateCall]) -> list[bytes | Reverted]:
    """Return what each contract returns at the block of its call, in order, in as few requests as possible."""
    if client.takes_hashes and all(isinstance(one.at, bytes) for one in calls):
        outcomes = await client.call_all(
            [
                Call("eth_call", ({"to": _hex(to), "data": _hex(argument)}, {"blockHash": _hex(at)}))
                for (to, argument), at in calls
                if isinstance(at, bytes)
            ]
        )
        if not any(type(outcome) is RpcRefusal or isinstance(outcome, Unsupported) for outcome in outcomes):
            return [outcome if isinstance(outcome, Reverted) else _data(outcome, "eth_call") for outcome in outcomes]
    found: dict[int, bytes | Reverted] = {}
    for at in dict.fromkeys(one.at for one in calls):
        indexes = [index for index, one in enumerate(calls) if one.at == at]
        found.update(zip(indexes, await answers(client, [calls[index].call for index in indexes], at), strict=True))
    return [found[index] for index in range(len(calls))]


async def outcomes(client: EvmClient, calls: Sequence[Call]) -> list[Outcome]:
    """Return the result or the refusal of each call, in order. NoState and NotThere are raised."""
    found = await client.call_all(calls)
    for outcome in found:
        if isinstance(outcome, NoState | NotThere):
            raise outcome
    return found


async def _call(client: EvmClient, method: str, first_params: Sequence[tuple[Any, ...]], at: At) -> list[Outcome]:
    """Call with these parameters and the block behind them: by its hash where the client takes one (EIP-1898), else by
    its number, if that is still this block."""
    if isinstance(at, bytes) and client.takes_hashes:
        outcomes = await client.call_all([Call(method, (*one, {"blockHash": _hex(at)})) for one in first_params])
        if not any(type(outcome) is RpcRefusal or isinstance(outcome, Unsupported) for outcome in outcomes):
            return outcomes
        by_number = await _by_number(client, method, first_params, at)
        # if the call by number is refused too, the hash was not the reason
        client.takes_hashes = any(isinstance(outcome, RpcRefusal) for outcome in by_number)
        return by_number
    return await _by_number(client, method, first_params, at)


async def _by_number(client: EvmClient, method: str, first_params: Sequence[tuple[Any, ...]], at: At) -> list[Outcome]:
    if isinstance(at, int):
        return await client.call_all([Call(method, (*one, hex(at))) for one in first_params])
    number = decode_summary(await client.call("eth_getBlockByHash", _hex(at), False)).number
    outcomes = await client.call_all([Call(method, (*one, number)) for one in first_params])
    if decode_summary(await client.call("eth_getBlockByNumber", number, False)).hash != _hex(at):
        raise NotThere(f"block {_hex(at)} is no longer part of the chain")
    return outcomes


def _hex(value: bytes) -> str:
    return "0x" + value.hex()


def _data(outcome: Outcome, what: str) -> bytes:
    if isinstance(outcome, RpcRefusal):
        raise outcome
    try:
        return data(_TEXT.decode(outcome))
    except (*MALFORMED, WireError) as error:
        raise IncompleteAnswer(f"{what}: {error}") from error


_NULL = b"null"


# -- logs and transactions -----------------------------------------------------------------------------------------


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


async def transaction(client: EvmClient, tx_hash: bytes) -> PlacedTx | None:
    """Fetch a transaction, whether a block holds it or not; None if the upstream does not know it."""
    try:
        found = decode_tx(bytes(await client.call("eth_getTransactionByHash", _hex(tx_hash))))
        if keccak256(tx_bytes(found.tx)) != tx_hash:
            raise InvalidAnswer("it is another transaction, or not as it was signed")
    except NotThere:
        return None
    except WireError as error:
        raise InvalidAnswer(str(error)) from error
    return found


async def receipt(client: EvmClient, tx_hash: bytes) -> Receipt:
    """Fetch the receipt of a transaction, with its logs."""
    raw = bytes(await client.call("eth_getTransactionReceipt", _hex(tx_hash)))
    try:
        found = decode_receipts(b"[" + raw + b"]") if raw != _NULL else None
    except WireError as error:
        raise InvalidAnswer(str(error)) from error
    if not found:
        raise NotThere(f"{client.name} has no transaction {_hex(tx_hash)}")
    return found[0]


async def calls(client: EvmClient, tx_hash: bytes, block_hash: bytes) -> Calls:
    """Fetch the calls of a transaction in the first trace format that the upstream has; Unsupported if it has none.

    NotThere if the transaction is in another block than `block_hash`, where it may have done something else. A trace
    does not name its block: the receipt does, and is asked for afterwards.
    """
    traces, raw = await _tx_traces(client, _hex(tx_hash))
    if raw == _NULL:
        raise NotThere(f"{client.name} has no transaction {_hex(tx_hash)}")
    try:
        found = decode_tx_calls(raw, traces)
    except WireError as error:
        raise InvalidAnswer(str(error)) from error
    traced_in = (await receipt(client, tx_hash)).block_hash
    if traced_in != block_hash:
        raise NotThere(f"{client.name} has transaction {_hex(tx_hash)} in block {_hex(traced_in)}")
    return found


async def _tx_traces(client: EvmClient, tx_hash: str) -> tuple[TraceFormat, bytes]:
    *preferred, last = TRACE_FORMATS
    for traces in preferred:
        method, params = traces.requests[0].of_tx.call(tx_hash, False)
        with suppress(Unsupported):
            return traces, bytes(await client.call(method, *params))
    method, params = last.requests[0].of_tx.call(tx_hash, False)
    return last, bytes(await client.call(method, *params))


async def logs(
    client: EvmClient, address: bytes, topics: Sequence[bytes | None], first: int, last: int
) -> list[FoundLog]:
    """Fetch the logs that a contract emitted in the blocks from `first` to `last`, in chain order. None among the
    topics stands for any."""
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
