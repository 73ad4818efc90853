"""Pages of lists in chain order: where the asked one begins, and the token of the next."""

import struct
from collections.abc import Sequence
from typing import Any, Protocol, TypeVar

from msgspec import UNSET, UnsetType

from icefall.api.paging import Paging
from icefall.errors import BadRequest
from icefall.evm.reading.model import Span

PLACE_SIZE = 8


class ListRow(Protocol):
    """A row of a list."""

    @property
    def cursor(self) -> tuple[int, ...]: ...


T = TypeVar("T", bound=ListRow)


def pack_places(*places: int) -> bytes:
    return struct.pack(f">{len(places)}Q", *places)


def unpack_places(cursor: bytes) -> tuple[int, ...]:
    return struct.unpack(f">{len(cursor) // PLACE_SIZE}Q", cursor)


def places_after(route: str, ask: Any, paging: Paging) -> tuple[int, ...] | None:
    """Where the page before ended; None for the first."""
    cursor = paging.after(route, ask)
    return None if cursor is None else unpack_places(cursor)


def span_of(route: str, ask: Any, paging: Paging) -> Span:
    """The blocks of a query, and where in them its page begins."""
    start, end = ask.start_block, ask.end_block
    if start is not None and end is not None and start > end:
        raise BadRequest(f"startBlock must not be greater than endBlock, got {start} and {end}")
    return Span(start or 0, end, places_after(route, ask, paging))


def cut(route: str, ask: Any, paging: Paging, rows: Sequence[T]) -> tuple[Sequence[T], str | UnsetType]:
    """Of one row more than a page holds: the page, and the token of the next if there is one."""
    if len(rows) <= ask.page_size:
        return rows, UNSET
    page = rows[: ask.page_size]
    return page, paging.token(route, ask, pack_places(*page[-1].cursor))
