"""Messages over several stores equal a naive join of their logs, after any order of blocks and rollbacks.

Three chains, of which one does not know its blockchain ID, and messages from and to a fourth that is not indexed. Every
block sends, sends again, receives, executes and acknowledges messages at random, also such as never were sent.
"""

import asyncio
import random
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace
from tests.messages import logs
from tests.messages.logs import MESSENGER, Emitted, Sample, naive
from tests.metrics.synthetic import address, assembled, name, native
from tests.postgres.server import new_prefix, server_url

from icefall.access.page_tokens import PageTokens
from icefall.api.data.handlers import messages
from icefall.api.data.schema.messages import AddressMessagesParams, MessageParams, MessagesParams
from icefall.api.dialect import INTERFACE
from icefall.api.http.paging import Paging
from icefall.api.http.structs import address_text
from icefall.compose.stores import Stores
from icefall.errors import NotFound
from icefall.evm.deriving.messages import messenger_events
from icefall.evm.deriving.packing import packed
from icefall.evm.indexing import message_filling
from icefall.evm.indexing.message_filling import MessageFilling
from icefall.evm.packed import ResolvedBlock
from icefall.evm.reading.directory import ChainDirectory, ChainInfo, EvmChain, TokenInfo
from icefall.evm.storing.messages import prepare_messages
from icefall.evm.storing.store import ChainStore
from icefall.upstream.client import UpstreamFailure
from icefall.upstream.evm.state import FoundLog
from icefall.wire.evm.events import RECEIVE_CROSS_CHAIN_MESSAGE, SEND_CROSS_CHAIN_MESSAGE
from icefall.wire.evm.messages import MESSAGE_EXECUTION_FAILED, RECEIVED, SENT
from icefall.wire.evm.types import EventLog, Receipt
from icefall.wire.ids import id_text

IDS = {name(f"blockchain {number}"): str(7000 + number) for number in range(3)}  # blockchain ID, EVM chain ID
ELSEWHERE = name("blockchain that is not indexed")
UNKNOWING = "7002"  # does not know its blockchain ID
PRICE, GAS = 10**9, 21_000
START = 1_700_000_000
ALL_TIME = "select kind, peer, messages, txs from message_count where size = 0 order by kind, peer"
TX_OF = "select t.tx_at, b.hash from tx t join block b on b.number = t.tx_at >> 24 where t.hash = :hash"
ENGINES = ("sqlite", "postgres")


