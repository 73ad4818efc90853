"""Decodes a block's logs once, for every derivation. The contract's kind decides how an ambiguous log is read."""

from collections import Counter
from collections.abc import Mapping, Sequence

import msgspec

from icefall.evm.model import TokenKind
from icefall.wire.evm.events import AmbiguousTransfer, Erc20Moved, Erc721Moved, Event, MalformedEvent, decode_log
from icefall.wire.evm.types import Receipt

_STANDARD_TOPICS = 3  # a transfer with as many is not ambiguous


class ParsedLog(msgspec.Struct, frozen=True, gc=False):
    """A decoded log."""

    tx_index: int
    log_index: int
    address: bytes
    event: Event


def parse_logs(receipts: Sequence[Receipt], kinds: Mapping[bytes, TokenKind]) -> tuple[list[ParsedLog], dict[str, int]]:
    """Events in log order, and how many token events were skipped, by name."""
    events = []
    skipped: Counter[str] = Counter()
    for tx_index, receipt in enumerate(receipts):
        for log in receipt.logs:
            event = decode_log(log)
            if event is None:
                continue
            if isinstance(event, AmbiguousTransfer):
                event = _disambiguated(event, kinds[log.address])
            if isinstance(event, MalformedEvent):
                skipped[event.event] += 1
            else:
                events.append(ParsedLog(tx_index, log.index, log.address, event))
    return events, dict(skipped)


def ambiguous_contracts(receipts: Sequence[Receipt]) -> dict[bytes, int | None]:
    """Contracts whose kind must be known, each with a token ID to try ownerOf with, if one of its logs may name one."""
    found: dict[bytes, int | None] = {}
    for receipt in receipts:
        for log in receipt.logs:
            event = decode_log(log) if len(log.topics) < _STANDARD_TOPICS else None
            if isinstance(event, AmbiguousTransfer) and found.get(log.address) is None:
                found[log.address] = event.number if event.can_be_nft else None
    return found


def _disambiguated(event: AmbiguousTransfer, kind: TokenKind) -> Event:
    if kind is TokenKind.ERC20:
        return Erc20Moved(event.sender, event.to, event.number)
    if kind is TokenKind.ERC721 and event.can_be_nft:
        return Erc721Moved(event.sender, event.to, event.number)
    return MalformedEvent("Transfer")
