"""The lists of the primary network do not depend on when they are made, nor on which chain is followed first."""

import asyncio
import importlib.resources
from pathlib import Path
from typing import Any

import pytest
from tests.api.networks_scene import NetworkScene, network_scene
from tests.pchain.recorded import Playback, recorded_containers
from tests.store.conformance.network_operations import LISTED_TABLES

from icefall.db.engine import Store, Transaction
from icefall.observe.log import quiet
from icefall.primary.chains import foreign_chains
from icefall.primary.listed import ListedCore, ListedPlatform, Steps, list_stored
from icefall.xchain.listed import StoredTxs

ADDRESS_TABLES = ("p_address_tx", "address_tx")  # to which the lists add the owners of what was imported


def rows_of(store: Store) -> dict[str, list[Any]]:
    tables = (*LISTED_TABLES, *ADDRESS_TABLES)
    return {table: sorted(store.read(f"select * from {table}"), key=repr) for table in tables}


def forget(tx: Transaction) -> None:
    """Make the store one of a release that had no lists."""
    for table in LISTED_TABLES:
        tx.run(f"delete from {table}")


def steps_of(playback: Playback, *, indexed: bool = True) -> list[Steps]:
    store, network = playback.store, playback.network
    core = foreign_chains(network, store, indexed=indexed)["C"]
    return [StoredTxs(store, network.genesis.x_chain_id), ListedPlatform(store), ListedCore(store, core)]


@pytest.mark.parametrize("recording", ["p-local-1", "p-forks-1"])
def test_stored_blocks_are_listed_in_the_background(recording: str, tmp_path: Path) -> None:
    with network_scene(recording, tmp_path) as scene:
        store, expected = scene.playback.store, rows_of(scene.playback.store)
        scene.run(store.write(forget))
        assert status_of(scene) == 503
        scene.run(step_through(steps_of(scene.playback)))
        assert rows_of(store) == expected
        assert status_of(scene) == 200


def status_of(scene: NetworkScene) -> int:
    return scene.get("/v1/networks/fuji/blockchains/x-chain/blocks")[0]


async def step_through(chains: list[Steps]) -> None:
    for chain in chains:
        while await chain.step():
            pass


async def play_chain_by_chain(playback: Playback) -> None:
    """Play P to its end, then C, then X: P imports outputs whose exports are not seen yet."""
    await playback.start()
    for name in ("P", "C", "X"):
        batch = [one.fetched for one in recorded_containers(playback.recording) if one.chain == name]
        await playback.accept(name, batch)


@pytest.mark.parametrize("recording", ["p-local-1", "p-forks-1"])
def test_the_order_of_chains_does_not_matter(recording: str, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    with network_scene(recording, tmp_path) as scene:
        expected = rows_of(scene.playback.store)
        other = Playback(tmp_path / "other", recording)
        scene.run(play_chain_by_chain(other))
        try:
            found = rows_of(other.store)
        finally:
            other.store.close()
    assert expected["early_spent"] == []
    assert found == expected


@pytest.mark.parametrize("recording", ["p-local-1", "p-forks-1"])
def test_transactions_of_addresses_are_migrated(recording: str, tmp_path: Path) -> None:
    """An older release noted owners of what was made, spent and given back, and no owner of an import."""
    migration = importlib.resources.files("icefall.node").joinpath("migrations/0111_address_txs.sqlite.sql")
    with network_scene(recording, tmp_path) as scene:
        store, expected = scene.playback.store, rows_of(scene.playback.store)

        def as_before(tx: Transaction) -> None:
            tx.run("delete from p_address_tx")
            owned = tx.rows("select addresses, created_seq, spent_seq, returned_seq from p_utxo")
            exported = tx.rows(
                "select o.address, t.seq from chain_output c join chain_output_owner o on o.utxo_id = c.utxo_id "
                "and o.chain_id = c.source join p_tx t on t.height = c.created_height and t.type = 18 "
                "where c.source = zeroblob(32) and t.txid = substr(c.bytes, 3, 32)"
            )
            found = {(bytes(address), seq) for address, seq in exported}
            for addresses, *seqs in owned:
                each = [addresses[at : at + 20] for at in range(0, len(addresses), 20)]
                found |= {(address, seq) for address in each for seq in seqs if seq is not None and seq >= 0}
            tx.run_many("insert into p_address_tx (address, seq) values (?, ?)", sorted(found))

        def migrate(tx: Transaction) -> None:
            for statement in migration.read_text().split(";")[:-1]:
                tx.run(statement)

        scene.run(store.write(as_before))
        assert rows_of(store)["p_address_tx"] != expected["p_address_tx"]
        scene.run(store.write(migrate))
        found = rows_of(store)
        aborted = {seq for (seq,) in store.read("select seq from p_tx where is_committed = 0")}
        assert {seq for _, seq in set(expected.pop("p_address_tx")) ^ set(found.pop("p_address_tx"))} <= aborted
        assert found == expected


def test_new_blocks_wait_until_the_old_ones_are_listed(tmp_path: Path) -> None:
    """Blocks that are accepted before the background has listed those before them are listed by it too."""

    async def run() -> None:
        playback = Playback(tmp_path, "p-forks-1")
        await playback.start()
        containers = recorded_containers("p-forks-1")
        for number, one in enumerate(containers):
            if number == len(containers) // 2:
                await playback.store.write(forget)
            await playback.accept(one.chain, [one.fetched])
        assert playback.store.read("select count(*) from chain_output")[0][0] == 0
        await step_through(steps_of(playback))
        partly = rows_of(playback.store)
        await playback.store.write(forget)
        await step_through(steps_of(playback))
        assert rows_of(playback.store) == partly
        playback.store.close()

    asyncio.run(run())


def test_containers_that_were_not_kept_are_passed_over(tmp_path: Path) -> None:
    """Without the index, what C did before cannot be known; the lists go on with what comes."""

    async def run() -> None:
        playback = Playback(tmp_path, "p-local-1", indexed=False)
        await playback.start()
        await playback.play()
        await playback.store.write(forget)
        chains = steps_of(playback, indexed=False)
        loop = asyncio.create_task(list_stored(chains, quiet()))
        while any([await chain.step() for chain in chains]):
            await asyncio.sleep(0)
        loop.cancel()
        key = {"chain_id": playback.network.genesis.c_chain_id}
        assert playback.store.read("select next from listed where chain_id = :chain_id", key) == [(3,)]
        assert playback.store.read("select count(*) from c_tx") == [(0,)]
        assert playback.store.read("select count(*) from early_spent")[0][0] > 0
        playback.store.close()

    asyncio.run(run())
