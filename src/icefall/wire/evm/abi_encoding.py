"""Arguments of a function, written as call data. They come from callers as JSON, and each has to be exactly of its
type.

Numbers may be texts in decimal or hex, because JSON readers round large ones; bytes and addresses are hex.
"""

import re
from collections.abc import Sequence
from typing import Any

from icefall.wire.evm.abi import WORD, AbiError, AbiType, Declaration, Parameter

ENCODED_MAX = 1 << 16  # bytes of all arguments
ITEMS_MAX = 1_000  # of an array
_HEX = re.compile(r"0x((?:[0-9a-fA-F]{2})*)")
_NUMBER = re.compile(r"-?[0-9]{1,78}|0x[0-9a-fA-F]{1,64}")
_ADDRESS_SIZE, _FUNCTION_SIZE = 20, 24


def encode_call(declared: Declaration, arguments: Sequence[Any]) -> bytes:
    """Return the call data of a function; AbiError names the argument that does not fit."""
    data = declared.topic[:4] + _encoded_parts(declared.inputs, list(arguments), "")
    if len(data) > ENCODED_MAX:
        raise AbiError(f"the arguments take {len(data)} bytes, and at most {ENCODED_MAX} are sent")
    return data


def _encoded_parts(parts: Sequence[Parameter], values: Any, path: str) -> bytes:
    """Encode values side by side: heads first, and behind them what is dynamic."""
    if isinstance(values, dict):
        values = [values.get(part.name) for part in parts]
    if not isinstance(values, list) or len(values) != len(parts):
        count = len(values) if isinstance(values, list) else "no"
        raise AbiError(f"{path or 'the function'} takes {len(parts)} values, and there are {count}")
    names = [f"{path}.{part.name or index}" if path else part.name or str(index) for index, part in enumerate(parts)]
    return _joined(
        [(part.type, _encoded(part.type, value, name)) for part, value, name in zip(parts, values, names, strict=True)]
    )


def _joined(parts: Sequence[tuple[AbiType, bytes]]) -> bytes:
    at = sum(kind.head_size for kind, _ in parts)
    heads, tails = bytearray(), bytearray()
    for kind, encoded in parts:
        if kind.is_dynamic:
            heads += _word(at + len(tails))
            tails += encoded
        else:
            heads += encoded
        if len(tails) > ENCODED_MAX or at > ENCODED_MAX:
            raise AbiError(f"the arguments take more than {ENCODED_MAX} bytes")
    return bytes(heads + tails)


def _encoded(kind: AbiType, value: Any, path: str) -> bytes:
    if kind.item is not None:
        return _array(kind, kind.item, value, path)
    if kind.parts:
        return _encoded_parts(kind.parts, value, path)
    text = kind.text
    if text == "bool":
        return _word(int(_boolean(value, path)))
    if text.startswith(("uint", "int")):
        return _number(text, value, path)
    if text == "string":
        return _with_length(_text(value, path, text).encode("utf-8", "replace"))
    raw = _bytes(value, path, text)
    if text == "bytes":
        return _with_length(raw)
    size = {"address": _ADDRESS_SIZE, "function": _FUNCTION_SIZE}.get(text) or int(text[5:])
    if len(raw) != size:
        raise AbiError(f"{path} is {text}, which has {size} bytes, not {len(raw)}")
    return raw.rjust(WORD, b"\0") if text == "address" else raw.ljust(WORD, b"\0")


def _array(kind: AbiType, item: AbiType, value: Any, path: str) -> bytes:
    if not isinstance(value, list) or len(value) > ITEMS_MAX:
        raise AbiError(f"{path} is {kind.text[:80]}: a list of at most {ITEMS_MAX}")
    if kind.count is not None and len(value) != kind.count:
        raise AbiError(f"{path} is {kind.text[:80]}, which has {kind.count} items, not {len(value)}")
    items = _joined([(item, _encoded(item, one, f"{path}[{index}]")) for index, one in enumerate(value)])
    return items if kind.count is not None else _word(len(value)) + items


def _number(text: str, value: Any, path: str) -> bytes:
    is_text = isinstance(value, str) and _NUMBER.fullmatch(value)
    if not is_text and (not isinstance(value, int) or isinstance(value, bool)):
        raise AbiError(f"{path} is {text}: a number in decimal or in hex with 0x")
    number = int(value, 16 if is_text and value.startswith("0x") else 10) if is_text else int(value)
    bits = int(text.removeprefix("u")[3:])
    low, high = (0, (1 << bits) - 1) if text.startswith("u") else (-(1 << bits - 1), (1 << bits - 1) - 1)
    if not low <= number <= high:
        raise AbiError(f"{path} is {text}, which goes from {low} to {high}")
    return (number % (1 << 256)).to_bytes(WORD, "big")


def _boolean(value: Any, path: str) -> bool:
    if value not in (True, False, "true", "false") or (isinstance(value, int | float) and not isinstance(value, bool)):
        raise AbiError(f"{path} is bool: true or false")
    return value in (True, "true")


def _text(value: Any, path: str, kind: str) -> str:
    if not isinstance(value, str) or len(value) > ENCODED_MAX * 2:
        raise AbiError(f"{path} is {kind}: a text")
    return value


def _bytes(value: Any, path: str, kind: str) -> bytes:
    found = _HEX.fullmatch(_text(value, path, kind))
    if not found:
        raise AbiError(f"{path} is {kind}: hex digits after 0x, two for each byte")
    return bytes.fromhex(found[1])


def _with_length(raw: bytes) -> bytes:
    return _word(len(raw)) + raw + bytes(-len(raw) % WORD)


def _word(number: int) -> bytes:
    return number.to_bytes(WORD, "big")
