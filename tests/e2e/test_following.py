"""`icefall node --upstream`: the real program follows a recorded node and serves what it followed."""

import os
import random
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.program import kill_all, outcome
from tests.ports import held_port
from tests.server import Server, serving
from tests.upstream.replay import Replay
from tests.upstream.threaded import in_thread
from tests.waiting import until
from tests.xchain.stored import digest

TIP = {"X": 176, "P": 13, "C": 12}
KILLS = int(os.environ.get("ICEFALL_FUZZ_CRASHES", "3"))


def settings(*upstreams: Replay) -> list[str]:
    return [f"--upstream={','.join(one.url for one in upstreams)}", "--index-enabled=true"]


P = "/ext/bc/P"
NODE = "NodeID-7Xhw2mDxuDS44j42TCB6U5579esbSt3Lg"  # of the local network


def last(server: Server, chain: str) -> int:
    answer = server.call(f"/ext/index/{chain}/block", "index.getLastAccepted")
    return int(answer["result"]["index"]) + 1 if "result" in answer else 0


def until_tip(server: Server, **tip: int) -> None:
    until(lambda: all(last(server, chain) >= count for chain, count in {**TIP, **tip}.items()), "the upstream's tip")


def check(server: Server, name: str) -> Any:
    return server.ask("GET", "/ext/health").json()["checks"][name]


def observed(data_dir: Path) -> list[Any]:
    with closing(sqlite3.connect(f"file:{data_dir / 'node.sqlite'}?mode=ro", uri=True)) as store:
        return store.execute("select uptime, is_connected from observed_node").fetchall()


def test_a_recorded_node_is_followed_to_its_tip_and_beyond(tmp_path: Path) -> None:
    with in_thread(Replay()) as upstream:
        upstream.show(X=100)
        with serving("node", tmp_path, *settings(upstream)) as server:
            until_tip(server, X=100)
            assert server.call("/ext/bc/X", "avm.getHeight")["result"]["height"] == "100"
            upstream.show(X=176)
            until_tip(server)
            assert check(server, "X")["message"]["following"]["state"] == "following"
            assert check(server, "network")["message"]["connectedPeers"] == 1
            assert server.ask("GET", "/ext/health").status == 200
        with serving("node", tmp_path, *settings(upstream)) as server:  # goes on where it stopped
            until_tip(server)
            fetched = [params for method, params in upstream.calls if method == "index.getContainerRange"]
            assert not [params for params in fetched[-3:] if int(params["startIndex"]) == 0 and len(fetched) > 6]


@pytest.mark.parametrize("dialect", ["interface", "live"])
def test_a_bootstrapping_chain_refuses_calls_and_health_reports_its_progress(dialect: str, tmp_path: Path) -> None:
    with in_thread(Replay()) as upstream:
        upstream.bootstrapped["P"] = False  # X's first import waits for P
        upstream.show(P=0)
        with serving("node", tmp_path, *settings(upstream), f"--dialect={dialect}", ready=False) as server:
            until(lambda: last(server, "X") > 0, "the first blocks of X")
            answer = server.ask("GET", "/ext/bc/X")
            assert answer.status == 503
            text = "API call rejected because chain is not done bootstrapping"
            if dialect == "live":
                assert answer.body.decode() == text + "\n"
            else:
                assert answer.json() == {"jsonrpc": "2.0", "error": {"code": -32000, "message": text}, "id": None}
            assert server.ask("GET", "/ext/health/readiness").status == 503
            assert not server.call("/ext/info", "info.isBootstrapped", {"chain": "X"})["result"]["isBootstrapped"]
            upstream.show(P=13)  # before it says that this is all
            upstream.bootstrapped["P"] = True
            until_tip(server)
            server.await_ready()
            assert server.call("/ext/bc/X", "avm.getHeight")["result"]["height"] == "176"
            assert server.call("/ext/info", "info.isBootstrapped", {"chain": "X"})["result"]["isBootstrapped"]


def test_transactions_are_forwarded_and_refusals_are_the_upstreams(tmp_path: Path) -> None:
    with in_thread(Replay()) as upstream, serving("node", tmp_path, *settings(upstream)) as server:
        until_tip(server)
        server.await_ready()
        row = server.call("/ext/index/X/tx", "index.getContainerByIndex", {"index": "0"})["result"]
        answer = server.call("/ext/bc/X", "avm.issueTx", {"tx": row["bytes"]})
        assert upstream.issued == [row["bytes"]]
        assert "txID" in answer["result"]
        upstream.refuse_issue = "failed to verify transfer: overflow"
        answer = server.call("/ext/bc/X", "avm.issueTx", {"tx": row["bytes"]})
        assert answer["error"]["message"] == "failed to verify transfer: overflow"


