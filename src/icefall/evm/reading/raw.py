"""Raw logs and calls: from the store where they are stored, else from an upstream during the request.

Blocks from the meta value `logs_from` (`calls_from`) on have theirs in the store.
"""

from collections.abc import Sequence
from typing import Any, Protocol

import msgspec

from icefall.db.engine import Reader
from icefall.db.statements import load
from icefall.errors import Unavailable
from icefall.evm.encoding import above, block_of, index_of, position_of, unpack_calls, unpack_data
from icefall.evm.reading.model import PageRange, TxLocation, TxRead
from icefall.upstream.evm.state import At, FoundLog
from icefall.wire.evm.types import Calls, EventLog, PlacedTx, Receipt

SQL = load("icefall.evm.reading", "raw.sql")
WINDOW = 2_000  # blocks of one call for logs: what most upstreams allow
CALLS_MAX = 5  # for logs, of one request
READ_MAX = 5_000  # stored logs read to find those with further topics
_TOPIC_SIZE = 32
_REPLACED = "the block of this transaction was replaced a moment ago"
_CHANGED = "the upstream has another block at this height: the chain was reorganised a moment ago, or it is behind"


class RawSource(Protocol):
    async def transaction(self, tx_hash: bytes) -> PlacedTx | None: ...

    async def receipt(self, tx_hash: bytes, at: At) -> Receipt: ...

    async def calls(self, tx_hash: bytes, block_hash: bytes) -> Calls: ...

    async def logs(self, address: bytes, topics: Sequence[bytes | None], first: int, last: int) -> list[FoundLog]: ...


class LogRead(msgspec.Struct, frozen=True, gc=False):
    location: TxLocation
    log_at: int
    address: bytes
    topics: tuple[bytes, ...]
    data: bytes

    @property
    def log_index(self) -> int:
        return index_of(self.log_at)

    @property
    def cursor(self) -> tuple[int, ...]:
        return (self.log_at,)


