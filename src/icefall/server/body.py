"""Reads the body of a request as it arrives: a known number of bytes, or chunks."""

import re

from icefall.server.head import HEADER_LINE

CHUNKS_MAX = 4096  # chunks of a body; tiny ones would cost more time than any body is worth
_SIZE_LINE = re.compile(rb"([0-9A-Fa-f]{1,16})[ \t]*(?:;[\t -~\x80-\xff]*)?\r\n")
_LINE_MAX = 4096  # bytes of the line with a chunk's size, and of all trailers


class InvalidChunk(Exception):
    pass


class KnownLength:
    """A body of `length` bytes."""

    __slots__ = ("_missing", "is_complete")

    def __init__(self, length: int) -> None:
        self._missing = length
        self.is_complete = not length

    def take(self, data: bytearray | bytes) -> tuple[bytes, int]:
        """Return the content at the start of `data`, and how many bytes of `data` are used up."""
        with memoryview(data) as view:
            piece = bytes(view[: self._missing])
        self._missing -= len(piece)
        self.is_complete = not self._missing
        return piece, len(piece)


class Chunks:
    """A body in chunks, up to the end of its trailers, which must be headers and are ignored."""

    __slots__ = ("_chunks", "_missing", "_state", "is_complete")

    def __init__(self) -> None:
        self._chunks = 0
        self._missing = 0
        self._state = "size"
        self.is_complete = False

    def take(self, data: bytearray | bytes) -> tuple[bytes, int]:
        """Return the content at the start of `data`, and how many bytes of `data` are used up.

        Raises InvalidChunk for what is not a chunk, and for more chunks than anyone needs.
        """
        pieces: list[bytes] = []
        at = 0
        while not self.is_complete:
            before = at, self._state
            if self._state == "data":
                piece = bytes(data[at : at + self._missing])
                pieces.append(piece)
                at += len(piece)
                self._missing -= len(piece)
                if not self._missing:
                    self._state = "end"
            elif self._state == "end":
                at = self._skip_line_end(data, at)
            else:
                at = self._line(data, at)
            if before == (at, self._state):
                break
        return b"".join(pieces), at

    def _skip_line_end(self, data: bytearray | bytes, at: int) -> int:
        found = bytes(data[at : at + 2])
        if found == b"\r\n":
            self._state = "size"
            return at + 2
        if found not in (b"", b"\r"):
            raise InvalidChunk
        return at

    def _line(self, data: bytearray | bytes, at: int) -> int:
        """Read a line with a chunk's size, or one of the trailers, and return where the next line begins."""
        end = data.find(b"\r\n", at, at + _LINE_MAX)
        if end < 0:
            if len(data) - at >= _LINE_MAX:
                raise InvalidChunk
            return at
        line = bytes(data[at : end + 2])
        if self._state == "trailers":
            self._read_trailer(line)
        else:
            self._read_size(line)
        return end + 2

    def _read_size(self, line: bytes) -> None:
        size = _SIZE_LINE.fullmatch(line)
        self._chunks += 1
        if size is None or self._chunks > CHUNKS_MAX:
            raise InvalidChunk
        self._missing = int(size[1], 16)
        self._state = "data" if self._missing else "trailers"

    def _read_trailer(self, line: bytes) -> None:
        self._missing += len(line)
        if self._missing > _LINE_MAX or not (line == b"\r\n" or HEADER_LINE.fullmatch(line)):
            raise InvalidChunk
        self.is_complete = line == b"\r\n"


def reader_of(length: int | None) -> KnownLength | Chunks:
    return Chunks() if length is None else KnownLength(length)
