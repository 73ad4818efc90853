"""Assembles small EVM programs from text: instructions, numbers to push, `name:` for a place and `@name` to push it."""

_OPCODES = {
    "STOP": 0x00, "ADD": 0x01, "MUL": 0x02, "SUB": 0x03, "DIV": 0x04, "LT": 0x10, "GT": 0x11, "EQ": 0x14,
    "ISZERO": 0x15, "AND": 0x16, "OR": 0x17, "XOR": 0x18, "NOT": 0x19, "SHL": 0x1B, "SHR": 0x1C, "KECCAK256": 0x20,
    "ADDRESS": 0x30, "BALANCE": 0x31, "CALLER": 0x33, "CALLVALUE": 0x34, "CALLDATALOAD": 0x35, "CALLDATASIZE": 0x36,
    "CALLDATACOPY": 0x37, "CODESIZE": 0x38, "CODECOPY": 0x39, "RETURNDATASIZE": 0x3D, "RETURNDATACOPY": 0x3E,
    "TIMESTAMP": 0x42, "NUMBER": 0x43, "SELFBALANCE": 0x47, "POP": 0x50, "MLOAD": 0x51, "MSTORE": 0x52,
    "MSTORE8": 0x53, "SLOAD": 0x54, "SSTORE": 0x55, "JUMP": 0x56, "JUMPI": 0x57, "GAS": 0x5A, "JUMPDEST": 0x5B,
    "LOG0": 0xA0, "LOG1": 0xA1, "LOG2": 0xA2, "LOG3": 0xA3, "LOG4": 0xA4, "CALL": 0xF1, "RETURN": 0xF3,
    "DELEGATECALL": 0xF4, "CREATE2": 0xF5, "STATICCALL": 0xFA, "REVERT": 0xFD, "SELFDESTRUCT": 0xFF,
    **{f"DUP{number}": 0x7F + number for number in range(1, 17)},
    **{f"SWAP{number}": 0x8F + number for number in range(1, 17)},
}  # fmt: skip
_PUSH1 = 0x60
_PLACE = 2  # bytes in which a place of the program is pushed


def assembled(text: str) -> bytes:
    """The program's bytes. A `#` begins a comment."""
    words = [word for line in text.splitlines() for word in line.partition("#")[0].split()]
    places: dict[str, int] = {}
    at = 0
    for word in words:
        if word.endswith(":"):
            places[word[:-1]] = at
        at += _size(word)
    return b"".join(_encoded(word, places) for word in words)


def _size(word: str) -> int:
    if word.endswith(":") or word in _OPCODES:
        return 1
    return 1 + (_PLACE if word.startswith("@") else len(_pushed(word)))


def _pushed(word: str) -> bytes:
    number = int(word, 0)
    digits = word[2:] if word.startswith("0x") else ""
    size = max((number.bit_length() + 7) // 8, len(digits) // 2, 1)
    return number.to_bytes(size, "big")


def _encoded(word: str, places: dict[str, int]) -> bytes:
    if word.endswith(":"):
        return bytes((_OPCODES["JUMPDEST"],))
    if word in _OPCODES:
        return bytes((_OPCODES[word],))
    raw = places[word[1:]].to_bytes(_PLACE, "big") if word.startswith("@") else _pushed(word)
    return bytes((_PUSH1 + len(raw) - 1,)) + raw


def deployment(code: bytes) -> bytes:
    """The init code that leaves `code`."""
    start = assembled(f"0x{len(code):04x} 0x000f 0 CODECOPY 0x{len(code):04x} 0 RETURN")
    assert len(start) == 0x0F, len(start)
    return start + code
