"""Measures liveness while the node listener has three times the connections that use its capacity, and more; needs wrk.

It also does so beside silent connections, clients that ask for much and read nothing, and clients that send heads and
read nothing. `before`, `peak` and `after` are the resident memory of the worker in MiB; `after`, when the connections
of the row are closed. `load` is the machine's: above the number of its cores, others add to every time.
"""

import http.client
import json
import os
import re
import shutil
import socket
import subprocess
import time
from contextlib import closing, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple
from urllib.parse import urlsplit

from tests.e2e.program import workers
from tests.server import Server, serving

from bench.ledger import ADDRESS_TEXT, fund
from bench.load import SECONDS
from bench.serving import call
from icefall.api.dialect import BATCH_MAX
from icefall.compose.worker import raise_file_limit

CAPACITY, OVERLOAD = 64, (192, 1000)
SILENT, STALLED, PIPELINED, UTXOS = 5000, 40, 4, 600
HEADS_BEHIND, HEADERS = 1200, 2600
BUFFERED_MIB = 64  # --http-max-buffered
RETURNED_MIB = 12  # memory that a worker may keep when its clients are gone
_PAUSE_S = 0.02
_CLOSED_S = 20.0


class MemoryUse(NamedTuple):
    """Resident memory of a worker, in MiB."""

    before: float
    peak: float
    after: float


class WorkerMemory:
    """Measures the memory of the node listener's worker from now on."""

    def __init__(self, server: Server) -> None:
        self._folder = Path(f"/proc/{workers(server)[0].pid}")
        self._files = self._open_files()
        self._before = self._mebibytes("VmRSS")
        (self._folder / "clear_refs").write_text("5")  # the peak begins anew

    def use(self) -> MemoryUse:
        """Return the memory used, when the connections that were opened meanwhile are closed and it was returned."""
        until = time.monotonic() + _CLOSED_S
        while time.monotonic() < until and (
            self._open_files() > self._files or self._mebibytes("VmRSS") > self._before + RETURNED_MIB
        ):
            time.sleep(_PAUSE_S)
        return MemoryUse(self._before, self._mebibytes("VmHWM"), self._mebibytes("VmRSS"))

    def _open_files(self) -> int:
        return len(list((self._folder / "fd").iterdir()))

    def _mebibytes(self, name: str) -> float:
        found = re.search(rf"{name}:\s+(\d+) kB", (self._folder / "status").read_text())
        assert found
        return int(found[1]) / 1024


def run() -> None:
    if not shutil.which("wrk"):
        print("overload: skipped, wrk is not installed")
        return
    raise_file_limit()
    node_version = json.loads(call("info.getNodeVersion"))
    calls = (
        ("info.getNetworkID", call("info.getNetworkID")),
        ("batch of 50 info.getNodeVersion", json.dumps([node_version] * 50).encode()),
    )
    with TemporaryDirectory() as folder, serving("node", Path(folder)) as server:
        print("overload: one worker; milliseconds of health.liveness by POST meanwhile, each on a new connection")
        print(f"  {'connections':<44}{'req/s':>8}{'refused':>9}{'p50':>8}{'p99':>8}{'max':>8}", end="")
        print(f"{'before':>8}{'peak':>7}{'after':>7}{'load':>7}")
        for label, body in calls:
            for connections in (CAPACITY, *OVERLOAD):
                _overload(server, f"{connections}, {label}", connections, body)
        fund(server, outputs=UTXOS)
        for label, count, sent in (
            (f"{SILENT} silent", SILENT, b""),
            (f"{STALLED} that do not read {PIPELINED} answers of 4 MB", STALLED, _large_request() * PIPELINED),
        ):
            _holding(server, label, count, sent)
        _heads_behind(server)


