"""The indexing of one EVM chain: its store, its upstreams, its follower, and what is fetched in the background."""

import asyncio
import time
from functools import partial
from pathlib import Path

from icefall.config.settings import ChainConfig
from icefall.db.disk import DiskGuard, GuardedStore
from icefall.db.engine import Store, StoreError
from icefall.evm.auditing.audit import Auditor, audit_forever, finish_audits
from icefall.evm.enriching.loops import EnrichSettings, TokenMetadataLoop, enrich_forever
from icefall.evm.enriching.nft_loop import reindex_nft
from icefall.evm.enriching.nft_outcomes import EnrichCounts
from icefall.evm.indexing.batches import BatchMaker
from icefall.evm.indexing.binding import Binding, bind
from icefall.evm.indexing.decoder import BlockDecoder, DecoderDied
from icefall.evm.indexing.filling import RawFilling
from icefall.evm.indexing.follower import BlockRange, EvmFollower
from icefall.evm.indexing.linking import ChainLinking, Created
from icefall.evm.indexing.message_filling import MessageFilling
from icefall.evm.indexing.reorgs import ReorgRules
from icefall.evm.indexing.state_lookups import ContractCache
from icefall.evm.indexing.token_layouts import TokenLayouts
from icefall.evm.layouts.proof import Prover
from icefall.evm.model import StoredRaw
from icefall.evm.status import ChainStatus, UpstreamStatus, decode_status, encode_status, serve_indexer_calls, status_of
from icefall.evm.storing.holders import count_all, count_some
from icefall.evm.storing.messages import prepare_messages
from icefall.evm.storing.raw import drop_marks, has_unwanted_marks
from icefall.evm.storing.store import ChainStore
from icefall.metrics.store import RollupWriter
from icefall.observe.counters import Rate
from icefall.observe.log import Log
from icefall.upstream.client import UpstreamFailure
from icefall.upstream.evm.upstream import EvmUpstream, RequiredTraces
from icefall.webhooks.filling import WebhookFilling
from icefall.webhooks.outbox import Outbox
from icefall.wire.genesis.network import KNOWN_NETWORKS
from icefall.wire.ids import id_from_text

_STATUS_EVERY_S = 2.0
_RETRY_S = 5.0
_COUNT_EVERY_S = 2.0
_FILL_RETRY_S = 30.0
_FAILED = "its latest call failed; the log says why"


