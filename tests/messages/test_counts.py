"""Counts of messages of several chains equal a naive recount of their logs, after any order of blocks and rollbacks."""

import asyncio
import calendar
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.messages.test_random_histories import ELSEWHERE, ENGINES, IDS, UNKNOWING, World
from tests.postgres.server import new_prefix, server_url

from icefall.api.metrics import message_counts
from icefall.api.metrics.handlers import MetricsClock
from icefall.api.metrics.message_schema import IcmSeriesParams, IcmSummaryParams, TeleporterMetricParams
from icefall.compose.stores import Stores
from icefall.errors import BadRequest, NotFound
from icefall.wire.evm.events import RECEIVE_CROSS_CHAIN_MESSAGE, SEND_CROSS_CHAIN_MESSAGE
from icefall.wire.ids import id_text

KNOWN = {one for one, chain in IDS.items() if chain != UNKNOWING}
HOUR, DAY = 3600, 86400
WINDOWS = {
    "lastHour": HOUR,
    "lastDay": DAY,
    "lastWeek": 7 * DAY,
    "lastMonth": 30 * DAY,
    "last90Days": 90 * DAY,
    "lastYear": 365 * DAY,
}
Message = tuple[int, str, str]  # time, source, destination


def counted(world: World) -> list[Message]:
    """Each message where it was sent, if that chain is known; else where it was received. And what a chain that is not
    known sent to one that is not indexed."""
    by_chain = {chain: one if one in KNOWN else b"" for one, chain in IDS.items()}
    found: dict[tuple[str, bytes, bytes], Message] = {}
    for log in sorted(world.emitted, key=lambda one: one.at):
        own, (topic, message_id, *others) = by_chain[log.chain], log.log[0]
        if not others:
            continue
        peer = others[0]
        if topic == SEND_CROSS_CHAIN_MESSAGE and (own or peer not in KNOWN):
            shown = id_text(own) if own else ""
            found.setdefault((log.chain, topic, message_id), (log.time, shown, id_text(peer)))
        elif topic == RECEIVE_CROSS_CHAIN_MESSAGE and own and peer not in KNOWN:
            found.setdefault((log.chain, topic, message_id), (log.time, id_text(peer), id_text(own)))
    return list(found.values())


def period(at: int, interval: str) -> int:
    if interval == "month":
        year, month, *_ = time.gmtime(at)
        return calendar.timegm((year, month, 1, 0, 0, 0))
    if interval == "week":
        day = at - at % DAY
        return day - time.gmtime(day).tm_wday * DAY
    return at - at % (HOUR if interval == "hour" else DAY)


def named(source: str, destination: str, group_by: tuple[str, ...]) -> dict[str, str]:
    both = {"srcBlockchainId": source, "destBlockchainId": destination}
    return {name: value for name, value in both.items() if name in group_by}


