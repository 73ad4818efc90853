"""Pages of lists: the token of the caller, where a page begins, and the token of the next one.

A token is valid for one query: the route and every parameter except the token itself and the page size. Parameters are
compared after parsing: an omitted default, or an address in another case, is the same query.
"""

import struct
import time
from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from operator import attrgetter
from typing import Any, Protocol, TypeVar

import msgspec
from msgspec import UNSET, UnsetType

from icefall.access.page_tokens import CURSOR_SIZE_MAX, NumberTokens, PageTokens
from icefall.errors import BadRequest
from icefall.evm.reading.model import PageRange

_LEFT_OUT = ("page_token", "page_size")


def scope_of(route: str, params: msgspec.Struct) -> bytes:
    """Identify a query. `route` distinguishes lists that take the same parameters."""
    scope = [route, *_compared(type(params))(params)]
    try:
        return msgspec.msgpack.encode(scope)
    except OverflowError:  # amounts and token IDs may have 256 bits
        return msgspec.msgpack.encode([_packable(value) for value in scope])


@cache
def _compared(params: type[msgspec.Struct]) -> Callable[[msgspec.Struct], tuple[Any, ...]]:
    """The function that returns the values of a query to which its page token is bound."""
    names = [name for name in params.__struct_fields__ if name not in _LEFT_OUT]
    if len(names) < 2:  # attrgetter returns a tuple of two or more
        return lambda query: tuple(getattr(query, name) for name in names)
    return attrgetter(*names)


def _packable(value: Any) -> Any:
    """Convert a number that msgpack does not pack."""
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


_NUMBER_SIZE = 8


class ListRow(Protocol):
    """A row of a list."""

    @property
    def cursor(self) -> tuple[int, ...]: ...


T = TypeVar("T", bound=ListRow)


def pack_cursor(*numbers: int) -> bytes:
    return _numbers(len(numbers)).pack(*numbers)


def unpack_cursor(cursor: bytes) -> tuple[int, ...]:
    return _numbers(len(cursor) // _NUMBER_SIZE).unpack(cursor)


@lru_cache(maxsize=CURSOR_SIZE_MAX // _NUMBER_SIZE)
def _numbers(count: int) -> struct.Struct:
    return struct.Struct(f">{count}Q")


def cursor_of(route: str, params: Any, paging: Paging) -> tuple[int, ...] | None:
    """The cursor with which the page before ended; None for the first page."""
    cursor = paging.after(route, params)
    return None if cursor is None else unpack_cursor(cursor)


def page_range(route: str, params: Any, paging: Paging) -> PageRange:
    """The blocks of a query, and where in them the page begins."""
    start, end = params.start_block, params.end_block
    if start is not None and end is not None and start > end:
        raise BadRequest(f"startBlock must not be greater than endBlock, got {start} and {end}")
    return PageRange(start or 0, end, cursor_of(route, params, paging))


def cut(route: str, params: Any, paging: Paging, rows: Sequence[T]) -> tuple[Sequence[T], str | UnsetType]:
    """The page, and the token of the next one. `rows` holds one row more than a page if there is a next."""
    if len(rows) <= params.page_size:
        return rows, UNSET
    page = rows[: params.page_size]
    return page, paging.token(route, params, pack_cursor(*page[-1].cursor))
