"""The indexer: every `[[chain]]` followed into its own store, and what blocks do not say looked up beside.

One process for all chains; each has its lock, its store, its upstreams. One that cannot go on does not stop another.
"""

import asyncio
import os
import signal
import sys
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import Any

from icefall.config.load import ChainConfig, Config
from icefall.db.engine import StoreError
from icefall.db.lock import StoreLock
from icefall.db.sqlite import SqliteStore
from icefall.errors import StartRefused
from icefall.evm.auditing.audit import Audit
from icefall.evm.auditing.verify import Verification, summary
from icefall.evm.enriching.loops import EnrichSettings, enrich_forever
from icefall.evm.enriching.nfts import NftSettings
from icefall.evm.following.binding import Binding, bind
from icefall.evm.following.contracts import ContractCache
from icefall.evm.following.decoder import BlockDecoder, ProcessBlockDecoder
from icefall.evm.following.follower import BlockRange, EvmFollower, FollowerStatus, NoCommonBlock
from icefall.evm.following.progress import Display
from icefall.evm.following.runs import BatchMaker
from icefall.evm.following.status import decode_status, encode_status, status_of
from icefall.evm.storing.store import PACKAGE, ChainStore, store_path
from icefall.metrics.store import RollupWriter
from icefall.observe.log import Log, Logs, open_logs
from icefall.run.supervisor import when_orphaned
from icefall.upstream.client import UpstreamFailure
from icefall.upstream.evm.upstream import EvmUpstream, Needs
from icefall.wire.genesis.network import KNOWN_NETWORKS
from icefall.wire.ids import id_from_text

_SHOW_EVERY_S = 0.5
_STATUS_EVERY_S = 2.0


class IndexedChain:
    """One chain, its store open and locked."""

    def __init__(self, chain: ChainConfig, config: Config, log: Log, workshop: BlockDecoder) -> None:
        data_dir = Path(config.data_dir)
        path = store_path(data_dir, chain.id)
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.chain = chain
        self.name = chain.name or chain.id
        self.log = log
        self._lock = StoreLock(path.with_suffix(".lock"))
        self._sqlite = SqliteStore(path, PACKAGE)
        self.store = ChainStore(self._sqlite, [RollupWriter()], chain.cumulative_tx_offset)
        self._before = _counts_before(self.store)
        self._told_at = 0.0
        self._workshop = workshop
        self.upstream = upstream_of(chain, self.store, log)
        self._facts = facts_of(chain, self.store, self.upstream)
        self.follower = self._follower(config)

    def _follower(self, config: Config) -> EvmFollower:
        first = self.chain.start_block if config.first_block is None else config.first_block
        blocks = BlockRange(first, config.last_block, self.chain.confirmations)
        maker = BatchMaker(self.store, self.upstream, self._facts, self._workshop, first)
        return EvmFollower(
            blocks,
            self.store,
            self.upstream,
            maker,
            Audit(self.store, self.upstream),
            self.log,
            final=self._is_final,
            remember=partial(_remembered, self.upstream),
        )

    def _is_final(self) -> bool:
        """Blocks of Avalanche's own chains are final once accepted."""
        return any(can.block_extra_data for can in self.upstream.capabilities().values())

    async def run(self) -> None:
        binding = Binding(self.chain.id, _id(self.chain.blockchain_id), self.follower.first_block)
        self._facts.native_asset_id = _avax_of(await bind(self.store, self.upstream, binding, self.log))
        await self.follower.run()

    async def enrich(self, settings: EnrichSettings) -> None:
        """Over connections of its own: a slow answer here is no reason to rest an upstream that gives blocks."""
        upstream = upstream_of(self.chain, self.store, self.log)
        try:
            await enrich_forever(self._sqlite, upstream, settings, self.log)
        finally:
            await upstream.close()

    async def tell(self, *, last: bool = False) -> None:
        """Now and then, what workers should know."""
        now = time.time()
        if last or now - self._told_at >= _STATUS_EVERY_S:
            self._told_at = now
            status = status_of(
                self.follower.standing, self._before, self.upstream.degraded(), now, self.upstream.clock.now()
            )
            await self.store.put_facts({"status": encode_status(status)})

    async def close(self) -> None:
        await self.upstream.close()
        self.store.close()
        self._lock.release()


def _counts_before(store: ChainStore) -> dict[str, int]:
    told = store.fact("status")
    return decode_status(told).counts if told else {}


def _id(text: str) -> bytes:
    return id_from_text(text) if text else b""


def upstream_of(chain: ChainConfig, store: ChainStore, log: Log) -> EvmUpstream:
    """An index begun with traces is not continued without."""
    calls, diffs = store.fact("has_calls"), store.fact("has_diffs")
    needs = Needs(calls == "1", diffs == "1") if calls and diffs else None
    return EvmUpstream(chain.rpc, int(chain.id), log, needs=needs)


def facts_of(chain: ChainConfig, store: ChainStore, upstream: EvmUpstream) -> ContractCache:
    return ContractCache(store, upstream, bytes.fromhex(chain.teleporter[2:]))


def _avax_of(blockchain_id: bytes) -> bytes:
    """The asset that atomic transactions move as native money; empty: state is asked instead."""
    return next((one.avax_asset_id for one in KNOWN_NETWORKS.values() if one.c_chain_id == blockchain_id), b"")


def _remembered(upstream: EvmUpstream) -> dict[str, str]:
    """What an index was begun with, once that is known."""
    needs = upstream.needs
    return {"has_calls": str(int(needs.calls)), "has_diffs": str(int(needs.diffs))} if needs is not None else {}


