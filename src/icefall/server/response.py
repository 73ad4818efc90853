"""The answer of the app to a request, and the bytes of its head."""

from collections.abc import AsyncGenerator
from http import HTTPStatus
from typing import NamedTuple

Headers = list[tuple[str, str]]
CLOSE, KEEP_ALIVE = b"connection: close\r\n", b"connection: keep-alive\r\n"
WITHOUT_BODY = (204, 304)
_REASONS = {status.value: status.phrase for status in HTTPStatus} | {413: "Content Too Large"}


class Response(NamedTuple):
    """An answer of the app.

    `headers` may be shared by many answers and are never changed. `body` is bytes, or pieces that are sent as they
    come, for as long as the client reads them.
    """

    status: int
    headers: Headers
    body: bytes | AsyncGenerator[bytes, None]


class PackedHeads:
    """Makes the heads of answers. Most answers of a worker have the same list of headers: its bytes are kept."""

    __slots__ = ("_begin", "_date", "_headers", "_status")

    def __init__(self) -> None:
        self._headers: Headers | None = None
        self._status = 0
        self._begin = b""
        self._date = b""

    def set_date(self, date: str) -> None:
        self._date = f"date: {date}\r\n\r\n".encode()

    def pack(self, response: Response, length: int | None, connection: bytes = b"", *, chunked: bool = False) -> bytes:
        """Return the bytes of a head.

        `length` is the length of the body, None if it is sent in chunks, or where not `chunked` until the connection
        ends. `connection` is the line of the header of that name, or nothing.
        """
        if response.headers is not self._headers or response.status != self._status:
            self._begin = _pack(response)
            self._headers, self._status = response.headers, response.status
        if length is None:
            return self._begin + (b"transfer-encoding: chunked\r\n" if chunked else b"") + connection + self._date
        if response.status in WITHOUT_BODY:
            return self._begin + connection + self._date
        return b"%bcontent-length: %d\r\n%b%b" % (self._begin, length, connection, self._date)


def _pack(response: Response) -> bytes:
    """Return the status line and the headers, without the end of the head."""
    status = f"HTTP/1.1 {response.status} {_REASONS.get(response.status, '')}"
    lines = [status, *[f"{name}: {value}" for name, value in response.headers], ""]
    head = "\r\n".join(lines)
    if head.count("\n") != len(lines) - 1 or head.count("\r") != len(lines) - 1 or "\0" in head:
        raise ValueError("a header with a line break")
    return head.encode("latin-1", "replace")
