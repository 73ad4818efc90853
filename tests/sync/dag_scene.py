"""A network whose X-Chain had a DAG: scenario-1 cut in two. The transactions of its first blocks were in the DAG, the
rest are in blocks upon a block 0 that names a stop vertex. Followed into a real store, with a clock that does not wait.
"""

import asyncio
import random
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, closing
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from tests.store.opened import open_store
from tests.upstream.fake_clock import PollingClock
from tests.upstream.replay import Replay, Row, labelled, local_genesis, recorded
from tests.waiting import LIMIT_S
from tests.xchain.scenario_1 import accepted_blocks
from tests.xchain.wallet import NOW_S

import icefall.primary.sync
from icefall.compose.node_setup import configured_network, node_logs
from icefall.config.load import load
from icefall.config.settings import Config
from icefall.node.health.checks import FollowStats
from icefall.node.store import PACKAGE, StartRequest, admit, store_path
from icefall.node.sync.upstreams import NodeUpstreams
from icefall.primary.chains import index_x
from icefall.primary.network import Network
from icefall.primary.sync import NodeFollowing
from icefall.wire.avm.codec import pack_block
from icefall.wire.avm.types import Block, Tx
from icefall.wire.avm.utxos import consumed, imported
from icefall.wire.container.proposer import pack_container
from icefall.wire.container.vertex import pack_vertex
from icefall.wire.ids import hash256, id_text
from icefall.xchain.ledger import Ledger

START = 1_794_753_768  # of the recorded network
X_CHAIN = local_genesis().x_chain_id
CUT = 100  # blocks of the recording whose transactions were in the DAG


@cache
def dag_txs(cut: int = CUT) -> tuple[Tx, ...]:
    return tuple(tx for row in accepted_blocks()[:cut] for tx in row.block.txs)


class DrawnVertex(NamedTuple):
    """A vertex as it was drawn; the last one has no transactions."""

    raw: bytes
    height: int
    parents: tuple[bytes, ...]
    txs: tuple[Tx, ...]

    @property
    def vertex_id(self) -> bytes:
        return hash256(self.raw)


def drawn_vertices(txs: Sequence[Tx], seed: int = 1) -> list[DrawnVertex]:
    """A DAG of these transactions in their order: up to four in a vertex, now and then one that the vertex before holds
    too, up to three parents, and a last vertex that is a descendant of all."""
    source = random.Random(seed)
    found: list[DrawnVertex] = []
    leaves: list[DrawnVertex] = []

    def add(parents: Sequence[DrawnVertex], of: Sequence[Tx]) -> None:
        height = max((one.height + 1 for one in parents), default=0)
        ids = tuple(sorted(one.vertex_id for one in parents))
        raw = pack_vertex(X_CHAIN, height, ids, tuple(tx.raw for tx in of))
        found.append(DrawnVertex(raw, height, ids, tuple(of)))
        leaves[:] = [one for one in leaves if one not in parents] + [found[-1]]

    left = list(txs)
    while left:
        size = source.randint(1, 4)
        again = [source.choice(found[-1].txs)] if found and source.random() < 0.2 else []
        fewest = 0 if len(found) < 3 else 1
        parents = source.sample(found[-4:], source.randint(fewest, min(len(found), 3)))
        add(parents, [*left[:size], *again])
        left = left[size:]
    add(list(leaves), [])
    return found


@cache
def dag_vertices() -> tuple[DrawnVertex, ...]:
    return tuple(drawn_vertices(dag_txs()))


@cache
def block_txs(cut: int = CUT) -> tuple[Tx, ...]:
    return tuple(tx for row in accepted_blocks()[cut:] for tx in row.block.txs)


STOP_VERTEX = dag_vertices()[-1].vertex_id
BLOCK_0 = pack_block(STOP_VERTEX, 0, NOW_S, ())  # younger than any lock that was open in the DAG


