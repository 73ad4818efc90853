"""Follows one chain of an upstream: its history first, in batches, then its tip.

A batch is fetched while the one before it is committed. Nothing is stored that `verify` has not accepted, and nothing
that a second upstream, if there is one, contradicts.
"""

import asyncio
from collections.abc import Sequence
from typing import Literal, Protocol

from icefall.db.engine import StoreError
from icefall.node.sync.foreign import ImportWaiter
from icefall.node.sync.upstreams import NodeUpstreams, Progress, progress_of
from icefall.node.sync.verify import (
    ChainLinks,
    ChainPosition,
    ChainStopped,
    ContainerRejected,
    FollowedChain,
    ImportPending,
    InvalidContainer,
    MissingTransaction,
    UnknownContainer,
    UnlinkedContainer,
    VerifiedContainer,
    identify,
    verify,
)
from icefall.observe.counters import Rate
from icefall.observe.log import Log
from icefall.upstream.client import InvalidAnswer, Retry, UpstreamError, UpstreamFailure
from icefall.upstream.node import RANGE_MAX, FetchedContainer, UpstreamNode
from icefall.upstream.pool import NoUpstreamLeft
from icefall.wire.ids import id_text

POLL_S = 0.5
STORE_RETRY_S = 1.0
FAILURE_PAUSE = Retry(first_s=0.25, longest_s=30.0)
_RUN_BYTES_MAX = 8 << 20  # two batches of every chain may be in memory
_GROWTH_WAIT = 16  # batches in a row that must succeed before longer ones are tried again

State = Literal["bootstrapping", "following", "stopped"]


class DagStage(Protocol):
    """What must be followed to its end before the first container: X's DAG, if there was one."""

    @property
    def is_complete(self) -> bool: ...

    @property
    def waiting(self) -> str | None: ...

    async def run(self) -> None:
        """Read the history until it is complete. ChainStopped, NoUpstreamLeft: it cannot be followed."""
        ...


