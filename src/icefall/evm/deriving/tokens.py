"""Derives token rows from logs: transfers, and the resulting changes of balances, owners and metadata. Pure.

A block's logs are decoded once, for every derivation. Where a log fits several standards, what the contract answers
decides how it is read.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec

from icefall.evm.model import (
    ZERO_ADDRESS,
    Erc20Delta,
    Erc20TransferRow,
    Erc721TransferRow,
    Erc1155TransferRow,
    IdDelta,
    MetadataChange,
    NftOwner,
    ProbedStandard,
)
from icefall.evm.standards import STANDARDS
from icefall.wire.evm.events import (
    AmbiguousTransfer,
    Approved,
    Erc20Moved,
    Erc721Moved,
    Erc721RangeMoved,
    Erc1155Moved,
    Event,
    MalformedEvent,
    MetadataChanged,
    NativeWrapped,
    decode_log,
)
from icefall.wire.evm.types import Receipt, TxDiff

_STANDARD_TOPICS = 3  # a transfer with as many is not ambiguous
_EXPLAINS_STORAGE = (*(standard.event for standard in STANDARDS), Erc721RangeMoved, NativeWrapped, Approved)


class ParsedLog(msgspec.Struct, frozen=True, gc=False):
    """A decoded log."""

    tx_index: int
    log_index: int
    address: bytes
    event: Event


def parse_logs(
    receipts: Sequence[Receipt], probed: Mapping[bytes, ProbedStandard]
) -> tuple[list[ParsedLog], dict[str, int]]:
    """The events in log order, and how many token events were skipped, by name."""
    events = []
    skipped: Counter[str] = Counter()
    for tx_index, receipt in enumerate(receipts):
        for log in receipt.logs:
            event = decode_log(log)
            if event is None:
                continue
            if isinstance(event, AmbiguousTransfer):
                event = _disambiguated(event, probed[log.address])
            if isinstance(event, MalformedEvent):
                skipped[event.event] += 1
            else:
                events.append(ParsedLog(tx_index, log.index, log.address, event))
    return events, dict(skipped)


def ambiguous_contracts(receipts: Sequence[Receipt]) -> dict[bytes, int | None]:
    """The contracts whose standard must be known, each with a token ID to try ownerOf with, if one of its logs may name
    one."""
    found: dict[bytes, int | None] = {}
    for receipt in receipts:
        for log in receipt.logs:
            event = decode_log(log) if len(log.topics) < _STANDARD_TOPICS else None
            if isinstance(event, AmbiguousTransfer) and found.get(log.address) is None:
                found[log.address] = event.number if event.can_be_nft else None
    return found


def _disambiguated(event: AmbiguousTransfer, standard: ProbedStandard) -> Event:
    if standard is ProbedStandard.ERC20:
        return Erc20Moved(event.sender, event.to, event.number)
    if standard is ProbedStandard.ERC721 and event.can_be_nft:
        return Erc721Moved(event.sender, event.to, event.number)
    return MalformedEvent("Transfer")


class Transfers(NamedTuple):
    """The transfers of a block, by standard. The fields are those of BlockRows."""

    erc20_transfers: tuple[Erc20TransferRow, ...]
    erc721_transfers: tuple[Erc721TransferRow, ...]
    erc1155_transfers: tuple[Erc1155TransferRow, ...]


class Holdings(NamedTuple):
    """The changes of a block in what is held, by standard. The fields are those of BlockRows."""

    erc20_deltas: tuple[Erc20Delta, ...]
    erc1155_deltas: tuple[IdDelta, ...]
    nft_owners: tuple[NftOwner, ...]


def transfers(events: Iterable[ParsedLog]) -> Transfers:
    """The transfers in log order, those of a batch in its order. Equal IDs and zero values are kept."""
    erc20, erc721, erc1155 = [], [], []
    for one in events:
        event = one.event
        at = one.tx_index, one.log_index
        if isinstance(event, Erc20Moved):
            erc20.append(Erc20TransferRow(*at, one.address, event.sender, event.to, event.value))
        elif isinstance(event, Erc721Moved):
            erc721.append(Erc721TransferRow(*at, one.address, event.sender, event.to, event.token_id))
        elif isinstance(event, Erc721RangeMoved):
            parties = one.address, event.sender, event.to
            erc721.append(Erc721TransferRow(*at, *parties, event.first_id, event.last_id))
        elif isinstance(event, Erc1155Moved):
            for position, (token_id, value) in enumerate(event.items):
                parties = one.address, event.sender, event.to
                erc1155.append(Erc1155TransferRow(*at, position, *parties, token_id, value))
    return Transfers(tuple(erc20), tuple(erc721), tuple(erc1155))


def holdings(moves: Transfers, events: Iterable[ParsedLog]) -> Holdings:
    return Holdings(
        tuple(erc20_deltas(moves.erc20_transfers, events)),
        tuple(id_deltas(moves.erc1155_transfers)),
        tuple(nft_owners(moves.erc721_transfers)),
    )


def erc20_deltas(moves: Iterable[Erc20TransferRow], events: Iterable[ParsedLog]) -> Iterator[Erc20Delta]:
    """The net change by token and holder. Deposit and Withdrawal only name holders: their meaning differs by
    contract."""
    net: dict[tuple[bytes, bytes], int] = {}
    for move in moves:
        if move.sender != ZERO_ADDRESS:
            pair = move.token, move.sender
            net[pair] = net.get(pair, 0) - move.value
        if move.to != ZERO_ADDRESS:
            pair = move.token, move.to
            net[pair] = net.get(pair, 0) + move.value
        else:
            net.setdefault((move.token, move.to), 0)  # some contracts credit it: its balances are read from state
    for one in events:
        if isinstance(one.event, NativeWrapped) and one.event.holder != ZERO_ADDRESS:
            net.setdefault((one.address, one.event.holder), 0)
    for (token, holder), delta in net.items():
        yield Erc20Delta(token, holder, delta)


def id_deltas(moves: Iterable[Erc1155TransferRow]) -> Iterator[IdDelta]:
    """The net change by token, holder and ID."""
    net: dict[tuple[bytes, bytes, int], int] = {}
    for move in moves:
        if move.sender != ZERO_ADDRESS:
            key = move.token, move.sender, move.token_id
            net[key] = net.get(key, 0) - move.value
        if move.to != ZERO_ADDRESS:
            key = move.token, move.to, move.token_id
            net[key] = net.get(key, 0) + move.value
        else:
            net.setdefault((move.token, move.to, move.token_id), 0)
    for (token, holder, token_id), delta in net.items():
        yield IdDelta(token, holder, token_id, delta)


def nft_owners(moves: Iterable[Erc721TransferRow]) -> Iterator[NftOwner]:
    """The owner of each moved token after the block, and before it."""
    before: dict[tuple[bytes, int], bytes] = {}
    after: dict[tuple[bytes, int], bytes] = {}
    for move in moves:
        key = move.token, move.token_id
        before.setdefault(key, move.sender)
        after[key] = move.to
    for (token, token_id), owner in after.items():
        yield NftOwner(token, token_id, owner, before[token, token_id])


def metadata_changes(events: Iterable[ParsedLog]) -> Iterator[MetadataChange]:
    for one in events:
        if isinstance(one.event, MetadataChanged):
            yield MetadataChange(one.address, one.event.first, one.event.last)


def approvals(events: Iterable[ParsedLog]) -> Iterator[tuple[bytes, int]]:
    """The contracts that logged an allowance, and what they store of it."""
    for one in events:
        if isinstance(one.event, Approved) and one.event.value is not None:
            yield one.address, one.event.value


def storage_changed_unlogged(diffs: Sequence[TxDiff] | None, events: Iterable[ParsedLog]) -> Iterator[bytes]:
    """The contracts whose storage changed in a transaction without a log that explains it, as a token may rebase."""
    explained = {(one.tx_index, one.address) for one in events if isinstance(one.event, _EXPLAINS_STORAGE)}
    seen: dict[bytes, None] = {}
    for tx_index, diff in enumerate(diffs or ()):
        for account in diff.accounts:
            if account.changed_storage and (tx_index, account.address) not in explained:
                seen[account.address] = None
    yield from seen


def changed_storage(diffs: Sequence[TxDiff] | None) -> tuple[tuple[bytes, bytes], ...]:
    """The contracts whose storage a transaction changed, each with the text of it, in order. Those that are reported as
    deleted are not among them: what is left of them is read from state."""
    return tuple(
        [(account.address, account.storage) for diff in diffs or () for account in diff.accounts if account.storage]
    )
