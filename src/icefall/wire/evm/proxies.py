"""Proxies: contracts that pass calls on to the code of another one, recognised by their code and their storage."""

from typing import Literal, TypeAlias

from icefall.wire.evm.abi import WORD

ProxyKind: TypeAlias = Literal["EIP-1967", "EIP-1967 beacon", "EIP-1822", "ZeppelinOS", "EIP-1167", "EIP-897"]

# The slots that hold an implementation. The last is of OpenZeppelin's proxies before EIP-1967.
IMPLEMENTATION_SLOTS: dict[ProxyKind, bytes] = {
    "EIP-1967": bytes.fromhex("360894a13ba1a3210667c828492db98dca3e2076cc3735a920a3ca505d382bbc"),
    "EIP-1822": bytes.fromhex("c5f16f0fcc639fa48a6947836d9850f504798523bf8c9a3a87d5876cf622bcf7"),
    "ZeppelinOS": bytes.fromhex("7050c9e0f4ca769c69bd3a8ef740bc37934f8e2c036e5a723fd8ee048ed3f8c3"),
}
BEACON_SLOT = bytes.fromhex("a3f0ad74e5423aebfd80d3ef4346578335a9a72aeaee59ff6cb3582b35133d50")
IMPLEMENTATION_CALL, PROXY_TYPE_CALL = bytes.fromhex("5c60da1b"), bytes.fromhex("4555d5c9")

_ADDRESS_SIZE = 20
_CLONE_BEGIN = bytes.fromhex("363d3d373d3d3d363d")
_CLONE_END = bytes.fromhex("5af43d82803e903d9160"), bytes.fromhex("57fd5bf3")
_CLONE_JUMP = 0x2B  # where the code jumps to if the address is pushed with all its bytes
_PUSH0, _PUSH1, _PUSH20, _PUSH32, _DELEGATECALL = 0x5F, 0x60, 0x73, 0x7F, 0xF4
_SEARCHED_MAX = 1 << 16  # bytes of code


def clone_target(code: bytes) -> bytes | None:
    """Return the implementation of a minimal clone (EIP-1167), whose code names it. Zeros in front of it may be left
    out of the code, and arguments may follow the code."""
    at = len(_CLONE_BEGIN)
    if not code.startswith(_CLONE_BEGIN) or len(code) <= at or not _PUSH1 <= code[at] <= _PUSH20:
        return None
    size = code[at] - _PUSH0
    target, rest = code[at + 1 : at + 1 + size], code[at + 1 + size :]
    jump = bytes([_CLONE_JUMP - _ADDRESS_SIZE + size])
    return target.rjust(_ADDRESS_SIZE, b"\0") if rest.startswith(jump.join(_CLONE_END)) else None


def has_delegatecall(code: bytes) -> bool:
    """Tell whether code can run that of another contract. Bytes that are pushed are no instructions."""
    at, end = 0, min(len(code), _SEARCHED_MAX)
    if _DELEGATECALL not in code:
        return False
    while at < end:
        instruction = code[at]
        if instruction == _DELEGATECALL:
            return True
        at += 1 + (instruction - _PUSH0 if _PUSH1 <= instruction <= _PUSH32 else 0)
    return False


def address_in(word: bytes) -> bytes | None:
    """Return the address that a slot or an answer holds; None where it is zero, or no address."""
    if len(word) != WORD or any(word[: WORD - _ADDRESS_SIZE]) or not any(word):
        return None
    return word[WORD - _ADDRESS_SIZE :]
