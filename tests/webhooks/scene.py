"""A recorded chain with webhooks: its blocks are stored with their outbox, and messages go to a receiver in this
process."""

import asyncio
import shutil
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import cache, partial
from pathlib import Path
from typing import Any

import msgspec
from tests.evm.recordings import derived
from tests.waiting import LIMIT_S

from icefall.access.store import ReopenedStore
from icefall.api.data.render.webhook_body import webhook_body
from icefall.compose.stores import Stores
from icefall.compose.webhooks import ReceiverAccess
from icefall.evm.deriving.derive import raw_rows
from icefall.evm.deriving.packing import packed
from icefall.evm.model import BlockRows, StoredRaw
from icefall.evm.packed import ResolvedBlock
from icefall.evm.reading.directory import ChainDirectory, ChainInfo, EvmChain, TokenInfo
from icefall.evm.storing.store import ChainStore
from icefall.observe.log import quiet
from icefall.webhooks.delivering import Delivery, OutboxReader
from icefall.webhooks.messages import WebhookMessages
from icefall.webhooks.model import ACTIVE, EVM_ACTIVITY, Webhook
from icefall.webhooks.outbox import Outbox
from icefall.webhooks.registry import WebhookRegistry
from icefall.webhooks.retrying import Outcome
from icefall.webhooks.secrets import SecretBox, WebhookSecrets

CHAIN, ID = "anvil-1", "31337"
MATCHED = StoredRaw(matched=True)


@cache
def _blocks() -> tuple[BlockRows, ...]:
    found = derived(CHAIN)
    return tuple(msgspec.structs.replace(one.rows, raw=raw_rows(one.full, None, "", MATCHED)) for one in found)


# By the identity of the rows, which are kept too: to pack them takes as long as to store them.
_resolved: dict[int, tuple[BlockRows, ResolvedBlock]] = {}


def blocks() -> list[BlockRows]:
    """The blocks of the recorded chain as they are stored while there are webhooks."""
    return [*_blocks()]


def resolved(rows: BlockRows) -> ResolvedBlock:
    if id(rows) not in _resolved:
        _resolved[id(rows)] = rows, packed(rows).resolved((), ())
    return _resolved[id(rows)][1]


def busiest() -> bytes:
    """The address that takes part in most transactions."""
    return Counter(one.address for block in blocks() for one in block.participants).most_common(1)[0][0]


def transactions_of(address: bytes, of: Sequence[BlockRows] | None = None) -> list[str]:
    """The hashes of the transactions that an address takes part in, as participant or by a log of its own."""
    hashes = []
    for block, one in zip(of or blocks(), derived(CHAIN), strict=False):
        touched = {part.tx_index for part in block.participants if part.address == address}
        touched |= {receipt.index for receipt in one.full.receipts for log in receipt.logs if log.address == address}
        hashes += [f"0x{block.txs[index].tx_hash.hex()}" for index in sorted(touched)]
    return hashes


class Sends:
    """A way out without a network: notes what is sent, and answers with what `answer` says."""

    def __init__(self, answer: Callable[[str], Outcome] = lambda _: Outcome(200)) -> None:
        self.sent: list[tuple[str, bytes, dict[str, str]]] = []
        self.answer = answer

    async def __call__(self, url: str, body: bytes, headers: Any, owner: str = "") -> Outcome:
        self.sent.append((url, body, dict(headers)))
        await asyncio.sleep(0)
        return self.answer(url)

    def bodies(self) -> list[dict[str, Any]]:
        return [msgspec.json.decode(body) for _, body, _ in self.sent]

    def hashes(self) -> list[str]:
        return [one["event"]["transaction"]["txHash"] for one in self.bodies()]


class Scene:
    """The stores of an installation with one chain, and everything that works on them. Not `indexes`: the chain is
    read alone, as `icefall webhooks` does on another machine."""

    def __init__(self, folder: Path, stores: Stores | None = None, *, indexes: bool = True) -> None:
        self.now = 1_000_000.0
        self.folder = folder
        self.stores = stores or Stores(folder)
        self._indexes = indexes
        if indexes:
            self.stores.access_writer().ensure()
        self.reader = self.stores.access_reader()
        self._written = ReopenedStore(self.stores.access_store)
        self.registry = WebhookRegistry(self.reader, self._written)
        self.messages = WebhookMessages(self.reader, self._written)
        self.secrets = WebhookSecrets(self.registry, SecretBox(folder / "webhook.key"), lambda: self.now)
        self.chain = EvmChain(ChainInfo(ID, CHAIN, TokenInfo("Ether €", "ETH", 18)), self.stores.chain_reader(ID))
        if indexes:
            self.open_chain()

    def open_chain(self) -> None:
        self.outbox = Outbox(ID, self.registry, lambda: self.now)
        self.store = ChainStore(self.stores.chain_store(ID), [self.outbox], 0, self.outbox.prepare)

    async def forget(self, copy: Path | None = None) -> None:
        """Delete the store of the chain, as `icefall forget` does, and open an empty one, or a copy in its place."""
        self.store.close()
        self.chain.reader.close()
        for path in (self.folder / "chains").glob(f"{ID}.sqlite*"):
            path.unlink()
        if copy is not None:
            shutil.copy(copy, self.folder / "chains")
        self.open_chain()

    async def put(self, rows: Sequence[BlockRows]) -> None:
        if rows:
            await self.store.commit([resolved(one) for one in rows])

    async def webhook(self, *addresses: bytes, **fields: Any) -> Webhook:
        if not await self.secrets.valid(""):
            await self.secrets.rotate("")
        given: dict[str, Any] = {
            "id": f"{fields.pop('number', 1):08d}-0000-4000-8000-000000000000", "owner": "", "event_type": EVM_ACTIVITY,
            "chain_id": ID, "url": "http://127.0.0.1:1/", "name": "", "description": "", "status": ACTIVE, "reason": "",
            "include_internal_txs": 0, "include_logs": 0, "signatures": "[]", "confirmations": 0, "ordered": 0,
            "start_block": None, "created": 1,
        }  # fmt: skip
        made = Webhook(**(given | fields))
        await self.registry.add(made, addresses)
        return made

    def delivery(self, send: Any, head: int = 1 << 40, **options: Any) -> Delivery:
        async def newest() -> int:
            return head

        return Delivery(
            self.registry,
            self.messages,
            self.secrets,
            lambda: [OutboxReader(ID, self.chain.reader, newest)],
            partial(webhook_body, ChainDirectory([self.chain])),
            send,
            quiet(),
            clock=lambda: self.now,
            dice=lambda: 0.0,
            **options,
        )

    def close(self) -> None:
        if self._indexes:
            self.store.close()
        self.chain.reader.close()
        self._written.close()
        self.reader.close()
        self.stores.close()


def receiver_access(own_ports: Sequence[int] = ()) -> ReceiverAccess:
    """The way out to this machine, with a time limit that only ends a test that hangs."""
    access = ReceiverAccess(("127.0.0.0/8",), own_ports)
    access._fetcher.limits = msgspec.structs.replace(access._fetcher.limits, total_s=LIMIT_S)
    return access


@asynccontextmanager
async def sending() -> AsyncIterator[ReceiverAccess]:
    """The same, whose connections are closed at the end."""
    access = receiver_access()
    try:
        yield access
    finally:
        await access.close()


Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Any]


@asynccontextmanager
async def listening(handler: Handler) -> AsyncIterator[str]:
    """A receiver on this machine; its URL."""
    server = await asyncio.start_server(handler, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/hook"
    finally:
        server.close()
