"""An app of the chain data interface with rows that return their parameters, without a process or a store."""

import asyncio
from collections.abc import Mapping
from typing import Any

import msgspec
from tests.server import Reply

from icefall.api.dialect import INTERFACE, Dialect
from icefall.api.http.app import App
from icefall.api.http.asgi import AsgiApp
from icefall.api.http.assemble import bases_of, counter_labels, routes_of
from icefall.api.http.gate import AccessGate
from icefall.api.http.guards import Hosts, Origins
from icefall.api.http.rest_params import (
    BalancePageSize,
    BlockId,
    BlockNumber,
    BlockPageSize,
    ChainName,
    Currency,
    EvmAddress,
    EvmAddresses,
    Feature,
    Network,
    PageSize,
    PageToken,
    SortOrder,
    StatusFilter,
    Switch,
    TimeInterval,
    Timestamp,
    TxHash,
)
from icefall.api.http.routes import Routes
from icefall.api.http.row import DATA, Charged, Rest, Rpc, Weight
from icefall.api.http.structs import RestParams
from icefall.errors import BadGateway, NotFound, Unavailable
from icefall.observe.counters import CallCounters
from icefall.observe.log import Log, quiet

ADDRESS = "0x71C7656EC7ab88b098defB751B7401B5f6d8976F"
LIST = "/v1/chains/{chainId}/addresses/{address}/transactions:listErc20"


class AddressPage(RestParams, frozen=True):
    chain_id: ChainName
    address: EvmAddress
    page_token: PageToken = ""
    page_size: PageSize = 10
    start_block: BlockNumber = None
    end_block: BlockNumber = None


class BlockPage(RestParams, frozen=True):
    chain_id: ChainName
    block_id: BlockId
    page_size: BlockPageSize = 0


class OneTx(RestParams, frozen=True):
    chain_id: ChainName
    tx_hash: TxHash


class Everything(RestParams, frozen=True):
    """One of each of the other kinds, one of them required."""

    needed: Timestamp
    page_size: BalancePageSize = 10
    filter_spam_tokens: Switch = True
    contract_addresses: EvmAddresses = ()
    currency: Currency = "usd"
    sort_order: SortOrder = "desc"
    network: Network = None
    feature: Feature = None
    status: StatusFilter = None
    time_interval: TimeInterval = "day"


async def echo(params: Any) -> dict[str, Any]:
    given = msgspec.structs.asdict(params) if isinstance(params, msgspec.Struct) else {}
    return {"of": type(params).__name__, "params": {name: _shown(value) for name, value in given.items()}}


def _shown(value: Any) -> Any:
    if isinstance(value, bytes):
        return "0x" + value.hex()
    return [_shown(one) for one in value] if isinstance(value, tuple) else value


async def costly(_: Any) -> Charged:
    return Charged({"of": "much work"}, 3 * Weight.SMALL)


async def missing(_: Any) -> dict[str, Any]:
    raise NotFound("there is no such thing")


async def lost(_: Any) -> dict[str, Any]:
    raise BadGateway("the upstream answered wrongly")


async def away(_: Any) -> dict[str, Any]:
    raise Unavailable("the upstream is down")


async def bug(_: Any) -> dict[str, Any]:
    raise ZeroDivisionError


def row(path: str, handler: Any = echo, weight: int = Weight.MEDIUM, **more: Any) -> Rest:
    summary = "For a test."
    return Rest(
        verb="GET", path=path, handler=handler, summary=summary, result=dict, listeners=(DATA,), weight=weight, **more
    )


ROWS: list[Rest | Rpc] = [
    row("/v1/chains"),
    row("/v1/chains/allBlocks"),
    row("/v1/chains/{chainId}/blocks/{blockId}/transactions", params=BlockPage),
    row("/v1/chains/{chainId}/transactions/{txHash}", params=OneTx),
    row(LIST, params=AddressPage),
    row("/v1/everything", params=Everything),
    row("/free", weight=Weight.FREE),
    row("/page", weight=Weight.FREE, keyless=True),
    row("/health", weight=Weight.FREE, never_limited=True),
    row("/protected", weight=Weight.FREE, protected=True),
    row("/costly", costly, Weight.FREE),
    row("/missing", missing),
    row("/lost", lost),
    row("/away", away),
    row("/bug", bug),
]
RPC_ROWS: list[Rest | Rpc] = [
    Rpc(path="/rpc", method="test.echo", handler=echo, summary="For a test.", result=dict, listener=DATA),
    Rpc(path="/rpc", method="test.away", handler=away, summary="For a test.", result=dict, listener=DATA),
    Rpc(path="/rpc", method="test.bug", handler=bug, summary="For a test.", result=dict, listener=DATA),
]


class Scene:
    """Requests to the app, as `tests.server.Server` makes them to the program."""

    def __init__(
        self, gate: AccessGate | None = None, listener: str = DATA, log: Log | None = None, dialect: Dialect = INTERFACE
    ) -> None:
        counters = CallCounters(counter_labels([*ROWS, *RPC_ROWS]), None)
        paths = routes_of([*ROWS, *RPC_ROWS], lambda _: True, {}, dialect, counters)
        routes = Routes(paths, bases_of(paths), None, full=True)
        origins = Origins(["*"], ["X-Service-Api-Key"], ["retry-after"])
        app = App(listener, routes, dialect, Hosts(["*"]), origins, counters, log or quiet(), [], 5.0, gate)
        self._app = AsgiApp(app)

    async def ask(
        self,
        target: str,
        headers: Mapping[str, str] | list[tuple[str, str]] | None = None,
        *,
        method: str = "GET",
        peer: str = "192.0.2.1",
        body: bytes = b"",
    ) -> Reply:
        path, _, query = target.partition("?")
        pairs = list(headers.items()) if isinstance(headers, Mapping) else headers or []
        scope = {
            "type": "http",
            "method": method,
            "path": path,
            "query_string": query.encode("latin-1", "replace"),
            "headers": [(name.encode(), value.encode("latin-1")) for name, value in pairs],
            "client": (peer, 1234),
        }
        sent: list[dict[str, Any]] = []

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message: dict[str, Any]) -> None:
            sent.append(message)

        await self._app(scope, receive, send)
        start, end = sent
        received = [(name.decode(), value.decode("latin-1")) for name, value in start["headers"]]
        return Reply(start["status"], received, end["body"])

    def get(self, target: str, headers: Mapping[str, str] | None = None) -> Reply:
        return asyncio.run(self.ask(target, headers))

    def post(self, target: str, body: Any) -> Reply:
        headers = {"content-type": "application/json"}
        return asyncio.run(self.ask(target, headers, method="POST", body=msgspec.json.encode(body)))
