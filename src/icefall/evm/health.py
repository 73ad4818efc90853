"""The health of an indexed chain, read from its store alone: for health checks, counters and lists of chains."""

from typing import Any

import msgspec

from icefall.db.engine import StoreError
from icefall.evm.reading.chain import ChainReader
from icefall.evm.status import COUNTED, ChainStatus, decode_status

SILENT_S = 30.0  # an indexer writes its status every two seconds
STALLED_S = 60.0  # without a new block, and not at the tip


class ChainHealth(msgspec.Struct, frozen=True):
    """The health of a chain. `problem` empty: it has blocks and is being followed. Being far behind the head is no
    problem; `synced` shows it. `is_available`: it has blocks, and is at the tip or makes progress."""

    synced: bool
    problem: str
    details: dict[str, Any]
    counts: dict[str, int]
    is_available: bool = False
    is_fresh: bool = False  # its indexer has reported lately, and heard from an upstream


async def chain_health(chain: ChainReader, now: float) -> ChainHealth:
    try:
        text, tip, first = await chain.meta("status"), await chain.tip(), await chain.lowest()
    except StoreError as error:
        return ChainHealth(False, str(error), {}, {})
    if text is None:
        return ChainHealth(False, "its indexer has not reported a status yet", {}, {})
    status = decode_status(text)
    details: dict[str, Any] = {
        "firstIndexedBlock": first,
        "lastIndexedBlock": tip.number if tip is not None else None,
        "head": status.head,
        "synced": _is_fresh(status, now) and status.synced,
        "auditedTo": status.audited_to if status.audited_to >= 0 else None,
        "auditsDone": status.audits_done,
        "secondsSinceStatus": max(0, int(now - status.at)),
    }
    if status.progress_at:
        details["secondsSinceProgress"] = max(0, int(now - status.progress_at))
    if status.degraded:
        details["degraded"] = list(status.degraded)
    if status.warning:
        details["warning"] = status.warning
    counts = {name: status.counts.get(name, 0) for name in COUNTED}
    is_available = tip is not None and _advances(status, now)
    problem = _problem(status, now) or ("" if tip is not None else "no block is indexed yet")
    return ChainHealth(bool(details["synced"]), problem, details, counts, is_available, _is_fresh(status, now))


def _is_fresh(status: ChainStatus, now: float) -> bool:
    return now - status.at <= SILENT_S and now - status.upstream_seen_at <= SILENT_S


def _advances(status: ChainStatus, now: float) -> bool:
    """Tell whether it is at the tip or makes progress. Also without a running indexer the time of the last progress
    gets old."""
    if status.stopped or (status.unusable_since and now - status.unusable_since > SILENT_S):
        return False
    return now - status.progress_at <= STALLED_S


def _problem(status: ChainStatus, now: float) -> str:
    if status.stopped:
        return f"indexing has stopped: {status.problem}"
    if now - status.at > SILENT_S:
        return f"its indexer last reported {int(now - status.at)} s ago: is `icefall index` or `icefall up` running?"
    if status.problem:
        return f"indexing paused, retrying: {status.problem}"
    if not status.upstream_seen_at:
        return "its upstream has not answered yet"
    unanswered_s = int(now - status.upstream_seen_at)
    return f"its upstream has not answered for {unanswered_s} s" if unanswered_s > SILENT_S else ""
