"""Blocks of P of a type that is not known yet: stored when they are fetched, and read by the release that knows it."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest
from tests.pchain.recorded import Playback, recorded_containers
from tests.pchain.stored_history import RECORDING, execute_in_batches
from tests.pchain.test_platform_store import outcome

from icefall.node.sync.verify import ChainStopped, UnknownContainer, VerifiedContainer
from icefall.observe.log import LevelPage, Logs
from icefall.primary.chains import FollowedForeignChain, foreign_chains
from icefall.primary.shared_memory import unread_numbers
from icefall.primary.sync import NodeFollowing
from icefall.upstream.node import FetchedContainer
from icefall.wire.container.platform import block_in_container, unpack_platform_block
from icefall.wire.pvm import bodies
from icefall.wire.pvm.types import PlatformExportTx


@contextmanager
def older_release() -> Iterator[None]:
    """Exports of P are of a type that this release does not know."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delitem(bodies._with_base, PlatformExportTx.type_id)
        yield


def unread_of(unknown: UnknownContainer) -> list[VerifiedContainer]:
    """The container that could not be read, as a follower stores it."""
    assert unknown.unread is not None
    return [unknown.unread]


async def play_until_unread(playback: Playback) -> int:
    """Accept containers as a follower does. Return the number of the first of P that cannot be read."""
    for one in recorded_containers(RECORDING):
        try:
            await playback.accept(one.chain, [one.fetched])
        except UnknownContainer as unknown:
            with pytest.raises(ChainStopped, match="unknown transaction type 18"):
                await playback.chains["P"].accept(unread_of(unknown))
            return one.fetched.number
    raise AssertionError("no block of P could not be read")


def log_levels() -> Logs:
    page = LevelPage.private(["main", "X", "P", "C"])
    for name in ("main", "X", "P", "C"):
        page.put(name, "OFF", "OFF")
    return Logs("test", page, None, "plain")


def following(playback: Playback, *, learned: bool) -> NodeFollowing:
    network = msgspec.structs.replace(playback.network, genesis_config=b"") if learned else playback.network
    urls = ["http://127.0.0.1:9"]
    return NodeFollowing(urls, network, playback.store, playback.ledger, log_levels(), indexed=True, had_dag=False)


def export_to_x(playback: Playback) -> FetchedContainer:
    """The first container of P with an export to X."""
    x_id = playback.network.genesis.x_chain_id
    for one in recorded_containers(RECORDING):
        if one.chain == "P" and unpack_platform_block(block_in_container(one.fetched.raw)).exports_to(x_id):
            return one.fetched
    raise AssertionError("nothing is exported to X")


def test_an_unread_block_is_stored_and_executed_by_a_later_release(tmp_path: Path) -> None:
    """Its exports reach X, and in the end there is what a release stores that knew the type from the start."""

    async def run() -> None:
        playback = Playback(tmp_path, RECORDING)
        with older_release():
            await playback.start()
            number = await play_until_unread(playback)
            assert playback.platform.count == number + 1
            assert playback.platform.height == number
            assert unread_numbers(playback.store) == [number]
            playback.store.close()
            again = Playback(tmp_path, RECORDING)
            await again.start()
            assert "unknown transaction type 18" in (await again.chains["P"].read_again(again.store) or "")  # type: ignore[attr-defined]
            again.store.close()
        later = Playback(tmp_path, RECORDING)
        await later.start()
        assert await later.chains["P"].read_again(later.store) is None  # type: ignore[attr-defined]
        assert unread_numbers(later.store) == []
        await later.platform.catch_up()
        await later.play()
        assert later.platform.why is None
        later.store.close()
        (tmp_path / "clean").mkdir()
        await execute_in_batches(tmp_path / "clean", 100)

    asyncio.run(run())
    assert outcome(tmp_path) == outcome(tmp_path / "clean")


def test_exports_of_an_unread_block_reach_x_once_it_can_be_read(tmp_path: Path) -> None:
    """P of a network without genesis is not executed, so its exports are read from the stored container."""

    async def run() -> None:
        playback = Playback(tmp_path, RECORDING)
        x_id = playback.network.genesis.x_chain_id
        exporting = export_to_x(playback)
        foreign = foreign_chains(playback.network, playback.store, indexed=True)["P"]
        learned = FollowedForeignChain(foreign, x_id)
        playback.chains["P"] = learned
        await playback.start()
        p = [one.fetched for one in recorded_containers(RECORDING) if one.chain == "P"]
        await playback.accept("P", p[: exporting.number])
        before = playback.store.read("select count(*) from atomic_utxo where destination = ?", (x_id,))
        with older_release():
            with pytest.raises(UnknownContainer) as unknown:
                await playback.accept("P", p[exporting.number :])
            assert unknown.value.unread is not None
            await learned.accept([unknown.value.unread])
        assert playback.store.read("select count(*) from atomic_utxo where destination = ?", (x_id,)) == before
        assert await learned.read_again(playback.store) is None
        exports = unpack_platform_block(block_in_container(exporting.raw)).exports_to(x_id)
        (count,) = before[0]
        after = playback.store.read("select count(*) from atomic_utxo where destination = ?", (x_id,))
        assert after == [(count + len(exports),)]
        assert await learned.read_again(playback.store) is None  # nothing is put twice
        assert playback.store.read("select count(*) from atomic_utxo where destination = ?", (x_id,)) == after
        playback.store.close()

    asyncio.run(run())


@pytest.mark.parametrize("learned", [True, False])
def test_p_stays_stopped_after_a_restart(tmp_path: Path, learned: bool) -> None:
    """The reason is in health before any upstream has answered, and no further container is asked for."""

    async def run() -> None:
        playback = Playback(tmp_path, RECORDING)
        with older_release():
            await playback.start()
            number = await play_until_unread(playback)
            playback.store.close()
            again = Playback(tmp_path, RECORDING)
            await again.ledger.start()
            followed = following(again, learned=learned)
            await followed.start()
            stats = followed.stats_of("P")
            assert (stats.failure or "").startswith(f"P container {number} (")
            assert "unknown transaction type 18" in (stats.failure or "")
            assert stats.details["state"] == "stopped"
            async with asyncio.timeout(30):
                await followed._followers["P"].run()  # ends at once
            assert followed.foreign["P"].position.count == number + 1
            await followed.close()
            again.store.close()
        later = Playback(tmp_path, RECORDING)
        await later.ledger.start()
        followed = following(later, learned=learned)
        await followed.start()
        assert followed.stats_of("P").failure is None
        await followed.close()
        later.store.close()

    asyncio.run(run())


def test_without_the_index_an_unread_block_is_not_stored(tmp_path: Path) -> None:
    """Its bytes would be lost: it is fetched again instead, by the release that can read it."""

    async def run() -> None:
        playback = Playback(tmp_path, RECORDING, indexed=False)
        await playback.start()
        with older_release():
            for one in recorded_containers(RECORDING):
                try:
                    await playback.accept(one.chain, [one.fetched])
                except UnknownContainer as unknown:
                    await playback.chains["P"].accept(unread_of(unknown))
                    break
        assert playback.platform.count == playback.platform.height == one.fetched.number
        assert unread_numbers(playback.store) == []
        playback.store.close()

    asyncio.run(run())
