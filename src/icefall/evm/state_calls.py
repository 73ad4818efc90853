"""Calls of token contracts, and strict decoding of what they return."""

from collections.abc import Sequence
from typing import Protocol

from icefall.upstream.evm.errors import Reverted
from icefall.upstream.evm.state import At, ContractCall, StateCall

_BALANCE_OF = bytes.fromhex("70a08231")
_BALANCE_OF_ID = bytes.fromhex("00fdd58e")
_OWNER_OF = bytes.fromhex("6352211e")
_DECIMALS = bytes.fromhex("313ce567")


def balance_of(token: bytes, holder: bytes) -> ContractCall:
    return ContractCall(token, _BALANCE_OF + holder.rjust(32, b"\x00"))


def balance_of_id(token: bytes, holder: bytes, token_id: int) -> ContractCall:
    return ContractCall(token, _BALANCE_OF_ID + holder.rjust(32, b"\x00") + token_id.to_bytes(32, "big"))


def owner_of(token: bytes, token_id: int) -> ContractCall:
    return ContractCall(token, _OWNER_OF + token_id.to_bytes(32, "big"))


def decimals(token: bytes) -> ContractCall:
    return ContractCall(token, _DECIMALS)


def uint_of(answer: bytes | Reverted, most: int = (1 << 256) - 1) -> int | None:
    """The number a contract returned; None if it reverted or returned anything but one word."""
    if isinstance(answer, Reverted) or len(answer) != 32:
        return None
    number = int.from_bytes(answer, "big")
    return number if number <= most else None


def address_of(answer: bytes | Reverted) -> bytes | None:
    number = uint_of(answer, (1 << 160) - 1)
    return None if number is None else number.to_bytes(20, "big")


class StateSource(Protocol):
    async def balances(self, addresses: Sequence[bytes], at: At) -> list[int]: ...

    async def codes(self, addresses: Sequence[bytes], at: At) -> list[bytes]: ...

    async def answers(self, calls: Sequence[ContractCall], at: At) -> list[bytes | Reverted]: ...

    async def results(self, calls: Sequence[StateCall]) -> list[bytes | Reverted]: ...
