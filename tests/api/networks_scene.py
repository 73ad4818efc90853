"""A recorded network played back into a store, and its primary network interface asked in this process."""

import asyncio
import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from tests.pchain.recorded import Playback
from tests.pchain.replay import config_of

from icefall.access.page_tokens import NumberTokens, PageTokens
from icefall.api.dialect import INTERFACE, Dialect
from icefall.api.http.app import App
from icefall.api.http.asgi import AsgiApp
from icefall.api.http.assemble import bases_of, counter_labels, routes_of
from icefall.api.http.guards import Hosts, Origins
from icefall.api.http.paging import NumberPaging, Paging
from icefall.api.http.routes import Routes
from icefall.api.http.row import DATA
from icefall.api.networks.endpoints import NETWORKS_ENDPOINTS
from icefall.api.networks.handlers.utxos import NetworkClock
from icefall.api.networks.metrics_endpoints import NETWORK_METRICS_ENDPOINTS
from icefall.api.networks.network import Networks
from icefall.compose.served_network import served_network
from icefall.compose.stores import stores_of
from icefall.evm.reading.directory import ChainDirectory, EvmChain
from icefall.observe.counters import CallCounters
from icefall.observe.log import quiet
from icefall.pchain.observed import ObservedNode, put_observed

TOKEN_SECRET = bytes(32)
NOW = 1_900_000_000  # after everything that was recorded


class NetworkScene:
    """The interface on the store of a recorded network, on a loop of its own. `playback` has what was executed."""

    def __init__(self, recording: str, directory: Path, *settings: str) -> None:
        self._runner = asyncio.Runner()
        self.run = self._runner.run
        self.directory = directory
        self.playback = Playback(directory, recording)
        self.run(self.playback.start())
        self.run(self.playback.play())
        config = config_of(recording, directory, *settings)
        self.network = served_network(config, stores_of(config))
        self.app = networks_app(Networks(self.network))

    def get(self, target: str) -> tuple[int, Any]:
        return self.run(asked(self.app, target))

    def post(self, target: str, body: Any) -> Any:
        status, answer = self.run(asked(self.app, f"/v1/networks/fuji{target}", json.dumps(body).encode()))
        assert status == 200, (target, status, answer)
        return answer

    def result(self, target: str) -> Any:
        status, answer = self.get(f"/v1/networks/fuji{target}")
        assert status == 200, (target, status, answer)
        return answer

    def close(self) -> None:
        self.playback.store.close()
        self._runner.close()


def networks_app(networks: Networks, dialect: Dialect = INTERFACE, chains: Iterable[EvmChain] = ()) -> AsgiApp:
    """The rows of the interface alone, with the time standing still."""
    return AsgiApp(plain_networks_app(networks, dialect, chains))


def plain_networks_app(networks: Networks, dialect: Dialect = INTERFACE, chains: Iterable[EvmChain] = ()) -> App:
    """The same, without a protocol around it."""
    rows = [*NETWORKS_ENDPOINTS, *NETWORK_METRICS_ENDPOINTS]
    services: dict[type, Any] = {
        Networks: networks,
        Paging: Paging(PageTokens(TOKEN_SECRET)),
        NumberPaging: NumberPaging(NumberTokens(bytes(32))),
        NetworkClock: NetworkClock(lambda: NOW),
        ChainDirectory: ChainDirectory(chains),
        Dialect: dialect,
    }
    meters = CallCounters(counter_labels(rows), None)
    paths = routes_of([*rows], lambda _: True, services, dialect, meters)
    routes = Routes(paths, bases_of(paths), None, full=True)
    return App(DATA, routes, dialect, Hosts(["*"]), Origins(["*"], ()), meters, quiet(), [], 5.0)


async def asked(app: AsgiApp, target: str, body: bytes = b"") -> tuple[int, Any]:
    """Send one request, a POST if it has a body; returns its status and its JSON."""
    path, _, query = target.partition("?")
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "method": "POST" if body else "GET",
        "path": unquote(path),
        "query_string": query.encode(),
        "headers": [(b"host", b"127.0.0.1"), (b"content-type", b"application/json")],
        "client": ("127.0.0.1", 1234),
    }
    await app(scope, receive, send)
    return sent[0]["status"], json.loads(sent[1]["body"])


@contextmanager
def observed(scene: NetworkScene, seen: list[ObservedNode]) -> Iterator[None]:
    """The rows that the engine stores of an upstream's answer; none again afterwards."""
    store = scene.playback.store
    scene.run(store.write(lambda tx: put_observed(tx, seen, 0)))
    try:
        yield
    finally:
        scene.run(store.write(lambda tx: tx.run("delete from observed_node")))


@contextmanager
def network_scene(recording: str, directory: Path, *settings: str) -> Iterator[NetworkScene]:
    scene = NetworkScene(recording, directory, *settings)
    try:
        yield scene
    finally:
        scene.close()


def walked(get: Callable[[str], Any], target: str, key: str, size: int) -> list[Any]:
    """Return the items of all pages of a list. `target` ends where its next parameter begins."""
    found: list[Any] = []
    token = ""
    while True:
        page = get(f"{target}pageSize={size}{token}")
        found += page[key]
        if "nextPageToken" not in page:
            return found
        token = f"&pageToken={page['nextPageToken']}"