class World:
    """The chains, their blocks as they are now, and all messages that there are."""

    def __init__(self, stores: Stores, seed: int) -> None:
        self.chance = random.Random(seed)
        self.branch = 0
        self.now = START
        self.blocks: dict[str, list[tuple[int, int, list[Emitted]]]] = {one: [] for one in IDS.values()}  # branch, time
        self.samples: list[Sample] = []
        self.stores = {one: ChainStore(stores.chain_store(one)) for one in IDS.values()}
        self.chains = [self._chain(stores, *pair) for pair in IDS.items()]
        self.directory = ChainDirectory(self.chains)
        self.paging = Paging(PageTokens(bytes(32)))

    @staticmethod
    def _chain(stores: Stores, blockchain_id: bytes, chain: str) -> EvmChain:
        shown = "" if chain == UNKNOWING else id_text(blockchain_id)
        info = ChainInfo(chain, chain, TokenInfo("Coin", "C", 18), blockchain_id=shown)
        return EvmChain(info, stores.chain_reader(chain))

    @property
    def emitted(self) -> list[Emitted]:
        return [log for blocks in self.blocks.values() for _, _, found in blocks for log in found]

    def expected(self) -> list[dict[str, Any]]:
        found = naive(self.samples, self.emitted, IDS)
        for shown in found:  # nothing tells where a message was sent from but the chain itself and who received it
            if shown["sourceEvmChainId"] == UNKNOWING and shown["status"] == "pending":
                shown["sourceBlockchainId"] = ""
            for side in ("source", "destination"):
                if shown[f"{side}EvmChainId"] == UNKNOWING and f"{side}Transaction" not in shown:
                    shown[f"{side}EvmChainId"] = ""
        return found

    # -- blocks --------------------------------------------------------------------------------------------------

    async def step(self) -> None:
        """Change one chain."""
        chain = self.chance.choice(list(self.blocks))
        blocks = self.blocks[chain]
        if blocks and self.chance.random() < 0.25:
            left = self.chance.randrange(max(0, len(blocks) - 3), len(blocks))
            await self.stores[chain].roll_back(left - 1)
            del blocks[left:]
            return
        batch = [self._block(chain) for _ in range(self.chance.randrange(1, 4))]
        await self.stores[chain].commit(batch)

    def _block(self, chain: str) -> ResolvedBlock:
        blocks = self.blocks[chain]
        number = len(blocks)
        self.branch += 1
        self.now += self.chance.choice((0, 1, 700, 90_000))
        parent = blocks[-1][0] if blocks else 0
        txs, receipts, found = [], list[Receipt](), list[Emitted]()
        for index in range(self.chance.randrange(4)):
            tx = native(number, index, address(index), address(9), PRICE, self.branch)
            placed: list[EventLog] = []
            for _ in range(self.chance.randrange(4)):
                log, counts = self._log(chain, sum(len(one.logs) for one in receipts) + len(placed))
                placed.append(log)
                found += [self._emitted(chain, number, log, tx.tx_hash)] if counts else []
            receipts.append(_receipt(tx.tx_hash, index, tuple(placed)))
            txs.append(tx)
        rows = assembled(number, self.now, tuple(txs), branch=self.branch, parent_branch=parent)
        events = tuple(messenger_events(receipts, (MESSENGER,)))
        assert len(events) == len(found)
        blocks.append((self.branch, self.now, found))
        return ResolvedBlock(packed(replace(rows, messenger_events=events)), (), ())

    def _emitted(self, chain: str, number: int, log: EventLog, tx_hash: bytes) -> Emitted:
        order = -list(self.blocks).index(chain)
        return Emitted(chain, (number, log.index), self.now, order, tx_hash, PRICE * GAS, (log.topics, log.data))

    def _log(self, chain: str, index: int) -> tuple[EventLog, bool]:
        """A log that this chain may emit, and whether it counts: some are of another contract, or end too early."""
        own = next(one for one, its in IDS.items() if its == chain)
        chance = self.chance
        here = [one for one in self.samples if own in (one.source, one.destination)]
        if not here or chance.random() < 0.4:
            other = chance.choice([one for one in (*IDS, ELSEWHERE) if one != own])
            source, destination = (own, other) if chance.random() < 0.7 else (other, own)
            people = address(chance.randrange(20, 24)), address(chance.randrange(22, 26))
            receipts = tuple((n, address(50 + n)) for n in range(chance.randrange(3)))
            data, fee = chance.randbytes(chance.randrange(70)), chance.choice((0, 5))
            made = (len(self.samples) + 1, *people, data, receipts, (address(1),), address(40), fee)
            self.samples.append(Sample(source, destination, *made))
            here = self.samples[-1:]
        one = chance.choice(here)
        if one.source == own:
            log = chance.choice((logs.sent(one), logs.sent(one), logs.raised(one, chance.randrange(1, 99)),
                                 logs.receipt(one, address(60))))  # fmt: skip
        else:
            delivery = logs.received(one, address(61), address(62))
            log = chance.choice((delivery, delivery, logs.executed(one), logs.failed(one)))
        topics, data = log
        if chance.random() < 0.1:
            return EventLog(address(99), topics, data, index), False
        if data and topics[0] != MESSAGE_EXECUTION_FAILED and chance.random() < 0.05:
            return EventLog(MESSENGER, topics, data[:-32], index), False
        return EventLog(MESSENGER, topics, data, index), True

    # -- answers -------------------------------------------------------------------------------------------------

    async def walked(self, size: int, **where: Any) -> list[dict[str, Any]]:
        """All pages of a list."""
        found: list[dict[str, Any]] = []
        token: Any = ""
        while True:
            if "address" in where:
                params = AddressMessagesParams(page_size=size, page_token=token, **where)
                page = await messages.icm_of_address(params, self.directory, self.paging, INTERFACE)
            else:
                asked = MessagesParams(page_size=size, page_token=token, **where)
                page = await messages.list_icm(asked, self.directory, self.paging, INTERFACE)
            assert len(page.messages) <= size
            found += msgspec.to_builtins(page.messages)
            token = page.next_page_token
            if token is msgspec.UNSET:
                return found

    async def check(self) -> None:
        expected = self.expected()
        for size in (2, 100):
            assert await self.walked(size) == expected
        for shown in expected:
            params = MessageParams(message_id=bytes.fromhex(shown["messageId"]))
            assert msgspec.to_builtins(await messages.get_icm(params, self.directory, INTERFACE)) == shown
        with pytest.raises(NotFound):
            await messages.get_icm(MessageParams(message_id=bytes(32)), self.directory, INTERFACE)
        for number in (21, 23):
            of = address(number)
            shown_as = _with_address(of)
            assert await self.walked(3, address=of) == [one for one in expected if shown_as & {one["from"], one["to"]}]
            assert await self.walked(3, from_=of) == [one for one in expected if one["from"] in shown_as]
            assert await self.walked(1, to=of) == [one for one in expected if one["to"] in shown_as]
        await self._check_chains(expected)
        self._check_counts()

    async def _check_chains(self, expected: list[dict[str, Any]]) -> None:
        first, second = (id_text(one) for one in list(IDS)[:2])
        assert await self.walked(3, source_blockchain_id=first) == [
            one for one in expected if one["sourceBlockchainId"] == first
        ]
        assert await self.walked(3, destination_blockchain_id="7001") == [
            one for one in expected if one["destinationBlockchainId"] == second
        ]
        both = await self.walked(3, source_blockchain_id="7000", destination_blockchain_id=second, to=address(23))
        assert both == [
            one
            for one in expected
            if (one["sourceBlockchainId"], one["destinationBlockchainId"]) == (first, second)
            and one["to"] in _with_address(address(23))
        ]
        assert await self.walked(3, source_blockchain_id=UNKNOWING) == [
            one for one in expected if one["sourceEvmChainId"] == UNKNOWING
        ]
        outside = id_text(ELSEWHERE)
        assert await self.walked(3, blockchain_id=outside) == [
            one for one in expected if outside in (one["sourceBlockchainId"], one["destinationBlockchainId"])
        ]

    def _check_counts(self) -> None:
        for chain, store in self.stores.items():
            counted: dict[tuple[int, bytes], list[int]] = {}
            for kind, topic in ((SENT, SEND_CROSS_CHAIN_MESSAGE), (RECEIVED, RECEIVE_CROSS_CHAIN_MESSAGE)):
                seen, txs = set(), set()
                for log in (one for one in self.emitted if one.chain == chain and one.log[0][0] == topic):
                    count = counted.setdefault((kind, log.log[0][2]), [0, 0])
                    count[0] += log.log[0][1] not in seen
                    count[1] += log.tx_hash not in txs
                    seen.add(log.log[0][1])
                    txs.add(log.tx_hash)
            expected = [(*key, *count) for key, count in sorted(counted.items()) if any(count)]
            assert store.read(ALL_TIME) == expected

    def log_source(self, chain: str) -> "ChainLogs":
        return ChainLogs(self, chain)

    def close(self) -> None:
        for chain in self.chains:
            chain.reader.close()
        for store in self.stores.values():
            store.close()