class RangeFetcher:
    """Fetches ranges of an index and adapts their length to what the upstream can send, in number and in bytes."""

    def __init__(self, name: str, run_max: int, kind: str = "block") -> None:
        self._name = name
        self._kind = kind
        self._run_max = run_max
        self._successes = 0
        self.size = run_max
        self.failures = 0  # in a row, on whatever upstream

    def shorten(self) -> None:
        self._successes, self.size = 0, max(1, self.size // 2)

    def begin(self, node: UpstreamNode, start: int, last: int) -> asyncio.Task[list[FetchedContainer]]:
        return asyncio.create_task(self.fetch(node, start, last + 1 - start))

    async def fetch(self, node: UpstreamNode, start: int, count: int) -> list[FetchedContainer]:
        """Fetch at least one of the next `count` containers."""
        fetched = await node.containers(self._name, start, min(self.size, count), self._kind)
        if not fetched:
            raise InvalidAnswer(f"{node.name} sent no {self._name} containers from {start}, which its tip says it has")
        size = sum(len(row.raw) for row in fetched)
        self._successes += 1
        if size > _RUN_BYTES_MAX:
            self._successes, self.size = 0, max(1, len(fetched) // 2)
        elif self._successes >= _GROWTH_WAIT and 2 * size <= _RUN_BYTES_MAX:
            self._successes, self.size = 0, min(self._run_max, 2 * self.size)
        return fetched


async def handle_failure(
    failure: InvalidContainer | UpstreamFailure | StoreError,
    node: UpstreamNode,
    upstreams: NodeUpstreams,
    runs: RangeFetcher,
    log: Log,
    fetched: str,
) -> bool:
    """Disable or back off the upstream, or wait for the store. True if another upstream should be used next."""
    if isinstance(failure, InvalidContainer):
        upstreams.disable(node, str(failure))
        return True
    if isinstance(failure, UpstreamFailure):
        upstreams.back_off(node, failure)
        runs.shorten()
        runs.failures += 1
        if runs.failures > len(upstreams.members):  # the upstream may be fine for other chains
            await upstreams.clock.sleep(FAILURE_PAUSE.pause_s(runs.failures, 0.0, 1.0))
        return True
    # a full disk: nothing was changed, and no upstream has failed
    log.error(f"{fetched} could not be stored; trying again", error=str(failure))
    await upstreams.clock.sleep(STORE_RETRY_S)
    return False


class ContainerFollower:
    """`run` ends only when the chain cannot be followed further, because of `why`. It may be cancelled at any time."""

    def __init__(
        self,
        chain: FollowedChain,
        links: ChainLinks,
        upstreams: NodeUpstreams,
        log: Log,
        *,
        poll_s: float = POLL_S,
        run_max: int = RANGE_MAX,
        imports_from: "Sequence[ContainerFollower]" = (),
        before: DagStage | None = None,
    ) -> None:
        self.chain = chain
        self.why: str | None = None  # it stopped
        self._before = before
        self._links = links
        self._upstreams = upstreams
        self._log = log
        self._clock = upstreams.clock
        self._poll_s = poll_s
        self._runs = RangeFetcher(chain.name, run_max)
        self._imports = ImportWaiter(imports_from, upstreams, poll_s)
        self._target: int | None = None  # how many containers the upstream had when we began
        self._source: UpstreamNode | None = None  # the upstream that sent our last container
        self._position: ChainPosition | None = None
        self._arrived = False
        self._rate = Rate(self._clock.now(), chain.count)

    @property
    def name(self) -> str:
        return self.chain.name

    @property
    def waiting(self) -> str | None:
        """What it waits for, if it waits for another chain."""
        return self._imports.waiting or (self._before.waiting if self._before else None)

    @property
    def state(self) -> State:
        if self.why is not None:
            return "stopped"
        return "following" if self.bootstrapped else "bootstrapping"

    @property
    def bootstrapped(self) -> bool:
        """It has been at the tip once; that stays so when it stops later."""
        return self._target is not None and self.chain.count >= self._target

    @property
    def progress(self) -> Progress:
        done = self.chain.count
        return progress_of(done, self._target, self._rate.per_second(self._clock.now(), done))

    def stop_before_run(self, reason: str) -> None:
        """Stay stopped after a restart: what is stored already cannot be read. What is before it is served."""
        self.why = reason
        self._target = self.chain.count
        self._log.error("chain stopped", reason=reason)

    async def run(self) -> None:
        if self.why is not None:
            return
        node: UpstreamNode | None = None
        move_on = False
        try:
            if self._before is not None:
                await self._before.run()
            while True:
                node = await self._upstreams.pick(node, move_on=move_on)
                move_on = await self._turn(node)
        except (NoUpstreamLeft, ChainStopped) as reason:
            self.why = str(reason)
            self._log.error("chain stopped", reason=self.why)

    async def _turn(self, node: UpstreamNode) -> bool:
        """Accept what `node` has for us. True if another upstream should be used next."""
        try:
            moved = await self._advance(node)
        except (InvalidContainer, UpstreamFailure, StoreError) as failure:
            move_on = await handle_failure(failure, node, self._upstreams, self._runs, self._log, "containers")
            if move_on and not self.bootstrapped:
                self._target = None  # the next upstream's tip is the new target
            return move_on
        self._upstreams.mark_ok(node)
        self._runs.failures = 0
        if moved:
            return False
        await self._clock.sleep(self._poll_s)
        return True  # every upstream's tip is checked in turn, so one that lags does not hold us back

    # -- one upstream --------------------------------------------------------------------------------------------

    async def _advance(self, node: UpstreamNode) -> bool:
        """Accept everything up to the upstream's current tip. False if it has nothing new: with a lower tip, which must
        be one of our containers, it lags."""
        tip = await node.last_accepted(self.name)
        if not self.bootstrapped:
            self._target = self._target or (0 if tip is None else tip.number + 1)
        if tip is not None and tip.number < self.chain.count:
            self._compare_tip(node, tip)
        moved = tip is not None and tip.number >= self.chain.count
        if tip is not None and moved:
            await self._take(node, tip.number)
        if self.bootstrapped and not self._arrived:
            self._arrived = True
            self._log.info("synced", upstream=node.name, containers=self.chain.count)
        return moved

    async def _take(self, node: UpstreamNode, last: int) -> None:
        position = self._next_position()
        fetch = self._runs.begin(node, position.number, last)
        try:
            while True:
                run, position = await self._verified(node, position, await fetch)
                more = position.number <= last
                if more:
                    fetch = self._runs.begin(node, position.number, last)
                await self._compare(node, run)
                await self._commit(node, run, position)
                if not more:
                    return
        finally:
            fetch.cancel()
            await asyncio.gather(fetch, return_exceptions=True)

    async def _verified(
        self, node: UpstreamNode, position: ChainPosition, fetched: list[FetchedContainer]
    ) -> tuple[list[VerifiedContainer], ChainPosition]:
        try:
            return verify(self._links, position, fetched)
        except UnlinkedContainer as unlinked:
            raise await self._other_history(node, unlinked) from unlinked
        except UnknownContainer as unreadable:
            if unreadable.readable:
                await self._compare(node, unreadable.readable)
                await self._commit(node, unreadable.readable, None)
            if unreadable.unread is not None:
                await self._compare(node, [unreadable.unread])
                await self.chain.accept([unreadable.unread])
            raise ChainStopped(f"{node.name}: {unreadable}") from unreadable

    async def _commit(self, node: UpstreamNode, run: Sequence[VerifiedContainer], after: ChainPosition | None) -> None:
        """Store a batch. An import may wait once for the other chains; if its export is missing then, it is invalid."""
        begin, end = run[0].number, run[-1].number + 1
        waited = False
        while self.chain.count < end:
            self._upstreams.require(node)
            rest = run[self.chain.count - begin :]
            self._position, before = None, self.chain.count
            try:
                await self.chain.accept(rest)
            except ContainerRejected as refused:
                raise InvalidContainer(
                    f"{self.name} container {self.chain.count} breaks the chain's rules: {refused}"
                ) from refused
            except MissingTransaction as incomplete:
                raise ChainStopped(f"{self.name} container {self.chain.count}: {incomplete}") from incomplete
            except ImportPending as not_yet:
                if waited:
                    raise InvalidContainer(f"{self.name} container {self.chain.count}: {not_yet}") from not_yet
                await self._imports.wait(node, str(not_yet))
                waited = True
            else:
                if self.chain.count < end:
                    raise RuntimeError(
                        f"{self.name} accepted {len(rest)} containers and stored {self.chain.count - before}"
                    )
            finally:
                if self.chain.count > before:
                    self._source = node
                    self._rate.note(self._clock.now(), self.chain.count)
        self._position = after

    def _next_position(self) -> ChainPosition:
        known = self._position
        chain = self.chain
        if known is not None and (known.number, known.container_id) == (chain.count, chain.last_container_id):
            return known
        return ChainPosition(chain.count, chain.last_container_id, chain.last_block_id)

    # -- other upstreams -----------------------------------------------------------------------------------------

    async def _compare(self, node: UpstreamNode, run: Sequence[VerifiedContainer]) -> None:
        """Another upstream must have the same container at the end of a batch. One that lags or is down is skipped."""
        for other in self._upstreams.others(node):
            try:
                theirs = await other.container(self.name, run[-1].number)
            except UpstreamError:
                continue
            except UpstreamFailure as failure:
                self._upstreams.back_off(other, failure)
                continue
            if theirs.id_text == id_text(run[-1].container_id):
                return
            await self._settle_conflict(node, other, run)

    async def _settle_conflict(self, node: UpstreamNode, other: UpstreamNode, run: Sequence[VerifiedContainer]) -> None:
        """`other` has another container there. If its batch is invalid it is disabled; else there are two histories."""
        try:
            their_ids = await self._ids_of(other, len(run))
        except InvalidContainer as invalid:
            self._upstreams.disable(other, str(invalid))
            return
        except UpstreamFailure as failure:
            self._upstreams.back_off(other, failure)
            return
        for ours, theirs in zip(run, their_ids, strict=False):
            if id_text(ours.container_id) != theirs:
                raise _conflict(self.name, ours.number, node.name, id_text(ours.container_id), other.name, theirs)
        self._upstreams.disable(other, f"it sent two different {self.name} containers {run[-1].number}")

    async def _ids_of(self, other: UpstreamNode, count: int) -> list[str]:
        """Its next containers after our last, verified; the last of them may be of an unknown type."""
        start = position = self._next_position()
        ids: list[str] = []
        while len(ids) < count:
            fetched = await self._runs.fetch(other, position.number, count - len(ids))
            try:
                part, position = verify(self._links, position, fetched)
            except UnlinkedContainer as unlinked:
                raise (await self._other_history(other, unlinked) if position is start else unlinked) from unlinked
            except UnknownContainer as unreadable:
                readable = [id_text(offered.container_id) for offered in unreadable.readable]
                return [*ids, *readable, unreadable.container_id_text]
            ids += [id_text(offered.container_id) for offered in part]
        return ids

    def _compare_tip(self, node: UpstreamNode, tip: FetchedContainer) -> None:
        """Its last container has a number of ours: it must be the same container."""
        last = tip.number == self.chain.count - 1
        ours = self.chain.last_container_id if last else self.chain.container_id_at(tip.number)
        if ours is None or tip.id_text == id_text(ours):
            return
        if self._source is node:
            raise InvalidContainer(
                f"its {self.name} container {tip.number} is {tip.id_text[:80]} now, and was {id_text(ours)}: "
                "was that node's database replaced?"
            )
        raise self._difference(node, tip, ours)

    async def _other_history(self, node: UpstreamNode, unlinked: InvalidContainer) -> Exception:
        """Why a container does not follow ours: it is invalid, or the upstream's history differs at our last one."""
        number, ours = self.chain.count - 1, self.chain.last_container_id
        if self._source is node:
            return unlinked
        theirs = await node.container(self.name, number)
        if theirs.id_text == id_text(ours):
            return unlinked
        return self._difference(node, theirs, ours)

    def _difference(self, node: UpstreamNode, theirs: FetchedContainer, ours: bytes) -> Exception:
        """Explain a container that is not ours at its number: it is invalid, or there are two histories."""
        our_source = "us" if self._source is None else self._source.name
        try:
            identify(self._links, theirs)
        except InvalidContainer as invalid:
            return invalid
        return _conflict(self.name, theirs.number, our_source, id_text(ours), node.name, theirs.id_text)


def _conflict(name: str, number: int, one: str, one_id_text: str, other: str, other_id_text: str) -> ChainStopped:
    return ChainStopped(
        f"two histories: {name} container {number} is {one_id_text} according to {one}, "
        f"and {other_id_text} according to {other}"
    )
