"""Who owned NFTs of a contract that moves ranges of them with one log (ERC-2309), from all its transfers in order.

A range of 2**255 IDs costs as much as a single one: each transfer replaces what it covers by one span of IDs, and
leaves at most two parts of others. Pure.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable
from typing import NamedTuple

BEFORE_ALL = -1


class NftMove(NamedTuple):
    """A transfer of the IDs from the first to the last one in a block. Parties are the store's numbers of addresses."""

    block: int
    sender: int
    to: int
    first: int
    last: int


class _Held(NamedTuple):
    last: int
    owner: int
    since: int


class OwnedSpans:
    """The owners of all IDs so far. `note` is called with an owner, and the blocks after which and until which it had
    some ID that it has no longer."""

    def __init__(self, note: Callable[[int, int, int], None]) -> None:
        self._note = note
        self._firsts: list[int] = []
        self._held: dict[int, _Held] = {}

    def take(self, moves: Iterable[NftMove]) -> None:
        """Apply transfers in their order."""
        for move in moves:
            self._move(move)

    def owners(self) -> Iterable[tuple[int, int]]:
        """List the owner of each span of IDs, and the block since which it has it."""
        return ((one.owner, one.since) for one in self._held.values())

    def _move(self, move: NftMove) -> None:
        firsts, held = self._firsts, self._held
        begin = bisect_right(firsts, move.first)
        if begin and held[firsts[begin - 1]].last >= move.first:
            begin -= 1
        end = bisect_right(firsts, move.last)
        pieces: list[tuple[int, _Held]] = [(move.first, _Held(move.last, move.to, move.block))]
        next_id, has_unknown = move.first, False
        for first in firsts[begin:end]:
            old = held.pop(first)
            has_unknown = has_unknown or first > next_id
            next_id = old.last + 1
            if old.since < move.block:
                self._note(old.owner, old.since, move.block)
            if first < move.first:
                pieces.insert(0, (first, old._replace(last=move.first - 1)))
            if old.last > move.last:
                pieces.append((move.last + 1, old))
        if has_unknown or next_id <= move.last:  # the index began when the sender had it already
            self._note(move.sender, BEFORE_ALL, move.block)
        firsts[begin:end] = [first for first, _ in pieces]
        held.update(pieces)
