"""kill -9 of the processes of `icefall up` in turn, one every two seconds, under reads, issueTx and indexing.

`ICEFALL_BENCH_CHAOS_SECONDS` is how long (20 by default), `ICEFALL_BENCH_SEED` chooses the order. It fails if an
answer was wrong, an accepted transaction was lost, or an index differs from that of an undisturbed run.

No role is killed twice before all others were killed once. The supervisor has its turn while all others run; it is
started again as a service manager would.
"""

import os
import random
import signal
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from tests.e2e.program import Process, all_gone, family
from tests.evm.digest import digests
from tests.server import Server, launch, serving

from bench.chaos_clients import (
    READS,
    Call,
    Client,
    Counts,
    Issuer,
    read_all,
    read_growing,
    recheck_accepted,
    rpc,
    status_call,
)
from bench.evm_chain import CHAIN_ID, EncodedBlock, TransferChain
from bench.evm_upstream import EncodedChain, State, upstream
from bench.ledger import ADDRESS_TEXT, issue, richest, transfer
from icefall.demo.chains import CHAINS, recordings
from icefall.demo.replay import Replay
from icefall.evm.storing.store import store_path
from icefall.wire.avm.codec import pack_utxo
from icefall.wire.avm.types import Utxo
from icefall.wire.avm.utxos import produced
from icefall.wire.text import checksum_hex

SECONDS = float(os.environ.get("ICEFALL_BENCH_CHAOS_SECONDS", "20"))
SEED = int(os.environ.get("ICEFALL_BENCH_SEED", "1"))
PER_BLOCK, ADDRESSES = 5, 200
PROCESSES = 8  # supervisor, engine, indexer and decoder, three workers, replay
SUPERVISOR = "supervisor"
UTXOS = 64
LIMIT_S = 900.0
_POLL_S = 0.1


class Plan(NamedTuple):
    """`watch` is called several times a second between the first kill and the last."""

    name: str
    seconds: float
    kill_every_s: float
    blocks_per_s: float
    issuers: int
    readers: int
    watch: Callable[["Program"], None]


class GrowingChain(EncodedChain):
    """Its head rises with the time."""

    def __init__(self, blocks: Sequence[EncodedBlock], state: State, blocks_per_s: float) -> None:
        super().__init__(CHAIN_ID, blocks, state)
        self._blocks_per_s = blocks_per_s
        self._began = time.monotonic()

    @property
    def head(self) -> int:
        return min(super().head, 1 + int((time.monotonic() - self._began) * self._blocks_per_s))


class Program:
    """`icefall up` on ports that stay the same, started again when its supervisor was killed."""

    def __init__(self, folder: Path, config: Path) -> None:
        ports = _free_ports(3)
        names = ("http-port", "data-port", "metrics-port")
        self._folder = folder
        self._settings: tuple[str, ...] = ("--demo", f"--config-file={config}", "--rate-limits=off", "--index-enabled")
        self._settings += tuple(f"--{name}={port}" for name, port in zip(names, ports, strict=True))
        listeners = ("node", "data", "metrics")
        self.urls = {one: f"http://127.0.0.1:{port}" for one, port in zip(listeners, ports, strict=True)}
        self.server: Server = launch("up", folder, *self._settings)
        self.starts_refused = 0

    def keep_running(self) -> None:
        if self.server.process.poll() is not None:
            self.starts_refused += self.server.process.returncode == 1  # its ports were still in use
            self.server = launch("up", self._folder, *self._settings)

    def processes(self) -> list[Process]:
        return family(self.server.process.pid)


def _free_ports(count: int) -> list[int]:
    opened = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in opened]
    for one in opened:
        one.close()
    return ports


def run() -> None:
    disturb(Plan("chaos", SECONDS, 2.0, 4.0, 4, 4, lambda _: None))


def disturb(plan: Plan) -> None:
    """Runs the program with load and kills, prints what clients saw, and exits if anything was wrong or lost."""
    chain = TransferChain(PER_BLOCK, ADDRESSES)
    blocks = list(chain.blocks(int((plan.seconds + 30) * plan.blocks_per_s)))
    with TemporaryDirectory() as name:
        folder = Path(name)
        with upstream(EncodedChain(CHAIN_ID, blocks, chain.state)) as (url, _):
            stores = _undisturbed(folder / "undisturbed", _config(folder / "whole.toml", url), len(blocks) - 1)
        with upstream(GrowingChain(blocks, chain.state, plan.blocks_per_s)) as (url, _):
            program = Program(folder / "chaos", _config(folder / "growing.toml", url))
            try:
                _chaos(plan, program, stores, len(blocks) - 1)
            finally:
                everybody = program.processes()
                program.server.stop()
                all_gone(everybody)


