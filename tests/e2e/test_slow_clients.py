"""Clients that hold connections or do not read answers: others are served meanwhile, and those are closed."""

import select
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.server import Server, serving
from tests.waiting import LIMIT_S, until

FEW = "--http-max-connections=64"
LARGE = "/openapi.json"  # of the chain data interface: about 100 kB
LARGE_MIN = 64 << 10


@contextmanager
def connections(server: Server, count: int, sent: bytes = b"", listener: str = "node") -> Iterator[list[socket.socket]]:
    """Open connections that have sent these bytes and read nothing. Their kernels accept little more than nothing."""
    opened = []
    try:
        for _ in range(count):
            one = socket.socket()
            opened.append(one)
            one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            one.settimeout(LIMIT_S)
            one.connect(server.wire(listener).address)
            one.sendall(sent)
        yield opened
    finally:
        for one in opened:
            one.close()


def was_closed(connection: socket.socket) -> bool:
    """Reads what came before the end. A test that waits in vain fails with a timeout."""
    try:
        while connection.recv(1 << 20):
            pass
    except ConnectionError:
        pass
    return True


def was_reset(connection: socket.socket) -> bool:
    """Without reading: then the client would no longer be one that does not read."""
    waiting = select.poll()
    waiting.register(connection, 0)
    return bool(waiting.poll(0))


def test_more_of_them_than_places_do_not_block_a_listener(tmp_path: Path) -> None:
    settings = (FEW, "--http-read-header-timeout=1s", "--http-idle-timeout=1h", "--http-workers=1")
    with serving("node", tmp_path, *settings) as server:
        for sent in (b"", b"GET /ext/health HT"):
            with connections(server, 200, sent) as held:
                assert server.ask("GET", "/ext/health/liveness").status == 200
                assert server.call("/ext/health", "health.liveness")["result"]["healthy"]
                assert all(was_closed(one) for one in held[:64])


def test_a_silent_connection_is_closed_and_one_that_is_used_is_kept(tmp_path: Path) -> None:
    with (
        serving("node", tmp_path, "--http-read-header-timeout=500ms") as server,
        connections(server, 1) as silent,
        connections(server, 1, b"GET /ext/health/liveness HTTP/1.1\r\nHost: localhost\r\n\r\n") as used,
    ):
        assert b"200 OK" in used[0].recv(4096)
        assert was_closed(silent[0])
        with connections(server, 1) as another:
            assert was_closed(another[0])  # the used one has been idle for longer than that now
        used[0].sendall(b"GET /ext/health/liveness HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert b"200 OK" in used[0].recv(4096)


def test_answers_that_are_not_read_are_limited_and_closed(tmp_path: Path) -> None:
    request = f"GET {LARGE} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()
    settings = ("--http-max-buffered=1", "--http-write-timeout=3s", "--http-idle-timeout=3s", "--rate-limits=off")
    with serving("data", tmp_path, *settings, ready=False) as server:

        def large() -> int:
            reply = server.ask("GET", LARGE, listener="data")
            assert (reply.status == 200) == (len(reply.body) > LARGE_MIN)
            assert (reply.status == 503) == (reply.header("retry-after") == "1")
            return reply.status

        assert large() == 200
        with connections(server, 64, request * 80, "data") as stalled:  # more than kernels hold for a client
            until(lambda: large() == 503, "the limit")
            assert server.ask("GET", "/v1/health-check", listener="data").status == 200
            until(lambda: all(was_reset(one) for one in stalled), "the end of the stalled connections")
            until(lambda: large() == 200, "the end of the limit")


def test_a_slow_client_gets_all_of_a_large_answer(tmp_path: Path) -> None:
    request = f"GET {LARGE} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()
    with serving("data", tmp_path, ready=False) as server:
        whole = server.ask("GET", LARGE, listener="data")
        assert whole.header("content-length") == str(len(whole.body))
        assert server.ask("HEAD", LARGE, listener="data").header("content-length") == str(len(whole.body))
        with connections(server, 1, request * 3, "data") as slow:
            taken = b""
            while taken.count(whole.body) < 3:
                taken += slow[0].recv(3000)
        assert taken.count(b"HTTP/1.1 200 OK\r\n") == 3
