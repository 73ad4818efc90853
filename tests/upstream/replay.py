"""A node that replays recorded containers over HTTP, honestly or not.

It answers what a follower asks: index.*, info.*, avm.getTx, avm.getAssetDescription, avm.issueTx. `show` decides how
much of each chain it has accepted, `faults` what goes wrong on the way, and the rows themselves may be forged.
"""

import asyncio
import gzip
import json
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from aiohttp import web

from icefall.wire.avm.codec import genesis_txs, unpack_genesis
from icefall.wire.container.proposer import OPTION, pack_container, unpack_container
from icefall.wire.genesis.network import NetworkGenesis, network_genesis, packaged_genesis
from icefall.wire.ids import PLATFORM_CHAIN, id_text
from icefall.wire.text import checksum_hex

VECTORS = Path(__file__).parent.parent / "vectors"
SCENARIO_START = 1_794_753_768  # when the recorded local network was started


class Row(NamedTuple):
    """A container as an index returns it."""

    id_text: str
    raw: bytes
    timestamp: str = "2026-11-15T14:36:30.0406955Z"


Chains = dict[str, list[Row]]


@cache
def _recorded(name: str) -> tuple[tuple[str, Row], ...]:
    lines = gzip.decompress((VECTORS / name).read_bytes()).splitlines()
    rows = [json.loads(line) for line in lines]
    return tuple((row["chain"], Row(row["id"], checksum_hex.decode(row["bytes"]), row["timestamp"])) for row in rows)


def recorded(name: str = "scenario-1/containers.jsonl.gz") -> Chains:
    """A history of X, P and C; `cchain-1_containers.jsonl.gz` is the other one."""
    chains: Chains = {"X": [], "P": [], "C": []}
    for chain, row in _recorded(name):
        chains[chain].append(row)
    return chains


@cache
def local_genesis(start_time: int = SCENARIO_START) -> NetworkGenesis:
    return network_genesis(packaged_genesis(12345), 12345, start_time)


# -- forging -------------------------------------------------------------------------------------------------------


def labelled(raw: bytes) -> Row:
    """A container under the ID its bytes have."""
    return Row(id_text(unpack_container(raw).container_id), raw)


def rewrapped(row: Row, **changes: Any) -> Row:
    """The same block in another wrapping, under the right ID: parent_id, timestamp, p_chain_height, inner."""
    old = unpack_container(row.raw)
    fields = {name: getattr(old, name) for name in ("parent_id", "timestamp", "p_chain_height", "inner", "epoch")}
    return labelled(pack_container(**{**fields, **changes}).raw)


def other_history(rows: Sequence[Row], start: int) -> list[Row]:
    """Another consistent chain: from `start` on, every wrapping differs from the recorded one."""
    made = list(rows[:start])
    for row in rows[start:]:
        old = unpack_container(row.raw)
        assert old.type_id != OPTION
        parent_id = unpack_container(made[-1].raw).container_id if made else old.parent_id
        made.append(rewrapped(row, parent_id=parent_id, p_chain_height=old.p_chain_height + 1))
    return made


# -- what goes wrong on the way ------------------------------------------------------------------------------------


class Fault(NamedTuple):
    """For the next `times` calls of `method` (a prefix; "" is every one)."""

    method: str = ""
    times: int = 1
    status: int = 0
    headers: dict[str, str] = {}  # noqa: RUF012
    body: bytes | None = None  # instead of the answer
    keep: float = 1.0  # the share of the answer that is sent before it ends as if it were whole
    hang_s: float = 0.0
    empty: bool = False  # an answer without a result to speak of
    hang_up: bool = False  # close the connection in the middle of the answer


FOREVER = 1 << 30


