"""The stored P-Chain: executed later, killed, refused. What is stored in the end is what a clean run stores.

ICEFALL_FUZZ_CRASHES: how often it is killed.
"""

import asyncio
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.forked import exit_code_of
from tests.pchain.recorded import Playback, recorded_containers, recorded_network
from tests.pchain.stored_history import RECORDING, execute_in_batches, run_batches, run_stored, store_only
from tests.store.opened import open_store, tables_of
from tests.wire.platform_vectors import p_containers

from icefall.node.store import PACKAGE, store_path
from icefall.node.sync.verify import ChainStopped
from icefall.pchain.changes import StakerChange
from icefall.pchain.model import PlatformStaker, Priority, StakerState
from icefall.pchain.reading import Delegations, PlatformReader
from icefall.pchain.store import SQL, _staker_row
from icefall.wire.container.proposer import pack_container
from icefall.wire.ids import id_text
from icefall.wire.packer import VERSION_BYTES, u32, u64
from icefall.wire.pvm.codec import unpack_block

CRASHES = int(os.environ.get("ICEFALL_FUZZ_CRASHES", "3"))


Outcome = dict[str, list[Any]]


def outcome(directory: Path) -> Outcome:
    """Every row of the P-Chain and of the container index, and what is in the shared memory. Positions there depend on
    which chain came first, and times of acceptance on the clock."""
    with tables_of(store_path(directory)) as tables:
        names = [name for name in tables.names() if name.startswith("p_")]
        found = {name: tables.rows(name, "*", tables.columns(name)[0])[1] for name in names}
        for name, columns in (
            ("container", "series, number, container_id, bytes"),
            ("atomic_utxo", "destination, source, utxo_id, bytes"),
            ("atomic_taken", "*"),
        ):
            found[name] = tables.rows(name, columns)[1]
    return {name: sorted(rows, key=repr) for name, rows in found.items()}


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    """The rows of a store that was filled in one go."""
    folder = tmp_path_factory.mktemp("clean")
    asyncio.run(execute_in_batches(folder, 100))
    return outcome(folder)


def test_stored_containers_are_executed_later(tmp_path: Path, clean: Outcome) -> None:
    """A data directory of an older release: P takes no calls until all is executed, and then has the same rows."""

    async def run() -> None:
        await store_only(tmp_path)
        playback = Playback(tmp_path, RECORDING)
        await playback.start()
        platform = playback.platform
        assert (platform.count, platform.stats().executed) == (78, 0)
        assert not platform.takes_calls
        await platform.catch_up()
        assert platform.takes_calls
        assert (platform.stats().executed, platform.why) == (78, None)
        playback.store.close()

    asyncio.run(run())
    assert outcome(tmp_path) == clean


def test_new_containers_wait_while_stored_ones_are_executed(tmp_path: Path, clean: Outcome) -> None:
    """What arrives meanwhile is stored, and executed when its turn comes."""

    async def run() -> None:
        await store_only(tmp_path, 50)
        playback = Playback(tmp_path, RECORDING)
        await playback.start()
        await playback.play()
        assert (playback.platform.count, playback.platform.stats().executed) == (78, 0)
        await playback.platform.catch_up()
        assert playback.platform.is_executed
        playback.store.close()

    asyncio.run(run())
    assert outcome(tmp_path) == clean


@pytest.mark.parametrize("run", [run_batches, run_stored])
def test_kill_9_at_any_write(tmp_path: Path, clean: Outcome, run: Callable[[Path, int], None]) -> None:
    """Killed at its n-th write, again and again: nothing is lost and nothing is done twice."""
    source = random.Random(20261118)
    if run is run_stored:
        asyncio.run(store_only(tmp_path))
    else:
        asyncio.run(Playback(tmp_path, RECORDING).start())
    crashes = [exit_code_of(run, tmp_path, source.randint(5, 30)) for _ in range(CRASHES)]
    if run is run_batches:
        crashes.append(exit_code_of(run, tmp_path, 300))
    assert 0 not in crashes
    assert exit_code_of(run, tmp_path, 10**6) == 0
    assert outcome(tmp_path) == clean


