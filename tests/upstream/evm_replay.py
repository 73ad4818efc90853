"""An EVM client that replays recorded blocks and state over HTTP, as geth, coreth or anvil would, honestly or not.

`shown` decides how much of the chain there is, `off` what it does not offer, `troubles` what goes wrong on the way, and
`blocks` may be replaced at any moment: that is a reorganisation.
"""

import asyncio
import gzip
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import msgspec
from aiohttp import web
from tests.upstream.evm_eth_call import Reverts, answer
from tests.upstream.evm_recording import KINDS, Blocks, RecordedBlock, loaded, recorded_blocks, recorded_state
from tests.upstream.replay import FOREVER


class Trouble(NamedTuple):
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


class Complaint(Exception):
    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.error = {"code": code, "message": message} | ({} if data is None else {"data": data})


NOT_FOUND = {"geth": "the method {} does not exist/is not available", "anvil": "Method not found"}
BEYOND = {
    "geth": {"trace": (-32000, "block #{} not found"), "state": (-32000, "header not found")},
    "coreth": {
        "block": (-32000, "cannot query unfinalized data"),
        "trace": (-32000, "cannot query unfinalized data"),
        "state": (-32000, "cannot query unfinalized data"),
    },
    "anvil": {
        "trace": (-32001, "Resource not found"),
        "state": (-32602, "BlockOutOfRangeError: block height is {head} but requested was {}"),
    },
}


