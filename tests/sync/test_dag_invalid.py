"""An upstream that keeps no X/tx index, a part of it, or an invalid one: X reports why, and P and C continue."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from tests.sync.dag_scene import (
    DagReplay,
    DagScene,
    block_txs,
    config_of,
    dag_following,
    dag_txs,
    indexed_txids,
    started,
    stored_utxos,
    tx_row,
    txids,
)
from tests.sync.test_dag_era import DAG, assert_is_the_recorded_history, at_the_tip
from tests.upstream.replay import Replay, Row, rewrapped
from tests.xchain.memory_state import RULES
from tests.xchain.wallet import Wallet

from icefall.compose.node_setup import configured_network
from icefall.wire.avm.codec import pack_tx
from icefall.wire.avm.types import BaseTx, ImportTx, Tx
from icefall.wire.avm.utxos import consumed
from icefall.wire.ids import hash256, id_text


async def stopped(at: DagScene) -> str:
    """Why X is not followed; P and C have come to their ends."""
    await at.until(lambda: at.x().details["state"] == "stopped", "the end of X")
    why = at.x().failure
    assert why
    assert not at.x().bootstrapped
    assert at.following.bootstrapping()[-1] == "X"
    return why


async def p_and_c_go_on(at: DagScene, replay: Replay) -> None:
    replay.show(P=13, C=12)
    await at.until(lambda: at.counts()[1:] == (13, 12), "the ends of P and C")
    assert at.following.stats_of("P").failure is None
    assert at.following.stats_of("C").failure is None
    assert "droppedUpstreams" not in at.x().details


def incomplete(directory: Path, forge: Callable[[DagReplay], None], *expected: str, stored: int | None = None) -> None:
    """X stops with the reason, P and C go on, and a start on a complete index brings X to the tip."""

    async def scene() -> None:
        async with DagReplay() as replay:
            replay.show(P=12, C=11)
            forge(replay)
            async with dag_following(directory, replay, run_max=16) as at:
                why = await stopped(at)
                for text in (replay.url, "X/tx", "--index-enabled=true", "start again", "P and C are followed"):
                    assert text in why
                for text in expected:
                    assert text in why
                await p_and_c_go_on(at, replay)
                assert at.x().details["unfitUpstreams"].keys() == {replay.url}
                assert at.ledger.height == 0
                assert stored is None or at.ledger.txs_before_blocks == stored
        async with DagReplay() as whole, dag_following(directory, whole, run_max=16) as at:
            await at.until(lambda: at_the_tip(at), "the tip")

    asyncio.run(scene())


def test_an_upstream_without_x_tx(tmp_path: Path) -> None:
    def forge(replay: DagReplay) -> None:
        del replay.chains["tx"]

    incomplete(tmp_path, forge, "/ext/index/X/tx answered 404", stored=0)
    assert_is_the_recorded_history(tmp_path)


def test_an_x_tx_that_began_with_the_blocks(tmp_path: Path) -> None:
    """A node that was given an index after its DAG: there is X/tx, and nothing is ever in it."""
    incomplete(tmp_path, lambda replay: replay.show(tx=0), "its X/tx index is empty", stored=0)
    assert_is_the_recorded_history(tmp_path)


def test_an_x_tx_of_icefall_that_has_only_what_is_in_blocks(tmp_path: Path) -> None:
    async def scene() -> None:
        async with DagReplay(like_icefall=True) as replay:
            del replay.chains["tx"][:DAG]
            async with dag_following(tmp_path, replay) as at:
                assert "its X/tx index begins with block 1" in await stopped(at)
                await p_and_c_go_on(at, replay)
                assert (at.ledger.height, at.ledger.txs_before_blocks) == (0, 0)

    asyncio.run(scene())


@pytest.mark.parametrize("missing", [1, 2, 40])
def test_an_x_tx_that_starts_late(tmp_path: Path, missing: int) -> None:
    def forge(replay: DagReplay) -> None:
        del replay.chains["tx"][:missing]

    incomplete(tmp_path, forge, "is not complete: transaction", "which was never accepted")
    assert sorted(indexed_txids(tmp_path)[:DAG]) == sorted(txids(dag_txs()))


def test_an_x_tx_with_a_transaction_left_out(tmp_path: Path) -> None:
    spent = {at.txid for tx in dag_txs() for at in consumed(tx)}
    place = next(place for place, tx in enumerate(dag_txs()) if place > 20 and tx.txid in spent)

    def forge(replay: DagReplay) -> None:
        del replay.chains["tx"][place]

    incomplete(tmp_path, forge, f"spends an output of {id_text(dag_txs()[place].txid)}, which was never accepted")
    assert sorted(indexed_txids(tmp_path)[:DAG]) == sorted(txids(dag_txs()))


@pytest.mark.parametrize("missing", [1, 20])
def test_an_x_tx_that_ends_too_soon_shows_in_the_blocks(tmp_path: Path, missing: int) -> None:
    """There is no other upstream: X stops where a block spends what is missing, and no upstream is disabled."""

    async def scene() -> None:
        async with DagReplay() as replay:
            replay.show(tx=DAG - missing)
            async with dag_following(tmp_path, replay) as at:
                why = await stopped(at)
                assert "is not complete, so a --data-dir of its own is needed too" in why
                assert "--index-enabled=true" in why
                await p_and_c_go_on(at, replay)
                assert at.ledger.txs_before_blocks >= DAG - missing

    lost = {tx.txid for tx in dag_txs()[DAG - missing :]}
    assert any(at.txid in lost for tx in block_txs() for at in consumed(tx))
    asyncio.run(scene())


# -- invalid data -----------------------------------------------------------------------------------------------------


def forgery(directory: Path, forge: Callable[[DagReplay], None], *expected: str, like_icefall: bool = False) -> None:
    """Proven invalid: the upstream is disabled for all chains. Next to a valid one it does no harm, nor does what was
    stored of it before."""

    async def scene() -> None:
        async with DagReplay(like_icefall=like_icefall) as forger:
            forge(forger)
            async with dag_following(directory, forger, run_max=16) as at:
                why = await stopped(at)
                assert why.startswith("no upstream is left: ")
                for text in expected:
                    assert text in why
            async with DagReplay() as honest, dag_following(directory, forger, honest, run_max=16) as at:
                await at.until(lambda: at_the_tip(at), "the tip")
                assert at.x().details["droppedUpstreams"].keys() == {forger.url}

    asyncio.run(scene())
    assert_is_the_recorded_history(directory)


def test_numbers_with_a_hole(tmp_path: Path) -> None:
    def forge(replay: DagReplay) -> None:
        replay.renumbered = {("tx", 37): 38}

    forgery(tmp_path, forge, "X/tx: expected container 37, got 38: the index has a gap")


def test_bytes_that_are_not_those_of_the_id(tmp_path: Path) -> None:
    def forge(replay: DagReplay) -> None:
        rows = replay.chains["tx"]
        rows[37] = Row(rows[37].id_text, rows[38].raw)

    forgery(tmp_path, forge, "X/tx container 37 is labelled", f"those of {id_text(dag_txs()[38].txid)}")


def test_bytes_that_are_no_transaction(tmp_path: Path) -> None:
    def forge(replay: DagReplay) -> None:
        raw = dag_txs()[37].raw + b"\0"
        replay.chains["tx"][37] = Row(id_text(hash256(raw)), raw)

    forgery(tmp_path, forge, "X/tx container 37 holds no transaction: ")


def replaced(tx: Tx, **changes: object) -> Tx:
    return pack_tx(msgspec.structs.replace(tx.unsigned, **changes), tx.credentials)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"network_id": 5}, "tx has wrong network ID"),
        ({"blockchain_id": hash256(b"other")}, "tx has wrong chain ID"),
        ({"memo": b"m" * 257}, "memo exceeds maximum length: 257 > 256"),
        ({"memo": b"not what was signed"}, "wrong signature"),
    ],
)
def test_a_transaction_that_breaks_a_rule(tmp_path: Path, changes: dict[str, object], reason: str) -> None:
    place = next(place for place, tx in enumerate(dag_txs()) if place > 20 and type(tx.unsigned) is BaseTx)

    def forge(replay: DagReplay) -> None:
        replay.chains["tx"][place] = tx_row(replaced(dag_txs()[place], **changes))

    forgery(tmp_path, forge, "breaks the chain's rules: ", reason)


def test_what_was_spent_is_spent_again(tmp_path: Path) -> None:
    first, second = (Wallet(1).send() for _ in range(2))
    assert first == second
    other = Wallet(1, key_count=3).send()
    assert consumed(other) == consumed(first)
    assert other != first
    assert first.unsigned.network_id == RULES.network_id

    async def scene() -> None:
        async with DagReplay() as replay:
            replay.chains |= {"tx": [tx_row(first), tx_row(other)], "X": [], "P": [], "C": []}
            async with dag_following(tmp_path, replay) as at:
                why = await stopped(at)
                assert f"X transaction {id_text(other.txid)} breaks the chain's rules: " in why
                assert at.ledger.txs_before_blocks == 1

    asyncio.run(scene())


def test_an_import_of_what_was_never_exported(tmp_path: Path) -> None:
    place = next(place for place, tx in enumerate(dag_txs()) if isinstance(tx.unsigned, ImportTx))
    unsigned = dag_txs()[place].unsigned
    assert isinstance(unsigned, ImportTx)
    elsewhere = msgspec.structs.replace(unsigned.imported_inputs[0], txid=hash256(b"nowhere"))

    def forge(replay: DagReplay) -> None:
        replay.chains["tx"][place] = tx_row(replaced(dag_txs()[place], imported_inputs=(elsewhere,)))

    forgery(tmp_path, forge, "imports ", "which has not been exported yet")


@pytest.mark.parametrize(("place", "again"), [(3, 5), (3, 60)])
def test_a_transaction_that_is_there_twice(tmp_path: Path, place: int, again: int) -> None:
    """In one run, or in two."""

    def forge(replay: DagReplay) -> None:
        replay.chains["tx"].insert(again, replay.chains["tx"][place])

    forgery(tmp_path, forge, "names some of them twice" if again > 16 else "breaks the chain's rules")


def test_the_first_transaction_of_block_1_at_another_number(tmp_path: Path) -> None:
    """Its answers disagree: by number it is the last of the DAG, by ID it is behind it."""

    def forge(replay: DagReplay) -> None:
        rows, honest = replay.chains["tx"], replay._answer
        at = rows[DAG].id_text

        def answer(path: str, method: str, params: dict[str, str]) -> object:
            answer = honest(path, method, params)
            return {"index": str(DAG + 1)} if method == "index.getIndex" and params["id"] == at else answer

        replay._answer = answer  # type: ignore[method-assign]

    forgery(tmp_path, forge, f"X/tx container {DAG} is of block 1", like_icefall=True)


def test_blocks_upon_another_block_0(tmp_path: Path) -> None:
    """The first block must name our block 0, which names the stop vertex: what it builds upon is known."""

    def forge(replay: DagReplay) -> None:
        replay.chains["X"][0] = rewrapped(replay.chains["X"][0], parent_id=hash256(b"another block 0"))

    forgery(tmp_path, forge, "X container 0 follows", "which is not this network's genesis")


# -- the real thing ----------------------------------------------------------------------------------------------------


def test_fuji_itself_without_x_tx(tmp_path: Path) -> None:
    """That fuji's X-Chain had a DAG needs no telling: without X/tx there is no X, and P and C wait for containers."""

    async def scene() -> None:
        async with Replay({"X": [], "P": [], "C": []}) as replay:
            config = config_of(tmp_path, replay.url, more=["--network-id=fuji"])
            network = configured_network(config, 0)
            genesis = network.genesis
            replay.network_id = 5
            replay.chain_ids |= {"X": genesis.x_chain_id, "C": genesis.c_chain_id}
            async with started(DagScene(config, network, 16, had_dag=None)) as at:
                why = await stopped(at)
                assert "/ext/index/X/tx answered 404" in why
                assert "--index-enabled=true from its first start on" in why
                await at.until(lambda: at.following.bootstrapping() == ["X"], "P and C")

    asyncio.run(scene())
    assert len(stored_utxos(tmp_path)) > 0
