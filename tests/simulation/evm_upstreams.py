"""EVM clients that are honest or not, by their schedule. Every false answer can be recognised as one: by a hash, a link
or a count. What only state shows (a balance, a call) is always answered truly, since nothing could prove it false.
"""

import asyncio
import json
import random
from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec
from tests.simulation.evm_chains import Chain, World
from tests.simulation.network import TRANSPORT
from tests.simulation.schedule import Phase, Schedule

from icefall.demo.recording import Blocks, RecordedBlock
from icefall.demo.replay import Replay, ReplayError

Change = Callable[["EvmServer", list[Any], Any], Any]


class FalseResult(NamedTuple):
    """Changes results of methods with that prefix. `change` receives the decoded result and returns another."""

    method: str
    change: Change


def _with(**fields: str) -> Change:
    return lambda server, params, block: block | fields if block else block


def _other_block(server: "EvmServer", params: list[Any], block: Any) -> Any:
    number = int(block["number"], 16) if block else 0
    other = server.at(max(1, number - 1))
    return block if other is None else json.loads(other.block if params[1] else other.without_txs)


def _changed_tx(server: "EvmServer", params: list[Any], block: Any) -> Any:
    if block and block["transactions"] and isinstance(block["transactions"][0], dict):
        block["transactions"][0]["value"] = hex(int(block["transactions"][0]["value"], 16) + 1)
    return block


