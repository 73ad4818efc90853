"""Messages between chains: the events that each chain has of them, and what they say together.

Chains know nothing of each other: each has its own events in its own store. A message is joined by its ID, in whatever
order its events were indexed.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from icefall.db.engine import Reader
from icefall.db.statements import load
from icefall.evm.encoding import unpack_data, unpack_uints
from icefall.evm.reading.model import AFTER_ALL
from icefall.wire.evm.messages import (
    EXECUTED,
    FEE,
    RECEIPT,
    RECEIVED,
    SENT,
    Fee,
    MessageBody,
    fee_of,
    message_of,
    redeemer_of,
)

SQL = load("icefall.evm.reading", "messages.sql")
FILTERED_MAX = 500  # rows read of one list for a page, where some of them may not fit
_GAS_USED, _GAS_PRICE = 3, 4  # among the amounts of a transaction
_COLUMNS = ("sender", "recipient", "peer")  # those with an index, the most selective first


class ListedEvent(NamedTuple):
    """A message that was sent or received, as lists find it."""

    log_at: int
    kind: int
    message_id: bytes
    peer: bytes
    sender: bytes
    recipient: bytes
    time: int


class EventFilter(NamedTuple):
    """The events of one kind to be listed; None: any."""

    kind: int
    peer: bytes | None = None
    sender: bytes | None = None
    recipient: bytes | None = None

    def fits(self, row: ListedEvent) -> bool:
        return all(
            wanted is None or getattr(row, column) == wanted
            for column in _COLUMNS
            if (wanted := getattr(self, column)) is not None
        )


class EventRead(NamedTuple):
    """An event of a message. `fee_paid`: of its transaction, in wei."""

    kind: int
    message_id: bytes
    log_at: int
    messenger: bytes
    peer: bytes
    party: bytes
    data: bytes
    time: int
    tx_hash: bytes
    fee_paid: int

    @property
    def body(self) -> MessageBody:
        """The message of a SENT or RECEIVED event, which was decoded before it was stored."""
        body = message_of(self.kind, self.data)
        if body is None:
            raise ValueError(f"the stored event at {self.log_at} is no message")
        return body

    @property
    def redeemer(self) -> bytes:
        return redeemer_of(self.data)


class Placed(NamedTuple):
    """An event and the chain that it is of."""

    chain: str
    event: EventRead


class JoinedMessage(NamedTuple):
    """What all chains know of a message. At least one of `sent` and `received` is there."""

    message_id: bytes
    sent: Placed | None
    received: Placed | None
    is_executed: bool
    is_receipt_delivered: bool
    fee: Fee | None  # None: its source is not indexed

    @property
    def first(self) -> Placed:
        """The event that tells what the message is, and by whose time it is listed."""
        found = self.sent or self.received
        if found is None:
            raise ValueError("a message is sent or received")
        return found


def joined(events: Iterable[Placed]) -> list[JoinedMessage]:
    """The messages that the events of several chains are of. Events alone, of a message whose sending and receiving are
    not indexed, make none."""
    by_id: dict[bytes, dict[int, Placed]] = {}
    for placed in events:
        known = by_id.setdefault(placed.event.message_id, {})
        known.setdefault(placed.event.kind, placed)
    return [_message(message_id, known) for message_id, known in by_id.items() if SENT in known or RECEIVED in known]


def _message(message_id: bytes, known: dict[int, Placed]) -> JoinedMessage:
    sent, raised = known.get(SENT), known.get(FEE)
    fee = None
    if sent is not None:
        last = raised or sent
        fee = fee_of(last.event.kind, last.event.data)
    return JoinedMessage(message_id, sent, known.get(RECEIVED), EXECUTED in known, RECEIPT in known, fee)


class MessageReader:
    """The messages of one chain."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    async def newest(
        self, wanted: Sequence[EventFilter], before: int | None, limit: int
    ) -> tuple[list[ListedEvent], tuple[int, int] | None]:
        """Read the events that fit one of the filters, below the position `before`, newest first. And the position and
        time of the last that was read, if more may follow; all that fit above it are there."""
        found: dict[int, ListedEvent] = {}
        ends: list[tuple[int, int]] = []
        for one in wanted:
            rows, count = await self._rows(one, AFTER_ALL if before is None else before, limit)
            found |= {row.log_at: row for row in rows if one.fits(row)}
            if len(rows) == count:
                ends.append((rows[-1].log_at, rows[-1].time))
        end = max(ends, default=None)
        read = [found[at] for at in sorted(found, reverse=True) if end is None or at >= end[0]]
        return read, end

    async def _rows(self, one: EventFilter, before: int, limit: int) -> tuple[list[ListedEvent], int]:
        given = [column for column in _COLUMNS if getattr(one, column) is not None]
        count = limit if len(given) <= 1 else FILTERED_MAX
        where = {"kind": one.kind, "before": before, "limit": count}
        if given:
            statement = SQL.named(f"newest_with_{given[0]}")
            rows = await self._reader.rows(statement, where | {"value": getattr(one, given[0])})
        else:
            rows = await self._reader.rows(SQL.newest, where)
        return [ListedEvent(*row) for row in rows], count

    async def events_of(self, message_ids: Sequence[bytes]) -> list[EventRead]:
        """Read the events that count of messages."""
        rows = await self._reader.rows_of_each(SQL.events_of, [(one,) for one in message_ids])
        return [
            EventRead(
                kind, message_id, at, messenger, peer, party, unpack_data(data), time, tx_hash, _fee_paid(amounts)
            )
            for kind, message_id, at, messenger, peer, party, data, time, tx_hash, amounts in rows
        ]

    async def token_ids(self, addresses: Sequence[bytes]) -> dict[bytes, int]:
        """The numbers of addresses that the chain knows."""
        return dict(await self._reader.rows_of_each(SQL.token_ids, [(one,) for one in addresses]))


def _fee_paid(amounts: bytes) -> int:
    numbers = unpack_uints(amounts)
    return int(numbers[_GAS_USED] * numbers[_GAS_PRICE])