def test_what_only_a_running_node_knows_of_p_comes_from_the_upstream(tmp_path: Path) -> None:
    replay = Replay()
    replay.platform = {"platform.getCurrentValidators": {"validators": [{"nodeID": NODE, "connected": True}]}}
    with in_thread(replay) as upstream, serving("node", tmp_path, *settings(upstream)) as server:
        until_tip(server)
        server.await_ready()
        until(lambda: observed(server.data_dir) == [(0, 1)], "what the engine asks for in the background")
        validators = server.call(P, "platform.getCurrentValidators")["result"]["validators"]
        assert len(validators) == 5
        assert not {"uptime", "connected"} & validators[0].keys()  # this upstream does not say
        node_id = validators[1]["nodeID"]
        seen = {"nodeID": node_id, "uptime": "99.5000", "connected": True}
        upstream.platform = {
            "platform.getCurrentValidators": {"validators": [seen]},
            "platform.getProposedHeight": {"height": "7"},
            "platform.getTxStatus": {"status": "Dropped", "reason": "too late"},
            "platform.getBlockchainStatus": {"status": "Validating"},
        }
        (one,) = server.call(P, "platform.getCurrentValidators", {"nodeIDs": [node_id]})["result"]["validators"]
        assert {key: one[key] for key in seen} == seen
        assert server.call(P, "platform.getProposedHeight")["result"] == {"height": "7"}
        unknown = {"txID": "2JVSBoinj9C2J33VntvzYtVJNZdN2NKiwwKjcumHUWEb5DbBrm"}
        assert server.call(P, "platform.getTxStatus", unknown)["result"] == {"status": "Dropped", "reason": "too late"}
        upstream.platform["platform.getTxStatus"] = {"status": "Committed"}  # in a block that we do not have yet
        assert server.call(P, "platform.getTxStatus", unknown)["result"] == {"status": "Processing"}
        status = server.call(P, "platform.getBlockchainStatus", {"blockchainID": "X"})["result"]
        assert status == {"status": "Validating"}
        first = server.call(P, "platform.getBlockByHeight", {"height": 1, "encoding": "json"})["result"]["block"]
        tx = server.call(P, "platform.getTx", {"txID": first["txs"][0]["id"], "encoding": "hex"})["result"]["tx"]
        assert "txID" in server.call(P, "platform.issueTx", {"tx": tx})["result"]
        assert upstream.issued == [tx]
        upstream.refuse_issue = "couldn't issue tx: tx conflicts"
        assert server.call(P, "platform.issueTx", {"tx": tx})["error"]["message"] == upstream.refuse_issue


def test_an_upstream_with_only_its_index_is_checked_by_its_containers(tmp_path: Path) -> None:
    with in_thread(Replay()) as upstream:
        upstream.unknown = {"info.getNetworkID", "info.getBlockchainID", "info.isBootstrapped"}
        with serving("node", tmp_path, *settings(upstream)) as server:
            until_tip(server)


def test_starts_that_cannot_succeed_are_refused_with_what_to_do(tmp_path: Path) -> None:
    with in_thread(Replay()) as upstream:
        upstream.index_on = False
        ended = outcome("node", tmp_path / "off", *settings(upstream))
        assert ended.code == 1
        assert "--index-enabled=true" in ended.said
        upstream.index_on, upstream.network_id = True, 5
        ended = outcome("node", tmp_path / "other", *settings(upstream))
        assert ended.code == 1
        assert "network 5" in ended.said


def test_an_unreachable_upstream_is_retried(tmp_path: Path) -> None:
    with held_port() as port:  # where nothing listens
        upstream = f"--upstream=http://127.0.0.1:{port}"
        with serving("node", tmp_path, upstream, "--index-enabled=true", ready=False) as server:
            why = "not connected to a minimum of 1 peer(s) only 0"
            until(lambda: why in check(server, "network").get("error", ""), "the network check to fail")
            assert server.ask("GET", "/ext/health").status == 503
            assert server.ask("GET", "/ext/health/liveness").status == 200


def test_kill_9_while_following_loses_nothing(tmp_path: Path) -> None:
    """The whole program, while the upstream's tip moves. tests/sync/test_crashes.py hits every single write."""
    source = random.Random(20261115)
    with in_thread(Replay()) as upstream:
        with serving("node", tmp_path / "clean", *settings(upstream)) as server:
            until_tip(server)
        for part in range(1, KILLS + 1):
            upstream.show(**{chain: count * part // (KILLS + 1) for chain, count in TIP.items()})
            with serving("node", tmp_path / "killed", *settings(upstream), ready=False, code=-9) as server:
                upstream.show(**{chain: count * (part + 1) // (KILLS + 1) for chain, count in TIP.items()})
                time.sleep(source.uniform(0.0, 0.8))
                kill_all(server)
        upstream.show(**TIP)
        with serving("node", tmp_path / "killed", *settings(upstream)) as server:
            until_tip(server)
    assert digest(tmp_path / "killed" / "data") == digest(tmp_path / "clean" / "data")