class RawReader:
    """`source` None: there is no upstream."""

    def __init__(self, reader: Reader, source: RawSource | None) -> None:
        self._reader = reader
        self._source = source

    async def unindexed_tx(self, tx_hash: bytes) -> PlacedTx | None:
        """Return a transaction that is not in the index, if the upstream knows it. None too without an upstream."""
        return await self._source.transaction(tx_hash) if self._source is not None else None

    # -- one transaction -----------------------------------------------------------------------------------------

    async def logs_of_tx(self, tx: TxRead, after: int | None, limit: int) -> list[LogRead]:
        """Read the logs in their order, behind the position `after`."""
        number = tx.location.block_number
        low = position_of(number, 0) - 1 if after is None else after
        span = {"after": low, "high": above(number), "tx_index": tx.tx_index, "limit": limit}
        rows = await self._stored(SQL.logs_of_tx, tx, span)
        if rows is not None:
            return [LogRead(tx.location, row[0], row[1], _topics(row), unpack_data(row[4])) for row in rows]
        receipt = await self._upstream().receipt(tx.location.tx_hash, tx.location.block_hash)
        if receipt.block_hash != tx.location.block_hash:
            raise Unavailable(_CHANGED)
        found = [_of_tx(tx.location, log) for log in receipt.logs]
        return [log for log in found if log.log_at > low][:limit]

    async def calls_of_tx(self, tx: TxRead) -> Calls:
        """All of them, in pre-order."""
        rows = await self._stored(SQL.calls, tx, {"tx_at": tx.tx_at})
        if rows:
            return unpack_calls(rows[0][0])
        return await self._upstream().calls(tx.location.tx_hash, tx.location.block_hash)

    async def _stored(self, statement: str, tx: TxRead, where: dict[str, int]) -> list[tuple[Any, ...]] | None:
        """None: of this block they are not stored. One statement reads block, mark and rows: all are of one moment."""
        block = {"number": tx.location.block_number, "hash": tx.location.block_hash}
        rows = await self._reader.rows(statement, block | where)
        if not rows:
            raise Unavailable(_REPLACED)
        is_stored = rows[0][0] is not None and int(rows[0][0]) <= tx.location.block_number
        return [row[1:] for row in rows if row[1] is not None] if is_stored else None

    # -- a contract ----------------------------------------------------------------------------------------------

    async def logs_of(
        self, address: bytes, topics: Sequence[bytes | None], span: PageRange, limit: int
    ) -> tuple[list[LogRead], int | None]:
        """Logs that it emitted, newest first, and the position below which the next page begins; None after the last.

        A page may be short although more follow: the work of a request is bounded.
        """
        bounds = span.descending()
        low, high = bounds["low"], bounds["high"]
        stored_from = await self._stored_from("logs_from")
        if stored_from is not None and high > position_of(stored_from, 0):
            border = max(low, position_of(stored_from, 0))
            found, more = await self._stored_logs(address, topics, border, high, limit)
            return found, more if more is not None or border == low else border
        return await self._upstream_logs(address, topics, low, high, limit)

    async def _stored_logs(
        self, address: bytes, topics: Sequence[bytes | None], low: int, high: int, limit: int
    ) -> tuple[list[LogRead], int | None]:
        further = any(topic is not None for topic in topics[1:])
        count = READ_MAX if further else limit + 1
        where: dict[str, Any] = {"address": address, "low": low, "high": high, "limit": count}
        if topics and topics[0] is not None:
            rows = await self._reader.rows(SQL.logs_with_topic, where | {"topic0": topics[0]})
        else:
            rows = await self._reader.rows(SQL.logs_of, where)
        found = [log for log in map(_stored_log, rows) if _fits(log.topics, topics)]
        if len(found) > limit:
            return found[:limit], found[limit - 1].log_at
        return found, rows[-1][0] if len(rows) == count else None

    async def _upstream_logs(
        self, address: bytes, topics: Sequence[bytes | None], low: int, high: int, limit: int
    ) -> tuple[list[LogRead], int | None]:
        """Search from the top down, some blocks at a time."""
        source, found = self._upstream(), list[LogRead]()
        tip = await self._tip()
        high = min(high, above(tip))
        for _ in range(CALLS_MAX):
            last = block_of(high - 1)
            if high <= low:
                return found, None
            first = max(block_of(low), last - WINDOW + 1)
            logs = await source.logs(address, topics, first, last)
            found += [log for log in await self._located(logs[::-1]) if low <= log.log_at < high]
            if len(found) > limit:
                return found[:limit], found[limit - 1].log_at
            high = position_of(first, 0)
        return found, high if high > low else None

    async def _located(self, logs: Sequence[FoundLog]) -> list[LogRead]:
        """Add the times of their blocks, which must be the indexed ones."""
        blocks: dict[int, tuple[bytes, int]] = {}
        found = []
        for one in logs:
            if one.block not in blocks:
                rows = await self._reader.rows(SQL.block, {"number": one.block})
                blocks[one.block] = rows[0] if rows else (b"", 0)
            block_hash, time = blocks[one.block]
            if block_hash != one.block_hash:
                raise Unavailable(_CHANGED)
            location = TxLocation(one.block, block_hash, time, one.tx_hash)
            found.append(_of_tx(location, one.log))
        return found

    async def _tip(self) -> int:
        rows = await self._reader.rows(SQL.tip)
        return rows[0][0] if rows else -1

    async def _stored_from(self, name: str) -> int | None:
        rows = await self._reader.rows(SQL.meta, {"name": name})
        return int(rows[0][0]) if rows else None

    def _upstream(self) -> RawSource:
        if self._source is None:
            raise Unavailable("logs and calls of this block are not in the index, and no upstream is configured")
        return self._source


def _of_tx(location: TxLocation, log: EventLog) -> LogRead:
    at = position_of(location.block_number, log.index)
    return LogRead(location, at, log.address, log.topics, log.data)


def _topics(row: Sequence[Any]) -> tuple[bytes, ...]:
    first, rest = row[2], row[3]
    others = tuple(rest[at : at + _TOPIC_SIZE] for at in range(0, len(rest), _TOPIC_SIZE))
    return (first, *others) if first else ()


def _stored_log(row: Sequence[Any]) -> LogRead:
    location = TxLocation(block_of(row[0]), row[6], row[7], row[8])
    return LogRead(location, row[0], row[1], _topics(row), unpack_data(row[4]))


def _fits(topics: tuple[bytes, ...], wanted: Sequence[bytes | None]) -> bool:
    return all(topic is None or (index < len(topics) and topics[index] == topic) for index, topic in enumerate(wanted))
