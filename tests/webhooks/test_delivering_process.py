"""`icefall webhooks` alone: it needs the stores and nothing else, also those that are made while it runs."""

import asyncio
import json
from pathlib import Path

import pytest
from tests.pchain.recorded import GENESIS_FILES
from tests.server import launch
from tests.waiting import until
from tests.webhooks.primary_scene import PrimaryScene
from tests.webhooks.receiver import receiving
from tests.webhooks.scene import ID, Scene, blocks, busiest, transactions_of
from tests.wire.wire_vectors import VECTORS

from icefall.node.store import SQL
from icefall.webhooks.primary_matching import ADDRESSES, BALANCE_CHANGE, PrimaryFilter
from icefall.wire.text.bech32 import address_from_text

EVENTS = 12  # blocks that are indexed
SETTINGS = f'{{"id": "{ID}", "rpc": ["http://127.0.0.1:1"], "name": "later"}}'  # as an indexer stores them for readers


def test_a_chain_that_is_added_later_is_delivered(tmp_path: Path) -> None:
    with receiving() as receiver:
        program = launch("webhooks", tmp_path, "--webhook-networks=127.0.0.0/8")
        try:
            until((tmp_path / "data" / "access.sqlite").exists, "the access store")
            scene = Scene(tmp_path / "data")

            async def add() -> None:
                await scene.webhook(busiest(), url=receiver.url)
                scene.stores.access_writer().put_chain_configs({ID: SETTINGS})
                await scene.put(blocks()[:EVENTS])

            asyncio.run(add())
            scene.close()
            wanted = len(transactions_of(busiest(), blocks()[:EVENTS]))
            until(lambda: len(receiver.got) == wanted > 0, "all messages")
        finally:
            ended = program.stop()
        assert ended == 0, program.output()


FORKS = "p-forks-1"  # a network of its own
OWNERS = json.loads((VECTORS / FORKS / "meta.json").read_bytes())["known"]["addresses"]
NETWORK = (f"--network-id={424242}", f"--genesis-file={VECTORS / FORKS / GENESIS_FILES[FORKS]}")


async def _fill(data: Path, url: str) -> None:
    """Store the recorded network with the messages about its owners, as an engine does."""
    scene = PrimaryScene(data, FORKS)
    keys = [address_from_text(one)[2] for one in OWNERS]
    await scene.webhook("P", keys, PrimaryFilter("P", ADDRESSES, (BALANCE_CHANGE,)), url=url)
    playback = await scene.play()
    await playback.store.write(lambda tx: tx.run(SQL.put_meta, {"name": "network_id", "value": "424242"}))
    playback.store.close()
    scene.close()


@pytest.mark.parametrize("settings", [(), NETWORK], ids=["another network is set", "its network is set"])
def test_the_primary_network_is_delivered_if_it_is_the_one_that_is_set(
    tmp_path: Path, settings: tuple[str, ...]
) -> None:
    data = tmp_path / "data"
    data.mkdir()
    with receiving() as receiver:
        asyncio.run(_fill(data, receiver.url))
        program = launch("webhooks", tmp_path, "--webhook-networks=127.0.0.0/8", *settings)
        try:
            if settings:
                until(lambda: bool(receiver.got), "a message")
                message = json.loads(receiver.got[0][1])
                assert {one.removeprefix("P-") for one in OWNERS} & set(message["event"]["addresses"]), message
            else:
                terminal = tmp_path / "terminal.txt"
                until(lambda: terminal.exists() and "--network-id=network-424242" in program.output(), "the error")
        finally:
            ended = program.stop()
        assert ended == 0, program.output()
        assert bool(receiver.got) == bool(settings)
