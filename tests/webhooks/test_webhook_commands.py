"""`icefall webhooks list | show | replay | test`: they work on the stores alone, of webhooks of any owner."""

import asyncio
import time
from collections.abc import Iterator
from typing import NamedTuple

import pytest
from tests.forked import run_program
from tests.webhooks.scene import Scene, Sends, blocks, busiest

from icefall.webhooks.messages import NUMBER_MAX, MessageFilter
from icefall.webhooks.model import INACTIVE, Message

NOW = float(int(time.time()))  # the program has the clock of this machine
TIMES = (NOW - 3000, NOW - 2000, NOW - 1000)  # when blocks are stored and delivered, five at a time
PER_TIME = 5
LATER = NOW + 3600  # when everything that is sent again is due


class Delivered(NamedTuple):
    """An installation whose messages were all delivered."""

    scene: Scene
    webhook: str
    messages: list[Message]

    def run(self, *arguments: str, code: int = 0) -> str:
        done = run_program("webhooks", *arguments, f"--data-dir={self.scene.folder}")
        assert done.returncode == code, done.stderr
        return done.stdout if code == 0 else done.stderr

    def pending(self) -> list[str]:
        """The messages that are sent again, which end here."""
        waiting = asyncio.run(self.scene.messages.page(self.webhook, MessageFilter("pending"), NUMBER_MAX, 1000))
        self.scene.now = LATER
        asyncio.run(self.scene.delivery(Sends()).drain())
        return sorted(one.id for one in waiting)


@pytest.fixture(scope="module")
def delivered(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Delivered]:
    scene = Scene(tmp_path_factory.mktemp("commands"))

    async def run() -> Delivered:
        webhook = await scene.webhook(busiest(), name="Deposits", owner="", number=1)
        for at, now in enumerate(TIMES):
            scene.now = now
            await scene.put(
                blocks()[10 + at * PER_TIME : 10 + (at + 1) * PER_TIME] if at else blocks()[: 10 + PER_TIME]
            )
            await scene.delivery(Sends()).drain()
        found = await scene.messages.page(webhook.id, MessageFilter(), NUMBER_MAX, 1000)
        return Delivered(scene, webhook.id, found)

    yield asyncio.run(run())
    scene.close()


def test_webhooks_are_listed_and_shown_with_their_messages(delivered: Delivered) -> None:
    head, row = delivered.run("list").splitlines()
    assert head.split() == ["ID", "OWNER", "CHAIN", "STATUS", "WAITING", "DELIVERED", "FAILED", "URL"]
    assert row.split() == [
        delivered.webhook, "-", "31337", "active", "0", str(len(delivered.messages)), "0", "http://127.0.0.1:1/",
    ]  # fmt: skip
    shown = delivered.run("show", delivered.webhook)
    assert "Deposits" in shown
    assert all(one.id in shown for one in delivered.messages[:20])
    assert delivered.run("show", "made-up", code=1).strip().endswith("icefall webhooks list shows all")


@pytest.mark.parametrize(("first", "last"), [(0, 0), (1, 2), (2, 1)])
def test_messages_of_a_range_of_times_are_sent_again(first: int, last: int, delivered: Delivered) -> None:
    """Both ends belong to the range; one without an end has no bound there."""
    since, until = int(TIMES[first]), int(TIMES[last])
    wanted = sorted(one.id for one in delivered.messages if since <= one.created <= until)
    assert bool(wanted) == (first <= last)
    said = delivered.run("replay", delivered.webhook, f"--since={since}", f"--until={until}")
    assert said == f"{len(wanted)} messages will be sent again.\n"
    assert delivered.pending() == wanted
    if last == len(TIMES) - 1:
        delivered.run("replay", delivered.webhook, f"--since={since}")
        assert delivered.pending() == wanted


def test_messages_of_a_range_of_blocks_and_single_ones_are_sent_again(delivered: Delivered) -> None:
    low, high = sorted({one.block for one in delivered.messages})[1:3]
    wanted = sorted(one.id for one in delivered.messages if low <= one.block <= high)
    delivered.run("replay", delivered.webhook, f"--first={low}", f"--last={high}")
    assert delivered.pending() == wanted != []
    only = delivered.messages[3].id
    delivered.run("replay", delivered.webhook, f"--message={only}")
    assert delivered.pending() == [only]


@pytest.mark.parametrize("flags", [(), ("--since=soon",), ("--first=-1",), ("--message=made-up",)], ids=" ".join)
def test_a_replay_of_nothing_is_refused(flags: tuple[str, ...], delivered: Delivered) -> None:
    assert delivered.run("replay", delivered.webhook, *flags, code=1)
    assert delivered.pending() == []


def test_a_test_message_is_sent_to_active_webhooks_only(delivered: Delivered) -> None:
    assert "will be sent to http://127.0.0.1:1/" in delivered.run("test", delivered.webhook)
    assert len(delivered.pending()) == 1
    scene = delivered.scene

    async def switch_off() -> str:
        webhook = await scene.webhook(busiest(), number=2, status=INACTIVE, reason="gone")
        return webhook.id

    assert "inactive" in delivered.run("test", asyncio.run(switch_off()), code=1)
