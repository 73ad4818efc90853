"""The vertices of X's DAG: read from X/vtx, proven by the last one, stored, and served under /v1/networks."""

import asyncio
import json
import random
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.api.networks_scene import asked, networks_app
from tests.sync.dag_scene import (
    STOP_VERTEX,
    X_CHAIN,
    DagReplay,
    DagScene,
    DrawnVertex,
    block_txs,
    dag_following,
    dag_txs,
    dag_vertices,
    tx_row,
    vertex_row,
)
from tests.sync.followed_node import X_VTX, Node
from tests.upstream.replay import Fault
from tests.xchain.wallet import NOW_S

from icefall.api.http.asgi import AsgiApp
from icefall.api.networks.network import Networks
from icefall.compose.served_network import served_network
from icefall.compose.stores import stores_of
from icefall.config.settings import Config
from icefall.node.store import store_path
from icefall.wire.container.vertex import PARENTS_MAX, TXS_MAX, pack_vertex, unpack_vertex
from icefall.wire.errors import WireError
from icefall.wire.ids import hash256, id_text

VECTORS = Path(__file__).parents[1] / "vectors"
CHAIN = "/v1/networks/fuji/blockchains/x-chain"
TIP = (76, 13, 12)


def with_vertices(vertices: list[DrawnVertex] | None = None) -> DagReplay:
    replay = DagReplay()
    replay.chains["vtx"] = [vertex_row(one.raw) for one in (dag_vertices() if vertices is None else vertices)]
    return replay


def is_done(at: DagScene) -> bool:
    follower = at.following._vertices
    assert follower is not None
    return at.counts() == TIP and follower.is_complete


def unfit(at: DagScene) -> list[str]:
    follower = at.following._vertices
    assert follower is not None
    return [why.partition(": ")[2] for why in follower.unfit.values()]


def stored(directory: Path) -> list[tuple[int, str]]:
    with closing(sqlite3.connect(store_path(directory))) as connection:
        rows = connection.execute("select number, vertex_id from vertex order by number").fetchall()
    return [(number, id_text(vertex_id)) for number, vertex_id in rows]


def follow(directory: Path, *replays: DagReplay, run_max: int = 16) -> Config:
    async def scene() -> Config:
        for replay in replays:
            await replay.start()
        try:
            async with dag_following(directory, *replays, run_max=run_max) as at:
                await at.until(lambda: is_done(at), "the last vertex")
                assert "droppedUpstreams" not in at.x().details
                return at.config
        finally:
            for replay in replays:
                await replay.stop()

    return asyncio.run(scene())


# -- bytes -------------------------------------------------------------------------------------------------------------


def test_a_vertex_is_what_it_was_packed_from() -> None:
    for one in dag_vertices():
        vertex = unpack_vertex(one.raw)
        assert (vertex.vertex_id, vertex.chain_id, vertex.height) == (one.vertex_id, X_CHAIN, one.height)
        assert (vertex.parents, vertex.size) == (one.parents, len(one.raw))
        assert sorted(vertex.txs) == sorted(tx.raw for tx in one.txs)
        assert vertex.is_stop == (one.txs == ())


def test_vertices_that_avalanchego_packed() -> None:
    """Its own codec of 1.14.2 made these, with `vertex.Build` and `vertex.BuildStopVertex`."""
    rows = json.loads((VECTORS / "vertices.json").read_text())
    assert [row["stop"] for row in rows] == [False, False, False, False, True, True]
    for row in rows:
        raw = bytes.fromhex(row["hex"])
        vertex = unpack_vertex(raw)
        assert id_text(vertex.vertex_id) == row["id"]
        assert (id_text(vertex.chain_id), vertex.height, vertex.is_stop) == (row["chainID"], row["height"], row["stop"])
        assert [id_text(one) for one in vertex.parents] == row["parents"]
        assert [one.hex() for one in vertex.txs] == row["txs"]
        assert pack_vertex(vertex.chain_id, vertex.height, vertex.parents, vertex.txs) == raw


