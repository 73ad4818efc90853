"""Counts the holders, transfers and supply of tokens: in the background, or before an index with a last block ends, so
that ingest costs nothing more. A rollback corrects the counts.

`count_some` brings the tables `holder` and `holder_total` up to date for some further blocks. A holder's balance is
taken from the rows that balances are read from, so it does not matter how often a pair is counted.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from icefall.db.engine import Store, Transaction
from icefall.evm.encoding import block_of, pack_uint, position_of, unpack_uint
from icefall.evm.model import ERC20
from icefall.evm.standards import BY_ID, BY_NUMBER, STANDARDS, Holding, load_statements
from icefall.evm.storing.nft_ranges import count_of

SQL = load_statements("icefall.evm.storing", "holders.sql")
COUNTED_TO = "holders_to"  # meta: the last block whose transfers are counted
MOVES = 25_000  # counted in one transaction: a quarter of a second at most
ALL_MOVES = 100_000  # where no block waits for it: a pair that many transfers name is counted once
COUNTED_MAX = 1 << 40  # NFTs of one holder: a log may give away 2**255 of them (ERC-2309)
_ZERO = pack_uint(0)


Counts = dict[tuple[int, int], int]  # how many more there are, by token and standard


class Moved(NamedTuple):
    """What the transfers of some blocks add to the totals of tokens."""

    ids: Counts  # token IDs that moved for the first time
    transfers: Counts


class Pair(NamedTuple):
    """A holder of a token of one standard."""

    standard: int
    token: int
    holder: int


def counted_to(tx: Transaction) -> int:
    rows = tx.rows(SQL.meta, {"name": COUNTED_TO})
    return int(rows[0][0]) if rows else -1


async def count_some(store: Store, moves: int = MOVES) -> bool:
    """Count some blocks more. Return whether there were any."""
    return await store.write(lambda tx: _count_some(tx, moves))


async def count_all(store: Store) -> None:
    while await count_some(store, ALL_MOVES):
        pass


def _count_some(tx: Transaction, moves: int) -> bool:
    done, tip = counted_to(tx), tx.rows(SQL.tip)
    if not tip or tip[0][0] <= done:
        return False
    last = _last_of_step(tx, done, tip[0][0], moves)
    recount(tx, pairs_between(tx, done + 1, last + 1), _moved(tx, done + 1, last + 1))
    tx.run(SQL.put_meta, {"name": COUNTED_TO, "value": str(last)})
    return True


def _last_of_step(tx: Transaction, done: int, tip: int, moves: int) -> int:
    """The last block of a step of so many transfers: few blocks of many take no longer than many blocks of few."""
    where = {"low": position_of(done + 1, 0), "moves": moves}
    after = [at for statement in SQL.each("move_after_{standard}") for (at,) in tx.rows(statement, where)]
    return max(done + 1, block_of(min(after)) - 1) if after else tip


def pairs_between(tx: Transaction, first: int, end: int) -> list[Pair]:
    """The pairs whose balance transfers of these blocks may have changed."""
    no_holders = {None, *(row[0] for row in tx.rows(SQL.zero_address))}
    span = _positions(first, end)
    statements = (*SQL.each("moved_{standard}"), SQL.changed_slots, SQL.owners_before)
    found = {row for statement in statements for row in tx.rows(statement, span) if row[2] not in no_holders}
    return [Pair(*row) for row in sorted(found)]


def rolled_back_pairs(tx: Transaction, ancestor: int, newest: int) -> list[Pair]:
    """The pairs whose balance a rollback of blocks up to the newest may change, also of blocks that no step has
    reached: steps take the balances after the newest block."""
    return pairs_between(tx, ancestor + 1, newest + 1) if counted_to(tx) >= 0 else []


def dropped(tx: Transaction, first: int, end: int) -> Moved:
    """What a rollback of these blocks takes from the totals, as negative numbers."""
    ids, transfers = _moved(tx, first, end)
    return Moved({key: -count for key, count in ids.items()}, {key: -count for key, count in transfers.items()})


def _moved(tx: Transaction, first: int, end: int) -> Moved:
    span = _positions(first, end)
    where = {**span, "low_block": first, "high_block": end}
    ids = {
        (token, standard.number): count
        for standard in BY_ID
        for token, count in tx.rows(SQL.named(f"new_ids_of_{standard.table}"), where)
    }
    transfers = {
        (token, standard.number): count
        for standard in STANDARDS
        for token, count in tx.rows(SQL.named(f"transfers_of_{standard.table}"), span)
    }
    return Moved(ids, transfers)


def recount(tx: Transaction, pairs: Sequence[Pair], moved: Moved) -> None:
    """Count pairs again, all in few statements: to a server each is a round trip."""
    holders: Counter[tuple[int, int]] = Counter()
    tokens: Counter[tuple[int, int]] = Counter(moved.ids)
    supply: Counter[tuple[int, int]] = Counter()
    stored = {Pair(*key): balance for *key, balance in tx.rows_of_each(SQL.holder, pairs) if balance is not None}
    held = _held(tx, pairs)
    changed: list[tuple[int, int, int, bytes]] = []
    for pair in pairs:
        was, now = stored.get(pair, _ZERO), held.get(pair)
        if now is not None and (pair not in stored or now != was):
            changed.append((*pair, now))
        holders[pair.token, pair.standard] += ((now or _ZERO) != _ZERO) - (was != _ZERO)
        if BY_NUMBER[pair.standard].holding is Holding.OWNER:  # each is one token
            tokens[pair.token, pair.standard] += _counted(now or _ZERO) - _counted(was)
        elif pair.standard == ERC20:
            supply[pair.token, pair.standard] += unpack_uint(now or _ZERO) - unpack_uint(was)
    tx.run_many(SQL.drop_holder, [pair for pair in stored if pair not in held])
    tx.run_many(SQL.put_holder, changed)
    keys = list({**holders, **tokens, **moved.transfers})
    supplies = _supplies(tx, keys, supply)
    totals = [(*key, holders[key], tokens[key], moved.transfers.get(key, 0), supplies[key]) for key in keys]
    tx.run_many(SQL.add_total, totals)
    tx.run_many(SQL.drop_empty_total, keys)


def _supplies(
    tx: Transaction, keys: Sequence[tuple[int, int]], added: Counter[tuple[int, int]]
) -> dict[tuple[int, int], bytes]:
    """The sums of all balances of each token, which the store's numbers are too small to add up."""
    stored = {(token, standard): packed for token, standard, packed in tx.rows_of_each(SQL.supply, keys) if packed}
    return {key: pack_uint(unpack_uint(stored.get(key, _ZERO)) + added[key]) for key in keys}


