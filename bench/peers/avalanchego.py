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
from collections.abc import Iterator
from itertools import count, islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from tests.go_node import GoNode, go_node
from tests.platform_wallet import PlatformWallet, genesis_signers
from tests.server import JSON_TYPE, Server, serving

from bench.ledger import ADDRESS_TEXT, issue, richest, transfer
from bench.load import descendants, measure, measure_each, worker_pids
from bench.serving import call
from icefall.wire.avm.types import Owners
from icefall.wire.avm.utxos import produced
from icefall.wire.ids import LOCAL_ID, NODE_ID_PREFIX, hash256, id_text, network_hrp, short_id_text
from icefall.wire.pvm.types import PlatformBaseTx
from icefall.wire.pvm.warp import first_validation_id
from icefall.wire.text.bech32 import address_text

PROGRAM = "ICEFALL_TEST_AVALANCHEGO"
BLOCKS = 66  # after the first one: a range of 64 that begins at the second must fit
OUTPUTS, OWNERS, L1S = 10, 12, 3
_POLL_S = 0.1


class NodeCall(NamedTuple):
    """`aim`: our CPU divided by that of the Go node. `body` asks the same each time."""

    label: str
    path: str
    body: bytes
    aim: float


class FirstCall(NamedTuple):
    """Calls of one method with parameters in turn, which are asked with a number more that both nodes ignore: no
    question is asked twice, so no result that Icefall kept answers it. The Go node keeps objects, not results, and
    finds each of these few in its memory: these calls have no aim, and show what a first answer costs at most."""

    label: str
    path: str
    method: str
    params: list[dict[str, Any]]
    aim: float  # of the same question again

    def bodies(self) -> Iterator[bytes]:
        for number in count():
            yield call(self.method, {**self.params[number % len(self.params)], "number": number})


def _grow(node: GoNode) -> str:
    """Blocks of one transfer each, the last of which gives the key some outputs; its ID."""
    tx = transfer(richest(node), 1)
    issue(node, tx)
    for _ in range(BLOCKS):
        tx = transfer(produced(tx)[0], 1)
        issue(node, tx)
    return issue(node, transfer(produced(tx)[0], OUTPUTS))


def _calls() -> list[NodeCall]:
    index, health = "/ext/index/X/block", "/ext/health"
    one: dict[str, Any] = {"index": "40", "encoding": "hex"}
    many: dict[str, Any] = {"startIndex": "1", "numToFetch": "64", "encoding": "hex"}
    return [
        NodeCall("health.liveness", health, call("health.liveness"), 1.2),
        NodeCall("health.health", health, call("health.health"), 1.0),
        NodeCall("index.getContainerByIndex", index, call("index.getContainerByIndex", one), 1.2),
        NodeCall("index.getContainerRange (64)", index, call("index.getContainerRange", many), 0.3),
    ]


def _asset_calls(txid: str) -> list[FirstCall]:
    blocks = [{"height": str(height), "encoding": "hex"} for height in range(40, BLOCKS)]
    rows: list[tuple[str, str, list[dict[str, Any]], float]] = [
        ("getHeight", "getHeight", [{}], 1.3),
        ("getTx hex", "getTx", [{"txID": txid, "encoding": "hex"}], 1.2),
        ("getTx json", "getTx", [{"txID": txid, "encoding": "json"}], 0.8),
        ("getUTXOs (10)", "getUTXOs", [{"addresses": [ADDRESS_TEXT], "limit": OUTPUTS}], 0.8),
        ("getBalance", "getBalance", [{"address": ADDRESS_TEXT, "assetID": "AVAX"}], 0.8),
        ("getBlockByHeight", "getBlockByHeight", blocks, 1.2),
    ]
    return [FirstCall(f"avm.{label}", "/ext/bc/X", f"avm.{method}", params, aim) for label, method, params, aim in rows]


class PlatformHistory(NamedTuple):
    """What the P-Chain was given: texts of IDs, and its height."""

    txids: list[str]
    subnet_ids: list[str]
    validation_ids: list[str]
    addresses: list[str]
    height: int


