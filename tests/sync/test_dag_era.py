"""A network whose X-Chain had a DAG before its blocks: from empty to the tip, over restarts, on valid upstreams."""

import asyncio
from pathlib import Path

import pytest
from tests.sync.dag_scene import (
    BLOCK_0,
    CUT,
    DagReplay,
    DagScene,
    another_order,
    block_txs,
    chained,
    dag_following,
    dag_txs,
    imports_in,
    indexed_txids,
    stored_utxos,
    tx_ranges,
    tx_row,
    txids,
)
from tests.sync.expected import text_of
from tests.sync.followed_node import X_TX, Node, X
from tests.upstream.replay import FOREVER, Fault
from tests.xchain.memory_state import RULES, MemoryState
from tests.xchain.scenario_1 import final_utxos
from tests.xchain.stored import digest
from tests.xchain.wallet import NOW_S, Wallet

from icefall.config.settings import Config
from icefall.db.engine import StoreError
from icefall.node.store import SQL
from icefall.wire.avm.codec import unpack_block, unpack_utxo
from icefall.wire.avm.types import Tx
from icefall.wire.container.proposer import unpack_container
from icefall.wire.ids import id_text
from icefall.wire.text import checksum_hex
from icefall.xchain.execute import Overlay, execute
from icefall.xchain.model import owners_of
from icefall.xchain.ownership import Signers
from icefall.xchain.syntax import verify_syntax

TIP = (176 - CUT, 13, 12)
DAG = len(dag_txs())


def at_the_tip(at: DagScene) -> bool:
    return at.counts() == TIP and at.x().details["state"] == "following"


def assert_is_the_recorded_history(directory: Path) -> None:
    """The state is the recorded node's own, and the index leads through all of it in order."""
    assert stored_utxos(directory) == final_utxos()
    assert indexed_txids(directory) == txids([*dag_txs(), *block_txs()])


@pytest.mark.parametrize("like_icefall", [False, True])
def test_from_empty_to_the_tip(tmp_path: Path, like_icefall: bool) -> None:
    async def scene() -> None:
        async with DagReplay(like_icefall=like_icefall) as replay:
            async with dag_following(tmp_path, replay) as at:
                assert at.following.bootstrapping() == ["C", "P", "X"]
                await at.until(lambda: at_the_tip(at), "the tip")
                assert at.following.bootstrapping() == []
                assert (at.x().failure, at.x().details["containers"]) == (None, 76)
                assert at.ledger.tip.height == 76
            ranges = tx_ranges(replay)
            assert max(count for _, count in ranges) <= 32
            assert sum(count for _, count in ranges) == DAG  # nothing of blocks is asked of X/tx

    asyncio.run(scene())
    assert imports_in(dag_txs()) > 10
    assert imports_in(block_txs()) > 10
    assert_is_the_recorded_history(tmp_path)


def test_health_tells_how_far_the_dag_is(tmp_path: Path) -> None:
    async def scene() -> None:
        async with DagReplay() as replay:
            replay.bootstrapped["P"] = False  # the first import waits
            replay.show(P=0, C=0)
            async with dag_following(tmp_path, replay) as at:
                await at.until(lambda: "waiting" in at.x().details, "the first import")
                details = at.x().details
                assert details["state"] == "bootstrapping"
                assert 0 < details["transactionsBeforeBlocks"] < details["of"] == DAG
                assert "has not been exported yet: waits until" in details["waiting"]
                assert not at.x().bootstrapped
                assert at.ledger.height == 0
                assert indexed_txids(tmp_path) == txids(dag_txs()[: details["transactionsBeforeBlocks"]])
                replay.bootstrapped["P"] = True
                replay.show(P=13, C=12)
                await at.until(lambda: at_the_tip(at), "the tip")
                assert "transactionsBeforeBlocks" not in at.x().details

    asyncio.run(scene())
    assert_is_the_recorded_history(tmp_path)


