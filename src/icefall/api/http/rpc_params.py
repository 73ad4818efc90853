"""Parameters of the node interfaces: their types, and the binder that makes a typed struct of JSON-RPC params or a
query, by the node's rules.
"""

from collections.abc import Callable, Sequence
from typing import Annotated, Any, get_type_hints
from urllib.parse import unquote_plus

import msgspec

from icefall.api.http.structs import InvalidValue, ParamType, param_type_in
from icefall.observe.log import LEVELS
from icefall.wire.errors import WireError
from icefall.wire.ids import EMPTY_ID, EMPTY_SHORT_ID, id_from_text, node_id_from_text
from icefall.wire.text.checksum_hex import ENCODINGS, encoding_name
from icefall.wire.text.jsonscan import distinct_members, elements, members, string_of

RpcParamType = ParamType[bytes]
_text = msgspec.json.Decoder(str).decode
_texts = msgspec.json.Decoder(list[str]).decode


def read_string(raw: bytes) -> str:
    if raw[:1] != b'"':
        raise InvalidValue("a string")
    try:
        return _text(raw)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return string_of(raw)  # as the node reads what is not Unicode


def _uint(bits: int) -> Callable[[bytes], int]:
    top = (1 << bits) - 1

    def read(raw: bytes) -> int:
        digits = raw[1:-1] if raw[:1] == b'"' == raw[-1:] else raw
        if not digits.isdigit() or len(raw) > 64:
            raise InvalidValue("a whole number")
        value = int(digits)
        if value > top:
            raise InvalidValue(f"a whole number up to {top}")
        return value

    return read


def _boolean(raw: bytes) -> bool:
    if raw not in (b"true", b"false"):
        raise InvalidValue("true or false")
    return raw == b"true"


def _items(raw: bytes) -> list[bytes]:
    if raw[:1] != b"[":
        raise InvalidValue("a list")
    return elements(raw)


def _strings(raw: bytes) -> list[str]:
    try:
        return _texts(raw)
    except (msgspec.DecodeError, UnicodeDecodeError):  # with null, or what is not Unicode
        return ["" if item == b"null" else read_string(item) for item in _items(raw)]


def _level(raw: bytes) -> str:
    level = read_string(raw).upper()
    if level not in LEVELS:
        raise InvalidValue("one of " + ", ".join(LEVELS))
    return level


def _id(raw: bytes) -> bytes:
    try:
        return id_from_text(read_string(raw))
    except WireError as error:
        raise InvalidValue("an ID in CB58") from error


def _ids(raw: bytes) -> list[bytes]:
    return [EMPTY_ID if item == b"null" else _id(item) for item in _items(raw)]


def _set_height(raw: bytes) -> int | None:
    """Read a height, or `proposed`: None. The highest number is no height, because the node has it for `proposed`."""
    if raw == b'"proposed"':
        return None
    height = _uint(64)(raw)
    if height == 2**64 - 1:
        raise InvalidValue("a height, or `proposed`")
    return height


def _node_ids(raw: bytes) -> list[bytes]:
    try:
        return [EMPTY_SHORT_ID if item == b"null" else node_id_from_text(read_string(item)) for item in _items(raw)]
    except WireError as error:
        raise InvalidValue("a list of NodeIDs") from error


def _encoding(raw: bytes) -> str:
    try:
        return encoding_name(read_string(raw))
    except WireError as error:
        raise InvalidValue(str(error)) from error


def _start_index(raw: bytes) -> tuple[str, str]:
    """Read `{address, utxo}`; either may be left out."""
    if raw[:1] != b"{":
        raise InvalidValue("an object")
    given = {key.lower(): value for key, value in members(raw) if value != b"null"}
    return tuple(read_string(given[key]) if key in given else "" for key in ("address", "utxo"))  # type: ignore[return-value]


def _whole(top: int) -> dict[str, Any]:
    digits = {"type": "string", "pattern": "^[0-9]+$"}
    return {"oneOf": [{"type": "integer", "minimum": 0, "maximum": top}, digits]}


STRING = RpcParamType("string", read_string, {"type": "string"})
UINT16 = RpcParamType("uint16", _uint(16), _whole(2**16 - 1))
UINT32 = RpcParamType("uint32", _uint(32), _whole(2**32 - 1))
UINT64 = RpcParamType("uint64", _uint(64), _whole(2**64 - 1))
BOOLEAN = RpcParamType("boolean", _boolean, {"type": "boolean"})
STRINGS = RpcParamType("list of strings", _strings, {"type": "array", "items": {"type": "string"}})
LEVEL = RpcParamType("level", _level, {"type": "string", "enum": list(LEVELS)})
ID = RpcParamType("ID", _id, {"type": "string", "description": "32 bytes in CB58"})
IDS = RpcParamType("list of IDs", _ids, {"type": "array", "items": {"type": "string"}})
SET_HEIGHT = RpcParamType(
    "uint64 or `proposed`", _set_height, {"oneOf": [*_whole(2**64 - 1)["oneOf"], {"const": "proposed"}]}
)
NODE_IDS = RpcParamType(
    "list of NodeIDs", _node_ids, {"type": "array", "items": {"type": "string", "pattern": "^NodeID-"}}
)
ENCODING = RpcParamType("encoding", _encoding, {"type": "string", "enum": list(ENCODINGS)})
START_INDEX = RpcParamType(
    "{address, utxo}",
    _start_index,
    {"type": "object", "properties": {"address": {"type": "string"}, "utxo": {"type": "string"}}},
)

