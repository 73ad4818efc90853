"""Requests per second and server CPU per request, compared with a bare granian worker that sends the same bytes."""

import json
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.server import Server, serving

from bench.bare import bare_server
from bench.ledger import fund
from bench.load import LoadStats, descendants, measure, worker_pids

EWOQ = "X-local18jma8ppw3nhx5r4ap8clazz0dps7rv5u00z96u"


def call(method: str, params: dict[str, object] | None = None) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, **({"params": params} if params else {})}).encode()


def run() -> None:
    print("serving: one worker, keep-alive connections on loopback; CPU is the server's, per request")
    with TemporaryDirectory() as folder, serving("node", Path(folder)) as server:
        txid = fund(server, outputs=10)
        compare(
            server,
            [
                ("health.liveness", "/ext/health", call("health.liveness")),
                ("health.health", "/ext/health", call("health.health")),
                ("info.getNetworkID", "/ext/info", call("info.getNetworkID")),
                ("avm.getHeight", "/ext/bc/X", call("avm.getHeight")),
                ("avm.getTx hex", "/ext/bc/X", call("avm.getTx", {"txID": txid})),
                ("avm.getTx json", "/ext/bc/X", call("avm.getTx", {"txID": txid, "encoding": "json"})),
                ("avm.getUTXOs (10)", "/ext/bc/X", call("avm.getUTXOs", {"addresses": [EWOQ], "limit": 10})),
                ("avm.getBalance", "/ext/bc/X", call("avm.getBalance", {"address": EWOQ, "assetID": "AVAX"})),
                ("avm.getBlockByHeight", "/ext/bc/X", call("avm.getBlockByHeight", {"height": "1"})),
            ],
        )


def compare(server: Server, calls: Sequence[tuple[str, str, bytes]]) -> None:
    """Prints a line for each (label, path, body)."""
    print(f"  {'call':<32}{'req/s':>9}{'p99 ms':>9}{'CPU us':>9}{'bare us':>9}{'ratio':>8}")
    for label, path, body in calls:
        ours, bare = _both(server, path, body)
        print(
            f"  {label:<32}{ours.per_second:>9.0f}{ours.p99_ms:>9.2f}{ours.cpu_us:>9.1f}{bare.cpu_us:>9.1f}"
            f"{ours.cpu_us / bare.cpu_us:>8.2f}",
            flush=True,
        )


def _both(server: Server, path: str, body: bytes) -> tuple[LoadStats, LoadStats]:
    answer = server.ask("POST", path, body).body
    ours = measure(server.url() + path, body, worker_pids(server))
    with bare_server(answer) as (url, pid):
        return ours, measure(url, body, descendants(pid))
