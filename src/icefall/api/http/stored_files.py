"""Files as answers: sent in pieces, as a whole or the part of them that a client asks for (RFC 9110, Range).

A download that was interrupted is continued in this way. A file never changes once it has its name.
"""

import asyncio
import re
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import NamedTuple

import msgspec

from icefall.server.response import Headers

_PIECE = 256 << 10
_RANGE = re.compile(r"bytes[ \t]*=[ \t]*(?:([0-9]{1,18})[ \t]*-[ \t]*([0-9]{0,18})|-[ \t]*([0-9]{1,18}))[ \t]*")


class StoredFile(msgspec.Struct, frozen=True):
    """The result of a handler: a file."""

    path: Path


class FilePart(NamedTuple):
    """The answer that a file is sent with."""

    status: int
    headers: Headers
    length: int
    pieces: Callable[[], AsyncGenerator[bytes, None]]


def part_of(file: StoredFile, wanted: str | None, only_if: str | None) -> FilePart:
    """Choose what to send. `wanted` and `only_if` are the headers Range and If-Range. All of the file is sent where the
    range makes no sense, there are several, or it is of a file with another ETag."""
    found = file.path.stat()
    size, tag = found.st_size, f'"{found.st_mtime_ns:x}-{found.st_size:x}"'
    headers = [("accept-ranges", "bytes"), ("etag", tag)]
    span = None if wanted is None or only_if not in (None, tag) else _span(wanted, size)
    if span is None:
        return FilePart(200, headers, size, lambda: _pieces(file.path, 0, size))
    first, end = span
    if first >= end:
        return FilePart(416, [*headers, ("content-range", f"bytes */{size}")], 0, lambda: _pieces(file.path, 0, 0))
    headers.append(("content-range", f"bytes {first}-{end - 1}/{size}"))
    return FilePart(206, headers, end - first, lambda: _pieces(file.path, first, end - first))


def _span(wanted: str, size: int) -> tuple[int, int] | None:
    """The first byte of a range and the one behind the last, the same if none is there; None: no range."""
    match = _RANGE.fullmatch(wanted)
    if match is None:
        return None
    first, last, of_end = match.groups()
    if of_end is not None:
        return max(0, size - int(of_end)), size
    if last and int(last) < int(first):
        return None
    return min(int(first), size), min(int(last) + 1, size) if last else size


async def _pieces(path: Path, first: int, length: int) -> AsyncGenerator[bytes, None]:
    with path.open("rb") as file:
        file.seek(first)
        while length:
            piece = await asyncio.to_thread(file.read, min(length, _PIECE))
            if not piece:
                raise OSError(f"{path} ended early")
            length -= len(piece)
            yield piece
