"""Liveness while the node listener has three times the connections that use its capacity, and more; needs wrk.

And beside silent connections, and clients that ask for much and read nothing. `load` is the machine's: above
the number of its cores, others add to every time.
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
_PAUSE_S = 0.02


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
        print(f"  {'connections':<44}{'req/s':>8}{'refused':>9}{'p50':>8}{'p99':>8}{'max':>8}{'RSS MB':>8}{'load':>7}")
        for label, body in calls:
            for connections in (CAPACITY, *OVERLOAD):
                _overload(server, f"{connections}, {label}", connections, body)
        fund(server, outputs=UTXOS)
        for label, count, sent in (
            (f"{SILENT} silent", SILENT, b""),
            (f"{STALLED} that do not read {PIPELINED} answers of 4 MB", STALLED, _large_request() * PIPELINED),
        ):
            _holding(server, label, count, sent)


def _overload(server: Server, label: str, connections: int, body: bytes) -> None:
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
    _print(server, label, f"{per_second:>8.0f}{refused[1] if refused else 0:>9}", latencies_ms)


def _large_request() -> bytes:
    utxos = json.loads(call("avm.getUTXOs", {"addresses": [ADDRESS_TEXT], "limit": 1024}))
    body = json.dumps([utxos] * BATCH_MAX).encode()
    head = (
        f"POST /ext/bc/X HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
    )
    return head.encode() + b"\r\n\r\n" + body


def _holding(server: Server, label: str, count: int, sent: bytes) -> None:
    """Connections that have sent these bytes and read nothing."""
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
        latencies_ms.append(_liveness_ms(server.url()))
        time.sleep(_PAUSE_S)
    for one in opened:
        one.close()
    _print(server, label, f"{'':>17}", latencies_ms)


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


def _print(server: Server, label: str, requests: str, latencies_ms: list[float]) -> None:
    latencies_ms.sort()
    p50, p99 = (latencies_ms[int(len(latencies_ms) * share)] for share in (0.5, 0.99))
    status = Path(f"/proc/{workers(server)[0].pid}/status").read_text()
    peak = re.search(r"VmHWM:\s+(\d+) kB", status)
    assert peak
    times = f"{p50:>8.1f}{p99:>8.1f}{latencies_ms[-1]:>8.1f}"
    print(f"  {label:<44}{requests}{times}{int(peak[1]) / 1024:>8.0f}{os.getloadavg()[0]:>7.1f}", flush=True)
