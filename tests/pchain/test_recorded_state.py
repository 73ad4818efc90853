"""Both recorded networks, executed: after every block our state is what the node answered then."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from tests.pchain.comparing import COMPARED
from tests.pchain.recorded import Playback, recorded_answers, recorded_containers
from tests.wire.platform_vectors import P_RECORDINGS, p_rows

from icefall.pchain import stakers
from icefall.pchain.reading import PlatformReader

NEEDED = dict.fromkeys(("getTx", "getTxStatus", "getRewardUTXOs"), "txID")
NEEDED |= dict.fromkeys(("getUTXOs", "getBalance", "getStake"), "addresses")
NEEDED |= dict.fromkeys(("getValidatorsAt", "getAllValidatorsAt", "getBlockByHeight"), "height")


def is_compared(row: dict[str, Any]) -> bool:
    """Whether the line is an answer that we compare: no error, bytes rather than JSON."""
    answered = isinstance(row["response"], dict) and "result" in row["response"]
    asked, method = row["params"], row["method"].split(".")[-1]
    if not answered or method not in COMPARED or not isinstance(asked, dict) or asked.get("encoding", "hex") != "hex":
        return False
    text = json.dumps(asked)
    if any(odd in text for odd in ("limit", "startIndex", "null", '""', "proposed")):
        return False
    return NEEDED.get(method, "") in ("", *asked)


async def differences(reader: PlatformReader, rows: list[dict[str, Any]]) -> list[Any]:
    found = []
    for row in rows:
        method, params = row["method"].split(".")[-1], row["params"]
        ours, recorded = await COMPARED[method](reader, params, row["response"]["result"])
        if ours != recorded:
            found.append((method, params, ours, recorded))
    return found


@pytest.mark.parametrize("recording", P_RECORDINGS)
def test_the_state_after_every_block_is_the_recorded_one(tmp_path: Path, recording: str) -> None:
    """Every answer that changed with a block is compared, and at every eighth all that did not. What X and C exported
    after the block may have been there when the node was asked, or not."""

    async def run() -> None:
        playback = Playback(tmp_path, recording)
        await playback.start()
        reader = PlatformReader(playback.store, playback.network.platform)
        known: dict[str, dict[str, Any]] = {}
        answers = dict(recorded_answers(recording))
        wrong = await differences(reader, [row for row in answers[0] if is_compared(row)])
        late: list[dict[str, Any]] = []
        for one in recorded_containers(recording):
            if one.chain == "P":
                wrong += await differences(reader, late)
                late = []
            await playback.accept(one.chain, [one.fetched])
            height = playback.platform.ledger.height
            if one.chain != "P" or playback.platform.ledger.state.proposal is not None:
                continue  # a proposal and its option were accepted together
            for row in (*answers.get(height - 1, ()), *answers.get(height, ())):
                known[json.dumps([row["method"], row["params"]])] = row
            if not any(row["method"] == "platform.getHeight" for row in answers.get(height, ())):
                continue  # the next block was accepted before anything was asked
            asked = [row for row in known.values() if is_compared(row)]
            fixed = ("getValidatorsAt", "getAllValidatorsAt", "getTx", "getBlockByHeight")
            again = height % 8 == 0  # else only what changed
            now = [
                row for row in asked if row["height"] == height or (again and row["method"].split(".")[-1] not in fixed)
            ]
            for row in now:
                if await differences(reader, [row]):
                    late.append(row)
            assert wrong == [], height
            assert [row for row in late if "sourceChain" not in row["params"]] == [], height
        assert playback.platform.is_executed
        assert len(known) > 1_000

    asyncio.run(run())


@pytest.mark.parametrize("recording", P_RECORDINGS)
def test_every_answer_at_the_tip_is_the_recorded_one(
    tmp_path: Path, recording: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Containers are accepted in one batch per chain, without the index, and every past height is asked for. Whole
    validator sets are stored often, so that they are read too."""
    monkeypatch.setattr(stakers, "SNAPSHOT_CHANGES_MIN", 3)

    async def run() -> None:
        playback = Playback(tmp_path, recording, indexed=False)
        await playback.start()
        batches: dict[str, list[Any]] = {"P": [], "C": [], "X": []}
        for one in recorded_containers(recording):
            batches[one.chain].append(one.fetched)
        for name, batch in batches.items():
            await playback.accept(name, batch)
        reader = PlatformReader(playback.store, playback.network.platform)
        rows = [row for row in p_rows(recording, "final") if is_compared(row)]
        assert len(rows) > 400
        assert playback.store.read("select count(*) from p_validator_set")[0][0] > 3
        assert await differences(reader, rows) == []

    asyncio.run(run())