def test_health_calls_a_chain_bootstrapped_once_workers_take_its_calls(tmp_path: Path) -> None:
    async def scene() -> None:
        async with DagReplay() as replay, dag_following(tmp_path, replay) as at:
            await at.until(lambda: not at.following.bootstrapping(), "the tip")
            assert not at.x().bootstrapped  # workers read the store, which does not say so yet
            refreshed: list[list[tuple[str]]] = []
            at.following.on_progress = lambda: refreshed.append(at.store.read(SQL.meta, {"name": "bootstrapping"}))
            report = asyncio.create_task(at.following.report_progress())
            await at.until(lambda: at.x().bootstrapped, "the report")
            report.cancel()
            assert refreshed == [[("[]",)]]

    asyncio.run(scene())


def test_an_upstream_that_fails_now_and_then(tmp_path: Path) -> None:
    async def scene() -> None:
        async with DagReplay() as replay:
            replay.faults = [Fault("index.", 6, 503), Fault("index.getContainerRange", 3, keep=0.5)]
            replay.faults += [Fault("index.getIndex", 1, 500), Fault("index.getContainerRange", 2, empty=True)]
            async with dag_following(tmp_path, replay) as at:
                await at.until(lambda: at_the_tip(at), "the tip")
                assert "droppedUpstreams" not in at.x().details

    asyncio.run(scene())
    assert_is_the_recorded_history(tmp_path)


def test_the_interface_leads_through_the_dag_and_on(tmp_path: Path) -> None:
    """As it is described: IDs by index from X/tx, then avm.getTx with each. And balances are those at the tip."""

    async def scene() -> Config:
        async with DagReplay() as replay, dag_following(tmp_path, replay) as at:
            await at.until(lambda: at_the_tip(at), "the tip")
            return at.config

    node = Node(asyncio.run(scene()))
    rows = list(node.walk(X_TX))
    assert [row["id"] for row in rows] == [id_text(tx.txid) for tx in (*dag_txs(), *block_txs())]
    for row, tx in zip(rows, (*dag_txs(), *block_txs()), strict=True):
        assert node.ask(X, "avm.getTx", txID=row["id"]).result == {"tx": checksum_hex.encode(tx.raw), "encoding": "hex"}
    first = dag_txs()[0]
    assert node.ask(X, "avm.getTx", txID=rows[0]["id"], encoding="json").result["tx"]["id"] == id_text(first.txid)
    assert node.ask(X, "avm.getTxStatus", txID=rows[0]["id"]).result == {"status": "Accepted"}
    assert node.ask(X, "avm.getHeight").result == {"height": "76"}
    assert node.ask(X_TX, "index.getIndex", id=rows[DAG]["id"]).result == {"index": str(DAG)}
    address = first.unsigned.outputs[0].output.owners.addresses[0]
    owned = sum(address in owners_of(unpack_utxo(raw).output) for raw in final_utxos().values())
    page = node.ask(X, "avm.getUTXOs", addresses=[text_of(address)]).result
    assert page["numFetched"] == str(min(owned, 1024))
    history = node.ask(X, "avm.getAddressTxs", address=text_of(address), assetID="AVAX", pageSize=1024).result
    assert id_text(first.txid) in history["txIDs"]


@pytest.mark.parametrize("run_max", [1, 7, 1024])
def test_runs_of_any_length(tmp_path: Path, run_max: int) -> None:
    async def scene() -> None:
        async with DagReplay() as replay, dag_following(tmp_path, replay, run_max=run_max) as at:
            await at.until(lambda: at_the_tip(at), "the tip")

    asyncio.run(scene())
    assert_is_the_recorded_history(tmp_path)


# -- restarts ----------------------------------------------------------------------------------------------------------


