"""Bases of parameter and result structs, and how a field is spelt on the wire: `network_id` is `networkID`, `new_vms`
is `newVMs`."""

import msgspec

_WORDS = {"id": "ID", "ids": "IDs", "vms": "VMs", "ip": "IP", "acps": "ACPs"}


def wire_name(field: str) -> str:
    first, *rest = field.split("_")
    return first + "".join(_WORDS.get(word, word.capitalize()) for word in rest)


class Params(msgspec.Struct, frozen=True, rename=wire_name):
    """Base of parameter structs."""


class Result(msgspec.Struct, frozen=True, rename=wire_name):
    """Base of result structs."""


class RestParams(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Base of parameter structs of the chain data and metrics interfaces, which write `chainId`."""


class RestResult(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Base of their result structs. A field that may be absent is `str | msgspec.UnsetType = msgspec.UNSET`."""


class Page(RestResult, frozen=True, kw_only=True):
    """Base of pages of a list. `nextPageToken` is absent on the last one."""

    next_page_token: str | msgspec.UnsetType = msgspec.UNSET


class Empty(Result, frozen=True):
    """`{}`"""
