"""Puts load on a local server and measures its CPU: with wrk where it is installed, else with a simple client."""

import http.client
import os
import re
import select
import selectors
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from itertools import cycle
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple
from urllib.parse import urlsplit

from tests.server import Server

CONNECTIONS = 16
_WARM_UP_S = 0.5
WARM_UP = 30  # requests that are not measured
ANSWER_S = 30.0  # without any answer, a server is given up
SECONDS = float(os.environ.get("ICEFALL_BENCH_SECONDS", "4"))


_CHUNKED = re.compile(rb"transfer-encoding: chunked", re.IGNORECASE)
_LENGTH = re.compile(rb"content-length: (\d+)", re.IGNORECASE)


class LoadStats(NamedTuple):
    """`cpu_us`: server CPU per request, which other load on the machine disturbs least."""

    per_second: float
    cpu_us: float
    p99_ms: float


def descendants(pid: int) -> list[int]:
    found = [pid]
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in (task / "children").read_text().split():
            found += descendants(int(child))
    return found


def cpu_seconds(pids: list[int]) -> float:
    total = 0
    for pid in pids:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        total += int(fields[11]) + int(fields[12])
    return total / os.sysconf("SC_CLK_TCK")


def waited_s(pids: list[int]) -> float:
    """How long processes have been ready to run and had no core: other processes had them."""
    return sum(int(Path(f"/proc/{pid}/schedstat").read_text().split()[1]) for pid in pids) / 1e9


def worker_pids(server: Server) -> list[int]:
    """The processes that serve HTTP."""
    own = (server.process_info["pid"], server.process_info.get("enginePid"))
    return [pid for pid in descendants(server.process_info["pid"]) if pid not in own]


def measure(url: str, body: bytes | None, server_pids: list[int], targets: Sequence[str] = ()) -> LoadStats:
    """A warm-up, then a run: POST of a JSON body, or GET. `targets`: paths that are asked for in turn, instead of the
    one of the URL."""
    run = _wrk if shutil.which("wrk") else _simple_client
    return _measured(lambda seconds: run(url, body, seconds, targets), url, server_pids)


def measure_each(url: str, bodies: Iterator[bytes], server_pids: list[int]) -> LoadStats:
    """The same with another body in each request, none of which is sent twice."""
    requests = (_request(url, body) for body in bodies)
    return _measured(lambda seconds: _send(url, requests, seconds), url, server_pids)


def _measured(run: Callable[[float], tuple[int, float]], url: str, server_pids: list[int]) -> LoadStats:
    run(_WARM_UP_S)
    before, began = cpu_seconds(server_pids), time.monotonic()
    count, p99_ms = run(SECONDS)
    elapsed = time.monotonic() - began
    if not count:
        raise RuntimeError(f"{url}: no answer came in {elapsed:.1f} s")
    return LoadStats(count / elapsed, (cpu_seconds(server_pids) - before) / count * 1e6, p99_ms)


class Latency(NamedTuple):
    p50_ms: float
    p99_ms: float


def one_by_one(url: str, requests: int = 300) -> Latency:
    """Each request after the answer to the one before, on one connection."""
    parts, times_s = urlsplit(url), []
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port or 0)
    for number in range(requests + WARM_UP):
        began = time.perf_counter()
        connection.request("GET", url.removeprefix(f"http://{parts.netloc}"))
        answer = connection.getresponse()
        body = answer.read()
        if answer.status != 200:
            raise RuntimeError(f"{url}: {body[:300]!r}")
        if number >= WARM_UP:
            times_s.append(time.perf_counter() - began)
    connection.close()
    return _latency(times_s)


def paced(url: str, per_second: float, targets: Sequence[str] = (), seconds: float = SECONDS) -> Latency:
    """Requests at fixed times, whether or not those before are answered: the wait for a free connection counts.

    On `epoll` itself: with `selectors` the client took 90 us per request, and was what answers waited for at 10,000 per
    second."""
    requests = cycle(_requests(url, None, targets))
    idle = [socket.create_connection(_address(url)) for _ in range(CONNECTIONS)]
    by_number = {one.fileno(): one for one in idle}
    due_of, received = dict.fromkeys(by_number, 0.0), dict.fromkeys(by_number, b"")
    times_s: list[float] = []
    with select.epoll() as pool, ExitStack() as closing:
        for number, connection in by_number.items():
            closing.enter_context(connection)
            pool.register(number, select.EPOLLIN)
        began, sent, total = time.monotonic(), 0, round(per_second * seconds)
        while len(times_s) < total:
            while idle and sent < total and time.monotonic() >= began + sent / per_second:
                connection = idle.pop()
                due_of[connection.fileno()] = began + sent / per_second
                connection.sendall(next(requests))
                sent += 1
            due_s = began + sent / per_second - time.monotonic() if idle and sent < total else ANSWER_S
            answered = pool.poll(max(0.0, due_s))
            if not answered and due_s == ANSWER_S:
                raise RuntimeError(f"{url}: no answer came in {ANSWER_S:.0f} s")
            for number, _ in answered:
                received[number] += by_number[number].recv(1 << 20)
                if _is_complete(received[number]):
                    times_s.append(time.monotonic() - due_of[number])
                    received[number] = b""
                    idle.append(by_number[number])
    return _latency(times_s)


