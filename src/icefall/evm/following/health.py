"""How an indexed chain is, told from its store alone: for health, for meters, for the lists of chains."""

from typing import Any

import msgspec

from icefall.db.engine import StoreError
from icefall.evm.following.status import COUNTED, ChainStatus, decode_status
from icefall.evm.reading.chain import ChainReader

SILENT_S = 30.0  # an indexer says something every two seconds


class ChainHealth(msgspec.Struct, frozen=True):
    """`complaint` empty: it is followed. To be far behind the head is no complaint; `synced` tells it."""

    synced: bool
    complaint: str
    told: dict[str, Any]
    counts: dict[str, int]


async def wellbeing(chain: ChainReader, now: float) -> ChainHealth:
    try:
        text, tip, first = await chain.fact("status"), await chain.tip(), await chain.lowest()
    except StoreError as error:
        return ChainHealth(False, str(error), {}, {})
    if text is None:
        return ChainHealth(False, "its indexer has not said anything yet", {}, {})
    status = decode_status(text)
    told: dict[str, Any] = {
        "firstIndexedBlock": first,
        "lastIndexedBlock": tip.number if tip is not None else None,
        "head": status.head,
        "synced": _is_fresh(status, now) and status.synced,
        "secondsSinceStatus": max(0, int(now - status.at)),
    }
    if status.degraded:
        told["degraded"] = list(status.degraded)
    counts = {name: status.counts.get(name, 0) for name in COUNTED}
    return ChainHealth(bool(told["synced"]), _complaint(status, now), told, counts)


def _is_fresh(status: ChainStatus, now: float) -> bool:
    return now - status.at <= SILENT_S and now - status.heard_at <= SILENT_S


def _complaint(status: ChainStatus, now: float) -> str:
    if status.stopped:
        return f"indexing has stopped: {status.problem}"
    if now - status.at > SILENT_S:
        return (
            f"its indexer was last heard of {int(now - status.at)} s ago: is `icefall index` or `icefall up` running?"
        )
    if status.problem:
        return f"indexing waits: {status.problem}"
    if not status.heard_at:
        return "its upstream has not answered yet"
    heard_s = int(now - status.heard_at)
    return f"nothing was heard of its upstream for {heard_s} s" if heard_s > SILENT_S else ""
