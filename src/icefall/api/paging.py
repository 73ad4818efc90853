"""Page tokens as a handler sees them: `after` reads the caller's, `token` makes the next one.

A token belongs to a query: the route and every parameter but the token itself and the page's size, which may change on
the way. Parameters count as they were understood: a default left out or another case of an address is no other query.
"""

import time
from collections.abc import Callable
from typing import Any

import msgspec

from icefall.access.page_tokens import NumberTokens, PageTokens

_LEFT_OUT = ("page_token", "page_size")


def scope_of(route: str, params: msgspec.Struct) -> bytes:
    """What tells one query from another. `route` keeps lists apart that take the same parameters."""
    told: list[Any] = [route]
    told += [getattr(params, name) for name in params.__struct_fields__ if name not in _LEFT_OUT]
    return msgspec.msgpack.encode(told)


class Paging:
    """Of the chain data interface: a cursor is bytes of the handler's own making, at most 256."""

    def __init__(self, tokens: PageTokens, clock: Callable[[], float] = time.time) -> None:
        self._tokens = tokens
        self._clock = clock

    def after(self, route: str, params: Any) -> bytes | None:
        """The cursor of the caller's `page_token`; None for the first page; BadRequest where it is not good."""
        return self._tokens.read(params.page_token, scope_of(route, params), int(self._clock())) if params.page_token else None

    def token(self, route: str, params: msgspec.Struct, cursor: bytes) -> str:
        return self._tokens.issue(scope_of(route, params), cursor, int(self._clock()))


class NumberPaging:
    """Of the metrics interface: a cursor is a number of 32 bits, such as a time in seconds."""

    def __init__(self, tokens: NumberTokens, clock: Callable[[], float] = time.time) -> None:
        self._tokens = tokens
        self._clock = clock

    def after(self, route: str, params: Any) -> int | None:
        return self._tokens.read(params.page_token, scope_of(route, params), int(self._clock())) if params.page_token else None

    def token(self, route: str, params: msgspec.Struct, cursor: int) -> str:
        return self._tokens.issue(scope_of(route, params), cursor, int(self._clock()))
