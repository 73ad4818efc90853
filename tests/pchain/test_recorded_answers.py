"""Every answer of the recorded nodes is ours too, at the height at which it was given and at the tip.

At each height those are asked whose answer had changed there; ICEFALL_FUZZ_EVERY_ANSWER=1 asks all of them again.
"""

import asyncio
import json
import os
from collections import defaultdict
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.pchain.answer_equality import NOT_COMPARED, comparable
from tests.pchain.drawn_order import take_drawn_order
from tests.pchain.replay import Replay, ask, send
from tests.wire.platform_vectors import P_RECORDINGS, p_containers, p_rows
from tests.wire.wire_vectors import VECTORS

from icefall.api.http.asgi import AsgiApp
from icefall.compose import node_app
from icefall.wire.pvm.codec import unpack_block
from icefall.wire.pvm.types import PROPOSALS

EVERY = bool(os.environ.get("ICEFALL_FUZZ_EVERY_ANSWER"))


def recorded_node_id(recording: str) -> str:
    rows = json.loads((VECTORS / recording / "info.json").read_bytes())
    node_id: str = next(row for row in rows if row["method"] == "info.getNodeID")["response"]["result"]["nodeID"]
    return node_id


@pytest.fixture
def as_recorded_node(recording: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The status of a chain depends on whether the answering node validates it."""
    monkeypatch.setattr(node_app, "read_node_id", lambda _folder: recorded_node_id(recording))


class Comparison:
    """Asks recorded questions and collects the answers that differ."""

    def __init__(self, app: AsgiApp) -> None:
        self._app = app
        self.equal = 0
        self.wrong: list[str] = []
        self.is_drawn = False

    async def compare(self, row: dict[str, Any]) -> None:
        difference = await self.difference(row)
        if difference:
            self.wrong.append(difference)
        else:
            self.equal += 1

    async def difference(self, row: dict[str, Any]) -> str:
        """How our answer differs; nothing if it does not."""
        method, params = row["method"], row["params"]
        if method in NOT_COMPARED:
            return ""
        status, text = await ask(self._app, method, params)
        shown = partial(comparable, method, params, is_drawn=self.is_drawn)
        got, expected = shown(json.loads(text)), shown(row["response"])
        if (status, got) == (row["status"], expected):
            return ""
        return f"{row['height']} {method} {params} -> {str(got)[:600]} expected {str(expected)[:600]}"

    def check(self) -> None:
        assert not self.wrong, f"{len(self.wrong)} differ:\n" + "\n".join(self.wrong[:10])


def asked_at(recording: str) -> dict[int, list[dict[str, Any]]]:
    """The recorded lines by the height the chain must have: a proposal was accepted together with its option."""
    proposals = {row.height for row in p_containers(recording) if unpack_block(row.inner).block_type in PROPOSALS}
    found: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for row in p_rows(recording, "calls"):
        found[row["height"] + (row["height"] in proposals)].append(row)
    return found


@pytest.mark.parametrize("recording", P_RECORDINGS)
@pytest.mark.usefixtures("as_recorded_node")
def test_every_answer_at_its_height(recording: str, tmp_path: Path) -> None:
    comparison = asyncio.run(compare_heights(recording, tmp_path / "node"))
    comparison.check()
    assert comparison.equal > 2000


async def compare_heights(recording: str, directory: Path) -> Comparison:
    replay = Replay(recording, directory)
    await replay.start()
    comparison = Comparison(replay.app())
    open_questions: dict[tuple[str, str], dict[str, Any]] = {}
    for height, rows in sorted(asked_at(recording).items()):
        await replay.advance(height)
        assert replay.platform.height == height, replay.platform.why
        open_questions |= {(row["method"], json.dumps(row["params"])): row for row in rows}
        later = []
        was_whole_round = any(row["method"] == "platform.getHeight" for row in rows)  # its answer changes each time
        for row in [*open_questions.values()] if EVERY and was_whole_round else rows:
            if "sourceChain" in row["params"] and await comparison.difference(row):
                later.append(row)  # X or C may have exported while the questions of this height were asked
            else:
                await comparison.compare(row)
        if later:
            await replay.advance_others()
        for row in later:
            await comparison.compare(row)
    replay.store.close()
    return comparison


@pytest.mark.parametrize("recording", P_RECORDINGS)
@pytest.mark.usefixtures("as_recorded_node")
def test_every_answer_at_the_tip(recording: str, tmp_path: Path) -> None:
    """Asked once more about all heights and transactions, with wrong, rare and boundary questions."""
    comparison = asyncio.run(compare_tip(recording, tmp_path / "node"))
    comparison.check()
    assert comparison.equal > 1700


async def compare_tip(recording: str, directory: Path) -> Comparison:
    replay = Replay(recording, directory)
    await replay.start()
    await replay.finish()
    await replay.store.write(lambda tx: take_drawn_order(tx, recording))
    comparison = Comparison(replay.app())
    comparison.is_drawn = True
    for row in p_rows(recording, "final"):
        await comparison.compare(row)
    await compare_bodies(recording, replay.app(), comparison)
    replay.store.close()
    return comparison


async def compare_bodies(recording: str, app: AsgiApp, comparison: Comparison) -> None:
    """Bodies that are no ordinary call, answered byte for byte."""
    for row in json.loads((VECTORS / recording / "raw.json").read_bytes()):
        got = await send(app, row["body"].encode())
        if got != (row["status"], row["response"]):
            comparison.wrong.append(f"{row['body'][:200]!r} -> {got} expected {row['response'][:300]!r}")
        comparison.equal += 1
