"""What health and Prometheus say of delivery."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.webhooks.scene import ID, Scene, Sends, blocks, busiest

from icefall.api.http.service import _webhook_lines
from icefall.compose.stores import Stores
from icefall.compose.webhook_state import BEHIND_MAX, UNSEEN_S, WebhookState, problem_of, webhook_check
from icefall.node.health.runner import Unhealthy
from icefall.webhooks.messages import SEEN_AT, DeliveryState
from icefall.webhooks.retrying import Outcome


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    scene = Scene(tmp_path)
    yield scene
    scene.close()


def test_the_check_fails_while_nothing_delivers_and_passes_again(scene: Scene, tmp_path: Path) -> None:
    state = WebhookState(Stores(tmp_path), lambda: [ID, "1"])
    check = webhook_check(state, lambda: scene.now)

    async def run() -> None:
        assert await state.read() is None
        assert await check.run() == {}
        await scene.webhook(busiest())
        assert (await check.run())["active"] == 1
        await scene.put(blocks())
        with pytest.raises(Unhealthy, match="no process delivers them") as failed:
            await check.run()
        assert failed.value.message["notTakenOver"] > 0
        refusing = Sends(lambda _: Outcome(500, "it answered 500"))
        await scene.delivery(refusing).drain()
        details = await check.run()  # a receiver that fails is visible at its webhook
        assert (details["notTakenOver"], details["pending"] > 0) == (0, True)
        scene.now += 2 * UNSEEN_S
        with pytest.raises(Unhealthy, match="no process delivers them"):
            await check.run()
        await scene.delivery(Sends()).drain()
        details = await check.run()
        assert (details["pending"], "oldestSeconds" in details) == (0, False)

    asyncio.run(run())
    state.close()


def test_too_many_events_are_a_problem_even_while_a_process_delivers() -> None:
    seen = DeliveryState(1, 1, 0, None, {SEEN_AT: 1000}, {ID: BEHIND_MAX})
    assert problem_of(seen, 1000.0) == ""
    assert ID in problem_of(seen._replace(behind={ID: BEHIND_MAX + 1}), 1000.0)


def test_counters_survive_the_process_that_delivered(scene: Scene, tmp_path: Path) -> None:
    state = WebhookState(Stores(tmp_path), lambda: [ID])

    async def run() -> list[str]:
        await scene.webhook(busiest())
        await scene.put(blocks())
        sends = Sends()
        await scene.delivery(sends).drain()
        found = await state.read()
        assert found is not None
        lines = _webhook_lines(found, scene.now)
        assert f'icefall_webhook_attempts_total{{outcome="taken"}} {len(sends.sent)}' in lines
        return lines

    lines = asyncio.run(run())
    assert 'icefall_webhook_queue{state="pending"} 0' in lines
    assert 'icefall_webhook_queue{state="not_taken_over"} 0' in lines
    assert 'icefall_webhooks{status="active"} 1' in lines
    state.close()
