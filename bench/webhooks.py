"""Webhooks: the CPU of indexing and of matching alone with none, one and 100,000 watched addresses, of which none or
100 occur in the chain, and messages delivered to 100 receivers, of which none or ten hang, and to 150, of which none or
100 begin to hang together.

Runs that are compared take turns, or run at the same time where they wait, so that other work on the machine slows
both. ICEFALL_BENCH_BLOCKS and ICEFALL_BENCH_MESSAGES set how much, ICEFALL_BENCH_MESSAGES_PER_S how fast: on a busy
machine, no faster than what is delivered when all are committed at once. ICEFALL_BENCH_WEBHOOKS=load, match, ingest or
deliver runs one part alone.
"""

import asyncio
import multiprocessing
import os
import resource
import shutil
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import islice
from multiprocessing.connection import Connection
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple
from uuid import uuid4

import uvloop

from bench.evm_chain import CHAIN_ID, TransferChain
from bench.evm_upstream import EncodedChain, upstream
from bench.ingest import ADDRESSES, PER_BLOCK, indexed
from icefall.access.store import ReopenedStore
from icefall.compose.stores import Stores
from icefall.compose.webhooks import ReceiverAccess
from icefall.db.engine import Transaction
from icefall.evm.indexing.decoder import DecoderState
from icefall.evm.model import ContractInfo, StoredRaw
from icefall.evm.packed import from_bytes, to_bytes
from icefall.observe.log import quiet
from icefall.webhooks.delivering import Delivery, StoredEvent
from icefall.webhooks.matching import WatchList
from icefall.webhooks.messages import WebhookMessages
from icefall.webhooks.model import ACTIVE, EVM_ACTIVITY, PENDING, Message, Webhook
from icefall.webhooks.registry import SQL, WebhookRegistry
from icefall.webhooks.secrets import SecretBox, WebhookSecrets
from icefall.wire.evm.geth_format import GETH

BLOCKS, ROUNDS = 2_000, 5


class _Case(NamedTuple):
    """How many webhooks there are, with how many addresses each; `occurring`: how many of them have one in which the
    chain has transfers."""

    webhooks: int
    each: int
    occurring: int = 0

    def watched(self) -> Iterator[list[bytes]]:
        """The addresses of each webhook."""
        of_chain = TransferChain(PER_BLOCK, ADDRESSES).addresses
        for webhook in range(self.webhooks):
            places = range(webhook * self.each, (webhook + 1) * self.each)
            addresses = [b"\xee" * 12 + place.to_bytes(8, "big") for place in places]
            yield [of_chain[webhook], *addresses[1:]] if webhook < self.occurring else addresses


CASES = {
    "none": _Case(0, 0),
    "1 of 1 webhook": _Case(1, 1),
    "100,000 of 1,000 webhooks": _Case(1_000, 100),
    "100,000, of which 100 occur": _Case(1_000, 100, 100),
}
LOADS = 5
MATCHED_BLOCKS, MATCHED_ROUNDS, WARM_BLOCKS = 50, 20, 100
MESSAGES, PER_S = 10_000, 100
_COMMITTED = 10  # at once: what disturbs one commit is then less than a percent of all
_BODY = b'{"event":{"transaction":{"txHash":"0x00"}},"eventType":"address_activity"}' + b" " * 1500


def run() -> None:
    parts = {"load": _load, "match": _match, "ingest": _ingest, "deliver": _deliver}
    chosen = os.environ.get("ICEFALL_BENCH_WEBHOOKS")
    for part in [parts[chosen]] if chosen else parts.values():
        part()


def webhook_of(chain_id: str, url: str) -> Webhook:
    return Webhook(
        str(uuid4()), "", EVM_ACTIVITY, chain_id, url, "", "", ACTIVE, "", 0, 0, "[]", 0, 0, None, time.time_ns()
    )


