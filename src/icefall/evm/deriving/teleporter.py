"""Cross-chain messages."""

from collections.abc import Iterable, Iterator

from icefall.evm.deriving.logs import ParsedLog
from icefall.evm.model import TeleporterMessage
from icefall.wire.evm.events import CrossChainMessage


def messages(told: Iterable[ParsedLog], messenger: bytes) -> Iterator[TeleporterMessage]:
    """The first of each transaction, if the chain's messenger logged it: anybody else can log the same."""
    last = -1
    for one in told:
        event = one.event
        if isinstance(event, CrossChainMessage) and one.address == messenger and one.tx_index != last:
            last = one.tx_index
            yield TeleporterMessage(one.tx_index, event.message_id, event.peer_blockchain_id, event.is_sent)
