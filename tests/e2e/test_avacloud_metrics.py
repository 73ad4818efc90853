"""The official client's metrics calls: it checks every answer against its own schemas."""

import json
import subprocess
from pathlib import Path
from typing import Any

from tests.api.data_scene import put_chains
from tests.counterparts import npm_project, program
from tests.server import serving
from tests.waiting import LIMIT_S

from icefall.metrics.catalogue import METRICS
from icefall.metrics.rollup import SPAN_NAMES

HERE = Path(__file__).parent / "avacloud"
CHAIN, ID = "anvil-1", "31337"
TOKEN = {"address": "0x051c35FA78C63222976BCe3B1E72f19aF7d5ad38"}
NFT = {"address": "0xc224Cf3A43BFd49ee69cE6b3BB9E95aD39364Cdf"}
TRANSACTIONS, SIDES = "metrics.chains.getTeleporterMetrics", ("Source", "Destination", "Total")
DAYS = (1_707_600_000, 1_711_500_000)


def calls() -> list[tuple[str, Any]]:
    requests: list[tuple[str, Any]] = [("metrics.chains.list", {}), ("metrics.chains.get", {"chainId": ID})]
    requests += [("metrics.healthCheck", None)]
    requests += [("metrics.chains.listNftHolders", {"chainId": ID, **NFT, "pageSize": 3})]
    above = {"chainId": ID, **TOKEN, "threshold": "1000", "pageSize": 3}
    requests += [("metrics.chains.listTokenHoldersAboveThreshold", above)]
    requests += [
        ("metrics.chains.listTokenHoldersAboveThreshold", above | {"startTimestamp": DAYS[0], "endTimestamp": DAYS[1]})
    ]
    holds = {"evmChainId": ID, "tokenType": "ERC20", "contractAddress": TOKEN["address"], "minBalance": "1"}
    queries = [{"id": "holders", "type": "LatestBalance", "params": holds}]
    requests += [("lookingGlass.compositeQuery", {"operator": "AND", "queries": queries, "pageSize": 3})]
    requests += [(TRANSACTIONS, {"chainId": ID, "metric": f"teleporter{one}TxnCount"}) for one in SIDES]
    for metric in METRICS:
        of = {"chainId": ID, "metric": metric.camel_name}
        requests += [
            ("metrics.chains.getMetrics", of | {"timeInterval": SPAN_NAMES[span], "pageSize": 10})
            for span in metric.spans
        ]
        between = {"startTimestamp": DAYS[0], "endTimestamp": DAYS[1], "timeInterval": "day", "pageSize": 2160}
        requests += [("metrics.chains.getMetrics", of | between)]
        if metric.has_rolling:
            requests += [("metrics.chains.getRollingWindowMetrics", of)]
    return requests


def test_the_real_client_takes_every_series(tmp_path: Path) -> None:
    folder = npm_project(HERE)
    put_chains(tmp_path, {CHAIN: "http://127.0.0.1:1"})
    requests = calls()
    with serving("metrics", tmp_path, f"--config-file={tmp_path / 'icefall.toml'}") as server:
        command = [program("node"), str(folder / "drive.js"), server.url("metrics"), json.dumps(requests)]
        done = subprocess.run(command, capture_output=True, timeout=LIMIT_S, check=False)
    assert done.returncode == 0, done.stderr.decode()
    results = json.loads(done.stdout)
    wrong = [(one, said["error"]) for one, said in zip(requests, results, strict=True) if "error" in said]
    assert wrong == []
    for (method, _), said in zip(requests, results, strict=True):
        if method.startswith("metrics.chains.list") and method != "metrics.chains.list":
            assert len(said["pages"]) > 1
            assert all(page["addresses"] for page in said["pages"])
    sent, received, both = (said["pages"][0]["result"]["value"] for said in results if said["method"] == TRANSACTIONS)
    assert 0 < sent + received == both
    assert sum(said["method"] == "lookingGlass.compositeQuery" and len(said["pages"]) > 1 for said in results) == 1
    for (method, request), said in zip(requests, results, strict=True):
        if method == "metrics.chains.getMetrics":
            points = [point for page in said["pages"] for point in page["results"]]
            assert len(points) > 1, request
            assert points == sorted(points, key=lambda point: -point["timestamp"])
            assert len(said["pages"]) > 1 or len(points) <= request["pageSize"]