def _changed_log(server: "EvmServer", params: list[Any], receipts: Any) -> Any:
    for receipt in receipts or []:
        for log in receipt["logs"]:
            log["data"] = "0x" + "77" * (len(log["data"]) // 2 - 1)
    return receipts


def _changed_status(server: "EvmServer", params: list[Any], receipts: Any) -> Any:
    return [receipt | {"status": hex(1 - int(receipt["status"], 16))} for receipt in receipts or []]


def _other_receipts(server: "EvmServer", params: list[Any], receipts: Any) -> Any:
    other = server.at(max(1, int(params[0], 16) - 1))
    return receipts if other is None else json.loads(other.receipts)


WRONG_HASH = "0x" + "66" * 32
INVALID_DATA: dict[str, FalseResult] = {
    "sends wrong hashes": FalseResult("eth_getBlockBy", _with(hash=WRONG_HASH)),
    "sends wrong parents": FalseResult("eth_getBlockBy", _with(parentHash=WRONG_HASH)),
    "sends wrong times": FalseResult("eth_getBlockBy", _with(timestamp="0x1")),
    "sends other blocks": FalseResult("eth_getBlockBy", _other_block),
    "changes transactions": FalseResult("eth_getBlockBy", _changed_tx),
    "changes logs": FalseResult("eth_getBlockReceipts", _changed_log),
    "changes statuses": FalseResult("eth_getBlockReceipts", _changed_status),
    "sends other receipts": FalseResult("eth_getBlockReceipts", _other_receipts),
    "leaves out a receipt": FalseResult("eth_getBlockReceipts", lambda server, params, rows: rows and rows[:-1]),
    "leaves out a trace": FalseResult("debug_", lambda server, params, rows: rows and rows[1:]),
    "has no receipts": FalseResult("eth_getBlockReceipts", lambda server, params, rows: None),
    "has no blocks": FalseResult("eth_getBlockByNumber", lambda server, params, block: None),
}
NO_STATE = "has no state"
REFUSALS: dict[str, tuple[str, int, str]] = {
    "fails inside": ("", -32603, "internal error"),
    "limits calls": ("", -32005, "limit exceeded"),
    "has no headers": ("eth_get", -32000, "header not found"),
    NO_STATE: ("eth_call", -32000, "missing trie node 56e81f (path ) state is not available"),
    "aborts traces": ("debug_", -32000, "execution timeout"),
}
BATCHES = ("leaves out answers", "sends answers twice", "swaps answers")
HEADS = ("is at block 0", "says block 0", "lags", "boasts")
IDENTITY = ("serves another chain",)
BRANCH = "is on another branch"
FAULTS = (*TRANSPORT, *INVALID_DATA, *REFUSALS, *BATCHES, *HEADS, BRANCH, BRANCH, BRANCH, *IDENTITY)
_SERVED_S = 300.0  # for how long what an upstream served may still be the reason of what the program does


class View(NamedTuple):
    """The chain that an upstream serves at a moment."""

    chain: Chain
    head: int

    def replaces(self, number: int, block_hash: bytes, tip: int) -> bool:
        """Whether it has another block there, and is at least as high as the chain with this one."""
        return self.head >= tip and self.chain.by_number[number].hash != "0x" + block_hash.hex()


class EvmServer(Replay):
    def __init__(self, world: World, schedule: Schedule, growth_s: float, source: random.Random) -> None:
        super().__init__(world.recording)
        self.schedule = schedule
        self._served: dict[View, float] = {}
        self._world = world
        self._growth_s = growth_s  # between two blocks of the true chain
        self._source = source
        self._branches = {phase: source.choice(world.branches) for phase in schedule.phases}
        self._lag = source.randint(1, world.true.head)

    # -- which chain ------------------------------------------------------------------------------------------

    @property
    def phase(self) -> Phase:
        return self.schedule.at(asyncio.get_running_loop().time())

    def view(self) -> View:
        phase, world = self.phase, self._world
        if phase.fault == BRANCH:
            chain = self._branches[phase]
            return View(chain, chain.head)
        grown = world.shown + int(asyncio.get_running_loop().time() / self._growth_s)
        head = min(grown, world.true.head)
        if phase.fault == "is at block 0":
            head = 0
        elif phase.fault == "lags":
            head = max(0, head - self._lag)
        return View(world.true, head)

    @property
    def head(self) -> int:
        return self.view().head

    @property
    def blocks(self) -> Blocks:
        return self.view().chain.by_number

    def block(self, where: Any, what: str) -> RecordedBlock | None:
        block_hash = where["blockHash"] if isinstance(where, dict) else where
        if len(block_hash) < 66:
            return super().block(where, what)
        chain, head = self.view()
        number = chain.numbers.get(block_hash)
        if number is not None and number <= head:
            return chain.by_number[number]
        if what == "block":
            return None
        raise ReplayError(-32000, "header for hash not found")

    def at(self, number: int) -> RecordedBlock | None:
        chain, head = self.view()
        return chain.by_number[number] if number <= head else None

    def existing_block(self, where: Any, what: str) -> RecordedBlock:
        found = super().existing_block(where, what)
        if what == "state":  # the state after this block is the recorded one after its content
            return self.recording.blocks[self.view().chain.blocks[found.number].content]
        return found

    # -- requests ---------------------------------------------------------------------------------------------

    def _happens(self) -> bool:
        return self._source.random() < self.phase.share

    def fault(self) -> str:
        return self.phase.fault if self.phase.fault in TRANSPORT and self._happens() else ""

    def has_replaced(self, number: int, block_hash: bytes, tip: int) -> bool:
        """Whether a chain that was served lately has another block there, and is at least as high."""
        since = asyncio.get_running_loop().time() - _SERVED_S
        return any(at >= since and view.replaces(number, block_hash, tip) for view, at in self._served.items())

    def respond(self, path: str, body: bytes) -> bytes:
        self._served[self.view()] = asyncio.get_running_loop().time()
        asked = msgspec.json.decode(body)
        calls = asked if isinstance(asked, list) else [asked]
        answers = [self._one(call) for call in calls]
        if not isinstance(asked, list):
            return answers[0]
        fault = self.phase.fault
        if fault in BATCHES and self._happens():
            if fault == "leaves out answers":
                del answers[self._source.randrange(len(answers))]
            elif fault == "sends answers twice":
                answers.append(self._source.choice(answers))
            else:
                self._source.shuffle(answers)
        return b"[" + b",".join(answers) + b"]"

    def _one(self, call: dict[str, Any]) -> bytes:
        method = call["method"]
        fault = self.phase.fault
        start = b'{"jsonrpc":"2.0","id":' + msgspec.json.encode(call["id"])
        refusal = REFUSALS.get(fault)
        if refusal is not None and method.startswith(refusal[0]) and self._happens():
            return start + b',"error":' + msgspec.json.encode({"code": refusal[1], "message": refusal[2]}) + b"}"
        try:
            result = self.result(method, call.get("params") or [])
        except ReplayError as failed:
            return start + b',"error":' + msgspec.json.encode(failed.error) + b"}"
        false = INVALID_DATA.get(fault)
        if false is not None and method.startswith(false.method) and self._happens():
            result = msgspec.json.encode(false.change(self, call.get("params") or [], json.loads(result)))
        elif method == "eth_blockNumber" and fault == "says block 0":
            result = b'"0x0"'
        elif method == "eth_blockNumber" and fault == "boasts":
            result = msgspec.json.encode(hex(self.head + 40))
        elif method == "eth_chainId" and fault in IDENTITY and self._happens():
            result = b'"0x7"'
        return start + b',"result":' + result + b"}"
