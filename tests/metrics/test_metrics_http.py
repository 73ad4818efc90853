"""The metrics API over HTTP: pages, tokens, refusals, and every row of METRICS under both of its names."""

import re
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.evm.recordings import derived
from tests.metrics import naive
from tests.metrics.scene import NOW, Scene
from tests.metrics.service import Service, info
from tests.metrics.synthetic import block

from icefall.access.page_tokens import ISSUE_STEP_S
from icefall.api.describing.openapi import document
from icefall.api.http.row import METRICS as LISTENER
from icefall.api.table import rows_of
from icefall.evm.reading.directory import ChainDirectory, EvmChain
from icefall.metrics.catalogue import METRICS, Metric
from icefall.metrics.rollup import SPAN_NAMES

DAY = 86_400
LONG_DAYS = 250
LONG_BEGIN = 20_000 * DAY
BLOCKCHAIN_ID = "2oYMBNV4eNHyqk2fjjV5nVQLDbtmNJzq5s3qs3Lo6ftnC6FByM"


@pytest.fixture(scope="module")
def scenes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Scene, Scene]]:
    folder = tmp_path_factory.mktemp("metrics")
    recorded, long = Scene(folder / "1.sqlite"), Scene(folder / "2.sqlite")
    recorded.put([one.rows for one in derived("anvil-1")])
    long.put([block(day + 1, LONG_BEGIN + day * DAY + 60, day % 3) for day in range(LONG_DAYS)])
    yield recorded, long
    recorded.close()
    long.close()


@pytest.fixture
def service(scenes: tuple[Scene, Scene], tmp_path: Path) -> Service:
    recorded, long = scenes
    first = info("31337", "Anvil", testnet=True, aliases=("anvil",))
    second = info("43112", "Long", blockchain_id=BLOCKCHAIN_ID, subnet_id="1" * 33)
    hidden = info("7", "Hidden", private=True)
    files = ((first, recorded.file), (second, long.file), (hidden, long.file))
    return Service(ChainDirectory(EvmChain(chain, file) for chain, file in files), tmp_path)


@pytest.fixture(scope="module")
def blocks() -> list[naive.Seen]:
    return naive.seen(derived("anvil-1"))


# -- version 1 ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
def test_every_series_of_version_1(metric: Metric, service: Service, blocks: list[naive.Seen]) -> None:
    answer = service.good(f"/v1/{metric.name}/31337")
    assert set(answer) == {"results", "status", "lastRun"}  # 46 days: one page
    assert answer["status"] == 200
    assert answer["lastRun"] == NOW
    counted = naive.series(metric.name, "day", blocks)
    assert [(point["timestamp"], point["value"]) for point in answer["results"]] == counted
    assert all(set(point) == {"timestamp", "value"} for point in answer["results"])


def test_pages_of_a_hundred_days_newest_first(service: Service) -> None:
    days, target, tokens = [], "/v1/avg_tps/43112", []
    while True:
        answer = service.good(target)
        days += [point["timestamp"] for point in answer["results"]]
        if "nextPageToken" not in answer:
            break
        tokens.append(answer["nextPageToken"])
        assert str(uuid.UUID(tokens[-1])) == tokens[-1]
        target = f"/v1/avg_tps/43112?pageToken={tokens[-1]}"
    assert len(tokens) == 2
    assert days == [LONG_BEGIN + day * DAY for day in reversed(range(LONG_DAYS))]


def test_a_page_token_expires_after_a_day(service: Service) -> None:
    token = service.good("/v1/avg_tps/43112")["nextPageToken"]
    service.now += DAY
    second = service.good(f"/v1/avg_tps/43112?pageToken={token}")
    assert len(second["results"]) == 100
    service.now += ISSUE_STEP_S
    assert "start again from the first page" in service.refused(f"/v1/avg_tps/43112?pageToken={token}")
    service.good(f"/v1/avg_tps/43112?pageToken={second['nextPageToken']}")


def test_a_page_token_keeps_its_position_while_days_are_added(tmp_path: Any) -> None:
    scene = Scene(tmp_path / "chain.sqlite")
    scene.put([block(day + 1, LONG_BEGIN + day * DAY, 1) for day in range(150)])
    service = Service(ChainDirectory([EvmChain(info("1"), scene.file)]), tmp_path)
    token = service.good("/v1/tx_count/1")["nextPageToken"]
    scene.put([block(day + 1, LONG_BEGIN + day * DAY, 1) for day in range(150, 160)])
    rest = service.good(f"/v1/tx_count/1?pageToken={token}")
    assert [point["timestamp"] for point in rest["results"]] == [LONG_BEGIN + day * DAY for day in reversed(range(50))]
    scene.close()


