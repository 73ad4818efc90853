"""Parameters of the chain data and metrics interfaces: their types, and the binder that makes a typed struct of a path
and a query.

Unknown names are ignored: proxies and clients add their own. A known one must be valid and given at most once; only
lists may be repeated, as the official clients send them, and mean the same as one with commas.
"""

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Annotated, Any, NamedTuple, get_type_hints
from urllib.parse import unquote_plus, unquote_to_bytes

import msgspec
from msgspec.structs import replace

from icefall.api.http.structs import InvalidValue, ParamType, param_type_in
from icefall.errors import BadRequest
from icefall.evm.enriching.reader import CURRENCIES
from icefall.evm.standards import STANDARDS
from icefall.wire.text.go_text import quote

BLOCK_NUMBER_MAX = 2**63 - 1
ADDRESSES_MAX = 100
PAGE_TOKEN_SIZE_MAX = 512
CHAIN_SIZE_MAX = 128
TOKEN_ID_DIGITS_MAX = 80
SEARCH_SIZE_MAX = 100
EVENT_ID_SIZE_MAX = 4096
STREAMED = ("blocks", "transactions", "transfers")
NETWORKS = ("mainnet", "fuji", "testnet")
FEATURES = ("nftIndexing", "webhooks", "teleporter")
# U+FFFD is what a server replaces bytes with that are not UTF-8.
_CHAIN = re.compile(rf"[^\x00-\x20\x7f,\ufffd]{{1,{CHAIN_SIZE_MAX}}}")
_TOKEN = re.compile(rf"[A-Za-z0-9_-]{{1,{PAGE_TOKEN_SIZE_MAX}}}")
_EVENT_ID = re.compile(rf"[0-9a-f:,]{{0,{EVENT_ID_SIZE_MAX}}}")
_EVENT = "|".join(STREAMED)
_IN_BRACES = re.compile(r"\{(\w+)\}")
_BAD_ESCAPE = re.compile(r"%(?![0-9a-fA-F]{2})")
_QUOTED_MAX = 80  # characters of a wrong value in an error

RestParamType = ParamType[str]


def whole(low: int, high: int, example: str = "") -> RestParamType:
    """The type of a decimal number within a range."""
    expected = f"a whole number between {low} and {high}"
    digits_max = len(str(high)) + 8  # a few leading zeros are allowed, a million digits are not

    def read(text: str) -> int:
        if not (text.isascii() and text.isdigit()) or len(text) > digits_max or not low <= int(text) <= high:
            raise InvalidValue(expected)
        return int(text)

    name = f"{low} to {high}" if high < BLOCK_NUMBER_MAX else "whole number"
    return RestParamType(name, read, {"type": "integer", "minimum": low, "maximum": high}, example or str(high))


def one_of(*words: str) -> RestParamType:
    """The type of one word of a closed set, spelt as it is listed."""
    expected = "one of " + ", ".join(words)

    def read(text: str) -> str:
        if text not in words:
            raise InvalidValue(expected)
        return text

    return RestParamType(" or ".join(words), read, {"type": "string", "enum": list(words)}, words[0])


def _hex(text: str, size: int, expected: str) -> bytes:
    try:
        value = bytes.fromhex(text[2:]) if text[:2] == "0x" and len(text) == 2 + 2 * size else b""
    except ValueError:
        value = b""
    if len(value) != size:  # `fromhex` skips spaces
        raise InvalidValue(expected)
    return value


def _address(text: str) -> bytes:
    """Read an address in any mixture of cases: a checksum that does not fit is accepted, as the hosted service does."""
    return _hex(text, 20, "an address: 0x and 40 hex digits")


def _hash(text: str) -> bytes:
    return _hex(text, 32, "a hash: 0x and 64 hex digits")


def _message_id(text: str) -> bytes:
    try:
        return _hash(text if text[:2] == "0x" else f"0x{text}")
    except InvalidValue:
        raise InvalidValue("the ID of a message: 64 hex digits, with or without 0x") from None


def _block_id(text: str) -> int | bytes:
    try:
        return bytes(_hash(text)) if text[:2] == "0x" else int(BLOCK_NUMBER.read(text))
    except InvalidValue:
        raise InvalidValue(
            f"a block number between 0 and {BLOCK_NUMBER_MAX}, or a block hash: 0x and 64 hex digits"
        ) from None


