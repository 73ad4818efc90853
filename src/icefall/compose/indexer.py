"""The indexer: follows every `[[chain]]` into its own store and fetches in the background what blocks do not contain.

One process for all chains. Each has its own lock, store and upstreams; one that cannot go on does not stop another. A
chain whose store cannot be used is set aside. Under a supervisor it is tried again every few seconds.
"""

import asyncio
import gc
import time
from contextlib import AsyncExitStack, ExitStack
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from icefall.access.store import ReopenedStore
from icefall.access.usage_store import UsageStore
from icefall.compose.child import watch_stop
from icefall.compose.indexed_chain import IndexedChain
from icefall.compose.node_setup import chain_log_name, configured_network, log_rotation, node_logs
from icefall.compose.stored_platform import StoredPlatform
from icefall.compose.stores import Stores, stores_of
from icefall.compose.webhooks import chain_outbox
from icefall.config.settings import ChainConfig, Config
from icefall.db.disk import DiskGuard, DiskLow
from icefall.db.engine import StoreError, StoreInUse, StoreLost, StoreUnreachable
from icefall.errors import StartRefused
from icefall.evm.enriching.loops import EnrichSettings
from icefall.evm.enriching.nft_loop import NftSettings
from icefall.evm.indexing.decoder import GC_THRESHOLDS, BlockDecoder
from icefall.evm.indexing.decoder_processes import ProcessBlockDecoder, default_processes
from icefall.evm.indexing.follower import BlockRange, FollowerStatus
from icefall.evm.indexing.progress import Display
from icefall.observe.log import Logs, open_logs

_SHOW_EVERY_S = 0.5
_STANDBY_S = 1.0  # before a standby tries again to become the writer
_REOPEN_S = 5.0  # before the store of a chain that was set aside is tried again


async def run_indexer(config: Config, *, show: bool) -> int:
    """Index until stopped, or until every chain is at its last block; return 1 if one of them failed. `show`: with a
    display of the progress, and not as a child of a supervisor."""
    stopped: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    def stop(code: int) -> None:
        if not stopped.done():
            stopped.set_result(code)

    watch_stop(stop, supervised=not show)
    gc.freeze()  # modules live as long as the process: they need not be scanned again and again
    gc.set_threshold(*GC_THRESHOLDS)
    display = Display() if show else None
    logs = indexer_logs(config, display) if show else _shared_logs(config)
    decoder = ProcessBlockDecoder(config.decoders or default_processes())
    async with AsyncExitStack() as opened:
        opened.callback(decoder.close)
        decoder.start()
        indexing = _Indexing(config, logs, decoder, retries=not show)
        following = [asyncio.create_task(indexing.run_chain(entry)) for entry in config.chain]
        background = [asyncio.create_task(_report_forever(indexing, display))]
        if show and indexing.stores.url:  # else the owner of the budgets does
            usage = UsageStore(ReopenedStore(indexing.stores.access_store))
            opened.callback(usage.close)
            background.append(asyncio.create_task(usage.drop_old_forever()))
        await _until(following, stopped, for_ever=not show)
        for task in (*following, *background):
            task.cancel()
        await asyncio.gather(*following, *background, return_exceptions=True)
        await indexing.close()
        if display is not None:
            display.finish(time.monotonic(), indexing.statuses, indexing.sources())
        if stopped.done():
            return stopped.result()
        return 1 if any(status.stopped for status in indexing.statuses.values()) else 0


class NotWritable(NamedTuple):
    """Why a chain cannot be written now. `retry_soon`: only the disk, the server of its store or its other writer is
    in the way. `is_standby`: another process writes it, and this one takes over when that ends."""

    reason: str
    retry_soon: bool
    is_standby: bool = False


