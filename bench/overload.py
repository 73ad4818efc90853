"""Measures liveness while the node listener has three times the connections that use its capacity, and more; needs wrk.

It also does so beside silent connections, clients that ask for much and read nothing, and clients that send heads and
read nothing. The last row is the health of the chain data listener on PostgreSQL, beside many requests at once for a
transaction with as many transfers as an answer can have.

`before`, `peak` and `after` are the resident memory of the worker in MiB; `after`, when the connections of the row are
closed. `load` is the machine's: above the number of its cores, others add to every time.
"""

import asyncio
import http.client
import json
import os
import re
import selectors
import shutil
import socket
import subprocess
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple
from urllib.parse import urlsplit

from msgspec.structs import replace
from tests.api.made_chain import ANN, ID, TOKEN, block
from tests.e2e.program import workers
from tests.metrics.synthetic import address
from tests.postgres.server import new_prefix, programs, server_url
from tests.server import Server, serving

from bench.ledger import ADDRESS_TEXT, fund
from bench.load import SECONDS
from bench.serving import call
from icefall.api.dialect import BATCH_MAX
from icefall.compose.child import raise_file_limit
from icefall.compose.stores import Stores
from icefall.evm.deriving.packing import packed
from icefall.evm.model import Erc20TransferRow
from icefall.evm.packed import ResolvedBlock
from icefall.evm.reading.transfers import PARTS_MAX
from icefall.evm.storing.store import ChainStore
from icefall.metrics.store import RollupWriter

CAPACITY, OVERLOAD = 64, (192, 1000)
SILENT, STALLED, PIPELINED, UTXOS = 5000, 40, 4, 600
HEADS_BEHIND, HEADERS = 1200, 2600
LARGEST = 250  # requests at once
HEALTH_MS = 50.0  # the aim for the health of chain data beside them, on a machine that does nothing else
BUFFERED_MIB = 64  # --http-max-buffered
RETURNED_MIB = 12  # memory that a worker may keep when its clients are gone
_PAUSE_S = 0.02
_OK = b"HTTP/1.1 200"
_CLOSED_S = 20.0


class MemoryUse(NamedTuple):
    """Resident memory of a worker, in MiB."""

    before: float
    peak: float
    after: float


class WorkerMemory:
    """Measures the memory of a listener's worker from now on."""

    def __init__(self, server: Server, listener: str = "node") -> None:
        self._folder = Path(f"/proc/{workers(server, listener)[0].pid}")
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
    if programs() is None:
        print("  skipped: PostgreSQL is not installed")
        return
    with TemporaryDirectory() as folder:
        _largest_transaction(Path(folder))


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


def _largest_transaction(folder: Path) -> None:
    """Ask for the largest transaction many times at once, and meanwhile for the health of the data listener."""
    config, prefix = folder / "icefall.toml", new_prefix()
    config.write_text(f'[[chain]]\nid = "{ID}"\nrpc = "http://127.0.0.1:1"\n')
    with closing(Stores(folder / "data", server_url(), prefix)) as stores:
        tx_hash = asyncio.run(_put_largest(stores))
    settings = (f"--config-file={config}", f"--store={server_url()}", f"--store-prefix={prefix}")
    with serving("data", folder, *settings) as server:
        target = f"/v1/chains/{ID}/transactions/0x{tx_hash.hex()}"
        size = len(server.ask("GET", target, listener="data").body)
        label = f"{LARGEST} GETs of {PARTS_MAX} transfers, {size >> 10} KiB each"
        memory, parts, latencies_ms = WorkerMemory(server, "data"), urlsplit(server.url("data")), []
        assert parts.hostname
        assert parts.port
        began = time.perf_counter()
        with ThreadPoolExecutor(1) as clients:
            asked = clients.submit(_ask_at_once, (parts.hostname, parts.port), target, LARGEST)
            while not asked.done():
                latencies_ms.append(_health_ms(server.url("data")))
                time.sleep(_PAUSE_S)
        answered, seconds = asked.result(), time.perf_counter() - began
        _print(label, f"{answered / seconds:>8.0f}{LARGEST - answered:>9}", latencies_ms, memory)
        latencies_ms.sort()
        p99 = latencies_ms[int(len(latencies_ms) * 0.99)]
        print(f"  health of chain data, p99: {p99:.1f} ms (aim {HEALTH_MS:.0f} ms on a quiet machine)", flush=True)


async def _put_largest(stores: Stores) -> bytes:
    """Store a chain whose block 1 has one transaction with PARTS_MAX transfers, and return its hash."""
    moved = tuple(Erc20TransferRow(0, at, TOKEN, ANN, address(10_000 + at), 10**18 + at) for at in range(PARTS_MAX))
    blocks = [block(0), replace(block(1), erc20_transfers=moved), block(2)]
    store = ChainStore(stores.chain_store(ID), [RollupWriter()])
    await store.commit([ResolvedBlock(packed(rows), (), ()) for rows in blocks])
    store.close()
    return blocks[1].txs[0].tx_hash


def _ask_at_once(server: tuple[str, int], target: str, count: int) -> int:
    """Send a request on each of many connections, read all answers, and return how many were 200."""
    answered, request = 0, f"GET {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode()
    with selectors.DefaultSelector() as waiting:
        for one in [socket.create_connection(server) for _ in range(count)]:
            one.sendall(request)
            waiting.register(one, selectors.EVENT_READ, bytearray())
        while waiting.get_map():
            for key, _ in waiting.select():
                assert isinstance(key.fileobj, socket.socket)
                piece = key.fileobj.recv(1 << 20)
                if not key.data:
                    key.data.extend(piece[: len(_OK)])
                if not piece:
                    waiting.unregister(key.fileobj)
                    key.fileobj.close()
                    answered += key.data == _OK
    return answered


def _liveness_ms(url: str) -> float:
    return _answer_ms(
        url,
        lambda connection: connection.request(
            "POST", "/ext/health", call("health.liveness"), {"Content-Type": "application/json"}
        ),
    )


def _health_ms(url: str) -> float:
    return _answer_ms(url, lambda connection: connection.request("GET", "/v1/health-check"))


def _answer_ms(url: str, send: Callable[[http.client.HTTPConnection], None]) -> float:
    """Return the milliseconds of one request on a new connection."""
    parts = urlsplit(url)
    assert parts.hostname
    began = time.perf_counter()
    with closing(http.client.HTTPConnection(parts.hostname, parts.port, timeout=60)) as connection:
        send(connection)
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
