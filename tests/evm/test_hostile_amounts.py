"""Amounts that contracts or long waits can make large must stay cheap, and within the time limit of a query."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.awaited import awaited
from tests.evm.indexed import indexing
from tests.evm.recordings import derived
from tests.upstream.evm_replay import EvmReplay

from icefall.evm.auditing import audit as auditing
from icefall.evm.auditing.audit import Audit
from icefall.evm.model import MetadataChange
from icefall.evm.storing.writing import SQL, BatchRows

LAST = 120


class _Written:
    """A transaction that only records the ranges."""

    def __init__(self) -> None:
        self.ranges: list[Any] = []

    def run_many(self, statement: str, params: list[Any]) -> None:
        self.ranges += params if statement == SQL.reread_nfts else []


def test_repeated_metadata_changes_are_written_once() -> None:
    """Each range costs a read of every token in it."""
    rows = derived("geth-1")[50].rows
    token, last = rows.txs[0].sender, 2**256 - 1
    ranges = [(0, last), (5, 9), (0, last - 1)] * 1000
    gathered, written = BatchRows(lambda address: 7), _Written()
    for changes in ([MetadataChange(token, *one) for one in ranges], [MetadataChange(token, 3, 3)]):
        gathered.add(msgspec.structs.replace(rows, metadata_changes=tuple(changes)))
    gathered.write(written)  # type: ignore[arg-type]
    assert len(written.ranges) == 1


def test_ranges_apart_stay_apart() -> None:
    rows = derived("geth-1")[50].rows
    changes = tuple(MetadataChange(rows.txs[0].sender, first, first + 1) for first in (40, 0, 10, 11))
    gathered, written = BatchRows(lambda address: 7), _Written()
    gathered.add(msgspec.structs.replace(rows, metadata_changes=changes))
    gathered.write(written)  # type: ignore[arg-type]
    assert len(written.ranges) == 3


@awaited
async def test_an_audit_that_waited_long_reads_some_blocks_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that had to wait for state may have to cover the whole chain; the result is the same."""
    replay = EvmReplay("geth-1")
    replay.shown = LAST
    async with indexing(tmp_path / "chain.sqlite", replay) as it:
        await it.follower.run()
        untrusted = it.store.read("select token from token where untrusted_since is not null")
        assert untrusted
        await it.store.write(lambda tx: tx.run_many("update token set untrusted_since = null", [()]))
        await it.store.write(lambda tx: tx.run_many("delete from meta where name = 'audited_to'", [()]))
        monkeypatch.setattr(auditing, "_BLOCKS_AT_ONCE", 7)
        tip, asked = it.store.tip(), replay.asked("eth_call")
        assert tip is not None
        spans: list[int] = []
        read = it.store.read

        def watched(statement: str, params: Any = ()) -> Any:
            if statement == auditing.SQL.erc20_pairs:
                spans.append((params["to_log"] - params["from_log"]) >> 24)
            return read(statement, params)

        it.store.read = watched
        await Audit(it.store, it.upstream).run(tip)
        assert it.store.read("select token from token where untrusted_since is not null") == untrusted
        assert replay.asked("eth_call") > asked
        assert spans
        assert max(spans) < 7
        assert len(spans) == -(-(LAST + 1) // 7)
