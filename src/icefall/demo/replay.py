"""A recorded chain that answers like the recorded client, errors included.

`Replay` answers calls, `ReplayServer` serves several of them over HTTP, each at the path of its name.
"""

import socket
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

import msgspec
from aiohttp import web

from icefall.demo.recording import Blocks, RecordedBlock, RecordedState, Recording, Reverts, answer


class _Txs(msgspec.Struct):
    """A block with its transactions as they were sent."""

    transactions: list[msgspec.Raw]


class ReplayError(Exception):
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


class Replay:
    """One recorded chain."""

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self.kind = recording.kind
        self.chain_id = int(recording.meta["chainId"])
        self.version: str = recording.meta["clientVersion"]

    @cached_property
    def blocks(self) -> Blocks:
        return self.recording.blocks

    @property
    def state(self) -> RecordedState:
        return self.recording.state

    @property
    def head(self) -> int:
        return int(self.recording.meta["lastBlock"])

    def answer(self, call: dict[str, Any]) -> bytes:
        """The answer to one JSON-RPC call, errors included."""
        start = b'{"jsonrpc":"2.0","id":' + msgspec.json.encode(call.get("id"))
        try:
            return start + b',"result":' + self.result(call["method"], call.get("params") or []) + b"}"
        except ReplayError as error:
            return start + b',"error":' + msgspec.json.encode(error.error) + b"}"

    def result(self, method: str, params: list[Any]) -> bytes:
        make = METHODS.get(method)
        if make is None:
            raise self.unknown(method)
        return make(self, params)

    def unknown(self, method: str) -> ReplayError:
        return ReplayError(-32601, NOT_FOUND["anvil" if self.kind == "anvil" else "geth"].format(method))

    # -- blocks ------------------------------------------------------------------------------------------------

    def block(self, where: Any, what: str) -> RecordedBlock | None:
        """None if there is no such block and the client answers null."""
        if isinstance(where, dict) or (isinstance(where, str) and len(where) == 66):
            block_hash = where["blockHash"] if isinstance(where, dict) else where
            found = next((block for block in self.blocks.values() if block.hash == block_hash), None)
            if found is None and what != "block":
                raise ReplayError(-32000, "header for hash not found")
            return found
        number = {"latest": self.head, "earliest": 0}.get(where)
        number = int(where, 16) if number is None else number
        if number > self.head or number not in self.blocks:
            refusal = BEYOND[self.kind].get(what)
            if refusal is None:
                return None
            raise ReplayError(refusal[0], refusal[1].format(number, head=self.head))
        return self.blocks[number]

    def existing_block(self, where: Any, what: str) -> RecordedBlock:
        found = self.block(where, what)
        assert found is not None
        return found

    def block_result(self, params: list[Any]) -> bytes:
        found = self.block(params[0], "block")
        return b"null" if found is None else found.block if params[1] else found.without_txs

    def receipts_result(self, params: list[Any]) -> bytes:
        number = int(params[0], 16) if len(params[0]) < 66 else None
        if number is not None and (number > self.head or number not in self.blocks):
            return b"null"
        found = self.block(params[0], "block")
        return b"null" if found is None else found.receipts

    def tx_result(self, params: list[Any]) -> bytes:
        block = self._block_of(params[0])
        if block is None:
            return b"null"
        return bytes(msgspec.json.decode(block.block, type=_Txs).transactions[block.txids.index(params[0])])

    def receipt_result(self, params: list[Any]) -> bytes:
        block = self._block_of(params[0])
        return b"null" if block is None else block.single_receipts[block.txids.index(params[0])]

    # -- traces ------------------------------------------------------------------------------------------------

    def traces_result(self, params: list[Any]) -> bytes:
        block = self.existing_block(params[0], "trace")
        tracer, config = params[1]["tracer"], params[1].get("tracerConfig", {})
        if block.number == 0 and self.kind != "anvil":
            raise ReplayError(-32000, "genesis is not traceable")
        if tracer == "muxTracer":
            return self._mux(block, config)
        if tracer == "callTracer":
            return block.calls or b"[]"
        if tracer != "prestateTracer" or config.get("diffMode") is not True:
            raise ReplayError(-32000, f"{tracer} was not recorded")
        return self.diffs(block, config)

    def diffs(self, block: RecordedBlock, config: dict[str, Any]) -> bytes:
        can_omit_code = self.kind != "coreth"
        return block.diffs_without_code if config.get("disableCode") and can_omit_code else block.diffs or b"[]"

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

    def trace_result(self, params: list[Any]) -> bytes:
        """The traces of one transaction."""
        block = self._block_of(params[0])
        if block is None:
            raise ReplayError(-32000, "transaction not found")
        of_block = self.traces_result([hex(block.number), params[1]])
        rows = msgspec.json.decode(of_block, type=list[dict[str, msgspec.Raw]])
        return bytes(rows[block.txids.index(params[0])]["result"])

    def _block_of(self, txid: str) -> RecordedBlock | None:
        shown = (block for block in self.blocks.values() if block.number <= self.head)
        return next((block for block in shown if txid in block.txids), None)

    def logs_result(self, params: list[Any]) -> bytes:
        """Logs of one contract."""
        where = params[0]
        numbers = range(int(where["fromBlock"], 16), min(int(where["toBlock"], 16), self.head) + 1)
        receipts = (msgspec.json.decode(self.blocks[number].receipts) for number in numbers if number in self.blocks)
        found = [log for block in receipts for receipt in block for log in receipt["logs"] if _fits(log, where)]
        return msgspec.json.encode(found)

    # -- state -------------------------------------------------------------------------------------------------

    def balance_result(self, params: list[Any]) -> bytes:
        block = self.existing_block(params[1], "state")
        wei = self.state.at(block.number, "native", params[0].lower())
        return msgspec.json.encode(hex(int(wei or 0)))

    def code_result(self, params: list[Any]) -> bytes:
        block = self.existing_block(params[1], "state")
        return msgspec.json.encode(self.state.code(params[0].lower(), block.number))

    def storage_result(self, params: list[Any]) -> bytes:
        block = self.existing_block(params[2], "state")
        slot = f"0x{int(params[1], 16):064x}"
        return msgspec.json.encode(self.state.word(params[0].lower(), slot, block.number))

    def call_result(self, params: list[Any]) -> bytes:
        block = self.existing_block(params[1], "state")
        try:
            return msgspec.json.encode(answer(self.state, params[0], block.number))
        except Reverts as reverts:
            bare = self.kind == "coreth" and reverts.data == "0x"
            raise ReplayError(*((-32000, str(reverts)) if bare else (3, str(reverts), reverts.data))) from reverts