class ChainLogs:
    """The logs of a chain as an upstream sends them."""

    def __init__(self, world: World, chain: str) -> None:
        self._world = world
        self._chain = chain
        self.calls = 0

    async def logs(self, address: bytes, _: Sequence[bytes | None], first: int, last: int) -> list[FoundLog]:
        self.calls += 1
        found = []
        for one in self._world.emitted:
            number, index = one.at
            if one.chain == self._chain and first <= number <= last:
                ((tx_at, block_hash),) = self._world.stores[self._chain].read(TX_OF, {"hash": one.tx_hash})
                log = EventLog(address, *one.log, index)
                found.append(FoundLog(log, number, block_hash, one.tx_hash, tx_at & 0xFFFFFF))
        return found


def _with_address(address: bytes) -> set[str]:
    return {address_text(address)}


def _receipt(tx_hash: bytes, index: int, found: tuple[EventLog, ...]) -> Receipt:
    return Receipt(tx_hash, bytes(32), index, 2, 1, b"", GAS, GAS, PRICE, bytes(20), b"", b"", found)


@pytest.fixture(params=ENGINES)
def stores(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Stores]:
    (tmp_path / "chains").mkdir()
    url = "" if request.param == "sqlite" else server_url()
    with closing(Stores(tmp_path, url, new_prefix())) as opened:
        yield opened


