"""What the app answers a request with, and the bytes of its head."""

from collections.abc import AsyncGenerator
from http import HTTPStatus
from typing import NamedTuple

Headers = list[tuple[str, str]]
_REASONS = {status.value: status.phrase for status in HTTPStatus} | {413: "Content Too Large"}


class Response(NamedTuple):
    """`body`: bytes, or pieces that are sent as they come, for as long as the client reads them."""

    status: int
    headers: Headers
    body: bytes | AsyncGenerator[bytes, None]


def first_lines(response: Response) -> list[str]:
    """Status line and headers; those about length and connection are the connection's to add."""
    status = f"HTTP/1.1 {response.status} {_REASONS.get(response.status, '')}"
    return [status, *[f"{name}: {value}" for name, value in response.headers]]


def pack_head(lines: list[str]) -> bytes:
    head = "\r\n".join(lines)
    if head.count("\n") != len(lines) - 1 or head.count("\r") != len(lines) - 1 or "\0" in head:
        raise ValueError("a header with a line break")
    return head.encode("latin-1", "replace") + b"\r\n\r\n"