def test_the_current_day_is_included_and_grows(tmp_path: Any) -> None:
    scene = Scene(tmp_path / "chain.sqlite")
    scene.put([block(1, LONG_BEGIN, 3), block(2, LONG_BEGIN + 10, 1)])
    service = Service(ChainDirectory([EvmChain(info("1"), scene.file)]), tmp_path)
    assert service.good("/v1/avg_tps/1")["results"] == [{"timestamp": LONG_BEGIN, "value": 0.4}]
    scene.put([block(3, LONG_BEGIN + 16, 4)])
    assert service.good("/v1/avg_tps/1")["results"] == [{"timestamp": LONG_BEGIN, "value": 0.5}]
    scene.put([block(4, LONG_BEGIN + DAY, 2)])
    newest = service.good("/v1/avg_tps/1")["results"][0]
    assert newest == {"timestamp": LONG_BEGIN + DAY, "value": 2 / (DAY - 16)}
    scene.close()


def test_altered_tokens_and_tokens_of_other_queries_are_refused(service: Service) -> None:
    token = service.good("/v1/avg_tps/43112")["nextPageToken"]
    for at in (0, 9, 25, 35):
        altered = token[:at] + ("0" if token[at] != "0" else "1") + token[at + 1 :]
        assert "pageToken" in service.refused(f"/v1/avg_tps/43112?pageToken={altered}")
    assert "pageToken" in service.refused(f"/v1/max_tps/43112?pageToken={token}")
    assert "pageToken" in service.refused(f"/v1/avg_tps/31337?pageToken={token}")
    assert "pageToken" in service.refused(f"/v2/chains/43112/metrics/avgTps?pageToken={token}")
    assert "pageToken" in service.refused("/v1/avg_tps/43112?pageToken=nonsense")


def test_unknown_chains_and_series(service: Service) -> None:
    assert "99" in service.refused("/v1/avg_tps/99", 404)
    assert "99" in service.refused("/v2/chains/99", 404)
    service.refused("/v1/avg_tpm/43112", 404)
    assert "avgTpm" in service.refused("/v2/chains/43112/metrics/avgTpm")
    assert "activeSenders" in service.refused("/v2/chains/43112/rollingWindowMetrics/activeSenders")


def test_a_chain_is_found_by_alias_and_blockchain_id(service: Service) -> None:
    by_id = service.good("/v1/tx_count/31337")
    assert service.good("/v1/tx_count/anvil") == by_id
    assert service.good(f"/v2/chains/{BLOCKCHAIN_ID}")["evmChainId"] == 43112


def test_the_list_of_metrics_is_the_table(service: Service) -> None:
    answer = service.good("/v1/metrics")["metrics"]
    assert [row["name"] for row in answer] == [metric.name for metric in METRICS]
    for row in answer:
        assert service.get(f"/v1/{row['name']}/31337").status == 200
        for interval in row["timeIntervals"]:
            target = f"/v2/chains/31337/metrics/{row['chainMetric']}?timeInterval={interval}"
            assert service.get(target).status == 200
        rolling = service.get(f"/v2/chains/31337/rollingWindowMetrics/{row['chainMetric']}")
        assert rolling.status == (200 if row["rollingWindows"] else 400)


# -- version 2 ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.camel_name)
def test_every_series_of_version_2(metric: Metric, service: Service, blocks: list[naive.Seen]) -> None:
    for span, interval in enumerate(SPAN_NAMES):
        target = f"/v2/chains/31337/metrics/{metric.camel_name}?timeInterval={interval}&pageSize=2160"
        if span not in metric.spans:
            assert interval in service.refused(target)
            continue
        answer = service.good(target)
        assert set(answer) == {"results"}
        counted = naive.series(metric.name, interval, blocks)
        assert [(point["timestamp"], point["value"]) for point in answer["results"]] == counted


@pytest.mark.parametrize("interval", SPAN_NAMES)
def test_any_page_size_gives_the_same_series(interval: str, service: Service) -> None:
    target = f"/v2/chains/31337/metrics/txCount?timeInterval={interval}"
    whole = service.good(f"{target}&pageSize=2160")["results"]
    found, token = [], ""
    for size in (1, 7, 100, 333, 2160):
        answer = service.good(f"{target}&pageSize={size}{token}")  # the size may change between pages
        found += answer["results"]
        if "nextPageToken" not in answer:
            break
        token = f"&pageToken={answer['nextPageToken']}"
    assert found == whole