def chained(groups: Iterable[Sequence[Tx]], block_0: Block = BLOCK_0) -> list[Row]:
    """One block for each group, in containers, upon block 0."""
    rows: list[Row] = []
    parent, parent_container_id = block_0, block_0.block_id
    for txs in groups:
        parent = pack_block(parent.block_id, parent.height + 1, NOW_S + parent.height, txs)
        container = pack_container(parent_container_id, parent.time, 0, parent.raw)
        parent_container_id = container.container_id
        rows.append(labelled(container.raw))
    return rows


@cache
def _blocks(cut: int) -> tuple[Row, ...]:
    return tuple(chained([row.block.txs for row in accepted_blocks()[cut:]]))


def tx_row(tx: Tx) -> Row:
    return Row(id_text(tx.txid), tx.raw)


def vertex_row(raw: bytes) -> Row:
    return Row(id_text(hash256(raw)), raw)


def another_order(txs: Sequence[Tx], seed: int = 1) -> list[Tx]:
    """The same transactions as another node may have accepted them: each somewhere behind what it spends."""
    source = random.Random(seed)
    ours = {tx.txid for tx in txs}
    left, done, ordered = list(txs), set[bytes](), list[Tx]()
    while left:
        ready = [tx for tx in left if all(at.txid in done or at.txid not in ours for at in consumed(tx))]
        chosen = source.choice(ready)
        left.remove(chosen)
        done.add(chosen.txid)
        ordered.append(chosen)
    assert ordered != list(txs)
    return ordered


class DagReplay(Replay):
    """An upstream with X/tx. As a node's it holds the DAG alone; as an Icefall's, the transactions of blocks behind it.
    Its rows are those of the chain "tx", and those of X/vtx, where it has one, of the chain "vtx"."""

    def __init__(self, cut: int = CUT, *, like_icefall: bool = False) -> None:
        chains = recorded()
        chains["X"] = list(_blocks(cut))
        chains["tx"] = [tx_row(tx) for tx in dag_txs(cut)]
        if like_icefall:
            chains["tx"] += [tx_row(tx) for tx in block_txs(cut)]
        super().__init__(chains)
        self.bare_ranges = like_icefall

    async def __aenter__(self) -> "DagReplay":
        await self.start()
        return self

    def _answer(self, path: str, method: str, params: dict[str, Any]) -> Any:
        index = path.removeprefix("/ext/index/X/")
        if index not in ("tx", "vtx"):
            return super()._answer(path, method, params)
        if not self.index_on or index not in self.chains:
            raise LookupError
        if method != "index.getIndex":
            return self._indexed(index, method, params)
        ids = [row.id_text for row in self.chains["tx"][: self.count("tx")]]
        if params["id"] not in ids:
            raise LookupError("not found")
        return {"index": str(ids.index(params["id"]))}


def tx_ranges(replay: Replay) -> list[tuple[int, int]]:
    """What was fetched of X/tx: first number, how many."""
    return [
        (int(params["startIndex"]), int(params["numToFetch"]))
        for (method, params), path in zip(replay.calls, replay.paths, strict=True)
        if path == "/ext/index/X/tx" and method == "index.getContainerRange"
    ]


