"""Calls from a worker to the engine: many at once, errors, an engine that stops and comes back."""

import asyncio
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.waiting import LIMIT_S

from icefall.db.disk import DiskLow
from icefall.errors import BadRequest, CallFailed, IcefallError, InternalError, NotFound, StartRefused, Unavailable
from icefall.ipc import socket as link
from icefall.ipc.socket import FRAME_MAX, SocketClient, SocketServer, socket_path


class Calls:
    """The calls that the engine received, and how many at once."""

    def __init__(self) -> None:
        self.now = 0
        self.most = 0

    def begin(self) -> Callable[[], None]:
        self.now += 1
        self.most = max(self.most, self.now)

        def end() -> None:
            self.now -= 1

        return end


async def double(number: int) -> int:
    await asyncio.sleep(0.001 * (number % 7))
    return 2 * number


async def forever() -> None:
    await asyncio.Event().wait()


def fail(kind: str) -> None:
    kinds = {one.__name__: one for one in (CallFailed, BadRequest, NotFound, Unavailable, DiskLow)}
    raise kinds[kind](f"{kind} from the engine")


def bug() -> None:
    raise ZeroDivisionError("by zero")


COMMANDS: dict[str, Callable[..., Any]] = {
    "double": double,
    "forever": forever,
    "fail": fail,
    "bug": bug,
    "echo": lambda **given: given,
    "odd": lambda: {"a": object()},
    "huge": lambda: "x" * (FRAME_MAX + 1),
}


@asynccontextmanager
async def engine(path: Path, calls: Calls | None = None) -> AsyncIterator[SocketServer]:
    server = SocketServer(path, COMMANDS, (calls or Calls()).begin)
    await server.start()
    yield server
    await server.stop()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run" / "engine.sock"


def test_a_thousand_calls_share_one_connection(path: Path) -> None:
    calls = Calls()

    async def scenario() -> None:
        async with engine(path, calls) as server:
            client = SocketClient(path, "the engine")
            answers = await asyncio.gather(*(client.call("double", number=n) for n in range(1000)))
            assert answers == [2 * n for n in range(1000)]
            assert len(server._writers) == 1
            assert calls.most > 10  # they ran side by side
            assert calls.now == 0
            await client.close()

    asyncio.run(scenario())


def test_values_cross_unchanged(path: Path) -> None:
    given: dict[str, Any] = {
        "text": "é\0",
        "none": None,
        "list": [1, 2.5, True],
        "bytes": b"\xff",
        "map": {"a": {"b": []}},
    }

    async def scenario() -> None:
        async with engine(path):
            client = SocketClient(path, "the engine")
            assert await client.call("echo", **given) == given
            await client.close()

    asyncio.run(scenario())


@pytest.mark.parametrize("kind", [CallFailed, BadRequest, NotFound, Unavailable, DiskLow])
def test_errors_are_raised_in_the_worker(path: Path, kind: type[Exception]) -> None:
    async def scenario() -> None:
        async with engine(path):
            client = SocketClient(path, "the engine")
            with pytest.raises(IcefallError) as caught:
                await client.call("fail", kind=kind.__name__)
            assert type(caught.value) is (Unavailable if kind is DiskLow else kind)  # what it is to callers
            assert str(caught.value) == f"{kind.__name__} from the engine"
            await client.close()

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("name", "text"),
    [("bug", "ZeroDivisionError: by zero"), ("nothing", "KeyError"), ("odd", "TypeError"), ("double", "TypeError")],
)
def test_bugs_become_internal_errors(path: Path, name: str, text: str) -> None:
    async def scenario() -> None:
        async with engine(path):
            client = SocketClient(path, "the engine")
            others = asyncio.gather(*(client.call("double", number=n) for n in range(20)))
            with pytest.raises(InternalError, match=text):
                await client.call(name)
            assert await others == [2 * n for n in range(20)]
            await client.close()

    asyncio.run(scenario())


def test_a_call_or_an_answer_that_is_too_long_is_refused_and_the_connection_stays(path: Path) -> None:
    async def scenario() -> None:
        async with engine(path) as server:
            client = SocketClient(path, "the engine")
            await client.call("echo")
            with pytest.raises(BadRequest, match=f"may be at most {FRAME_MAX} bytes long"):
                await client.call("echo", text="x" * FRAME_MAX)
            with pytest.raises(BadRequest, match=f"may be at most {FRAME_MAX} bytes long"):
                await client.call("huge")
            assert await client.call("double", number=4) == 8
            assert len(server._writers) == 1
            await client.close()

    asyncio.run(scenario())


# -- the engine goes ---------------------------------------------------------------------------------------------


def test_without_an_engine_a_call_fails_at_once(path: Path) -> None:
    async def scenario() -> None:
        client = SocketClient(path, "the engine")
        async with asyncio.timeout(link.CALL_LIMIT_S):  # a call that waited for an answer would take that long
            for _ in range(3):
                with pytest.raises(Unavailable, match="the engine cannot be reached"):
                    await client.call("double", number=1)

    asyncio.run(scenario())


def test_running_calls_fail_at_once_when_the_engine_stops(path: Path) -> None:
    async def scenario() -> None:
        async with engine(path) as server:
            client = SocketClient(path, "the engine")
            waiting = [asyncio.create_task(client.call("forever")) for _ in range(10)]
            while len(server._tasks) < 10:
                await asyncio.sleep(0)
            for writer in list(server._writers):
                writer.transport.abort()
            for outcome in await asyncio.gather(*waiting, return_exceptions=True):
                assert isinstance(outcome, Unavailable)
                assert "in time" not in str(outcome)
            for task in server._tasks:
                task.cancel()

    asyncio.run(scenario())


