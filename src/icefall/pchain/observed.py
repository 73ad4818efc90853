"""What an upstream sees of the validators of the primary network, in the node's store, each row with its time."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec

from icefall.db.engine import Reader, Transaction
from icefall.db.statements import load
from icefall.pchain.store import unsigned
from icefall.wire.ids import PRIMARY_NETWORK

SQL = load("icefall.pchain", "observed.sql")
SHOWN_S = 3600  # what is older counts as never seen: the upstream, or the engine, has been away
UPTIME_SCALE = 10_000  # nodes give four decimals of a percent


class ObservedNode(msgspec.Struct, frozen=True, gc=False):
    """A validator as the upstream saw it at a time (Unix time in seconds)."""

    node_id: bytes
    time: int
    uptime: int  # on the primary network, in ten-thousandths of a percent
    is_connected: bool
    version: str  # of its program; empty if the upstream is not connected to it
    benched: str  # which of P, X and C the upstream sends it no requests about now


class VersionStake(NamedTuple):
    """What is staked with the validators of one version, delegations included."""

    version: str
    validators: int
    amount: int


def put_observed(tx: Transaction, seen: Sequence[ObservedNode], now: int) -> None:
    """Store what was seen now, and forget what is too old to be shown."""
    tx.run_many(
        SQL.put_observed,
        [(*msgspec.structs.astuple(one)[:3], int(one.is_connected), one.version, one.benched) for one in seen],
    )
    tx.run(SQL.forget_observed, {"before": now - SHOWN_S})


class ObservedNodes:
    """What was seen in the last hour."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    async def of(self, node_ids: Iterable[bytes], now: int) -> dict[bytes, ObservedNode]:
        """What was seen of nodes; one that was not seen has no entry."""
        keys = [(one,) for one in dict.fromkeys(node_ids)]
        rows = await self._reader.rows_of_each(SQL.observed_of, keys) if keys else []
        return {
            node_id: ObservedNode(node_id, time, uptime, bool(is_connected), version, benched)
            for node_id, time, uptime, is_connected, version, benched in rows
            if time >= now - SHOWN_S
        }

    async def by_version(self, now: int) -> list[VersionStake]:
        """The stake of the primary network by version, the largest first; without validators of unknown version."""
        rows = await self._reader.rows(SQL.versions, {"subnet_id": PRIMARY_NETWORK, "since": now - SHOWN_S})
        found: dict[str, VersionStake] = {}
        for version, weight, delegated in rows:
            _, count, amount = found.get(version, VersionStake(version, 0, 0))
            found[version] = VersionStake(version, count + 1, amount + unsigned(weight) + int(delegated))
        return sorted(found.values(), key=lambda one: (-one.amount, one.version))
