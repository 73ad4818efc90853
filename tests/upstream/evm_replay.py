"""An EVM client that replays recorded blocks and state over HTTP, as geth, coreth or anvil would, honestly or not.

`shown` decides how much of the chain there is, `off` what it does not offer, `evm_faults` what goes wrong, and
`blocks` may be replaced at any moment: that is a reorganisation.
"""

import asyncio
import gzip
from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec
from aiohttp import web
from tests.upstream.evm_parity_shapes import trace_block, trace_replay
from tests.upstream.evm_recording import recording
from tests.upstream.replay import FOREVER

from icefall.demo.recording import Blocks, RecordedBlock
from icefall.demo.replay import METHODS as RECORDED_METHODS
from icefall.demo.replay import Replay, ReplayError


class EvmFault(NamedTuple):
    """For the next `times` calls of `method` (a prefix; "" is every one), only those about block `number` if given."""

    method: str = ""
    times: int = 1
    number: int | None = None
    # with the request as a whole
    status: int = 0
    headers: dict[str, str] = {}  # noqa: RUF012
    body: bytes | None = None
    keep: float = 1.0  # the share of the answer that is sent before it ends as if it were whole
    hang: bool = False
    hang_up: bool = False  # close the connection in the middle of the answer
    # with one answer in it
    result: bytes | None = None
    change: Callable[[bytes], bytes] | None = None
    error: tuple[int, str] | None = None
    left_out: bool = False
    twice: bool = False

    @property
    def whole(self) -> bool:
        return bool(self.status or self.body is not None or self.keep < 1 or self.hang or self.hang_up)


