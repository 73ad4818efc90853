"""The load of the benchmarks: a server that answers is measured, one that does not is named instead of divided by."""

import os
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress

import pytest
from bench import load

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


@pytest.fixture
def silent() -> Iterator[str]:
    """The kernel accepts its connections, and nothing reads them."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/x"


@pytest.fixture
def answering() -> Iterator[str]:
    """Sends each answer in two pieces."""

    def serve(client: socket.socket) -> None:
        with client, suppress(OSError):  # closed by the client while it is answered
            while client.recv(1 << 16):
                client.sendall(ANSWER[:20])
                client.sendall(ANSWER[20:])

    def accept() -> None:
        while True:
            try:
                client, _ = listening.accept()
            except OSError:
                return
            threading.Thread(target=serve, args=(client,)).start()

    with socket.create_server(("127.0.0.1", 0)) as listening:
        accepting = threading.Thread(target=accept)
        accepting.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/x"
        listening.shutdown(socket.SHUT_RDWR)
        accepting.join()


def test_no_answer_is_said(silent: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(load, "_wrk", load._simple_client)
    monkeypatch.setattr(load, "SECONDS", 0.1)
    monkeypatch.setattr(load, "ANSWER_S", 0.1)
    with pytest.raises(RuntimeError, match="no answer came"):
        load.measure(silent, None, [os.getpid()])
    with pytest.raises(RuntimeError, match="no answer came"):
        load.paced(silent, 100.0, seconds=0.1)


def test_answers_are_counted_and_timed(answering: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(load, "_wrk", load._simple_client)
    monkeypatch.setattr(load, "SECONDS", 0.1)
    found = load.measure(answering, None, [os.getpid()])
    assert found.per_second > 0
    assert found.p99_ms > 0
    timed = load.paced(answering, 200.0, ["/a", "/b"], seconds=0.1)
    assert 0 < timed.p50_ms <= timed.p99_ms