def _counted(balance: bytes) -> int:
    """The NFTs of a holder as they count in the total of a token, which is a number of the store."""
    return min(unpack_uint(balance), COUNTED_MAX)


def _held(tx: Transaction, pairs: Iterable[Pair]) -> dict[Pair, bytes]:
    """The balances as they are stored. A pair of which nothing shows that it ever held any is not among them."""
    found: dict[Pair, bytes] = {}
    by_standard: dict[int, list[tuple[int, int]]] = {standard.number: [] for standard in STANDARDS}
    for pair in pairs:
        by_standard[pair.standard].append((pair.token, pair.holder))
    for standard in STANDARDS:
        held = tx.rows_of_each(SQL.named(f"{standard.table}_held"), by_standard[standard.number])
        in_ranges = _held_in_ranges(tx, by_standard[standard.number]) if standard.holding is Holding.OWNER else {}
        for token, holder, stored in held:  # a packed balance, or how many tokens
            amount = stored + in_ranges.get((token, holder), 0) if in_ranges else stored
            if amount:
                packed = amount if isinstance(amount, bytes) else pack_uint(amount)
                found[Pair(standard.number, token, holder)] = packed
    return found


def _held_in_ranges(tx: Transaction, pairs: Sequence[tuple[int, int]]) -> dict[tuple[int, int], int]:
    """How many NFTs of ranges each (token, holder) has."""
    ranges: dict[tuple[int, int], list[tuple[bytes, bytes, int]]] = {}
    for token, holder, *one in tx.rows_of_each(SQL.ranges_held, pairs):
        ranges.setdefault((token, holder), []).append((one[0], one[1], one[2]))
    return {pair: max(0, count_of(found)) for pair, found in ranges.items()}


def _positions(first: int, end: int) -> dict[str, int]:
    return {"low": position_of(first, 0), "high": position_of(end, 0)}


def roll_back_to(tx: Transaction, ancestor: int) -> None:
    """Lower the mark, after the rows above the ancestor are gone and the pairs that they named are counted again."""
    if counted_to(tx) > ancestor:
        tx.run(SQL.put_meta, {"name": COUNTED_TO, "value": str(ancestor)})