def _fits(log: dict[str, Any], where: dict[str, Any]) -> bool:
    topics = where.get("topics") or []
    if log["address"].lower() != where["address"].lower() or len(topics) > len(log["topics"]):
        return False
    return all(topic in (None, given) for topic, given in zip(topics, log["topics"], strict=False))


METHODS: dict[str, Callable[[Replay, list[Any]], bytes]] = {
    "eth_chainId": lambda replay, _: msgspec.json.encode(hex(replay.chain_id)),
    "web3_clientVersion": lambda replay, _: msgspec.json.encode(replay.version),
    "eth_blockNumber": lambda replay, _: msgspec.json.encode(hex(replay.head)),
    "eth_getBlockByNumber": Replay.block_result,
    "eth_getBlockByHash": Replay.block_result,
    "eth_getBlockReceipts": Replay.receipts_result,
    "eth_getTransactionByHash": Replay.tx_result,
    "eth_getTransactionReceipt": Replay.receipt_result,
    "eth_getLogs": Replay.logs_result,
    "debug_traceTransaction": Replay.trace_result,
    "debug_traceBlockByNumber": lambda replay, params: replay.traces_result(params),
    "eth_getBalance": Replay.balance_result,
    "eth_getCode": Replay.code_result,
    "eth_getStorageAt": Replay.storage_result,
    "eth_call": Replay.call_result,
}


class ReplayServer:
    """Recorded chains over HTTP, on loopback only."""

    def __init__(self, replays: Mapping[str, Replay]) -> None:
        self._replays = replays
        app = web.Application(client_max_size=16 << 20)
        app.router.add_post("/{name}", self._serve)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.5)

    async def start(self, listening: socket.socket | None = None) -> str:
        """Its base URL. Without a socket it takes a free port."""
        await self._runner.setup()
        site = web.SockSite(self._runner, listening) if listening else web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        return f"http://127.0.0.1:{self._runner.addresses[0][1]}"

    async def stop(self) -> None:
        await self._runner.cleanup()

    async def _serve(self, request: web.Request) -> web.Response:
        replay = self._replays.get(request.match_info["name"])
        if replay is None:
            return web.Response(status=404)
        try:
            requested = msgspec.json.decode(await request.read())
            calls = requested if isinstance(requested, list) else [requested]
            answers = [replay.answer(call) for call in calls]
        except (msgspec.DecodeError, KeyError, IndexError, TypeError, ValueError, AttributeError):
            return web.Response(status=400)
        body = b"[" + b",".join(answers) + b"]" if isinstance(requested, list) else answers[0]
        return web.Response(body=body, content_type="application/json")