class Access:
    """The access store of an installation, with what is about webhooks."""

    def __init__(self, data_dir: Path) -> None:
        data_dir.mkdir(parents=True, exist_ok=True)
        stores = Stores(data_dir)
        stores.access_writer().ensure()
        self._reader = stores.access_reader()
        self.store = ReopenedStore(stores.access_store)
        self.registry = WebhookRegistry(self._reader, self.store)
        self.messages = WebhookMessages(self._reader, self.store)
        self.secrets = WebhookSecrets(self.registry, SecretBox(data_dir / "webhook.key"))

    def close(self) -> None:
        self.store.close()
        self._reader.close()


# -- indexing ------------------------------------------------------------------------------------------------------


def _ingest() -> None:
    blocks = int(os.environ.get("ICEFALL_BENCH_BLOCKS", BLOCKS))
    chain = TransferChain(PER_BLOCK, ADDRESSES)
    encoded = list(chain.blocks(blocks))
    transfers = sum(one.block.count(b'"0xa9059cbb') for one in encoded)
    print(f"webhooks: {blocks} blocks with {transfers} transfers, the least of {ROUNDS} runs")
    print(f"  {'watched addresses':<34}{'CPU us per transfer':>20}{'of none':>9}")
    least = dict.fromkeys(CASES, float("inf"))
    served = upstream(EncodedChain(CHAIN_ID, encoded, chain.state, chain.read_by))
    with served as (url, _pid), TemporaryDirectory() as folder:
        config = Path(folder) / "icefall.toml"
        config.write_text(f'[[chain]]\nid = "{CHAIN_ID}"\nrpc = "{url}"\n')
        for _ in range(ROUNDS):
            for name, case in CASES.items():
                shutil.rmtree(Path(folder) / "data", ignore_errors=True)
                asyncio.run(_watch(Path(folder) / "data", case))
                least[name] = min(least[name], indexed(Path(folder), config, len(encoded) - 1).cpu)
    for name, cpu in least.items():
        print(f"  {name:<34}{cpu / transfers * 1e6:>20.1f}{cpu / least['none']:>9.3f}")


async def _watch(data_dir: Path, case: _Case) -> None:
    access = Access(data_dir)
    for addresses in case.watched():
        await access.registry.add(webhook_of(str(CHAIN_ID), "https://127.0.0.1/"), addresses)
    access.close()


# -- loading ---------------------------------------------------------------------------------------------------------


def _load() -> None:
    """The CPU that the indexer of a chain spends on its webhooks once, when it starts."""
    print(f"webhooks: loading and starting those of a chain, the least of {LOADS} times")
    for name, case in CASES.items():
        with TemporaryDirectory() as folder:
            asyncio.run(_watch(Path(folder), case))
            least = min(asyncio.run(_loaded(Path(folder))) for _ in range(LOADS))
        print(f"  {name:<34}{least * 1e3:>17.0f} ms")


async def _loaded(data_dir: Path) -> float:
    access = Access(data_dir)
    began = time.process_time()
    watched = WatchList(str(CHAIN_ID))
    for webhook, _, addresses in await access.registry.changed(str(CHAIN_ID), 0):
        watched.put(webhook, addresses)
    await access.registry.put_start(watched.not_started(), 0)
    spent = time.process_time() - began
    access.close()
    return spent


# -- matching --------------------------------------------------------------------------------------------------------


class _Known(dict[bytes, Any]):
    """What is known of contracts: everything, so that no block needs a lookup."""

    def __contains__(self, _: object) -> bool:
        return True

    def __missing__(self, _: bytes) -> bool:
        return True


def _match() -> None:
    """The CPU of what webhooks are part of: blocks are decoded, sent to the process that stores them, and matched."""
    chain = TransferChain(PER_BLOCK, ADDRESSES)
    encoded = list(chain.blocks(WARM_BLOCKS + MATCHED_BLOCKS))[WARM_BLOCKS:]
    transfers = sum(one.block.count(b'"0xa9059cbb') for one in encoded)
    parts = [(one.block, one.receipts, one.calls, one.diffs, GETH.name, GETH.name) for one in encoded]
    events = dict.fromkeys(CASES, 0)
    lists: dict[str, WatchList | None] = {name: _watch_list(case) for name, case in CASES.items()}
    least = dict.fromkeys(CASES, float("inf"))
    for _ in range(MATCHED_ROUNDS):
        for name, watched in lists.items():
            spent, events[name] = _matched(parts, watched)
            least[name] = min(least[name], spent)
    print(f"webhooks: decoding and matching {transfers} transfers, the least of {MATCHED_ROUNDS} rounds")
    print(f"  {'watched addresses':<34}{'CPU us per transfer':>20}{'of none':>9}{'events':>9}")
    for name, cpu in least.items():
        print(f"  {name:<34}{cpu / transfers * 1e6:>20.1f}{cpu / least['none']:>9.3f}{events[name]:>9}")