def _boolean(text: str) -> bool:
    if text not in ("true", "false"):
        raise InvalidValue("true or false")
    return text == "true"


def _addresses(text: str) -> tuple[bytes, ...]:
    expected = f"1 to {ADDRESSES_MAX} addresses separated by commas, each 0x and 40 hex digits"
    listed = text.split(",")
    if len(listed) > ADDRESSES_MAX:
        raise InvalidValue(f"{expected} ({len(listed)} are given)")
    try:
        return tuple(dict.fromkeys(_address(one.strip(" ")) for one in listed))
    except InvalidValue:
        raise InvalidValue(expected) from None


@lru_cache(maxsize=1024)  # a few chains; what is none is not cached
def _chain(text: str) -> str:
    if not _CHAIN.fullmatch(text):
        raise InvalidValue("an EVM chain ID, a blockchain ID or an alias of a chain")
    return text


def _page_token(text: str) -> str:
    if not _TOKEN.fullmatch(text):
        raise InvalidValue("a nextPageToken of an earlier answer")
    return text


def _token_id(text: str) -> int:
    if not (text.isascii() and text.isdigit()) or len(text) > TOKEN_ID_DIGITS_MAX or int(text) >= 1 << 256:
        raise InvalidValue("a token ID: a whole number of at most 256 bits")
    return int(text)


def _threshold(text: str) -> int:
    try:
        return _token_id(text)
    except InvalidValue:
        raise InvalidValue("an amount in the token's smallest unit: a whole number of at most 256 bits") from None


def _search_text(text: str) -> str:
    found = text.strip()
    if not 1 <= len(found) <= SEARCH_SIZE_MAX or not found.isprintable():
        raise InvalidValue(f"1 to {SEARCH_SIZE_MAX} printable characters")
    return found


def _token_or_native(text: str) -> bytes:
    """Read the address of a token; it is empty for the native token, as prices are stored."""
    try:
        return b"" if text == "native" else _address(text)
    except InvalidValue as error:
        raise InvalidValue(f"{error}, or the word native") from None


def _event_types(text: str) -> tuple[str, ...]:
    words = tuple(dict.fromkeys(text.split(",")))
    if not set(words) <= set(STREAMED):
        raise InvalidValue(f"some of {', '.join(STREAMED)}, separated by commas")
    return words


def _last_event_id(text: str) -> str:
    if not _EVENT_ID.fullmatch(text):
        raise InvalidValue("the ID of an event of this stream")
    return text


def _not_offered(_: str) -> None:
    raise InvalidValue("left out: only balances at the latest block are offered here")


_ADDRESS_SCHEMA = {"type": "string", "pattern": "^0x[0-9a-fA-F]{40}$"}
_HASH_SCHEMA = {"type": "string", "pattern": "^0x[0-9a-fA-F]{64}$"}
# Examples of the demo's chain 3210042: an address with transfers of every standard, a message that it sent, and a
# transaction that reverted.
_SOME_ADDRESS = "0x5d038640E1a2085e1e4fB53dAaca6807f892b00C"
_SOME_MESSAGE = "4abd7ed13c070ee19296f501e91630d6390a5a18ee8277ee4d87b6f4f491878c"
_SOME_HASH = "0xb7a21d946f2cf4c76daa7dacc0e4307e66048b6a61829a666fa77fbb0d57c5a1"