def _latency(times_s: list[float]) -> Latency:
    ordered = sorted(times_s)
    return Latency(ordered[len(ordered) // 2] * 1000, ordered[int(len(ordered) * 0.99)] * 1000)


def _address(url: str) -> tuple[str, int]:
    parts = urlsplit(url)
    return parts.hostname or "", parts.port or 0


def _request(url: str, body: bytes | None) -> bytes:
    parts = urlsplit(url)
    target = url.removeprefix(f"http://{parts.netloc}")
    head = f"{'GET' if body is None else 'POST'} {target} HTTP/1.1\r\nHost: {parts.netloc}\r\n"
    return f"{head}Content-Type: application/json\r\nContent-Length: {len(body or b'')}\r\n\r\n".encode() + (
        body or b""
    )


def _requests(url: str, body: bytes | None, targets: Sequence[str]) -> list[bytes]:
    netloc = urlsplit(url).netloc
    return [_request(f"http://{netloc}{target}", body) for target in targets] or [_request(url, body)]


def _wrk(url: str, body: bytes | None, seconds: float, targets: Sequence[str] = ()) -> tuple[int, float]:
    with TemporaryDirectory() as folder:
        script = Path(folder) / "request.lua"
        lines = ['wrk.headers["Content-Type"] = "application/json"']
        if body is not None:
            lines += ['wrk.method = "POST"', f"wrk.body = [==[{body.decode()}]==]"]
        if targets:
            named = ",".join(f'"{target}"' for target in targets)
            lines += [f"local targets, at = {{{named}}}, 0", "function request()", "at = at % #targets + 1"]
            lines += ['return wrk.format("GET", targets[at])', "end"]
        script.write_text("\n".join(lines))
        command = ["wrk", "-t1", f"-c{CONNECTIONS}", f"-d{max(1, round(seconds))}", "--latency", "-s", str(script)]
        command += ["--timeout", f"{ANSWER_S:.0f}s", url]
        text = subprocess.run(command, capture_output=True, check=True, text=True).stdout
    if "Non-2xx" in text or "Socket errors" in text:
        raise RuntimeError(f"{url}: {text}")
    count = re.search(r"(\d+) requests in", text)
    p99 = re.search(r"99%\s+([\d.]+)(us|ms|s)", text)
    assert count
    assert p99
    return int(count[1]), float(p99[1]) * {"us": 0.001, "ms": 1.0, "s": 1000.0}[p99[2]]


def _simple_client(url: str, body: bytes | None, seconds: float, targets: Sequence[str] = ()) -> tuple[int, float]:
    return _send(url, cycle(_requests(url, body, targets)), seconds)


def _send(url: str, requests: Iterator[bytes], seconds: float) -> tuple[int, float]:
    pool = selectors.DefaultSelector()
    for _ in range(CONNECTIONS):
        opened = socket.create_connection(_address(url))
        pool.register(opened, selectors.EVENT_READ, [time.monotonic(), b""])
        opened.sendall(next(requests))
    latencies_s: list[float] = []
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        for key, _ in pool.select(max(0.0, deadline - time.monotonic())):
            connection, state = key.fileobj, key.data
            assert isinstance(connection, socket.socket)
            state[1] += connection.recv(1 << 20)
            if not _is_complete(state[1]):
                continue
            latencies_s.append(time.monotonic() - state[0])
            state[:] = [time.monotonic(), b""]
            connection.sendall(next(requests))
    for key in list(pool.get_map().values()):
        assert isinstance(key.fileobj, socket.socket)
        key.fileobj.close()
    return len(latencies_s), _latency(latencies_s).p99_ms if latencies_s else 0.0


def _is_complete(answer: bytes) -> bool:
    if not answer.startswith(b"HTTP/1.1 200"):
        raise RuntimeError(answer[:200].decode("utf-8", "replace") or "the connection was closed without an answer")
    end, length = answer.find(b"\r\n\r\n"), _LENGTH.search(answer)
    if _CHUNKED.search(answer, 0, max(0, end)):
        return answer.endswith(b"\r\n0\r\n\r\n")
    return end >= 0 and length is not None and len(answer) >= end + 4 + int(length[1])