def test_a_range_includes_its_start_and_excludes_its_end(service: Service) -> None:
    """As the hosted service does: for 1 to 31 August at midnight, its newest point is the 30th."""
    target = "/v2/chains/43112/metrics/txCount"
    begin, end = LONG_BEGIN + 10 * DAY, LONG_BEGIN + 40 * DAY

    def days(query: str) -> list[int]:
        return [(point["timestamp"] - LONG_BEGIN) // DAY for point in service.good(f"{target}?{query}")["results"]]

    assert days(f"startTimestamp={begin}&endTimestamp={end}") == list(reversed(range(10, 40)))
    assert days(f"startTimestamp={begin + 1}&endTimestamp={end + 1}") == list(reversed(range(11, 41)))
    assert days(f"endTimestamp={LONG_BEGIN}") == []
    assert days(f"startTimestamp={LONG_BEGIN + LONG_DAYS * DAY}") == []
    assert days(f"startTimestamp={begin}&endTimestamp={begin}") == []
    answer = service.good(f"{target}?startTimestamp={begin}&endTimestamp={end}&pageSize=20")
    rest = days(f"startTimestamp={begin}&endTimestamp={end}&pageToken={answer['nextPageToken']}")
    assert rest == list(reversed(range(10, 20)))
    assert "startTimestamp" in service.refused(f"{target}?startTimestamp={end}&endTimestamp={begin}")
    for wrong in ("pageSize=0", "pageSize=2161", "timeInterval=year", "startTimestamp=-1", "endTimestamp=x"):
        assert wrong.partition("=")[0] in service.refused(f"{target}?{wrong}")


@pytest.mark.parametrize("metric", [metric for metric in METRICS if metric.has_rolling], ids=lambda metric: metric.name)
def test_rolling_windows_end_with_the_clock(metric: Metric, service: Service, blocks: list[naive.Seen]) -> None:
    service.now = blocks[-40].time + 0.9
    answer = service.good(f"/v2/chains/31337/rollingWindowMetrics/{metric.camel_name}")
    windows = {"lastHour": 3600, "lastDay": DAY, "lastMonth": 30 * DAY, "lastYear": 365 * DAY, "allTime": None}
    assert answer == {
        "result": {
            name: naive.window(metric.name, seconds, int(service.now), blocks) for name, seconds in windows.items()
        }
    }


def test_list_of_chains(service: Service) -> None:
    anvil = {"evmChainId": 31337, "chainName": "Anvil", "blockchainId": "", "subnetId": "", "network": "testnet"}
    answer = service.good("/v2/chains")
    assert [chain["evmChainId"] for chain in answer["chains"]] == [31337, 43112]
    assert "nextPageToken" not in answer
    assert service.good("/v2/chains?network=testnet") == service.good("/v2/chains?network=fuji") == {"chains": [anvil]}
    assert [chain["chainName"] for chain in service.good("/v2/chains?network=mainnet")["chains"]] == ["Long"]
    assert service.good("/v2/chains/31337") == anvil


def test_list_of_chains_is_paged(scenes: tuple[Scene, Scene], tmp_path: Path) -> None:
    infos = [info(str(number)) for number in range(1, 251)]
    service = Service(ChainDirectory(EvmChain(one, scenes[0].file) for one in infos), tmp_path)
    found, query = [], ""
    while query is not None:
        answer = service.good(f"/v2/chains{query}")
        found += [chain["evmChainId"] for chain in answer["chains"]]
        query = f"?pageToken={answer['nextPageToken']}" if "nextPageToken" in answer else None  # type: ignore[assignment]
    assert found == list(range(1, 251))
    assert service.good("/v2/chains/7")["chainName"] == "Chain 7"  # no name configured


def test_amounts_are_exact_numbers(service: Service, blocks: list[naive.Seen]) -> None:
    """In wei, beyond what 64 bits hold, and averages with every digit they have."""
    raw = service.get("/v2/chains/31337/rollingWindowMetrics/feesPaid").body.decode()
    total = sum(one.fees for one in blocks)
    assert re.search(rf'"allTime":{total}\b', raw)
    shown = service.get("/v1/avg_tps/31337").body.decode()
    assert any(len(digits) > 10 for digits in re.findall(r'"value":0\.(\d+)', shown))


def test_the_document_names_every_path() -> None:
    paths = document(LISTENER, rows_of(LISTENER), "0")["paths"]
    for metric in METRICS:
        assert f"/v1/{metric.name}/{{chainId}}" in paths
    assert "/v2/chains/{chainId}/metrics/{metric}" in paths


def test_the_health_check_names_every_chain(service: Service) -> None:
    """These stores have no indexer's status, so every chain is down."""
    shown = service.good("/v2/health-check")
    assert (shown["status"], shown["info"]) == ("error", {"store": {"status": "up"}})
    assert set(shown["error"]) == {"chain-31337", "chain-43112", "chain-7"}
    assert service.get("/v2/health-check?strict=true").status == 503
