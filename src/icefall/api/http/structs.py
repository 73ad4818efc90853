"""The shapes that all interfaces share: types of parameters, bases of parameter and result structs, and how fields,
addresses and hashes are written (`network_id` is `networkID`, `new_vms` is `newVMs`).
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Generic, TypeVar, get_args

import msgspec

from icefall.wire.evm.hex import checksummed

Raw = TypeVar("Raw", bytes, str)
_WIRE_WORDS = {"id": "ID", "ids": "IDs", "vms": "VMs", "ip": "IP", "acps": "ACPs"}


class InvalidValue(Exception):
    """A value that is not of its parameter's type; the text names what was expected."""


class ParamType(msgspec.Struct, Generic[Raw], frozen=True):
    """A type of parameter. `read` raises InvalidValue with what was expected. `example` is a value that works, where
    there is one. `is_list`: it has values separated by commas, or is repeated. The meaning of a parameter is in
    `api/describing/param_glossary.py`."""

    name: str
    read: Callable[[Raw], Any]
    schema: dict[str, Any]
    example: str = ""
    is_list: bool = False


def param_type_in(annotation: Any) -> Any:
    """The ParamType that an annotation such as `Annotated[int, UINT64]` names."""
    return next(extra for extra in get_args(annotation)[1:] if isinstance(extra, ParamType))


def wire_name(field: str) -> str:
    """Spell a field as the node interfaces do."""
    first, *rest = field.split("_")
    return first + "".join(_WIRE_WORDS.get(word, word.capitalize()) for word in rest)


class Params(msgspec.Struct, frozen=True, rename=wire_name):
    """The base of parameter structs."""


class Result(msgspec.Struct, frozen=True, rename=wire_name):
    """The base of result structs."""


class RestParams(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The base of parameter structs of the chain data and metrics interfaces, which write `chainId`."""


class RestResult(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The base of their result structs. A field that may be absent is `str | msgspec.UnsetType = msgspec.UNSET`."""


class Page(RestResult, frozen=True, kw_only=True):
    """The base of pages of a list. `nextPageToken` is absent on the last one."""

    next_page_token: str | msgspec.UnsetType = msgspec.UNSET


class Empty(Result, frozen=True):
    """The result `{}`."""


class NoParams(msgspec.Struct, frozen=True):
    """The parameters of calls that take none. Whatever is sent anyway must still be an object or a list."""


# A page repeats the same few addresses, and a checksum costs more than everything else of a row.
address_text = lru_cache(maxsize=1 << 16)(checksummed)


def hash_text(raw: bytes) -> str:
    return "0x" + raw.hex()
