"""An EVM upstream that sends pre-encoded answers, in a separate process, so that it costs little CPU."""

import asyncio
import multiprocessing
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from multiprocessing.connection import Connection
from typing import Any

import msgspec
from aiohttp import web

from bench.evm_chain import EncodedBlock
from icefall.demo.recording import Reverts

State = Callable[[str, list[Any], int], str]  # eth_call, eth_getCode, eth_getBalance: method, params, block -> result


class EncodedChain:
    """Answers by method and block number."""

    def __init__(
        self,
        chain_id: int,
        blocks: Sequence[EncodedBlock],
        state: State,
        read_by: Callable[[list[Any]], bytes] | None = None,
    ) -> None:
        self._chain_id = chain_id
        self._blocks = blocks
        self._numbers = {block.hash: block.number for block in blocks}
        self._state = state
        self._read_by = read_by  # answers debug_traceCall; None: it is not offered
        self._mux = [_mux(block) for block in blocks]
        self._slim = [_slim(block) for block in blocks]

    @property
    def head(self) -> int:
        return len(self._blocks) - 1

    def answer(self, method: str, params: list[Any]) -> bytes:
        match method:
            case "eth_getBlockByNumber":
                number = self._number(params[0])
                if number > self.head:
                    return b"null"
                return self._blocks[number].block if params[1] else self._slim[number]
            case "eth_getBlockReceipts":
                return self._blocks[self._number(params[0])].receipts
            case "debug_traceBlockByNumber":
                return self._traced(self._number(params[0]), params[1])
            case "debug_traceCall" if self._read_by is not None:
                return self._read_by(params)
            case "eth_blockNumber":
                return _text(hex(self.head))
            case "eth_chainId":
                return _text(hex(self._chain_id))
            case "web3_clientVersion":
                return b'"bench"'
            case "eth_getBalance" | "eth_getCode" | "eth_call":
                return _text(self._state(method, params, self._number(params[1])))
        raise LookupError(method)

    def _number(self, where: Any) -> int:
        if isinstance(where, dict):
            return self._numbers[where["blockHash"]]
        return self.head if where == "latest" else int(where, 16)

    def _traced(self, number: int, options: Mapping[str, Any]) -> bytes:
        if number == 0:
            raise LookupError("genesis is not traceable")
        match options["tracer"]:
            case "callTracer":
                return self._blocks[number].calls
            case "prestateTracer":
                return self._blocks[number].diffs
            case "muxTracer":
                return self._mux[number]
        raise LookupError(options["tracer"])


def _text(value: str) -> bytes:
    return b'"' + value.encode() + b'"'


def _mux(block: EncodedBlock) -> bytes:
    calls, diffs = msgspec.json.decode(block.calls), msgspec.json.decode(block.diffs)
    return msgspec.json.encode(
        [
            {"txHash": call["txHash"], "result": {"callTracer": call["result"], "prestateTracer": diff["result"]}}
            for call, diff in zip(calls, diffs, strict=True)
        ]
    )


def _slim(block: EncodedBlock) -> bytes:
    decoded = msgspec.json.decode(block.block)
    return msgspec.json.encode(decoded | {"transactions": [tx["hash"] for tx in decoded["transactions"]]})


@contextmanager
def upstream(encoded: EncodedChain) -> Iterator[tuple[str, int]]:
    """Its URL and process ID."""
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("fork").Process(target=_main, args=(encoded, theirs), daemon=True)
    process.start()
    try:
        assert process.pid is not None
        yield ours.recv(), process.pid
    finally:
        process.terminate()
        process.join()


def _main(encoded: EncodedChain, parent: Connection) -> None:
    asyncio.run(_serve(encoded, parent))


async def _serve(encoded: EncodedChain, parent: Connection) -> None:
    async def handle(request: web.Request) -> web.Response:
        body = msgspec.json.decode(await request.read())
        if isinstance(body, list):
            return _json(b"[" + b",".join([_one(encoded, call) for call in body]) + b"]")
        return _json(_one(encoded, body))

    app = web.Application(client_max_size=64 << 20)
    app.router.add_post("/", handle)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    parent.send(f"http://127.0.0.1:{runner.addresses[0][1]}")
    await asyncio.Event().wait()


def _one(encoded: EncodedChain, call: dict[str, Any]) -> bytes:
    head = b'{"jsonrpc":"2.0","id":%s,' % msgspec.json.encode(call["id"])
    try:
        return head + b'"result":' + encoded.answer(call["method"], call.get("params", [])) + b"}"
    except Reverts as reverts:
        error: dict[str, Any] = {"code": 3, "message": "execution reverted", "data": reverts.data}
    except LookupError as missing:
        error = {"code": -32601, "message": f"the method {missing} does not exist/is not available"}
        if "traceable" in str(missing):
            error = {"code": -32000, "message": "genesis is not traceable"}
    return head + b'"error":' + msgspec.json.encode(error) + b"}"


def _json(body: bytes) -> web.Response:
    return web.Response(body=body, content_type="application/json")
