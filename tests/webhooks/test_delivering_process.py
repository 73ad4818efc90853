"""`icefall webhooks` alone: it needs the stores and nothing else, also those that are made while it runs."""

import asyncio
from pathlib import Path

from tests.server import launch
from tests.waiting import until
from tests.webhooks.receiver import receiving
from tests.webhooks.scene import ID, Scene, blocks, busiest, transactions_of

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
