"""The app as ASGI: for tests in process, and for other servers."""

from collections.abc import Awaitable, Callable
from contextlib import aclosing
from typing import Any

from icefall.api.http.app import App
from icefall.server.request import cut_off, too_large

Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]


class AsgiRequest:
    def __init__(self, scope: dict[str, Any], receive: Receive) -> None:
        self.method: str = scope["method"]
        self.path: str = scope["path"]
        self.query: str = scope.get("query_string", b"").decode("latin-1")
        self.peer: str = (scope.get("client") or ("",))[0]
        self._headers: dict[str, list[str]] = {}
        for name, value in scope["headers"]:
            self._headers.setdefault(name.decode("latin-1").lower(), []).append(value.decode("latin-1"))
        self.host = self.header("host") or ""
        self._receive = receive

    def header(self, name: str) -> str | None:
        return self._headers.get(name, [None])[0]

    def headers(self, name: str) -> list[str]:
        return self._headers.get(name, [])

    def body_now(self, _limit: int) -> bytes | None:
        return None

    async def body(self, limit: int) -> bytes:
        pieces: list[bytes] = []
        size, more = 0, True
        while more:
            message = await self._receive()
            if message["type"] != "http.request":  # the client is gone
                raise cut_off()
            piece = message.get("body", b"")
            more = message.get("more_body", False)
            size += len(piece)
            if size > limit:
                raise too_large(limit)
            pieces.append(piece)
        return b"".join(pieces)


class AsgiApp:
    def __init__(self, app: App) -> None:
        self._app = app

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        response = await self._app.respond(AsgiRequest(scope, receive))
        headers = [(name.encode(), value.encode("latin-1", "replace")) for name, value in response.headers]
        body = response.body
        length = len(body) if isinstance(body, bytes) else response.length
        if length is not None:
            headers.append((b"content-length", str(length).encode()))
        await send({"type": "http.response.start", "status": response.status, "headers": headers})
        if isinstance(body, bytes):
            await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else body})
            return
        async with aclosing(body):
            if scope["method"] != "HEAD":
                async for piece in body:
                    await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": b""})
