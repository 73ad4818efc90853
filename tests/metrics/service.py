"""The metrics listener's app in this process, on chains given to it."""

import asyncio
from pathlib import Path
from typing import Any

import msgspec
from tests.metrics.scene import NOW
from tests.server import Reply

from icefall.access.page_tokens import NumberTokens, PageTokens
from icefall.access.store import AccessReader
from icefall.api.describing.openapi import document
from icefall.api.describing.site import Pages
from icefall.api.dialect import INTERFACE
from icefall.api.http.app import App
from icefall.api.http.asgi import AsgiApp
from icefall.api.http.assemble import bases_of, counter_labels, routes_of
from icefall.api.http.guards import Hosts, Origins
from icefall.api.http.paging import NumberPaging, Paging
from icefall.api.http.routes import Routes
from icefall.api.http.row import METRICS as LISTENER
from icefall.api.http.service import CounterSource
from icefall.api.metrics.handlers import MetricsClock
from icefall.api.networks.network import Networks
from icefall.api.table import rows_of
from icefall.compose.stores import Stores
from icefall.evm.reading.directory import ChainDirectory, ChainInfo, TokenInfo
from icefall.observe.counters import CallCounters
from icefall.observe.log import quiet
from icefall.observe.program import ProcessReader


def info(chain_id: str, name: str = "", **more: Any) -> ChainInfo:
    return ChainInfo(chain_id, name, TokenInfo("Native token", "NATIVE", 18), **more)


class Service:
    """The app of the metrics listener on two chains, with a clock that can be moved."""

    def __init__(self, chains: ChainDirectory, folder: Path) -> None:
        self.now = float(NOW)
        rows = rows_of(LISTENER)
        meters = CallCounters(counter_labels(rows), None)
        Stores(folder).access_writer().ensure()
        self._access = Stores(folder).access_reader()
        services: dict[type, Any] = {
            AccessReader: AccessReader(self._access),
            ChainDirectory: chains,
            Networks: Networks(None),
            MetricsClock: MetricsClock(lambda: self.now),
            Paging: Paging(PageTokens(bytes(32)), lambda: self.now),
            NumberPaging: NumberPaging(NumberTokens(b"secret"), lambda: self.now),
            Pages: Pages(msgspec.json.encode(document(LISTENER, rows, "0")), ""),
            CounterSource: CounterSource(Path("nowhere"), counter_labels(rows), "0", LISTENER, ProcessReader(0)),
        }
        paths = routes_of(rows, lambda _: True, services, INTERFACE, meters)
        routes = Routes(paths, bases_of(paths), None, full=True)
        self.app = AsgiApp(App(LISTENER, routes, INTERFACE, Hosts(["*"]), Origins(["*"], []), meters, quiet(), [], 5.0))

    def get(self, target: str) -> Reply:
        path, _, query = target.partition("?")
        sent: list[dict[str, Any]] = []

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(message: dict[str, Any]) -> None:
            sent.append(message)

        scope = {
            "type": "http",
            "method": "GET",
            "path": path,
            "query_string": query.encode(),
            "headers": [],
            "client": ("192.0.2.1", 1),
        }
        asyncio.run(self.app(scope, receive, send))
        start, body = sent
        headers = [(name.decode(), value.decode("latin-1")) for name, value in start["headers"]]
        return Reply(start["status"], headers, body["body"])

    def good(self, target: str) -> Any:
        reply = self.get(target)
        assert reply.status == 200, reply.body
        return reply.json()

    def refused(self, target: str, status: int = 400) -> str:
        """The message of an error answer."""
        reply = self.get(target)
        answer = reply.json()
        assert reply.status == answer["statusCode"] == status
        assert set(answer) == {"message", "statusCode", "error"}
        assert isinstance(answer["message"], list)
        return str(answer["message"][0])
