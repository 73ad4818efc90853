"""The rows of metrics as they are stored: those of table `rollup`, and the lists of addresses in table `activity`."""

import zlib
from typing import Any, NamedTuple

import msgspec

from icefall.db.engine import Row
from icefall.evm.encoding import pack_uint, unpack_uint
from icefall.metrics.rollup import BlockStats, CumulativeTotals, PeriodRollup, Sums

_COMPRESSED_FROM = 200  # bytes: less does not get shorter
_COMPRESSED = b"\x78"  # how zlib begins; MessagePack's lists do not
_fresh = msgspec.msgpack.Decoder(list[int])
_earlier = msgspec.msgpack.Decoder(list[tuple[int, int, int]])


class RollupRow(NamedTuple):
    """The columns of table `rollup`, in its order; a test compares them."""

    span: int
    period: int
    first_block: int
    last_block: int
    first_time: int
    last_time: int
    tx_count: int
    gas_used: bytes
    fees: bytes
    price_sum: bytes
    price_max: bytes
    tps_max: float
    gps_max: float
    active_hour: int
    active_day: int
    active_week: int
    active_month: int
    senders_hour: int
    senders_day: int
    senders_week: int
    senders_month: int
    txs_total: int
    addresses_total: int
    contracts_total: int
    deployers_total: int


def pack_rollup(span: int, period: int, rollup: PeriodRollup) -> RollupRow:
    sums, cumulative = rollup.sums, rollup.cumulative
    active_hour, active_day, active_week, active_month = rollup.active
    senders_hour, senders_day, senders_week, senders_month = rollup.senders
    return RollupRow(
        span=span,
        period=period,
        first_block=sums.first_block,
        last_block=sums.last_block,
        first_time=sums.first_time,
        last_time=sums.last_time,
        tx_count=sums.tx_count,
        gas_used=pack_uint(sums.gas_used),
        fees=pack_uint(sums.fees),
        price_sum=pack_uint(sums.price_sum),
        price_max=pack_uint(sums.price_max),
        tps_max=sums.tps_max,
        gps_max=sums.gps_max,
        active_hour=active_hour,
        active_day=active_day,
        active_week=active_week,
        active_month=active_month,
        senders_hour=senders_hour,
        senders_day=senders_day,
        senders_week=senders_week,
        senders_month=senders_month,
        txs_total=cumulative.txs,
        addresses_total=cumulative.addresses,
        contracts_total=cumulative.contracts,
        deployers_total=cumulative.deployers,
    )


def unpack_rollup(row: RollupRow) -> PeriodRollup:
    return PeriodRollup(
        unpack_sums(row),
        (row.active_hour, row.active_day, row.active_week, row.active_month),
        (row.senders_hour, row.senders_day, row.senders_week, row.senders_month),
        CumulativeTotals(row.txs_total, row.addresses_total, row.contracts_total, row.deployers_total),
    )


def unpack_sums(row: RollupRow) -> Sums:
    return Sums(
        first_block=row.first_block,
        last_block=row.last_block,
        first_time=row.first_time,
        last_time=row.last_time,
        tx_count=row.tx_count,
        gas_used=unpack_uint(row.gas_used),
        fees=unpack_uint(row.fees),
        price_sum=unpack_uint(row.price_sum),
        price_max=unpack_uint(row.price_max),
        tps_max=row.tps_max,
        gps_max=row.gps_max,
    )


def unpack_block_stats(row: Row) -> BlockStats:
    """Read a row of `blocks_between`; a block without transactions has no prices."""
    number, time, tx_count, gas_used, fees, price_sum, price_max = row
    prices = (0, 0) if price_sum is None else (unpack_uint(price_sum), unpack_uint(price_max))
    return BlockStats(number, time, tx_count, unpack_uint(gas_used), unpack_uint(fees), *prices)


# -- activity ----------------------------------------------------------------------------------------------------


def pack_changes(changes: list[Any]) -> bytes:
    """Pack `fresh`, the addresses never seen before, or `earlier`, (address, active, sent) as they were."""
    packed = msgspec.msgpack.encode(changes)
    return zlib.compress(packed, 1) if len(packed) >= _COMPRESSED_FROM else packed


def unpack_fresh(packed: bytes) -> list[int]:
    return _fresh.decode(_plain(packed))


def unpack_earlier(packed: bytes) -> list[tuple[int, int, int]]:
    return _earlier.decode(_plain(packed))


def _plain(packed: bytes) -> bytes:
    """Decompress a list; short lists are stored as they are."""
    return zlib.decompress(packed) if packed.startswith(_COMPRESSED) else packed
