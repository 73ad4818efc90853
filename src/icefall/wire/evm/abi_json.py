"""ABI files: the JSON that compilers write for a contract, as a list or in the field `abi` of an object.

Whoever wrote the file may be anybody. Its size, the number of declarations, their types and names are bounded; what is
kept is written again, so that nothing else of the file is stored or shown.
"""

from typing import Any, TypeAlias

import msgspec

from icefall.wire.evm.abi import (
    DEPTH_MAX,
    PARAMETERS_MAX,
    AbiError,
    AbiType,
    Declaration,
    Kind,
    Parameter,
    arrays_of,
    elementary,
    name_of,
    tuple_of,
)

SIZE_MAX = 1 << 19  # bytes of a file
DECLARATIONS_MAX = 1_000
_SIGNATURE_MAX = 4_096  # characters
_KINDS: tuple[Kind, ...] = ("function", "event", "error")
_OTHERS = ("constructor", "fallback", "receive")  # nothing is decoded by them
_VIEW = ("view", "pure")

Entry: TypeAlias = dict[str, Any]


class ContractAbi(msgspec.Struct, frozen=True):
    """The interface of a contract: its declarations by what selects them, in the order of the file."""

    functions: dict[bytes, Declaration]  # by selector
    events: dict[bytes, tuple[Declaration, ...]]  # by first topic
    errors: dict[bytes, Declaration]  # by selector

    def joined(self, other: "ContractAbi") -> "ContractAbi":
        """Return both as one; where they differ, this one wins."""
        return ContractAbi(
            {**other.functions, **self.functions}, {**other.events, **self.events}, {**other.errors, **self.errors}
        )

    def entries(self) -> list[Entry]:
        """Write the interface as an ABI file has it."""
        events = [one for several in self.events.values() for one in several]
        return [entry_of(one) for one in (*self.functions.values(), *events, *self.errors.values())]


def read_abi(text: bytes | str) -> ContractAbi:
    """Read an ABI file; AbiError says what is wrong with it."""
    raw = text.encode() if isinstance(text, str) else text
    if len(raw) > SIZE_MAX:
        raise AbiError(f"an ABI file has at most {SIZE_MAX} bytes, not {len(raw)}")
    try:
        found = msgspec.json.decode(raw)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        raise AbiError("an ABI file is JSON: a list of declarations, or an object with the field abi") from None
    return abi_of(found.get("abi") if isinstance(found, dict) else found)


def abi_of(entries: Any) -> ContractAbi:
    """Read the declarations of an ABI; AbiError says what is wrong with them."""
    if not isinstance(entries, list) or not all(isinstance(one, dict) for one in entries):
        raise AbiError("an ABI is a list of declarations, each an object")
    if len(entries) > DECLARATIONS_MAX:
        raise AbiError(f"an ABI has at most {DECLARATIONS_MAX} declarations, not {len(entries)}")
    abi = ContractAbi({}, {}, {})
    for one in entries:
        declared = _declaration(one)
        if declared is None:
            continue
        if declared.kind == "event":
            abi.events[declared.topic] = (*abi.events.get(declared.topic, ()), declared)
        else:
            (abi.functions if declared.kind == "function" else abi.errors)[declared.topic[:4]] = declared
    if not (abi.functions or abi.events or abi.errors):
        raise AbiError("an ABI declares at least one function, event or error")
    return abi


def _declaration(entry: Entry) -> Declaration | None:
    """Read one declaration; None for those by which nothing is decoded."""
    kind = entry.get("type", "function")
    if kind in _OTHERS or (kind == "event" and entry.get("anonymous") is True):
        return None
    if kind not in _KINDS:
        raise AbiError(f"{str(kind)[:40]!r} is not function, event, error, constructor, fallback or receive")
    name = name_of(_text(entry, "name"))
    if not name:
        raise AbiError(f"a {kind} needs a name")
    inputs = _parameters(entry.get("inputs", []), 0)
    outputs = _parameters(entry.get("outputs") or [], 0) if kind == "function" else ()
    is_view = kind == "function" and (entry.get("stateMutability") in _VIEW or entry.get("constant") is True)
    declared = Declaration(kind, name, inputs, outputs, is_view)
    if len(declared.signature) > _SIGNATURE_MAX:
        raise AbiError(f"the signature of {name} has more than {_SIGNATURE_MAX} characters")
    return declared


def _parameters(given: Any, depth: int) -> tuple[Parameter, ...]:
    if not isinstance(given, list) or len(given) > PARAMETERS_MAX or depth > DEPTH_MAX:
        raise AbiError(f"parameters are a list of at most {PARAMETERS_MAX}, nested at most {DEPTH_MAX} deep")
    return tuple(_parameter(one, depth) for one in given)


def _parameter(given: Any, depth: int) -> Parameter:
    if not isinstance(given, dict):
        raise AbiError("a parameter is an object with a name and a type")
    return Parameter(name_of(_text(given, "name")), _type(given, depth), given.get("indexed") is True)


def _type(given: Entry, depth: int) -> AbiType:
    text = _text(given, "type")
    base, bracket, rest = text.partition("[")
    kind = tuple_of(_parameters(given.get("components"), depth + 1)) if base == "tuple" else elementary(base)
    return arrays_of(kind, bracket + rest)


def _text(given: Entry, field: str) -> str:
    found = given.get(field, "")
    if not isinstance(found, str) or len(found) > _SIGNATURE_MAX:
        raise AbiError(f"{field} is a text of at most {_SIGNATURE_MAX} characters")
    return found


def entry_of(declared: Declaration) -> Entry:
    """Write a declaration as an ABI file has it."""
    inputs = [_written(one, indexed=declared.kind == "event") for one in declared.inputs]
    entry: Entry = {"type": declared.kind, "name": declared.name, "inputs": inputs}
    if declared.kind == "function":
        entry["outputs"] = [_written(one) for one in declared.outputs]
        entry["stateMutability"] = "view" if declared.is_view else "nonpayable"
    return entry


def _written(one: Parameter, *, indexed: bool = False) -> Entry:
    inner, brackets = one.type, ""
    while inner.item is not None:
        brackets = f"[{'' if inner.count is None else inner.count}]{brackets}"
        inner = inner.item
    entry: Entry = {"name": one.name, "type": f"{'tuple' if inner.parts else inner.text}{brackets}"}
    if inner.parts:
        entry["components"] = [_written(part) for part in inner.parts]
    return {**entry, "indexed": one.indexed} if indexed else entry
