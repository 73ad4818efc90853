"""The app as RSGI, granian's native and fastest interface."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

from granian._granian import RSGIProtocolClosed, RSGIProtocolError

from icefall.api.app import App, cut_off, too_large


class RsgiRequest:
    __slots__ = ("_protocol", "_scope", "header", "host", "method", "path")

    def __init__(self, scope: Any, protocol: Any) -> None:
        self._scope = scope
        self._protocol = protocol
        headers = scope.headers
        self.header = headers.get
        host = scope.authority or headers.get("host")  # an absolute target has an authority
        if host is None:
            host = "?" if "host" in headers else ""  # a Host that is not text must not count as absent
        self.host: str = host
        self.method: str = scope.method
        self.path: str = scope.path

    @property
    def query(self) -> str:
        return str(self._scope.query_string)

    @property
    def peer(self) -> str:
        """The address of the connection, without its port."""
        return str(self._scope.client).rpartition(":")[0]

    def headers(self, name: str) -> list[str]:
        return list(self._scope.headers.get_all(name))

    async def body(self, limit: int) -> bytes:
        length = self.header("content-length")
        if length is not None:  # the server has checked that it is a number and enforces it
            if int(length) > limit:
                raise too_large()
            try:
                whole: bytes = await self._protocol()
            except (RSGIProtocolClosed, RSGIProtocolError) as error:
                raise cut_off() from error
            return whole
        return await self._in_chunks(limit)

    async def _in_chunks(self, limit: int) -> bytes:
        """Granian's iterator yields an empty piece for the end, and one for a failure, after which comes the end. A
        second empty piece therefore means that the body is incomplete (or has trailers, which no client of ours sends).
        """
        pieces: list[bytes] = []
        size = 0
        ended = False
        async for piece in self._protocol:
            if ended:
                raise cut_off()
            ended = not piece
            size += len(piece)
            if size > limit:
                raise too_large()
            pieces.append(piece)
        if not ended:
            raise cut_off()
        return b"".join(pieces)


class RsgiApp:
    def __init__(self, app: App) -> None:
        self._respond = app.respond

    async def __rsgi__(self, scope: Any, protocol: Any) -> None:
        if scope.proto != "http":
            protocol.close(404)
            return
        response = await self._respond(RsgiRequest(scope, protocol))
        if response.stream is None or scope.method == "HEAD":
            protocol.response_bytes(response.status, response.headers, response.body)
            return
        transport = protocol.response_stream(response.status, response.headers)
        sending = asyncio.ensure_future(_send_all(transport, response.stream()))
        gone = asyncio.ensure_future(protocol.client_disconnect())
        try:
            await asyncio.wait((sending, gone), return_when=asyncio.FIRST_COMPLETED)
        finally:
            sending.cancel()
            gone.cancel()
            await asyncio.gather(sending, gone, return_exceptions=True)


async def _send_all(transport: Any, pieces: AsyncGenerator[bytes, None]) -> None:
    try:
        async for piece in pieces:
            await transport.send_bytes(piece)
    except (RSGIProtocolClosed, RSGIProtocolError):  # the client is gone
        pass
    finally:
        await pieces.aclose()