@pytest.mark.parametrize("seed", [1, 2])
def test_any_order_of_blocks_and_rollbacks(seed: int, stores: Stores) -> None:
    async def run() -> None:
        world = World(stores, seed)
        try:
            for number in range(30):
                await world.step()
                if number % 6 == 5:
                    await world.check()
            statuses = {one["status"] for one in world.expected()}
            assert statuses == {"pending", "delivered", "delivered_source_not_indexed"}
        finally:
            world.close()

    asyncio.run(run())


def test_older_blocks_are_filled_in(stores: Stores, monkeypatch: pytest.MonkeyPatch) -> None:
    """A few blocks at a time, while blocks come and go, and after a restart."""
    monkeypatch.setattr(message_filling, "FETCHED_BLOCKS", 3)

    async def run() -> None:
        world = World(stores, 3)
        try:
            for _ in range(40):
                await world.step()
            for store in world.stores.values():
                await store.write(partial(prepare_messages, messengers=[MESSENGER]))
                assert store.read(ALL_TIME) == []
            left = set(world.stores)
            steps = 0
            while left:
                for chain in sorted(left):
                    steps += 1
                    filling = MessageFilling(world.stores[chain]._store, world.log_source(chain), [MESSENGER])
                    if not await filling.step():
                        left.discard(chain)
                if steps < 10:
                    await world.step()
            assert steps > 6
            await world.check()
            for store in world.stores.values():  # the same messengers: nothing is to be done
                await store.write(partial(prepare_messages, messengers=[MESSENGER]))
            await world.check()
        finally:
            world.close()

    asyncio.run(run())


class FewBlocks:
    """An upstream that sends the logs of a few blocks at once, and has none."""

    def __init__(self, most: int) -> None:
        self._most = most
        self.asked: list[int] = []

    async def logs(self, _: bytes, __: Sequence[bytes | None], first: int, last: int) -> list[FoundLog]:
        self.asked.append(last - first + 1)
        if self.asked[-1] > self._most:
            raise UpstreamFailure("block range too large")
        return []


def test_fewer_blocks_are_asked_for_where_an_upstream_refuses(stores: Stores) -> None:
    async def run() -> None:
        world, upstream = World(stores, 3), FewBlocks(3)
        try:
            for _ in range(40):
                await world.step()
            store = next(iter(world.stores.values()))
            await store.write(partial(prepare_messages, messengers=[MESSENGER]))
            filling, is_left = MessageFilling(store._store, upstream, [MESSENGER]), True
            ((blocks,),) = store.read("select count(*) from block")
            for _ in range(3 * blocks):
                with suppress(UpstreamFailure):
                    is_left = is_left and await filling.step()
            assert not is_left
            assert sum(count for count in upstream.asked if count <= 3) == blocks
        finally:
            world.close()

    asyncio.run(run())
