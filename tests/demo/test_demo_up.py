"""`icefall up` with the demo: every interface answers with data, and a second start has nothing left to do."""

import json
import os
import re
import signal
import sqlite3
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.counterparts import program
from tests.demo.prepared import (
    C_BUSY,
    C_CHAIN,
    CHAINS,
    COIN,
    L1,
    data,
    demo_serving,
    first_start_text,
    status,
    synced,
)
from tests.e2e.program import family
from tests.server import Server, serving
from tests.upstream.evm_recording import recording
from tests.waiting import LIMIT_S, until

from icefall.api.data.handlers.operations import OPERATIONS
from icefall.api.data.webhook_endpoints import WEBHOOKS
from icefall.api.describing.examples import WEBHOOK, example_call
from icefall.api.http.row import DATA, LISTENERS, Rest, Rpc, example_path
from icefall.api.table import ENDPOINTS, rows_of
from icefall.demo.chains import TOUR
from icefall.evm.storing.store import store_path

BUSY = "0x5d038640E1a2085e1e4fB53dAaca6807f892b00C"
RICH = "X-local18jma8ppw3nhx5r4ap8clazz0dps7rv5u00z96u"
X_ID = "2eNy1mUFdmaxXNj1eQHUe7Np4gju9sJsEtWQ4MX3ToiNKuADed"
ADDRESS = f"{L1}/addresses/{BUSY}"
# A command to paste: a line that begins with curl, and the next if it ends with a backslash.
COMMAND = re.compile(r"^curl .*?(?:\\\n.*?)?$", re.MULTILINE)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("demo")


@pytest.fixture(scope="module")
def demo(folder: Path) -> Iterator[Server]:
    with demo_serving(folder, "--api-admin-enabled=true", "--webhook-networks=127.0.0.1") as server:
        until(lambda: server.ask("GET", "/ext/health").status == 200, "health, which looks every 30 s of itself")
        yield server


# -- every interface has something to show -------------------------------------------------------------------------


class Shown(NamedTuple):
    """A call, and what must not be empty in its answer."""

    path: str
    seen: Callable[[Any], Any]


def field(*names: str) -> Callable[[Any], Any]:
    def seen(answer: Any) -> Any:
        for name in names:
            answer = answer[int(name) if isinstance(answer, list) else name]
        return answer

    return seen


def priced(answer: Any) -> Any:
    return [token for token in answer["erc20TokenBalances"] if "balanceValue" in token]


DATA_CALLS = {
    "1 chains": Shown("/v1/chains", lambda answer: len(answer["chains"]) == 2),
    "2 blocks": Shown(f"{L1}/blocks", lambda answer: answer["blocks"][0]["blockNumber"] == "1968"),
    "3 transactions of a block": Shown(f"{L1}/blocks/1968/transactions?pageSize=10", field("transactions", "0")),
    "4 transactions": Shown(f"{ADDRESS}/transactions", field("transactions", "9", "nativeTransaction")),
    "5 listNative": Shown(f"{ADDRESS}/transactions:listNative", field("transactions", "9")),
    "6 listErc20": Shown(f"{ADDRESS}/transactions:listErc20", field("transactions", "9", "value")),
    "7 listErc721": Shown(f"{ADDRESS}/transactions:listErc721", field("transactions", "9", "erc721Token", "name")),
    "8 listErc1155": Shown(f"{ADDRESS}/transactions:listErc1155", field("transactions", "9", "erc1155Token")),
    "9 listInternals": Shown(f"{ADDRESS}/transactions:listInternals", field("transactions", "0")),
    "10 getDeployment": Shown(f"{L1}/contracts/{COIN}/transactions:getDeployment", field("nativeTransaction")),
    "11 transfers of a token": Shown(f"{L1}/tokens/{COIN}/transfers", field("transfers", "9")),
    "12 getNative": Shown(f"{ADDRESS}/balances:getNative?currency=usd", field("nativeTokenBalance", "balanceValue")),
    "13 balances of ERC-20": Shown(f"{ADDRESS}/balances:listErc20?currency=usd", priced),
    "14 balances of ERC-721": Shown(f"{ADDRESS}/balances:listErc721", field("erc721TokenBalances", "9")),
    "15 balances of ERC-1155": Shown(f"{ADDRESS}/balances:listErc1155", field("erc1155TokenBalances", "9")),
}