def test_the_last_vertex_of_a_network_without_a_dag_has_the_known_bytes() -> None:
    """Those from which such a network's block 0 is made: 46 bytes."""
    raw = bytes.fromhex("0001") + X_CHAIN + bytes(12)
    assert pack_vertex(X_CHAIN, 0, (), ()) == raw
    assert (unpack_vertex(raw).is_stop, len(raw)) == (True, 46)


def test_malformed_vertices_are_refused() -> None:
    one = max((one for one in dag_vertices() if len(one.parents) > 1), key=lambda one: len(one.txs))
    raws = sorted((tx.raw for tx in one.txs), key=hash256)
    parents = tuple(sorted(one.parents))
    head = bytes(2) + X_CHAIN + one.height.to_bytes(8, "big")

    def packed(epoch: int, parents: tuple[bytes, ...], txs: list[bytes]) -> bytes:
        listed = b"".join(len(tx).to_bytes(4, "big") + tx for tx in txs)
        counted = len(parents).to_bytes(4, "big") + b"".join(parents)
        return head + epoch.to_bytes(4, "big") + counted + len(txs).to_bytes(4, "big") + listed

    assert packed(0, parents, raws) == one.raw
    many = tuple(number.to_bytes(32, "big") for number in range(PARENTS_MAX + 1))
    few = sorted((number.to_bytes(2, "big") for number in range(TXS_MAX + 1)), key=hash256)
    for raw, why in (
        (packed(1, parents, raws), "epoch"),
        (packed(0, parents[::-1], raws), "order"),
        (packed(0, parents[:1] * 2, raws), "order"),
        (packed(0, parents, raws[::-1]), "order"),
        (packed(0, parents, [raws[0], raws[0]]), "order"),
        (packed(0, parents, []), "at least one"),
        (packed(0, many, raws), "at most 128 parents"),
        (packed(0, parents, few), "at most 128 transactions"),
        (one.raw + b"\0", "trailing"),
        (one.raw[:-1], "insufficient"),
        (b"\0\2" + one.raw[2:], "codec version"),
        (bytes((1 << 20) + 1), "bytes"),
    ):
        with pytest.raises(WireError, match=why):
            unpack_vertex(raw)
    assert unpack_vertex(packed(0, many[:-1], few[:-1])).size


# -- following ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("run_max", [1, 16, 1024])
def test_all_are_stored_in_the_order_of_the_index(tmp_path: Path, run_max: int) -> None:
    with_index = with_vertices()
    config = follow(tmp_path, with_index, run_max=run_max)
    assert stored(tmp_path) == [(number, id_text(one.vertex_id)) for number, one in enumerate(dag_vertices())]
    node = Node(config)
    rows = list(node.walk(X_VTX))
    assert [row["id"] for row in rows] == [id_text(one.vertex_id) for one in dag_vertices()]
    assert node.ask(X_VTX, "index.isAccepted", id=id_text(STOP_VERTEX), encoding="hex").result["isAccepted"]


def test_it_goes_on_where_it_ended(tmp_path: Path) -> None:
    """Stopped after each batch, it fetches no stored vertex again but the last, to see that it is the same."""

    async def scene() -> None:
        async with with_vertices() as replay:
            have, starts = 0, 0
            while have < len(dag_vertices()):
                replay.calls.clear()
                replay.paths.clear()
                async with dag_following(tmp_path, replay, run_max=16) as at:
                    follower = at.following._vertices
                    assert follower is not None
                    await at.until(lambda f=follower, n=have: f._chain.count > n)  # type: ignore[misc]
                    count = follower._chain.count
                fetched = [
                    int(params["startIndex"])
                    for (method, params), path in zip(replay.calls, replay.paths, strict=True)
                    if path == "/ext/index/X/vtx" and method == "index.getContainerRange"
                ]
                assert min(fetched) == have
                have, starts = max(count, len(stored(tmp_path))), starts + 1
            assert starts > 2

    asyncio.run(scene())
    assert stored(tmp_path) == [(number, id_text(one.vertex_id)) for number, one in enumerate(dag_vertices())]


def test_an_upstream_that_fails_now_and_then(tmp_path: Path) -> None:
    replay = with_vertices()
    replay.faults = [Fault("index.", 6, 503), Fault("index.getContainerRange", 3, keep=0.5)]
    follow(tmp_path, replay)
    assert len(stored(tmp_path)) == len(dag_vertices())


