"""Handlers of counts of messages between chains, over all indexed chains."""

from collections import Counter
from typing import Any, NamedTuple

import msgspec
from msgspec import UNSET

from icefall.api.http.paging import Paging
from icefall.api.metrics.handlers import MetricsClock
from icefall.api.metrics.message_schema import (
    SIDES,
    IcmPoint,
    IcmSeries,
    IcmSeriesParams,
    IcmSummary,
    IcmSummaryParams,
    IcmWindows,
    TeleporterMetricParams,
    TeleporterMetricResult,
    TeleporterValue,
)
from icefall.errors import BadRequest, Unavailable
from icefall.evm.reading.directory import ChainDirectory, EvmChain
from icefall.evm.reading.links import BlockchainIds, links_of
from icefall.evm.reading.message_counts import AllCounts, ChainPair, MessageCounts, PairFilter
from icefall.metrics.rollup import DAY_S, HOUR, HOUR_S, SPAN_NAMES, first_from, period_of, start_of
from icefall.wire.evm.messages import RECEIVED, SENT
from icefall.wire.ids import id_text

PERIODS_READ = 128  # at once, with those that are empty
ROUNDS_MAX = 32  # a page of a series with long gaps ends early, and the next one goes on
_SERIES = "icmTimeseries"
_LAST_PAIR = ChainPair(b"\xff" * 33)  # behind all others
_WINDOWS_S = {
    "last_hour": HOUR_S,
    "last_day": DAY_S,
    "last_week": 7 * DAY_S,
    "last_month": 30 * DAY_S,
    "last90_days": 90 * DAY_S,
    "last_year": 365 * DAY_S,
}


class _SeriesPlace(NamedTuple):
    """A point in the order of a series: the newest period first, then by source and destination."""

    before: int  # minus the start of the period
    pair: ChainPair


async def icm_timeseries(params: IcmSeriesParams, chains: ChainDirectory, paging: Paging) -> IcmSeries:
    start, end = params.start_timestamp, params.end_timestamp
    if start is not None and end is not None and start > end:
        raise BadRequest(f"startTimestamp must not be after endTimestamp, got {start} and {end}")
    wanted, counts = await _counted(params, chains)
    cursor = paging.after(_SERIES, params)
    points, more = await _points(counts, wanted, params, None if cursor is None else _unpacked(cursor))
    token = UNSET if more is None else paging.token(_SERIES, params, _packed(more))
    return IcmSeries(results=[_point(*one, wanted) for one in points], next_page_token=token)


async def icm_summary(params: IcmSummaryParams, chains: ChainDirectory, clock: MetricsClock) -> IcmSummary:
    wanted, counts = await _counted(params, chains)
    now = int(clock.now())
    found = {name: await _sums(counts, wanted, _hour_of(now - length)) for name, length in _WINDOWS_S.items()}
    found["all_time"] = await _sums(counts, wanted, None)
    groups = sorted(found["all_time"]) if wanted.by_source or wanted.by_destination else [ChainPair()]
    return IcmSummary(result=[_windows(found, group, wanted) for group in groups])


def _windows(found: dict[str, Counter[ChainPair]], group: ChainPair, wanted: PairFilter) -> IcmWindows:
    fields: dict[str, Any] = {name: sums[group] for name, sums in found.items()}
    return IcmWindows(**fields, **_chains(group, wanted))


async def teleporter_metric(params: TeleporterMetricParams, chains: ChainDirectory) -> TeleporterMetricResult:
    counts = MessageCounts((await chains.find(params.chain_id)).reader)
    kinds = {"teleporterSourceTxnCount": (SENT,), "teleporterDestinationTxnCount": (RECEIVED,)}
    found = await counts.transactions(kinds.get(params.metric, (SENT, RECEIVED)))
    return TeleporterMetricResult(TeleporterValue(found))


# -- the chains of a request -------------------------------------------------------------------------------------------


async def _counted(params: IcmSummaryParams, chains: ChainDirectory) -> tuple[PairFilter, AllCounts]:
    """The pairs that a request asks for, and the counts of the chains of its network."""
    indexed = [chain for chain in chains.all() if await _has_blocks(chain)]
    links = await links_of(chains, indexed)
    wanted = PairFilter(
        await _blockchain(params.src_blockchain_id, chains, links),
        await _blockchain(params.dest_blockchain_id, chains, links),
        SIDES[0] in params.group_by,
        SIDES[1] in params.group_by,
    )
    is_test = None if params.network is None else params.network != "mainnet"
    return wanted, AllCounts([one for one in indexed if is_test in (None, one.info.testnet)], links)


async def _has_blocks(chain: EvmChain) -> bool:
    try:
        return await chain.blocks.tip() is not None
    except Unavailable:
        return False


async def _blockchain(name: str | None, chains: ChainDirectory, links: BlockchainIds) -> bytes | None:
    return None if name is None else (await links.find(name, chains))[0]


# -- series ------------------------------------------------------------------------------------------------------------


async def _points(
    counts: AllCounts, wanted: PairFilter, params: IcmSeriesParams, after: _SeriesPlace | None
) -> tuple[list[tuple[_SeriesPlace, int]], _SeriesPlace | None]:
    """The points of a page in their order, and where the next page goes on after it; None: nowhere."""
    span = SPAN_NAMES.index(params.time_interval)
    size = HOUR_S if span == HOUR else DAY_S
    before = start_of(span, first_from(span, params.end_timestamp)) if params.end_timestamp is not None else None
    if after is not None:
        behind = start_of(span, period_of(span, -after.before) + 1)
        before = behind if before is None else min(before, behind)
    oldest = start_of(span, first_from(span, params.start_timestamp)) if params.start_timestamp else 0
    found: list[tuple[_SeriesPlace, int]] = []
    for _ in range(ROUNDS_MAX):
        newest = await counts.newest_start(size, before)
        if newest is None or newest < oldest:
            return found, None
        first = max(oldest, start_of(span, max(period_of(span, newest) - PERIODS_READ + 1, 0)))
        sums = Counter[_SeriesPlace]()
        for start, pair, messages in await counts.between(size, first, newest + 1):
            group = wanted.group_of(pair)
            if group is not None:
                sums[_SeriesPlace(-start_of(span, period_of(span, start)), group)] += messages
        found += [(place, sums[place]) for place in sorted(sums) if after is None or place > after]
        before = first
        if len(found) > params.page_size:
            return found[: params.page_size], found[params.page_size - 1][0]
    return found, found[-1][0] if found else _SeriesPlace(-(before or 0), _LAST_PAIR)


async def _sums(counts: AllCounts, wanted: PairFilter, first: int | None) -> Counter[ChainPair]:
    sums = Counter[ChainPair]()
    for pair, messages in await counts.since(first):
        group = wanted.group_of(pair)
        if group is not None:
            sums[group] += messages
    return sums


def _hour_of(time: int) -> int:
    return time - time % HOUR_S


def _point(place: _SeriesPlace, value: int, wanted: PairFilter) -> IcmPoint:
    return IcmPoint(timestamp=-place.before, value=value, **_chains(place.pair, wanted))


def _chains(pair: ChainPair, wanted: PairFilter) -> dict[str, Any]:
    return {
        "src_blockchain_id": UNSET if not wanted.by_source else id_text(pair.source) if pair.source else "",
        "dest_blockchain_id": id_text(pair.destination) if wanted.by_destination else UNSET,
    }


def _packed(place: _SeriesPlace) -> bytes:
    return msgspec.msgpack.encode(place)


def _unpacked(cursor: bytes) -> _SeriesPlace:
    return msgspec.msgpack.decode(cursor, type=_SeriesPlace)
