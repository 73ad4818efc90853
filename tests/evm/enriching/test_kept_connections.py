"""Connections that posts reuse: for the same caller, origin and addresses alone, and for a moment only."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp.web import Request, Response, StreamResponse
from tests.evm.enriching.web import Names, Web, certified

from icefall.evm.enriching.guarded_fetcher import FetchFailed, FetchLimits, GuardedFetcher
from icefall.evm.enriching.kept_connections import IDLE_S, KeptConnections

LOOPBACK = ["127.0.0.0/8"]
POSTS = FetchLimits(total_s=10.0, at_once=64)


def scene(work: Callable[..., Awaitable[None]], **options: Any) -> None:
    """`work` with a web server and a fetcher that may reach it."""

    async def run() -> None:
        async with Web() as web:
            guard = GuardedFetcher(allow=LOOPBACK, limits=POSTS, **options)
            try:
                await work(web, guard)
            finally:
                await guard.close()

    asyncio.run(run())


def noting_ports(web: Web, path: str, answer: Callable[[Request], Awaitable[StreamResponse]]) -> list[int]:
    """Serve a page; the client's ports of the requests."""
    ports: list[int] = []

    async def page(request: Request) -> StreamResponse:
        assert request.transport is not None
        ports.append(request.transport.get_extra_info("peername")[1])
        await request.read()
        return await answer(request)

    web.pages[path] = page
    return ports


async def taken(_: Request) -> StreamResponse:
    return Response(status=204)


def test_a_connection_is_reused_for_one_caller_origin_and_set_of_addresses() -> None:
    async def work(web: Web, guard: GuardedFetcher) -> None:
        ports = noting_ports(web, "/hook", taken)
        named = f"http://a.example:{web.port}/hook"
        for url, caller in (
            (f"{web.url}/hook", "one"),
            (f"{web.url}/hook", "one"),  # the same connection
            (f"{web.url}/hook?x", "one"),  # of the same origin
            (f"{web.url}/hook", "two"),
            (named, "one"),
            (named, "one"),  # the same addresses in another order
            (named, "one"),  # other addresses
        ):
            assert (await guard.post(url, b"{}", {}, caller)).status == 204
        first, second, named_port, moved = ports[0], ports[3], ports[4], ports[6]
        assert ports == [first, first, first, second, named_port, named_port, moved]
        assert len({first, second, named_port, moved}) == 4

    addresses = [["127.0.0.1", "127.0.0.3"], ["127.0.0.3", "127.0.0.1"], ["127.0.0.1"]]
    scene(work, lookup=Names(a_example=addresses))


def test_tls_is_agreed_on_once(tmp_path: Path) -> None:
    server, client = certified(tmp_path, "a.example")

    async def run() -> None:
        async with Web(tls=server) as web:
            ports = noting_ports(web, "/hook", taken)
            guard = GuardedFetcher(
                allow=LOOPBACK, lookup=Names(a_example=[["127.0.0.1"]], b_example=[["127.0.0.1"]]), tls=client
            )
            for _ in range(3):
                await guard.post(f"https://a.example:{web.port}/hook", b"{}", {})
            assert ports == ports[:1] * 3
            with pytest.raises(FetchFailed, match="certificate"):
                await guard.post(f"https://b.example:{web.port}/hook", b"{}", {})
            await guard.close()

    asyncio.run(run())


async def posted_to_raw_server(answers: list[list[bytes]], count: int) -> tuple[list[int | str], list[int]]:
    """Post so often to a server that answers what is listed for each connection, and closes it where nothing is. What
    came of the posts, and how many requests each connection had."""
    requests: list[int] = []

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        number = len(requests)
        requests.append(0)
        try:
            while True:
                await reader.readuntil(b"\r\n\r\n{}")
                requests[number] += 1
                if requests[number] > len(answers[number]):
                    return
                writer.write(answers[number][requests[number] - 1])
        except asyncio.IncompleteReadError:
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    guard = GuardedFetcher(allow=LOOPBACK, limits=POSTS)
    results: list[int | str] = []
    for _ in range(count):
        try:
            url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
            results.append((await guard.post(url, b"{}", {})).status)
        except FetchFailed as error:
            results.append(str(error).split(": ")[-1])
    await guard.close()
    server.close()
    return results, requests


TAKEN = b"HTTP/1.1 204 No Content\r\n\r\n"


