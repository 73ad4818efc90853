"""A recorded history of X, P and C for a local network to begin with: verified like data of an upstream, then stored.

The import can be interrupted at any moment: whole runs are stored, and the next call continues after them.
"""

import json
import lzma
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from importlib.resources import files
from itertools import groupby
from typing import NamedTuple

from icefall.node.sync.verify import (
    ChainLinks,
    ChainPosition,
    ContainerRejected,
    FollowedChain,
    ImportPending,
    InvalidContainer,
    MissingTransaction,
    UnknownContainer,
    verify,
)
from icefall.upstream.node import FetchedContainer
from icefall.wire.ids import LOCAL_ID

GENESIS_TIME = 1795036472  # when the recorded network began, which decides P's first block
TX_FEE = CREATE_ASSET_TX_FEE = 1_000_000
BEGUN, DONE = "begun", "done"  # values of the meta row
META_NAME = "demo_history"


class InvalidHistory(Exception):
    """The recording is damaged or does not fit the network."""


class ContainerRun(NamedTuple):
    """Consecutive containers of one chain."""

    chain: str
    containers: list[FetchedContainer]


def fits(network_id: int, genesis_file: str, upstream: tuple[str, ...], fees: tuple[int, int]) -> bool:
    """Whether a network of these settings can begin with the recorded history."""
    return network_id == LOCAL_ID and not genesis_file and not upstream and fees == (TX_FEE, CREATE_ASSET_TX_FEE)


def recorded_runs() -> Iterator[ContainerRun]:
    """Return the containers in the order in which they were accepted, so that an export comes before its import."""
    raw = lzma.decompress((files("icefall.demo") / "data" / "history.jsonl.xz").read_bytes())
    rows = map(json.loads, raw.splitlines())
    for chain, run in groupby(rows, key=lambda row: str(row["chain"])):
        yield ContainerRun(
            chain,
            [
                FetchedContainer(
                    row["number"], row["id"], bytes.fromhex(row["raw"]), datetime.fromisoformat(row["accepted"][:19])
                )
                for row in run
            ],
        )


async def import_into(
    chains: Mapping[str, FollowedChain], links: Mapping[str, ChainLinks], report: Callable[[str, int], None]
) -> None:
    """Imports what the chains do not have yet. `report` gets a chain and its container count after each run."""
    positions = {
        name: ChainPosition(chain.count, chain.last_container_id, chain.last_block_id) for name, chain in chains.items()
    }
    for name, recorded in recorded_runs():
        chain = chains[name]
        new = [container for container in recorded if container.number >= chain.count]
        if not new:
            continue
        try:
            offered, positions[name] = verify(links[name], positions[name], new)
            await chain.accept(offered)
        except (InvalidContainer, UnknownContainer, ContainerRejected, ImportPending, MissingTransaction) as error:
            raise InvalidHistory(f"the demo history cannot be imported: {error}") from error
        report(name, chain.count)