class IndexedChain:
    """One chain. It owns its store and closes it. `created`: reads what the P-Chain created with its EVM chain ID."""

    def __init__(
        self,
        chain: ChainConfig,
        blocks: BlockRange,
        store: Store,
        guard: DiskGuard,
        decoder: BlockDecoder,
        log: Log,
        *,
        outbox: Outbox | None = None,
        created: Created | None = None,
        audit_interval: int,
        verify_roots: bool,
        reorg_depth_max: int,
        poll_s: float,
    ) -> None:
        self._outbox = outbox = outbox or Outbox(chain.id)
        self._chain = chain
        self.log = log
        self._store = GuardedStore(store, guard)
        self._chain_store = ChainStore(
            self._store, [RollupWriter(), outbox], chain.cumulative_tx_offset, outbox.prepare
        )
        self._status_store = ChainStore(store)  # the status is little, and says why nothing else is stored
        self._status_stored = _stored_status(self._chain_store)
        self._counts_before = self._status_stored.counts if self._status_stored is not None else {}
        self._status_stored_at = 0.0
        self._upstream_seen = False  # by the status that was stored last
        self._rate = Rate(time.time(), 0)
        self._upstream = upstream_of(chain, self._chain_store, log)
        # What is not blocks, over connections of its own: a slow call there must not make the follower back off.
        self._background = upstream_of(chain, self._chain_store, log)
        self.auditor = Auditor(self._chain_store, self._background, audit_interval, log)
        self._contracts = ContractCache(self._chain_store, self._upstream, self._messengers)
        self._linking = ChainLinking(self._status_store, chain.id, id_or_empty(chain.blockchain_id), created, log)
        self._kept = kept = StoredRaw(chain.store_logs, chain.store_traces)
        self._webhook_filling = self._webhooks(decoder, verify_roots=verify_roots)
        self._message_filling = MessageFilling(self._store, self._background, self._messengers)
        self._filling = RawFilling(self._store, self._background, decoder, kept, verify_roots=verify_roots)
        maker = BatchMaker(
            self._chain_store,
            self._upstream,
            self._contracts,
            decoder,
            blocks.first,
            verify_roots=verify_roots,
            raw=kept,
            has_webhooks=outbox.has_webhooks,
            layouts=self._layouts(),
        )
        self.follower = EvmFollower(
            blocks,
            self._chain_store,
            self._upstream,
            maker,
            log,
            rules=reorg_rules(chain, self._upstream, reorg_depth_max),
            poll_s=poll_s,
            meta=partial(_learnt_meta, self._chain_store, self._upstream),
        )

    def _layouts(self) -> TokenLayouts:
        prover = Prover(self._upstream, self._upstream.is_avalanche)
        return TokenLayouts(self._chain_store, prover, self._upstream)

    def _webhooks(self, decoder: BlockDecoder, *, verify_roots: bool) -> WebhookFilling | None:
        fills = self._outbox.fills
        if fills is None:
            return None
        return WebhookFilling(self._chain.id, self._store, fills, self._background, decoder, verify_roots=verify_roots)

    @property
    def _messengers(self) -> tuple[bytes, ...]:
        return messengers_of(self._chain)

    @property
    def name(self) -> str:
        return self._chain.name or self._chain.id

    @property
    def source(self) -> str:
        """The upstream that blocks are fetched from; empty while none can be used."""
        return self._upstream.source_name()

    async def follow(self) -> None:
        configured = id_or_empty(self._chain.blockchain_id)
        binding = Binding(self._chain.id, configured, self.follower.first_block, self._chain.traces)
        reported = await bind(self._chain_store, self._upstream, binding, self.log, self._report)
        self._contracts.native_asset_id = avax_asset_of(await self._linking.update(reported))
        if has_unwanted_marks(self._chain_store.read, self._kept):
            # From the next block on they would be wrong. This is little, and written on a full disk too.
            await self._status_store.write(partial(drop_marks, kinds=self._kept))
        await self._status_store.write(partial(prepare_messages, messengers=self._messengers))
        await self.follower.run()
        await self._finish()

    def _report(self, problem: str) -> None:
        self.follower.status.problem = problem

    async def _finish(self) -> None:
        """Complete what answers still need after the last block of an index that has one; retried until it is there.
        Holders at the same time as the rest: one waits for the store's server, the other mostly for the upstream."""
        tasks = [asyncio.create_task(count_all(self._store)), asyncio.create_task(self._finish_tokens())]
        try:
            ended, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
            for task in ended:
                task.result()  # or what it failed with
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _finish_tokens(self) -> None:
        """Their names after the audits, which may ask for some of them again."""
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

    async def count_holders(self) -> None:
        """Count holders in the background. While blocks are fetched in bulk it waits: counting afterwards writes each
        row once."""
        while True:
            try:
                more = self.follower.status.synced and await count_some(self._store)
            except StoreError as error:  # a full disk, for example
                self.log.warn("holders cannot be counted, trying again", error=str(error))
                more = False
            await self._background.clock.sleep(0 if more else _COUNT_EVERY_S)

    async def fill_raw(self) -> None:
        """Logs and calls of blocks that were stored without them: in the background, while there are no new blocks."""
        problem = ""
        while True:
            more = False
            try:
                more = self.follower.status.synced and await self._filling.step()
                problem = ""
                if not more and self.follower.status.synced and not (self._kept.logs or self._kept.calls):
                    return
            except (StoreError, UpstreamFailure, DecoderDied) as error:
                if str(error) != problem:
                    self.log.warn("older logs and calls cannot be stored, trying again", error=str(error))
                problem = str(error)
            await self._background.clock.sleep(0 if more else _COUNT_EVERY_S if not problem else _FILL_RETRY_S)

    async def fill_messages(self) -> None:
        """Fill in the events of messengers of blocks that were stored without them, while there are no new blocks."""
        problem = ""
        while True:
            more = False
            try:
                more = self.follower.status.synced and await self._message_filling.step()
                problem = ""
            except (StoreError, UpstreamFailure) as error:
                if str(error) != problem:
                    self.log.warn("messages of older blocks cannot be stored, trying again", error=str(error))
                problem = str(error)
            await self._background.clock.sleep(0 if more else _COUNT_EVERY_S if not problem else _FILL_RETRY_S)

    async def link(self) -> None:
        """Follow which blockchain of its network this chain is."""
        await self._linking.look_forever(self._background)

    async def fill_webhooks(self) -> None:
        """Match webhooks with blocks that were stored before they were created, while there are no new blocks."""
        problem = ""
        while self._webhook_filling is not None:
            more = False
            try:
                if self.follower.status.synced:
                    await self._outbox.start_older(self._chain_store.tip)
                    more = await self._webhook_filling.step()
                problem = ""
            except (StoreError, UpstreamFailure, DecoderDied) as error:
                if str(error) != problem:
                    self.log.warn("webhooks cannot be matched with older blocks, trying again", error=str(error))
                problem = str(error)
            await self._background.clock.sleep(0 if more else _COUNT_EVERY_S if not problem else _FILL_RETRY_S)
        await asyncio.Event().wait()

    async def serve_calls(self, data_dir: Path) -> None:
        """Answer the calls of workers."""
        commands = {"reindex_nft": partial(reindex_nft, self._store)}
        await serve_indexer_calls(data_dir, self._chain.id, commands, self.log)

    async def store_status(self, *, last: bool = False) -> None:
        """What workers report of this indexer; every two seconds, at the end, and at once when it has a new problem or
        its upstream has answered for the first time."""
        now = time.time()
        problem = self.follower.status.problem
        is_new = bool(problem) and (self._status_stored is None or self._status_stored.problem != problem)
        is_new |= bool(self.follower.status.upstream_seen_at) and not self._upstream_seen
        if last or is_new or now - self._status_stored_at >= _STATUS_EVERY_S:
            self._status_stored_at = now
            self._upstream_seen = bool(self.follower.status.upstream_seen_at)
            self._rate.note(now, self.follower.status.blocks)
            tip = self._chain_store.tip()
            self.follower.status.audits_dropped = self.auditor.dropped
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
                blocks_per_s=self._rate.per_second(now, self.follower.status.blocks),
                upstreams=_upstream_states(self._upstream),
                warning=self._linking.warning,
            )
            await self._status_store.put_meta({"status": encode_status(status)})
            self._status_stored = status

    async def close(self) -> None:
        await self._upstream.close()
        await self._background.close()
        self._outbox.close()
        self._chain_store.close()