def test_a_block_that_cannot_be_executed_stops_p_alone(tmp_path: Path) -> None:
    """An output that it consumes is missing: blocks before it are executed, its container is stored, X goes on, and
    another start stops there again."""

    async def run() -> None:
        playback = Playback(tmp_path, RECORDING)
        await playback.start()
        containers = recorded_containers(RECORDING)
        p = [one.fetched for one in containers if one.chain == "P"]
        await playback.accept("P", p[:20])
        await playback.store.write(lambda tx: tx.run("delete from p_utxo where created_seq >= 0 and state = 0"))
        with pytest.raises(ChainStopped, match="is not there"):
            await playback.accept("P", p[20:40])
        stopped = playback.platform.stats()
        assert stopped.why is not None
        assert 20 <= stopped.executed < 40
        block = unpack_block(p_containers(RECORDING)[stopped.executed].inner)
        why = f"block {block.height} ({id_text(block.block_id)}) cannot be executed: it consumes output "
        assert stopped.why.startswith(why)
        assert playback.platform.count == 40
        assert playback.platform.takes_calls
        for one in containers:
            if one.chain != "P":
                await playback.accept(one.chain, [one.fetched])
        await playback.accept("P", p[40:])
        assert playback.platform.count == 78
        playback.store.close()
        again = Playback(tmp_path, RECORDING)
        await again.start()
        assert again.platform.stats().executed == stopped.executed
        await again.platform.catch_up()
        assert again.platform.why == stopped.why
        again.store.close()

    asyncio.run(run())


def test_a_stored_block_of_an_unknown_type_stops_p_with_its_number(tmp_path: Path) -> None:
    async def run() -> None:
        await store_only(tmp_path)
        playback = Playback(tmp_path, RECORDING)
        inner = VERSION_BYTES + u32(77) + u64(5)
        raw = pack_container(bytes(32), 0, 0, inner).raw
        await playback.store.write(
            lambda tx: tx.run("update container set bytes = ? where series = 2 and number = 30", (raw,))
        )
        await playback.start()
        await playback.platform.catch_up()
        assert playback.platform.stats().executed == 30
        assert playback.platform.why is not None
        assert playback.platform.why.startswith("block 31 (")
        assert playback.platform.why.endswith("P-Chain: unknown block type 77")
        playback.store.close()

    asyncio.run(run())


def test_without_the_index_older_containers_cannot_be_executed(tmp_path: Path) -> None:
    async def run() -> None:
        await store_only(tmp_path)
        playback = Playback(tmp_path, RECORDING, indexed=False)
        await playback.start()
        await playback.platform.catch_up()
        assert playback.platform.why is not None
        assert "because the index was off" in playback.platform.why
        playback.store.close()

    asyncio.run(run())


def test_another_genesis_is_refused(tmp_path: Path) -> None:
    """The first block of another network does not follow our genesis; nothing of it is executed."""

    async def run() -> None:
        playback = Playback(tmp_path, RECORDING)
        await playback.start()
        foreign = [one.fetched for one in recorded_containers("p-forks-1") if one.chain == "P"]
        playback._links["P"] = playback._links["P"]._replace(is_genesis=lambda parent_id: True)
        with pytest.raises(ChainStopped, match="its parent is"):
            await playback.accept("P", foreign[:1])
        assert playback.platform.stats().executed == 0
        playback.store.close()

    asyncio.run(run())


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
def test_sums_of_stakes_may_exceed_what_an_engine_can_add(tmp_path: Path, engine: str) -> None:
    """Weights have 64 bits without sign, so two of them are more than either engine has in one number."""
    store = open_store(tmp_path / f"node.{engine}", PACKAGE)
    weights = [2**64 - 1, 2**63, 2**63 - 1, 5]
    subnet_id, node_id = b"s" * 32, b"n" * 20
    stakers = [
        StakerChange(
            PlatformStaker(bytes([at]) * 32, subnet_id, node_id, weight, 1, 2, weight, Priority.DELEGATOR, seq=at),
            StakerState.CURRENT,
            1,
        )
        for at, weight in enumerate(weights)
    ]

    async def run() -> None:
        await store.write(lambda tx: tx.run_many(SQL.put_staker, [_staker_row(one) for one in stakers]))
        reader = PlatformReader(store, recorded_network(RECORDING).platform)
        assert await reader.delegations(subnet_id) == {node_id: Delegations(4, sum(weights))}

    asyncio.run(run())
    store.close()