def _watch_list(case: _Case) -> WatchList | None:
    if not case.webhooks:
        return None
    watched = WatchList(str(CHAIN_ID))
    for addresses in case.watched():
        watched.put(webhook_of(str(CHAIN_ID), "").started(0), addresses)
    return watched


def _matched(parts: Sequence[Any], watched: WatchList | None) -> tuple[float, int]:
    """The CPU seconds, and how many events there were."""
    known, decoder = ContractInfo(has_code=_Known(), probed=_Known()), DecoderState()
    began = time.process_time()
    chunk = decoder.verify((1, 1), parts, True, StoredRaw(matched=watched is not None), known)
    rest = range(len(chunk.derived), len(parts))
    rows = [*chunk.derived, *(decoder.derive((1, 1), rest, known) if rest else ())]
    blocks = from_bytes(to_bytes(rows))
    events = sum(len(watched.events(block)) for block in blocks) if watched is not None else 0
    return time.process_time() - began, events


# -- delivery ------------------------------------------------------------------------------------------------------


class _Receivers(NamedTuple):
    """How many there are, how many of them hang, and after how many messages that each has answered."""

    number: int
    hanging: int
    after: int = 0


QUICK = _Receivers(100, 0)
PAIRS = ((QUICK, _Receivers(100, 10)), (_Receivers(150, 0), _Receivers(150, 100, 10)))  # compared, in runs at once


class _Delivered(NamedTuple):
    """Percentiles of the seconds from commit to receipt, messages per second, CPU seconds of each, and memory."""

    p50: float
    p99: float
    per_s: float
    cpu: float
    rss_mb: tuple[float, float]


def _deliver() -> None:
    count = int(os.environ.get("ICEFALL_BENCH_MESSAGES", MESSAGES))
    per_s = float(os.environ.get("ICEFALL_BENCH_MESSAGES_PER_S", PER_S))
    print(f"webhooks: {count} messages; two runs at once, {per_s:g} committed per second in each")
    print(f"  {'receivers':<34}{'per s':>9}{'p50 ms':>9}{'p99 ms':>9}{'CPU us':>9}{'RSS MB':>14}")
    context = multiprocessing.get_context("spawn")
    for pair in PAIRS:
        runs = []
        for receivers in pair:
            ours, theirs = context.Pipe()
            process = context.Process(target=_deliver_alone, args=(theirs, count, receivers, per_s))
            process.start()
            runs.append((receivers, ours, process))
        p99 = []
        for receivers, ours, process in runs:
            found: _Delivered = ours.recv()
            process.join()
            after = f" after {receivers.after} each" if receivers.after else ""
            _print(f"{receivers.number}, of which {receivers.hanging} hang{after}", found)
            p99.append(found.p99)
        print(f"  p99 of those that answer: {p99[1] / p99[0]:.2f} of that where none hangs (aim 1.5)")
    with TemporaryDirectory() as folder:
        delivered = uvloop.run(_delivered(Path(folder), count, QUICK, None))
        _print(f"{QUICK.number}, all committed at once", delivered)


def _print(label: str, one: _Delivered) -> None:
    memory = f"{one.rss_mb[0]:.0f} -> {one.rss_mb[1]:.0f}"
    times = f"{one.per_s:>9.0f}{one.p50 * 1e3:>9.0f}{one.p99 * 1e3:>9.0f}{one.cpu * 1e6:>9.0f}"
    print(f"  {label:<34}{times}{memory:>14}", flush=True)