def _config(path: Path, url: str) -> Path:
    path.write_text(f'[[chain]]\nid = "{CHAIN_ID}"\nrpc = "{url}"\nname = "Growing"\n')
    return path


def _chain_ids() -> list[str]:
    return [str(CHAIN_ID), *(chain.table["id"] for chain in CHAINS)]


def _undisturbed(folder: Path, config: Path, head: int) -> dict[str, dict[str, str]]:
    """The digests of the indexes, by chain."""
    with serving("up", folder, "--demo", f"--config-file={config}", "--rate-limits=off") as server:
        client = Client({one: server.url(one) for one in ("node", "data", "metrics")}, Counts())
        _await(lambda: _is_indexed(client, head), "the indexes of the undisturbed run")
        _stable_answers(client)
    return {chain_id: digests(store_path(server.data_dir, chain_id)) for chain_id in _chain_ids()}


def _stable_answers(client: Client) -> dict[Call, bytes]:
    """What is expected of all reads from now on. Names and prices come after the blocks."""
    expected: dict[Call, bytes] = {}

    def is_stable() -> bool:
        before = dict(expected)
        expected.update({call: client.expected(call) for call in READS})
        return all(expected.values()) and expected == before

    _await(is_stable, "the same answers twice", pause_s=2.0)
    return expected


def _is_indexed(client: Client, head: int | None) -> bool:
    """The demo's chains, and the other one up to `head` if given."""
    if client.ask(Call("data", "/v1/health-check?strict=true")).status != 200:
        return False
    heads = {chain.table["id"]: Replay(recordings()[chain.name]).head for chain in CHAINS}
    heads |= {} if head is None else {str(CHAIN_ID): head}
    answers = {
        number: client.ask(Call("data", f"/v1/chains/{chain_id}/blocks?pageSize=1"))
        for chain_id, number in heads.items()
    }
    return all(f'"blockNumber":"{number}"'.encode() in answer.body for number, answer in answers.items())


def _await(condition: Callable[[], bool], what: str, pause_s: float = _POLL_S) -> None:
    deadline = time.monotonic() + LIMIT_S
    while not condition():
        if time.monotonic() > deadline:
            raise RuntimeError(f"not within {LIMIT_S:.0f} s: {what}")
        time.sleep(pause_s)


# -- the run -----------------------------------------------------------------------------------------------------


def _chaos(plan: Plan, program: Program, stores: Mapping[str, Mapping[str, str]], head: int) -> None:
    program.server.await_start()
    program.server.await_ready()
    counts, done = Counts(), threading.Event()
    utxos = _utxos(program.server)
    undisturbed = Client(program.urls, Counts())
    _await(lambda: _is_indexed(undisturbed, None), "the demo's indexes")
    expected = _stable_answers(undisturbed)
    issuers = [
        Issuer(Client(program.urls, counts), counts, utxos[number :: plan.issuers], done.is_set)
        for number in range(plan.issuers)
    ]
    threads = [threading.Thread(target=one.run) for one in issuers]
    threads.append(threading.Thread(target=recheck_accepted, args=(Client(program.urls, counts), counts, done, 0)))
    threads.append(threading.Thread(target=read_growing, args=(Client(program.urls, counts), counts, CHAIN_ID, done)))
    threads += [
        threading.Thread(target=read_all, args=(Client(program.urls, counts), counts, expected, done, seed))
        for seed in range(plan.readers)
    ]
    for thread in threads:
        thread.start()
    kills, load = _kill(plan, program), os.getloadavg()[0]
    done.set()
    healthy_s = plan.kill_every_s + _await_health(program, head)
    for thread in threads:
        thread.join()
    _report(plan, program, counts, kills, healthy_s, load)
    problems = [*counts.wrong, *_lost(program, counts, [utxo for one in issuers for utxo in one.utxos])]
    assert program.server.stop() == 0, program.server.output()
    for chain_id, want in stores.items():
        found = digests(store_path(program.server.data_dir, chain_id))
        problems += [f"chain {chain_id}: {table} differs" for table in want if found[table] != want[table]]
    print(f"  wrong answers, lost transactions, different tables of {len(stores)} indexes: {len(problems)}")
    if problems:
        raise SystemExit("\n".join(problems[:20]))


