"""The health checks of this node. All values are measured; what they mean without a peer network is written in
docs/decisions/0004-health-figures.md."""

import asyncio
import secrets
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from icefall.db.disk import free_space
from icefall.db.engine import Store
from icefall.node.chains import Chain
from icefall.node.health.runner import READINESS, Check, Unhealthy
from icefall.node.store import SQL
from icefall.wire.ids import id_text
from icefall.wire.text.go_text import format_duration


class MovingChain(Protocol):
    """A chain that accepts blocks."""

    @property
    def height(self) -> int: ...

    @property
    def last_container_id(self) -> bytes: ...


class FollowStats(NamedTuple):
    """How a chain is followed: `failure` is why it has stopped, `details` are the fields its health check shows."""

    bootstrapped: bool
    failure: str | None
    details: dict[str, Any]
    connected: bool


class PeerStats(NamedTuple):
    """Upstreams are counted as peers."""

    connected: int = 0
    fail_rate: float = 0.0
    since_received_ns: int | None = None
    since_sent_ns: int | None = None
    in_flight: int = 0
    longest_ns: int = 0


class ChainCheck:
    """A chain's progress as the engine knows it; a chain without blocks stays at its genesis."""

    def __init__(
        self,
        chain: Chain,
        progress: MovingChain | None = None,
        following: Callable[[], FollowStats] | None = None,
    ) -> None:
        self.chain = chain
        self._progress = progress
        self._following = following

    @property
    def bootstrapped(self) -> bool:
        return self._following is None or self._following().bootstrapped

    async def check(self) -> Any:
        following = self._following() if self._following else None
        consensus: dict[str, Any] = {}
        if self.bootstrapped:
            moved = self._progress
            consensus = {
                "avgAcceptanceTime": "0s",
                "lastAcceptedHeight": moved.height if moved else 0,
                "lastAcceptedID": id_text(moved.last_container_id if moved else self.chain.genesis_block_id),
                "longestProcessingBlock": "0s",
                "processingBlocks": 0,
            }
        connected = following is None or following.connected
        message = {
            "engine": {"consensus": consensus, "vm": None},
            "networking": {"disconnectedValidators": [], "percentConnected": int(connected)},
        }
        if following is not None:
            message["following"] = following.details
            if following.failure:
                raise Unhealthy(following.failure, message)
        return message


async def bootstrapped(chains: list[ChainCheck]) -> Any:
    waiting = sorted({id_text(status.chain.subnet_id) for status in chains if not status.bootstrapped})
    if waiting:
        raise Unhealthy("subnets not bootstrapped", waiting)
    return waiting


async def database(store: Store) -> Any:
    """Writes a row and reads it back."""
    value = secrets.randbelow(1 << 62)
    await store.write(lambda tx: tx.run(SQL.put_probe, {"value": value}))
    rows = await store.rows(SQL.probe)
    if rows != [(value,)]:
        raise Unhealthy(f"wrote {value}, read back {rows}")


async def diskspace(directory: Path, warn_percent: int, required_percent: int) -> Any:
    available_bytes, percent = await asyncio.to_thread(free_space, directory)
    message = {"availableDiskBytes": available_bytes, "availableDiskPercentage": percent}
    text = "remaining available disk space percentage ({}%) is below {} threshold available space percentage ({}%)"
    if percent < required_percent:
        raise Unhealthy(text.format(percent, "minimum", required_percent), message)
    if percent < warn_percent:
        raise Unhealthy(text.format(percent, "warning", warn_percent), message)
    return message


