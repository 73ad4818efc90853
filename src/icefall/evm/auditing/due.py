"""The tokens that are due at each block of a run, read in few statements for all its blocks.

A block makes a token due that it uses, whose age in blocks is a power of two, or whose turn has come (each token once
every `interval` blocks). What is read has a limit per block; where a run has too many rows it is read in two halves.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from icefall.db.engine import Row, StatementParams
from icefall.evm.encoding import BITS, above, position_of
from icefall.evm.model import ERC20
from icefall.evm.standards import STANDARDS, load_statements
from icefall.evm.storing.rollback import unpack_touched

SQL = load_statements("icefall.evm.auditing", "audit.sql")

TOKENS_MAX = 64  # of a block: due by age, or by turn
MOVES_MAX = 2_048  # of a block, by standard
_RUN_ROWS = 8_192  # of a run, by statement
_NAMED_MAX = 16  # per token and block

Key = tuple[int | None, bytes | None]  # holder and token ID; ERC-20 has no ID, of an NFT the owner is the value


class Reads(Protocol):
    """The reading side of a store that answers on the calling thread."""

    def read(self, statement: str, params: StatementParams = (), /) -> list[Row]: ...

    def read_each(self, statement: str, params: Sequence[Mapping[str, Any]], /) -> list[list[Row]]: ...


class Move(NamedTuple):
    """A transfer, as far as audits need it."""

    standard: int
    token: int
    sender: int | None
    recipient: int | None
    token_id: bytes | None


class Due(NamedTuple):
    """A token that is due: the keys that the block names, by standard, and whether its storage or code changed without
    a log that explains it."""

    keys: dict[int, dict[Key, None]]
    changed_unlogged: bool


class BlockDue(NamedTuple):
    """The tokens that are due at a block."""

    block_hash: bytes
    next_address: int
    tokens: dict[int, Due]
    transfers: int
    by_turn: list[int]  # of the tokens, those whose turn it is
    is_cut: bool = False  # it has more transfers than were looked at


class _Moves(NamedTuple):
    """The transfers by block, and the blocks that have more."""

    by_block: dict[int, list[Move]]
    cut: set[int]


class _BlockRun(NamedTuple):
    """A run of stored blocks that follow one another. `rows`: number, hash, next address, journal."""

    rows: list[Row]

    @property
    def first(self) -> int:
        return int(self.rows[0][0])

    @property
    def last(self) -> int:
        return int(self.rows[-1][0])

    def limit(self, of_block: int) -> int:
        """The most rows to read: those of one block, or those of a run that is read in halves if it has more."""
        return of_block if len(self.rows) == 1 else _RUN_ROWS


class DueTokens:
    def __init__(self, reads: Reads, interval: int, moves_max: int) -> None:
        self._reads = reads
        self._moves_max = moves_max  # of a block that are looked at, by standard
        self._interval = interval

    def of(self, first: int, last: int) -> dict[int, BlockDue]:
        """The due tokens by block number, for the blocks that are stored."""
        rows = self._reads.read(SQL.blocks, {"first": first, "last": last})
        return self._of_run(_BlockRun(rows)) if rows else {}

    def _of_run(self, run: _BlockRun) -> dict[int, BlockDue]:
        moves, seen, turns = self._moves(run), self._first_seen(run), self._turns(run)
        if moves is None or seen is None or turns is None:
            middle = len(run.rows) // 2
            return self._of_run(_BlockRun(run.rows[:middle])) | self._of_run(_BlockRun(run.rows[middle:]))
        found = {}
        for number, block_hash, next_address, touched in run.rows:
            of_block = moves.by_block[number]
            used = _used(of_block, touched)
            by_turn = turns.get(number, [])
            for token in (*_of_age(number, seen), *by_turn):
                used.setdefault(token, Due({}, changed_unlogged=False))
            found[number] = BlockDue(block_hash, next_address, used, len(of_block), by_turn, number in moves.cut)
        return found

    def _moves(self, run: _BlockRun) -> _Moves | None:
        """The transfers by block; None where there are more than may be read at once."""
        limit = run.limit(self._moves_max + 1)
        where = {"from_log": position_of(run.first, 0), "to_log": above(run.last) - 1, "count": limit}
        found = _Moves(defaultdict(list), set())
        for standard in STANDARDS:
            rows = self._reads.read(SQL.named(f"moves_of_{standard.table}"), where)
            if limit == _RUN_ROWS <= len(rows):
                return None
            by_block: dict[int, list[Move]] = defaultdict(list)
            for at, *move in rows:
                by_block[at >> BITS].append(Move(standard.number, *move))
            for block, moves in by_block.items():
                found.by_block[block] += moves[: self._moves_max]
                if len(moves) > self._moves_max:
                    found.cut.add(block)
        return found

    def _first_seen(self, run: _BlockRun) -> dict[int, list[int]] | None:
        """The tokens by their first block, for every block that is a power of two before one of the run."""
        limit = run.limit(TOKENS_MAX)
        spans: list[tuple[int, int]] = []
        for power in reversed(range(run.last.bit_length())):
            low, high = max(0, run.first - (1 << power)), run.last - (1 << power)
            if spans and low <= spans[-1][1] + 1:
                spans[-1] = spans[-1][0], high
            elif high >= low:
                spans.append((low, high))
        keys = [{"low": low, "high": high, "count": limit} for low, high in spans]
        found: dict[int, list[int]] = defaultdict(list)
        for rows in self._reads.read_each(SQL.tokens_first_seen, keys):
            if limit == _RUN_ROWS <= len(rows):
                return None
            for first_block, token in rows:
                found[first_block].append(token)
        return found

    def _turns(self, run: _BlockRun) -> dict[int, list[int]] | None:
        """The tokens whose turn it is, by block."""
        if self._interval <= 0:
            return {}
        spans = {}
        for number, _, next_address, _ in run.rows:
            turn = number % self._interval
            low, high = next_address * turn // self._interval, next_address * (turn + 1) // self._interval
            if low < high:
                spans[number] = low, high
        if not spans:
            return {}
        limit = run.limit(TOKENS_MAX)
        low, high = min(low for low, _ in spans.values()), max(high for _, high in spans.values())
        rows = self._reads.read(SQL.tokens_between, {"low": low, "high": high, "block": run.last, "count": limit})
        if limit == _RUN_ROWS <= len(rows):
            return None
        return {
            number: [token for token, first_block in rows if low <= token < high and first_block <= number][:TOKENS_MAX]
            for number, (low, high) in spans.items()
        }


def _of_age(block: int, seen: Mapping[int, list[int]]) -> Iterable[int]:
    """The tokens first seen one, two, four, eight ... blocks ago: balances that change by themselves show early."""
    if not seen:
        return ()
    ages = [1 << power for power in range(block.bit_length())]
    return sorted(token for age in ages for token in seen.get(block - age, ()))[:TOKENS_MAX]


def _used(moves: Iterable[Move], touched: bytes) -> dict[int, Due]:
    """The tokens that a block names or changes."""
    named: dict[tuple[int, int], dict[Key, None]] = {}  # by token and standard
    for standard, token, sender, recipient, token_id in moves:
        keys = named.get((token, standard))
        if keys is None:
            keys = named[token, standard] = {}
        elif len(keys) >= _NAMED_MAX:
            continue
        keys[sender, token_id] = None
        if len(keys) < _NAMED_MAX:
            keys[recipient, token_id] = None
    journal = unpack_touched(touched)
    for holder, token in journal.holders_named:
        keys = named.setdefault((token, ERC20), {})
        if len(keys) < _NAMED_MAX:
            keys[holder, None] = None
    due: dict[int, Due] = {}
    for (token, standard), keys in named.items():
        due.setdefault(token, Due({}, changed_unlogged=False)).keys[standard] = keys
    for token in (*journal.storage_changed_unlogged, *journal.code_changed):
        due[token] = Due(due[token].keys if token in due else {}, changed_unlogged=True)
    return due
