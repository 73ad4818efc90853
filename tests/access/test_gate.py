"""Access to the chain data and metrics APIs: keys, budgets, and the headers that report them."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.api.rest_scene import Scene
from tests.server import Reply

from icefall.access.budget_leases import BudgetLeases
from icefall.access.budget_server import budget_commands
from icefall.access.budgets import METRICS as METRICS_TIER
from icefall.access.budgets import UNAUTHENTICATED, Budgets, Tier, tiers_with
from icefall.access.client_address import Proxies
from icefall.access.store import AccessReader
from icefall.api.http.gate import AccessGate
from icefall.api.http.row import DATA, METRICS, Rest
from icefall.api.table import ENDPOINTS
from icefall.compose.stores import Stores
from icefall.observe.log import quiet

NOW = 1_800_000_000 // 86_400 * 86_400
TIERS = tiers_with(
    [Tier(UNAUTHENTICATED, 30, 1000), Tier("free", 40, 1000), Tier("pro", 500, 50), Tier(METRICS_TIER, 25, 1000)]
)


class Access:
    """An access gate over a real access store, with its own budgets and clock."""

    def __init__(self, data_dir: Path) -> None:
        Stores(data_dir).access_writer().ensure()
        self.data_dir = data_dir
        self.now = NOW
        self.reader = Stores(data_dir).access_reader()
        self._budgets = Budgets()

    async def _call_owner(self, name: str, **params: Any) -> Any:
        return budget_commands(self._budgets, self._clock)[name](**params)

    def _clock(self) -> float:
        return float(self.now)

    def scene(self, listener: str = DATA, *, limited: bool = True, required: bool = False, proxies: str = "") -> Scene:
        return Scene(
            AccessGate(
                listener,
                AccessReader(self.reader) if listener == DATA else None,
                BudgetLeases(self._call_owner, 1, quiet(), self._clock) if limited else None,
                TIERS,
                UNAUTHENTICATED if listener == DATA else METRICS_TIER,
                Proxies(proxies.split()),
                keys_required=required,
            ),
            listener,
        )

    def key(self, name: str, tier: str) -> dict[str, str]:
        return {"x-service-api-key": Stores(self.data_dir).access_writer().add_key(name, tier, NOW)}


@pytest.fixture
def access(tmp_path: Path) -> Iterator[Access]:
    access = Access(tmp_path)
    yield access
    access.reader.close()


def limits(reply: Reply) -> dict[str, str]:
    return {name: value for name, value in reply.headers if name.startswith("ratelimit") or name == "retry-after"}


# -- keys ----------------------------------------------------------------------------------------------------------


def test_without_limits_and_keys_there_are_no_headers(access: Access) -> None:
    reply = access.scene(limited=False).get("/v1/chains")
    assert (reply.status, limits(reply)) == (200, {})


@pytest.mark.parametrize("limited", [True, False])
def test_an_unknown_key_is_401_and_a_revoked_one_403(limited: bool, access: Access) -> None:
    scene = access.scene(limited=limited)
    reply = scene.get("/v1/chains", {"x-service-api-key": "ice_nonsense"})
    assert (reply.status, reply.json()["error"]) == (401, "Unauthorized")
    assert reply.header("www-authenticate") == 'ApiKey header="x-service-api-key"'
    key = access.key("alice", "free")
    assert scene.get("/v1/chains", key).status == 200
    Stores(access.data_dir).access_writer().revoke_key("alice", NOW)
    reply = scene.get("/v1/chains", key)
    assert (reply.status, reply.json()["error"]) == (403, "Forbidden")
    assert scene.get("/v1/chains").status == 200


def test_either_header_may_hold_the_key(access: Access) -> None:
    scene = access.scene(required=True)
    key = access.key("alice", "free")["x-service-api-key"]
    for headers in ({"x-service-api-key": key}, {"X-Glacier-Api-Key": key}, {"x-glacier-api-key": key},
                    {"x-service-api-key": key, "x-glacier-api-key": key},
                    {"x-service-api-key": "", "x-glacier-api-key": key}):  # fmt: skip
        assert scene.get("/free", headers).status == 200
    reply = scene.get("/v1/chains", {"x-service-api-key": key, "x-glacier-api-key": key + "x"})
    assert (reply.status, reply.json()["message"]) == (
        400,
        "x-service-api-key and x-glacier-api-key hold different keys: send one",
    )


def test_required_keys_are_not_required_for_pages(access: Access) -> None:
    scene = access.scene(limited=False, required=True)
    reply = scene.get("/v1/chains")
    assert (reply.status, reply.json()["statusCode"], reply.json()["error"]) == (401, 401, "Unauthorized")
    assert "x-service-api-key" in reply.json()["message"]
    assert scene.get("/v1/chains", {"x-service-api-key": ""}).status == 401
    assert scene.get("/page").status == 200
    assert scene.get("/nothing").status == 404
    assert scene.get("/v1/chains", access.key("alice", "free")).status == 200


@pytest.mark.parametrize(
    ("peer", "headers", "status"),
    [
        ("127.0.0.1", {}, 200),
        ("127.9.9.9", {}, 200),
        ("::1", {}, 200),
        ("::ffff:127.0.0.1", {}, 200),
        ("192.0.2.1", {}, 401),
        ("2001:db8::1", {}, 401),
        ("127.0.0.1", {"host": "127.0.0.1:9652", "origin": "http://127.0.0.1:9652"}, 200),
        ("127.0.0.1", {"host": "127.0.0.1:9652", "origin": "https://other.example"}, 401),
        ("127.0.0.1", {"host": "127.0.0.1:9652", "origin": "null"}, 401),
        ("192.0.2.1", {"key": "alice"}, 200),
        ("192.0.2.1", {"key": "alice", "origin": "https://other.example"}, 200),
        ("127.0.0.1", {"key": "unknown"}, 401),
    ],
)
def test_what_changes_something_needs_a_key_or_a_local_caller(
    peer: str, headers: dict[str, str], status: int, access: Access
) -> None:
    key = access.key("alice", "free")
    if named := headers.pop("key", ""):
        headers |= key if named == "alice" else {"x-service-api-key": "ice_nonsense"}
    reply = asyncio.run(access.scene().ask("/protected", headers, peer=peer))
    assert reply.status == status, reply


def test_a_client_behind_a_trusted_proxy_is_not_local(access: Access) -> None:
    scene = access.scene(proxies="127.0.0.0/8")
    for client, status in (("192.0.2.1", 401), ("127.0.0.1", 200)):
        reply = asyncio.run(scene.ask("/protected", {"x-forwarded-for": client}, peer="127.0.0.1"))
        assert reply.status == status


def test_metrics_take_no_keys(access: Access) -> None:
    assert access.scene(METRICS).get("/free", {"x-service-api-key": "ice_nonsense"}).status == 200


# -- budgets -------------------------------------------------------------------------------------------------------


def test_a_budget_is_spent_by_weight_and_reported(access: Access) -> None:
    scene = access.scene()
    policy = {"ratelimit-policy": "30;w=60, 1000;w=86400", "ratelimit-limit": "30"}
    assert limits(scene.get("/v1/chains")) == policy | {"ratelimit-remaining": "10"}
    for left in range(9, -1, -1):
        assert limits(scene.get("/free")) == policy | {"ratelimit-remaining": str(left)}
    access.now += 45
    reply = scene.get("/free")
    assert (reply.status, reply.json()["error"]) == (429, "Too Many Requests")
    assert reply.json()["message"] == "the budget of 30 units per minute is spent: try again in 15 s"
    assert limits(reply) == policy | {"ratelimit-remaining": "0", "ratelimit-reset": "15", "retry-after": "15"}
    access.now += 15
    assert scene.get("/free").status == 200


def test_health_and_metrics_are_answered_when_the_budget_is_spent(access: Access) -> None:
    scene = access.scene()
    while scene.get("/free").status == 200:
        pass
    for _ in range(3):
        reply = scene.get("/health")
        assert (reply.status, limits(reply)["ratelimit-remaining"]) == (200, "0")
        assert reply.header("retry-after") is None
    assert scene.get("/free").status == 429


def test_monitoring_is_never_limited() -> None:
    watched = ("/ext/health", "/ext/metrics", "/v1/health-check", "/v1/live-check", "/v2/health-check")
    rows = [row for row in ENDPOINTS if isinstance(row, Rest) and row.path.startswith(watched)]
    assert {row.path for row in rows} >= set(watched) | {"/ext/health/liveness"}
    assert all(row.never_limited for row in rows)
    assert not any(row.never_limited for row in ENDPOINTS if isinstance(row, Rest) and row not in rows)


def test_a_call_that_turned_out_costly_is_charged_after_the_fact(access: Access) -> None:
    """It is answered, and takes what is left of the budget, a Small weight at a time."""
    scene, key = access.scene(), access.key("alice", "free")
    reply = scene.get("/costly", key)
    assert (reply.status, reply.json()) == (200, {"of": "much work"})
    assert limits(reply)["ratelimit-remaining"] == str(40 - 1 - 30)
    reply = scene.get("/costly", key)
    assert (reply.status, limits(reply)["ratelimit-remaining"]) == (200, "8")
    assert "retry-after" not in limits(reply)
    assert limits(access.scene(limited=False).get("/costly", key)) == {}


def test_a_heavy_call_is_refused_and_a_light_one_still_allowed(access: Access) -> None:
    scene = access.scene()
    assert [scene.get(path).status for path in ("/v1/chains", "/v1/chains", "/free")] == [200, 429, 200]


def test_a_day_budget_runs_out(access: Access) -> None:
    scene, key = access.scene(), access.key("alice", "pro")
    assert [scene.get("/v1/chains", key).status for _ in range(3)] == [200, 200, 429]
    reply = scene.get("/v1/chains", key)
    assert limits(reply) == {
        "ratelimit-policy": "500;w=60, 50;w=86400",
        "ratelimit-limit": "50",
        "ratelimit-remaining": "10",
        "ratelimit-reset": "86400",
        "retry-after": "86400",
    }
    assert "50 units per day" in reply.json()["message"]


def test_failed_calls_cost_units_too(access: Access) -> None:
    scene = access.scene()
    reply = scene.get("/missing")
    assert (reply.status, reply.header("ratelimit-remaining")) == (404, "10")
    reply = scene.get("/away")
    assert (reply.status, reply.header("retry-after")) == (429, "60")


def test_unknown_paths_cost_nothing(access: Access) -> None:
    scene = access.scene()
    for _ in range(100):
        reply = scene.get("/nothing")
        assert (reply.status, limits(reply)) == (404, {})
    assert scene.get("/free").header("ratelimit-remaining") == "29"


def test_each_key_and_address_has_its_own_budget(access: Access) -> None:
    scene, alice, bob = access.scene(), access.key("alice", "free"), access.key("bob", "gone")

    async def statuses() -> None:
        assert [(await scene.ask("/v1/chains", alice)).status for _ in range(3)] == [200, 200, 429]
        # a tier that is no longer configured counts as the lowest
        assert [(await scene.ask("/v1/chains", bob)).status for _ in range(3)] == [200, 200, 429]
        assert [(await scene.ask("/v1/chains")).status for _ in range(2)] == [200, 429]
        assert (await scene.ask("/v1/chains", peer="192.0.2.2")).status == 200
        assert (await scene.ask("/v1/chains", peer="2001:db8::1")).status == 200
        assert (await scene.ask("/v1/chains", peer="2001:db8::2")).status == 429

    asyncio.run(statuses())


def test_metrics_have_separate_budgets_per_address(access: Access) -> None:
    data, metrics = access.scene(), access.scene(METRICS)
    assert [data.get("/v1/chains").status for _ in range(2)] == [200, 429]
    assert [metrics.get("/v1/chains").status for _ in range(2)] == [200, 429]
    reply = metrics.get("/v1/chains")
    assert reply.json()["message"] == ["the budget of 25 units per minute is spent: try again in 60 s"]
    assert reply.header("ratelimit-policy") == "25;w=60, 1000;w=86400"


def test_only_a_trusted_proxy_forwards_an_address(access: Access) -> None:
    async def statuses() -> None:
        for proxies, expected in (("", [200, 429]), ("192.0.2.1", [200, 200])):
            scene = access.scene(proxies=proxies)
            found = [
                (await scene.ask("/v1/chains", [("x-forwarded-for", "1.1.1.1"), ("x-forwarded-for", one)])).status
                for one in ("203.0.113.1", "203.0.113.2")
            ]
            assert found == expected
        assert (await scene.ask("/v1/chains", {"x-forwarded-for": "1.1.1.1, 203.0.113.2"})).status == 429

    asyncio.run(statuses())


def test_a_browser_may_read_the_headers(access: Access) -> None:
    reply = access.scene().get("/free", {"origin": "https://wallet.example"})
    assert reply.header("access-control-expose-headers") == "retry-after"