@pytest.mark.parametrize("name", DATA_CALLS)
def test_each_of_the_fifteen_data_endpoints(name: str, demo: Server) -> None:
    call = DATA_CALLS[name]
    answer = data(demo, call.path)
    assert call.seen(answer), answer


def test_they_are_the_fifteen_of_the_interface() -> None:
    shapes = {re.sub(r"\{\w+\}", "{}", row.path) for row in rows_of(DATA) if isinstance(row, Rest)}
    requested = set()
    for call in DATA_CALLS.values():
        path = call.path.partition("?")[0]
        requested.add(re.sub(r"(?<=/)(3210042|1968|0x\w+)(?=/|$)", "{}", path))
    assert len(requested) == 15
    assert requested <= shapes


def test_avg_tps(demo: Server) -> None:
    answer = data(demo, "/v1/avg_tps/3210042", "metrics")
    assert answer["status"]
    assert len(answer["results"]) > 10
    assert any(point["value"] > 0 for point in answer["results"])
    assert data(demo, "/v1/avg_tps/43112", "metrics")["results"]


NODE_CALLS: dict[str, tuple[str, str, Any, Callable[[Any], Any]]] = {
    "health": ("/ext/health", "health.health", None, lambda all_: all_["checks"]["X"]["message"] and all_["healthy"]),
    "info": ("/ext/info", "info.getBlockchainID", {"alias": "X"}, lambda result: result["blockchainID"] == X_ID),
    "admin": ("/ext/admin", "admin.getChainAliases", {"chain": X_ID}, lambda result: "X" in result["aliases"]),
    "asset chain": ("/ext/bc/X", "avm.getHeight", None, lambda result: int(result["height"]) >= 156),
    "UTXOs": ("/ext/bc/X", "avm.getUTXOs", {"addresses": [RICH]}, lambda result: int(result["numFetched"]) > 10),
    "balance": ("/ext/bc/X", "avm.getBalance", {"address": RICH, "assetID": "AVAX"}, lambda result: result["utxoIDs"]),
    "history": ("/ext/bc/X", "avm.getAddressTxs", {"address": RICH}, lambda result: len(result["txIDs"]) > 10),
    **{
        f"index of {path}": (f"/ext/index/{path}", "index.getLastAccepted", {"encoding": "hex"}, field("bytes"))
        for path in ("X/block", "X/tx", "P/block", "C/block")
    },
}


@pytest.mark.parametrize("name", NODE_CALLS)
def test_each_node_interface(name: str, demo: Server) -> None:
    path, method, params, seen = NODE_CALLS[name]
    answer = demo.call(path, method, params)
    assert seen(answer["result"]), answer


def test_the_node_s_own_metrics(demo: Server) -> None:
    assert demo.ask("GET", "/ext/metrics").body.count(b"\n") > 10


# -- what is printed -----------------------------------------------------------------------------------------------


def start_text(server: Server) -> str:
    return server.output().rpartition("Icefall ")[2]


def test_the_start_prints_three_addresses_and_ten_calls(demo: Server) -> None:
    for listener in ("node", "data", "metrics"):
        assert f"{listener:<8} {demo.url(listener)}" in start_text(demo)
    assert len(COMMAND.findall(start_text(demo))) == 10


def test_the_first_start_says_what_it_does(demo: Server) -> None:
    """And has nothing to warn of."""
    said = first_start_text(demo)
    assert "being indexed now" in said
    assert len(COMMAND.findall(said)) == 10
    assert [word for word in ("WARN", "ERROR", "Unclosed", "Traceback") if word in said] == []


