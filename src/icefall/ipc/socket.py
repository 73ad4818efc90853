"""Calls from workers to another process, such as the engine: by name, over a local socket, many at a time.

A frame is a 4-byte length and a msgpack list: `[number, name, arguments]` one way, `[number, ok, value]` the other.
"""

import asyncio
import hashlib
import itertools
import os
import tempfile
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from icefall.errors import BadRequest, CallFailed, IcefallError, InternalError, NotFound, StartRefused, Unavailable

FRAME_MAX = 8 << 20
CALL_LIMIT_S = 30.0
_SOCKET_PATH_MAX = 100  # the kernel allows 107 bytes
_BROKEN = (asyncio.IncompleteReadError, ConnectionError, ValueError, TypeError, msgspec.DecodeError)  # the frames
_ERRORS = {kind.__name__: kind for kind in (BadRequest, CallFailed, InternalError, NotFound, Unavailable)}


def socket_path(data_dir: Path, file_name: str = "engine.sock") -> Path:
    """Inside the data directory where its path is short enough, else in a private temporary one."""
    path = data_dir / "run" / file_name
    if len(os.fsencode(path)) <= _SOCKET_PATH_MAX:
        return path
    name = hashlib.sha256(os.fsencode(data_dir)).hexdigest()[:16]
    return Path(tempfile.gettempdir()) / f"icefall-{os.getuid()}-{name}" / file_name


async def _receive(reader: asyncio.StreamReader) -> Any:
    size = int.from_bytes(await reader.readexactly(4), "big")
    if size > FRAME_MAX:
        raise ConnectionError(f"a frame of {size} bytes")
    return msgspec.msgpack.decode(await reader.readexactly(size))


def _frame(value: Any) -> bytes:
    body = msgspec.msgpack.encode(value)
    if len(body) > FRAME_MAX:
        raise BadRequest(f"a call and its answer may be at most {FRAME_MAX} bytes long, got {len(body)}")
    return len(body).to_bytes(4, "big") + body


class SocketServer:
    """The owner's side. `commands` may be plain or async; an IcefallError is raised again in the worker."""

    def __init__(
        self, path: Path, commands: Mapping[str, Callable[..., Any]], on_call: Callable[[], Callable[[], None]]
    ) -> None:
        self._path = path
        self._commands = commands
        self._on_call = on_call
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._writers: set[asyncio.StreamWriter] = set()

    async def start(self) -> None:
        folder = self._path.parent
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if folder.stat().st_uid != os.getuid() or folder.is_symlink():  # in /tmp another user may have created it
            raise StartRefused(f"{folder} belongs to another user: remove it, or use a shorter --data-dir")
        folder.chmod(0o700)
        self._path.unlink(missing_ok=True)  # the store lock proves that no other process listens
        self._server = await asyncio.start_unix_server(self._serve, str(self._path))
        self._path.chmod(0o600)

    async def stop(self) -> None:
        """Lets the running calls finish, then closes."""
        if self._server:
            self._server.close()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=5)
        for writer in self._writers:
            writer.close()
        self._path.unlink(missing_ok=True)
        with suppress(OSError):  # empty only if it was created for the socket
            self._path.parent.rmdir()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        try:
            while True:
                number, name, arguments = await _receive(reader)
                task = asyncio.create_task(self._answer(writer, number, name, arguments))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
        except _BROKEN:
            pass
        finally:
            self._writers.discard(writer)
            writer.close()

    async def _answer(self, writer: asyncio.StreamWriter, number: int, name: str, arguments: dict[str, Any]) -> None:
        ended = self._on_call()
        try:
            try:
                outcome = self._commands[name](**arguments)
                value = await outcome if isinstance(outcome, Awaitable) else outcome
                reply = _frame([number, True, value])
            except IcefallError as error:
                kind = next((one.__name__ for one in type(error).__mro__ if one.__name__ in _ERRORS), "InternalError")
                reply = _frame([number, False, [kind, str(error)]])
            except Exception as error:
                reply = _frame([number, False, ["InternalError", f"{type(error).__name__}: {error}"]])
            writer.write(reply)
            await writer.drain()
        except ConnectionError:
            pass
        finally:
            ended()


class SocketClient:
    """A worker's side. Connects at the first call and again when the connection is lost; calls have a time limit.

    `peer` is the other process, as errors name it.
    """

    def __init__(self, path: Path, peer: str) -> None:
        self._path = path
        self._peer = peer
        self._numbers = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[Any]] = {}  # of the present connection
        self._writer: asyncio.StreamWriter | None = None
        self._listener: asyncio.Task[None] | None = None
        self._connecting = asyncio.Lock()

    async def call(self, name: str, **arguments: Any) -> Any:
        try:
            async with asyncio.timeout(CALL_LIMIT_S):
                number = next(self._numbers)
                frame = _frame([number, name, arguments])
                writer, waiting = await self._connected()
                future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
                waiting[number] = future
                try:
                    writer.write(frame)
                    return await future
                finally:
                    waiting.pop(number, None)
        except TimeoutError:
            raise Unavailable(f"{self._peer} did not answer in time") from None
        except OSError:
            raise Unavailable(f"{self._peer} cannot be reached") from None

    async def close(self) -> None:
        if self._writer is not None and self._listener is not None:
            self._writer.close()
            await self._listener

    async def _connected(self) -> tuple[asyncio.StreamWriter, dict[int, asyncio.Future[Any]]]:
        async with self._connecting:
            if self._writer is None or self._writer.is_closing():
                reader, self._writer = await asyncio.open_unix_connection(str(self._path))
                self._waiting = {}
                self._listener = asyncio.create_task(self._listen(reader, self._writer, self._waiting))
            return self._writer, self._waiting

    async def _listen(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, waiting: dict[int, asyncio.Future[Any]]
    ) -> None:
        try:
            while True:
                number, passed, value = await _receive(reader)
                future = waiting.get(number)
                if future is None or future.done():
                    continue
                if passed:
                    future.set_result(value)
                else:
                    future.set_exception(_ERRORS.get(value[0], InternalError)(value[1]))
        except _BROKEN:
            pass
        finally:
            writer.close()
            for future in waiting.values():
                if not future.done():
                    future.set_exception(ConnectionResetError(f"the connection to {self._peer} was lost"))