def _deliver_alone(pipe: Connection, count: int, receivers: _Receivers, per_s: float) -> None:
    with TemporaryDirectory() as folder:
        pipe.send(uvloop.run(_delivered(Path(folder), count, receivers, per_s)))


async def _delivered(folder: Path, count: int, receivers: _Receivers, per_s: float | None) -> _Delivered:
    """Deliver while messages are committed, so many per second, or all at once."""
    access = Access(folder)
    await access.secrets.rotate("")
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=_receive, args=(theirs, receivers), daemon=True)
    process.start()
    ports = ours.recv()
    webhooks = [webhook_of("1", f"http://127.0.0.1:{port}/") for port in ports]
    for one in webhooks:
        await access.registry.add(one, [b"\x01" * 20])
    out = ReceiverAccess(("127.0.0.0/8",))
    delivery = Delivery(access.registry, access.messages, access.secrets, list, _no_body, out.send, quiet())
    running = asyncio.create_task(delivery.run())
    began_cpu, rss = time.process_time(), _rss_mb()
    made: dict[str, float] = {}
    began, started = time.monotonic(), time.time()
    size = len(webhooks) if per_s is None else _COMMITTED
    for first in range(0, count, size):
        at = first % len(webhooks)
        made |= await _commit(access, webhooks[at : at + size], first)
        if per_s is not None:
            await asyncio.sleep(max(0.0, began + first / per_s - time.monotonic()))
    wanted = {one for number, one in enumerate(made) if number % len(webhooks) >= receivers.hanging}
    got: dict[str, float] = {}
    while not wanted <= got.keys():
        ours.send(len(got))
        got |= await asyncio.to_thread(ours.recv)
        await asyncio.sleep(0.1)
    cpu = time.process_time() - began_cpu
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    await out.close()
    process.kill()
    access.close()
    took = sorted(got[one] - made[one] for one in wanted)
    p50, p99 = (took[int(len(took) * part)] for part in (0.5, 0.99))
    last = max(got[one] for one in wanted) - started
    return _Delivered(p50, p99, len(took) / last, cpu / len(took), (rss, _rss_mb()))


async def _no_body(webhook: Webhook, message: Message, event: StoredEvent) -> bytes:
    raise AssertionError("every message has its body")


async def _commit(access: Access, webhooks: list[Webhook], number: int) -> dict[str, float]:
    """Commit a message to each of these webhooks; when that was, by their IDs."""
    now = time.time()
    rows = [
        Message(
            str(uuid4()), "event", one.id, number + at, "activity", PENDING, "1", number, b"", now, 0, now, None, _BODY
        )
        for at, one in enumerate(webhooks)
    ]

    def change(tx: Transaction) -> None:
        tx.run_many(SQL.add_message, [{name: getattr(row, name) for name in row.__struct_fields__} for row in rows])

    await access.store.write(change)
    return {row.id: time.time() for row in rows}


def _rss_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _receive(pipe: Connection, receivers: _Receivers) -> None:
    uvloop.run(_receivers(pipe, receivers))


async def _receivers(pipe: Connection, receivers: _Receivers) -> None:
    """Receivers, the first of which hang; what came and when is sent on request, from a number on."""
    got: dict[str, float] = {}
    answered = Counter[int]()

    async def taken(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int) -> None:
        with suppress(asyncio.IncompleteReadError, ConnectionError):  # it was closed
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                fields = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:] if b": " in line)
                await reader.readexactly(int(fields[b"content-length"]))
                got[fields[b"webhook-id"].decode()] = time.time()
                if number < receivers.hanging and answered[number] >= receivers.after:
                    await asyncio.sleep(3600)
                answered[number] += 1
                writer.write(b"HTTP/1.1 204 No Content\r\n\r\n")
        writer.close()

    servers = []
    for number in range(receivers.number):

        async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int = number) -> None:
            await taken(reader, writer, number)

        servers.append(await asyncio.start_server(handler, "127.0.0.1", 0))
    pipe.send([one.sockets[0].getsockname()[1] for one in servers])
    while True:
        known = await asyncio.to_thread(pipe.recv)
        pipe.send(dict(islice(got.items(), known, None)))
