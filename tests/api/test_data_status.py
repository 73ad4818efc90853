"""`status` of a chain: OK while it has blocks and is at the tip or makes progress, else UNAVAILABLE."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.api.made_chain import ID, block, put, put_meta, served

from icefall.evm.health import SILENT_S, STALLED_S
from icefall.evm.indexing.follower import FollowerStatus
from icefall.evm.status import ChainStatus, encode_status, status_of

SEEN_AT = 1000.0  # on the follower's clock
SYNCED = FollowerStatus(head=2, tip=2, target=2, upstream_seen_at=SEEN_AT)
BEHIND = FollowerStatus(head=900, tip=2, target=900, upstream_seen_at=SEEN_AT, blocks=3)
BEGINNING = FollowerStatus(head=900, tip=2, target=900, upstream_seen_at=SEEN_AT)
FAILING = FollowerStatus(head=2, tip=2, target=2, upstream_seen_at=SEEN_AT, problem="no answer")
STOPPED = FollowerStatus(head=2, tip=2, target=2, upstream_seen_at=SEEN_AT, problem="another chain", stopped=True)


class Report(NamedTuple):
    """What an indexer stores: how long ago, of which follower, and whether it has an upstream that can be used."""

    age_s: float
    status: FollowerStatus
    is_usable: bool = True


def stored_status(reports: Sequence[Report]) -> ChainStatus:
    """The last of several, each `age_s` old now. The upstream answered at the moment of the report."""
    now, stored = time.time(), None
    for age_s, status, is_usable in reports:
        stored = status_of(status, {}, [], now - age_s, SEEN_AT, previous=stored, is_usable=is_usable)
    assert stored is not None
    return stored


LATELY, LONG_AGO = STALLED_S - 20, STALLED_S + 1
OUTAGE = [Report(50, SYNCED), Report(SILENT_S + 1, FAILING, is_usable=False)]
CASES: dict[str, tuple[list[Report], str]] = {
    "at the tip": ([Report(1, SYNCED)], "OK"),
    "at the tip, and being restarted": ([Report(LATELY, SYNCED)], "OK"),
    "at the tip when its indexer ended": ([Report(LONG_AGO, SYNCED)], "UNAVAILABLE"),
    "at the tip of a quiet chain": ([Report(3600, SYNCED), Report(1, SYNCED)], "OK"),
    "an upstream that failed just now": ([Report(LATELY, SYNCED), Report(1, FAILING)], "OK"),
    "an upstream that fails": ([Report(LONG_AGO, SYNCED), Report(1, FAILING)], "UNAVAILABLE"),
    "behind, with new blocks": ([Report(3600, SYNCED), Report(1, BEHIND)], "OK"),
    "behind, with blocks a moment ago": ([Report(LATELY, BEHIND), Report(1, BEHIND)], "OK"),
    "behind, without new blocks": ([Report(LONG_AGO, BEHIND), Report(1, BEHIND)], "UNAVAILABLE"),
    "behind, without a block since it began": ([Report(1, BEGINNING)], "UNAVAILABLE"),
    "stopped": ([Report(3, SYNCED), Report(1, STOPPED)], "UNAVAILABLE"),
    "no usable upstream for a moment": ([Report(20, SYNCED), Report(10, FAILING, is_usable=False)], "OK"),
    "no usable upstream": ([*OUTAGE, Report(1, FAILING, is_usable=False)], "UNAVAILABLE"),
    "a usable upstream again": ([*OUTAGE, Report(1, SYNCED)], "OK"),
    "no status": ([], "UNAVAILABLE"),
}


@pytest.mark.parametrize("case", CASES)
def test_status_of_a_chain(case: str, tmp_path: Path) -> None:
    reports, expected = CASES[case]
    put(tmp_path, [block(0), block(1), block(2)])
    if reports:
        put_meta(tmp_path, status=encode_status(stored_status(reports)))
    with served(tmp_path) as app:
        assert app.result(f"/v1/chains/{ID}")["status"] == expected
        assert [one["status"] for one in app.result("/v1/chains")["chains"]] == [expected]


def test_a_chain_without_blocks(tmp_path: Path) -> None:
    put_meta(tmp_path, status=encode_status(stored_status([Report(1, SYNCED)])))
    with served(tmp_path) as app:
        assert app.result(f"/v1/chains/{ID}")["status"] == "UNAVAILABLE"


def test_a_chain_without_a_store(tmp_path: Path) -> None:
    with served(tmp_path) as app:
        assert app.result(f"/v1/chains/{ID}")["status"] == "UNAVAILABLE"