BLOCK_NUMBER = whole(0, BLOCK_NUMBER_MAX, "1")
TIMESTAMP = whole(0, 2**32 - 1, "1711234567")
START_BLOCK = replace(BLOCK_NUMBER, name="first block (inclusive)")
END_BLOCK = replace(BLOCK_NUMBER, name="end block (exclusive)")
CHAIN = RestParamType("chain", _chain, {"type": "string", "minLength": 1, "maxLength": CHAIN_SIZE_MAX}, "3210042")
ADDRESS = RestParamType("address", _address, _ADDRESS_SCHEMA, _SOME_ADDRESS)
HASH = RestParamType("hash", _hash, _HASH_SCHEMA, _SOME_HASH)
MESSAGE_ID = RestParamType(
    "message ID", _message_id, {"type": "string", "pattern": "^(0x)?[0-9a-fA-F]{64}$"}, _SOME_MESSAGE
)
BLOCK_ID = RestParamType(
    "block number or hash", _block_id, {"type": "string", "pattern": "^([0-9]+|0x[0-9a-fA-F]{64})$"}, "1"
)
BOOLEAN = RestParamType("true or false", _boolean, {"type": "boolean"}, "true")
ADDRESSES = RestParamType(
    f"1 to {ADDRESSES_MAX} addresses with commas",
    _addresses,
    {"type": "string"},
    _SOME_ADDRESS,
    is_list=True,
)
TOKEN_ID = RestParamType("token ID", _token_id, {"type": "string", "pattern": "^[0-9]{1,77}$"}, "1")
THRESHOLD = RestParamType("amount", _threshold, {"type": "string", "pattern": "^[0-9]{1,77}$"}, "1000000")
SEARCH_TEXT = RestParamType(
    "text", _search_text, {"type": "string", "minLength": 1, "maxLength": SEARCH_SIZE_MAX}, "ADOL"
)
TOKEN_OR_NATIVE = RestParamType(
    "address, or native", _token_or_native, {"type": "string", "pattern": "^(native|0x[0-9a-fA-F]{40})$"}, "native"
)
EVENT_TYPES = RestParamType(
    "words with commas",
    _event_types,
    {"type": "string", "pattern": f"^({_EVENT})(,({_EVENT}))*$"},
    STREAMED[0],
    is_list=True,
)
LAST_EVENT_ID = RestParamType("event ID", _last_event_id, {"type": "string", "maxLength": EVENT_ID_SIZE_MAX})
NOT_OFFERED = RestParamType("not offered", _not_offered, {})
PAGE_TOKEN = RestParamType("string", _page_token, {"type": "string", "maxLength": PAGE_TOKEN_SIZE_MAX})

ChainName = Annotated[str, CHAIN]
MaybeChain = Annotated[str | None, CHAIN]
EventTypes = Annotated[tuple[str, ...], EVENT_TYPES]
LastEventId = Annotated[str, LAST_EVENT_ID]
EvmAddress = Annotated[bytes, ADDRESS]
MaybeAddress = Annotated[bytes | None, ADDRESS]
NotOffered = Annotated[None, NOT_OFFERED]
TxHash = Annotated[bytes, HASH]
MaybeTopic = Annotated[bytes | None, HASH]
MessageId = Annotated[bytes, MESSAGE_ID]
BlockId = Annotated[int | bytes, BLOCK_ID]
BlockNumber = Annotated[int | None, BLOCK_NUMBER]
StartBlock = Annotated[int | None, START_BLOCK]
EndBlock = Annotated[int | None, END_BLOCK]
PageToken = Annotated[str, PAGE_TOKEN]
PageSize = Annotated[int, whole(1, 100)]  # lists
BlockPageSize = Annotated[int, whole(0, 100)]  # transactions of a block: 0 is all
CallsPageSize = Annotated[int, whole(1, 500)]
BalancePageSize = Annotated[int, whole(1, 500)]
HoldersPageSize = Annotated[int, whole(1, 5000)]
Threshold = Annotated[int, THRESHOLD]
MetricsPageSize = Annotated[int, whole(1, 2160)]
Timestamp = Annotated[int | None, TIMESTAMP]
RequiredTimestamp = Annotated[int, TIMESTAMP]
Closest = Annotated[str, one_of("before", "after")]
TokenId = Annotated[int, TOKEN_ID]
SearchText = Annotated[str, SEARCH_TEXT]
SearchPageSize = Annotated[int, whole(1, 50)]
TokenOrNative = Annotated[bytes, TOKEN_OR_NATIVE]
MaybeInterval = Annotated[str | None, one_of("hour", "day", "week", "month")]
TokenOrder = Annotated[str | None, one_of("holders", "transfers", "name", "marketValue")]
MaybeErcType = Annotated[str | None, one_of(*(standard.name for standard in STANDARDS))]
Switch = Annotated[bool, BOOLEAN]
EvmAddresses = Annotated[tuple[bytes, ...], ADDRESSES]
Currency = Annotated[str, one_of(*CURRENCIES)]
SortOrder = Annotated[str, one_of("desc", "asc")]
Network = Annotated[str | None, one_of(*NETWORKS)]
Feature = Annotated[str | None, one_of(*FEATURES)]
StatusFilter = Annotated[str | None, one_of("failed", "success")]
TimeInterval = Annotated[str, one_of("hour", "day", "week", "month")]


