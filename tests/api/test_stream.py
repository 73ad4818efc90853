"""The live stream: what is indexed is sent in order, and a client resumes where it was, also across a rollback."""

import asyncio
import json
import socket
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.api.data_naive import address_text, naive
from tests.api.data_scene import Served, data_server
from tests.api.made_chain import block as branch_block
from tests.metrics.scene import Scene
from tests.metrics.synthetic import block as made_block
from tests.waiting import until

from icefall.api.data.handlers import stream
from icefall.api.data.schema.chains import StreamParams
from icefall.api.dialect import INTERFACE
from icefall.api.http.streams import EventStream, OpenStreams
from icefall.errors import TooManyRequests
from icefall.evm.deriving.packing import packed
from icefall.evm.model import BlockRows
from icefall.evm.packed import ResolvedBlock
from icefall.evm.reading import live
from icefall.evm.reading.directory import ChainDirectory, ChainInfo, EvmChain, TokenInfo

CHAIN = "anvil-1"


class Event(dict[str, Any]):
    """The fields of one event; data as JSON."""


def parsed(text: str) -> list[Event]:
    found = []
    for piece in text.split("\n\n"):
        fields = dict(line.split(": ", 1) for line in piece.split("\n") if ": " in line and not line.startswith(":"))
        if fields:
            found.append(Event(fields | ({"data": json.loads(fields["data"])} if "data" in fields else {})))
    return found


# -- over HTTP --------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with data_server(tmp_path_factory.mktemp("stream"), chains=(CHAIN,)) as program:
        yield program


class Listening:
    """One open connection."""

    def __init__(self, served: Served, target: str, **headers: str) -> None:
        self._wire = served.server.wire("data")
        lines = [f"GET {target} HTTP/1.1", "Host: 127.0.0.1", *(f"{name}: {text}" for name, text in headers.items())]
        self.socket = socket.create_connection(self._wire.address, timeout=60)
        self.socket.sendall(("\r\n".join(lines) + "\r\n\r\n").encode())
        self.file = self.socket.makefile("rb")
        self.status = int(self.file.readline().split()[1])
        self.headers = {}
        while line := self.file.readline().strip():
            name, _, text = line.decode().partition(": ")
            self.headers[name.lower()] = text

    def until(self, position: str) -> list[Event]:
        """Events up to the ID that begins so."""
        events: list[Event] = []
        unended = ""
        while True:
            size = int(self.file.readline(), 16)  # chunked
            piece = self.file.read(size).decode()
            self.file.readline()
            ended, _, unended = f"{unended}{piece}".rpartition("\n\n")
            events += parsed(ended)
            if events and events[-1].get("id", "").startswith(position):
                return events

    def close(self) -> None:
        self.file.close()
        self.socket.close()


def id_of(number: int) -> str:
    """The ID after a block: its hash and those of older blocks, each shortened."""
    blocks = naive(CHAIN).blocks
    numbers = [number, *stream.older_numbers(number)]
    hashes = [blocks[one].line["block"]["hash"][2:10] for one in numbers if one >= blocks[0].rows.block.number]
    return f"{naive(CHAIN).id}:{number}:{':'.join(hashes)}"


def test_a_stream_resumes_after_the_last_event(served: Served) -> None:
    recorded = naive(CHAIN)
    last = recorded.blocks[-1].rows.block.number
    for headers, query in (({"Last-Event-ID": id_of(last - 5)}, ""), ({}, f"?lastEventId={id_of(last - 5)}")):
        listening = Listening(served, f"/v1/stream{query}", **headers)
        assert listening.status == 200
        assert listening.headers["content-type"] == "text/event-stream"
        assert listening.headers["cache-control"] == "no-store"
        events = listening.until(id_of(last))
        listening.close()
        blocks = [int(one["data"]["blockNumber"]) for one in events if one.get("event") == "block"]
        assert blocks == list(range(last - 4, last + 1))
        sent = [one["data"]["txHash"] for one in events if one.get("event") == "transaction"]
        assert sent == [tx["here"]["txHash"] for tx in recorded.txs if int(tx["here"]["blockNumber"]) > last - 5]
        assert [one["id"] for one in events if "id" in one] == [id_of(number) for number in range(last - 4, last + 1)]


