"""Node calls beside AvalancheGo: server CPU per request, in one run and on the same history.

The program is given by ICEFALL_TEST_AVALANCHEGO, built from its source:

    go mod init x && go get github.com/ava-labs/avalanchego@v1.14.2
    go build -o avalanchego github.com/ava-labs/avalanchego/main

It runs a local network of one node, which gets some blocks of X and P and is followed by Icefall.
"""

import json
import os
import time
import urllib.request
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from tests.go_node import GoNode, go_node
from tests.platform_wallet import ADDRESS_TEXT as P_ADDRESS_TEXT
from tests.platform_wallet import PlatformWallet, genesis_signers
from tests.server import JSON_TYPE, Server, serving

from bench.ledger import ADDRESS_TEXT, issue, richest, transfer
from bench.load import descendants, measure, worker_pids
from bench.serving import call
from icefall.wire.avm.utxos import produced
from icefall.wire.ids import NODE_ID_PREFIX, id_text, short_id_text
from icefall.wire.pvm.warp import first_validation_id

PROGRAM = "ICEFALL_TEST_AVALANCHEGO"
BLOCKS = 66  # after the first one: a range of 64 that begins at the second must fit
OUTPUTS = 10
_POLL_S = 0.1


class NodeCall(NamedTuple):
    """`aim`: our CPU divided by that of the Go node."""

    label: str
    path: str
    body: bytes
    aim: float


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


class PlatformHistory(NamedTuple):
    """What the P-Chain was given: texts of IDs, and its height."""

    txid: str
    subnet_id: str
    validation_id: str
    height: int


def _grow_platform(node: GoNode) -> PlatformHistory:
    """An L1, some delegations, and outputs of the key."""
    wallet = PlatformWallet(node)
    subnet_id = wallet.create_subnet()
    wallet.convert(subnet_id, [10**9] * 4)
    end = int(time.time()) + 2 * 24 * 3600
    for node_id, _ in genesis_signers():
        wallet.delegate(node_id, 25 * 10**9, end)
    txid = wallet.split(OUTPUTS, 10**9)
    height = int(wallet.call("getHeight", {})["height"])
    return PlatformHistory(id_text(txid), id_text(subnet_id), id_text(first_validation_id(subnet_id, 1)), height)


def _platform_calls(of: PlatformHistory) -> list[NodeCall]:
    node_id = NODE_ID_PREFIX + short_id_text(genesis_signers()[0][0])
    rows: list[tuple[str, str, dict[str, Any]]] = [
        ("getHeight", "getHeight", {}),
        ("getTx hex", "getTx", {"txID": of.txid, "encoding": "hex"}),
        ("getTx json", "getTx", {"txID": of.txid, "encoding": "json"}),
        ("getBlock", "getBlockByHeight", {"height": of.height, "encoding": "hex"}),
        ("getUTXOs (10)", "getUTXOs", {"addresses": [P_ADDRESS_TEXT], "limit": OUTPUTS}),
        ("getBalance", "getBalance", {"addresses": [P_ADDRESS_TEXT]}),
        ("getCurrentValidators", "getCurrentValidators", {}),
        ("getCurrentValidators of a node", "getCurrentValidators", {"nodeIDs": [node_id]}),
        ("getValidatorsAt, past", "getValidatorsAt", {"height": of.height - 3}),
        ("getSubnet", "getSubnet", {"subnetID": of.subnet_id}),
        ("getL1Validator", "getL1Validator", {"validationID": of.validation_id}),
    ]
    return [
        NodeCall(f"platform.{label}", "/ext/bc/P", call(f"platform.{method}", params), 1.0)
        for label, method, params in rows
    ]


def run() -> None:
    program = os.environ.get(PROGRAM, "")
    if not program:
        print(f"peers.avalanchego: skipped, {PROGRAM} does not name a program")
        return
    with TemporaryDirectory() as folder, go_node(program, Path(folder) / "go") as node:
        version = node.call("/ext/info", "info.getNodeVersion")["result"]["version"]
        txid = _grow(node)
        platform = _grow_platform(node)
        height = int(node.call("/ext/bc/X", "avm.getHeight")["result"]["height"])
        following = [f"--upstream={node.url()}", "--index-enabled=true", "--network-id=local"]
        with serving("node", Path(folder) / "icefall", *following) as server:
            _await_height(server, "/ext/bc/X", "avm.getHeight", height)
            _await_height(server, "/ext/bc/P", "platform.getHeight", platform.height)
            print(f"peers.avalanchego: {version} and Icefall, which follows it, with {height} X-Chain blocks;")
            print("  one worker, keep-alive connections on loopback; CPU of the server in us per request")
            print(f"  {'call':<32}{'Go node':>9}{'Icefall':>9}{'ratio':>8}{'aim':>7}")
            for one in (*_calls(txid), *_platform_calls(platform)):
                _compare(node, server, one)


def _await_height(server: Server, path: str, method: str, height: int) -> None:
    """A followed chain that is bootstrapping answers with an error, and then for a while with less."""
    while int(server.call(path, method, {}).get("result", {}).get("height", 0)) < height:
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