class EngineTraffic:
    """Calls in flight to the engine and to upstreams, shown as a router's outstanding requests."""

    def __init__(self, clock_ns: Callable[[], int]) -> None:
        self._clock_ns = clock_ns
        self._began: dict[int, int] = {}
        self._next = 0
        self._received_ns = self._sent_ns = clock_ns()  # when the last call began, and ended; at first when we started

    def begin(self) -> int:
        self._next += 1
        self._began[self._next] = self._received_ns = self._clock_ns()
        return self._next

    def end(self, ticket: int) -> None:
        if self._began.pop(ticket, None) is not None:
            self._sent_ns = self._clock_ns()

    def call(self) -> Callable[[], None]:
        """Begin a call; the returned function ends it."""
        ticket = self.begin()
        return lambda: self.end(ticket)

    def outstanding(self) -> tuple[int, int]:
        """How many, and for how many ns the oldest has been running."""
        if not self._began:
            return 0, 0
        return len(self._began), self._clock_ns() - min(self._began.values())

    def idle(self) -> PeerStats:
        """The traffic of a node without upstreams: its messages are the calls to its engine."""
        now_ns = self._clock_ns()
        return PeerStats(since_received_ns=now_ns - self._received_ns, since_sent_ns=now_ns - self._sent_ns)


async def network(traffic: EngineTraffic | None, peers: Callable[[], PeerStats] | None, peers_min: int) -> Any:
    """Upstreams are counted as peers. A standalone node has none and needs none; without `traffic` the times of its
    messages are left out."""
    stats = peers() if peers else traffic.idle() if traffic else PeerStats()
    message: dict[str, Any] = {"connectedPeers": stats.connected, "sendFailRate": stats.fail_rate}
    if stats.since_received_ns is not None:
        message["timeSinceLastMsgReceived"] = format_duration(stats.since_received_ns)
    if stats.since_sent_ns is not None:
        message["timeSinceLastMsgSent"] = format_duration(stats.since_sent_ns)
    if peers and stats.connected < peers_min:
        reason = f"not connected to a minimum of {peers_min} peer(s) only {stats.connected}"
        raise Unhealthy(f"network layer is unhealthy reason: {reason}", message)
    return message


async def router(traffic: EngineTraffic, peers: Callable[[], PeerStats] | None, outstanding_max: int) -> Any:
    count, longest_ns = traffic.outstanding()
    if peers:
        stats = peers()
        count, longest_ns = count + stats.in_flight, max(longest_ns, stats.longest_ns)
    message = {"longestRunningRequest": format_duration(longest_ns), "outstandingRequests": count}
    reasons = []
    if count > outstanding_max:
        reasons.append(f"number of outstanding requests too high ({count} > {outstanding_max})")
    if longest_ns > 300 * 10**9:
        reasons.append(f"time for outstanding requests {format_duration(longest_ns)} > 5m0s")
    if reasons:
        raise Unhealthy("the router is not healthy reason: " + ", ".join(reasons), message)
    return message


def shutting_down() -> Check:
    """Registered when the program was asked to stop and waits first (`--http-shutdown-wait`)."""

    async def run() -> Any:
        raise Unhealthy("server shutting down", {"isShuttingDown": True})

    return Check("shuttingDown", run)


class Thresholds:
    def __init__(
        self, disk_warn_percent: int, disk_required_percent: int, outstanding_max: int, peers_min: int = 1
    ) -> None:
        self.disk_warn_percent = disk_warn_percent
        self.disk_required_percent = disk_required_percent
        self.outstanding_max = outstanding_max
        self.peers_min = peers_min


CONNECTING_S = 30.0  # upstreams are followed when the engine is ready, and at the first answer a check may pass


def node_checks(
    chains: list[ChainCheck],
    store: Store,
    data_dir: Path,
    limits: Thresholds,
    traffic: EngineTraffic,
    peers: Callable[[], PeerStats] | None = None,
    *,
    shows_idle_times: bool = True,
) -> Iterator[Check]:
    """The table of checks, in the order they are registered."""
    idle = traffic if shows_idle_times else None
    yield Check("bootstrapped", lambda: bootstrapped(chains), report=READINESS, latches=True, starting_s=CONNECTING_S)
    yield Check("bootstrapped", lambda: bootstrapped(chains), starting_s=CONNECTING_S)
    for status in chains:
        yield Check(status.chain.name, status.check, tags=(id_text(status.chain.subnet_id),))
    yield Check("database", lambda: database(store))
    yield Check("diskspace", lambda: diskspace(data_dir, limits.disk_warn_percent, limits.disk_required_percent))
    yield Check("network", lambda: network(idle, peers, limits.peers_min), starting_s=CONNECTING_S)
    yield Check("router", lambda: router(traffic, peers, limits.outstanding_max))
