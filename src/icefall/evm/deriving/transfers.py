"""Token transfers according to logs, and the resulting changes of balances and owners."""

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from icefall.evm.deriving.logs import ParsedLog
from icefall.evm.model import (
    ZERO_ADDRESS,
    CodeChange,
    Erc20Delta,
    Erc20TransferRow,
    Erc721TransferRow,
    Erc1155Delta,
    Erc1155TransferRow,
    MetadataChange,
    NftOwner,
)
from icefall.wire.evm.events import (
    Approved,
    Erc20Moved,
    Erc721Moved,
    Erc1155Moved,
    ImplementationChanged,
    MetadataChanged,
    NativeWrapped,
)
from icefall.wire.evm.types import TxDiff

_EXPLAINS_STORAGE = (Erc20Moved, Erc721Moved, Erc1155Moved, NativeWrapped, Approved)


class Transfers(msgspec.Struct, frozen=True, gc=False):
    erc20: tuple[Erc20TransferRow, ...]
    erc721: tuple[Erc721TransferRow, ...]
    erc1155: tuple[Erc1155TransferRow, ...]


def transfers(events: Iterable[ParsedLog]) -> Transfers:
    """Rows in log order, those of a batch in its order. Equal IDs and zero values are kept."""
    erc20, erc721, erc1155 = [], [], []
    for one in events:
        event = one.event
        at = one.tx_index, one.log_index
        if isinstance(event, Erc20Moved):
            erc20.append(Erc20TransferRow(*at, one.address, event.sender, event.to, event.value))
        elif isinstance(event, Erc721Moved):
            erc721.append(Erc721TransferRow(*at, one.address, event.sender, event.to, event.token_id))
        elif isinstance(event, Erc1155Moved):
            for position, (token_id, value) in enumerate(event.items):
                parties = one.address, event.sender, event.to
                erc1155.append(Erc1155TransferRow(*at, position, *parties, token_id, value))
    return Transfers(tuple(erc20), tuple(erc721), tuple(erc1155))


def erc20_deltas(moves: Iterable[Erc20TransferRow], events: Iterable[ParsedLog]) -> Iterator[Erc20Delta]:
    """Net change by token and holder. Deposit and Withdrawal only name holders: their meaning differs by contract."""
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


def erc1155_deltas(moves: Iterable[Erc1155TransferRow]) -> Iterator[Erc1155Delta]:
    """Net change by token, holder and ID."""
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
        yield Erc1155Delta(token, holder, token_id, delta)


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


def silent_contracts(diffs: Sequence[TxDiff] | None, events: Iterable[ParsedLog]) -> Iterator[bytes]:
    """Contracts whose storage changed in a transaction without a log that explains it: a token may rebase that way."""
    explained = {(one.tx_index, one.address) for one in events if isinstance(one.event, _EXPLAINS_STORAGE)}
    seen: dict[bytes, None] = {}
    for tx_index, diff in enumerate(diffs or ()):
        for account in diff.accounts:
            if account.changed_storage and (tx_index, account.address) not in explained:
                seen[account.address] = None
    yield from seen


def recoded_contracts(
    diffs: Sequence[TxDiff] | None, events: Iterable[ParsedLog], code: Iterable[CodeChange]
) -> Iterator[bytes]:
    """Contracts that run other code after the block: deployed, destroyed, delegated, or proxies that were upgraded."""
    seen = {change.address: None for change in code}
    seen.update({one.address: None for one in events if isinstance(one.event, ImplementationChanged)})
    for diff in diffs or ():
        for account in diff.accounts:
            if account.changed_implementation:
                seen[account.address] = None
    yield from seen