class _Indexing:
    """Opens, follows and closes the chains of this process. `statuses` are by name, of those set aside too."""

    def __init__(self, config: Config, logs: Logs, decoder: BlockDecoder, *, retries: bool) -> None:
        self._config = config
        self.stores = stores_of(config)
        self._platform = StoredPlatform(self.stores)
        self._logs = logs
        self._decoder = decoder
        self._retries = retries
        self._opened: set[str] = set()
        self._background: dict[IndexedChain, list[asyncio.Task[None]]] = {}
        self._lost: dict[IndexedChain, asyncio.Future[str]] = {}  # why the store of a chain must be opened again
        self.statuses: dict[str, FollowerStatus] = {}

    async def run_chain(self, entry: ChainConfig) -> None:
        """Index one chain until its last block is stored or it cannot be indexed. While another process writes its
        store on a server, this one waits as its standby."""
        log, problem = self._logs[chain_log_name(entry)], ""
        while (not_writable := await self._try_chain(entry)) is not None:
            if not_writable.reason != problem and not_writable.is_standby:
                log.info("standby: another process indexes the chain, this one takes over when it ends")
            elif not_writable.reason != problem and not_writable.retry_soon:
                log.warn("the chain is not indexed yet", why=not_writable.reason)
            elif not_writable.reason != problem:
                log.error("the chain is set aside", why=not_writable.reason)
            problem = not_writable.reason
            if not (self._retries or not_writable.retry_soon):
                return
            await asyncio.sleep(_STANDBY_S if not_writable.retry_soon else _REOPEN_S)

    async def _try_chain(self, entry: ChainConfig) -> NotWritable | None:
        name = entry.name or entry.id
        try:
            chain = self._open(entry)
        except Exception as error:  # whatever is wrong with the files of one chain must not stop the others
            is_standby = isinstance(error, StoreInUse) and error.can_wait
            retry_soon = is_standby or isinstance(error, DiskLow)  # there is no store yet, and none is created
            retry_soon = retry_soon or (isinstance(error, StoreUnreachable) and name in self._opened)
            self.statuses[name] = FollowerStatus(problem=_reason(error), stopped=not retry_soon)
            return NotWritable(_reason(error), retry_soon, is_standby)
        self._opened.add(name)
        reason = await self._follow(chain)
        if not reason:
            return None
        await self._close(chain)
        return NotWritable(reason, retry_soon=bool(self.stores.chain_url(entry.id)))

    async def _follow(self, chain: IndexedChain) -> str:
        """Follow the chain until it ends, or until its store session is lost, also while no block comes and only the
        status is written."""
        following, lost = asyncio.create_task(_follow(chain)), self._lost[chain]
        try:
            await asyncio.wait({following, lost}, return_when=asyncio.FIRST_COMPLETED)
            return following.result() if following.done() else lost.result()
        finally:
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)

    def _open(self, entry: ChainConfig) -> IndexedChain:
        chain = _indexed_chain(entry, self._config, self.stores, self._platform, self._logs, self._decoder)
        self.statuses[chain.name] = chain.follower.status
        settings = _enrich_settings(entry, self._config)
        calls = chain.serve_calls(Path(self._config.data_dir))
        loops = (
            chain.enrich(settings),
            chain.audit(),
            chain.count_holders(),
            chain.fill_raw(),
            chain.fill_messages(),
            chain.fill_webhooks(),
            chain.link(),
            calls,
        )
        self._background[chain] = [asyncio.create_task(loop) for loop in loops]
        self._lost[chain] = asyncio.get_running_loop().create_future()
        return chain

    async def _close(self, chain: IndexedChain) -> None:
        tasks = self._background.pop(chain)
        del self._lost[chain]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await store_status(chain, last=True)
        await chain.close()

    def sources(self) -> dict[str, str]:
        return {chain.name: chain.source for chain in self._background}

    async def store_statuses(self) -> None:
        for chain in list(self._background):
            if chain in self._background:  # not closed meanwhile
                failed = await store_status(chain)
                lost = self._lost.get(chain)
                if isinstance(failed, StoreLost) and lost is not None and not lost.done():
                    lost.set_result(str(failed))

    async def close(self) -> None:
        for chain in list(self._background):
            await self._close(chain)
        self._platform.close()
        self.stores.close()


