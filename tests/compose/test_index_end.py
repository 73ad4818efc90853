"""`icefall index --to=N` ends when holders are counted, blocks audited and names read, whatever fails meanwhile."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.awaited import awaited
from tests.evm.indexed import InlineBlockDecoder
from tests.upstream.evm_replay import EvmReplay

from icefall.compose import indexed_chain
from icefall.compose.indexer import _Indexing, indexer_logs
from icefall.config.load import load
from icefall.db.engine import StoreError
from icefall.evm.auditing.audit import finish_audits
from icefall.evm.storing.store import store_path
from icefall.upstream.client import UpstreamDown

LAST = 60


@pytest.fixture
def failures(monkeypatch: pytest.MonkeyPatch) -> list[Exception]:
    """What the audits at the end raise, one after the other, before they succeed."""
    waiting: list[Exception] = []

    async def failing(*args: Any) -> None:
        if waiting:
            raise waiting.pop(0)
        await finish_audits(*args)

    monkeypatch.setattr(indexed_chain, "finish_audits", failing)
    monkeypatch.setattr(indexed_chain, "_RETRY_S", 0.0)
    return waiting


async def index(directory: Path, replay: EvmReplay) -> str:
    """The problem that is left."""
    (directory / "icefall.toml").write_text(f'[[chain]]\nid = "{replay.chain_id}"\nrpc = "{replay.url}"\n')
    arguments = [f"--config-file={directory / 'icefall.toml'}", f"--data-dir={directory}", f"--to={LAST}"]
    config = load("index", [*arguments, "--log-level=off"], {}, directory).config
    indexing = _Indexing(config, indexer_logs(config), InlineBlockDecoder(), retries=False)
    await indexing.run_chain(config.chain[0])
    problem = indexing.statuses[str(replay.chain_id)].problem
    await indexing.close()
    return problem


def finished(directory: Path, replay: EvmReplay) -> tuple[Any, ...]:
    """How far holders are counted and blocks audited, and tokens without a name that was read."""
    with closing(sqlite3.connect(store_path(directory, str(replay.chain_id)))) as stored:
        return (
            *stored.execute("select value from meta where name = 'holders_to'").fetchone(),
            *stored.execute("select max(block) from audit").fetchone(),
            *stored.execute("select count(*) from token where read_at is null").fetchone(),
        )


@pytest.mark.parametrize("times", [0, 2])
@awaited
async def test_it_tries_again_what_an_upstream_did_not_answer(
    times: int, failures: list[Exception], tmp_path: Path
) -> None:
    failures += [UpstreamDown("no answer")] * times
    async with EvmReplay() as replay:
        assert await index(tmp_path, replay) == ""
        assert finished(tmp_path, replay) == (str(LAST), LAST, 0)
    assert failures == []


@awaited
async def test_a_store_that_fails_is_a_problem_of_the_chain(failures: list[Exception], tmp_path: Path) -> None:
    failures += [StoreError("the disk is broken")]
    async with EvmReplay() as replay:
        assert await index(tmp_path, replay) == "the disk is broken"
