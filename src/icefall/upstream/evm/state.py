"""Reads the state of an EVM chain at a block: balances, code, and the results of contract calls."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from icefall.upstream.client import MALFORMED
from icefall.upstream.evm.block_parts import decode_summary
from icefall.upstream.evm.client import Call, EvmClient, Outcome
from icefall.upstream.evm.errors import IncompleteAnswer, NotThere, Reverted, RpcRefusal, Unsupported
from icefall.upstream.evm.probe import quantity
from icefall.wire.errors import WireError
from icefall.wire.evm.hex import data

_TEXT = msgspec.json.Decoder(str)


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
    outcomes = await _call(client, "eth_getBalance", [_hex(address) for address in addresses], at)
    return [quantity(outcome, "eth_getBalance") for outcome in outcomes]


async def codes(client: EvmClient, addresses: Sequence[bytes], at: At) -> list[bytes]:
    """The code of each address, in order; empty where there is none."""
    outcomes = await _call(client, "eth_getCode", [_hex(address) for address in addresses], at)
    return [_data(outcome, "eth_getCode") for outcome in outcomes]


async def answers(client: EvmClient, calls: Sequence[ContractCall], at: At) -> list[bytes | Reverted]:
    """What each contract returns, in order: nothing where there is no code, Reverted where it fails.

    Any other refusal is raised: it comes from the upstream, not from the contract.
    """
    outcomes = await _call(client, "eth_call", [{"to": _hex(call.to), "data": _hex(call.data)} for call in calls], at)
    return [outcome if isinstance(outcome, Reverted) else _data(outcome, "eth_call") for outcome in outcomes]


async def results(client: EvmClient, calls: Sequence[StateCall]) -> list[bytes | Reverted]:
    """What each contract returns at the block of its call, in order, in as few requests as possible."""
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


async def _call(client: EvmClient, method: str, first_params: Sequence[Any], at: At) -> list[Outcome]:
    """By the block's hash where the client takes one (EIP-1898); else by its number, if that is still this block."""
    if isinstance(at, bytes) and client.takes_hashes:
        outcomes = await client.call_all([Call(method, (one, {"blockHash": _hex(at)})) for one in first_params])
        if not any(type(outcome) is RpcRefusal or isinstance(outcome, Unsupported) for outcome in outcomes):
            return outcomes
        by_number = await _by_number(client, method, first_params, at)
        # if the call by number is refused too, the hash was not the reason
        client.takes_hashes = any(isinstance(outcome, RpcRefusal) for outcome in by_number)
        return by_number
    return await _by_number(client, method, first_params, at)


async def _by_number(client: EvmClient, method: str, first_params: Sequence[Any], at: At) -> list[Outcome]:
    if isinstance(at, int):
        return await client.call_all([Call(method, (one, hex(at))) for one in first_params])
    number = decode_summary(await client.call("eth_getBlockByHash", _hex(at), False)).number
    outcomes = await client.call_all([Call(method, (one, number)) for one in first_params])
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
