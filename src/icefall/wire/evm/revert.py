"""What a reverted call returned, as text: Error(string), and Panic(uint256) by its code."""

_WORD = 32
_ERROR = bytes.fromhex("08c379a0")
_PANIC = bytes.fromhex("4e487b71")
TEXT_MAX = 1_000  # the contract decides how long it is
_PANICS = {
    0x01: "assertion failed",
    0x11: "arithmetic overflow or underflow",
    0x12: "division or modulo by zero",
    0x21: "invalid value of an enum",
    0x22: "invalid encoding in storage",
    0x31: "pop of an empty array",
    0x32: "array index out of bounds",
    0x41: "too much memory",
    0x51: "call of an uninitialized function",
}


def reason_of(output: bytes) -> str | None:
    """None where the data is neither."""
    body = output[4:]
    if output[:4] == _PANIC and len(body) == _WORD:
        code = int.from_bytes(body, "big")
        return f"panic 0x{code:02x}: {_PANICS.get(code, 'unknown')}" if code < 1 << 64 else None
    if output[:4] != _ERROR or len(body) < 2 * _WORD or int.from_bytes(body[:_WORD], "big") != _WORD:
        return None
    size = int.from_bytes(body[_WORD : 2 * _WORD], "big")
    if size > len(body) - 2 * _WORD:
        return None
    return body[2 * _WORD : 2 * _WORD + min(size, 4 * TEXT_MAX)].decode("utf-8", "replace")[:TEXT_MAX]
