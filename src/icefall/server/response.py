"""What the app answers a request with."""

from collections.abc import AsyncGenerator
from typing import NamedTuple

Headers = list[tuple[str, str]]


class Response(NamedTuple):
    """`body`: bytes, or pieces that are sent as they come, for as long as the client reads them."""

    status: int
    headers: Headers
    body: bytes | AsyncGenerator[bytes, None]