class DagScene:
    """One start of the program on a data directory."""

    def __init__(self, config: Config, network: Network, run_max: int, *, had_dag: bool | None) -> None:
        self.config = config
        self.store = open_store(store_path(Path(config.data_dir)), PACKAGE)
        spec = network.asset_chains[0]
        self.ledger = Ledger(self.store, spec.rules, spec.genesis, spec.block_0, network.subnet_of, index_x)
        self._network = network
        self._run_max = run_max
        self._had_dag = had_dag
        self._tasks: list[asyncio.Task[None]] = []
        self.following: NodeFollowing

    async def start(self) -> None:
        start = StartRequest(self.config.network_id, True, True, False)
        await self.store.write(lambda tx: admit(tx, start, START))
        await self.ledger.start()
        logs = node_logs(self.config, "engine", self._network, create=True)
        self.following = NodeFollowing(
            self.config.upstream,
            self._network,
            self.store,
            self.ledger,
            logs,
            self._run_max,
            indexed=True,
            had_dag=self._had_dag,
        )
        self._tasks = self.following.tasks()

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        ended = await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.following.close()
        self.store.close()
        bugs = [end for end in ended if isinstance(end, Exception)]
        assert not bugs, bugs

    def counts(self) -> tuple[int, int, int]:
        """Blocks of X, containers of P and C."""
        foreign = self.following.foreign
        return self.ledger.height, foreign["P"].position.count, foreign["C"].position.count

    def x(self) -> FollowStats:
        return self.following.stats_of("X")

    async def until(self, truth: Callable[[], bool], what: str = "") -> None:
        try:
            async with asyncio.timeout(LIMIT_S):
                while not truth():
                    for task in self._tasks:
                        if task.done():
                            task.result()
                    await asyncio.sleep(0.005)
        except TimeoutError:
            raise AssertionError(f"{what} never came: {self.counts()} {self.x()}") from None


def config_of(directory: Path, *urls: str, more: Sequence[str] = ()) -> Config:
    (directory / "run").mkdir(parents=True, exist_ok=True)
    arguments = [f"--data-dir={directory}", f"--upstream={','.join(urls)}", "--index-enabled=true", *more]
    return load("node", [*arguments, "--log-display-level=off"], {}, directory).config


def dag_network(config: Config) -> Network:
    """The local network, had it begun with a DAG."""
    network = configured_network(config, START)
    block_0 = {"x_block_0": BLOCK_0.raw, "x_block_0_id": BLOCK_0.block_id, "stop_vertex_id": STOP_VERTEX}
    genesis = msgspec.structs.replace(network.genesis, **block_0)
    spec = msgspec.structs.replace(network.asset_chains[0], block_0=BLOCK_0.raw)
    return msgspec.structs.replace(network, genesis=genesis, asset_chains=(spec,))


@asynccontextmanager
async def dag_following(directory: Path, *replays: Replay, run_max: int = 32) -> AsyncIterator[DagScene]:
    """The upstreams are up already."""
    config = config_of(directory, *(replay.url for replay in replays))
    async with started(DagScene(config, dag_network(config), run_max, had_dag=True)) as at:
        yield at


@asynccontextmanager
async def started(scene: DagScene) -> AsyncIterator[DagScene]:
    module: Any = icefall.primary.sync
    module.NodeUpstreams = partial(NodeUpstreams, clock=PollingClock(), chance=lambda: 0.5)
    try:
        await scene.start()
    finally:
        module.NodeUpstreams = NodeUpstreams
    async with AsyncExitStack() as stack:
        stack.push_async_callback(scene.stop)
        yield scene


# -- what must come out ----------------------------------------------------------------------------------------------


def stored_utxos(directory: Path) -> dict[str, bytes]:
    with closing(sqlite3.connect(store_path(directory))) as connection:
        return {id_text(utxo_id): raw for utxo_id, raw in connection.execute("select utxo_id, bytes from utxo")}


def indexed_txids(directory: Path) -> list[bytes]:
    """The transactions that the index holds, in its order; each has its bytes."""
    with closing(sqlite3.connect(store_path(directory))) as connection:
        rows = connection.execute(
            "select c.number, c.container_id, t.txid, t.bytes from container c "
            "join ledger_tx t on t.chain = 1 and t.seq = c.source where c.series = 4 order by c.number"
        ).fetchall()
    assert [number for number, *_ in rows] == list(range(len(rows)))
    assert all(container_id == txid == hash256(raw) for _, container_id, txid, raw in rows)
    return [txid for _, _, txid, _ in rows]


def txids(txs: Iterable[Tx]) -> list[bytes]:
    return [tx.txid for tx in txs]


def imports_in(txs: Iterable[Tx]) -> int:
    return sum(bool(imported(tx)) for tx in txs)
