"""Fills in the events of messengers of blocks that were stored without them, some at a time, from the newest down.

They are read from stored logs where there are any, else from the upstream by the address of each messenger. A block of
the upstream must be the stored one. What a step has done is in its transaction: after a kill it goes on from there.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any, Protocol

from icefall.db.engine import Store
from icefall.evm.deriving.messages import messenger_event, messenger_row
from icefall.evm.encoding import block_of, index_of, position_of, unpack_data
from icefall.evm.storing.messages import SQL, fill_messages
from icefall.upstream.client import InvalidAnswer, UpstreamFailure
from icefall.upstream.evm.state import FoundLog
from icefall.wire.evm.types import EventLog

STORED_BLOCKS, FETCHED_BLOCKS = 5_000, 2_000  # of one step; most upstreams allow as many for logs, some fewer
_TOPIC_SIZE = 32
Row = tuple[Any, ...]


class LogSource(Protocol):
    async def logs(self, address: bytes, topics: Sequence[bytes | None], first: int, last: int) -> list[FoundLog]: ...


class MessageFilling:
    """The filling of one chain."""

    def __init__(self, store: Store, upstream: LogSource, messengers: Sequence[bytes]) -> None:
        self._store = store
        self._upstream = upstream
        self._messengers = messengers
        self._window = FETCHED_BLOCKS  # as many as the upstream sends logs of at once

    async def step(self) -> bool:
        """Fill some blocks. Return whether there was anything to do. UpstreamFailure where logs cannot be fetched."""
        missing = self._store.read(SQL.missing_below)
        lowest = self._store.read(SQL.bounds)[0][0]
        if not missing or lowest is None:
            return False
        end = int(missing[0][0])
        stored = self._store.read(SQL.logs_from)
        if stored and int(stored[0][0]) < end:
            first = max(lowest, int(stored[0][0]), end - STORED_BLOCKS)
            rows = self._stored_rows(first, end)
        else:
            first = max(lowest, end - self._window)
            rows = await self._within_window(first, end)
        await self._store.write(partial(fill_messages, first=first, end=end, rows=sorted(rows)))
        return True

    async def _within_window(self, first: int, end: int) -> list[Row]:
        """Fetch, and ask for half as many blocks next time if the upstream refuses, for twice as many if not."""
        try:
            rows = await self._fetched_rows(first, end)
        except UpstreamFailure:
            self._window = max(1, self._window // 2)
            raise
        self._window = min(FETCHED_BLOCKS, 2 * self._window)
        return rows

    def _stored_rows(self, first: int, end: int) -> list[Row]:
        found = []
        for messenger in self._messengers:
            span = {"address": messenger, "low": position_of(first, 0), "high": position_of(end, 0)}
            for log_at, tx_index, topic, others, data in self._store.read(SQL.logs_of, span):
                topics = (topic, *(others[at : at + _TOPIC_SIZE] for at in range(0, len(others), _TOPIC_SIZE)))
                log = EventLog(messenger, topics, unpack_data(data), index_of(log_at))
                found += _rows(block_of(log_at), tx_index, log)
        return found

    async def _fetched_rows(self, first: int, end: int) -> list[Row]:
        found = []
        for messenger in self._messengers:
            for one in await self._upstream.logs(messenger, (), first, end - 1):
                stored = self._store.read(SQL.tx_hash, {"tx_at": position_of(one.block, one.tx_index)})
                if not first <= one.block < end or stored != [(one.tx_hash, one.block_hash)]:
                    raise InvalidAnswer(f"the upstream has a log of another block {one.block} than the stored one")
                if one.log.address == messenger:
                    found += _rows(one.block, one.tx_index, one.log)
        return found


def _rows(block: int, tx_index: int, log: EventLog) -> list[Row]:
    event = messenger_event(tx_index, log)
    return [] if event is None else [messenger_row(block, event)]
