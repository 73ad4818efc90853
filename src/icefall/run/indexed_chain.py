"""The indexing of one EVM chain: its store, its upstreams, its follower, and what is fetched in the background."""

import time
from functools import partial

from icefall.config.settings import ChainConfig
from icefall.db.disk import DiskGuard, GuardedStore
from icefall.db.engine import Store
from icefall.evm.auditing.audit import Auditor
from icefall.evm.auditing.loop import audit_forever, finish_audits
from icefall.evm.enriching.counts import EnrichCounts
from icefall.evm.enriching.loops import EnrichSettings, enrich_forever
from icefall.evm.enriching.token_loop import TokenMetadataLoop
from icefall.evm.following.batches import BatchMaker
from icefall.evm.following.binding import Binding, bind
from icefall.evm.following.contracts import ContractCache
from icefall.evm.following.decoder import BlockDecoder
from icefall.evm.following.follower import BlockRange, EvmFollower
from icefall.evm.following.status import ChainStatus, decode_status, encode_status, status_of
from icefall.evm.storing.store import ChainStore
from icefall.metrics.store import RollupWriter
from icefall.observe.log import Log
from icefall.upstream.client import UpstreamFailure
from icefall.upstream.evm.upstream import EvmUpstream, RequiredTraces
from icefall.wire.genesis.network import KNOWN_NETWORKS
from icefall.wire.ids import id_from_text

_STATUS_EVERY_S = 2.0
_RETRY_S = 5.0


class IndexedChain:
    """One chain. It owns its store and closes it."""

    def __init__(
        self,
        chain: ChainConfig,
        blocks: BlockRange,
        store: Store,
        guard: DiskGuard,
        decoder: BlockDecoder,
        log: Log,
        *,
        audit_interval: int,
        verify_roots: bool,
    ) -> None:
        self._chain = chain
        self.name = chain.name or chain.id
        self.log = log
        self._store = GuardedStore(store, guard)
        self._chain_store = ChainStore(self._store, [RollupWriter()], chain.cumulative_tx_offset)
        self._status_store = ChainStore(store)  # the status is little, and says why nothing else is stored
        self._status_stored = _stored_status(self._chain_store)
        self._counts_before = self._status_stored.counts if self._status_stored is not None else {}
        self._status_stored_at = 0.0
        self._upstream = upstream_of(chain, self._chain_store, log)
        # What is not blocks, over connections of its own: a slow call there must not make the follower back off.
        self._background = upstream_of(chain, self._chain_store, log)
        self.auditor = Auditor(self._chain_store, self._background, audit_interval, log)
        self._contracts = ContractCache(self._chain_store, self._upstream, bytes.fromhex(chain.teleporter[2:]))
        maker = BatchMaker(
            self._chain_store, self._upstream, self._contracts, decoder, blocks.first, verify_roots=verify_roots
        )
        self.follower = EvmFollower(
            blocks,
            self._chain_store,
            self._upstream,
            maker,
            log,
            final=self._is_final,
            meta=partial(_trace_meta, self._upstream),
        )

    def _is_final(self) -> bool:
        """Blocks of Avalanche's own chains are final once accepted."""
        return any(can.block_extra_data for can in self._upstream.capabilities().values())

    async def follow(self) -> None:
        binding = Binding(self._chain.id, id_or_empty(self._chain.blockchain_id), self.follower.first_block)
        blockchain_id = await bind(self._chain_store, self._upstream, binding, self.log)
        self._contracts.native_asset_id = avax_asset_of(blockchain_id)
        await self.follower.run()
        await self._finish()

    async def _finish(self) -> None:
        """After the last block of an index that has one: what its answers still need, retried until it is there."""
        tokens = TokenMetadataLoop(self._store, self._background, EnrichCounts(), time.time)
        while True:
            try:
                await finish_audits(self.auditor, self._chain_store)
                while await tokens.round():
                    pass
                return
            except UpstreamFailure as failure:
                self.log.warn("audits or names cannot be finished, trying again", error=str(failure))
                await self._background.clock.sleep(_RETRY_S)

    async def audit(self) -> None:
        await audit_forever(self.auditor, self._chain_store, self._background.clock, self.log)

    async def enrich(self, settings: EnrichSettings) -> None:
        await enrich_forever(self._store, self._background, settings, self.log)

    async def store_status(self, *, last: bool = False) -> None:
        """What workers report of this indexer; every two seconds, at the end, and at once when it has a new problem."""
        now = time.time()
        problem = self.follower.status.problem
        is_new = bool(problem) and (self._status_stored is None or self._status_stored.problem != problem)
        if last or is_new or now - self._status_stored_at >= _STATUS_EVERY_S:
            self._status_stored_at = now
            tip = self._chain_store.tip()
            status = status_of(
                self.follower.status,
                self._counts_before,
                self._upstream.degraded(),
                now,
                self._upstream.clock.now(),
                previous=self._status_stored,
                is_usable=bool(self._upstream.pool.usable()),
                audited_to=self.auditor.audited_to(),
                audits_done=tip is not None and self.auditor.is_done(tip),
            )
            await self._status_store.put_meta({"status": encode_status(status)})
            self._status_stored = status

    async def close(self) -> None:
        await self._upstream.close()
        await self._background.close()
        self._chain_store.close()


def _stored_status(store: ChainStore) -> ChainStatus | None:
    text = store.meta("status")
    return decode_status(text) if text else None


def _trace_meta(upstream: EvmUpstream) -> dict[str, str]:
    """Which traces an index was begun with, once that is known."""
    required = upstream.required
    return {"has_calls": str(int(required.calls)), "has_diffs": str(int(required.diffs))} if required else {}


def upstream_of(chain: ChainConfig, store: ChainStore, log: Log) -> EvmUpstream:
    """An index begun with traces is not continued without."""
    calls, diffs = store.meta("has_calls"), store.meta("has_diffs")
    required = RequiredTraces(calls == "1", diffs == "1") if calls and diffs else None
    return EvmUpstream(chain.rpc, int(chain.id), log, required=required)


def id_or_empty(text: str) -> bytes:
    return id_from_text(text) if text else b""


def avax_asset_of(blockchain_id: bytes) -> bytes:
    """The asset that atomic transactions move as native coin; empty if unknown, then balances are read from state."""
    return next((one.avax_asset_id for one in KNOWN_NETWORKS.values() if one.c_chain_id == blockchain_id), b"")