def _stored_status(store: ChainStore) -> ChainStatus | None:
    text = store.meta("status")
    return decode_status(text) if text else None


def _upstream_states(upstream: EvmUpstream) -> tuple[UpstreamStatus, ...]:
    """Failures are not quoted: they may contain what an upstream's address keeps secret."""
    disabled, failing = upstream.pool.disabled(), upstream.pool.failing()
    usable = {source.name for source in upstream.pool.usable()}
    return tuple(
        UpstreamStatus(name, "disabled", disabled[name])
        if name in disabled
        else UpstreamStatus(name, "usable" if name in usable else "backing off", _FAILED if name in failing else "")
        for name in (source.name for source in upstream.pool.members)
    )


def _learnt_meta(store: ChainStore, upstream: EvmUpstream) -> dict[str, str]:
    """Which traces an index was begun with, and its block 0: once they are known, which may be after the start."""
    required, genesis = upstream.required, upstream.genesis_hash
    meta = {"has_calls": str(int(required.calls)), "has_diffs": str(int(required.diffs))} if required else {}
    if genesis is not None and store.meta("genesis_hash") is None:
        meta["genesis_hash"] = genesis
    return meta


def upstream_of(chain: ChainConfig, store: ChainStore, log: Log) -> EvmUpstream:
    """An index begun with traces is not continued without."""
    calls, diffs = store.meta("has_calls"), store.meta("has_diffs")
    required = RequiredTraces(calls == "1", diffs == "1") if calls and diffs else None
    genesis = None if chain.development else partial(store.block_hash, 0)
    return EvmUpstream(
        chain.rpc,
        int(chain.id),
        log,
        required=required,
        traces=chain.traces,
        genesis=genesis,
        busy_block=store.newest_busy_block,
    )


def reorg_rules(chain: ChainConfig, upstream: EvmUpstream, depth_max: int) -> ReorgRules:
    """Blocks of Avalanche's own chains are final once accepted, unless the settings of the chain say otherwise."""

    def is_final() -> bool:
        if chain.final is not None:
            return chain.final
        return upstream.is_avalanche()

    return ReorgRules(chain.id, depth_max, is_final, chain.development)


def messengers_of(chain: ChainConfig) -> tuple[bytes, ...]:
    return tuple(bytes.fromhex(one[2:]) for one in chain.teleporter)


def id_or_empty(text: str) -> bytes:
    return id_from_text(text) if text else b""


def avax_asset_of(blockchain_id: bytes) -> bytes:
    """The asset that atomic transactions move as native coin; empty if unknown, then balances are read from state."""
    return next((one.avax_asset_id for one in KNOWN_NETWORKS.values() if one.c_chain_id == blockchain_id), b"")