async def series(world: World, size: int, **where: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    token: Any = ""
    while token is not msgspec.UNSET:
        params = IcmSeriesParams(page_size=size, page_token=token, **where)
        page = await message_counts.icm_timeseries(params, world.directory, world.paging)
        assert len(page.results) <= size
        found += msgspec.to_builtins(page.results)
        token = page.next_page_token
    return found


def naive_series(messages: list[Message], interval: str, group_by: tuple[str, ...]) -> list[dict[str, Any]]:
    sums = Counter((period(at, interval), tuple(named(src, dest, group_by).items())) for at, src, dest in messages)
    points = [{"timestamp": start, "value": value, **dict(group)} for (start, group), value in sums.items()]
    return sorted(points, key=_place)


def _place(point: dict[str, Any]) -> Any:
    return -point["timestamp"], point.get("srcBlockchainId", ""), point.get("destBlockchainId", "")


async def check(world: World) -> None:
    messages = counted(world)
    both = ("srcBlockchainId", "destBlockchainId")
    for interval in ("hour", "day", "week", "month"):
        for group_by in ((), both[:1], both[1:], both):
            for size in (1, 7, 2160):
                read = await series(world, size, time_interval=interval, group_by=group_by)
                assert sorted(read, key=_place) == naive_series(messages, interval, group_by)
                assert [one["timestamp"] for one in read] == sorted((one["timestamp"] for one in read), reverse=True)
    first = id_text(next(iter(IDS)))
    outside = [one for one in messages if one[1] == first and one[2] == id_text(ELSEWHERE)]
    where = {"src_blockchain_id": "7000", "dest_blockchain_id": id_text(ELSEWHERE)}
    assert await series(world, 5, **where) == naive_series(outside, "day", ())
    middle = period(sorted(messages)[len(messages) // 2][0], "day")
    later = [one for one in messages if one[0] >= middle]
    assert await series(world, 5, start_timestamp=middle) == naive_series(later, "day", ())
    earlier = [one for one in messages if one[0] < middle]
    assert await series(world, 5, end_timestamp=middle) == naive_series(earlier, "day", ())
    await check_summary(world, messages)
    await check_transactions(world)


async def check_summary(world: World, messages: list[Message]) -> None:
    clock = MetricsClock(lambda: world.now + 100)
    for group_by in ((), ("destBlockchainId",), ("srcBlockchainId", "destBlockchainId")):
        answer = await message_counts.icm_summary(IcmSummaryParams(group_by=group_by), world.directory, clock)
        read = msgspec.to_builtins(answer.result)
        expected = []
        for group in {tuple(named(src, dest, group_by).items()) for _, src, dest in messages}:
            times = [at for at, src, dest in messages if tuple(named(src, dest, group_by).items()) == group]
            hours = {name: (world.now + 100 - length) // HOUR * HOUR for name, length in WINDOWS.items()}
            windows = {name: sum(at >= since for at in times) for name, since in hours.items()}
            expected.append({**windows, "allTime": len(times), **dict(group)})
        assert sorted(read, key=str) == sorted(expected, key=str)


async def check_transactions(world: World) -> None:
    for chain in IDS.values():
        sums = []
        for topic in (SEND_CROSS_CHAIN_MESSAGE, RECEIVE_CROSS_CHAIN_MESSAGE):
            logs = [log for log in world.emitted if log.chain == chain and log.log[0][0] == topic]
            sums.append(len({log.tx_hash for log in logs}))
        for name, value in zip(("Source", "Destination", "Total"), (*sums, sum(sums)), strict=True):
            params = TeleporterMetricParams(chain_id=chain, metric=f"teleporter{name}TxnCount")
            answer = await message_counts.teleporter_metric(params, world.directory)
            assert answer.result.value == value


@pytest.fixture(params=ENGINES)
def stores(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Stores]:
    (tmp_path / "chains").mkdir()
    url = "" if request.param == "sqlite" else server_url()
    with closing(Stores(tmp_path, url, new_prefix())) as opened:
        yield opened


def test_counts_equal_a_naive_recount(stores: Stores, monkeypatch: pytest.MonkeyPatch) -> None:
    """Periods are read a few at a time, so pages are put together from several readings and end early."""
    monkeypatch.setattr(message_counts, "PERIODS_READ", 3)
    monkeypatch.setattr(message_counts, "ROUNDS_MAX", 4)

    async def run() -> None:
        world = World(stores, 5)
        try:
            for number in range(30):
                await world.step()
                if number % 15 == 14:
                    await check(world)
        finally:
            world.close()

    asyncio.run(run())


def test_wrong_parameters(stores: Stores) -> None:
    async def run() -> None:
        world = World(stores, 5)
        try:
            with pytest.raises(BadRequest, match="startTimestamp must not be after endTimestamp"):
                await series(world, 5, start_timestamp=2, end_timestamp=1)
            with pytest.raises(NotFound):
                await series(world, 5, src_blockchain_id="nothing")
        finally:
            world.close()

    asyncio.run(run())
