"""Following a node: containers per second from a replayed upstream, and engine CPU per container.

The upstream runs in a separate process. For comparison, parts of the work alone: hashes and links (`verify`), and the
signature of each block.
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
from icefall.node.sync.verify import ChainLinks, ChainPosition, verify
from icefall.upstream.node import FetchedContainer
from icefall.wire.avm.codec import unpack_block
from icefall.wire.avm.types import Credential
from icefall.wire.container.proposer import Container
from icefall.wire.ids import hash256, id_text
from icefall.wire.keys import recover

CONTAINERS = 20_000
_RUN = 1024
_ALONE_MIN = 2000
_SIGNATURES, _SIGNATURE_ROUNDS = 500, 10
_POLL_S = 0.05
_LIMIT_S = 600.0
_WHEN = datetime(2026, 11, 15, tzinfo=UTC)


def run() -> None:
    chain = list(history.containers(CONTAINERS))
    size = sum(len(row.raw) for row in chain) // len(chain)
    print(f"follow: {CONTAINERS} X containers of {size} bytes, one signed transfer each, from an upstream on loopback")
    rows = [Row(id_text(row.container_id), row.raw) for row in chain]
    one_us = _one_signature_us(chain)
    print(f"  {'what':<32}{'per s':>9}{'CPU us':>9}{'of one signature':>18}")
    with _upstream(rows) as (url, pid, show):
        for label, settings in (("with index", ["--index-enabled=true"]), ("without index", [])):
            with TemporaryDirectory() as folder:
                show(0)
                with serving("node", Path(folder), f"--upstream={url}", *settings) as server:
                    show(len(rows))
                    _measure(server, label, pid, one_us)
    _alone(chain, one_us)


# -- the upstream, in a separate process -----------------------------------------------------------------------------


@contextmanager
def _upstream(rows: list[Row]) -> Iterator[tuple[str, int, Callable[[int], None]]]:
    """Its URL, its process ID, and a function that sets how many containers it serves."""
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("fork").Process(target=_replay, args=(rows, theirs), daemon=True)
    process.start()
    try:
        assert process.pid is not None
        yield ours.recv(), process.pid, lambda count: _show(ours, count)
    finally:
        process.terminate()
        process.join()


def _show(upstream: Connection, count: int) -> None:
    upstream.send(count)
    assert upstream.recv() == count


def _replay(rows: list[Row], commands: Connection) -> None:
    asyncio.run(_serve(rows, commands))


async def _serve(rows: list[Row], commands: Connection) -> None:
    def on_command() -> None:
        count = commands.recv()
        replay.show(X=count)
        commands.send(count)

    async with Replay({"X": rows, "P": [], "C": []}, genesis=history.genesis()) as replay:
        commands.send(replay.url)
        asyncio.get_running_loop().add_reader(commands.fileno(), on_command)
        await asyncio.Event().wait()


# -- the engine ------------------------------------------------------------------------------------------------------


def _measure(server: Server, label: str, upstream_pid: int, one_us: float) -> None:
    """From the first visible commit to the last; the wait before the first is not counted."""
    pids = server.process_info["enginePid"], upstream_pid
    first = _await_height(server, 1)
    before, began = [cpu_seconds([pid]) for pid in pids], time.monotonic()
    last = _await_height(server, CONTAINERS)
    took, count = time.monotonic() - began, last - first
    engine_us, upstream_us = ((cpu_seconds([pid]) - cpu) / count * 1e6 for pid, cpu in zip(pids, before, strict=True))
    _print_line(f"engine, {label}", count / took, engine_us, one_us)
    _print_line("  meanwhile the upstream", None, upstream_us, one_us)


def _await_height(server: Server, height: int) -> int:
    deadline = time.monotonic() + _LIMIT_S
    while (reached := int(server.call("/ext/bc/X", "avm.getHeight")["result"]["height"])) < height:
        assert time.monotonic() < deadline, f"no further than {reached}: {server.output()}"
        time.sleep(_POLL_S)
    return reached


# -- the parts, alone --------------------------------------------------------------------------------------------------


def _alone(chain: list[Container], one_us: float) -> None:
    x = [FetchedContainer(number, id_text(row.container_id), row.raw, _WHEN) for number, row in enumerate(chain)]
    for label, name, fetched in (
        ("verify X alone", "X", x),
        ("verify C alone (recorded)", "C", _recorded("C")),
        ("verify P alone (recorded)", "P", _recorded("P")),
    ):
        rounds = -(-_ALONE_MIN // len(fetched))
        began = time.process_time()
        _verify(name, fetched, rounds)
        spent = time.process_time() - began
        _print_line(label, rounds * len(fetched) / spent, spent / rounds / len(fetched) * 1e6, one_us)
    _print_line("recover one signature", 1e6 / one_us, one_us, one_us)


def _one_signature_us(chain: list[Container]) -> float:
    """CPU of recovering one signature, which every block needs once: the best of some rounds."""
    signed = [_signature(row) for row in chain[:_SIGNATURES]]
    rounds = []
    for _ in range(_SIGNATURE_ROUNDS):
        began = time.process_time()
        for signature, digest in signed:
            recover(signature, digest)
        rounds.append(time.process_time() - began)
    return min(rounds) / len(signed) * 1e6


def _verify(name: str, fetched: Sequence[FetchedContainer], rounds: int) -> None:
    links = ChainLinks(name, history.genesis().x_chain_id, lambda parent_id: True)
    for _ in range(rounds):
        position = ChainPosition(0, b"", b"")
        for begin in range(0, len(fetched), _RUN):
            _, position = verify(links, position, fetched[begin : begin + _RUN])


def _recorded(name: str) -> list[FetchedContainer]:
    rows = recorded("cchain-1_containers.jsonl.gz" if name == "C" else "scenario-1/containers.jsonl.gz")[name]
    return [FetchedContainer(number, row.id_text, row.raw, _WHEN) for number, row in enumerate(rows)]


def _signature(container: Container) -> tuple[bytes, bytes]:
    tx = unpack_block(container.inner).txs[0]
    credential = tx.credentials[0]
    assert isinstance(credential, Credential)
    return credential.signatures[0], hash256(tx.unsigned_raw)


def _print_line(label: str, per_second: float | None, cpu_us: float, one_us: float) -> None:
    rate = "" if per_second is None else f"{per_second:.0f}"
    print(f"  {label:<32}{rate:>9}{cpu_us:>9.1f}{cpu_us / one_us:>18.2f}", flush=True)