@pytest.mark.parametrize(
    ("answers", "count", "results", "requests"),
    [
        ([[TAKEN], [TAKEN]], 2, [204, 204], [2, 1]),
        ([[TAKEN], []], 2, [204, "ServerDisconnectedError"], [2, 1]),
        ([[], [TAKEN]], 2, ["ServerDisconnectedError", 204], [1, 1]),
        ([[TAKEN, b"HTTP/1.1 500 No\r\ncontent-length: 0\r\n\r\n", TAKEN]], 3, [204, 500, 204], [3]),
        ([[TAKEN.replace(b"\r\n\r\n", b"\r\nconnection: close\r\n\r\n")], [TAKEN]], 2, [204, 204], [1, 1]),
        ([[TAKEN.replace(b"1.1", b"1.0")], [TAKEN]], 2, [204, 204], [1, 1]),
        ([[TAKEN.replace(b"\r\n\r\n", b"\r\nkeep-alive: timeout=3, max=9\r\n\r\n")], [TAKEN]], 2, [204, 204], [1, 1]),
        ([[TAKEN.replace(b"\r\n\r\n", b"\r\nKeep-Alive: timeout=5\r\n\r\n"), TAKEN]], 2, [204, 204], [2]),
        ([[b"HTTP/1.1 200 OK\r\ncontent-length: 900000\r\n\r\n" + b"x" * 900000], [TAKEN]], 2, [200, 204], [1, 1]),
        ([[b"HTTP/1.1 200 OK\r\ncontent-length: 8000\r\n\r\n" + b"x" * 8000, TAKEN]], 2, [200, 204], [2]),
        ([[b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nx"], [TAKEN]], 2, [200, 204], [1, 1]),
        ([[b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", TAKEN]], 2, [200, 204], [2]),
        ([[b"HTTP/1.1 100 Continue\r\n\r\n" + TAKEN, TAKEN]], 2, [204, 204], [2]),
        ([[TAKEN + TAKEN], [TAKEN]], 2, [204, 204], [1, 1]),
    ],
    ids=[
        "closed when it is reused: sent once more over a new one",
        "and only once more",
        "a new one that is closed is not tried again",
        "an answer that is no success",
        "connection: close",
        "HTTP/1.0",
        "it closes before we would",
        "it closes after we would",
        "a long answer",
        "a short answer",
        "the rest does not come",
        "chunks",
        "an interim answer",
        "more than an answer",
    ],
)
def test_servers(answers: list[list[bytes]], count: int, results: list[int | str], requests: list[int]) -> None:
    assert asyncio.run(posted_to_raw_server(answers, count)) == (results, requests)


# -- how many, and how long ------------------------------------------------------------------------------------------


class Session:
    """Stands for the session of a receiver."""

    def __init__(self) -> None:
        self.is_open = True

    async def close(self) -> None:
        self.is_open = False


class Opened:
    def __init__(self, kept_max: int) -> None:
        self.sessions: list[Session] = []
        self.now = 0.0
        self.kept = KeptConnections(self._open, kept_max, lambda: self.now)  # type: ignore[arg-type]

    def _open(self, _addresses: object, _idle_s: float) -> Session:
        self.sessions.append(Session())
        return self.sessions[-1]

    async def are_open(self) -> list[bool]:
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        return [one.is_open for one in self.sessions]


def test_idle_connections_are_bounded_and_the_longest_idle_ones_go_first() -> None:
    async def run() -> None:
        opened = Opened(kept_max=3)
        for name in ("a", "b", "c", "a", "d"):
            receiver = opened.kept.take("", name, ["1.1.1.1"])
            opened.kept.give_back(receiver)
        assert await opened.are_open() == [True, False, True, True]
        three = [opened.kept.take("", "a", ["1.1.1.1"]) for _ in range(3)]  # of one receiver at a time
        assert await opened.are_open() == [True, False, False, False]
        other = opened.kept.take("", "e", ["1.1.1.1"])  # more than may be kept are in use
        assert await opened.are_open() == [True, False, False, False, True]
        opened.kept.give_back(other)
        assert await opened.are_open() == [True, False, False, False, False]
        for one in three:
            opened.kept.give_back(one)
        assert await opened.are_open() == [True, False, False, False, False]
        await opened.kept.close()
        assert not any(await opened.are_open())

    asyncio.run(run())


def test_what_is_idle_for_too_long_is_closed() -> None:
    async def run() -> None:
        opened = Opened(kept_max=9)
        opened.kept.give_back(opened.kept.take("", "a", ["1.1.1.1"]))
        busy = opened.kept.take("", "b", ["1.1.1.1"])
        opened.now += IDLE_S
        opened.kept.give_back(opened.kept.take("", "c", ["1.1.1.1"]))
        assert await opened.are_open() == [False, True, True]
        opened.kept.give_back(busy)
        await opened.kept.close()

    asyncio.run(run())
