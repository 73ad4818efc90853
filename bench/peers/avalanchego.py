"""Node calls beside AvalancheGo: server CPU per request, in one run and on the same history.

The program is given by ICEFALL_AVALANCHEGO, built from its source:

    go mod init x && go get github.com/ava-labs/avalanchego@v1.14.2
    go build -o avalanchego github.com/ava-labs/avalanchego/main

It runs a local network of one node, which gets some X-Chain blocks and is followed by Icefall.
"""

import json
import os
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from tests.server import JSON_TYPE, Server, serving

from bench.ledger import ADDRESS_TEXT, issue, richest, transfer
from bench.load import descendants, measure, worker_pids
from bench.serving import call
from icefall.wire.avm.utxos import produced

PROGRAM = "ICEFALL_AVALANCHEGO"
BLOCKS = 66  # after the first one: a range of 64 that begins at the second must fit
OUTPUTS = 10
_START_S, _POLL_S = 120.0, 0.1


class NodeCall(NamedTuple):
    """`aim`: our CPU divided by that of the Go node."""

    label: str
    path: str
    body: bytes
    aim: float


class GoNode:
    """A running AvalancheGo."""

    def __init__(self, process: subprocess.Popen[bytes], data_dir: Path) -> None:
        self.process = process
        self._context = data_dir / "process.json"

    def url(self) -> str:
        return str(json.loads(self._context.read_bytes())["uri"])

    def call(self, path: str, method: str, params: Any = None) -> Any:
        request = urllib.request.Request(self.url() + path, call(method, params), {"content-type": JSON_TYPE})
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)

    def is_ready(self) -> bool:
        try:
            return bool(self.call("/ext/info", "info.isBootstrapped", {"chain": "X"})["result"]["isBootstrapped"])
        except (OSError, KeyError, json.JSONDecodeError):
            return False


@contextmanager
def _go_node(program: str, folder: Path) -> Iterator[GoNode]:
    folder.mkdir()
    with (folder / "terminal.txt").open("wb") as terminal:
        process = subprocess.Popen(
            [
                program,
                "--network-id=local",
                "--sybil-protection-enabled=false",
                "--index-enabled=true",
                "--fd-limit=15000",
                f"--data-dir={folder}",
                "--http-port=0",
                "--staking-port=0",
            ],
            stdout=terminal,
            stderr=terminal,
        )
    node = GoNode(process, folder)
    try:
        _await(node.is_ready, process, folder / "terminal.txt")
        yield node
    finally:
        process.terminate()
        process.wait()


def _await(done: Any, process: subprocess.Popen[bytes], output: Path) -> None:
    deadline = time.monotonic() + _START_S
    while not done():
        assert process.poll() is None, output.read_text()
        assert time.monotonic() < deadline, output.read_text()
        time.sleep(_POLL_S)


def _grow(node: GoNode) -> str:
    """Blocks of one transfer each, the last of which gives the key some outputs; its ID."""
    tx = transfer(richest(node), 1)
    issue(node, tx)
    for _ in range(BLOCKS):
        tx = transfer(produced(tx)[0], 1)
        issue(node, tx)
    return issue(node, transfer(produced(tx)[0], OUTPUTS))


def _calls(txid: str) -> list[NodeCall]:
    x, index, health = "/ext/bc/X", "/ext/index/X/block", "/ext/health"
    owner: dict[str, Any] = {"addresses": [ADDRESS_TEXT], "limit": OUTPUTS}
    held: dict[str, Any] = {"address": ADDRESS_TEXT, "assetID": "AVAX"}
    one: dict[str, Any] = {"index": "40", "encoding": "hex"}
    many: dict[str, Any] = {"startIndex": "1", "numToFetch": "64", "encoding": "hex"}
    return [
        NodeCall("health.liveness", health, call("health.liveness"), 1.2),
        NodeCall("health.health", health, call("health.health"), 1.0),
        NodeCall("avm.getHeight", x, call("avm.getHeight", {}), 1.3),
        NodeCall("avm.getTx hex", x, call("avm.getTx", {"txID": txid, "encoding": "hex"}), 1.2),
        NodeCall("avm.getTx json", x, call("avm.getTx", {"txID": txid, "encoding": "json"}), 0.8),
        NodeCall("avm.getUTXOs (10)", x, call("avm.getUTXOs", owner), 0.8),
        NodeCall("avm.getBalance", x, call("avm.getBalance", held), 0.8),
        NodeCall("avm.getBlockByHeight", x, call("avm.getBlockByHeight", {"height": "40", "encoding": "hex"}), 1.2),
        NodeCall("index.getContainerByIndex", index, call("index.getContainerByIndex", one), 1.2),
        NodeCall("index.getContainerRange (64)", index, call("index.getContainerRange", many), 0.3),
    ]


def run() -> None:
    program = os.environ.get(PROGRAM, "")
    if not program:
        print(f"peers.avalanchego: skipped, {PROGRAM} does not name a program")
        return
    with TemporaryDirectory() as folder, _go_node(program, Path(folder) / "go") as node:
        version = node.call("/ext/info", "info.getNodeVersion")["result"]["version"]
        txid = _grow(node)
        height = int(node.call("/ext/bc/X", "avm.getHeight")["result"]["height"])
        following = [f"--upstream={node.url()}", "--index-enabled=true", "--network-id=local"]
        with serving("node", Path(folder) / "icefall", *following) as server:
            _await_height(server, height)
            print(f"peers.avalanchego: {version} and Icefall, which follows it, with {height} X-Chain blocks;")
            print("  one worker, keep-alive connections on loopback; CPU of the server in us per request")
            print(f"  {'call':<32}{'Go node':>9}{'Icefall':>9}{'ratio':>8}{'aim':>7}")
            for one in _calls(txid):
                _compare(node, server, one)


def _await_height(server: Server, height: int) -> None:
    """A followed chain that is bootstrapping answers with an error, and then for a while with less."""
    while int(server.call("/ext/bc/X", "avm.getHeight").get("result", {}).get("height", 0)) < height:
        time.sleep(_POLL_S)


def _compare(node: GoNode, server: Server, one: NodeCall) -> None:
    _check_same(node, server, one)
    go = measure(node.url() + one.path, one.body, descendants(node.process.pid)).cpu_us
    ours = measure(server.url() + one.path, one.body, worker_pids(server)).cpu_us
    missed = "  missed" if ours / go > one.aim else ""
    print(f"  {one.label:<32}{go:>9.1f}{ours:>9.1f}{ours / go:>8.2f}{one.aim:>7.1f}{missed}", flush=True)


def _check_same(node: GoNode, server: Server, one: NodeCall) -> None:
    """Both answer with a result. That results are the same bytes is what the recorded tests are for."""
    answers = []
    for url in (node.url(), server.url()):
        request = urllib.request.Request(url + one.path, one.body, {"content-type": JSON_TYPE})
        with urllib.request.urlopen(request) as answer:
            answers.append(json.load(answer))
    assert all("result" in answer for answer in answers), f"{one.label}: {answers}"
