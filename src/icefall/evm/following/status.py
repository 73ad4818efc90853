"""The indexer's status, which it writes to the chain's store for workers, health checks and counters."""

import msgspec

from icefall.evm.following.follower import FollowerStatus


class ChainStatus(msgspec.Struct, frozen=True, omit_defaults=True):
    """`at` is Unix time: an old status is that of an indexer that no longer runs."""

    at: float
    synced: bool
    upstream_seen_at: float = 0.0  # when the upstream last answered; 0: never
    head: int | None = None
    target: int | None = None
    problem: str = ""
    stopped: bool = False
    degraded: tuple[str, ...] = ()
    counts: dict[str, int] = {}  # since the index began, across restarts


COUNTED = ("blocks", "txs", "transfers", "skipped_logs", "reorgs", "reorged_blocks", "fetched_bytes")


def status_of(
    status: FollowerStatus, before: dict[str, int], degraded: list[str], now: float, clock_now: float
) -> ChainStatus:
    """`before`: the counts of earlier runs. `clock_now`: `now` on the follower's own clock."""
    counts = {name: before.get(name, 0) + getattr(status, name) for name in COUNTED}
    return ChainStatus(
        now,
        status.synced,
        now - (clock_now - status.upstream_seen_at) if status.upstream_seen_at else 0.0,
        status.head,
        status.target,
        status.problem,
        status.stopped,
        tuple(degraded),
        counts,
    )


def encode_status(status: ChainStatus) -> str:
    return msgspec.json.encode(status).decode()


def decode_status(text: str) -> ChainStatus:
    return msgspec.json.decode(text, type=ChainStatus)
