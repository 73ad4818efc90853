"""The replay as a server. How the recorded chains answer call by call is tested in tests/upstream, on the same code."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import aiohttp
import pytest

from icefall.demo.chains import recordings
from icefall.demo.replay import Replay, ReplayServer

REPLAYS = {name: Replay(recording) for name, recording in recordings().items()}
BUSY = "0x5d038640E1a2085e1e4fB53dAaca6807f892b00C"
T = TypeVar("T")


def asking(talk: Callable[[Callable[..., Awaitable[tuple[int, Any]]]], Awaitable[T]]) -> T:
    """The result of a conversation with a running server."""

    async def run() -> T:
        server = ReplayServer(REPLAYS)
        url = await server.start()
        async with aiohttp.ClientSession() as session:

            async def ask(name: str, sent: Any) -> tuple[int, Any]:
                body = sent if isinstance(sent, bytes) else json.dumps(sent).encode()
                async with session.post(f"{url}/{name}", data=body) as response:
                    return response.status, json.loads(await response.read() or b"null")

            try:
                return await talk(ask)
            finally:
                await server.stop()

    return asyncio.run(run())


def one(name: str, method: str, *params: Any) -> Any:
    status, body_json = asking(lambda ask: ask(name, {"jsonrpc": "2.0", "id": 7, "method": method, "params": params}))
    assert (status, body_json["jsonrpc"], body_json["id"]) == (200, "2.0", 7)
    return body_json.get("result", body_json.get("error"))


def test_each_chain_has_its_path() -> None:
    assert one("cchain-1", "eth_chainId") == hex(43112)
    assert one("demo-1", "eth_chainId") == hex(3210042)
    assert one("demo-1", "eth_blockNumber") == hex(1968)
    assert asking(lambda ask: ask("other-1", {"jsonrpc": "2.0", "id": 7, "method": "eth_chainId"})) == (404, None)


def test_a_batch_is_answered_in_order() -> None:
    calls = [{"jsonrpc": "2.0", "id": number, "method": "eth_chainId", "params": []} for number in range(5)]
    status, body_json = asking(lambda ask: ask("demo-1", calls))
    assert (status, [row["id"] for row in body_json]) == (200, [0, 1, 2, 3, 4])


def test_state_is_answered_at_any_block() -> None:
    assert int(one("demo-1", "eth_getBalance", BUSY, "latest"), 16) == 992273982189177591703
    assert one("demo-1", "eth_getBalance", "0x" + "ab" * 20, "0x10") == "0x0"
    block = one("demo-1", "eth_getBlockByNumber", "0x10", False)
    assert one("demo-1", "eth_getBalance", BUSY, {"blockHash": block["hash"]}) == one(
        "demo-1", "eth_getBalance", BUSY, "0x10"
    )


def test_unrecorded_calls_fail_as_with_the_client() -> None:
    assert one("cchain-1", "eth_newFilter", {})["message"] == "the method eth_newFilter does not exist/is not available"
    assert one("demo-1", "eth_newFilter", {})["message"] == "Method not found"
    assert one("cchain-1", "eth_getBlockByNumber", "0xffff", False)["message"] == "cannot query unfinalized data"
    assert one("demo-1", "eth_getBlockByNumber", "0xffff", False) is None
    assert one("demo-1", "debug_traceBlockByNumber", "0x1", {"tracer": "4byteTracer"})["code"] == -32000


@pytest.mark.parametrize("body", [b"", b"{", b"[1]", b'"x"', b'{"id":1}', b'{"id":1,"method":"eth_getBalance"}'])
def test_invalid_requests_are_refused(body: bytes) -> None:
    async def talk(ask: Callable[..., Awaitable[tuple[int, Any]]]) -> tuple[int, int]:
        bad, _ = await ask("demo-1", body)
        good, _ = await ask("demo-1", {"jsonrpc": "2.0", "id": 1, "method": "eth_chainId"})
        return bad, good

    assert asking(talk) == (400, 200)
