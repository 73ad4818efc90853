"""Kept results of JSON-RPC calls: given again while nothing can differ, and no longer."""

import asyncio
import json
from typing import Any

from icefall.api.dialect import DIALECTS
from icefall.api.http.assemble import Mount, counter_labels, routes_of
from icefall.api.http.jsonrpc import RpcService
from icefall.api.http.result_cache import ResultCache, ResultStamp
from icefall.api.http.row import Rpc, always, never
from icefall.api.http.rpc_params import SetHeight
from icefall.api.http.structs import NoParams, Params, Result
from icefall.api.node.handlers.platform_validators import names_a_height
from icefall.api.node.platform_endpoints import PLATFORM_ENDPOINTS
from icefall.observe.counters import CallCounters


class Store:
    """A store whose version and content a test sets; counts how often it is read."""

    def __init__(self) -> None:
        self.version = 2
        self.second = 100
        self.value = 1
        self.reads = 0


class Read(Result, frozen=True):
    value: int


class AtHeight(Params, frozen=True):
    height: SetHeight = 0


async def _read(_: NoParams, store: Store) -> Read:
    store.reads += 1
    return Read(store.value)


async def _read_at(_: AtHeight, store: Store) -> Read:
    return await _read(NoParams(), store)


ROWS = (
    Rpc(path="/p", method="p.read", result=Read, handler=_read, summary="", repeatable=always),
    Rpc(path="/p", method="p.readAt", params=AtHeight, result=Read, handler=_read_at, summary="",
        repeatable=names_a_height),
    Rpc(path="/p", method="p.live", result=Read, handler=_read, summary=""),
)  # fmt: skip


def service_of(store: Store) -> RpcService:
    mount = Mount("/p", ("/p",), {Store: store}, version=lambda: store.version)
    counters = CallCounters(counter_labels(ROWS), None)
    routes = routes_of(list(ROWS), lambda _: True, {}, DIALECTS["live"], counters, [mount])
    service = routes["/p"].service
    assert service is not None
    service._cache = ResultCache(lambda: store.version, lambda: store.second)
    return service


def ask(service: RpcService, method: str, params: Any = None) -> Any:
    body = {"jsonrpc": "2.0", "id": 7, "method": method, "params": params or {}}
    return json.loads(asyncio.run(service.answer(json.dumps(body).encode())).body)["result"]["value"]


def test_a_result_is_made_once_for_each_version_and_second() -> None:
    store = Store()
    service = service_of(store)
    assert [ask(service, "p.read") for _ in range(3)] == [1, 1, 1]
    assert store.reads == 1
    store.version, store.value = 4, 2
    assert [ask(service, "p.read") for _ in range(2)] == [2, 2]
    assert store.reads == 2
    store.second += 1
    ask(service, "p.read")
    assert store.reads == 3


def test_nothing_is_kept_while_a_commit_is_under_way_or_no_version_is_known() -> None:
    store = Store()
    store.version = 0
    service = service_of(store)
    for _ in range(3):
        ask(service, "p.read")
    assert store.reads == 3


def test_what_the_upstream_knows_is_asked_each_time() -> None:
    store = Store()
    service = service_of(store)
    for params in ({"height": "proposed"}, {"height": "proposed"}, {"height": 5}, {"height": 5}):
        ask(service, "p.readAt", params)
    ask(service, "p.live")
    ask(service, "p.live")
    assert store.reads == 5
    asked_each_time = {row.method.removeprefix("platform.") for row in PLATFORM_ENDPOINTS if row.repeatable is never}
    assert {"issueTx", "getTxStatus", "getProposedHeight", "getBlockchainStatus", "sampleValidators"} <= asked_each_time


def test_a_result_of_an_older_moment_is_not_kept() -> None:
    """Something was committed while it was made."""
    version = 2
    cache = ResultCache(lambda: version, lambda: 100.0)
    assert cache.find(("p.read", b"")) is None
    before = cache.moment
    version = 4
    assert cache.find(("p.read", b"")) is None
    cache.put(("p.read", b""), before, b"1")
    assert cache.find(("p.read", b"")) is None
    cache.put(("p.read", b""), ResultStamp(4, 100), b"2")
    assert cache.find(("p.read", b"")) == b"2"


def test_memory_is_bounded() -> None:
    cache = ResultCache(lambda: 2, lambda: 100.0, size_max=10_000)
    cache.find(("p.read", b""))
    for number in range(100):
        cache.put(("p.read", b"%d" % number), cache.moment, bytes(1_000))
    kept = [number for number in range(100) if cache.find(("p.read", b"%d" % number)) is not None]
    assert kept == list(range(8))
    cache = ResultCache(lambda: 2, lambda: 100.0)
    cache.find(("p.read", b""))
    cache.put(("p.read", b""), cache.moment, bytes(1 << 20))
    assert cache.find(("p.read", b"")) is None
