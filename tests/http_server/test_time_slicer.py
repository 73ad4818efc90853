"""A turn of the event loop is short however many requests are in progress, and health waits for a few turns only."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from itertools import pairwise

import pytest
from tests.http_server.serving import Running, get, read_answer, run, running

from icefall.server import listener as listener_module
from icefall.server.request import HttpRequest
from icefall.server.response import Response
from icefall.server.time_slicer import SLICE_S, TimeSlicer

STEP_S = SLICE_S / 2
STEPS_PER_ITERATION = 4  # two that fit, and one that begins whatever the clock says; one of the next turn
REQUESTS, STEPS = 100, 50


class SlowSteps:
    """By a clock of its own, in which only steps of requests take time."""

    def __init__(self, server: Running) -> None:
        self.now = 0.0
        self.done = 0
        self.most = 0  # requests between their first and last step
        self._app = server.app
        server.app.on_step = self._step
        server.listener._slicer._now = lambda: self.now

    def _step(self) -> None:
        self.now += STEP_S
        self.done += 1
        self.most = max(self.most, self._app.stepping)


async def _ask(server: Running) -> list[asyncio.StreamReader]:
    readers = []
    for _ in range(REQUESTS):
        reader, writer = await server.connect()
        writer.write(get(f"/steps/{STEPS}"))
        readers.append(reader)
    return readers


def test_no_turn_is_long_however_many_requests_are_in_progress() -> None:
    async def scenario() -> None:
        async with running() as server:
            slow, longest = SlowSteps(server), [0]

            async def count() -> None:
                while True:
                    before = slow.done
                    await asyncio.sleep(0)
                    longest[0] = max(longest[0], slow.done - before)

            counting = asyncio.ensure_future(count())
            for reader in await _ask(server):
                assert (await read_answer(reader))[0] == 200
            counting.cancel()
            assert slow.done == REQUESTS * STEPS
            assert longest[0] <= STEPS_PER_ITERATION

    run(scenario())


def test_an_urgent_request_is_answered_between_the_steps_of_others() -> None:
    async def scenario() -> None:
        async with running() as server:
            slow = SlowSteps(server)
            readers = await _ask(server)
            await server.until(lambda: slow.done > 0)
            reader, writer = await server.connect()
            before = slow.done
            writer.write(get("/urgent"))
            assert (await read_answer(reader))[0] == 200
            assert slow.done - before < STEPS, "the work of one request"
            assert slow.done < REQUESTS * STEPS
            for reader in readers:
                assert (await read_answer(reader))[0] == 200

    run(scenario())


def test_a_flood_of_urgent_requests_is_no_long_turn_either() -> None:
    async def scenario() -> None:
        async with running() as server:
            clients = [await server.connect() for _ in range(REQUESTS)]
            begun = [0]
            for _, writer in clients:
                writer.write(get("/urgent"))
            async with asyncio.timeout(60):
                while begun[-1] < REQUESTS:
                    await asyncio.sleep(0)
                    begun.append(len(server.app.begun))
            at_once = max(later - sooner for sooner, later in pairwise(begun))
            assert at_once <= listener_module._URGENT_PER_ITERATION + listener_module._STARTS_PER_ITERATION
            for reader, _ in clients:
                assert (await read_answer(reader))[0] == 200

    run(scenario())


def test_urgent_requests_are_marked_and_others_are_not() -> None:
    """Nor are those that come behind an urgent one on the same connection."""
    mark: ContextVar[bool] = ContextVar("mark", default=False)
    marked: list[tuple[str, bool]] = []

    @contextmanager
    def urgently() -> Iterator[None]:
        before = mark.set(True)
        yield
        mark.reset(before)

    async def scenario() -> None:
        async with running(urgently) as server:
            respond = server.app.respond

            async def noted(request: HttpRequest) -> Response:
                response = await respond(request)
                marked.append((request.path, mark.get()))
                return response

            server.listener.respond = noted
            paths = ["/urgent", "/a", "/urgent", "/urgent", "/b"]
            await server.exchange(b"".join(get(path) for path in paths))
            assert marked == [(path, path == "/urgent") for path in paths]

    run(scenario())


@pytest.mark.parametrize(
    "body", [b"Content-Length: 2000\r\n\r\n" + b"x" * 2000, b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"]
)
def test_what_may_be_many_calls_is_not_urgent(body: bytes) -> None:
    async def scenario() -> None:
        async with running() as server:
            slow = SlowSteps(server)
            await _ask(server)
            await server.until(lambda: slow.done > 0)
            assert (await server.exchange(b"POST /urgent HTTP/1.1\r\nHost: a\r\n" + body)).startswith(b"HTTP/1.1 200")
            assert server.app.begun.count(f"/steps/{STEPS}") == REQUESTS, "the others had come before"

    run(scenario())


def test_a_number_of_requests_that_have_more_to_do_is_not_exceeded(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        monkeypatch.setattr(listener_module, "UNFINISHED_MAX", 5)
        async with running() as server:
            slow = SlowSteps(server)
            for reader in await _ask(server):
                assert (await read_answer(reader))[0] == 200
            assert slow.most <= 5 + listener_module._STARTS_PER_ITERATION

    run(scenario())


def test_connections_whose_time_is_over_are_closed_in_portions() -> None:
    async def scenario() -> None:
        async with running() as server:
            count = 200
            for _ in range(count):
                await server.connect()
            await server.until(lambda: len(server.listener._connections) == count)
            for connection in server.listener._connections:
                connection.deadline = 0.0
            left = {count}
            async with asyncio.timeout(60):
                while server.listener._connections:
                    await asyncio.sleep(0)
                    left.add(len(server.listener._connections))
            at_once = max(more - fewer for fewer, more in pairwise(sorted(left)))
            assert at_once <= listener_module._CLOSES_PER_ITERATION

    run(scenario())


class Planned:
    """Turns that begin when the test says so, on a clock that stands in the last moment of the turn."""

    def __init__(self) -> None:
        self.plans = 0
        self.slicer = TimeSlicer(self._plan, lambda: 0.0)
        self.slicer._until = 0.0
        self.slicer._is_first = False

    def _plan(self) -> None:
        self.plans += 1


def _in_turns(test: Callable[[Planned], Awaitable[None]]) -> None:
    async def scenario() -> None:
        await test(Planned())

    run(scenario())


def test_a_step_waits_for_its_turn() -> None:
    async def test(planned: Planned) -> None:
        async def work() -> str:
            await asyncio.sleep(0)
            return "done"

        async def request() -> str:
            return await planned.slicer.run(work())

        task = asyncio.ensure_future(request())
        await asyncio.sleep(0)
        assert (planned.slicer.waiting, planned.plans) == (1, 1)
        planned.slicer.begin_slice()
        assert await task == "done"

    _in_turns(test)


def test_no_step_is_left_waiting() -> None:
    """Many requests that wait for the same event go on after it, without any other request."""

    async def test(planned: Planned) -> None:
        released = asyncio.Event()
        count = 40

        async def request() -> None:
            await planned.slicer.run(released.wait())

        planned.slicer.begin_slice()
        tasks = [asyncio.ensure_future(request()) for _ in range(count)]
        await asyncio.sleep(0)
        planned.slicer._until = 0.0
        planned.slicer._is_first = False
        released.set()
        done = 0
        for _ in range(count):
            await asyncio.sleep(0)
            if planned.plans > done:
                done = planned.plans
                planned.slicer.begin_slice()
        assert all(task.done() for task in tasks)

    _in_turns(test)


def test_an_error_passes_through() -> None:
    async def test(planned: Planned) -> None:
        planned.slicer.begin_slice()
        failing: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        async def work() -> None:
            with pytest.raises(ValueError, match="of what it awaited"):
                await failing
            raise KeyError("its own")

        async def request() -> None:
            await planned.slicer.run(work())

        task = asyncio.ensure_future(request())
        await asyncio.sleep(0)
        failing.set_exception(ValueError("of what it awaited"))
        with pytest.raises(KeyError, match="its own"):
            await task

    _in_turns(test)


@pytest.mark.parametrize("paused", [True, False], ids=["while it waits for a turn", "while it awaits something"])
def test_a_cancelled_request_ends(paused: bool) -> None:
    async def test(planned: Planned) -> None:
        seen: list[str] = []

        async def work() -> None:
            seen.append("began")
            try:
                if paused:
                    planned.slicer._until = 0.0
                    await asyncio.sleep(0)
                else:
                    await asyncio.Event().wait()
            except asyncio.CancelledError:
                seen.append("cancelled")
                raise

        async def request() -> None:
            await planned.slicer.run(work())

        planned.slicer.begin_slice()
        task = asyncio.ensure_future(request())
        await asyncio.sleep(0)
        assert planned.slicer.waiting == paused
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        assert seen == ["began", "cancelled"]
        planned.slicer.begin_slice()
        assert planned.slicer.waiting == 0

    _in_turns(test)
