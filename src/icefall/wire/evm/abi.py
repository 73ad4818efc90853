"""The types of contract interfaces (ABI), and declarations of functions, events and errors, read from their texts.

Whoever gives a contract's interface may be anybody, so everything in it is bounded: the length of a text, how deep
types nest, how many parameters there are, and how names are spelled.
"""

import re
from typing import Literal, TypeAlias

import msgspec

from icefall.wire.evm.rlp import keccak256

WORD = 32
TEXT_MAX = 4_096  # characters of a signature
DEPTH_MAX = 16  # of tuples and arrays in each other
PARAMETERS_MAX = 64  # of a declaration or a tuple
NAME_MAX = 128
_NAME = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*")
_ELEMENTARY = re.compile(r"(address|bool|string|function|bytes([0-9]{0,2})|u?int([0-9]{1,3})?)")
_ARRAY = re.compile(r"\[([1-9][0-9]{0,5})?\]")
_SHORT = {"uint": "uint256", "int": "int256"}

Kind: TypeAlias = Literal["function", "event", "error"]


class AbiError(ValueError):
    """An interface that is not valid, or larger than is read; the text says what is wrong."""


class AbiType(msgspec.Struct, frozen=True):
    """One type. An array has an `item`, and a `count` unless the data says how many there are; a tuple has `parts`."""

    text: str  # canonical: no names, no short forms
    is_dynamic: bool
    head_size: int  # bytes that it takes where it is, of which a dynamic one has only an offset there
    depth: int = 0
    item: "AbiType | None" = None
    count: int | None = None
    parts: "tuple[Parameter, ...]" = ()

    @property
    def is_elementary(self) -> bool:
        return self.item is None and not self.parts


class Parameter(msgspec.Struct, frozen=True):
    """A parameter, or a part of a tuple. The name may be empty."""

    name: str
    type: AbiType
    indexed: bool = False


class Declaration(msgspec.Struct, frozen=True):
    """A function, an event or an error, with what it takes. `outputs`, `is_view`: of a function in an ABI file."""

    kind: Kind
    name: str
    inputs: tuple[Parameter, ...]
    outputs: tuple[Parameter, ...] = ()
    is_view: bool = False

    @property
    def signature(self) -> str:
        return f"{self.name}({','.join(one.type.text for one in self.inputs)})"

    @property
    def topic(self) -> bytes:
        """The hash of the signature: the first topic of an event, and its first four bytes select a function."""
        return keccak256(self.signature.encode())


def name_of(text: str) -> str:
    """Return the name, which may be empty; AbiError if it is none that a compiler takes."""
    if len(text) > NAME_MAX or (text and not _NAME.fullmatch(text)):
        raise AbiError(f"{text[:40]!r} is not a name of at most {NAME_MAX} letters, digits, _ and $")
    return text


def elementary(text: str) -> AbiType:
    """Return the type of one word or of bytes; AbiError if there is none of that name."""
    text = _SHORT.get(text, text)
    found = _ELEMENTARY.fullmatch(text)
    if not found or (found[2] and not _is_size(found[2], 1, 32, 1)) or (found[3] and not _is_size(found[3], 8, 256, 8)):
        raise AbiError(f"{text[:40]!r} is not a type that can be decoded")
    return AbiType(text, text in ("bytes", "string"), WORD)


def _is_size(digits: str, least: int, most: int, step: int) -> bool:
    return digits[0] != "0" and least <= int(digits) <= most and int(digits) % step == 0


def tuple_of(parts: tuple[Parameter, ...]) -> AbiType:
    if not 0 < len(parts) <= PARAMETERS_MAX:
        raise AbiError(f"a tuple has 1 to {PARAMETERS_MAX} parts, not {len(parts)}")
    text = f"({','.join(part.type.text for part in parts)})"
    is_dynamic = any(part.type.is_dynamic for part in parts)
    size = WORD if is_dynamic else sum(part.type.head_size for part in parts)
    return AbiType(text, is_dynamic, size, _deeper(max(part.type.depth for part in parts)), parts=parts)


def arrays_of(item: AbiType, suffix: str) -> AbiType:
    """Return the array of arrays that a suffix such as `[2][]` makes of a type; the type itself if it is empty."""
    at = 0
    while at < len(suffix):
        found = _ARRAY.match(suffix, at)
        if not found:
            raise AbiError(f"{suffix[:40]!r} are not the brackets of an array")
        count = int(found[1]) if found[1] else None
        is_dynamic = count is None or item.is_dynamic
        size = WORD if is_dynamic else (count or 0) * item.head_size
        item = AbiType(item.text + found[0], is_dynamic, size, _deeper(item.depth), item=item, count=count)
        at = found.end()
    return item


def _deeper(depth: int) -> int:
    if depth >= DEPTH_MAX:
        raise AbiError(f"types nest more than {DEPTH_MAX} deep")
    return depth + 1


def declaration(kind: Kind, text: str) -> Declaration:
    """Read `Transfer(address indexed from,address indexed to,uint256 value)`; names may be left out. AbiError if it is
    no declaration, or a larger one than is read."""
    if len(text) > TEXT_MAX:
        raise AbiError(f"a signature has at most {TEXT_MAX} characters, not {len(text)}")
    name, _, _ = text.partition("(")
    parser = _Parser(text, len(name))
    inputs = parser.parameters(0)
    if not name or parser.at != len(text):
        raise AbiError(f"{text[:80]!r} is not a signature such as transfer(address,uint256)")
    return Declaration(kind, name_of(name), inputs)


class _Parser:
    """Reads a list of parameters in parentheses, from left to right."""

    _WORD = re.compile(r" ?([A-Za-z0-9_$]+)")
    _BRACKETS = re.compile(r"[\[\]0-9]*")

    def __init__(self, text: str, at: int) -> None:
        self.text = text
        self.at = at

    def parameters(self, depth: int) -> tuple[Parameter, ...]:
        if depth > DEPTH_MAX or not self._takes("("):
            raise AbiError(f"{self.text[:80]!r} is not a signature such as transfer(address,uint256)")
        if self._takes(")"):
            return ()
        found = [self._parameter(depth)]
        while self._takes(","):
            found.append(self._parameter(depth))
        if not self._takes(")") or len(found) > PARAMETERS_MAX:
            raise AbiError(f"{self.text[:80]!r} is not a list of at most {PARAMETERS_MAX} types")
        return tuple(found)

    def _parameter(self, depth: int) -> Parameter:
        self._takes(" ")
        base = tuple_of(self.parameters(depth + 1)) if self._at("(") else elementary(self._word())
        brackets = self._BRACKETS.match(self.text, self.at)
        suffix = brackets[0] if brackets else ""
        self.at += len(suffix)
        kind = arrays_of(base, suffix)
        name = self._word() if self._at(" ") else ""
        if name == "indexed":
            return Parameter(name_of(self._word() if self._at(" ") else ""), kind, True)
        return Parameter(name_of(name), kind)

    def _at(self, text: str) -> bool:
        return self.text.startswith(text, self.at)

    def _takes(self, text: str) -> bool:
        is_here = self._at(text)
        self.at += len(text) if is_here else 0
        return is_here

    def _word(self) -> str:
        found = self._WORD.match(self.text, self.at)
        if not found:
            raise AbiError(f"{self.text[:80]!r} lacks a type or a name")
        self.at = found.end()
        return found[1]