def test_the_link_comes_back_with_the_engine(path: Path) -> None:
    async def scenario() -> None:
        client = SocketClient(path, "the engine")
        for number in range(3):
            async with engine(path):
                assert await client.call("double", number=number) == 2 * number
            with pytest.raises(Unavailable):
                await client.call("double", number=number)
            assert not path.exists()

    asyncio.run(scenario())


def test_a_socket_left_by_a_killed_engine_is_replaced(path: Path) -> None:
    path.parent.mkdir()
    path.touch()

    async def scenario() -> None:
        client = SocketClient(path, "the engine")
        with pytest.raises(Unavailable):
            await client.call("echo")
        async with engine(path):
            assert await client.call("echo") == {}
            await client.close()

    asyncio.run(scenario())


def test_a_call_that_is_never_answered_ends_at_its_limit(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        async with engine(path) as server:
            client = SocketClient(path, "the engine")
            with monkeypatch.context() as patch:
                patch.setattr(link, "CALL_LIMIT_S", 0.1)
                with pytest.raises(Unavailable, match="the engine did not answer in time"):
                    await client.call("forever")
            assert await client.call("double", number=1) == 2
            assert client._waiting == {}
            for task in server._tasks:
                task.cancel()
            await client.close()

    asyncio.run(scenario())


def test_stopping_lets_running_calls_finish(path: Path) -> None:
    async def scenario() -> None:
        async with engine(path) as server:
            client = SocketClient(path, "the engine")
            await client.call("echo")
            late = asyncio.create_task(client.call("double", number=6))
            while not server._tasks:
                await asyncio.sleep(0)
            await server.stop()
            assert await late == 12

    asyncio.run(scenario())


# -- other people's bytes ----------------------------------------------------------------------------------------


def framed(value: Any) -> bytes:
    body = msgspec.msgpack.encode(value)
    return len(body).to_bytes(4, "big") + body


@pytest.mark.parametrize(
    "garbage",
    [
        b"GET / HTTP/1.1\r\n\r\n",  # read as a length it is far too long
        (FRAME_MAX + 1).to_bytes(4, "big"),
        b"\0\0\0\x01\xc1",
        b"\0\0\0\x00",
        framed(7),
        framed([1, 2]),
        framed({"a": 1, "b": 2, "c": 3, "d": 4}),
        framed(None),
        b"\0\0\0\xff" + b"cut short",
    ],
)
def test_garbage_ends_its_own_connection_and_no_other(path: Path, garbage: bytes) -> None:
    async def scenario() -> None:
        async with engine(path):
            client = SocketClient(path, "the engine")
            reader, writer = await asyncio.open_unix_connection(path)
            writer.write(garbage)
            writer.write_eof()
            async with asyncio.timeout(LIMIT_S):
                assert await reader.read() == b""
            writer.close()
            assert await client.call("double", number=21) == 42
            await client.close()

    asyncio.run(scenario())


def test_a_frame_that_is_no_call_gets_an_error(path: Path) -> None:
    async def scenario() -> None:
        async with engine(path):
            reader, writer = await asyncio.open_unix_connection(path)
            for call in ([1, "double", 5], [2, [], {}], [3, "echo", None]):
                writer.write(framed(call))
                size = int.from_bytes(await reader.readexactly(4), "big")
                number, passed, (kind, _) = msgspec.msgpack.decode(await reader.readexactly(size))
                assert (number, passed, kind) == (call[0], False, "InternalError")
            writer.close()

    asyncio.run(scenario())


def test_an_engine_that_answers_garbage_is_unavailable(path: Path) -> None:
    path.parent.mkdir()

    async def babble(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(10)
        writer.write(framed("what?"))
        writer.close()

    async def scenario() -> None:
        async with await asyncio.start_unix_server(babble, path):
            client = SocketClient(path, "the engine")
            with pytest.raises(Unavailable):
                await client.call("echo")

    asyncio.run(scenario())


# -- where the socket is -----------------------------------------------------------------------------------------


def test_the_socket_is_private(path: Path) -> None:
    async def scenario() -> None:
        async with engine(path):
            assert path.stat().st_mode & 0o777 == 0o600
            assert path.parent.stat().st_mode & 0o777 == 0o700

    asyncio.run(scenario())


def test_a_long_data_directory_has_its_socket_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    short, long, other = Path("/d"), Path("/" + "d" * 100), Path("/" + "e" * 100)
    assert socket_path(short) == Path("/d/run/engine.sock")
    assert len({socket_path(long), socket_path(other)}) == 2

    async def scenario() -> None:
        async with engine(socket_path(long)):
            client = SocketClient(socket_path(long), "the engine")
            assert await client.call("echo") == {}
            await client.close()

    with tempfile.TemporaryDirectory() as folder:  # pytest's own are too long themselves
        monkeypatch.setattr(tempfile, "tempdir", folder)
        assert socket_path(long).is_relative_to(folder)
        asyncio.run(scenario())
        assert list(Path(folder).iterdir()) == []  # nothing is left behind


def test_a_directory_of_another_user_is_refused(tmp_path: Path) -> None:
    (tmp_path / "theirs").mkdir()
    (tmp_path / "run").symlink_to(tmp_path / "theirs")

    async def scenario() -> None:
        with pytest.raises(StartRefused, match="belongs to another user"):
            await SocketServer(tmp_path / "run" / "engine.sock", COMMANDS, Calls().begin).start()

    asyncio.run(scenario())
