"""How a field is spelt on the wire: `network_id` is `networkID`, `new_vms` is `newVMs`."""

import msgspec

_WORDS = {"id": "ID", "ids": "IDs", "vms": "VMs", "ip": "IP", "acps": "ACPs"}


def wire_name(field: str) -> str:
    first, *rest = field.split("_")
    return first + "".join(_WORDS.get(word, word.capitalize()) for word in rest)


class Ask(msgspec.Struct, frozen=True, rename=wire_name):
    """Base of parameter structs."""


class Told(msgspec.Struct, frozen=True, rename=wire_name):
    """Base of result structs."""


class Empty(Told, frozen=True):
    """`{}`"""
