"""What the state of an EVM chain was at a block: balances, code, and what contracts answer."""

from collections.abc import Sequence
from typing import Annotated, Any, NamedTuple

import msgspec

from icefall.upstream.client import MALFORMED
from icefall.upstream.evm_client import Call, EvmClient, Outcome
from icefall.upstream.evm_errors import Incomplete, Refusal, Reverted
from icefall.upstream.evm_probe import quantity

_DATA = msgspec.json.Decoder(Annotated[str, msgspec.Meta(pattern="^0x([0-9a-fA-F]{2})*$")])


class ContractCall(NamedTuple):
    to: bytes
    data: bytes


At = int | bytes  # a block's number, or its hash: the latter cannot be mistaken when the chain changes


async def balances(client: EvmClient, addresses: Sequence[bytes], at: At) -> list[int]:
    """Native balances in wei, in order."""
    asked = [Call("eth_getBalance", (_hex(address), _where(at))) for address in addresses]
    return [quantity(outcome, "eth_getBalance") for outcome in await client.ask(asked)]


async def codes(client: EvmClient, addresses: Sequence[bytes], at: At) -> list[bytes]:
    """The code of each address, in order; empty where there is none."""
    asked = [Call("eth_getCode", (_hex(address), _where(at))) for address in addresses]
    return [_data(outcome, "eth_getCode") for outcome in await client.ask(asked)]


async def answers(client: EvmClient, calls: Sequence[ContractCall], at: At) -> list[bytes | Reverted]:
    """What each contract returns, in order: nothing where there is no code, Reverted where it fails.

    Any other refusal is raised: that the upstream cannot tell is not an answer of the contract.
    """
    asked = [Call("eth_call", ({"to": _hex(call.to), "data": _hex(call.data)}, _where(at))) for call in calls]
    return [
        outcome if isinstance(outcome, Reverted) else _data(outcome, "eth_call") for outcome in await client.ask(asked)
    ]


def _where(at: At) -> Any:
    return hex(at) if isinstance(at, int) else {"blockHash": _hex(at)}


def _hex(value: bytes) -> str:
    return "0x" + value.hex()


def _data(outcome: Outcome, what: str) -> bytes:
    if isinstance(outcome, Refusal):
        raise outcome
    try:
        return bytes.fromhex(_DATA.decode(outcome)[2:])
    except MALFORMED as error:
        raise Incomplete(f"{what}: {error}") from error
