"""Pages of lists in chain order: where a page begins, and the token of the next."""

import struct
from collections.abc import Sequence
from typing import Any, Protocol, TypeVar

from msgspec import UNSET, UnsetType

from icefall.api.http.paging import Paging
from icefall.errors import BadRequest
from icefall.evm.reading.model import PageRange

_NUMBER_SIZE = 8


class ListRow(Protocol):
    """A row of a list."""

    @property
    def cursor(self) -> tuple[int, ...]: ...


T = TypeVar("T", bound=ListRow)


def pack_cursor(*numbers: int) -> bytes:
    return struct.pack(f">{len(numbers)}Q", *numbers)


def unpack_cursor(cursor: bytes) -> tuple[int, ...]:
    return struct.unpack(f">{len(cursor) // _NUMBER_SIZE}Q", cursor)


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