class EvmReplay:
    """One upstream. Change any attribute while it runs."""

    def __init__(self, chain: str = "geth-1", blocks: Blocks | None = None) -> None:
        self.chain = chain
        self.kind = KINDS[chain]
        meta = loaded(chain, "meta")
        self.chain_id = int(meta["chainId"])
        self.version: str = meta["clientVersion"]
        self.blocks = blocks if blocks is not None else recorded_blocks(chain)
        self.shown: int | None = None  # its head; None: all there is
        self.off: set[str] = set()  # methods and tracers it does not offer; also "disableCode", "batch"
        self.batch_max = 1000 if self.kind != "anvil" else FOREVER
        self.batch_refusal = "array"  # or "object", "413", "400"
        self.pruned_below = 0
        self.at_once_max = FOREVER  # requests; more are answered 429
        self.gzip = True
        self.troubles: list[Trouble] = []
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
    def head(self) -> int:
        return max(self.blocks) if self.shown is None else min(self.shown, max(self.blocks))

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
            return await self._respond(request, json.loads(body))
        finally:
            self.at_once -= 1

    async def _respond(self, request: web.Request, asked: Any) -> web.StreamResponse:
        calls = asked if isinstance(asked, list) else [asked]
        self.batches.append(len(calls))
        trouble = self._whole_trouble(calls)
        if trouble.hang:
            await self._released.wait()
        if trouble.status:
            return web.Response(status=trouble.status, headers=trouble.headers, body=trouble.body or b"")
        if trouble.body is not None:
            return web.Response(body=trouble.body, headers=trouble.headers)
        if isinstance(asked, list) and len(calls) > (1 if "batch" in self.off else self.batch_max):
            return self._too_many(calls)
        answers = [one for call in calls for one in self._one(call)]
        body = b"[" + b",".join(answers) + b"]" if isinstance(asked, list) else b"".join(answers)
        if trouble.hang_up:
            response = web.StreamResponse(headers={"Content-Length": str(len(body))})
            await response.prepare(request)
            await response.write(body[: len(body) // 2])
            assert request.transport is not None
            request.transport.close()
            return response
        body = body[: round(trouble.keep * len(body))]
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
        trouble = self._take(lambda one: not one.whole and _about(one, method, params))
        start = b'{"jsonrpc":"2.0","id":' + msgspec.json.encode(call["id"])
        try:
            if trouble.error is not None:
                raise Complaint(*trouble.error)
            result = self._result(method, params) if trouble.result is None else trouble.result
            if trouble.change is not None:
                result = trouble.change(result)
            said = start + b',"result":' + result + b"}"
        except Complaint as complaint:
            said = start + b',"error":' + msgspec.json.encode(complaint.error) + b"}"
        return [] if trouble.left_out else [said, said] if trouble.twice else [said]

    def _whole_trouble(self, calls: list[dict[str, Any]]) -> Trouble:
        return self._take(
            lambda one: one.whole and any(_about(one, call["method"], call.get("params") or []) for call in calls)
        )

    def _take(self, fits: Callable[[Trouble], bool]) -> Trouble:
        for place, trouble in enumerate(self.troubles):
            if fits(trouble):
                if trouble.times == 1:
                    del self.troubles[place]
                else:
                    self.troubles[place] = trouble._replace(times=trouble.times - 1)
                return trouble
        return Trouble()

    # -- one call ----------------------------------------------------------------------------------------------

    def _result(self, method: str, params: list[Any]) -> bytes:
        make = METHODS.get(method)
        parity = method.startswith("trace_") and self.kind != "anvil"
        if make is None or method in self.off or parity:
            raise Complaint(-32601, NOT_FOUND["anvil" if self.kind == "anvil" else "geth"].format(method))
        return make(self, params)

    def block(self, where: Any, what: str) -> RecordedBlock | None:
        """None where there is none and the client answers null."""
        if isinstance(where, dict) or (isinstance(where, str) and len(where) == 66):
            told = where["blockHash"] if isinstance(where, dict) else where
            found = next((block for block in self.blocks.values() if block.hash == told), None)
            if found is None and what != "block":
                raise Complaint(-32000, "header for hash not found")
            return found
        number = {"latest": self.head, "earliest": 0}.get(where)
        number = int(where, 16) if number is None else number
        if number > self.head or number not in self.blocks:
            refusal = BEYOND[self.kind].get(what)
            if refusal is None:
                return None
            raise Complaint(refusal[0], refusal[1].format(number, head=self.head))
        if number < self.pruned_below and what in ("state", "trace"):
            raise Complaint(-32000, f"missing trie node 56e81f (path ) state {number} is not available")
        return self.blocks[number]

    def there(self, where: Any, what: str) -> RecordedBlock:
        found = self.block(where, what)
        assert found is not None
        return found

    def _traced(self, params: list[Any]) -> bytes:
        block = self.there(params[0], "trace")
        tracer, config = params[1]["tracer"], params[1].get("tracerConfig", {})
        if self.off.intersection([tracer, *(config if tracer == "muxTracer" else ())]):
            raise Complaint(-32000, f"ReferenceError: {tracer} is not defined at <eval>:1:2(0)")
        if block.number == 0 and self.kind != "anvil":
            raise Complaint(-32000, "genesis is not traceable")
        if tracer == "muxTracer":
            return self._mux(block, config)
        if tracer == "callTracer":
            return block.calls or b"[]"
        assert config["diffMode"] is True
        return self.diffs(block, config)

    def diffs(self, block: RecordedBlock, config: dict[str, Any]) -> bytes:
        obeys = self.kind != "coreth" and "disableCode" not in self.off
        return block.lean_diffs if config.get("disableCode") and obeys else block.diffs or b"[]"

    def _mux(self, block: RecordedBlock, config: dict[str, Any]) -> bytes:
        if self.kind == "anvil":
            return msgspec.json.encode([{"result": {}, "txHash": txid} for txid in block.txids])
        calls = msgspec.json.decode(block.calls or b"[]", type=list[dict[str, msgspec.Raw]])
        diffs = msgspec.json.decode(self.diffs(block, config["prestateTracer"]), type=list[dict[str, msgspec.Raw]])
        rows = [
            {"txHash": txid, "result": {"callTracer": call["result"], "prestateTracer": diff["result"]}}
            for txid, call, diff in zip(block.txids, calls, diffs, strict=True)
        ]
        return msgspec.json.encode(rows)

    def _block(self, params: list[Any]) -> bytes:
        found = self.block(params[0], "block")
        return b"null" if found is None else found.block if params[1] else found.slim

    def _receipts(self, params: list[Any]) -> bytes:
        number = int(params[0], 16) if len(params[0]) < 66 else None
        if number is not None and (number > self.head or number not in self.blocks):
            return b"null"
        found = self.block(params[0], "block")
        return b"null" if found is None else found.receipts

    def _receipt(self, params: list[Any]) -> bytes:
        for block in self.blocks.values():
            if params[0] in block.txids and block.number <= self.head:
                return block.single_receipts[block.txids.index(params[0])]
        return b"null"

    def _balance(self, params: list[Any]) -> bytes:
        block = self.there(params[1], "state")
        wei = recorded_state(self.chain).at(block.number, "native", params[0].lower())
        return msgspec.json.encode(hex(int(wei or 0)))

    def _code(self, params: list[Any]) -> bytes:
        block = self.there(params[1], "state")
        return msgspec.json.encode(recorded_state(self.chain).code(params[0].lower(), block.number))

    def _eth_call(self, params: list[Any]) -> bytes:
        block = self.there(params[1], "state")
        try:
            return msgspec.json.encode(answer(recorded_state(self.chain), params[0], block.number))
        except Reverts as reverts:
            bare = self.kind == "coreth" and reverts.data == "0x"
            raise Complaint(*((-32000, str(reverts)) if bare else (3, str(reverts), reverts.data))) from reverts

    def _trace_block(self, params: list[Any]) -> bytes:
        block = self.there(params[0], "trace")
        rows = [
            {"action": {}, "traceAddress": at, "transactionHash": row["txHash"], "type": frame["type"].lower()}
            for row in msgspec.json.decode(block.calls or b"[]")
            for frame, at in _frames(row["result"], [])
        ]
        return msgspec.json.encode(rows)

    def _trace_replay(self, params: list[Any]) -> bytes:
        block = self.there(params[0], "trace")
        rows = [
            {"output": "0x", "stateDiff": _state_diff(row["result"]), "trace": [], "transactionHash": row["txHash"]}
            for row in msgspec.json.decode(block.diffs or b"[]")
        ]
        return msgspec.json.encode(rows)


METHODS: dict[str, Callable[[EvmReplay, list[Any]], bytes]] = {
    "eth_chainId": lambda it, _: msgspec.json.encode(hex(it.chain_id)),
    "web3_clientVersion": lambda it, _: msgspec.json.encode(it.version),
    "eth_blockNumber": lambda it, _: msgspec.json.encode(hex(it.head)),
    "eth_getBlockByNumber": EvmReplay._block,
    "eth_getBlockByHash": EvmReplay._block,
    "eth_getBlockReceipts": EvmReplay._receipts,
    "eth_getTransactionReceipt": EvmReplay._receipt,
    "debug_traceBlockByNumber": EvmReplay._traced,
    "trace_block": EvmReplay._trace_block,
    "trace_replayBlockTransactions": EvmReplay._trace_replay,
    "eth_getBalance": EvmReplay._balance,
    "eth_getCode": EvmReplay._code,
    "eth_call": EvmReplay._eth_call,
}


def _about(trouble: Trouble, method: str, params: list[Any]) -> bool:
    fits = method.startswith(trouble.method)
    return fits and (trouble.number is None or (bool(params) and params[0] == hex(trouble.number)))


def _frames(frame: dict[str, Any], at: list[int]) -> Iterator[tuple[dict[str, Any], list[int]]]:
    yield frame, at
    for place, inner in enumerate(frame.get("calls", [])):
        yield from _frames(inner, [*at, place])


def _state_diff(diff: dict[str, Any]) -> dict[str, Any]:
    """Of balances only: enough to tell whose it is."""
    told = {}
    for address in diff["pre"] | diff["post"]:
        before, after = diff["pre"].get(address, {}), diff["post"].get(address, {})
        change = {"*": {"from": before.get("balance", "0x0"), "to": after.get("balance", before.get("balance", "0x0"))}}
        told[address] = {"balance": change, "code": "=", "nonce": "=", "storage": {}}
    return told


@contextmanager
def in_thread(replay: EvmReplay) -> Iterator[EvmReplay]:
    """For a test that fetches from another process: the upstream runs on a loop of its own."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        asyncio.run_coroutine_threadsafe(replay.start(), loop).result(10)
        yield replay
        asyncio.run_coroutine_threadsafe(replay.stop(), loop).result(10)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()