def test_resumed_at_every_checkpoint(tmp_path: Path) -> None:
    """Stopped after every commit of the DAG, it goes on behind it: nothing is fetched twice, nothing is left out."""
    clean, torn = tmp_path / "clean", tmp_path / "torn"

    async def scene() -> None:
        async with DagReplay() as replay:
            async with dag_following(clean, replay, run_max=16) as at:
                await at.until(lambda: at_the_tip(at), "the tip")
            done, starts = 0, 0
            while done < DAG:
                replay.calls.clear()
                replay.paths.clear()
                async with dag_following(torn, replay, run_max=16) as at:
                    assert at.ledger.height == 0
                    assert at.ledger.txs_before_blocks == done
                    seen = done
                    await at.until(lambda at=at, seen=seen: at.ledger.txs_before_blocks > seen)  # type: ignore[misc]
                assert min(start for start, _ in tx_ranges(replay)) == done
                done, starts = at.ledger.txs_before_blocks, starts + 1
                assert indexed_txids(torn)[:done] == txids(dag_txs()[:done])
            assert starts > 5
            async with dag_following(torn, replay, run_max=16) as at:
                await at.until(lambda: at_the_tip(at), "the tip")
            replay.calls.clear()
            replay.paths.clear()
            async with dag_following(torn, replay, run_max=16) as at:  # with blocks there is no looking back
                await at.until(lambda: at_the_tip(at), "the tip again")
            assert tx_ranges(replay) == []
            assert "/ext/index/X/tx" not in replay.paths

    asyncio.run(scene())
    assert digest(torn) == digest(clean)
    assert_is_the_recorded_history(torn)


def test_a_disk_that_is_full_for_a_while(tmp_path: Path) -> None:
    async def scene() -> None:
        async with DagReplay() as replay, dag_following(tmp_path, replay) as at:
            write, full = at.ledger.store.write, 3

            async def refuse(change: object) -> object:
                nonlocal full
                if full:
                    full -= 1
                    raise StoreError("the disk is full")
                return await write(change)  # type: ignore[arg-type]

            at.ledger.store.write = refuse  # type: ignore[method-assign,assignment]
            await at.until(lambda: at_the_tip(at), "the tip")
            assert at.x().details.get("droppedUpstreams") is None

    asyncio.run(scene())
    assert_is_the_recorded_history(tmp_path)


# -- where the DAG ends ------------------------------------------------------------------------------------------------


def test_an_upstream_that_is_still_in_its_dag_is_waited_for(tmp_path: Path) -> None:
    """Without blocks and not bootstrapped, what its X/tx ends with is not the end."""

    async def scene() -> None:
        async with DagReplay() as replay:
            replay.show(X=0, tx=40)
            replay.bootstrapped["X"] = False
            async with dag_following(tmp_path, replay) as at:
                await at.until(lambda: replay.asked("info.isBootstrapped") > 5, "asking")
                assert at.ledger.txs_before_blocks == 0
                replay.show(tx=DAG)
                replay.bootstrapped["X"] = True
                await at.until(lambda: at.ledger.txs_before_blocks == DAG, "the DAG")
                await at.until(lambda: at.x().details == {"state": "following", "containers": 0, "of": 0}, "no blocks")
                replay.show(X=76)
                await at.until(lambda: at_the_tip(at), "the tip")

    asyncio.run(scene())
    assert_is_the_recorded_history(tmp_path)


@pytest.mark.parametrize("like_icefall", [False, True])
def test_blocks_that_arrive_while_the_dag_is_followed(tmp_path: Path, like_icefall: bool) -> None:
    """With each range of X/tx that is fetched there is one block more, and its transactions in an Icefall's X/tx."""

    async def scene() -> None:
        async with DagReplay(like_icefall=like_icefall) as replay:
            counts = [len(unpack_block(unpack_container(row.raw).inner).txs) for row in replay.chains["X"]]

            def one_more(method: str, params: dict[str, str]) -> None:
                if replay.paths[-1] == "/ext/index/X/tx":
                    blocks = min(76, replay.count("X") + 1)
                    replay.show(X=blocks, tx=DAG + (sum(counts[:blocks]) if like_icefall else 0))

            replay.show(X=0, tx=DAG)
            replay.on_call = one_more
            async with dag_following(tmp_path, replay, run_max=8) as at:
                await at.until(lambda: at.ledger.height > 0, "the first block")
                replay.show(X=76, tx=FOREVER)
                await at.until(lambda: at_the_tip(at), "the tip")

    asyncio.run(scene())
    assert_is_the_recorded_history(tmp_path)