def test_a_new_stream_begins_with_the_newest_block(served: Served) -> None:
    last = naive(CHAIN).blocks[-1].rows.block.number
    listening = Listening(served, f"/v1/stream?chainId={naive(CHAIN).id}&types=blocks")
    events = listening.until(id_of(last))
    listening.close()
    assert [one["data"]["blockNumber"] for one in events if "data" in one] == [str(last)]


def test_transfers_of_an_address(served: Served) -> None:
    recorded = naive(CHAIN)
    last = recorded.blocks[-1].rows.block.number
    address = max(recorded.addresses(3), key=lambda one: len(recorded.of_address("erc20", one)))
    query = f"types=transfers&address={address_text(address)}&lastEventId={id_of(last - 900)}"
    listening = Listening(served, f"/v1/stream?{query}")
    events = listening.until(id_of(last))
    listening.close()
    moves = [one["data"] for one in events if one.get("event") == "transfer"]
    expected = [
        (move.tx_index, move.log_index, one.rows.block.number)
        for one in recorded.blocks[-900:]
        for move in sorted(
            recorded._moves(one),
            key=lambda move: (move.log_index, getattr(move, "position", 0)),
        )
        if address in (move.sender, move.to)
    ]
    assert [(int(one["transfer"]["blockNumber"]), one["transfer"]["logIndex"]) for one in moves] == [
        (number, log_index) for _, log_index, number in expected
    ]
    assert moves
    assert {one["chainId"] for one in moves} == {recorded.id}


def test_transfers_of_a_token_and_of_an_address_in_it(served: Served) -> None:
    recorded = naive(CHAIN)
    last = recorded.blocks[-1].rows.block.number
    moves = [(one.rows.block.number, move) for one in recorded.blocks[-900:] for move in recorded._moves(one)]
    token = Counter(move.token for _, move in moves).most_common(1)[0][0]
    sender = Counter(move.sender for _, move in moves if move.token == token).most_common(1)[0][0]
    for query, wanted in (
        ("", [(number, move) for number, move in moves if move.token == token]),
        (
            f"&address={address_text(sender)}",
            [(number, move) for number, move in moves if move.token == token and sender in (move.sender, move.to)],
        ),
    ):
        path = f"/v1/stream?types=transfers&token={address_text(token)}{query}&lastEventId={id_of(last - 900)}"
        listening = Listening(served, path)
        events = listening.until(id_of(last))
        listening.close()
        sent = [one["data"]["transfer"] for one in events if one.get("event") == "transfer"]
        assert wanted
        assert [(int(one["blockNumber"]), one["logIndex"]) for one in sent] == [
            (number, move.log_index)
            for number, move in sorted(
                wanted, key=lambda one: (one[0], one[1].log_index, getattr(one[1], "position", 0))
            )
        ]


@pytest.mark.parametrize(
    "query", ["types=all", "types=", "types=transfers", "lastEventId=x", "lastEventId=1:2", "chainId=9"]
)
def test_what_cannot_be_streamed(query: str, served: Served) -> None:
    assert served.get(f"/v1/stream?{query}").status == (404 if query == "chainId=9" else 400)


def test_a_client_has_a_limit_of_open_streams(served: Served) -> None:
    last = naive(CHAIN).blocks[-1].rows.block.number
    opened: list[Listening] = []

    def opens() -> bool:
        one = Listening(served, "/v1/stream?types=blocks")
        if one.status != 200:
            one.close()
            return False
        one.until(id_of(last))
        opened.append(one)
        return True

    for _ in range(8):
        until(opens, "those of earlier tests have ended: the server sees that they are closed")
    refused = served.get("/v1/stream")
    assert (refused.status, refused.header("retry-after")) == (429, "5")
    for one in opened:
        one.close()
    until(lambda: can_listen(served), "a stream that was closed frees its place")