String = Annotated[str, STRING]
Uint16 = Annotated[int, UINT16]
Uint32 = Annotated[int, UINT32]
Uint64 = Annotated[int, UINT64]
Boolean = Annotated[bool, BOOLEAN]
Strings = Annotated[list[str], STRINGS]
Level = Annotated[str, LEVEL]
Id = Annotated[bytes, ID]
Ids = Annotated[list[bytes], IDS]
SetHeight = Annotated[int | None, SET_HEIGHT]
NodeIds = Annotated[list[bytes], NODE_IDS]
Encoding = Annotated[str, ENCODING]
StartIndex = Annotated[tuple[str, str], START_INDEX]

NO_ID = EMPTY_ID
_LISTS = (STRINGS, IDS, NODE_IDS)


class NodeBinder:
    """The binder of one parameter struct, compiled once. Parameters in `ignored` may have any value."""

    def __init__(self, params: type[msgspec.Struct], ignored: Sequence[str] = ()) -> None:
        self.params = params
        self.types: dict[str, RpcParamType] = {}
        self._by_key: dict[str, tuple[str, RpcParamType, bool]] = {}  # field, type, whether it is a list
        hints = get_type_hints(params, include_extras=True)
        for field in msgspec.structs.fields(params):
            param_type: RpcParamType = param_type_in(hints[field.name])
            self.types[field.encode_name] = param_type
            if field.encode_name not in ignored:
                known = field.name, param_type, param_type in _LISTS
                self._by_key[field.encode_name] = self._by_key[field.encode_name.lower()] = known
        self._none = params()

    def from_json(self, raw: bytes) -> Any:
        """Make the struct of JSON-RPC params, empty when they are left out. Unknown keys are ignored, case does not
        matter, the last wins; null says nothing, but of lists, which it empties. In a list that is given again, null
        is what was there before."""
        if not raw or raw == b"null":
            return self._none
        if raw[:1] == b"[":
            items = elements(raw)
            if not items or items[0] == b"null":
                return self._none
            raw = items[0]
        if raw[:1] != b"{":
            raise InvalidValue("an object")
        plain = self._distinct(raw)
        if plain is not None:
            return self.params(**plain) if plain else self._none
        given: dict[str, Any] = {}
        slots: dict[str, list[Any]] = {}  # of lists; the node keeps them when a shorter list follows
        for key, value in members(raw):
            known = self._by_key.get(key) or self._by_key.get(key.lower())
            if known is None:
                continue
            name, param_type, is_list = known
            if value != b"null":
                given[name] = param_type.read(value)
                if is_list:
                    slots[name] = _put_over(slots.get(name, []), given[name], value)
                    given[name] = slots[name][: len(given[name])]
            elif is_list:
                given.pop(name, None)
                slots.pop(name, None)
        return self.params(**given) if given else self._none

    def _distinct(self, raw: bytes) -> dict[str, Any] | None:
        """Read parameters none of which is given twice; None if one may be."""
        found = distinct_members(raw)
        if found is None:
            return None
        given: dict[str, Any] = {}
        by_key = self._by_key
        for key, value in found.items():
            known = by_key.get(key) or by_key.get(key.lower())
            if known is not None:
                name, param_type, _ = known
                if name in given:
                    return None  # in another case
                text = bytes(value)
                if text != b"null":
                    given[name] = param_type.read(text)
        return given

    def from_query(self, query: str) -> Any:
        """Make the struct of a query of lists of strings, each a repeated key. Unknown keys are ignored."""
        if not query or not self._by_key:
            return self._none
        given: dict[str, list[str]] = {}
        for pair in query.split("&"):
            if ";" in pair or not _unescapes(pair):
                continue  # as the node does: an invalid pair is left out
            key, _, value = pair.partition("=")
            known = self._by_key.get(unquote_plus(key))
            if known is not None and known[1] is STRINGS:
                given.setdefault(known[0], []).append(unquote_plus(value, errors="replace"))
        return self.params(**given) if given else self._none


def _put_over(slots: list[Any], items: list[Any], raw: bytes) -> list[Any]:
    """Put items into the slots of a list that was given before. Null changes nothing; an empty list begins anew."""
    if not slots or not items:
        return items
    for at, one in enumerate(elements(raw)[: len(slots)]):
        if one == b"null":
            items[at] = slots[at]
    return items + slots[len(items) :]


def _unescapes(pair: str) -> bool:
    at = pair.find("%")
    while at >= 0:
        if len(pair) < at + 3 or any(c not in "0123456789abcdefABCDEF" for c in pair[at + 1 : at + 3]):
            return False
        at = pair.find("%", at + 1)
    return True
