"""A chain's store that is put back from a backup alone: no event after it is lost, and nothing is sent twice."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.webhooks.scene import ID, Scene, Sends, blocks, busiest, transactions_of

from icefall.commands.backup import back_up
from icefall.compose.stores import StoreName


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    made = Scene(tmp_path / "data")
    yield made
    made.close()


def test_events_after_a_chain_is_put_back_alone(scene: Scene, tmp_path: Path) -> None:
    """Numbers of the outbox that were delivered once are given to other events: a rollback after the backup took some,
    and the chain that is indexed again has none."""

    async def run() -> None:
        every = blocks()[:200]
        await scene.webhook(busiest())
        await scene.put(every[:100])
        back_up(scene.folder, tmp_path / "backup", lambda _: None)
        await scene.put(every[100:150])
        await scene.store.roll_back(every[99].block.number)
        await scene.put(every[100:150])
        sends = Sends()
        await scene.delivery(sends).drain()
        assert set(sends.hashes()) == set(transactions_of(busiest(), every[:150])) != set()

        copy = StoreName("chain", ID).path(tmp_path / "backup")
        await scene.forget(copy)
        await scene.put(every[100:])
        await scene.delivery(sends).drain()
        assert set(sends.hashes()) == set(transactions_of(busiest(), every))
        sent = [one["messageId"] for one in sends.bodies()]
        assert len(sent) == len(set(sent))

    asyncio.run(run())
