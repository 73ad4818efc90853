"""The gate before the chain data and metrics interfaces: keys, budgets, and what a caller is told of them."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.api.rest_scene import Scene
from tests.server import Reply

from icefall.access.clients import Proxies
from icefall.access.keeper import commands
from icefall.access.leases import Leases
from icefall.access.limits import METRICS as METRICS_TIER
from icefall.access.limits import UNAUTHENTICATED, Budgets, Tier, tiers_with
from icefall.access.store import AccessReader, add_key, ensure_store, open_reader, revoke_key
from icefall.api.endpoint import DATA, METRICS
from icefall.api.gate import AccessGate
from icefall.observe.log import quiet

NOW = 1_800_000_000 // 86_400 * 86_400
TIERS = tiers_with(
    [Tier(UNAUTHENTICATED, 30, 1000), Tier("free", 40, 1000), Tier("pro", 500, 50), Tier(METRICS_TIER, 25, 1000)]
)


class Door:
    """A gate over a real access store, with budgets of its own and a clock to turn."""

    def __init__(self, data_dir: Path) -> None:
        ensure_store(data_dir)
        self.data_dir = data_dir
        self.now = NOW
        self.reader = open_reader(data_dir)
        self._budgets = Budgets()

    async def _ask(self, name: str, **given: Any) -> Any:
        return commands(self._budgets, self._clock)[name](**given)

    def _clock(self) -> float:
        return float(self.now)

    def scene(self, listener: str = DATA, *, limited: bool = True, required: bool = False, proxies: str = "") -> Scene:
        return Scene(
            AccessGate(
                listener,
                AccessReader(self.reader) if listener == DATA else None,
                Leases(self._ask, 1, quiet(), self._clock) if limited else None,
                TIERS,
                UNAUTHENTICATED if listener == DATA else METRICS_TIER,
                Proxies(proxies.split()),
                keys_required=required,
            ),
            listener,
        )

    def key(self, name: str, tier: str) -> dict[str, str]:
        return {"x-service-api-key": add_key(self.data_dir, name, tier, NOW)}


@pytest.fixture
def door(tmp_path: Path) -> Iterator[Door]:
    made = Door(tmp_path)
    yield made
    made.reader.close()


def limits(reply: Reply) -> dict[str, str]:
    return {name: value for name, value in reply.headers if name.startswith("ratelimit") or name == "retry-after"}


# -- keys ----------------------------------------------------------------------------------------------------------


def test_without_limits_and_keys_nothing_is_said(door: Door) -> None:
    reply = door.scene(limited=False).get("/v1/chains")
    assert (reply.status, limits(reply)) == (200, {})


@pytest.mark.parametrize("limited", [True, False])
def test_an_unknown_key_is_401_and_a_revoked_one_403(limited: bool, door: Door) -> None:
    scene = door.scene(limited=limited)
    reply = scene.get("/v1/chains", {"x-service-api-key": "ice_nonsense"})
    assert (reply.status, reply.json()["error"]) == (401, "Unauthorized")
    assert reply.header("www-authenticate") == 'ApiKey header="x-service-api-key"'
    key = door.key("alice", "free")
    assert scene.get("/v1/chains", key).status == 200
    revoke_key(door.data_dir, "alice", NOW)
    reply = scene.get("/v1/chains", key)
    assert (reply.status, reply.json()["error"]) == (403, "Forbidden")
    assert scene.get("/v1/chains").status == 200


def test_either_header_holds_the_key(door: Door) -> None:
    scene = door.scene(required=True)
    key = door.key("alice", "free")["x-service-api-key"]
    for headers in ({"x-service-api-key": key}, {"X-Glacier-Api-Key": key}, {"x-glacier-api-key": key},
                    {"x-service-api-key": key, "x-glacier-api-key": key},
                    {"x-service-api-key": "", "x-glacier-api-key": key}):  # fmt: skip
        assert scene.get("/free", headers).status == 200
    reply = scene.get("/v1/chains", {"x-service-api-key": key, "x-glacier-api-key": key + "x"})
    assert (reply.status, reply.json()["message"]) == (
        400,
        "x-service-api-key and x-glacier-api-key hold different keys: send one",
    )


def test_where_keys_are_required_only_the_pages_are_open(door: Door) -> None:
    scene = door.scene(limited=False, required=True)
    reply = scene.get("/v1/chains")
    assert (reply.status, reply.json()["statusCode"], reply.json()["error"]) == (401, 401, "Unauthorized")
    assert "x-service-api-key" in reply.json()["message"]
    assert scene.get("/v1/chains", {"x-service-api-key": ""}).status == 401
    assert scene.get("/page").status == 200
    assert scene.get("/nothing").status == 404
    assert scene.get("/v1/chains", door.key("alice", "free")).status == 200


def test_metrics_take_no_keys(door: Door) -> None:
    assert door.scene(METRICS).get("/free", {"x-service-api-key": "ice_nonsense"}).status == 200


# -- budgets -------------------------------------------------------------------------------------------------------


def test_a_budget_is_spent_by_weight_and_told(door: Door) -> None:
    scene = door.scene()
    policy = {"ratelimit-policy": "30;w=60, 1000;w=86400", "ratelimit-limit": "30"}
    assert limits(scene.get("/v1/chains")) == policy | {"ratelimit-remaining": "10"}
    for left in range(9, -1, -1):
        assert limits(scene.get("/free")) == policy | {"ratelimit-remaining": str(left)}
    door.now += 45
    reply = scene.get("/free")
    assert (reply.status, reply.json()["error"]) == (429, "Too Many Requests")
    assert reply.json()["message"] == "the budget of 30 units a minute is spent: try again in 15 s"
    assert limits(reply) == policy | {"ratelimit-remaining": "0", "ratelimit-reset": "15", "retry-after": "15"}
    door.now += 15
    assert scene.get("/free").status == 200


def test_a_dear_call_is_refused_and_a_cheap_one_still_passes(door: Door) -> None:
    scene = door.scene()
    assert [scene.get(path).status for path in ("/v1/chains", "/v1/chains", "/free")] == [200, 429, 200]


def test_the_day_ends_a_budget_too(door: Door) -> None:
    scene, key = door.scene(), door.key("alice", "pro")
    assert [scene.get("/v1/chains", key).status for _ in range(3)] == [200, 200, 429]
    reply = scene.get("/v1/chains", key)
    assert limits(reply) == {
        "ratelimit-policy": "500;w=60, 50;w=86400",
        "ratelimit-limit": "50",
        "ratelimit-remaining": "10",
        "ratelimit-reset": "86400",
        "retry-after": "86400",
    }
    assert "50 units a day" in reply.json()["message"]


def test_failures_cost_and_are_told_too(door: Door) -> None:
    scene = door.scene()
    reply = scene.get("/missing")
    assert (reply.status, reply.header("ratelimit-remaining")) == (404, "10")
    reply = scene.get("/away")
    assert (reply.status, reply.header("retry-after")) == (429, "60")


def test_what_is_not_there_costs_nothing(door: Door) -> None:
    scene = door.scene()
    for _ in range(100):
        reply = scene.get("/nothing")
        assert (reply.status, limits(reply)) == (404, {})
    assert scene.get("/free").header("ratelimit-remaining") == "29"


def test_keys_and_addresses_have_budgets_of_their_own(door: Door) -> None:
    scene, alice, bob = door.scene(), door.key("alice", "free"), door.key("bob", "gone")

    async def statuses() -> None:
        assert [(await scene.ask("/v1/chains", alice)).status for _ in range(3)] == [200, 200, 429]
        # a tier that is not configured any more is as good as the least
        assert [(await scene.ask("/v1/chains", bob)).status for _ in range(3)] == [200, 200, 429]
        assert [(await scene.ask("/v1/chains")).status for _ in range(2)] == [200, 429]
        assert (await scene.ask("/v1/chains", peer="192.0.2.2")).status == 200
        assert (await scene.ask("/v1/chains", peer="2001:db8::1")).status == 200
        assert (await scene.ask("/v1/chains", peer="2001:db8::2")).status == 429

    asyncio.run(statuses())


def test_metrics_count_apart_by_address(door: Door) -> None:
    data, metrics = door.scene(), door.scene(METRICS)
    assert [data.get("/v1/chains").status for _ in range(2)] == [200, 429]
    assert [metrics.get("/v1/chains").status for _ in range(2)] == [200, 429]
    reply = metrics.get("/v1/chains")
    assert reply.json()["message"] == ["the budget of 25 units a minute is spent: try again in 60 s"]
    assert reply.header("ratelimit-policy") == "25;w=60, 1000;w=86400"


def test_a_proxy_counts_only_when_it_is_trusted(door: Door) -> None:
    async def statuses() -> None:
        for proxies, expected in (("", [200, 429]), ("192.0.2.1", [200, 200])):
            scene = door.scene(proxies=proxies)
            told = [
                (await scene.ask("/v1/chains", [("x-forwarded-for", "1.1.1.1"), ("x-forwarded-for", one)])).status
                for one in ("203.0.113.1", "203.0.113.2")
            ]
            assert told == expected
        assert (await scene.ask("/v1/chains", {"x-forwarded-for": "1.1.1.1, 203.0.113.2"})).status == 429

    asyncio.run(statuses())


def test_a_browser_may_read_what_it_is_told(door: Door) -> None:
    reply = door.scene().get("/free", {"origin": "https://wallet.example"})
    assert reply.header("access-control-expose-headers") == "retry-after"