class EvmReplay(Replay):
    """One upstream. Change any attribute while it runs."""

    def __init__(self, chain: str = "geth-1", blocks: Blocks | None = None) -> None:
        super().__init__(recording(chain))
        self.chain = chain
        self._blocks = blocks
        self._newest: int | None = None
        self._by_hash: dict[str, RecordedBlock] = {}
        self._by_txid: dict[str, RecordedBlock] = {}
        self.shown: int | None = None  # its head; None: all there is
        self.off: set[str] = set()  # methods and tracers it does not offer; also "disableCode", "batch"
        self.parity = self.kind == "anvil"  # whether it offers trace_*
        self.batch_max = 1000 if self.kind != "anvil" else FOREVER
        self.batch_refusal = "array"  # or "object", "413", "400"
        self.pruned_below = 0
        self.at_once_max = FOREVER  # requests; more are answered 429
        self.gzip = True
        self.evm_faults: list[EvmFault] = []
        self.calls: list[tuple[str, list[Any]]] = []
        self.batches: list[int] = []  # the number of calls in each request
        self.at_once = 0
        self.most_at_once = 0
        self.on_call: Callable[[str, list[Any]], None] = lambda method, params: None
        self.url = ""
        self._runner: web.AppRunner | None = None
        self._released = asyncio.Event()

    # -- running -----------------------------------------------------------------------------------------------

    async def __aenter__(self) -> "EvmReplay":
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def start(self, port: int = 0) -> None:
        app = web.Application(client_max_size=64 << 20)
        app.router.add_route("*", "/{tail:.*}", self._serve)
        self._released.clear()
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.01)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", port)
        await site.start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"

    async def stop(self) -> None:
        self._released.set()
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    @property
    def blocks(self) -> Blocks:
        return self.recording.blocks if self._blocks is None else self._blocks

    @blocks.setter
    def blocks(self, blocks: Blocks) -> None:
        self._blocks, self._newest, self._by_hash, self._by_txid = blocks, None, {}, {}

    @property
    def head(self) -> int:
        if self._newest is None:
            self._newest = max(self.blocks)
        return self._newest if self.shown is None else min(self.shown, self._newest)

    def asked(self, method: str) -> int:
        return sum(name == method for name, _ in self.calls)

    # -- one request -------------------------------------------------------------------------------------------

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            body = await request.read()
            if self.at_once > self.at_once_max:
                return web.Response(status=429)
            for _ in range(20 if self.at_once_max < FOREVER else 0):
                await asyncio.sleep(0)  # so that requests meet
            return await self._respond(request, msgspec.json.decode(body))
        finally:
            self.at_once -= 1

    async def _respond(self, request: web.Request, asked: Any) -> web.StreamResponse:
        calls = asked if isinstance(asked, list) else [asked]
        self.batches.append(len(calls))
        evm_fault = self._batch_fault(calls)
        if evm_fault.hang:
            await self._released.wait()
        if evm_fault.status:
            return web.Response(status=evm_fault.status, headers=evm_fault.headers, body=evm_fault.body or b"")
        if evm_fault.body is not None:
            return web.Response(body=evm_fault.body, headers=evm_fault.headers)
        if isinstance(asked, list) and len(calls) > (1 if "batch" in self.off else self.batch_max):
            return self._too_many(calls)
        answers = [one for call in calls for one in self._one(call)]
        body = b"[" + b",".join(answers) + b"]" if isinstance(asked, list) else b"".join(answers)
        if evm_fault.hang_up:
            response = web.StreamResponse(headers={"Content-Length": str(len(body))})
            await response.prepare(request)
            await response.write(body[: len(body) // 2])
            assert request.transport is not None
            request.transport.close()
            return response
        body = body[: round(evm_fault.keep * len(body))]
        if self.gzip and "gzip" in request.headers.get("accept-encoding", ""):
            return web.Response(body=gzip.compress(body, 1), headers={"Content-Encoding": "gzip"})
        return web.Response(body=body, content_type="application/json")

    def _too_many(self, calls: list[dict[str, Any]]) -> web.Response:
        if self.batch_refusal in ("413", "400"):
            return web.Response(status=int(self.batch_refusal), text="no")
        error = {"jsonrpc": "2.0", "id": calls[0]["id"], "error": {"code": -32600, "message": "batch too large"}}
        if self.batch_refusal == "object":
            error |= {"id": None}
        return web.json_response([error] if self.batch_refusal == "array" else error)

    def _one(self, call: dict[str, Any]) -> list[bytes]:
        method, params = call["method"], call.get("params") or []
        self.calls.append((method, params))
        self.on_call(method, params)
        evm_fault = self._take(lambda one: not one.whole and _about(one, method, params))
        start = b'{"jsonrpc":"2.0","id":' + msgspec.json.encode(call["id"])
        try:
            if evm_fault.error is not None:
                raise ReplayError(*evm_fault.error)
            result = self.result(method, params) if evm_fault.result is None else evm_fault.result
            if evm_fault.change is not None:
                result = evm_fault.change(result)
            said = start + b',"result":' + result + b"}"
        except ReplayError as failed:
            said = start + b',"error":' + msgspec.json.encode(failed.error) + b"}"
        return [] if evm_fault.left_out else [said, said] if evm_fault.twice else [said]

    def _batch_fault(self, calls: list[dict[str, Any]]) -> EvmFault:
        return self._take(
            lambda one: one.whole and any(_about(one, call["method"], call.get("params") or []) for call in calls)
        )

    def _take(self, fits: Callable[[EvmFault], bool]) -> EvmFault:
        for place, evm_fault in enumerate(self.evm_faults):
            if fits(evm_fault):
                if evm_fault.times == 1:
                    del self.evm_faults[place]
                else:
                    self.evm_faults[place] = evm_fault._replace(times=evm_fault.times - 1)
                return evm_fault
        return EvmFault()

    # -- one call ----------------------------------------------------------------------------------------------

    def result(self, method: str, params: list[Any]) -> bytes:
        make = METHODS.get(method)
        if make is not None and method not in self.off and (self.parity or not method.startswith("trace_")):
            return make(self, params)
        if method in RECORDED_METHODS and method not in self.off:
            return super().result(method, params)
        raise self.unknown(method)

    def block(self, where: Any, what: str) -> RecordedBlock | None:
        if isinstance(where, dict) and "blockHash" in self.off:
            raise ReplayError(-32602, "invalid argument 1: json: cannot unmarshal object into Go value of type string")
        by_number = isinstance(where, str) and len(where) < 66
        found = super().block(where, what) if by_number else self._block_by_hash(where, what)
        if by_number and found is not None and found.number < self.pruned_below and what in ("state", "trace"):
            raise ReplayError(-32000, f"missing trie node 56e81f (path ) state {found.number} is not available")
        return found

    def _block_by_hash(self, where: Any, what: str) -> RecordedBlock | None:
        """Most calls of an audit name a block by its hash, so they are not searched one by one."""
        if not self._by_hash:
            self._by_hash = {block.hash: block for block in self.blocks.values()}
        found = self._by_hash.get(where["blockHash"] if isinstance(where, dict) else where)
        return super().block(where, what) if found is None else found

    def _block_of(self, txid: str) -> RecordedBlock | None:
        if not self._by_txid:
            self._by_txid = {txid: block for block in self.blocks.values() for txid in block.txids}
        found = self._by_txid.get(txid)
        return found if found is not None and found.number <= self.head else None

    def traces_result(self, params: list[Any]) -> bytes:
        self.existing_block(params[0], "trace")
        tracer, config = params[1]["tracer"], params[1].get("tracerConfig", {})
        if self.off.intersection([tracer, *(config if tracer == "muxTracer" else ())]):
            raise ReplayError(-32000, f"ReferenceError: {tracer} is not defined at <eval>:1:2(0)")
        return super().traces_result(params)

    def diffs(self, block: RecordedBlock, config: dict[str, Any]) -> bytes:
        return super().diffs(block, {} if "disableCode" in self.off else config)

    def _trace_block(self, params: list[Any]) -> bytes:
        block = self.existing_block(params[0], "trace")
        calls = msgspec.json.decode(block.calls or b"[]")
        return msgspec.json.encode(trace_block(calls, msgspec.json.decode(block.without_txs)))

    def _trace_replay(self, params: list[Any]) -> bytes:
        block = self.existing_block(params[0], "trace")
        rows = trace_replay(msgspec.json.decode(block.calls or b"[]"), msgspec.json.decode(block.diffs or b"[]"))
        return msgspec.json.encode(rows)

    def _trace_transaction(self, params: list[Any]) -> bytes:
        block = self._block_of(params[0])
        rows = [] if block is None else msgspec.json.decode(self._trace_block([hex(block.number)]))
        return msgspec.json.encode([row for row in rows if row.get("transactionHash") == params[0]])

    def _trace_replay_transaction(self, params: list[Any]) -> bytes:
        block = self._block_of(params[0])
        rows = [] if block is None else msgspec.json.decode(self._trace_replay([hex(block.number)]))
        found = next(row for row in rows if row["transactionHash"] == params[0])
        return msgspec.json.encode({name: value for name, value in found.items() if name != "transactionHash"})


METHODS: dict[str, Callable[[EvmReplay, list[Any]], bytes]] = {
    "trace_replayTransaction": EvmReplay._trace_replay_transaction,
    "trace_transaction": EvmReplay._trace_transaction,
    "trace_block": EvmReplay._trace_block,
    "trace_replayBlockTransactions": EvmReplay._trace_replay,
}


def _about(evm_fault: EvmFault, method: str, params: list[Any]) -> bool:
    fits = method.startswith(evm_fault.method)
    return fits and (evm_fault.number is None or (bool(params) and params[0] == hex(evm_fault.number)))