@pytest.mark.parametrize("number", range(10), ids=lambda number: TOUR[number].summary)
def test_each_printed_call_has_something_to_see(number: int, demo: Server) -> None:
    program("curl")
    command = COMMAND.findall(start_text(demo))[number]
    assert f"# {TOUR[number].summary}\n{command}" in start_text(demo)
    marked = command.replace("curl -s ", "curl -s -w '\\n%{http_code}' ", 1)
    done = subprocess.run(["/bin/sh", "-ec", marked], capture_output=True, check=True, text=True, timeout=LIMIT_S)
    body, _, code = done.stdout.rpartition("\n")
    assert code == "200", done.stdout
    answer = json.loads(body)
    assert "error" not in answer
    assert len(body) > 200, "there should be more to see"


# -- values, against the recording ---------------------------------------------------------------------------------


def test_balances_are_those_of_the_recorded_state(demo: Server) -> None:
    for chain, name, busy in (("3210042", "demo-1", BUSY), ("43112", "cchain-1", C_BUSY)):
        state, head = recording(name).state, int(recording(name).meta["lastBlock"])
        path = f"/v1/chains/{chain}/addresses/{busy}/balances:listErc20?pageSize=100&filterSpamTokens=false"
        result = data(demo, path)
        assert int(result["nativeTokenBalance"]["balance"]) == int(state.at(head, "native", busy.lower()))
        known = {row["address"].lower(): int(row["balance"]) for row in result["erc20TokenBalances"]}
        assert len(known) >= 12
        for token, amount in known.items():
            assert amount == int(state.at(head, "erc20", token, busy.lower())), token


def test_data_uris_give_metadata_and_nothing_was_fetched(demo: Server) -> None:
    owned = data(demo, f"{C_CHAIN}/addresses/{C_BUSY}/balances:listErc721?pageSize=50")["erc721TokenBalances"]
    read = {nft["tokenId"]: nft["metadata"]["name"] for nft in owned if nft["metadata"]["indexStatus"] == "indexed"}
    assert "Art 9" in read.values()
    assert all(nft["tokenUri"].startswith("data:") for nft in owned if nft["tokenId"] in read)
    with closing(sqlite3.connect(f"file:{store_path(demo.data_dir, '43112')}?mode=ro", uri=True)) as connection:
        web = "select count(*) from nft where (token_uri like 'http%' or token_uri like 'ipfs://Qm%')"
        until(lambda: bool(connection.execute(web).fetchone()[0] > 20), "the other URIs known")
        assert connection.execute(f"{web} and status <> 'UNINDEXED'").fetchone()[0] == 0


# -- living on -----------------------------------------------------------------------------------------------------


# -- the examples of /docs and OpenAPI --------------------------------------------------------------------------------

VERTICES = "/v1/networks/{network}/blockchains/{blockchainId}/vertices"  # no network here has any
PROPOSED = "/v1/networks/{network}/blockchains/{blockchainId}/nodes/{nodeId}/blocks"  # no block of the demo is signed
REST_EXAMPLES = [
    (listener, row)
    for listener in LISTENERS
    for row in rows_of(listener)
    if isinstance(row, Rest)
    and row.media == "application/json"
    and not row.path.startswith((WEBHOOKS, OPERATIONS, VERTICES, PROPOSED))
    and not row.path.endswith("/abi")  # none is stored, and only a key of an administrator may add one
]
# Needs a transaction that was not issued before; a profiler that runs; an upstream; an L1.
CANNOT_REPEAT = {"avm.issueTx", "admin.stopCPUProfiler", "platform.issueTx", "platform.getL1Validator"}
RPC_EXAMPLES = [row for row in ENDPOINTS if isinstance(row, Rpc) and row.method not in CANNOT_REPEAT]