def _indexed_chain(
    chain: ChainConfig, config: Config, stores: Stores, platform: StoredPlatform, logs: Logs, decoder: BlockDecoder
) -> IndexedChain:
    first = chain.start_block if config.first_block is None else config.first_block
    blocks = BlockRange(first, config.last_block, chain.confirmations)
    guard = DiskGuard(stores.data_dir, config.system_tracker_disk_required_available_space_percentage)
    if not stores.has_chain_store(chain.id):
        guard.check()
    with ExitStack() as on_failure:
        store = stores.chain_store(chain.id)
        on_failure.callback(store.close)
        indexed = IndexedChain(
            chain,
            blocks,
            store,
            guard,
            decoder,
            logs[chain_log_name(chain)],
            outbox=chain_outbox(config, stores, chain.id),
            created=partial(platform.blockchain_ids, int(chain.id)),
            audit_interval=config.audit_interval,
            verify_roots=proves_roots(chain, config),
            reorg_depth_max=config.reorg_depth_max,
            poll_s=config.poll_interval / 1e9,
        )
        on_failure.pop_all()  # from here it closes its store
    return indexed


def proves_roots(chain: ChainConfig, config: Config) -> bool:
    return config.verify_roots if chain.verify_roots is None else chain.verify_roots


def _enrich_settings(chain: ChainConfig, config: Config) -> EnrichSettings:
    nfts = NftSettings(config.nft_metadata, config.ipfs_gateway, config.nft_metadata_networks)
    return EnrichSettings(
        nfts,
        chain.prices,
        chain.prices_interval / 1e9,
        chain.reputation,
        chain.token_list,
        chain.token_list_interval / 1e9,
        int(chain.id),
    )


async def _until(following: list[asyncio.Task[None]], stopped: asyncio.Future[int], *, for_ever: bool) -> None:
    """Wait until stopped, or until nothing is left to follow. Under a supervisor the latter is no end: it would be
    restarted."""
    left: set[asyncio.Future[Any]] = {*following, stopped}
    while not stopped.done() and (for_ever or len(left) > 1):
        _, left = await asyncio.wait(left, return_when=asyncio.FIRST_COMPLETED)


async def _follow(chain: IndexedChain) -> str:
    """Empty when there is nothing left to try, else why it is set aside."""
    status = chain.follower.status
    try:
        await chain.follow()
    except StoreError as error:
        status.problem, status.stopped = str(error), True
        return str(error)
    except StartRefused as error:
        status.problem, status.stopped = str(error), True
        chain.log.error("the chain cannot be indexed", error=str(error))
    except Exception as bug:
        status.problem, status.stopped = f"{type(bug).__name__}: {bug}", True
        chain.log.fatal("the chain cannot be indexed", error=repr(bug))
        return status.problem  # it may be an answer that no one expected: tried again like a store
    return ""


def _reason(error: Exception) -> str:
    return str(error) if isinstance(error, StoreError | StartRefused) else f"{type(error).__name__}: {error}"


async def _report_forever(indexing: _Indexing, display: Display | None) -> None:
    while True:
        await indexing.store_statuses()
        if display is not None:
            display.show(time.monotonic(), indexing.statuses, indexing.sources())
        await asyncio.sleep(_SHOW_EVERY_S)


async def store_status(chain: IndexedChain, *, last: bool = False) -> StoreError | None:
    """Why it could not be stored."""
    try:
        await chain.store_status(last=last)
    except StoreError as error:  # a full disk for example, which stops the follower too
        chain.log.warn("the status cannot be stored", error=str(error))
        return error
    return None


def _shared_logs(config: Config) -> Logs:
    """The loggers of an indexer beside an engine, whose levels an administrator can change."""
    return node_logs(config, "indexer", configured_network(config, int(time.time())), create=False)


def indexer_logs(config: Config, display: Display | None = None) -> Logs:
    """Lines for the terminal go through the display, which keeps its own below them."""
    levels = config.log_level.upper(), config.log_display_level.upper()
    names = ["main", *map(chain_log_name, config.chain)]
    return open_logs(
        "indexer",
        names,
        Path(config.log_dir),
        levels,
        config.log_format,
        rotation=log_rotation(config),
        terminal=display,
    )
