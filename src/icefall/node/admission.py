"""What a data directory is bound to, and whether the program may start with it.

Checked before anything else, written only when nothing can refuse the start any more: a refused start changes nothing.
"""

from collections.abc import Callable

import msgspec

from icefall.db.engine import Transaction
from icefall.errors import StartRefused
from icefall.node.store import SQL, meta

OWN, FOLLOWED = "own", "followed"


class StartRequest(msgspec.Struct, frozen=True):
    """How the program was asked to start."""

    network_id: int
    follows: bool
    index_enabled: bool
    allow_incomplete: bool

    @property
    def mode(self) -> str:
        return FOLLOWED if self.follows else OWN


def refusal(known: Callable[[str], str | None], start: StartRequest) -> str | None:
    """Why the start is refused and what to do instead, or None. `known` reads a value from the `meta` table."""
    network, mode = known("network_id"), known("mode")
    if network is not None and int(network) != start.network_id:
        return (
            f"this data directory belongs to network {network}, not {start.network_id}: "
            f"use another --data-dir, or --network-id={network}"
        )
    if mode == FOLLOWED and not start.follows:
        return "this data directory follows another node: give --upstream, or use another --data-dir"
    if mode == OWN and start.follows:
        return "this data directory holds a network of its own: follow a node with another --data-dir"
    if start.allow_incomplete:
        return None
    if start.index_enabled and known("index_incomplete"):
        return (
            "index is incomplete but incomplete indices are disabled: this data directory once ran without the index. "
            "Accept what it misses with --index-allow-incomplete, or start on a fresh --data-dir"
        )
    if not start.index_enabled and known("indexed"):
        return (
            "running would cause index to become incomplete but incomplete indices are disabled: start with "
            "--index-enabled=true, or accept that the index will miss what is accepted now with "
            "--index-allow-incomplete"
        )
    return None


def admit(tx: Transaction, start: StartRequest, genesis_time: int) -> None:
    """Bind the data directory. `genesis_time` decides where a local network's P-Chain begins; the first one stays."""
    reason = refusal(lambda name: meta(tx, name), start)
    if reason is not None:
        raise StartRefused(reason)
    values = {"network_id": str(start.network_id), "mode": start.mode}
    if meta(tx, "genesis_time") is None:
        values["genesis_time"] = str(genesis_time)
    values["indexed" if start.index_enabled else "index_incomplete"] = "1"
    for name, value in values.items():
        tx.run(SQL.put_meta, {"name": name, "value": value})