@pytest.mark.parametrize(("listener", "row"), REST_EXAMPLES, ids=lambda one: one if isinstance(one, str) else one.label)
def test_every_example_returns_something(listener: str, row: Rest, demo: Server) -> None:
    body = json.dumps(row.body_example).encode() if row.body is not None else b""
    reply = demo.ask(row.verb.replace("*", "GET"), example_path(row), body, listener=listener)
    assert reply.status == row.success, reply
    if row.success == 201:
        assert reply.body == b""
        return
    assert reply.json()
    if row.body is not None:
        assert _has_something(reply.json())
        return
    if row.path == "/v1/apiLogs":
        return  # only requests with a key are logged, and the demo has no key
    until(lambda: _has_something(demo.ask("GET", example_path(row), listener=listener).json()), f"rows of {row.path}")


def test_every_example_of_webhooks_returns_something(demo: Server) -> None:
    """They need a webhook that exists, and those that show messages one that was sent. Nothing leaves this machine."""
    rows = [row for row in rows_of(DATA) if isinstance(row, Rest) and row.path.startswith(WEBHOOKS)]
    later = ("listWebhookMessages", "countWebhookMessages", "deactivateWebhook")
    body = json.dumps(WEBHOOK | {"url": "http://127.0.0.1:9/"}).encode()
    created = demo.ask("POST", WEBHOOKS, body, listener=DATA)
    assert created.status == 201, created
    for row in sorted(rows[1:], key=lambda row: later.index(row.operation) if row.operation in later else -1):
        path = row.path.replace("{id}", created.json()["id"])
        sent = json.dumps(row.body_example).encode() if row.body is not None else b""
        reply = demo.ask(row.verb, path, sent, listener=DATA)
        assert reply.status == row.success, (row.label, reply)
        assert _has_something(reply.json()), (row.label, reply)
    assert rows[0].operation == "createWebhook"
    assert {row.operation for row in rows} > set(later)


def _has_something(shown: dict[str, Any]) -> bool:
    """Requests are counted a second after they were answered, so that some lists are empty at first."""
    lists = [value for value in shown.values() if isinstance(value, list)]
    return not lists or any(lists) or set(shown) <= {"unindexedChains"}


@pytest.mark.parametrize("row", RPC_EXAMPLES, ids=lambda row: row.method)
def test_every_example_call_returns_a_result(row: Rpc, demo: Server) -> None:
    answer = demo.ask("POST", row.path, json.dumps(example_call(row)).encode()).json()
    assert "result" in answer, answer


def test_a_killed_replay_comes_back_at_its_address(demo: Server) -> None:
    rpc = data(demo, "/v1/chains")["chains"][0]["rpcUrl"]
    (replay,) = [process for process in family(demo.process.pid) if process.role == "replay"]
    os.kill(replay.pid, signal.SIGKILL)

    def back() -> bool:
        now = [process.pid for process in family(demo.process.pid) if process.role == "replay"]
        return bool(now) and now != [replay.pid]

    until(back, "another replay process")
    assert data(demo, "/v1/chains")["chains"][0]["rpcUrl"] == rpc
    began = time.time()
    until(lambda: synced(demo.data_dir, began), "the follower sees the head again")


def _is_served(server: Server, path: str) -> bool:
    return server.ask("GET", path, listener="data").status != 503


def test_a_second_start_has_nothing_left_to_do(folder: Path, demo: Server) -> None:
    assert demo.stop() == 0
    before = {chain: status(demo.data_dir, chain) for chain in CHAINS}
    began = time.time()
    with serving("up", folder, "--demo") as again:
        assert "being indexed now" not in start_text(again)
        for call in DATA_CALLS.values():
            # Without waiting for the indexer. The balance of an untrusted token waits for the replay, which starts too.
            until(partial(_is_served, again, call.path), "the replay to answer")
            assert call.seen(data(again, call.path))
        until(lambda: synced(again.data_dir, began), "the follower is at the head")
    for chain, blocks in CHAINS.items():
        first, second = before[chain], status(again.data_dir, chain)
        assert first is not None
        assert second is not None
        assert first.counts["blocks"] == second.counts["blocks"] == blocks
        assert first.counts["txs"] == second.counts["txs"]
