"""Runs the enrichment loops concurrently, and is the loop of tokens; that of NFTs is in nft_loop.py.

Each works in small rounds, sleeps when nothing is due, and backs off on errors.

They do not delay blocks: they use an upstream object of their own, and their transactions are short.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import NamedTuple

import msgspec
from yarl import URL

from icefall.db.engine import Store, Transaction
from icefall.db.statements import load
from icefall.evm.contract_calls import DECIMALS, NAME, SYMBOL, Answers, call_each, decimals_of, text_of
from icefall.evm.enriching.guarded_fetcher import FetchLimits, GuardedFetcher
from icefall.evm.enriching.lists import (
    SIZE_MAX,
    FeedImport,
    FileFeed,
    HttpFeed,
    Prices,
    Reputations,
    prices_of,
    put_prices,
    put_reputations,
    reputations_of,
)
from icefall.evm.enriching.name_parts import put_name_parts
from icefall.evm.enriching.nft_loop import NftMetadataLoop, NftSettings
from icefall.evm.enriching.nft_outcomes import EnrichCounts, retry_pause_s
from icefall.evm.enriching.token_list import ListedTokens, listed_tokens_of, put_listed_tokens
from icefall.upstream.client import UpstreamFailure
from icefall.upstream.evm.errors import NoState, NotThere
from icefall.upstream.evm.state import At, ContractCall
from icefall.upstream.evm.upstream import EvmUpstream
from icefall.upstream.meter import Clock
from icefall.upstream.pool import PoolLog

SQL = load("icefall.evm.enriching", "queries.sql")
TOKENS_AT_ONCE = 50
IDLE_S = 2.0
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 1.0, 300.0
_DEEP = 64  # blocks below the newest of the upstream: most nodes have their state, and few reorganisations are so deep


class EnrichSettings(msgspec.Struct, frozen=True):
    """The settings of all loops. `prices` and `token_list`: a path or an http(s) URL, empty for none. `reputation`: a
    path, empty for none."""

    nfts: NftSettings = NftSettings()
    prices: str = ""
    prices_every_s: float = 300.0
    reputation: str = ""
    token_list: str = ""
    token_list_every_s: float = 3600.0
    chain_id: int = 0  # whose tokens are taken from the token list


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
    """Enrich until cancelled. `upstream` must not be the one that fetches blocks: slow calls here would make it back
    off."""
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
    """A round of each loop, by name. It returns whether there was something to do."""
    nfts = settings.nfts
    guard = guard or GuardedFetcher(allow=nfts.allow, trusted=[nfts.gateway])
    price_feed = _feed(settings.prices, settings.prices_every_s, clock)
    reputation_feed = FileFeed(settings.reputation) if settings.reputation else None
    prices = FeedImport[Prices]("prices", price_feed, prices_of, put_prices, {}, store=store, counts=counts, log=log)
    reputations = FeedImport[Reputations](
        "reputation", reputation_feed, reputations_of, put_reputations, {}, store=store, counts=counts, log=log
    )
    token_feed = _feed(settings.token_list, settings.token_list_every_s, clock)
    token_list = FeedImport[ListedTokens](
        "token_list", token_feed, partial(listed_tokens_of, settings.chain_id), put_listed_tokens, {},
        store=store, counts=counts, log=log,
    )  # fmt: skip
    return {
        "tokens": TokenMetadataLoop(store, upstream, counts, wall).round,
        "nfts": NftMetadataLoop(store, upstream, guard, nfts, counts, wall, log).round,
        "prices": prices.round,
        "reputation": reputations.round,
        "token_list": token_list.round,
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


# -- tokens ------------------------------------------------------------------------------------------------------


class DueToken(NamedTuple):
    """A token whose contract is to be called."""

    token: int
    address: bytes
    failures: int
    version: int  # of its metadata, which may change while it is read


class StoredTip(NamedTuple):
    """The newest stored block."""

    number: int
    block_hash: bytes


class TokenMetadataLoop:
    """Reads name, symbol and decimals of the contracts whose logs have token transfers.

    All three are called on every contract, whatever its standard: a missing function reverts, which counts as an
    answer. A failure of the upstream is retried without limit, at most a day apart: it says nothing about the contract.

    They are read at the newest stored block: what was read at a later one may be of a branch that is never stored, and
    nothing would say that it has to be read again. Where the store is far behind, they are read at a block that no
    reorganisation is likely to replace: what changes after it is seen when it is indexed.
    """

    def __init__(self, store: Store, upstream: EvmUpstream, counts: EnrichCounts, wall: Callable[[], float]) -> None:
        self._store = store
        self._upstream = upstream
        self._counts = counts
        self._wall = wall

    async def round(self) -> bool:
        """Read some tokens that are due. Return whether there were any."""
        now = int(self._wall())
        due = [DueToken(*row) for row in self._store.read(SQL.due_tokens, {"now": now, "count": TOKENS_AT_ONCE})]
        if not due:
            return False
        calls = [[ContractCall(token.address, data) for data in (NAME, SYMBOL, DECIMALS)] for token in due]
        tip = next((StoredTip(*row) for row in self._store.read(SQL.tip)), None)
        try:
            answers = await call_each(self._upstream, calls, await self._block(tip))
        except NotThere:  # the newest stored block is being replaced, or the upstream does not have it yet
            return False
        except NoState:
            tip, answers = None, await call_each(self._upstream, calls)
        await self._store.write(partial(_put_tokens, list(zip(due, answers, strict=True)), now, tip))
        read = sum(not isinstance(answer, UpstreamFailure) for answer in answers)
        self._counts.tokens_read += read
        self._counts.failures["tokens"] += len(due) - read
        return True

    async def _block(self, tip: StoredTip | None) -> At:
        head = await self._upstream.head()
        if tip is None:
            return head
        return tip.block_hash if head - tip.number < _DEEP else head - _DEEP


def _put_tokens(
    read: list[tuple[DueToken, Answers | UpstreamFailure]], now: int, tip: StoredTip | None, tx: Transaction
) -> None:
    """Store what was read while this was the newest block; nothing if it was replaced meanwhile."""
    if tip is not None and not tx.rows(SQL.is_stored, tip._asdict()):
        return
    for due, answers in read:
        row = {"token": due.token, "address": due.address}
        if isinstance(answers, UpstreamFailure):
            tx.run(SQL.postpone_token, row | {"retry_at": now + retry_pause_s(due.failures)})
        else:
            name, symbol, decimals = answers
            metadata = {"name": text_of(name), "symbol": text_of(symbol), "decimals": decimals_of(decimals)}
            if tx.run(SQL.put_token, row | metadata | {"now": now, "version": due.version}):
                put_name_parts(tx, due.token)
