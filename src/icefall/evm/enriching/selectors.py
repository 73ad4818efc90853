"""The names of methods by selector: a bundled list of common signatures, and an optional file with more.

The lists hold signatures; selectors are computed. Where two signatures share a selector, neither is used.
"""

import re
from collections.abc import Iterable, Iterator
from importlib.resources import files
from pathlib import Path

from icefall.errors import StartRefused
from icefall.wire.evm.rlp import keccak256

_NAME = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*\(")
_ELEMENTARY = re.compile(r"(address|bool|string|function|bytes(\d*)|(u?)int(\d+)|(u?)fixed\d+x\d+)")
_ARRAYS = re.compile(r"(\[[0-9]*\])*")
_DEPTH_MAX = 16
SIZE_MAX = 16 << 20

MethodNames = dict[bytes, str]


def method_names(extension: str = "") -> MethodNames:
    """The signature by selector. `extension`: a file with one signature per line; StartRefused if it is invalid."""
    bundled = files("icefall.evm.enriching").joinpath("signatures.txt").read_text("utf-8")
    signatures = list(_lines("signatures.txt", bundled))
    if extension:
        signatures += _lines(extension, _read(extension))
    return _by_selector(signatures)


def _read(path: str) -> str:
    try:
        if Path(path).stat().st_size > SIZE_MAX:
            raise StartRefused(f"{path} has more than {SIZE_MAX} bytes")
        return Path(path).read_text("utf-8")
    except OSError as error:
        raise StartRefused(f"cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise StartRefused(f"{path} is not UTF-8") from None


def _lines(origin: str, text: str) -> Iterator[str]:
    for number, line in enumerate(text.splitlines(), 1):
        signature = line.partition("#")[0].strip()
        if signature and not is_signature(signature):
            wrong = f"{origin}: line {number}: {signature[:80]!r}"
            raise StartRefused(f"{wrong} is not a signature such as transfer(address,uint256)")
        if signature:
            yield signature


def _by_selector(signatures: Iterable[str]) -> MethodNames:
    found: dict[bytes, set[str]] = {}
    for signature in signatures:
        found.setdefault(keccak256(signature.encode())[:4], set()).add(signature)
    return {selector: names.pop() for selector, names in found.items() if len(names) == 1}


def is_signature(text: str) -> bool:
    """Tell whether a text is a name and canonical types: no spaces, no parameter names, no short forms such as uint."""
    head = _NAME.match(text)
    return bool(head and _tuple_end(text, head.end() - 1, 0) == len(text))


def _tuple_end(text: str, at: int, depth: int) -> int:
    """The end of a list of types that begins with `(`; -1 if it is not one."""
    if depth > _DEPTH_MAX or text[at : at + 1] != "(":
        return -1
    if text[at + 1 : at + 2] == ")":
        return at + 2
    while True:
        at = _type_end(text, at + 1, depth)
        if at < 0 or text[at : at + 1] not in (",", ")"):
            return -1
        if text[at] == ")":
            return at + 1


def _type_end(text: str, at: int, depth: int) -> int:
    if text[at : at + 1] == "(":
        end = _tuple_end(text, at, depth + 1)
    else:
        found = _ELEMENTARY.match(text, at)
        end = found.end() if found and _sized(found) else -1
    if end < 0:
        return -1
    arrays = _ARRAYS.match(text, end)
    return arrays.end() if arrays else end


def _sized(found: re.Match[str]) -> bool:
    if found[2]:
        return 1 <= int(found[2][:3]) <= 32 and found[2][0] != "0"
    if found[4]:
        return int(found[4][:4]) in range(8, 257, 8) and found[4][0] != "0"
    return True
