"""Runs the enrichment loops concurrently. Each works in small rounds, sleeps when nothing is due, backs off on errors.

They do not delay blocks: they use an upstream object of their own, and their transactions are short.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable

import msgspec
from yarl import URL

from icefall.db.engine import Store
from icefall.evm.enriching.counts import EnrichCounts
from icefall.evm.enriching.feeds import SIZE_MAX, FeedImport, FileFeed, HttpFeed
from icefall.evm.enriching.guarded_fetcher import FetchLimits, GuardedFetcher
from icefall.evm.enriching.nft_loop import NftMetadataLoop, NftSettings
from icefall.evm.enriching.prices import Prices, Reputations, prices_of, put_prices, put_reputations, reputations_of
from icefall.evm.enriching.token_loop import TokenMetadataLoop
from icefall.upstream.evm.upstream import EvmUpstream
from icefall.upstream.meter import Clock
from icefall.upstream.pool import PoolLog

IDLE_S = 2.0
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 1.0, 300.0


class EnrichSettings(msgspec.Struct, frozen=True):
    """`prices`: a path or an http(s) URL, empty for none. `reputation`: a path, empty for none."""

    nfts: NftSettings = NftSettings()
    prices: str = ""
    prices_every_s: float = 300.0
    reputation: str = ""


async def enrich_forever(
    store: Store,
    upstream: EvmUpstream,
    settings: EnrichSettings,
    log: PoolLog,
    *,
    counts: EnrichCounts | None = None,
    clock: Clock | None = None,
    wall: Callable[[], float] = time.time,
    guard: GuardedFetcher | None = None,
) -> None:
    """Until cancelled. `upstream` must not be the one that fetches blocks: slow calls here would make it back off."""
    counts, clock = counts or EnrichCounts(), clock or Clock()
    rounds = rounds_of(store, upstream, settings, log, counts=counts, clock=clock, wall=wall, guard=guard)
    async with asyncio.TaskGroup() as group:
        for name, one_round in rounds.items():
            group.create_task(_forever(name, one_round, log, counts, clock))


def rounds_of(
    store: Store,
    upstream: EvmUpstream,
    settings: EnrichSettings,
    log: PoolLog,
    *,
    counts: EnrichCounts,
    clock: Clock,
    wall: Callable[[], float] = time.time,
    guard: GuardedFetcher | None = None,
) -> dict[str, Callable[[], Awaitable[bool]]]:
    """One round of each loop, by name. A round returns whether there was something to do."""
    nfts = settings.nfts
    guard = guard or GuardedFetcher(allow=nfts.allow, trusted=[nfts.gateway])
    price_feed = _feed(settings.prices, settings.prices_every_s, clock)
    reputation_feed = FileFeed(settings.reputation) if settings.reputation else None
    prices = FeedImport[Prices]("prices", price_feed, prices_of, put_prices, {}, store=store, counts=counts, log=log)
    reputations = FeedImport[Reputations](
        "reputation", reputation_feed, reputations_of, put_reputations, {}, store=store, counts=counts, log=log
    )
    return {
        "tokens": TokenMetadataLoop(store, upstream, counts, wall).round,
        "nfts": NftMetadataLoop(store, upstream, guard, nfts, counts, wall, log).round,
        "prices": prices.round,
        "reputation": reputations.round,
    }


def _feed(source: str, every_s: float, clock: Clock) -> FileFeed | HttpFeed | None:
    if "://" not in source:
        return FileFeed(source) if source else None
    limits = FetchLimits(total_s=60.0, size_max=SIZE_MAX, at_once=1)
    return HttpFeed(source, GuardedFetcher(trusted=[str(URL(source).origin())], limits=limits), every_s, clock)


async def _forever(
    name: str, one_round: Callable[[], Awaitable[bool]], log: PoolLog, counts: EnrichCounts, clock: Clock
) -> None:
    failures, last_error = 0, ""
    while True:
        try:
            busy = await one_round()
            failures, last_error = 0, ""
        except Exception as error:
            counts.failures[name] += 1
            failures += 1
            if repr(error) != last_error:
                last_error = repr(error)
                log.warn(f"enrichment of {name} failed, backing off", error=last_error)
            await clock.sleep(min(_LONGEST_PAUSE_S, _FIRST_PAUSE_S * 2.0 ** min(failures - 1, 16)))
            continue
        if not busy:
            await clock.sleep(IDLE_S)