class RestParam(NamedTuple):
    """One parameter; `default` is `msgspec.NODEFAULT` where it is required."""

    field: str
    name: str
    type: RestParamType
    in_path: bool
    default: Any

    @property
    def required(self) -> bool:
        return self.default is msgspec.NODEFAULT

    @property
    def rendered_default(self) -> Any:
        """The default as a caller would write it; None where omitting the parameter means something else."""
        return self.default if not self.required and self.default not in (None, "", ()) else None


class RestBinder:
    """The binder of one row, compiled once. Path parameters are the fields that `path` names in braces."""

    def __init__(self, params: type[msgspec.Struct], path: str) -> None:
        named = _IN_BRACES.findall(path)
        hints = get_type_hints(params, include_extras=True)
        found = [
            RestParam(
                field.name,
                field.encode_name,
                param_type_in(hints[field.name]),
                field.encode_name in named,
                _default(field),
            )
            for field in msgspec.structs.fields(params)
        ]
        by_name = {param.name: param for param in found}
        if missing := [name for name in named if name not in by_name]:
            raise TypeError(f"{params.__name__} has no field for {missing} of {path}")
        self.params = params
        self._in_path = [by_name[name] for name in named]
        self._in_query = {param.name: param for param in found if not param.in_path}
        self._required = [param for param in self._in_query.values() if param.required]
        self.all = [*self._in_path, *self._in_query.values()]

    def bind(self, values: tuple[str, ...], query: str) -> Any:
        """Make the struct. `values` of the path are decoded, `query` is not."""
        given = dict(map(_read_field, self._in_path, values))
        if query and self._in_query:
            lists: dict[str, str] = {}
            for pair in query.split("&"):
                key, _, text = pair.partition("=")
                param = self._in_query.get(unquote_plus(key) if "%" in key or "+" in key else key)
                if param is None:
                    continue
                if "%" in text or "+" in text:
                    text = _decoded(param, text)
                if param.type.is_list:
                    lists[param.name] = f"{lists[param.name]},{text}" if param.name in lists else text
                elif param.field in given:
                    raise BadRequest(f"{param.name} is given more than once")
                else:
                    given[param.field] = _read(param, text)
            for name, text in lists.items():
                given[self._in_query[name].field] = _read(self._in_query[name], text)
        for param in self._required:
            if param.field not in given:
                raise BadRequest(f"{param.name} is missing")
        return self.params(**given)


def _default(field: msgspec.structs.FieldInfo) -> Any:
    factory = field.default_factory
    return field.default if factory is msgspec.NODEFAULT else factory()


def _read_field(param: RestParam, text: str) -> tuple[str, Any]:
    return param.field, _read(param, text)


def _read(param: RestParam, text: str) -> Any:
    try:
        return param.type.read(text)
    except InvalidValue as expected:
        raise BadRequest(f"{param.name} must be {expected}, got {_quoted(text)}") from None


def _decoded(param: RestParam, text: str) -> str:
    try:
        if not _BAD_ESCAPE.search(text):
            return unquote_to_bytes(text.replace("+", " ")).decode()
    except UnicodeDecodeError:
        pass
    raise BadRequest(f"{param.name} is not percent-encoded UTF-8, got {_quoted(text)}")


def _quoted(text: str) -> str:
    if not text:
        return "nothing"
    short = text if len(text) <= _QUOTED_MAX else text[: _QUOTED_MAX - 3] + "..."
    return short if short.isascii() and short.isprintable() and " " not in short else quote(short)


def body_reader(body: type[msgspec.Struct]) -> Callable[[bytes], Any]:
    """The function that makes a typed struct of a JSON body; BadRequest says what is wrong with it."""
    decoder = msgspec.json.Decoder(body)

    def read(raw: bytes) -> Any:
        try:
            return decoder.decode(raw)
        except msgspec.ValidationError as error:
            raise BadRequest(f"the body is invalid: {error}") from None
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise BadRequest("the body must be JSON") from None

    return read
