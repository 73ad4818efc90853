"""What a kind of parameter is. `node_kinds.py` holds those of the node interfaces, `rest_kinds.py` those of the chain
data and metrics interfaces. A parameter struct names its kinds in its annotations (`index: Uint64 = 0`)."""

from collections.abc import Callable
from typing import Any, Generic, TypeVar, get_args

import msgspec

Raw = TypeVar("Raw", bytes, str)


class InvalidValue(Exception):
    """A value that is not of its kind; the text names what was expected."""


class ParamKind(msgspec.Struct, Generic[Raw], frozen=True):
    """`read` raises InvalidValue with what was expected. `example` is a value that works, where there is one.
    What a parameter means is in `api/glossary.py`."""

    name: str
    read: Callable[[Raw], Any]
    schema: dict[str, Any]
    example: str = ""


def kind_in(annotation: Any) -> Any:
    """The ParamKind that an annotation such as `Annotated[int, UINT64]` names."""
    return next(extra for extra in get_args(annotation)[1:] if isinstance(extra, ParamKind))
