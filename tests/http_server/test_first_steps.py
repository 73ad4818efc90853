"""A request that came whole begins in the callback that has received it, and goes on in a task if it has to wait."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from contextvars import ContextVar
from typing import Any

from tests.http_server.serving import Running, get, read_answer, run, running

from icefall.server.request import HttpRequest
from icefall.server.response import Response

Answer = Callable[[], Coroutine[Any, Any, str]]
seen: ContextVar[str] = ContextVar("seen", default="nothing")


@asynccontextmanager
async def answering(**answers: Answer) -> AsyncIterator[Callable[[str], Coroutine[Any, Any, str]]]:
    """A server that answers `/name` with what that function returns; yields a client with one connection."""

    async def respond(request: HttpRequest) -> Response:
        return Response(200, [], (await answers[request.path[1:]]()).encode())

    async with running() as server:
        server.listener.respond = respond
        reader, writer = await server.connect()

        async def ask(name: str) -> str:
            writer.write(get("/" + name))
            return (await read_answer(reader))[1].decode()

        yield ask


def _current() -> asyncio.Task[Any]:
    task = asyncio.current_task()
    assert task is not None
    return task


def test_requests_of_one_step_share_a_task_and_one_that_waits_keeps_it() -> None:
    tasks: list[asyncio.Task[Any]] = []

    async def short() -> str:
        tasks.append(_current())
        return "short"

    async def long() -> str:
        tasks.append(_current())
        await asyncio.sleep(0.01)
        tasks.append(_current())
        return "long"

    async def scenario() -> None:
        async with answering(short=short, long=long) as ask:
            for name in ("short", "short", "short", "long", "short"):  # the first one waits for its connection
                assert await ask(name) == name
        first, second, third, third_later, fourth = tasks[1:]
        assert first is second is third is third_later
        assert fourth is not third

    run(scenario())


def test_what_a_request_sets_in_its_context_stays_there() -> None:
    async def sets() -> str:
        before = seen.get()
        seen.set("set")
        await asyncio.sleep(0.01)
        return f"{before}, {seen.get()}"

    async def looks() -> str:
        before = seen.get()
        seen.set("looked")
        return before

    async def scenario() -> None:
        async with answering(sets=sets, looks=looks) as ask:
            assert [await ask(name) for name in ("looks", "sets", "looks")] == ["nothing", "nothing, set", "nothing"]

    run(scenario())


def test_time_limits_that_begin_in_the_first_step_hold() -> None:
    """A limit that is over at once ends the wait before the task has even taken the work over."""

    def limited(limit_s: float) -> Answer:
        async def answer() -> str:
            try:
                async with asyncio.timeout(limit_s):
                    await asyncio.Event().wait()
            except TimeoutError:
                return f"late, {_current().cancelling()}"
            return "in time"

        return answer

    async def cancelled_at_once() -> str:
        _current().cancel()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            _current().uncancel()
            return f"cancelled, {_current().cancelling()}"
        return "not cancelled"

    async def scenario() -> None:
        async with answering(soon=limited(0.01), now=limited(0), cancelled=cancelled_at_once) as ask:
            assert [await ask(name) for name in ("soon", "now", "cancelled")] == ["late, 0", "late, 0", "cancelled, 0"]

    run(scenario())


def test_a_bug_in_the_first_step_ends_the_connection_and_is_reported() -> None:
    async def scenario() -> None:
        async with running() as server:
            await _send_bug(server)
            assert server.reported == ["GET /bug: a header with a line break"]
            reader, writer = await server.connect()
            writer.write(get("/echo"))
            assert await read_answer(reader) == (200, b"GET /echo 0")

    async def _send_bug(server: Running) -> None:
        reader, writer = await server.connect()
        writer.write(get("/bug"))
        assert await reader.read() == b""

    run(scenario())
