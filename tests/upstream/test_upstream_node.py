"""A followed node's answers, decoded strictly."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from tests.upstream.fake_clock import FakeClock
from tests.upstream.replay import Fault, Replay, recorded
from tests.upstream.threaded import in_thread

from icefall.upstream.client import Client, InvalidAnswer, UpstreamError, UpstreamFailure
from icefall.upstream.node import FetchedContainer, IndexOff, UpstreamNode
from icefall.wire.ids import PLATFORM_CHAIN
from icefall.wire.text import checksum_hex


@asynccontextmanager
async def node_of(replay: Replay) -> AsyncIterator[UpstreamNode]:
    async with replay:
        client = Client(replay.url, clock=FakeClock())
        try:
            yield UpstreamNode(client)
        finally:
            await client.close()


def on(replay: Replay, scene: Callable[[UpstreamNode], Awaitable[None]]) -> None:
    async def run() -> None:
        async with node_of(replay) as node:
            await scene(node)

    asyncio.run(run())


def test_network_and_chain_ids() -> None:
    replay = Replay()

    async def scene(node: UpstreamNode) -> None:
        assert await node.network_id() == 12345
        assert await node.blockchain_id("X") == replay.genesis.x_chain_id
        assert await node.blockchain_id("P") == PLATFORM_CHAIN
        assert await node.is_bootstrapped("X")
        with pytest.raises(UpstreamError, match=r"^there is no ID with alias: Q$"):
            await node.blockchain_id("Q")

    on(replay, scene)


def test_the_genesis_proves_itself() -> None:
    replay = Replay()

    async def scene(node: UpstreamNode) -> None:
        first = await node.first_asset()
        assert first.genesis == replay.genesis.x_genesis
        assert first.fee_asset_id == replay.genesis.avax_asset_id
        replay.network_id = 54321
        with pytest.raises(UpstreamError, match="--genesis-file"):
            await node.first_asset()

    on(replay, scene)


@pytest.mark.parametrize("bare", [False, True])
def test_containers(bare: bool) -> None:
    replay = Replay()
    replay.bare_ranges = bare
    rows = recorded()["X"]

    async def scene(node: UpstreamNode) -> None:
        got = await node.containers("X", 3, 5)
        assert [(row.number, row.id_text, row.raw) for row in got] == [
            (number, rows[number].id_text, rows[number].raw) for number in range(3, 8)
        ]
        assert len(await node.containers("X", 0, 5000)) == 176
        last = await node.last_accepted("X")
        assert last is not None
        assert (last.number, last.id_text) == (175, rows[175].id_text)
        assert last == await node.container("X", 175)
        with pytest.raises(UpstreamError, match=r"^start index \(176\) > last accepted index \(175\)$"):
            await node.containers("X", 176, 1)
        replay.show(X=0)
        assert await node.last_accepted("X") is None

    on(replay, scene)


def test_no_index() -> None:
    replay = Replay()
    replay.index_on = False

    async def scene(node: UpstreamNode) -> None:
        asks: list[Callable[[], Awaitable[Any]]] = [
            lambda: node.last_accepted("X"),
            lambda: node.container("X", 0),
            lambda: node.containers("X", 0, 1),
        ]
        for ask in asks:
            with pytest.raises(IndexOff, match="start that node with --index-enabled=true"):
                await ask()

    on(replay, scene)


GOOD = {
    "id": recorded()["X"][0].id_text,
    "bytes": checksum_hex.encode(b"container"),
    "timestamp": "2026-11-15T14:36:30Z",
    "encoding": "hex",
    "index": "0",
}


def test_the_good_one_is_good() -> None:
    """So that each of the bad ones is bad for its own reason."""

    async def scene(node: UpstreamNode) -> None:
        replay.faults = [Fault(body=json.dumps({"id": 1, "result": {"containers": [GOOD]}}).encode())]
        assert [row.raw for row in await node.containers("X", 0, 1)] == [b"container"]

    replay = Replay()
    on(replay, scene)


BAD_FIELDS: dict[str, dict[str, Any]] = {
    "bytes without a checksum": {"bytes": "0x0000000000"},
    "bytes without a prefix": {"bytes": "00"},
    "half a byte": {"bytes": "0x000"},
    "no bytes": {"bytes": ""},
    "bytes as a list": {"bytes": [0]},
    "another encoding": {"encoding": "hexnc"},
    "a number as a number": {"index": 0},
    "a negative number": {"index": "-1"},
    "a number with leading zeros": {"index": "00"},
    "a number beyond any": {"index": "9" * 20},
    "a time that is none": {"timestamp": "yesterday"},
    "a time without a zone": {"timestamp": "2026-11-15T14:36:30"},
    "an ID that is no text": {"id": None},
}


@pytest.mark.parametrize("name", BAD_FIELDS)
def test_bad_fields(name: str) -> None:
    async def scene(node: UpstreamNode) -> None:
        row = GOOD | BAD_FIELDS[name]
        replay.faults = [Fault(body=json.dumps({"id": 1, "result": {"containers": [row]}}).encode())]
        with pytest.raises(InvalidAnswer):
            await node.containers("X", 0, 1)

    replay = Replay()
    on(replay, scene)


BAD_ANSWERS: dict[str, Any] = {
    "more than asked for": {"containers": [GOOD] * 2},
    "a field is missing": {"containers": [{key: value for key, value in GOOD.items() if key != "index"}]},
    "another object": {"blocks": []},
    "a text": "containers",
}


@pytest.mark.parametrize("name", BAD_ANSWERS)
def test_bad_answers(name: str) -> None:
    async def scene(node: UpstreamNode) -> None:
        replay.faults = [Fault(body=json.dumps({"id": 1, "result": BAD_ANSWERS[name]}).encode())]
        with pytest.raises(InvalidAnswer):
            await node.containers("X", 0, 1)

    replay = Replay()
    on(replay, scene)


@pytest.mark.parametrize("result", [None, [], {"containers": []}, {"containers": None}])
def test_no_containers(result: Any) -> None:
    async def scene(node: UpstreamNode) -> None:
        replay.faults = [Fault(body=json.dumps({"id": 1, "result": result}).encode())]
        assert await node.containers("X", 0, 1) == []

    replay = Replay()
    on(replay, scene)


def test_bad_ids_and_first_assets() -> None:
    answers: list[tuple[str, Any]] = [
        ("info.getBlockchainID", {"blockchainID": "nonsense"}),
        ("avm.getAssetDescription", {"assetID": "X"}),
        ("avm.getTx", {"tx": checksum_hex.encode(b"no transaction"), "encoding": "hex"}),
    ]

    async def scene(node: UpstreamNode) -> None:
        for number, (method, result) in enumerate(answers, 2):
            replay.faults = [Fault(method, body=json.dumps({"id": number, "result": result}).encode())]
            node.client._numbers = iter(range(1, 9))  # type: ignore[assignment]
            with pytest.raises(InvalidAnswer):
                await node.first_asset()

    replay = Replay()
    on(replay, scene)


def test_issue_forwards_and_is_never_repeated() -> None:
    replay = Replay()

    async def scene(node: UpstreamNode) -> None:
        assert await node.issue_tx("0xabc", "hexnc") == "2JVSBoinj9C2J33VntvzYtVJNZdN2NKiwwKjcumHUWEb5DbBrm"
        await node.issue_tx("0xdef", path="/ext/bc/X/wallet")
        assert replay.calls[-1][0] == "wallet.issueTx"
        await node.issue_tx("0x012", path="/ext/bc/P")
        assert replay.calls[-1][0] == "platform.issueTx"
        assert replay.issued == ["0xabc", "0xdef", "0x012"]
        replay.refuse_issue = "problem decoding transaction: missing 0x prefix to hex encoding"
        with pytest.raises(UpstreamError, match=f"^{replay.refuse_issue}$"):
            await node.issue_tx("abc")
        replay.refuse_issue = None
        replay.faults = [Fault("avm.issueTx", hang_up=True)]
        with pytest.raises(UpstreamFailure):
            await node.issue_tx("0x1")
        assert replay.asked("avm.issueTx") == 3

    on(replay, scene)


def test_a_replay_in_a_thread() -> None:
    async def ask(url: str) -> FetchedContainer | None:
        client = Client(url)
        try:
            return await UpstreamNode(client).last_accepted("C")
        finally:
            await client.close()

    with in_thread(Replay()) as replay:
        last = asyncio.run(ask(replay.url))
    assert last is not None
    assert last.number == 11
