"""The body of an HTTP response in bounded chunks, so that a small compressed body cannot fill the memory."""

import zlib
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import aiohttp

_READ_SIZE = 1 << 16


class InvalidGzip(Exception):
    """A body that is labelled gzip, but damaged or truncated."""


async def body_chunks(
    response: "aiohttp.ClientResponse", *, is_gzip: bool, chunk_size_max: int = _READ_SIZE
) -> AsyncIterator[bytes]:
    """The body, decompressed if it is gzip. InvalidGzip where that fails, possibly after some chunks."""
    if not is_gzip:
        async for chunk in response.content.iter_chunked(chunk_size_max):
            yield chunk
        return
    gunzip = zlib.decompressobj(31)
    try:
        async for chunk in response.content.iter_chunked(_READ_SIZE):
            rest = chunk
            while rest:
                yield gunzip.decompress(rest, chunk_size_max)
                rest = gunzip.unconsumed_tail
        yield gunzip.flush()
    except zlib.error as error:
        raise InvalidGzip(f"damaged gzip: {error}") from error
    if not gunzip.eof:
        raise InvalidGzip("truncated gzip")