def can_listen(served: Served) -> bool:
    listening = Listening(served, "/v1/stream?types=blocks")
    listening.close()
    return listening.status == 200


def test_limits_are_per_client_and_end_with_the_stream() -> None:
    async def one() -> Any:
        yield b"x"

    async def run() -> None:
        streams = OpenStreams(per_client_max=1, per_worker_max=2)
        first = streams.limited("a", EventStream(one))
        assert await anext(first) == b"x"
        with pytest.raises(TooManyRequests):
            streams.limited("a", EventStream(one))
        other = streams.limited("b", EventStream(one))
        await anext(other)
        with pytest.raises(TooManyRequests):  # all together
            streams.limited("c", EventStream(one))
        await first.aclose()
        again = streams.limited("a", EventStream(one))
        assert [piece async for piece in again] == [b"x"]
        await other.aclose()

    asyncio.run(run())


# -- a chain that changes ---------------------------------------------------------------------------------------------


class Growing:
    """A made chain, and a stream of its blocks."""

    def __init__(self, folder: Path, last_event_id: str = "") -> None:
        self.scene = Scene(folder / "chain.sqlite")
        chain = EvmChain(ChainInfo("7", "made", TokenInfo("n", "N", 18)), self.scene.file)
        self.params = StreamParams(types=("blocks",), last_event_id=last_event_id)
        self.chains = ChainDirectory([chain])

    def news(self, last_event_id: str = "") -> list[Event]:
        """What a client that connects now is sent until it has everything."""

        async def run() -> str:
            params = StreamParams(types=("blocks",), last_event_id=last_event_id)
            opened = await stream.stream(params, self.chains, INTERFACE)
            pieces, text = opened.pieces(), ""
            async for piece in pieces:
                text += piece.decode()
                if text.rpartition("id: ")[2].startswith(f"7:{self.scene.tip()}:"):
                    break
            await pieces.aclose()
            return text

        return parsed(asyncio.run(run()))


def test_a_rollback_is_an_event(tmp_path: Path) -> None:
    growing = Growing(tmp_path)
    growing.scene.put([made_block(number, 1_700_000_000 + number, 1) for number in range(1, 10)])
    before = growing.news()[-1]["id"]
    assert before.startswith("7:9:")
    growing.scene.put([made_block(10, 1_700_000_010, 1)])
    after = growing.news(before)
    assert [one["data"]["blockNumber"] for one in after if one.get("event") == "block"] == ["10"]
    for wrong, ancestor in (
        ("7:9:00000000", "0"),  # as if another block 9 had been sent; no older block is known to the stream
        (before.replace(before.split(":")[2], "00000000"), "8"),
        ("7:9:" + ":".join(["00000000"] * 3 + before.split(":")[5:]), "4"),  # 9, 8 and 6 were replaced
    ):
        events = growing.news(wrong)
        assert events[1]["event"] == "reorg"
        assert events[1]["data"] == {"chainId": "7", "blockNumber": ancestor}
    growing.scene.close()


