"""Derives the ranges of NFTs that logs move (ERC-2309), as spans of IDs: one of 2**255 costs as much as a single ID.
Pure."""

from bisect import bisect_right, insort
from collections.abc import Iterator, Sequence

from icefall.evm.model import Erc721TransferRow, NftRange


class IdSpans:
    """A set of IDs, held as spans from a first to a last one."""

    def __init__(self) -> None:
        self._firsts: list[int] = []
        self._last_of: dict[int, int] = {}

    def overlaps(self, first: int, last: int) -> bool:
        """Tell whether any ID of the span is in the set."""
        at = bisect_right(self._firsts, last)
        return at > 0 and self._last_of[self._firsts[at - 1]] >= first

    def add(self, first: int, last: int) -> None:
        """Add a span; one that overlaps another is left out, so `overlaps` may miss what only it contains."""
        if not self.overlaps(first, last):
            insort(self._firsts, first)
            self._last_of[first] = last

    def start_of(self, token_id: int) -> int | None:
        """The first ID of the span that contains this one; None if none does."""
        at = bisect_right(self._firsts, token_id)
        first = self._firsts[at - 1] if at else None
        return first if first is not None and self._last_of[first] >= token_id else None


def nft_ranges(moves: Sequence[Erc721TransferRow]) -> Iterator[NftRange]:
    """The ranges that moved, in log order."""
    if all(move.last_id is None for move in moves):
        return
    known: dict[bytes, IdSpans] = {}
    for move in moves:
        first, last = move.token_id, move.token_id if move.last_id is None else move.last_id
        spans = known.setdefault(move.token, IdSpans())
        if move.last_id is not None:
            is_known = spans.overlaps(first, last)
            yield NftRange(move.token, move.log_index, first + 1, last, move.to, is_known)
        spans.add(first, last)
