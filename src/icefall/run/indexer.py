"""The indexer: follows every `[[chain]]` into its own store and fetches in the background what blocks do not contain.

One process for all chains. Each has its own lock, store and upstreams; one that cannot go on does not stop another. A
chain whose store cannot be used is set aside. Under a supervisor it is tried again every few seconds.
"""

import asyncio
import gc
import sys
import time
from collections.abc import Callable
from contextlib import AsyncExitStack, ExitStack, closing
from pathlib import Path
from typing import Any, NamedTuple

from icefall.access.reopened_store import ReopenedStore
from icefall.access.usage_store import UsageStore
from icefall.config.settings import ChainConfig, Config
from icefall.db.disk import DiskGuard, DiskLow
from icefall.db.engine import StoreError, StoreInUse, StoreLost, StoreUnreachable
from icefall.errors import StartRefused
from icefall.evm.auditing.verify import Verification, stored_blocks, summary
from icefall.evm.auditing.verify_state import StateVerification, state_summary
from icefall.evm.enriching.loops import EnrichSettings
from icefall.evm.enriching.nft_loop import NftSettings
from icefall.evm.following.decoder import GC_THRESHOLDS, BlockDecoder
from icefall.evm.following.decoder_processes import ProcessBlockDecoder, default_processes
from icefall.evm.following.follower import BlockRange, FollowerStatus
from icefall.evm.following.progress import Display
from icefall.evm.storing.store import ChainStore
from icefall.observe.log import Logs, open_logs
from icefall.run.accept_reorg import run_accept_reorg
from icefall.run.chain_configs import put_chain_configs
from icefall.run.child import watch_stop
from icefall.run.data_dir import create_data_dir
from icefall.run.indexed_chain import IndexedChain, avax_asset_of, id_or_empty, upstream_of
from icefall.run.node_setup import log_rotation
from icefall.run.stores import Stores, stores_of
from icefall.upstream.client import UpstreamFailure
from icefall.upstream.evm.upstream import EvmUpstream

_SHOW_EVERY_S = 0.5
_STANDBY_S = 1.0  # before a standby tries again to become the writer
_REOPEN_S = 5.0  # before the store of a chain that was set aside is tried again


def run_index(config: Config) -> int:
    """`icefall index`, in this process."""
    create_data_dir(Path(config.data_dir))
    try:
        if config.verify or config.verify_all:
            return asyncio.run(run_verify(config, lambda text: print(text, flush=True)))
        if config.accept_reorg:
            return asyncio.run(run_accept_reorg(config, indexer_logs(config), lambda text: print(text, flush=True)))
        with closing(stores_of(config)) as stores:
            put_chain_configs(config, stores)
        return asyncio.run(run_indexer(config, show=True))
    except StoreError as error:
        raise StartRefused(str(error)) from error
    finally:
        sys.stderr.flush()


async def run_indexer(config: Config, *, show: bool) -> int:
    """Until stopped, or until every chain is at its last block; 1 if one of them failed. `show`: with a display of the
    progress, and not as a child of a supervisor."""
    stopped: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    def stop(code: int) -> None:
        if not stopped.done():
            stopped.set_result(code)

    watch_stop(stop, supervised=not show)
    gc.freeze()  # modules live as long as the process: they need not be scanned again and again
    gc.set_threshold(*GC_THRESHOLDS)
    display = Display() if show else None
    logs = indexer_logs(config, display)
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


class _Setback(NamedTuple):
    """Why a chain cannot be written now. `waits`: only the disk, the server of its store or its other writer is in the
    way."""

    reason: str
    waits: bool


class _Indexing:
    """Opens, follows and closes the chains of this process. `statuses` are by name, of those set aside too."""

    def __init__(self, config: Config, logs: Logs, decoder: BlockDecoder, *, retries: bool) -> None:
        self._config = config
        self.stores = stores_of(config)
        self._logs = logs
        self._decoder = decoder
        self._retries = retries
        self._opened: set[str] = set()
        self._background: dict[IndexedChain, list[asyncio.Task[None]]] = {}
        self._lost: dict[IndexedChain, asyncio.Future[str]] = {}  # why the store of a chain must be opened again
        self.statuses: dict[str, FollowerStatus] = {}

    async def run_chain(self, entry: ChainConfig) -> None:
        """Until its last block is stored, or it cannot be indexed. While another process writes its store on a server,
        this one waits as its standby."""
        log, problem = self._logs[_log_name(entry)], ""
        while (setback := await self._try_chain(entry)) is not None:
            if setback.reason != problem and setback.waits:
                log.warn("the chain is not indexed yet", why=setback.reason)
            elif setback.reason != problem:
                log.error("the chain is set aside", why=setback.reason)
            problem = setback.reason
            if not (self._retries or setback.waits):
                return
            await asyncio.sleep(_STANDBY_S if setback.waits else _REOPEN_S)

    async def _try_chain(self, entry: ChainConfig) -> _Setback | None:
        name = entry.name or entry.id
        try:
            chain = self._open(entry)
        except Exception as error:  # whatever is wrong with the files of one chain must not stop the others
            waits = isinstance(error, DiskLow)  # there is no store yet, and none is created
            waits = waits or (isinstance(error, StoreInUse) and error.can_wait)
            waits = waits or (isinstance(error, StoreUnreachable) and name in self._opened)
            self.statuses[name] = FollowerStatus(problem=_reason(error), stopped=not waits)
            return _Setback(_reason(error), waits)
        self._opened.add(name)
        reason = await self._follow(chain)
        if not reason:
            return None
        await self._close(chain)
        return _Setback(reason, waits=bool(self.stores.chain_url(entry.id)))

    async def _follow(self, chain: IndexedChain) -> str:
        """As the function of that name. It ends too when the session of the store is lost while no block comes and only
        the status is written."""
        following, lost = asyncio.create_task(_follow(chain)), self._lost[chain]
        try:
            await asyncio.wait({following, lost}, return_when=asyncio.FIRST_COMPLETED)
            return following.result() if following.done() else lost.result()
        finally:
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)

    def _open(self, entry: ChainConfig) -> IndexedChain:
        chain = _indexed_chain(entry, self._config, self.stores, self._logs, self._decoder)
        self.statuses[chain.name] = chain.follower.status
        settings = _enrich_settings(entry, self._config)
        calls = chain.serve_calls(Path(self._config.data_dir))
        loops = (chain.enrich(settings), chain.audit(), chain.count_holders(), chain.fill_raw(), calls)
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
        self.stores.close()