def test_streams_of_a_worker_share_what_they_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The transactions of a block are read for the first stream, and no row for a stream that has everything."""
    monkeypatch.setattr(live, "TIP_AGE_S", float("inf"))
    growing = Growing(tmp_path)
    growing.scene.put([made_block(number, 1_700_000_000 + number, 2) for number in range(1, 4)])
    (chain,) = growing.chains.all()
    read: list[str] = []
    rows = chain.reader.rows

    async def counted(statement: str, params: Any = ()) -> Any:
        read.append(statement)
        return await rows(statement, params)

    async def run() -> None:
        texts, counts = [], []
        for _ in range(3):
            params = StreamParams(types=("transactions",))
            events = stream._Events(params, [chain], INTERFACE, {})
            before = len(read)
            texts.append(b"".join(await events._news_of_one_history(chain)))
            counts.append(len(read) - before)
            await chain.live.tip()
            before = len(read)
            assert await events._news_of_one_history(chain) == []
            assert len(read) == before
        assert texts[0].count(b"event: transaction") == 2
        assert texts == texts[:1] * 3
        assert counts[1] == counts[2] < counts[0]

    monkeypatch.setattr(chain.reader, "rows", counted)
    asyncio.run(run())
    growing.scene.close()


def branch(first: int, last: int, *, other: bool = False) -> list[BlockRows]:
    """Blocks of a made chain; `other` begins another branch with the first of them."""
    return [
        branch_block(number, branch=int(other), parent_branch=int(other and number > first))
        for number in range(first, last + 1)
    ]


@pytest.mark.parametrize("ancestor", [298, 200, 50, 3])
def test_a_rollback_of_any_depth_is_reported_as_deep_as_it_is(tmp_path: Path, ancestor: int) -> None:
    growing = Growing(tmp_path)
    growing.scene.put(branch(1, 10))
    started = growing.news()[-1]["id"]
    growing.scene.put(branch(11, 299))
    before = growing.news(started)[-1]["id"]  # the client was sent them and went away

    async def stays() -> list[Event]:
        """A client that was sent all blocks and is connected while they are replaced."""
        opened = await stream.stream(StreamParams(types=("blocks",), last_event_id=started), growing.chains, INTERFACE)
        pieces, text = opened.pieces(), ""
        async for piece in pieces:
            text += piece.decode()
            if text.rpartition("id: ")[2].startswith("7:299:") and "event: reorg" not in text:
                await growing.scene.chain.roll_back(ancestor)
                await growing.scene.chain.commit(
                    [ResolvedBlock(packed(rows), (), ()) for rows in branch(ancestor + 1, 300, other=True)]
                )
            if text.rpartition("id: ")[2].startswith("7:300:"):
                break
        await pieces.aclose()
        return parsed(text)

    reported = [one["data"]["blockNumber"] for one in asyncio.run(stays()) if one.get("event") == "reorg"]
    assert reported == [str(ancestor)] if ancestor >= 10 else int(reported[0]) <= ancestor
    events = growing.news(before)
    (common,) = [int(one["data"]["blockNumber"]) for one in events if one.get("event") == "reorg"]
    assert common <= ancestor, "a block that both branches have"
    assert 299 - common <= 4 * (299 - ancestor)
    sent = [int(one["data"]["blockNumber"]) for one in events if one.get("event") == "block"]
    assert sent == list(range(common + 1, 301))
    growing.scene.close()


def test_older_numbers_of_the_next_block_are_known() -> None:
    for number in range(2000):
        known = {number, *stream.older_numbers(number)}
        assert set(stream.older_numbers(number + 1)) <= known
        for level, older in enumerate(stream.older_numbers(number)):
            assert 1 << level <= number - older < 2 << level


def test_after_a_long_absence_blocks_are_skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "RESUMED_MAX", 3)
    growing = Growing(tmp_path)
    growing.scene.put([made_block(number, 1_700_000_000 + number, 1) for number in range(1, 10)])
    ids = {2: growing.scene.file.read("select hex(substr(hash, 1, 4)) from block where number = 2")[0][0].lower()}
    events = growing.news(f"7:2:{ids[2]}")
    skipped = [one["data"] for one in events if one.get("event") == "skipped"]
    assert skipped == [{"chainId": "7", "startBlock": "3", "endBlock": "7"}]
    assert [one["data"]["blockNumber"] for one in events if one.get("event") == "block"] == ["7", "8", "9"]
    growing.scene.close()