def _grow_platform(node: GoNode) -> PlatformHistory:
    """L1s, some delegations, and outputs of several keys."""
    wallet = PlatformWallet(node)
    subnets, validations, txids = [], [], []
    for _ in range(L1S):
        subnet_id = wallet.create_subnet()
        wallet.convert(subnet_id, [10**9] * 4)
        subnets.append(id_text(subnet_id))
        validations += [id_text(first_validation_id(subnet_id, position)) for position in range(4)]
    end = int(time.time()) + 2 * 24 * 3600
    for node_id, _ in genesis_signers():
        txids.append(wallet.delegate(node_id, 25 * 10**9, end))
    owners = [hash256(b"an owner %d" % number)[:20] for number in range(OWNERS)]
    for owner in owners:
        paid = [wallet.output(10**9, Owners(0, 1, (owner,)))] * OUTPUTS
        txids.append(wallet.issue(PlatformBaseTx(*wallet.base(0, *paid))))
    height = int(wallet.call("getHeight", {})["height"])
    addresses = [address_text("P", network_hrp(LOCAL_ID), owner) for owner in owners]
    return PlatformHistory([id_text(one) for one in txids], subnets, validations, addresses, height)


def _platform_calls(of: PlatformHistory) -> list[FirstCall]:
    nodes = [NODE_ID_PREFIX + short_id_text(node_id) for node_id, _ in genesis_signers()]
    heights = range(1, of.height - 1)
    rows: list[tuple[str, str, list[dict[str, Any]]]] = [
        ("getHeight", "getHeight", [{}]),
        ("getTx hex", "getTx", [{"txID": txid, "encoding": "hex"} for txid in of.txids]),
        ("getTx json", "getTx", [{"txID": txid, "encoding": "json"} for txid in of.txids]),
        ("getBlock", "getBlockByHeight", [{"height": height, "encoding": "hex"} for height in heights]),
        ("getUTXOs (10)", "getUTXOs", [{"addresses": [one], "limit": OUTPUTS} for one in of.addresses]),
        ("getBalance", "getBalance", [{"addresses": [one]} for one in of.addresses]),
        ("getCurrentValidators", "getCurrentValidators", [{}]),
        ("getCurrentValidators of a node", "getCurrentValidators", [{"nodeIDs": [one]} for one in nodes]),
        ("getValidatorsAt, past", "getValidatorsAt", [{"height": height} for height in heights]),
        ("getSubnet", "getSubnet", [{"subnetID": one} for one in of.subnet_ids]),
        ("getL1Validator", "getL1Validator", [{"validationID": one} for one in of.validation_ids]),
    ]
    return [FirstCall(f"platform.{label}", "/ext/bc/P", f"platform.{method}", ps, 1.0) for label, method, ps in rows]


def _repeated(calls: list[FirstCall]) -> list[NodeCall]:
    """The first of each of these questions again and again, which a kept result may answer (of P: X keeps none)."""
    return [NodeCall(f"{one.label}, again", one.path, call(one.method, one.params[0]), one.aim) for one in calls]


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
            print(f"  {'call':<40}{'Go node':>9}{'Icefall':>9}{'ratio':>8}{'aim':>7}")
            firsts = [*_platform_calls(platform), *_asset_calls(txid)]
            calls: list[NodeCall | FirstCall] = [*firsts, *_repeated(firsts), *_calls()]
            for one in calls:
                _compare(node, server, one)


def _await_height(server: Server, path: str, method: str, height: int) -> None:
    """A followed chain that is bootstrapping answers with an error, and then for a while with less."""
    while int(server.call(path, method, {}).get("result", {}).get("height", 0)) < height:
        time.sleep(_POLL_S)


def _compare(node: GoNode, server: Server, one: NodeCall | FirstCall) -> None:
    _check_same(node, server, one)
    go = _measured(node.url() + one.path, one, descendants(node.process.pid))
    ours = _measured(server.url() + one.path, one, worker_pids(server))
    missed = "  missed" if ours / go > one.aim else ""
    aim = "" if isinstance(one, FirstCall) else f"{one.aim:>7.1f}{missed}"
    print(f"  {one.label:<40}{go:>9.1f}{ours:>9.1f}{ours / go:>8.2f}{aim}", flush=True)


def _measured(url: str, one: NodeCall | FirstCall, pids: list[int]) -> float:
    if isinstance(one, FirstCall):
        return measure_each(url, one.bodies(), pids).cpu_us
    return measure(url, one.body, pids).cpu_us


def _check_same(node: GoNode, server: Server, one: NodeCall | FirstCall) -> None:
    """Both answer with a result. That results are the same bytes is what the recorded tests are for."""
    bodies = list(islice(one.bodies(), len(one.params))) if isinstance(one, FirstCall) else [one.body]
    for body in bodies:
        for url in (node.url(), server.url()):
            request = urllib.request.Request(url + one.path, body, {"content-type": JSON_TYPE})
            with urllib.request.urlopen(request) as answer:
                found = json.load(answer)
            assert "result" in found, f"{one.label}: {body!r}: {found}"
