"""Page tokens for handlers: `after` reads the caller's, `token` issues the next one.

A token is valid for one query: the route and every parameter except the token itself and the page size. Parameters are
compared after parsing: an omitted default, or an address in another case, is the same query.
"""

import time
from collections.abc import Callable
from typing import Any

import msgspec

from icefall.access.page_tokens import NumberTokens, PageTokens

_LEFT_OUT = ("page_token", "page_size")


def scope_of(route: str, params: msgspec.Struct) -> bytes:
    """Identify a query. `route` distinguishes lists that take the same parameters."""
    scope: list[Any] = [route]
    scope += [_packable(getattr(params, name)) for name in params.__struct_fields__ if name not in _LEFT_OUT]
    return msgspec.msgpack.encode(scope)


def _packable(value: Any) -> Any:
    """Convert a number that msgpack does not pack: amounts and token IDs may have 256 bits."""
    return str(value) if isinstance(value, int) and value.bit_length() > 63 else value


class Paging:
    """The pages of the chain data interface: a cursor is at most 256 bytes that only the handler interprets."""

    def __init__(self, tokens: PageTokens, clock: Callable[[], float] = time.time) -> None:
        self._tokens = tokens
        self._clock = clock

    def after(self, route: str, params: Any) -> bytes | None:
        """The cursor of the caller's `page_token`; None for the first page; BadRequest if it is invalid."""
        if not params.page_token:
            return None
        return self._tokens.read(params.page_token, scope_of(route, params), int(self._clock()))

    def token(self, route: str, params: msgspec.Struct, cursor: bytes) -> str:
        return self._tokens.issue(scope_of(route, params), cursor, int(self._clock()))


class NumberPaging:
    """The pages of the metrics interface: a cursor is a number of 32 bits, such as a time in seconds."""

    def __init__(self, tokens: NumberTokens, clock: Callable[[], float] = time.time) -> None:
        self._tokens = tokens
        self._clock = clock

    def after(self, route: str, params: Any) -> int | None:
        if not params.page_token:
            return None
        return self._tokens.read(params.page_token, scope_of(route, params), int(self._clock()))

    def token(self, route: str, params: msgspec.Struct, cursor: int) -> str:
        return self._tokens.issue(scope_of(route, params), cursor, int(self._clock()))
