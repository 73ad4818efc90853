"""Every metric computed again from recorded blocks: sets and loops, no rollup, no shared arithmetic."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from tests.evm.recordings import Recorded, unhex

from icefall.evm.model import BlockRows

ZERO = bytes(20)
Number = int | float


class Seen(NamedTuple):
    """A block, from its JSON; token transfers and their parties as derived."""

    time: int
    prices: list[int]
    gas_used: int
    fees: int
    senders: set[bytes]
    active: set[bytes]
    creators: list[bytes]
    gap: int | None = None


def number(text: str) -> int:
    return int(text, 16)


def creators(recorded: Any) -> Iterator[bytes]:
    """The creator of each successful creation: by frames, or by transactions where there are no traces."""
    for at, (tx, receipt) in enumerate(zip(recorded["block"]["transactions"], recorded["receipts"], strict=True)):
        if number(receipt["status"]) == 1:
            if recorded["calls"] is not None:
                yield from created(recorded["calls"][at]["result"])
            elif tx["to"] is None:
                yield unhex(tx["from"].lower())


def created(frame: Any) -> Iterator[bytes]:
    if "error" in frame:
        return
    if frame["type"].startswith("CREATE"):
        yield unhex(frame["from"].lower())
    for inner in frame.get("calls", ()):
        yield from created(inner)


def seen(chain: Sequence[Recorded]) -> list[Seen]:
    """All but block 0."""
    found: list[Seen] = []
    for one in chain:
        block, receipts = one.line["block"], one.line["receipts"]
        if number(block["number"]) == 0:
            continue
        time = number(block["timestamp"])
        senders = {unhex(tx["from"].lower()) for tx in block["transactions"]}
        active = {unhex(tx["to"].lower()) for tx in block["transactions"] if tx["to"]}
        for move in moves(one.rows):
            senders.add(move.sender)
            active.add(move.to)
        prices = [number(receipt["effectiveGasPrice"]) for receipt in receipts]
        spent = sum(number(receipt["gasUsed"]) * price for receipt, price in zip(receipts, prices, strict=True))
        gap = time - found[-1].time if found else None
        found.append(
            Seen(
                time,
                prices,
                number(block["gasUsed"]),
                spent,
                senders - {ZERO},
                (senders | active) - {ZERO},
                list(creators(one.line)),
                gap,
            )
        )
    return found


def seen_rows(chain: Sequence[BlockRows]) -> list[Seen]:
    """The same for blocks that exist only as rows."""
    found: list[Seen] = []
    for rows in chain:
        if rows.block.number == 0:
            continue
        senders = {one.sender for one in (*rows.txs, *moves(rows))}
        active = {one.to for one in (*rows.txs, *moves(rows))} | senders
        gap = rows.block.time - found[-1].time if found else None
        prices = [tx.gas_price for tx in rows.txs]
        made = [one.creator for one in rows.deployments]
        found.append(
            Seen(rows.block.time, prices, rows.block.gas_used, rows.block.fees_spent, senders, active, made, gap)
        )
    return found


def moves(rows: BlockRows) -> tuple[Any, ...]:
    return (*rows.erc20_transfers, *rows.erc721_transfers, *rows.erc1155_transfers)


def begin_of(interval: str, time: int) -> datetime:
    moment = datetime.fromtimestamp(time, UTC).replace(minute=0, second=0)
    if interval == "hour":
        return moment
    moment = moment.replace(hour=0)
    if interval == "week":
        return moment - timedelta(days=moment.weekday())
    return moment.replace(day=1) if interval == "month" else moment


def after(interval: str, begin: datetime) -> datetime:
    if interval == "month":
        return (begin + timedelta(days=32)).replace(day=1)
    return begin + {"hour": timedelta(hours=1), "day": timedelta(days=1), "week": timedelta(days=7)}[interval]


def union(sets: Iterator[set[bytes]]) -> int:
    return len(set().union(*sets))


def highest(inside: Sequence[Seen], amount: Callable[[Seen], int]) -> Number:
    """The most in any second, over the time since the second with blocks before it."""
    found: dict[int, int] = {}
    for block in inside:
        found[block.time] = found.get(block.time, 0) + amount(block)
    gaps = {block.time: block.gap for block in reversed(inside)}  # that of the first in a second
    return max((total / gap for time, total in found.items() if (gap := gaps[time])), default=0)


def value(metric: str, inside: Sequence[Seen], earlier: Sequence[Seen]) -> Number:
    """Of the blocks `inside` a period or window, after those `earlier`."""
    prices = [price for block in inside for price in block.prices]
    gas = sum(block.gas_used for block in inside)
    ever = [*earlier, *inside]
    seconds = inside[-1].time - (earlier or inside)[-1 if earlier else 0].time if inside else 0
    match metric:
        case "avg_tps":
            return len(prices) / seconds if seconds else 0
        case "avg_gps":
            return gas / seconds if seconds else 0
        case "max_tps":
            return max(highest(inside, lambda block: len(block.prices)), value("avg_tps", inside, earlier))
        case "max_gps":
            return max(highest(inside, lambda block: block.gas_used), value("avg_gps", inside, earlier))
        case "tx_count":
            return len(prices)
        case "gas_used":
            return gas
        case "avg_gas_price":
            return sum(prices) / len(prices) if prices else 0
        case "max_gas_price":
            return max(prices, default=0)
        case "fees_paid":
            return sum(block.fees for block in inside)
        case "active_addresses":
            return union(block.active for block in inside)
        case "active_senders":
            return union(block.senders for block in inside)
        case "cumulative_tx_count":
            return sum(len(block.prices) for block in ever)
        case "cumulative_addresses":
            return union(block.active for block in ever)
        case "cumulative_contracts":
            return sum(len(block.creators) for block in ever)
        case "cumulative_deployers":
            return union(set(block.creators) for block in ever)
    raise AssertionError(metric)


def times_of(blocks: Sequence[Seen]) -> list[int]:
    """In order, so that a period is a slice."""
    times = [block.time for block in blocks]
    assert times == sorted(times)
    return times


def series(metric: str, interval: str, blocks: Sequence[Seen]) -> list[tuple[int, Number]]:
    """Newest first, from the first block's period to the last's."""
    times = times_of(blocks)
    begin, points = begin_of(interval, blocks[0].time), []
    while begin.timestamp() <= blocks[-1].time:
        end = after(interval, begin)
        first, behind = bisect_left(times, begin.timestamp()), bisect_left(times, end.timestamp())
        points.append((int(begin.timestamp()), value(metric, blocks[first:behind], blocks[:first])))
        begin = end
    return points[::-1]


def window(metric: str, seconds: int | None, now: int, blocks: Sequence[Seen]) -> Number:
    if seconds is None:
        return value(metric, blocks, ())
    times = times_of(blocks)
    first, behind = bisect_right(times, now - seconds), bisect_right(times, now)
    return value(metric, blocks[first:behind], blocks[:first])
