"""What the state of an EVM chain was at a block: balances, code, and what contracts answer."""

from collections.abc import Sequence
from typing import Annotated, Any, NamedTuple

import msgspec

from icefall.upstream.client import MALFORMED
from icefall.upstream.evm.client import Call, EvmClient, Outcome
from icefall.upstream.evm.errors import IncompleteAnswer, NotThere, Reverted, RpcRefusal, Unsupported
from icefall.upstream.evm.parts import sketch
from icefall.upstream.evm.probe import quantity

_DATA = msgspec.json.Decoder(Annotated[str, msgspec.Meta(pattern="^0x([0-9a-fA-F]{2})*$")])


class ContractCall(NamedTuple):
    to: bytes
    data: bytes


At = int | bytes  # a block's number, or its hash: the latter cannot be mistaken when the chain changes


async def balances(client: EvmClient, addresses: Sequence[bytes], at: At) -> list[int]:
    """Native balances in wei, in order."""
    asked = await _ask(client, "eth_getBalance", [_hex(address) for address in addresses], at)
    return [quantity(outcome, "eth_getBalance") for outcome in asked]


async def codes(client: EvmClient, addresses: Sequence[bytes], at: At) -> list[bytes]:
    """The code of each address, in order; empty where there is none."""
    asked = await _ask(client, "eth_getCode", [_hex(address) for address in addresses], at)
    return [_data(outcome, "eth_getCode") for outcome in asked]


async def answers(client: EvmClient, calls: Sequence[ContractCall], at: At) -> list[bytes | Reverted]:
    """What each contract returns, in order: nothing where there is no code, Reverted where it fails.

    Any other refusal is raised: that the upstream cannot tell is not an answer of the contract.
    """
    asked = await _ask(client, "eth_call", [{"to": _hex(call.to), "data": _hex(call.data)} for call in calls], at)
    return [outcome if isinstance(outcome, Reverted) else _data(outcome, "eth_call") for outcome in asked]


async def _ask(client: EvmClient, method: str, about: Sequence[Any], at: At) -> list[Outcome]:
    """By the block's hash where the client takes one (EIP-1898); else by its number, if that is still this block."""
    if isinstance(at, bytes) and client.takes_hashes:
        outcomes = await client.ask([Call(method, (one, {"blockHash": _hex(at)})) for one in about])
        if not any(type(outcome) is RpcRefusal or isinstance(outcome, Unsupported) for outcome in outcomes):
            return outcomes
        by_number = await _by_number(client, method, about, at)
        client.takes_hashes = any(isinstance(outcome, RpcRefusal) for outcome in by_number)  # it was something else
        return by_number
    return await _by_number(client, method, about, at)


async def _by_number(client: EvmClient, method: str, about: Sequence[Any], at: At) -> list[Outcome]:
    if isinstance(at, int):
        return await client.ask([Call(method, (one, hex(at))) for one in about])
    number = sketch(await client.one("eth_getBlockByHash", _hex(at), False)).number
    outcomes = await client.ask([Call(method, (one, number)) for one in about])
    if sketch(await client.one("eth_getBlockByNumber", number, False)).hash != _hex(at):
        raise NotThere(f"block {_hex(at)} is no longer part of the chain")
    return outcomes


def _hex(value: bytes) -> str:
    return "0x" + value.hex()


def _data(outcome: Outcome, what: str) -> bytes:
    if isinstance(outcome, RpcRefusal):
        raise outcome
    try:
        return bytes.fromhex(_DATA.decode(outcome)[2:])
    except MALFORMED as error:
        raise IncompleteAnswer(f"{what}: {error}") from error
