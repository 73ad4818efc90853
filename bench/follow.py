"""Following a node: containers per second from a local upstream that replays, and what each costs the engine.

The upstream runs in a process of its own. Beside it stand the parts that nobody can leave out, alone and in this process:
hashes and links (`verify`), and the recovery of one signature a block.
"""

import asyncio
import multiprocessing
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from multiprocessing.connection import Connection
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.server import Server, serving
from tests.upstream.replay import Replay, Row, recorded

from bench import history
from bench.load import cpu_seconds
from icefall.node.follow import Links, Position, verify
from icefall.upstream.node import Fetched
from icefall.wire.avm import unpack_block
from icefall.wire.avm_types import Credential
from icefall.wire.ids import hash256, id_text
from icefall.wire.keys import recover
from icefall.wire.proposer import Container

CONTAINERS = 20_000
_RUN = 1024
_LOOK_S = 0.05
_LIMIT_S = 600.0
_WHEN = datetime(2026, 11, 15, tzinfo=UTC)


def run() -> None:
    chain = list(history.containers(CONTAINERS))
    size = sum(len(row.raw) for row in chain) // len(chain)
    print(f"follow: {CONTAINERS} X containers of {size} bytes, one signed transfer each, from an upstream on loopback")
    rows = [Row(id_text(row.container_id), row.raw) for row in chain]
    with _upstream(rows) as (url, pid, show):
        for label, settings in (("with index", ["--index-enabled=true"]), ("without index", [])):
            with TemporaryDirectory() as folder:
                show(0)
                with serving("node", Path(folder), f"--upstream={url}", *settings) as server:
                    show(len(rows))
                    _measure(server, label, pid)
    _alone(chain)


# -- the upstream, in a process of its own ---------------------------------------------------------------------------


@contextmanager
def _upstream(rows: list[Row]) -> Iterator[tuple[str, int, Callable[[int], None]]]:
    """Its address, its process, and what makes it admit to so many containers."""
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("fork").Process(target=_replay, args=(rows, theirs), daemon=True)
    process.start()
    try:
        assert process.pid is not None
        yield ours.recv(), process.pid, lambda count: _tell(ours, count)
    finally:
        process.terminate()
        process.join()


def _tell(upstream: Connection, count: int) -> None:
    upstream.send(count)
    assert upstream.recv() == count


def _replay(rows: list[Row], orders: Connection) -> None:
    asyncio.run(_serve(rows, orders))


async def _serve(rows: list[Row], orders: Connection) -> None:
    def obey() -> None:
        count = orders.recv()
        replay.show(X=count)
        orders.send(count)

    async with Replay({"X": rows, "P": [], "C": []}, genesis=history.genesis()) as replay:
        orders.send(replay.url)
        asyncio.get_running_loop().add_reader(orders.fileno(), obey)
        await asyncio.Event().wait()


# -- the engine ------------------------------------------------------------------------------------------------------


def _measure(server: Server, label: str, upstream_pid: int) -> None:
    """From the first commit that is seen to the last: waiting for the next look at the tip is no work."""
    pids = server.told["enginePid"], upstream_pid
    first = _await_height(server, 1)
    before, began = [cpu_seconds([pid]) for pid in pids], time.monotonic()
    last = _await_height(server, CONTAINERS)
    took, count = time.monotonic() - began, last - first
    engine_us, upstream_us = ((cpu_seconds([pid]) - cpu) / count * 1e6 for pid, cpu in zip(pids, before, strict=True))
    print(
        f"  {label:<32}{count / took:>8.0f}/s{engine_us:>8.1f} us engine CPU per container"
        f" (the upstream's: {upstream_us:.1f} us)",
        flush=True,
    )


def _await_height(server: Server, height: int) -> int:
    deadline = time.monotonic() + _LIMIT_S
    while (reached := int(server.call("/ext/bc/X", "avm.getHeight")["result"]["height"])) < height:
        assert time.monotonic() < deadline, f"no further than {reached}: {server.said()}"
        time.sleep(_LOOK_S)
    return reached


# -- the parts, alone --------------------------------------------------------------------------------------------------


def _alone(chain: list[Container]) -> None:
    genesis = history.genesis()
    x = [Fetched(number, id_text(row.container_id), row.raw, _WHEN) for number, row in enumerate(chain)]
    start = Position(0, genesis.x_block_0_id, genesis.x_block_0_id)
    _told("verify X", len(x), lambda: _verified(Links("X", genesis.x_chain_id), start, x))
    for name in ("P", "C"):
        fetched = _recorded(name)
        links, rounds = Links(name, genesis.x_chain_id, lambda parent_id: True), 1 + 1000 // len(fetched)
        _told(f"verify {name} (recorded, {len(fetched)})", rounds * len(fetched), lambda r=rounds, k=links, f=fetched: [
            _verified(k, start, f) for _ in range(r)
        ])
    signed = [_signature(row) for row in chain[:2000]]
    _told("one signature recovered", len(signed), lambda: [recover(*pair) for pair in signed])


def _verified(links: Links, position: Position, fetched: Sequence[Fetched]) -> None:
    for begin in range(0, len(fetched), _RUN):
        _, position = verify(links, position, fetched[begin : begin + _RUN])


def _recorded(name: str) -> list[Fetched]:
    rows = recorded("cchain-1_containers.jsonl.gz" if name == "C" else "scenario-1/containers.jsonl.gz")[name]
    return [Fetched(number, row.id_text, row.raw, _WHEN) for number, row in enumerate(rows)]


def _signature(container: Container) -> tuple[bytes, bytes]:
    tx = unpack_block(container.inner).txs[0]
    credential = tx.credentials[0]
    assert isinstance(credential, Credential)
    return credential.signatures[0], hash256(tx.unsigned_raw)


def _told(label: str, count: int, work: Callable[[], object]) -> None:
    began = time.process_time()
    work()
    print(f"  {label:<32}{'':>10}{(time.process_time() - began) / count * 1e6:>8.1f} us", flush=True)
