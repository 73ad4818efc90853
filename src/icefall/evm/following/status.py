"""What an indexer tells of itself through the chain's store: workers, health and meters read it there."""

import msgspec

from icefall.evm.following.follower import FollowerStatus


class ChainStatus(msgspec.Struct, frozen=True, omit_defaults=True):
    """The last word of the indexer. `at` is Unix time: an old word is that of an indexer that is gone."""

    at: float
    heard_at: float  # when the upstream last gave something; 0: never
    synced: bool
    head: int | None = None
    target: int | None = None
    problem: str = ""
    stopped: bool = False
    degraded: tuple[str, ...] = ()
    counts: dict[str, int] = {}  # since the index began, across restarts


COUNTED = ("blocks", "txs", "transfers", "skipped_logs", "reorgs", "reorged_blocks", "fetched_bytes")


def status_of(
    standing: FollowerStatus, before: dict[str, int], degraded: list[str], now: float, clock_now: float
) -> ChainStatus:
    """`before`: the counts of earlier runs. `clock_now`: `now` on the follower's own clock."""
    counts = {name: before.get(name, 0) + getattr(standing, name) for name in COUNTED}
    return ChainStatus(
        now,
        now - (clock_now - standing.heard_at) if standing.heard_at else 0.0,
        standing.synced,
        standing.head,
        standing.target,
        standing.problem,
        standing.stopped,
        tuple(degraded),
        counts,
    )


def encode_status(status: ChainStatus) -> str:
    return msgspec.json.encode(status).decode()


def decode_status(text: str) -> ChainStatus:
    return msgspec.json.decode(text, type=ChainStatus)
