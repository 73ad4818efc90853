"""Cross-chain messages."""

from collections.abc import Iterable, Iterator

from icefall.evm.deriving.logs import ParsedLog
from icefall.evm.model import TeleporterMessage
from icefall.wire.evm.events import CrossChainMessage


def messages(events: Iterable[ParsedLog], messenger: bytes) -> Iterator[TeleporterMessage]:
    """The first of each transaction that the chain's messenger logged; other contracts can log the same event."""
    last = -1
    for one in events:
        event = one.event
        if isinstance(event, CrossChainMessage) and one.address == messenger and one.tx_index != last:
            last = one.tx_index
            yield TeleporterMessage(one.tx_index, event.message_id, event.peer_blockchain_id, event.is_sent)
