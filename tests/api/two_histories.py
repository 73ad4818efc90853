"""An upstream with two histories of one chain, which replaces the one by the other when a test says so, and lets calls
of contracts wait meanwhile, as a slow node would.

The histories have their own tokens, senders and transactions at each number, so the IDs and positions that a store
gives to those of one are given to those of the other after a reorganisation.
"""

import asyncio
from collections import Counter
from typing import Any, NamedTuple

import msgspec
from aiohttp import web
from bench.evm_chain import sealed

from icefall.wire.evm.hex import data
from icefall.wire.evm.rlp import keccak256

CHAIN_ID = 4321
COMMON = 2  # blocks that both histories have, with block 0
ZERO = bytes(20)
TRANSFER = "0x" + keccak256(b"Transfer(address,address,uint256)").hex()
NAME, SYMBOL, DECIMALS, BALANCE_OF = "0x06fdde03", "0x95d89b41", "0x313ce567", "0x70a08231"
_GAS, _PRICE = 51_000, 2 * 10**9
_EMPTY, _WORD = "0x" + "00" * 256, "0x" + "00" * 32
_NO_UNCLES = "0x1dcc4de8dec75d7aab85b567b6ccd41ad312451b948a7413f0a142fd40d49347"


def _address(*of: object) -> bytes:
    return keccak256(repr(of).encode())[:20]


HOLDER = _address("holder")
TOKENS = [_address("token", number) for number in range(8)]


class Move(NamedTuple):
    """A transfer of a token."""

    token: bytes
    sender: bytes
    to: bytes
    amount: int


class MadeBlock(NamedTuple):
    """A block as an upstream sends it, what moved in it, and what the holder has after it."""

    number: int
    hash: str
    block: bytes
    receipts: bytes
    tx_hashes: list[str]
    moves: list[Move]
    held: Counter[bytes]  # by token

    @property
    def without_txs(self) -> bytes:
        return msgspec.json.encode(msgspec.json.decode(self.block) | {"transactions": self.tx_hashes})


def name_of(token: bytes) -> str:
    return f"name {token.hex()[:8]}"


def moves_of(history: int, number: int) -> list[Move]:
    """The holder gets tokens and sends some of them. The histories use the tokens in opposite orders."""
    if not number:
        return []
    place = number if history == 0 else -number
    gained, spent = (TOKENS[(place + step) % len(TOKENS)] for step in (0, 1))
    moves = [Move(gained, ZERO, HOLDER, 1000 * number + history)]
    if number > COMMON:
        moves += [Move(spent, ZERO, _address(history, number, step), 7) for step in range(history + 1)]
        moves += [Move(gained, HOLDER, _address(history, number), number)]
    return moves


class Histories:
    """The blocks of both histories, made as far as they are asked for."""

    def __init__(self) -> None:
        self._blocks: tuple[list[MadeBlock], list[MadeBlock]] = ([], [])
        self.by_hash: dict[str, MadeBlock] = {}

    def chain(self, history: int, head: int) -> list[MadeBlock]:
        found = self._blocks[history]
        while len(found) <= head:
            number = len(found)
            if history and number <= COMMON:
                found.append(self.chain(0, number)[number])
                continue
            found.append(_made(history, number, found[-1] if found else None))
            self.by_hash[found[-1].hash] = found[-1]
        return found[: head + 1]


def _made(history: int, number: int, parent: MadeBlock | None) -> MadeBlock:
    moves = moves_of(history, number)
    txs = [_tx(number, index, move) for index, move in enumerate(moves)]
    receipts = [_receipt(tx, index, move) for index, (tx, move) in enumerate(zip(txs, moves, strict=True))]
    block = {
        "number": hex(number), "hash": _WORD, "parentHash": parent.hash if parent else _WORD,
        "timestamp": hex(1_700_000_000 + 2 * number), "sha3Uncles": _NO_UNCLES, "miner": "0x" + "01" * 20,
        "stateRoot": _WORD, "logsBloom": _EMPTY, "difficulty": "0x0", "gasLimit": hex(2**40),
        "gasUsed": hex(_GAS * len(txs)), "extraData": hex(0xA0 + history if number > COMMON else 0xA0),
        "mixHash": _WORD, "nonce": "0x" + "00" * 8, "baseFeePerGas": hex(10**9), "uncles": [], "size": "0x0",
        "transactions": txs, "transactionsRoot": _WORD, "receiptsRoot": _WORD,
    }  # fmt: skip
    traces = [[{"txHash": ""} for _ in txs] for _ in range(2)]
    encoded = sealed(number, block, receipts, *traces)
    held = Counter() if parent is None else parent.held.copy()
    for move in moves:
        held[move.token] += move.amount * ((move.to == HOLDER) - (move.sender == HOLDER))
    return MadeBlock(
        number, encoded.hash, encoded.block, encoded.receipts, [tx["hash"] for tx in txs], moves, held
    )  # fmt: skip


def _tx(number: int, index: int, move: Move) -> dict[str, Any]:
    return {
        "blockHash": _WORD, "blockNumber": hex(number), "from": _hex(_sender(move)), "gas": hex(80_000),
        "gasPrice": hex(_PRICE), "hash": _WORD, "input": "0xa9059cbb" + _padded(move.to) + f"{move.amount:064x}",
        "nonce": hex(number << 8 | index), "to": _hex(move.token), "transactionIndex": hex(index), "value": "0x0",
        "type": "0x0", "chainId": hex(CHAIN_ID), "v": hex(CHAIN_ID * 2 + 35), "r": hex(number + 1), "s": hex(index + 1),
    }  # fmt: skip