def _indexed_chain(
    chain: ChainConfig, config: Config, stores: Stores, logs: Logs, decoder: BlockDecoder
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
            logs[_log_name(chain)],
            audit_interval=config.audit_interval,
            verify_roots=_verify_roots(chain, config),
            reorg_depth_max=config.reorg_depth_max,
            poll_s=config.poll_interval / 1e9,
        )
        on_failure.pop_all()  # from here it closes its store
    return indexed


def _verify_roots(chain: ChainConfig, config: Config) -> bool:
    return config.verify_roots if chain.verify_roots is None else chain.verify_roots


def _enrich_settings(chain: ChainConfig, config: Config) -> EnrichSettings:
    nfts = NftSettings(config.nft_metadata, config.ipfs_gateway, config.nft_metadata_networks)
    return EnrichSettings(nfts, chain.prices, chain.prices_interval / 1e9, chain.reputation)


async def _until(following: list[asyncio.Task[None]], stopped: asyncio.Future[int], *, for_ever: bool) -> None:
    """Until stopped, or nothing is left to follow. Under a supervisor the latter is no end: it would be restarted."""
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


def _log_name(chain: ChainConfig) -> str:
    return f"chain-{chain.id}"


def indexer_logs(config: Config, display: Display | None = None) -> Logs:
    """Lines for the terminal go through the display, which keeps its own below them."""
    levels = config.log_level.upper(), config.log_display_level.upper()
    names = ["main", *map(_log_name, config.chain)]
    return open_logs(
        "indexer",
        names,
        Path(config.log_dir),
        levels,
        config.log_format,
        rotation=log_rotation(config),
        terminal=display,
    )


async def run_verify(config: Config, write_line: Callable[[str], None]) -> int:
    """`icefall index --verify`: 1 if something is stored that the upstream does not have, or nothing was compared."""
    logs, stores, agree = indexer_logs(config), stores_of(config), True
    for chain in config.chain:
        if not stores.has_chain_store(chain.id):
            raise StartRefused(f"chain {chain.id} is not indexed in {config.data_dir}: nothing to verify")
        store = ChainStore(stores.chain_store(chain.id, exclusive=False))
        upstream = upstream_of(chain, store, logs[_log_name(chain)])
        try:
            agree = await _verify_chain(chain, config, store, upstream, write_line) and agree
        except UpstreamFailure as error:
            raise StartRefused(f"chain {chain.id} cannot be compared: {error}") from error
        finally:
            await upstream.close()
            store.close()
    return 0 if agree else 1


async def _verify_chain(
    chain: ChainConfig, config: Config, store: ChainStore, upstream: EvmUpstream, write_line: Callable[[str], None]
) -> bool:
    """Blocks first, then state at the last of them. Whether both are as stored."""
    name = chain.name or chain.id
    compared: list[int] = []
    blocks = stored_blocks(store, config.first_block, config.last_block)
    asset = avax_asset_of(id_or_empty(store.meta("blockchain_id") or ""))
    roots = _verify_roots(chain, config)
    verification = Verification(store, upstream, bytes.fromhex(chain.teleporter[2:]), asset, verify_roots=roots)
    found = await verification.run(blocks, compared.append)
    write_line(summary(name, len(compared), found))
    if not compared:
        return False
    last, block_hash = blocks[-1], store.block_hash(blocks[-1])
    if block_hash is None or await upstream.block_hash(last) != block_hash:
        write_line(f"{name}: state cannot be compared: block {last} is another one at the upstream")
        return False
    state = await StateVerification(store, upstream, last, block_hash).run(everything=config.verify_all)
    write_line(state_summary(name, state))
    return not (found or state.differences)