def _utxos(server: Server) -> list[Utxo]:
    """Outputs that the key owns, in one accepted transaction."""
    tx = transfer(richest(server), UTXOS)
    issue(server, tx)
    return list(produced(tx))


def _kill(plan: Plan, program: Program) -> Counter[str]:
    """By role."""
    chosen = random.Random(SEED)
    kills: Counter[str] = Counter()
    until = time.monotonic() + plan.seconds
    while time.monotonic() < until:
        next_kill = time.monotonic() + plan.kill_every_s
        processes = sorted(program.processes())
        by_role = {role(one, program, processes): one for one in processes}
        if len(processes) < PROCESSES:
            by_role.pop(SUPERVISOR, None)
        if by_role:
            victim = least_killed(by_role, kills, chosen)
            with suppress(ProcessLookupError):
                os.kill(by_role[victim].pid, signal.SIGKILL)
                kills[victim] += 1
        while time.monotonic() < next_kill:
            program.keep_running()
            plan.watch(program)
            time.sleep(_POLL_S)
    return kills


def least_killed(roles: Iterable[str], kills: Mapping[str, int], chosen: random.Random) -> str:
    """One of the roles that were killed least often, so that none is spared by chance."""
    by_kills = {role: kills.get(role, 0) for role in roles}
    fewest = min(by_kills.values())
    return chosen.choice([role for role, count in by_kills.items() if count == fewest])


def role(process: Process, program: Program, processes: Sequence[Process]) -> str:
    if process.pid == program.server.process.pid:
        return SUPERVISOR
    return process.role or f"child of the {next(one.role for one in processes if one.pid == process.parent)}"


def _await_health(program: Program, head: int) -> float:
    """Seconds until everything is healthy and indexed."""
    began = time.monotonic()
    client = Client(program.urls, Counts())

    def healthy() -> bool:
        program.keep_running()
        return client.ask(Call("node", "/ext/health")).status == 200 and _is_indexed(client, head)

    _await(healthy, "health after the last kill")
    return time.monotonic() - began


# -- the outcome -------------------------------------------------------------------------------------------------


def _lost(program: Program, counts: Counts, utxos: Sequence[Utxo]) -> list[str]:
    """Accepted transactions that are not as they were, and the outputs that must be there."""
    client = Client(program.urls, Counts())
    problems = []
    for txid, tx in counts.accepted.items():
        stored = client.ask(rpc("/ext/bc/X", "avm.getTx", txID=txid, encoding="hex"))
        indexed = client.ask(rpc("/ext/index/X/tx", "index.isAccepted", id=txid, encoding="hex"))
        if (
            b'"Accepted"' not in client.ask(status_call(txid)).body
            or checksum_hex.encode(tx.raw).encode() not in stored.body
            or b'"isAccepted":true' not in indexed.body
        ):
            problems.append(f"transaction {txid} was accepted and is lost")
    owned = client.ask(rpc("/ext/bc/X", "avm.getUTXOs", addresses=[ADDRESS_TEXT], limit=1024, encoding="hex"))
    there = set(owned.json()["result"]["utxos"])
    missing = [utxo for utxo in utxos if checksum_hex.encode(pack_utxo(utxo)) not in there]
    return [*problems, *(f"output {utxo.output_index} of {utxo.txid.hex()} is missing" for utxo in missing)]


def _report(plan: Plan, program: Program, counts: Counts, kills: Counter[str], healthy_s: float, load: float) -> None:
    every = f"every {plan.kill_every_s:.0f} s for {plan.seconds:.0f} s"
    print(f"{plan.name}: kill -9 of one process, all in turn, {every} (seed {SEED})")
    print(f"  load average of the machine at the end: {load:.1f}")
    print(f"  killed {kills.total()}: {', '.join(f'{role} {count}' for role, count in kills.most_common())}")
    for listener, count in counts.answers.items():
        failed = sum(number for (where, _), number in counts.failures.items() if where == listener)
        print(
            f"  {listener:<8} {count:>7} good answers, {failed:>5} failures; "
            f"longest time without a good answer {counts.gap_s[listener]:.1f} s"
        )
    for (listener, reason), count in counts.failures.most_common():
        print(f"  {count:>7}  {listener:<8} {reason}")
    print(f"  {len(counts.accepted)} transactions accepted; {counts.issued_again} were issued more than once")
    print(f"  starts refused because ports were in use: {program.starts_refused}")
    print(f"  all healthy and indexed {healthy_s:.1f} s after the last kill", flush=True)
