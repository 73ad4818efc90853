"""Derives the events of messenger contracts (ICM, Teleporter) from logs: all of them, and the message with which a
transaction is listed. Pure.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

from icefall.evm.deriving.tokens import ParsedLog
from icefall.evm.encoding import BITS, pack_data
from icefall.evm.model import MessengerEventRow, TeleporterMessage
from icefall.wire.evm.events import CrossChainMessage
from icefall.wire.evm.messages import decode_event
from icefall.wire.evm.types import EventLog, Receipt


def messenger_events(receipts: Sequence[Receipt], messengers: Collection[bytes]) -> Iterator[MessengerEventRow]:
    """The events in log order. Logs of other contracts, and those of a wrong shape, yield nothing."""
    if not messengers:
        return
    for receipt in receipts:
        for log in receipt.logs:
            if log.address in messengers and (found := messenger_event(receipt.index, log)) is not None:
                yield found


def messenger_event(tx_index: int, log: EventLog) -> MessengerEventRow | None:
    """The event of a log that a messenger emitted."""
    event = decode_event(log.topics, log.data)
    if event is None:
        return None
    parties = event.peer, event.party, event.sender, event.recipient
    return MessengerEventRow(tx_index, log.index, event.kind, event.message_id, log.address, *parties, event.data)


def messenger_row(block: int, one: MessengerEventRow) -> tuple[Any, ...]:
    """The event as its table has it."""
    at = block << BITS | one.log_index, one.tx_index
    parties = one.peer, one.party, one.sender, one.recipient
    return (*at, one.kind, one.message_id, one.messenger, *parties, pack_data(one.data))


def messages(events: Iterable[ParsedLog], messengers: Collection[bytes]) -> Iterator[TeleporterMessage]:
    """The first message of each transaction that a messenger of the chain logged; other contracts can log the same
    event."""
    last = -1
    for one in events:
        event = one.event
        if isinstance(event, CrossChainMessage) and one.address in messengers and one.tx_index != last:
            last = one.tx_index
            yield TeleporterMessage(one.tx_index, event.message_id, event.peer_blockchain_id, event.is_sent)