def _overload(server: Server, label: str, connections: int, body: bytes) -> None:
    memory = WorkerMemory(server)
    with TemporaryDirectory() as folder:
        script = Path(folder) / "request.lua"
        script.write_text(
            f'wrk.method = "POST"\nwrk.headers["Content-Type"] = "application/json"\nwrk.body = [==[{body.decode()}]==]'
        )
        command = ["wrk", "-t1", f"-c{connections}", f"-d{max(1, round(SECONDS))}", "-s", str(script)]
        load = subprocess.Popen([*command, f"{server.url()}/ext/info"], stdout=subprocess.PIPE, text=True)
        latencies_ms = []
        while load.poll() is None:
            latencies_ms.append(_liveness_ms(server.url()))
            time.sleep(_PAUSE_S)
        text = load.communicate()[0]
    done, refused = re.search(r"(\d+) requests in ([\d.]+)s", text), re.search(r"Non-2xx[^:]*: (\d+)", text)
    assert done, text
    per_second = (int(done[1]) - int(refused[1] if refused else 0)) / float(done[2])
    _print(label, f"{per_second:>8.0f}{refused[1] if refused else 0:>9}", latencies_ms, memory)


def _heads_behind(server: Server) -> None:
    """Send heads behind answers that are not read: they must fit into the memory for clients."""
    answers = b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n" * 8  # more than the kernel keeps
    lines = b"".join(b"%x:\r\n" % number for number in range(HEADERS))
    heads = (b"GET / HTTP/1.1\r\nHost: localhost\r\n" + lines + b"\r\n") * 16
    use = _holding(server, f"{HEADS_BEHIND} that send heads, and do not read", HEADS_BEHIND, answers, heads)
    assert use.peak - use.before <= BUFFERED_MIB, use
    assert use.after - use.before <= RETURNED_MIB, use


def _large_request() -> bytes:
    utxos = json.loads(call("avm.getUTXOs", {"addresses": [ADDRESS_TEXT], "limit": 1024}))
    body = json.dumps([utxos] * BATCH_MAX).encode()
    head = (
        f"POST /ext/bc/X HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
    )
    return head.encode() + b"\r\n\r\n" + body


def _holding(server: Server, label: str, count: int, sent: bytes, then: bytes = b"") -> MemoryUse:
    """Measure beside connections that have sent these bytes and read nothing; `then` is sent as far as it is taken."""
    memory = WorkerMemory(server)
    parts = urlsplit(server.url())
    opened = [socket.socket() for _ in range(count)]
    for one in opened:
        one.setblocking(False)
        with suppress(BlockingIOError):
            one.connect((parts.hostname, parts.port))
    if sent:
        for one in opened:
            one.setblocking(True)
            one.sendall(sent)
    latencies_ms = []
    until = time.monotonic() + SECONDS
    while time.monotonic() < until:
        if then:
            _push(opened, then)
        latencies_ms.append(_liveness_ms(server.url()))
        time.sleep(_PAUSE_S)
    for one in opened:
        one.close()
    return _print(label, f"{'':>17}", latencies_ms, memory)


def _push(opened: list[socket.socket], data: bytes) -> None:
    for one in opened:
        with suppress(OSError):  # no more is taken, or the server has closed the connection
            one.send(data, socket.MSG_DONTWAIT)


def _liveness_ms(url: str) -> float:
    parts = urlsplit(url)
    assert parts.hostname
    began = time.perf_counter()
    with closing(http.client.HTTPConnection(parts.hostname, parts.port, timeout=60)) as connection:
        connection.request("POST", "/ext/health", call("health.liveness"), {"Content-Type": "application/json"})
        reply = connection.getresponse()
        reply.read()
        assert reply.status == 200, reply.status
    return (time.perf_counter() - began) * 1000


def _print(label: str, requests: str, latencies_ms: list[float], memory: WorkerMemory) -> MemoryUse:
    latencies_ms.sort()
    p50, p99 = (latencies_ms[int(len(latencies_ms) * share)] for share in (0.5, 0.99))
    times = f"{p50:>8.1f}{p99:>8.1f}{latencies_ms[-1]:>8.1f}"
    use = memory.use()
    sizes = f"{use.before:>8.0f}{use.peak:>7.0f}{use.after:>7.0f}"
    print(f"  {label:<44}{requests}{times}{sizes}{os.getloadavg()[0]:>7.1f}", flush=True)
    return use