# -- several upstreams -------------------------------------------------------------------------------------------------


def test_another_upstream_has_them_in_another_order(tmp_path: Path) -> None:
    """Nodes accepted the DAG in different orders: from the second one comes what the first did not give."""

    async def scene() -> None:
        async with DagReplay() as first, DagReplay() as second:
            second.chains["tx"] = [tx_row(tx) for tx in another_order(dag_txs())]
            async with dag_following(tmp_path, first, second, run_max=16) as at:
                await at.until(lambda: at.ledger.txs_before_blocks >= 48, "a part")
                first.faults = [Fault(times=FOREVER, status=503)]
                await at.until(lambda: at_the_tip(at), "the tip")
            assert min(start for start, _ in tx_ranges(second)) == 0

    asyncio.run(scene())
    assert stored_utxos(tmp_path) == final_utxos()
    found = indexed_txids(tmp_path)
    assert sorted(found[:DAG]) == sorted(txids(dag_txs()))
    assert found[DAG:] == txids(block_txs())


def test_what_only_another_upstream_knows_is_taken_from_it(tmp_path: Path) -> None:
    """The first one's X/tx ends too soon, which nothing in it shows."""

    async def scene() -> None:
        async with DagReplay() as short, DagReplay() as whole:
            short.show(tx=DAG - 5)
            async with dag_following(tmp_path, short, whole) as at:
                await at.until(lambda: at_the_tip(at), "the tip")
                assert "droppedUpstreams" not in at.x().details

    asyncio.run(scene())
    assert_is_the_recorded_history(tmp_path)


def test_an_upstream_without_x_tx_beside_one_that_has_it(tmp_path: Path) -> None:
    async def scene() -> None:
        async with DagReplay() as without, DagReplay() as whole:
            del without.chains["tx"]
            async with dag_following(tmp_path, without, whole) as at:
                await at.until(lambda: at_the_tip(at), "the tip")
                assert "droppedUpstreams" not in at.x().details

    asyncio.run(scene())
    assert_is_the_recorded_history(tmp_path)


# -- random histories --------------------------------------------------------------------------------------------------


def in_memory(txs: list[Tx]) -> MemoryState:
    state, signers = MemoryState(), Signers()
    for tx in txs:
        verify_syntax(tx, RULES)
        state.accept([execute(tx, RULES, Overlay(state), NOW_S, signers)])
    return state


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_random_history_is_what_it_is_in_memory(tmp_path: Path, seed: int) -> None:
    """Of every kind but imports, which P and C would have to know of."""
    wallet = Wallet(seed, target=60)
    groups = [[wallet.fan_out(60)]]
    wallet.accepted()
    for _ in range(30):
        groups.append([wallet.tx() for _ in range(wallet.random.randint(1, 6))])
        wallet.accepted()
    dag, in_blocks = [tx for group in groups[:20] for tx in group], [tx for group in groups[20:] for tx in group]

    async def scene() -> None:
        async with DagReplay() as replay:
            replay.chains |= {"tx": [tx_row(tx) for tx in dag], "X": chained(groups[20:]), "P": [], "C": []}
            async with dag_following(tmp_path, replay, run_max=5) as at:
                await at.until(lambda: at.ledger.height == len(groups) - 20, "the tip")
                assert unpack_block(replay_block_0(at)).block_id == BLOCK_0.block_id

    asyncio.run(scene())
    expected = in_memory([*dag, *in_blocks])
    assert stored_utxos(tmp_path) == {id_text(utxo_id): raw for utxo_id, raw in expected.raw.items()}
    assert indexed_txids(tmp_path) == txids([*dag, *in_blocks])


def replay_block_0(at: DagScene) -> bytes:
    rows = at.store.read("select container from ledger_block where height = 0")
    raw: bytes = rows[0][0]
    return raw
