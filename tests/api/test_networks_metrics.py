"""Series by day of recorded networks against a naive second reading, with days of a few seconds."""

from collections.abc import Iterator
from typing import Any

import pytest
from tests.api.days_naive import ALL, NaiveDays
from tests.api.networks_scene import NetworkScene, network_scene
from tests.api.staking_naive import PRIMARY

from icefall.api.networks.handlers import metrics as handlers
from icefall.api.networks.schema.metrics import NODE_FEES, STAKE_SERIES, SUBNET_FEES, TOTAL_FEES, VALIDATION_FEES
from icefall.pchain import day_sums, l1_fees, state
from icefall.wire.ids import NODE_ID_PREFIX, id_text, short_id_text

DAY_S = 17


@pytest.fixture(scope="module", params=["p-forks-1", "p-local-1"])
def scene(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[NetworkScene]:
    with pytest.MonkeyPatch.context() as patch:
        for module in (day_sums, l1_fees, state, handlers):
            patch.setattr(module, "DAY_S", DAY_S)
        with network_scene(request.param, tmp_path_factory.mktemp("network")) as found:
            yield found


@pytest.fixture(scope="module")
def naive(scene: NetworkScene) -> NaiveDays:
    return NaiveDays(scene.playback, DAY_S)


def series(scene: NetworkScene, target: str) -> list[tuple[int, int]]:
    status, answer = scene.get(target)
    assert status == 200, answer
    return [(one["timestamp"], one["value"]) for one in answer["results"]]


def test_what_is_staked_at_the_end_of_each_day(scene: NetworkScene, naive: NaiveDays) -> None:
    subnets = {one.subnet for one in naive.stakes} | {one.subnet for one in naive.l1.values()}
    assert len(subnets) > 2
    for subnet in (ALL, *subnets):
        query = f"&subnetId={id_text(subnet)}" if subnet != ALL else ""
        for metric in STAKE_SERIES:
            field = ("validatorCount", "validatorWeight", "delegatorCount", "delegatorWeight").index(metric)
            shown = series(scene, f"/v2/networks/fuji/metrics/{metric}?pageSize=2160{query}")
            expected = naive.stake_series(subnet, field)[:2160]
            assert shown[: len(expected)] == expected, (metric, subnet)
            assert not any(value for _, value in shown[len(expected) :])  # one began and ended within a block
    assert len(naive.stake_series(PRIMARY, 0)) > 10


def test_pages_and_frames_of_stakes(scene: NetworkScene, naive: NaiveDays) -> None:
    expected = naive.stake_series(PRIMARY, 3)[:60]
    target = f"/v2/networks/fuji/metrics/delegatorWeight?subnetId={id_text(PRIMARY)}"
    since = f"&startTimestamp={expected[-1][0]}"
    found: list[tuple[int, int]] = []
    token = ""
    while True:
        answer = scene.get(f"{target}{since}&pageSize=7{token}")[1]
        found += [(one["timestamp"], one["value"]) for one in answer["results"]]
        assert len(answer["results"]) <= 7
        if "nextPageToken" not in answer:
            break
        token = f"&pageToken={answer['nextPageToken']}"
    assert found == expected
    start, end = expected[-3][0], expected[2][0]
    framed = series(scene, f"{target}&startTimestamp={start}&endTimestamp={end}&pageSize=2160")
    assert framed == [one for one in expected if start <= one[0] < end]
    assert scene.get(f"{target}&startTimestamp=20&endTimestamp=10")[0] == 400
    assert series(scene, f"/v2/networks/fuji/metrics/validatorCount?subnetId={id_text(bytes(31) + b'1')}") == []


def test_what_l1_validators_pay(scene: NetworkScene, naive: NaiveDays) -> None:
    assert naive.fees_of
    scopes: list[tuple[str, dict[str, str], set[bytes]]] = [("/v2/validators", TOTAL_FEES, set(naive.l1))]
    scopes += [(f"/v2/validation/{id_text(key)}", VALIDATION_FEES, {key}) for key in naive.l1]
    for subnet in {one.subnet for one in naive.l1.values()}:
        some = {key for key, one in naive.l1.items() if one.subnet == subnet}
        scopes.append((f"/v2/subnet/{id_text(subnet)}", SUBNET_FEES, some))
    for node in {one.node for one in naive.l1.values()}:
        some = {key for key, one in naive.l1.items() if one.node == node}
        scopes.append((f"/v2/validator/{NODE_ID_PREFIX}{short_id_text(node)}", NODE_FEES, some))
    for path, metrics, some in scopes:
        for metric, kind in metrics.items():
            assert series(scene, f"{path}/metrics/{metric}") == naive.fee_series(some, kind), (path, metric)
    newest = series(scene, "/v2/validators/metrics/totalCumulativeFeesDaily")
    assert newest[0][1] == naive.l1_fees
    last = series(scene, f"/v2/validators/metrics/totalValidatorFeesDaily?startTimestamp={newest[0][0]}")
    assert last == naive.fee_series(set(naive.l1), "paid")[:1]
    assert scene.get("/v2/validators/metrics/validatorCount")[0] in (400, 404)


def test_who_gets_rewards(scene: NetworkScene, naive: NaiveDays) -> None:
    stakes = [one for one in naive.stakes if not one.is_delegator and one.subnet == PRIMARY][::-1]
    target = f"/v2/subnets/{id_text(PRIMARY)}/validators:getAddresses"
    found: list[dict[str, Any]] = []
    token = ""
    while True:
        status, answer = scene.get(f"{target}?pageSize=2{token}")
        assert status == 200, answer
        found += answer["addresses"]
        if "nextPageToken" not in answer:
            break
        token = f"&pageToken={answer['nextPageToken']}"
    assert [one["addresses"] for one in found] == [scene.network.addresses(one.owner.addresses) for one in stakes]
    times = [int(one["sortKey"]) for one in found]
    assert times == sorted(times, reverse=True)
    middle = times[len(times) // 2]
    framed = scene.get(f"{target}?startTimestamp={middle}&endTimestamp={times[0]}&network=fuji")[1]["addresses"]
    assert framed == [one for one in found if middle <= int(one["sortKey"]) < times[0]]
    assert scene.get(f"{target}?network=mainnet")[0] == 404


def test_fees_of_before_are_not_guessed(scene: NetworkScene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scene.network.days, "_has_fees", False)
    store = scene.playback.store
    scene.run(store.write(lambda tx: tx.run("insert into meta (name, value) values ('p_l1_fees_missing', '1')")))
    status, answer = scene.get("/v2/validators/metrics/totalValidatorFeesDaily")
    scene.run(store.write(lambda tx: tx.run("delete from meta where name = 'p_l1_fees_missing'")))
    assert status == 503
    assert "new --data-dir" in answer["message"]
