"""Indexes a recorded chain with the real follower into a real store, from a replayed upstream."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

from tests.evm.recordings import LOCAL_AVAX
from tests.store.opened import open_store as store_at
from tests.upstream.evm_replay import EvmReplay
from tests.upstream.evm_scene import RecordingLog, upstream_of

from icefall.evm.auditing.audit import Auditor, audit_forever, finish_audits
from icefall.evm.indexing.batches import BatchMaker
from icefall.evm.indexing.decoder import DecoderState, RawChunk, Ticket, VerifiedChunk, decode_raw, parts_of
from icefall.evm.indexing.filling import RawFilling
from icefall.evm.indexing.follower import POLL_S, BlockRange, EvmFollower
from icefall.evm.indexing.reorgs import ReorgRules
from icefall.evm.indexing.state_lookups import ContractCache
from icefall.evm.indexing.token_layouts import TokenLayouts
from icefall.evm.layouts.proof import Prover
from icefall.evm.model import ContractInfo, StoredRaw
from icefall.evm.packed import PackedBlock
from icefall.evm.storing.store import PACKAGE, ChainStore
from icefall.evm.storing.unclaimed import UNCLAIMED_MAX
from icefall.metrics.store import RollupWriter
from icefall.upstream.evm.block_parts import FetchedBlock
from icefall.upstream.evm.upstream import EvmUpstream

MESSENGER = bytes.fromhex("253b2784c75e510dd0ff1da844684a1ac0aa5fcf")

AUDIT_INTERVAL = 5_000
ALL_RAW = StoredRaw(logs=True, calls=True)
NO_RAW = StoredRaw()
DEPTH_MAX = 128  # the default of --reorg-depth-max
RULES = ReorgRules("1", DEPTH_MAX)


class Log(RecordingLog):
    info = RecordingLog.warn


class InlineBlockDecoder:
    """Decodes in this process."""

    def __init__(self) -> None:
        self._state = DecoderState()
        self._tickets = itertools.count()

    async def verify(
        self, chain: int, blocks: Sequence[FetchedBlock], fixed: ContractInfo, *, roots: bool, raw: StoredRaw
    ) -> VerifiedChunk:
        return self._state.verify((chain, next(self._tickets)), parts_of(blocks), roots, raw, fixed)

    async def derive(self, ticket: Ticket, indices: range, info: ContractInfo) -> list[PackedBlock]:
        return self._state.derive(ticket, indices, info)

    async def raw(self, blocks: Sequence[FetchedBlock], *, roots: bool, raw: StoredRaw) -> RawChunk:
        return decode_raw(parts_of(blocks), roots, raw)

    def close(self) -> None:
        pass


class AuditedFollower(EvmFollower):
    """A follower and the audits of its chain: as the indexer runs them, in two loops."""

    auditor: Auditor
    is_audited = True

    async def run(self) -> None:
        if not self.is_audited:
            await super().run()
            return
        audits = asyncio.create_task(audit_forever(self.auditor, self._store, self._upstream.clock, self._log))
        try:
            await super().run()
            await finish_audits(self.auditor, self._store)
        finally:
            audits.cancel()
            await asyncio.gather(audits, return_exceptions=True)


class Indexing(NamedTuple):
    follower: AuditedFollower
    store: ChainStore
    upstream: EvmUpstream
    log: Log


def open_store(path: Path, unclaimed_max: int = UNCLAIMED_MAX) -> ChainStore:
    return ChainStore(store_at(path, PACKAGE), [RollupWriter(lambda: 0.0)], unclaimed_max=unclaimed_max)


def messenger_of(replay: EvmReplay) -> bytes:
    contracts = replay.recording.meta["contracts"]
    return bytes.fromhex((contracts.get("messengerReal") or contracts["messenger"])[2:])


def indexing_of(
    store: ChainStore,
    upstream: EvmUpstream,
    blocks: BlockRange,
    *,
    roots: bool = False,
    messenger: bytes = MESSENGER,
    rules: ReorgRules = RULES,
    kept: StoredRaw = ALL_RAW,
    poll_s: float = POLL_S,
    proofs: bool = True,
) -> Indexing:
    log = Log()
    contracts = ContractCache(store, upstream, (messenger,), LOCAL_AVAX)
    prover = Prover(upstream, upstream.is_avalanche)
    layouts = TokenLayouts(store, prover, upstream)
    maker = BatchMaker(
        store,
        upstream,
        contracts,
        InlineBlockDecoder(),
        blocks.first,
        verify_roots=roots,
        raw=kept,
        layouts=layouts if proofs else None,
    )
    follower = AuditedFollower(blocks, store, upstream, maker, log, rules=rules, poll_s=poll_s)
    follower.auditor = Auditor(store, upstream, AUDIT_INTERVAL, log)
    return Indexing(follower, store, upstream, log)


async def fill(path: Path, upstream: EvmUpstream, kinds: StoredRaw = ALL_RAW) -> int:
    """Logs and calls of blocks that were stored without. The number of steps."""
    store, steps = store_at(path, PACKAGE), 0
    filling = RawFilling(store, upstream, InlineBlockDecoder(), kinds, verify_roots=True)
    while await filling.step():
        steps += 1
    store.close()
    return steps


@asynccontextmanager
async def indexing(
    path: Path,
    *replays: EvmReplay,
    blocks: BlockRange | None = None,
    roots: bool = False,
    rules: ReorgRules = RULES,
    kept: StoredRaw = ALL_RAW,
    poll_s: float = POLL_S,
    audited: bool = True,
    **options: Any,
) -> AsyncIterator[Indexing]:
    """A follower that is ready to run; without a range, up to the replay's present head. Not `audited`: in tests of
    blocks alone, for audits take a third of the time."""
    store = open_store(path)
    try:
        async with upstream_of(*replays, **options) as upstream:
            blocks = blocks or BlockRange(last=replays[0].head)
            messenger = messenger_of(replays[0])
            found = indexing_of(
                store, upstream, blocks, roots=roots, messenger=messenger, rules=rules, kept=kept, poll_s=poll_s
            )
            found.follower.is_audited = audited
            yield found
    finally:
        store.close()
