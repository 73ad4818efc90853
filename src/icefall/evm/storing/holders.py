"""Counts the holders of tokens: in the background, or before an index with a last block ends, so that ingest costs
nothing more; corrected by a rollback.

`count_some` brings the table `holder` up to date for some further blocks. A holder's balance is taken from the rows
that balances are read from, so it does not matter how often a pair is counted.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from icefall.db.engine import Store, Transaction
from icefall.db.statements import load
from icefall.evm.encoding import block_of, pack_uint, position_of, unpack_uint
from icefall.evm.model import ERC20, ERC721, ERC1155

SQL = load("icefall.evm.storing", "holders.sql")
COUNTED_TO = "holders_to"  # meta: the last block whose transfers are counted
MOVES = 25_000  # counted in one transaction: a quarter of a second at most
ALL_MOVES = 100_000  # where no block waits for it: a pair that many transfers name is counted once
_ZERO = pack_uint(0)


class Pair(NamedTuple):
    standard: int
    token: int
    holder: int


def counted_to(tx: Transaction) -> int:
    rows = tx.rows(SQL.meta, {"name": COUNTED_TO})
    return int(rows[0][0]) if rows else -1


async def count_some(store: Store, moves: int = MOVES) -> bool:
    """Whether there were blocks to count."""
    return await store.write(lambda tx: _count_some(tx, moves))


async def count_all(store: Store) -> None:
    while await count_some(store, ALL_MOVES):
        pass


def _count_some(tx: Transaction, moves: int) -> bool:
    done, tip = counted_to(tx), tx.rows(SQL.tip)
    if not tip or tip[0][0] <= done:
        return False
    last = _last_of_step(tx, done, tip[0][0], moves)
    where = _range(done + 1, last + 1)
    new_ids: dict[int, int] = dict(tx.rows(SQL.new_ids, where))
    recount(tx, pairs_between(tx, done + 1, last + 1), new_ids)
    tx.run(SQL.put_meta, {"name": COUNTED_TO, "value": str(last)})
    return True


def _last_of_step(tx: Transaction, done: int, tip: int, moves: int) -> int:
    """By transfers: few blocks of many take no longer than many blocks of few."""
    next_step = tx.rows(SQL.move_after, {"low": position_of(done + 1, 0), "moves": moves})[0][0]
    return tip if next_step is None else max(done + 1, block_of(next_step) - 1)


def pairs_between(tx: Transaction, first: int, end: int) -> list[Pair]:
    """Pairs whose balance transfers of these blocks may have changed."""
    no_holders = {None, *(row[0] for row in tx.rows(SQL.zero_address))}
    span = {name: value for name, value in _range(first, end).items() if name in ("low", "high")}
    return [Pair(*row) for row in tx.rows(SQL.moved, span) if row[2] not in no_holders]


def rolled_back_pairs(tx: Transaction, ancestor: int, newest: int) -> list[Pair]:
    """Pairs whose balance a rollback of blocks up to the newest may change, also of blocks that no step has reached:
    steps take the balances after the newest block."""
    return pairs_between(tx, ancestor + 1, newest + 1) if counted_to(tx) >= 0 else []


def dropped_ids(tx: Transaction, first: int, end: int) -> dict[int, int]:
    """ERC-1155 IDs that a rollback of these blocks drops, as a negative number by token."""
    return {token: -count for token, count in tx.rows(SQL.new_ids, _range(first, end))}


def recount(tx: Transaction, pairs: Sequence[Pair], new_ids: dict[int, int]) -> None:
    """Few statements for all pairs: to a server each is a round trip."""
    holders: Counter[tuple[int, int]] = Counter()
    tokens: Counter[tuple[int, int]] = Counter({(token, ERC1155): count for token, count in new_ids.items()})
    stored = {Pair(*key): balance for *key, balance in tx.rows_of_each(SQL.holder, pairs) if balance is not None}
    held = _held(tx, pairs)
    changed: list[tuple[int, int, int, bytes]] = []
    for pair in pairs:
        was, now = stored.get(pair, _ZERO), held.get(pair)
        if now is not None and (pair not in stored or now != was):
            changed.append((*pair, now))
        holders[pair.token, pair.standard] += ((now or _ZERO) != _ZERO) - (was != _ZERO)
        if pair.standard == ERC721:
            tokens[pair.token, ERC721] += unpack_uint(now or _ZERO) - unpack_uint(was)
    tx.run_many(SQL.drop_holder, [pair for pair in stored if pair not in held])
    tx.run_many(SQL.put_holder, changed)
    keys = {**holders, **tokens}
    tx.run_many(SQL.add_total, [(*key, holders[key], tokens[key]) for key in keys])
    tx.run_many(SQL.drop_empty_total, list(keys))


def _held(tx: Transaction, pairs: Iterable[Pair]) -> dict[Pair, bytes]:
    """Balances as they are stored. A pair of which nothing shows that it ever held any is not among them."""
    found: dict[Pair, bytes] = {}
    by_standard: dict[int, list[tuple[int, int]]] = {ERC20: [], ERC721: [], ERC1155: []}
    for pair in pairs:
        by_standard[pair.standard].append((pair.token, pair.holder))
    for token, holder, balance in tx.rows_of_each(SQL.erc20_held, by_standard[ERC20]):
        if balance is not None:
            found[Pair(ERC20, token, holder)] = balance
    for standard, statement in ((ERC721, SQL.erc721_held), (ERC1155, SQL.erc1155_held)):
        for token, holder, count in tx.rows_of_each(statement, by_standard[standard]):
            if count:
                found[Pair(standard, token, holder)] = pack_uint(count)
    return found


def _range(first: int, end: int) -> dict[str, int]:
    return {"low": position_of(first, 0), "high": position_of(end, 0), "low_block": first, "high_block": end}


def roll_back_to(tx: Transaction, ancestor: int) -> None:
    """After the rows above the ancestor are gone, and the pairs that they named are counted again."""
    if counted_to(tx) > ancestor:
        tx.run(SQL.put_meta, {"name": COUNTED_TO, "value": str(ancestor)})
