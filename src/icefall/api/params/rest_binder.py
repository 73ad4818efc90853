"""From a path and a query to a typed parameter struct, for the rows of the chain data and metrics interfaces.

Unknown names are ignored: proxies and clients add their own. A known one must be valid and given at most once.
"""

import re
from typing import Any, NamedTuple, get_type_hints
from urllib.parse import unquote_plus, unquote_to_bytes

import msgspec

from icefall.api.params.kinds import InvalidValue, kind_in
from icefall.api.params.rest_kinds import RestKind
from icefall.errors import BadRequest
from icefall.wire.text.go_text import quote

_IN_BRACES = re.compile(r"\{(\w+)\}")
_BAD_ESCAPE = re.compile(r"%(?![0-9a-fA-F]{2})")
_SHOWN_MAX = 80


class RestParam(NamedTuple):
    """One parameter; `default` is `msgspec.NODEFAULT` where it is required."""

    field: str
    name: str
    kind: RestKind
    in_path: bool
    default: Any

    @property
    def required(self) -> bool:
        return self.default is msgspec.NODEFAULT

    @property
    def shown_default(self) -> Any:
        """The default as a caller would write it; None where omitting the parameter means something else."""
        return self.default if not self.required and self.default not in (None, "", ()) else None


class RestBinder:
    """Compiled once per row. Path parameters are the fields that `path` names in braces."""

    def __init__(self, params: type[msgspec.Struct], path: str) -> None:
        named = _IN_BRACES.findall(path)
        hints = get_type_hints(params, include_extras=True)
        found = [
            RestParam(
                field.name, field.encode_name, kind_in(hints[field.name]), field.encode_name in named, _default(field)
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
        """`values` of the path are decoded, `query` is not."""
        given = {param.field: _read(param, text) for param, text in zip(self._in_path, values, strict=True)}
        if query and self._in_query:
            for pair in query.split("&"):
                key, _, text = pair.partition("=")
                param = self._in_query.get(unquote_plus(key) if "%" in key or "+" in key else key)
                if param is None:
                    continue
                if param.field in given:
                    raise BadRequest(f"{param.name} is given more than once")
                given[param.field] = _read(param, _decoded(param, text) if "%" in text or "+" in text else text)
        for param in self._required:
            if param.field not in given:
                raise BadRequest(f"{param.name} is missing")
        return self.params(**given)


def _default(field: msgspec.structs.FieldInfo) -> Any:
    factory = field.default_factory
    return field.default if factory is msgspec.NODEFAULT else factory()


def _read(param: RestParam, text: str) -> Any:
    try:
        return param.kind.read(text)
    except InvalidValue as expected:
        raise BadRequest(f"{param.name} must be {expected}, got {_shown(text)}") from None


def _decoded(param: RestParam, text: str) -> str:
    try:
        if not _BAD_ESCAPE.search(text):
            return unquote_to_bytes(text.replace("+", " ")).decode()
    except UnicodeDecodeError:
        pass
    raise BadRequest(f"{param.name} is not percent-encoded UTF-8, got {_shown(text)}")


def _shown(text: str) -> str:
    if not text:
        return "nothing"
    short = text if len(text) <= _SHOWN_MAX else text[: _SHOWN_MAX - 3] + "..."
    return short if short.isascii() and short.isprintable() and " " not in short else quote(short)