def enrich_settings(chain: ChainConfig, config: Config) -> EnrichSettings:
    nfts = NftSettings(config.nft_metadata, config.ipfs_gateway, config.nft_metadata_networks)
    return EnrichSettings(nfts, chain.prices, chain.prices_interval / 1e9, chain.reputation)


async def run_indexer(config: Config, *, show: bool) -> int:
    """Until told to stop, or until every chain is where it should end; 1 if one of them stopped short."""
    stopped: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    _hear(stopped, supervised=not show)
    logs = _logs(config)
    workshop: BlockDecoder = ProcessBlockDecoder(roots=config.verify_roots)
    display = Display() if show else None
    async with AsyncExitStack() as opened:
        opened.callback(workshop.close)
        chains = []
        for chain in config.chain:
            one = IndexedChain(chain, config, logs[_log_name(chain)], workshop)
            opened.push_async_callback(one.close)
            chains.append(one)
        following = [asyncio.create_task(_followed(one)) for one in chains]
        beside = [asyncio.create_task(one.enrich(enrich_settings(one.chain, config))) for one in chains]
        beside.append(asyncio.create_task(_tell_forever(chains, display)))
        await _until(following, stopped, for_ever=not show)
        for task in (*following, *beside):
            task.cancel()
        await asyncio.gather(*following, *beside, return_exceptions=True)
        for one in chains:
            await _tell(one, last=True)
        if display is not None:
            display.finish(time.monotonic(), _standings(chains))
        if stopped.done():
            return stopped.result()
        return 1 if any(one.follower.standing.stopped for one in chains) else 0


async def _until(following: list[asyncio.Task[None]], stopped: asyncio.Future[int], *, for_ever: bool) -> None:
    """Told to stop, or nothing left to follow. Under a supervisor the latter is no end: it would be begun again."""
    left: set[asyncio.Future[Any]] = {*following, stopped}
    while not stopped.done() and (for_ever or len(left) > 1):
        _, left = await asyncio.wait(left, return_when=asyncio.FIRST_COMPLETED)


async def _followed(one: IndexedChain) -> None:
    try:
        await one.run()
    except (NoCommonBlock, StartRefused, StoreError) as error:
        one.follower.standing.problem, one.follower.standing.stopped = str(error), True
        one.log.error("the chain cannot be indexed", why=str(error))
    except Exception as bug:
        one.follower.standing.problem, one.follower.standing.stopped = f"{type(bug).__name__}: {bug}", True
        one.log.fatal("the chain cannot be indexed", error=repr(bug))


async def _tell_forever(chains: list[IndexedChain], display: Display | None) -> None:
    while True:
        for one in chains:
            await _tell(one)
        if display is not None:
            display.show(time.monotonic(), _standings(chains))
        await asyncio.sleep(_SHOW_EVERY_S)


async def _tell(one: IndexedChain, *, last: bool = False) -> None:
    try:
        await one.tell(last=last)
    except StoreError as error:  # a full disk, say: the follower meets it too, and says so
        one.log.warn("the status cannot be stored", why=str(error))


def _standings(chains: list[IndexedChain]) -> dict[str, FollowerStatus]:
    return {one.name: one.follower.standing for one in chains}


def _log_name(chain: ChainConfig) -> str:
    return f"chain-{chain.id}"


def _logs(config: Config) -> Logs:
    levels = config.log_level.upper(), config.log_display_level.upper()
    names = ["main", *map(_log_name, config.chain)]
    return open_logs("indexer", names, Path(config.log_dir), levels, config.log_format)


def _hear(stopped: asyncio.Future[int], *, supervised: bool) -> None:
    loop = asyncio.get_running_loop()

    def stop(code: int) -> None:
        if not stopped.done():
            stopped.set_result(code)

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop, 0)
    if supervised:
        when_orphaned(lambda line: None if line else _told(loop, stop))


def _told(loop: asyncio.AbstractEventLoop, stop: Callable[[int], None]) -> None:
    """The supervisor is gone; a thread has heard it."""
    loop.call_soon_threadsafe(stop, 1)


async def run_verify(config: Config, say: Callable[[str], None]) -> int:
    """`icefall index --verify`: 1 if a stored block is not what the upstream has."""
    logs, differ = _logs(config), False
    for chain in config.chain:
        path = store_path(Path(config.data_dir), chain.id)
        if not path.exists():
            raise StartRefused(f"chain {chain.id} is not indexed in {config.data_dir}: nothing to verify")
        store = ChainStore(SqliteStore(path, PACKAGE))
        upstream = upstream_of(chain, store, logs[_log_name(chain)])
        compared: list[int] = []
        try:
            own_id = _id(store.fact("blockchain_id") or "")
            messenger = bytes.fromhex(chain.teleporter[2:])
            verification = Verification(store, upstream, messenger, _avax_of(own_id))
            found = await verification.run(config.first_block, config.last_block, compared.append)
        except UpstreamFailure as error:
            raise StartRefused(f"chain {chain.id}: {error}") from error
        finally:
            await upstream.close()
            store.close()
        say(summary(chain.name or chain.id, len(compared), found))
        differ = differ or bool(found)
    return 1 if differ else 0


def run_index(config: Config) -> int:
    """`icefall index`, in this process."""
    data_dir = Path(config.data_dir)
    try:
        data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise StartRefused(f"the data directory {data_dir} cannot be made: {error.strerror}") from error
    if not os.access(data_dir, os.W_OK | os.X_OK):
        raise StartRefused(f"the data directory {data_dir} cannot be written: Permission denied")
    try:
        if config.verify:
            return asyncio.run(run_verify(config, lambda text: print(text, flush=True)))
        return asyncio.run(run_indexer(config, show=True))
    except StoreError as error:
        raise StartRefused(str(error)) from error
    finally:
        sys.stderr.flush()
