"""The app as granian's native RSGI: the shortest way from socket to answer."""

from typing import Any

from icefall.api.app import App, too_large


class RsgiRequest:
    __slots__ = ("_protocol", "_scope", "header", "host", "method", "path", "query")

    def __init__(self, scope: Any, protocol: Any) -> None:
        self._scope = scope
        self._protocol = protocol
        self.header = scope.headers.get
        # HTTP/2 and absolute targets have an authority; a Host that is no text must not pass for none
        self.host: str = scope.authority or scope.headers.get("host", "?" if "host" in scope.headers else "")
        self.method: str = scope.method
        self.path: str = scope.path
        self.query: str = scope.query_string

    async def body(self, limit: int) -> bytes:
        length = self.header("content-length")
        if length is not None:  # the server has checked that it is a number and will hold the client to it
            if int(length) > limit:
                raise too_large()
            return bytes(await self._protocol())
        pieces: list[bytes] = []
        size = 0
        async for piece in self._protocol:
            size += len(piece)
            if size > limit:
                raise too_large()
            pieces.append(piece)
        return b"".join(pieces)


class RsgiApp:
    def __init__(self, app: App) -> None:
        self._respond = app.respond

    async def __rsgi__(self, scope: Any, protocol: Any) -> None:
        if scope.proto != "http":
            protocol.close(404)
            return
        response = await self._respond(RsgiRequest(scope, protocol))
        protocol.response_bytes(response.status, response.headers, response.body)