class Replay:
    """One upstream. Change any attribute while it runs."""

    def __init__(self, chains: Chains | None = None, *, genesis: NetworkGenesis | None = None) -> None:
        self.chains = chains if chains is not None else recorded()
        self.genesis = genesis or local_genesis()
        self.network_id = 12345
        self.chain_ids = {"X": self.genesis.x_chain_id, "C": self.genesis.c_chain_id, "P": PLATFORM_CHAIN}
        self.shown: dict[str, int] = {}  # how many containers it admits to; absent: all of them
        self.boasts: dict[str, int] = {}  # the number it gives its last container
        self.renumbered: dict[tuple[str, int], int] = {}  # it sends another number
        self.bootstrapped = {"X": True, "P": True, "C": True}
        self.index_on = True
        self.unknown: set[str] = set()  # methods it does not have
        self.bare_ranges = False  # as Icefall's own interface has them
        self.platform: dict[str, Any] = {}  # results of calls to P
        self.faults: list[Fault] = []
        self.refuse_issue: str | None = None
        self.issued: list[str] = []
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.paths: list[str] = []
        self.on_call: Callable[[str, dict[str, Any]], None] = lambda method, params: None
        self.url = ""
        self._runner: web.AppRunner | None = None

    async def __aenter__(self) -> "Replay":
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def start(self, port: int = 0) -> None:
        app = web.Application()
        app.router.add_route("*", "/{tail:.*}", self._serve)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.01)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", port)
        await site.start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"

    async def stop(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    def show(self, **counts: int) -> None:
        self.shown.update(counts)

    def count(self, chain: str) -> int:
        return min(len(self.chains[chain]), self.shown.get(chain, FOREVER))

    def asked(self, method: str) -> int:
        return sum(name == method for name, _ in self.calls)

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        call = json.loads(await request.read())
        method, params = call["method"], call.get("params") or {}
        self.calls.append((method, params))
        self.paths.append(str(request.rel_url))
        self.on_call(method, params)
        fault = self._fault(method)
        if fault.hang_s:
            await asyncio.sleep(fault.hang_s)
        if fault.status:
            return web.Response(status=fault.status, headers=fault.headers, body=fault.body or b"")
        if fault.body is not None:
            return web.Response(body=fault.body, headers=fault.headers)
        try:
            answer = {"jsonrpc": "2.0", "result": self._answer(request.path, method, params), "id": call["id"]}
        except LookupError as error:
            if not error.args:
                return web.Response(status=404, text="404 page not found\n")
            answer = {"jsonrpc": "2.0", "error": _error(error.args[0]), "id": call["id"]}
        if fault.empty:
            answer["result"] = None
        body = json.dumps(answer).encode()
        if fault.hang_up:
            response = web.StreamResponse(headers={"Content-Length": str(len(body))})
            await response.prepare(request)
            await response.write(body[: len(body) // 2])
            assert request.transport is not None
            request.transport.close()
            return response
        return web.Response(body=body[: round(fault.keep * len(body))], content_type="application/json")

    def _fault(self, method: str) -> Fault:
        for place, fault in enumerate(self.faults):
            if method.startswith(fault.method):
                if fault.times == 1:
                    del self.faults[place]
                else:
                    self.faults[place] = fault._replace(times=fault.times - 1)
                return fault
        return Fault()

    def _answer(self, path: str, method: str, params: dict[str, Any]) -> Any:
        if path.startswith("/ext/index/"):
            chain = path.split("/")[3]
            if not self.index_on or path != f"/ext/index/{chain}/block" or chain not in self.chains:
                raise LookupError
            return self._indexed(chain, method, params)
        answer = {
            "info.getNetworkID": self._network_id,
            "info.getBlockchainID": self._blockchain_id,
            "info.isBootstrapped": self._is_bootstrapped,
            "avm.getAssetDescription": self._asset,
            "avm.getTx": self._tx,
            "avm.issueTx": self._issue,
            "wallet.issueTx": self._issue,
            "platform.issueTx": self._issue,
        }.get(method)
        if method in self.platform:
            return self.platform[method]
        if answer is None or method in self.unknown:
            raise LookupError(f'rpc: can\'t find method "{method}"')
        return answer(params)

    def _indexed(self, chain: str, method: str, params: dict[str, Any]) -> Any:
        count = self.count(chain)
        if method == "index.getContainerRange":
            start, size = int(params["startIndex"]), int(params["numToFetch"])
            if not 1 <= size <= 1024:
                raise LookupError(f"numToFetch must be in [1,1024] but is {size}")
            if count == 0:
                raise LookupError("no containers have been accepted")
            if start >= count:
                raise LookupError(f"start index ({start}) > last accepted index ({count - 1})")
            rows = [self._container(chain, number) for number in range(start, min(count, start + size))]
            return rows if self.bare_ranges else {"containers": rows}
        if count == 0:
            raise LookupError("no containers have been accepted")
        number = count - 1 if method == "index.getLastAccepted" else int(params["index"])
        if number >= count:
            raise LookupError(f"no container at index {number}")
        answer = self._container(chain, number)
        if method == "index.getLastAccepted" and chain in self.boasts:
            answer["index"] = str(self.boasts[chain])
        return answer

    def _container(self, chain: str, number: int) -> dict[str, str]:
        row = self.chains[chain][number]
        sent = self.renumbered.get((chain, number), number)
        return {
            "id": row.id_text,
            "bytes": checksum_hex.encode(row.raw),
            "timestamp": row.timestamp,
            "encoding": "hex",
            "index": str(sent),
        }

    def _network_id(self, params: dict[str, Any]) -> Any:
        return {"networkID": str(self.network_id)}

    def _blockchain_id(self, params: dict[str, Any]) -> Any:
        if params["alias"] not in self.chain_ids:
            raise LookupError(f"there is no ID with alias: {params['alias']}")
        return {"blockchainID": id_text(self.chain_ids[params["alias"]])}

    def _is_bootstrapped(self, params: dict[str, Any]) -> Any:
        return {"isBootstrapped": self.bootstrapped[params["chain"]]}

    def _asset(self, params: dict[str, Any]) -> Any:
        asset_id = id_text(self.genesis.avax_asset_id)
        return {"assetID": asset_id, "name": "Avalanche", "symbol": "AVAX", "denomination": "9"}

    def _tx(self, params: dict[str, Any]) -> Any:
        tx = genesis_txs(unpack_genesis(self.genesis.x_genesis))[0]
        if params["txID"] != id_text(tx.txid):
            raise LookupError("not found")
        return {"tx": checksum_hex.encode(tx.raw), "encoding": "hex"}

    def _issue(self, params: dict[str, Any]) -> Any:
        if self.refuse_issue is not None:
            raise LookupError(self.refuse_issue)
        self.issued.append(params["tx"])
        return {"txID": "2JVSBoinj9C2J33VntvzYtVJNZdN2NKiwwKjcumHUWEb5DbBrm"}


def _error(text: str) -> dict[str, Any]:
    return {"code": -32000, "message": text, "data": None}
