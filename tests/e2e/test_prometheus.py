"""/ext/metrics of a running instance: well-formed, nothing counted twice, every process; and the files in deploy/."""

import json
import re
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from tests.counterparts import program
from tests.demo.prepared import demo_serving
from tests.e2e.program import family
from tests.server import Server
from tests.waiting import until

from icefall.api.http.service import METRICS

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
LISTENERS = ("node", "data", "metrics")
SAMPLE = re.compile(r"^(icefall_\w+)\{(.*)\} (\S+)$", re.MULTILINE)
USED = re.compile(r"\bicefall_\w+")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with demo_serving(tmp_path_factory.mktemp("metrics"), "--http-workers=2") as server:
        until(lambda: b'icefall_chain_healthy{chain="43112"} 1' in scraped(server, "node"), "an indexed chain")
        yield server


def scraped(server: Server, listener: str) -> bytes:
    return server.ask("GET", "/ext/metrics", listener=listener).body


def test_promtool_finds_nothing_wrong(server: Server) -> None:
    for listener in LISTENERS:
        done = subprocess.run(
            [program("promtool"), "check", "metrics"], input=scraped(server, listener), capture_output=True, check=False
        )
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_no_sample_is_reported_twice(server: Server) -> None:
    """But those of calls: they have a target each."""
    samples = [(name, labels) for one in LISTENERS for name, labels, _ in SAMPLE.findall(scraped(server, one).decode())]
    others = Counter(sample for sample in samples if not sample[0].startswith("icefall_api_"))
    assert [sample for sample, times in others.items() if times > 1] == []
    assert {name for name, _ in others} >= {"icefall_chain_block", "icefall_store_size_bytes", "icefall_build_info"}


def test_calls_are_counted_by_the_listener_that_answered(server: Server) -> None:
    def calls(listener: str) -> float:
        text = scraped(server, listener).decode()
        return sum(
            float(value) for name, labels, value in SAMPLE.findall(text) if "GET /docs" in labels and "calls" in name
        )

    before = {listener: calls(listener) for listener in LISTENERS}
    for _ in range(5):
        assert server.ask("GET", "/docs", listener="data").status == 200
    assert {listener: calls(listener) - before[listener] for listener in LISTENERS} == {
        "node": 0,
        "data": 5,
        "metrics": 0,
    }


def test_every_process_is_included_once(server: Server) -> None:
    def reported() -> list[int]:
        texts = (scraped(server, listener).decode() for listener in LISTENERS)
        return sorted(
            int(pid) for text in texts for pid in re.findall(r'open_fds\{process="[\w-]+",pid="(\d+)"\}', text)
        )

    until(lambda: reported() == sorted(one.pid for one in family(server.process.pid)), "a moment without a new process")
    roles = set(re.findall(r'open_fds\{process="([\w-]+)"', scraped(server, "node").decode()))
    assert {"supervisor", "engine", "indexer", "replay", "node"} <= roles
    assert not any(role.startswith(("data", "metrics")) for role in roles)


def test_every_name_is_documented_and_follows_the_conventions(server: Server) -> None:
    seen = {name for listener in LISTENERS for name, _, _ in SAMPLE.findall(scraped(server, listener).decode())}
    assert seen <= {metric.name for metric in METRICS}
    page = (ROOT / "docs" / "operating.md").read_text()
    for metric in METRICS:
        assert f"`{metric.name}`" in page
        assert metric.name.endswith("_total") == (metric.type == "counter")


def test_alerts_and_dashboard_use_names_that_exist() -> None:
    known = {metric.name for metric in METRICS}
    rules = yaml.safe_load((DEPLOY / "prometheus" / "icefall-alerts.yml").read_text())
    expressions = [rule["expr"] for group in rules["groups"] for rule in group["rules"]]
    dashboard = json.loads((DEPLOY / "grafana" / "icefall.json").read_text())
    expressions += [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    assert len(expressions) > 20
    assert {name for one in expressions for name in USED.findall(one)} <= known
    page = (ROOT / "docs" / "operating.md").read_text()
    assert [rule["alert"] for group in rules["groups"] for rule in group["rules"] if rule["alert"] not in page] == []


def test_promtool_accepts_the_files() -> None:
    for words in (["check", "rules", "icefall-alerts.yml"], ["check", "config", "prometheus.yml"],
                  ["test", "rules", "icefall-alerts.test.yml"]):  # fmt: skip
        done = subprocess.run(
            [program("promtool"), *words], cwd=DEPLOY / "prometheus", capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