def _sender(move: Move) -> bytes:
    return _address("minter of", move.to) if move.sender == ZERO else move.sender


def _receipt(tx: dict[str, Any], index: int, move: Move) -> dict[str, Any]:
    log = {
        "address": tx["to"], "topics": [TRANSFER, "0x" + _padded(move.sender), "0x" + _padded(move.to)],
        "data": f"0x{move.amount:064x}", "blockNumber": tx["blockNumber"], "transactionHash": _WORD,
        "transactionIndex": hex(index), "blockHash": _WORD, "logIndex": hex(index), "removed": False,
    }  # fmt: skip
    return {
        "blockHash": _WORD, "blockNumber": tx["blockNumber"], "contractAddress": None, "logs": [log],
        "cumulativeGasUsed": hex(_GAS * (index + 1)), "effectiveGasPrice": tx["gasPrice"], "from": tx["from"],
        "gasUsed": hex(_GAS), "logsBloom": _EMPTY, "status": "0x1", "to": tx["to"],
        "transactionHash": _WORD, "transactionIndex": hex(index), "type": "0x0",
    }  # fmt: skip


def _padded(address: bytes) -> str:
    return address.rjust(32, b"\0").hex()


def _hex(raw: bytes) -> str:
    return "0x" + raw.hex()


class TwoHistories:
    """The upstream. `held`: requests with calls of these functions wait until there are others; `waiting` is how many
    do, by function."""

    def __init__(self) -> None:
        self.made = Histories()
        self.shown = self.made.chain(0, COMMON + 3)
        self.held: set[str] = set()
        self.waiting: Counter[str] = Counter()
        self._history = 0
        self.url = ""
        self._runner: web.AppRunner | None = None

    def replace(self) -> MadeBlock:
        """Show the other history, which has a block more. Return its newest one."""
        self._history = 1 - self._history
        self.shown = self.made.chain(self._history, len(self.shown))
        return self.shown[-1]

    # -- serving -----------------------------------------------------------------------------------------------

    async def start(self) -> None:
        app = web.Application(client_max_size=64 << 20)
        app.router.add_post("/", self._serve)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.01)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"

    async def stop(self) -> None:
        self.held = set()
        assert self._runner is not None
        await self._runner.cleanup()

    async def _serve(self, request: web.Request) -> web.Response:
        body = msgspec.json.decode(await request.read())
        calls = body if isinstance(body, list) else [body]
        called = {call["params"][0]["data"][:10] for call in calls if call["method"] == "eth_call"}
        self.waiting.update(called)
        while called & self.held:
            await asyncio.sleep(0.01)
        self.waiting.subtract(called)
        answers = [_json({"jsonrpc": "2.0", "id": call["id"], **self._answer(call)}) for call in calls]
        text = b"[" + b",".join(answers) + b"]" if isinstance(body, list) else answers[0]
        return web.Response(body=text, content_type="application/json")

    def _answer(self, call: dict[str, Any]) -> dict[str, Any]:
        method, params = call["method"], call.get("params") or []
        try:
            return {"result": self._result(method, params)}
        except LookupError as missing:
            if method in ("eth_call", "eth_getCode", "eth_getBalance"):
                return {"error": {"code": -32000, "message": "header not found"}}
            return {"error": {"code": -32601, "message": f"the method {missing} does not exist/is not available"}}

    def _result(self, method: str, params: list[Any]) -> Any:
        match method:
            case "eth_chainId":
                return hex(CHAIN_ID)
            case "web3_clientVersion":
                return "made"
            case "eth_blockNumber":
                return hex(len(self.shown) - 1)
            case "eth_getBlockByNumber" | "eth_getBlockByHash":
                block = self._block(params[0])
                return block and msgspec.Raw(block.block if params[1] else block.without_txs)
            case "eth_getBlockReceipts":
                block = self._block(params[0])
                return block and msgspec.Raw(block.receipts)
            case "eth_getBalance":
                return "0x0"
            case "eth_getCode":
                return "0x60" if data(params[0]) in TOKENS else "0x"
            case "eth_call":
                where = params[1]
                block = self.made.by_hash[where["blockHash"]] if isinstance(where, dict) else self._block(where)
                if block is None:
                    raise LookupError(where)
                return self._called(data(params[0]["to"]), params[0]["data"], block)
        raise LookupError(method)

    def _block(self, where: str) -> MadeBlock | None:
        if len(where) == len(_WORD):
            found = self.made.by_hash.get(where)
            return found if found in self.shown else None
        number = len(self.shown) - 1 if where == "latest" else int(where, 16)
        return self.shown[number] if number < len(self.shown) else None

    @staticmethod  # Others than the holder have nothing, so no token is trusted: each answer has to ask for balances.
    def _called(token: bytes, call: str, block: MadeBlock) -> str:
        if token not in TOKENS:
            return "0x"
        match call[:10]:
            case "0x70a08231":
                return f"0x{block.held[token] if data(call)[-20:] == HOLDER else 0:064x}"
            case "0x313ce567":
                return f"0x{TOKENS.index(token):064x}"
        text = name_of(token).encode()
        return f"0x{32:064x}{len(text):064x}" + text.ljust(32, b"\0").hex()


def _json(value: Any) -> bytes:
    return msgspec.json.encode(value)
