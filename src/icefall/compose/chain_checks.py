"""The health checks of indexed EVM chains and of replicas, which the engine runs beside those of the node.

They read the stores of the chains, so that they also see an indexer that runs as another program.
"""

import asyncio
import time
from contextlib import suppress
from typing import Any

from icefall.compose.stores import Stores
from icefall.config.settings import ChainConfig
from icefall.db.engine import StoreError
from icefall.db.replicas import Replicas, ReplicaState
from icefall.evm.health import SILENT_S, chain_health
from icefall.evm.reading.chain import ChainReader
from icefall.node.health.runner import UNFILTERED, Check, Health, Unhealthy

_MEASURE_EVERY_S = 30.0
_WATCH_EVERY_S = 1.0


class ChainLocation:
    """The place and size of a chain's store; measured at most every half minute."""

    def __init__(self, stores: Stores, chain_id: str) -> None:
        self._stores = stores
        self._chain_id = chain_id
        self._measured_at = -_MEASURE_EVERY_S
        self._details: dict[str, Any] = {}

    async def details(self) -> dict[str, Any]:
        if time.monotonic() - self._measured_at >= _MEASURE_EVERY_S:
            with suppress(StoreError):
                where, size = await asyncio.to_thread(self._stores.chain_location, self._chain_id)
                self._details = {"store": where, "storeBytes": size}
                self._measured_at = time.monotonic()
        return self._details


def chain_check(chain: ChainConfig, stores: Stores, *, is_indexed_here: bool) -> Check:
    """The health of an EVM chain's indexer, from its store. Being far behind the head is no failure, nor is a chain
    that neither this program indexes nor another has begun to. Its tags are its subnet and its blockchain ID."""
    reader = ChainReader(stores.chain_reader(chain.id))
    location = ChainLocation(stores, chain.id)
    is_begun = is_indexed_here
    blockchain_id = chain.blockchain_id

    def tags() -> tuple[str, ...]:
        return tuple([tag for tag in (chain.subnet_id, blockchain_id) if tag]) or UNFILTERED

    async def run() -> Any:
        nonlocal is_begun, blockchain_id
        is_begun = is_begun or await asyncio.to_thread(stores.has_chain_store, chain.id)
        if not is_begun:
            return {"indexed": False}
        found = await chain_health(reader, time.time())
        details = found.details
        if details:
            blockchain_id = await reader.meta("blockchain_id") or blockchain_id
            consensus = await _consensus(reader, connected=found.is_fresh)
            details = consensus | details | await location.details()
        if found.problem:
            raise Unhealthy(found.problem, details or None)
        return details

    return Check(f"chain-{chain.id}", run, tags, starting_s=SILENT_S)  # its indexer starts after the engine


def replica_check(replicas: Replicas) -> Check:
    """The replicas of the server, and how old their rows may be. It does not fail: the next replica, or the primary,
    answers in the place of one that is too old or gone."""

    async def run() -> Any:
        states = await replicas.states()
        return {one.name: _replica_details(one) for one in states}

    return Check("replicas", run)


def _replica_details(replica: ReplicaState) -> dict[str, Any]:
    lag = {} if replica.lag_s is None else {"lagSeconds": round(replica.lag_s, 3)}
    return {"used": not replica.problem, **lag, **({"problem": replica.problem} if replica.problem else {})}


async def _consensus(reader: ChainReader, *, connected: bool) -> dict[str, Any]:
    """The fields that the check of any chain has. A stored block is accepted, so none is being processed."""
    tip = await reader.tip()
    consensus: dict[str, Any] = {}
    if tip is not None:
        consensus = {
            "lastAcceptedHeight": tip.number,
            "lastAcceptedID": f"0x{tip.block_hash.hex()}",
            "longestProcessingBlock": "0s",
            "processingBlocks": 0,
        }
    return {"engine": {"consensus": consensus, "vm": None}, "networking": {"percentConnected": int(connected)}}


async def watch_chain_checks(checks: list[Check], health: Health) -> None:
    """Refreshes health as soon as an indexer starts, stops, recovers or has another problem. Runs for ever."""
    known: list[str] = []
    while True:
        now = [await _problem(check) for check in checks]
        if now != known:
            known = now
            health.refresh()
        await asyncio.sleep(_WATCH_EVERY_S)


async def _problem(check: Check) -> str:
    """Empty if it passes; without figures, which may be seconds that pass."""
    try:
        await check.run()
    except (Unhealthy, StoreError) as error:
        return "".join(one for one in str(error) if not one.isdigit()) or type(error).__name__
    return ""