def test_another_upstream_has_the_others_in_another_order(tmp_path: Path) -> None:
    """Positions are those of the index that a vertex was first read from; what is missing is added behind."""
    short, whole = with_vertices(list(dag_vertices()[:20])), with_vertices()
    whole.chains["vtx"] = [vertex_row(one.raw) for one in reordered(dag_vertices())]
    follow(tmp_path, short, whole)
    found = stored(tmp_path)
    assert [number for number, _ in found] == list(range(len(dag_vertices())))
    assert {vertex_id for _, vertex_id in found} == {id_text(one.vertex_id) for one in dag_vertices()}
    assert found[-1][1] == id_text(STOP_VERTEX)


def reordered(vertices: tuple[DrawnVertex, ...]) -> list[DrawnVertex]:
    """The same vertices, each somewhere behind its parents."""
    source, left, ordered = random.Random(3), list(vertices), list[DrawnVertex]()
    while left:
        done = {one.vertex_id for one in ordered}
        chosen = source.choice([one for one in left if done.issuperset(one.parents)])
        left.remove(chosen)
        ordered.append(chosen)
    assert ordered != list(vertices)
    return ordered


OTHER_CHAIN = pack_vertex(bytes(32), 0, (), (dag_txs()[0].raw,))
STRAY = pack_vertex(X_CHAIN, 1, (dag_vertices()[0].vertex_id,), (dag_txs()[0].raw,))
NOT_ACCEPTED = pack_vertex(X_CHAIN, 0, (), (b"never accepted",))
ORPHAN = pack_vertex(X_CHAIN, 1, (hash256(b"unknown"),), (dag_txs()[0].raw,))
SECOND_STOP = pack_vertex(X_CHAIN, 0, (), ())
GOOD = [one.raw for one in dag_vertices()]
WRONG: dict[str, tuple[list[bytes], str]] = {
    "empty": ([], "empty"),
    "another chain": ([OTHER_CHAIN, *GOOD], "another chain"),
    "stray": ([GOOD[0], STRAY, *GOOD[1:]], "no ancestors of the last one"),
    "unknown transaction": ([NOT_ACCEPTED, *GOOD], "never accepted"),
    "unknown parent": ([GOOD[0], ORPHAN, *GOOD[1:]], "which the index does not hold"),
    "second last one": ([SECOND_STOP, *GOOD], "that block 0 does not name"),
    "incomplete": (GOOD[:-1], "ends before the vertex that block 0 names"),
    "no vertex": ([b"\0\1\2\3", *GOOD], "holds no vertex"),
    "a gap": (GOOD[1:], "which the index does not hold"),
}


@pytest.mark.parametrize("kind", WRONG)
def test_a_wrong_index_is_not_used_and_the_upstream_stays(tmp_path: Path, kind: str) -> None:
    """X is followed to its tip from it, and another upstream gives the vertices."""
    rows, why = WRONG[kind]

    async def scene() -> None:
        async with DagReplay() as wrong, with_vertices() as right:
            wrong.chains["vtx"] = [vertex_row(raw) for raw in rows]
            async with dag_following(tmp_path, wrong) as at:
                await at.until(lambda: at.counts() == TIP and bool(unfit(at)), "what is wrong")
                assert "droppedUpstreams" not in at.x().details
                assert why in unfit(at)[0]
            async with dag_following(tmp_path, wrong, right) as at:
                await at.until(lambda: is_done(at), "the last vertex")
                assert "droppedUpstreams" not in at.x().details

    asyncio.run(scene())
    assert {vertex_id for _, vertex_id in stored(tmp_path)} == {id_text(one.vertex_id) for one in dag_vertices()}


# -- serving -----------------------------------------------------------------------------------------------------------


class Served:
    """The interface on a store that was followed."""

    def __init__(self, config: Config) -> None:
        network = served_network(config, stores_of(config))
        self.app: AsgiApp = networks_app(Networks(network))

    def get(self, target: str) -> tuple[int, Any]:
        return asyncio.run(asked(self.app, CHAIN + target))

    def pages(self, target: str, key: str) -> list[Any]:
        found: list[Any] = []
        token = ""
        while True:
            status, page = self.get(f"{target}&pageToken={token}" if token else target)
            assert status == 200, page
            assert page["chainInfo"] == {"chainName": "x-chain", "network": "fuji"}
            found += page[key]
            token = page.get("nextPageToken", "")
            if not token:
                return found


