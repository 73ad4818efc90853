"""Nodes that are honest or not, by their schedule. Every false container can be recognised as one by its own bytes: a
whole second history that is consistent stops a chain by rule, and is not simulated.
"""

import asyncio
import random
from collections.abc import Callable
from functools import cache
from typing import Any

import msgspec
from tests.simulation.network import TRANSPORT
from tests.simulation.schedule import Phase, Schedule
from tests.sync.history import containers
from tests.upstream.replay import Chains, Replay, recorded

from icefall.wire.text import checksum_hex

COUNTS = (30, 60, 90)  # containers of all three chains in one run, in the order they were accepted in
SHOWN = 12  # at the beginning
_NAMES = ("X", "P", "C")

Containers = list[dict[str, str]]


def _relabelled(server: "NodeServer", chain: str, row: dict[str, str]) -> dict[str, str]:
    return row | {"bytes": server.container(chain, int(row["index"]) - 1)["bytes"]}


def _damaged(server: "NodeServer", chain: str, row: dict[str, str]) -> dict[str, str]:
    raw = bytearray(checksum_hex.decode(row["bytes"]))
    raw[-1] ^= 1
    return row | {"bytes": checksum_hex.encode(bytes(raw))}


def _other(server: "NodeServer", chain: str, row: dict[str, str]) -> dict[str, str]:
    return server.container(chain, int(row["index"]) - 1) | {"index": row["index"]}


def _bad_checksum(server: "NodeServer", chain: str, row: dict[str, str]) -> dict[str, str]:
    return row | {"bytes": row["bytes"][:-1] + ("0" if row["bytes"][-1] != "0" else "1")}


# Of one container. A node that sends the first kind is disabled, one that sends the second backs off.
FALSE_CONTAINERS: dict[str, Callable[["NodeServer", str, dict[str, str]], dict[str, str]]] = {
    "relabels containers": _relabelled,
    "damages containers": _damaged,
    "sends other containers": _other,
}
DAMAGE: dict[str, Callable[["NodeServer", str, dict[str, str]], dict[str, str]]] = {
    "damages checksums": _bad_checksum,
    "sends bad times": lambda server, chain, row: row | {"timestamp": "yesterday"},
    "sends other encodings": lambda server, chain, row: row | {"encoding": "cb58"},
}
RANGES: dict[str, Callable[[Containers], Any]] = {
    "sends short ranges": lambda rows: rows[:1],
    "sends empty ranges": lambda rows: [],
    "sends null ranges": lambda rows: None,
}
REVERSED = "reverses ranges"
HEADS = ("is empty", "lags", "keeps no index", "is bootstrapping")
ERRORS = ("fails inside",)
OTHER_NETWORK = "is of another network"
FAULTS = (*TRANSPORT, *DAMAGE, *RANGES, *HEADS, *HEADS, *ERRORS)
INVALID = (*FALSE_CONTAINERS, REVERSED, OTHER_NETWORK)


def first_containers(count: int) -> Chains:
    """The chains after the first containers of the recorded network."""
    whole, number = recorded(), counts_after(count)
    return {name: whole[name][: number[name]] for name in _NAMES}


@cache
def counts_after(count: int) -> dict[str, int]:
    rows = containers()[:count]
    return {name: sum(row["chain"] == name for row in rows) for name in _NAMES}


@cache
def _sent(chain: str, number: int) -> dict[str, str]:
    row = recorded()[chain][number]
    raw = checksum_hex.encode(row.raw)
    return {"id": row.id_text, "bytes": raw, "timestamp": row.timestamp, "encoding": "hex", "index": str(number)}


class NodeServer(Replay):
    def __init__(self, count: int, schedule: Schedule, growth_s: float, source: random.Random) -> None:
        super().__init__(first_containers(count))
        self.schedule = schedule
        self._count = count
        self._growth_s = growth_s
        self._source = source
        self._lag = source.randint(1, count)

    @property
    def phase(self) -> Phase:
        return self.schedule.at(asyncio.get_running_loop().time())

    def count(self, chain: str) -> int:
        grown = min(self._count, SHOWN + int(asyncio.get_running_loop().time() / self._growth_s))
        if self.phase.fault == "is empty":
            grown = 0
        elif self.phase.fault == "lags":
            grown = max(0, grown - self._lag)
        return counts_after(grown)[chain]

    def container(self, chain: str, number: int) -> dict[str, str]:
        return _sent(chain, max(0, number))

    # -- requests ---------------------------------------------------------------------------------------------

    def _happens(self) -> bool:
        return self._source.random() < self.phase.share

    def fault(self) -> str:
        return self.phase.fault if self.phase.fault in TRANSPORT and self._happens() else ""

    def respond(self, path: str, body: bytes) -> bytes:
        call = msgspec.json.decode(body)
        answer: dict[str, Any] = {"jsonrpc": "2.0", "id": call["id"]}
        try:
            answer["result"] = self._changed(path, call["method"], call["params"])
        except LookupError as error:
            answer["error"] = {"code": -32000, "message": error.args[0] if error.args else "404 page not found"}
        return msgspec.json.encode(answer)

    def _changed(self, path: str, method: str, params: dict[str, Any]) -> Any:
        fault = self.phase.fault
        if fault in ERRORS and self._happens():
            raise LookupError("internal error")
        if fault == OTHER_NETWORK and method == "info.getNetworkID":
            return {"networkID": "7"}
        if fault == "keeps no index" and path.startswith("/ext/index/"):
            raise LookupError("index is not enabled")
        if fault == "is bootstrapping" and method == "info.isBootstrapped":
            return {"isBootstrapped": False}
        result = self._answer(path, method, params)
        if method == "index.getContainerRange":
            rows = result["containers"]
            if fault in RANGES and self._happens():
                rows = RANGES[fault](rows)
            elif fault == REVERSED:
                rows = rows[::-1]
            return {"containers": rows}
        return result

    def _container(self, chain: str, number: int) -> dict[str, str]:
        row = _sent(chain, number)
        change = FALSE_CONTAINERS.get(self.phase.fault) or DAMAGE.get(self.phase.fault)
        return change(self, chain, row) if change is not None and number > 0 and self._happens() else row
