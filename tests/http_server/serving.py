"""A listener of its own for a test, with an app that does what the path says."""

import asyncio
import socket
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine
from contextlib import AbstractContextManager, asynccontextmanager, suppress
from typing import Any

import msgspec
import uvloop

from icefall.errors import IcefallError
from icefall.server.listener import BACKLOG, Listener
from icefall.server.owner import HttpLimits
from icefall.server.request import HttpRequest
from icefall.server.response import Response

LIMITS = HttpLimits(head_s=60, idle_s=60, write_s=60, connections_max=1000, held_max=64 << 20, body_max=1 << 20)
LIMIT_S = 60.0


class PathApp:
    """`/echo` answers its body, `/big/N` N bytes, `/wait` when `released` is set, `/stream` pieces until it is,
    `/steps/N` after N turns of the loop."""

    def __init__(self) -> None:
        self.released = asyncio.Event()
        self.begun: list[str] = []
        self.bodies: list[bytes] = []
        self.streams_ended = 0
        self.stepping = 0  # requests between their first and last turn
        self.on_step: Callable[[], None] = lambda: None

    async def respond(self, request: HttpRequest) -> Response:
        self.begun.append(request.path)
        try:
            body = await request.body(1 << 20)
        except IcefallError as error:
            return self.failure(error)
        self.bodies.append(body)
        if request.path.startswith("/big/"):
            return Response(200, [], b"x" * int(request.path.removeprefix("/big/")))
        if request.path.startswith("/steps/"):
            await self._steps(int(request.path.removeprefix("/steps/")))
        if request.path == "/wait":
            await self.released.wait()
        if request.path == "/stream":
            return Response(200, [("content-type", "text/plain")], self._pieces())
        if request.path == "/bug":
            return Response(200, [("x-bad", "a\r\nb")], b"")
        return Response(200, [], f"{request.method} {request.path} {len(body)}".encode())

    async def _steps(self, count: int) -> None:
        self.stepping += 1
        for _ in range(count):
            self.on_step()
            await asyncio.sleep(0)
        self.stepping -= 1

    async def _pieces(self) -> AsyncGenerator[bytes, None]:
        try:
            yield b"first"
            await self.released.wait()
            yield b"second"
        finally:
            self.streams_ended += 1

    def failure(self, error: IcefallError) -> Response:
        return Response(error.status, [("retry-after", "1")] if error.status == 503 else [], str(error).encode())


class Running:
    def __init__(self, app: PathApp, listener: Listener, address: tuple[str, int], stop: asyncio.Event) -> None:
        self.app = app
        self.listener = listener
        self.address = address
        self.stop = stop
        self.reported: list[str] = []
        self.clients: list[asyncio.StreamWriter] = []

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await asyncio.open_connection(*self.address)
        self.clients.append(writer)
        return reader, writer

    async def exchange(self, raw: bytes) -> bytes:
        """Sends it and the end of input; all that comes back."""
        reader, writer = await self.connect()
        writer.write(raw)
        writer.write_eof()
        return await asyncio.wait_for(reader.read(), LIMIT_S)

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(LIMIT_S):
            while not condition():
                await asyncio.sleep(0.01)


@asynccontextmanager
async def running(
    urgently: Callable[[], AbstractContextManager[None]] | None = None, **limits: float
) -> AsyncIterator[Running]:
    app = PathApp()
    failures: list[str] = []
    listener = Listener(
        app,
        msgspec.structs.replace(LIMITS, **limits),
        ("/urgent",),
        lambda what, bug: failures.append(f"{what}: {bug}"),
        urgently,
    )
    listening = socket.create_server(("127.0.0.1", 0), backlog=BACKLOG)
    stop = asyncio.Event()
    served = asyncio.ensure_future(listener.serve(listening, stop, 5))
    one = Running(app, listener, listening.getsockname(), stop)
    one.reported = failures
    try:
        yield one
    finally:
        for client in one.clients:
            client.close()
            with suppress(OSError):
                await client.wait_closed()
        app.released.set()
        stop.set()
        await served


def run(scenario: Coroutine[Any, Any, None]) -> None:
    uvloop.run(scenario)


def get(path: str, *fields: str) -> bytes:
    return "\r\n".join([f"GET {path} HTTP/1.1", "Host: a", *fields, "", ""]).encode()


async def read_answer(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    """Status and body of the next answer."""
    async with asyncio.timeout(LIMIT_S):
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        fields = dict(line.split(": ", 1) for line in head.split("\r\n")[1:] if line)
        return int(head.split(" ")[1]), await reader.readexactly(int(fields.get("content-length", "0")))