def shown(number: int, one: DrawnVertex) -> dict[str, Any]:
    return {
        "vertexHash": id_text(one.vertex_id),
        "parentHashes": [id_text(parent) for parent in one.parents],
        "vertexHeight": one.height,
        "vertexIndex": number,
        "vertexTimestamp": NOW_S,
        "txCount": len({tx.txid for tx in one.txs}),
        "transactions": [id_text(txid) for txid in sorted({tx.txid for tx in one.txs})],
        "vertexSizeBytes": len(one.raw),
    }


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Served:
    return Served(follow(tmp_path_factory.mktemp("served"), with_vertices()))


def test_vertices_are_listed_page_by_page(served: Served) -> None:
    expected = [shown(number, one) for number, one in enumerate(dag_vertices())]
    for size in (1, 7, 100):
        assert served.pages(f"/vertices?pageSize={size}", "vertices") == expected[::-1]


def test_vertices_of_a_height_in_both_orders(served: Served) -> None:
    by_height: dict[int, list[Any]] = {}
    for number, one in enumerate(dag_vertices()):
        by_height.setdefault(one.height, []).append(shown(number, one))
    assert max(map(len, by_height.values())) > 2
    for height, expected in by_height.items():
        for size in (1, 2, 100):
            target = f"/vertices:listByHeight?vertexHeight={height}&pageSize={size}"
            assert served.pages(target, "vertices") == expected[::-1]
            assert served.pages(f"{target}&sortOrder=asc", "vertices") == expected
    assert served.pages("/vertices:listByHeight?vertexHeight=9223372036854775807", "vertices") == []


def test_each_vertex_by_its_hash(served: Served) -> None:
    for number, one in enumerate(dag_vertices()):
        assert served.get(f"/vertices/{id_text(one.vertex_id)}") == (200, shown(number, one))
    assert served.get(f"/vertices/{id_text(hash256(b'another'))}")[0] == 404
    assert served.get("/vertices/nonsense")[0] == 400


def test_transactions_name_their_vertices(served: Served) -> None:
    holders: dict[str, list[dict[str, Any]]] = {}
    for one in sorted(dag_vertices(), key=lambda one: (one.height, one.vertex_id)):
        for tx in {tx.txid: tx for tx in one.txs}.values():
            named = {"hash": id_text(one.vertex_id), "height": one.height, "timestamp": NOW_S}
            holders.setdefault(id_text(tx.txid), []).append(named)
    assert any(len(named) > 1 for named in holders.values())
    rows = served.pages("/transactions?pageSize=100", "transactions")
    of_dag = {row["txHash"]: row for row in rows if row["chainFormat"] == "non-linear"}
    assert of_dag.keys() == holders.keys() == {id_text(tx.txid) for tx in dag_txs()}
    for txid, row in of_dag.items():
        assert row["vertices"] == holders[txid]
        assert "blockHash" not in row
        assert "blockHeight" not in row
    first = next(iter(holders))
    assert served.get(f"/transactions/{first}")[1]["vertices"] == holders[first]
    linear = [row for row in rows if row["chainFormat"] == "linear"]
    assert {row["txHash"] for row in linear} > {id_text(tx.txid) for tx in block_txs()}
    assert not any("vertices" in row for row in linear)


def test_without_vertices_the_lists_are_empty(tmp_path: Path) -> None:
    async def scene() -> Config:
        async with DagReplay() as replay, dag_following(tmp_path, replay) as at:
            await at.until(lambda: at.counts() == TIP and bool(unfit(at)), "the tip")
            assert "keeps no index" in unfit(at)[0]
            return at.config

    served = Served(asyncio.run(scene()))
    assert served.pages("/vertices?pageSize=5", "vertices") == []
    assert served.get(f"/vertices/{id_text(STOP_VERTEX)}")[0] == 404
    assert served.get(f"/transactions/{tx_row(dag_txs()[0]).id_text}")[1]["vertices"] == []
