"""The room for changed words of a token's storage whose holder is not known.

Up to UNCLAIMED_MAX words of a token are stored. What does not fit is dropped: a holder whom a later block names may
lack history, so from there on the token is audited like one without a layout.

Where the token is older than what was seen of its storage, a slot may have held something from the start: with the
first word that is stored of such a slot goes the one before it, as of the block from which on the storage was seen.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from icefall.db.engine import Transaction
from icefall.evm.storing.writing import SQL

UNCLAIMED_MAX = 65_536  # words of a token


class Dropped(NamedTuple):
    """The words of a token that a batch dropped."""

    since: int  # the first block
    words: int


class UnclaimedRoom:
    """How many more words without a known holder may be stored of each token, while a batch is written."""

    def __init__(self, tx: Transaction, most: int) -> None:
        self._tx = tx
        self._most = most
        self._counts: dict[bytes, int] = {}
        self._had_dropped: set[bytes] = set()  # in earlier batches
        self.dropped: dict[bytes, Dropped] = {}

    def load(self, tokens: Mapping[int, bytes]) -> set[int]:
        """Read of which tokens words were dropped. Return those that have some. `tokens`: stored ones, by ID."""
        rows = self._tx.rows_of_each(SQL.tokens_with_unclaimed, [(token,) for token in tokens])
        self._had_dropped |= {tokens[token] for token, has_dropped in rows if has_dropped}
        return {token for token, _ in rows}

    def has_dropped(self, token: bytes) -> bool:
        return token in self.dropped or token in self._had_dropped

    def take(self, token: bytes, stored: int | None, block: int) -> bool:
        """Take room for a word, if there is any; else count it as dropped. `stored`: the token's ID; None: nothing is
        stored of it."""
        count = self._counts.get(token)
        if count is None:
            count = self._stored(token, stored)
        if count < self._most:
            self._counts[token] = count + 1
            return True
        before = self.dropped.get(token, Dropped(block, 0))
        self.dropped[token] = Dropped(min(before.since, block), before.words + 1)
        self._counts[token] = count
        return False

    def _stored(self, token: bytes, stored: int | None) -> int:
        if stored is None or token in self._had_dropped:
            return 0 if stored is None else self._most
        count: int = self._tx.rows(SQL.unclaimed_count, {"token": stored, "most": self._most})[0][0]
        return count

    def write(self, id_of: Callable[[bytes], int]) -> int:
        """Mark the tokens of which words were dropped: their rows must be written. Return how many words that were."""
        for token, dropped in self.dropped.items():
            self._tx.run(SQL.put_words_dropped, {"token": id_of(token), "block": dropped.since})
        return sum(dropped.words for dropped in self.dropped.values())


class FirstSeen:
    """The blocks from which on the storage of tokens was seen, while a batch is written."""

    def __init__(self, tx: Transaction) -> None:
        self._tx = tx
        self._blocks: dict[bytes, int] = {}  # by token

    def load(self, in_batch: Iterable[tuple[int, bytes]], id_of: Callable[[bytes], int | None]) -> None:
        """Read those of the tokens of a batch. `in_batch`: the blocks that change tokens, in order; what is not stored
        of a token was seen first in the first of them."""
        for block, token in in_batch:
            self._blocks.setdefault(token, block)
        tokens = {number: token for token in self._blocks if (number := id_of(token)) is not None}
        for number, block in self._tx.rows_of_each(SQL.layouts_since, [(number,) for number in tokens]):
            self._blocks[tokens[number]] = block

    def before(self, token: bytes, block: int) -> int | None:
        """The block from which on a slot is known to have held what it held before `block`; None: there is none."""
        since = self._blocks[token]
        return since if since < block else None
