"""Which stored balances and owners an audit compares with the contracts, block by block.

The choice is a function of the chain up to that block alone, seeded by the block's hash: a block stored live and the
same block stored in a batch of thousands lead to the same comparisons. Three reasons make a token due at a block: the
block used it, its age in blocks is a power of two, or its turn has come (each token once every `interval` blocks). Of a
due token the pairs the block names are compared, and holders from its whole history, which nothing may have touched.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain, islice, zip_longest
from typing import Any, NamedTuple

from icefall.db.engine import Row, StatementParams
from icefall.db.statements import load
from icefall.evm.amounts import unpack_uint
from icefall.evm.model import ERC20, ERC721, ERC1155, ZERO_ADDRESS
from icefall.evm.positions import above, position_of
from icefall.evm.storing.journal import unpack_touched
from icefall.evm.token_calls import balance_of, balance_of_id, owner_of
from icefall.upstream.evm.state import ContractCall

SQL = load("icefall.evm.auditing", "audit.sql")

FIRST_CREDIT = 1_500  # comparisons a new index may make besides those its blocks earn
CREDIT_MAX = 4_000
PER_BLOCK = 1  # comparison a block earns,
TRANSFERS_PER_CHECK = 8  # and one more for so many of its transfers
LAG = 32  # blocks audited together; what they find changes the choice only after so many blocks
_NAMED_MAX = 16  # per token and block
_OTHERS_MAX = 12
_SILENT_MAX = 64  # of a token whose storage or code changed without a log that explains it
_NFTS_MAX = 512  # of an untrusted collection, whose owners must be found
_MOVES_MAX = 2_048
_TOKENS_MAX = 64  # due by age or by turn

Read = Callable[[str, StatementParams], list[Row]]
Key = tuple[int | None, bytes | None]  # holder and token ID; ERC-20 has no ID, of an NFT the owner is the value


class StateCheck(NamedTuple):
    """A stored value, and the call whose result it must equal at a block."""

    token: int
    token_address: bytes
    call: ContractCall
    stored: int | bytes  # a balance, or the owner of an NFT
    token_id: bytes  # of an NFT; empty for balances


class BlockSample(NamedTuple):
    block_hash: bytes | None  # None: there is no such block any more
    checks: list[StateCheck]
    credit: int  # what is left of the budget
    by_turn: list[int]  # tokens whose turn it is, once every `interval` blocks


class _Standard(NamedTuple):
    bit: int
    oldest: str
    from_: str
    by_key: str


_STANDARDS = (
    _Standard(ERC20, SQL.erc20_oldest, SQL.erc20_from, SQL.erc20_by_key),
    _Standard(ERC1155, SQL.erc1155_oldest, SQL.erc1155_from, SQL.erc1155_by_key),
    _Standard(ERC721, SQL.nft_oldest, SQL.nft_from, SQL.nft_by_key),
)


class _Due(NamedTuple):
    """What a block says of one token: the keys it names by standard, and whether the contract changed silently."""

    named: dict[int, dict[Key, None]]
    is_silent: bool


class Sampler:
    def __init__(self, read: Read, interval: int) -> None:
        self._read = read
        self._interval = interval

    def at(self, block: int, credit: int) -> BlockSample:
        found = self._read(SQL.block, {"block": block})
        if not found:
            return BlockSample(None, [], credit, [])
        block_hash, next_address, touched, tx_count = found[0]
        due, transfers = self._used(block, touched) if tx_count or touched else ({}, 0)
        for token in self._due_by_age(block):
            due.setdefault(token, _Due({}, False))
        by_turn = list(self._due_by_turn(block, next_address))
        for token in by_turn:
            due.setdefault(token, _Due({}, False))
        credit = min(CREDIT_MAX, credit + PER_BLOCK + transfers // TRANSFERS_PER_CHECK)
        lists = [self._of_token(token, one, block, block_hash, next_address) for token, one in sorted(due.items())]
        fairly = (check for turn in zip_longest(*lists) for check in turn if check is not None)
        checks = list(islice(fairly, credit))
        return BlockSample(block_hash, checks, credit - len(checks), by_turn)

    def all_tokens(self, block: int, after: int) -> Iterator[tuple[int, list[StateCheck]]]:
        """Every token from the one after `after` on, with what to compare of it at the block."""
        found = self._read(SQL.block, {"block": block})
        while found:
            key = {"low": after + 1, "high": 1 << 62, "block": block, "count": _TOKENS_MAX}
            tokens = [row[0] for row in self._read(SQL.tokens_between, key)]
            for token in tokens:
                silent = _Due({}, is_silent=True)
                yield token, list(self._of_token(token, silent, block, found[0][0], found[0][1], lag=0))
            if len(tokens) < _TOKENS_MAX:
                return
            after = tokens[-1]

    # -- which tokens ------------------------------------------------------------------------------------------

    def _used(self, block: int, touched: bytes) -> tuple[dict[int, _Due], int]:
        """Tokens the block names or changes, and the number of its transfers."""
        due: dict[int, _Due] = {}

        def name(token: int, standard: int, key: Key) -> None:
            named = due.setdefault(token, _Due({}, False)).named.setdefault(standard, {})
            if len(named) < _NAMED_MAX:
                named[key] = None

        where = {"from_log": position_of(block, 0), "to_log": above(block) - 1, "count": _MOVES_MAX}
        moves = self._read(SQL.moves, where)
        for standard, token, sender, recipient, token_id in moves:
            name(token, standard, (sender, token_id))
            if recipient != sender:
                name(token, standard, (recipient, token_id))
        journal = unpack_touched(touched)
        for holder, token in journal.named:
            name(token, ERC20, (holder, None))
        for token in (*journal.silent, *journal.recoded):
            due[token] = _Due(due[token].named if token in due else {}, is_silent=True)
        return due, len(moves)

    def _due_by_age(self, block: int) -> Iterator[int]:
        """First seen one, two, four, eight ... blocks ago: balances that change by themselves show early."""
        blocks = [block - (1 << power) for power in range(block.bit_length()) if 1 << power <= block]
        rows = self._read(SQL.tokens_first_seen, {"blocks": blocks, "count": _TOKENS_MAX})
        yield from (row[0] for row in rows)

    def _due_by_turn(self, block: int, next_address: int) -> Iterator[int]:
        """Tokens whose turn comes at this block, once every `interval` blocks."""
        if self._interval <= 0:
            return
        turn = block % self._interval
        low, high = next_address * turn // self._interval, next_address * (turn + 1) // self._interval
        if low < high:
            key = {"low": low, "high": high, "block": block, "count": _TOKENS_MAX}
            yield from (row[0] for row in self._read(SQL.tokens_between, key))

    # -- what of a token ---------------------------------------------------------------------------------------

    def _of_token(
        self, token: int, due: _Due, block: int, block_hash: bytes, next_address: int, lag: int = LAG
    ) -> Iterator[StateCheck]:
        found = self._read(SQL.token, {"token": token, "block": block, "known": block - lag})
        if not found:
            return
        address, first_block, standards, is_untrusted = found[0]
        for standard in _STANDARDS:
            if not standards & standard.bit or (is_untrusted and standard.bit != ERC721):
                continue
            count = _SILENT_MAX if due.is_silent else _OTHERS_MAX
            if is_untrusted:
                count = _NFTS_MAX if due.is_silent else 0
            where = {"token": token, "address": address, "block": block, "to_log": above(block) - 1}
            named = due.named.get(standard.bit, {})
            seeds = random_numbers(block_hash + address + bytes([standard.bit]))
            others = self._others(standard, where, first_block, next_address, count, seeds)
            seen: set[Key] = set()
            for holder, token_id, who, stored in chain(self._named(standard, where, named), others):
                if (holder, token_id) not in seen and who is not None:
                    seen.add((holder, token_id))
                    if holder is None:
                        yield StateCheck(token, address, owner_of(address, unpack_uint(token_id)), who, token_id)
                    elif who != ZERO_ADDRESS:
                        yield StateCheck(
                            token, address, _balance_call(address, who, token_id), unpack_uint(stored), b""
                        )

    def _named(self, standard: _Standard, where: Mapping[str, Any], keys: Iterable[Key]) -> Iterator[Row]:
        for holder, token_id in keys:
            yield from self._read(standard.by_key, {**where, "holder": holder, "token_id": token_id})

    def _others(
        self,
        standard: _Standard,
        where: Mapping[str, Any],
        first_block: int,
        next_address: int,
        count: int,
        seeds: Iterator[int],
    ) -> Iterator[Row]:
        """All holders, or all IDs, where they are few; else some at random positions of the token's history."""
        if not count:
            return
        oldest = self._read(standard.oldest, {**where, "count": count + 1})
        if len(oldest) <= count:
            yield from oldest
            return
        for _ in range(count):
            since = first_block + next(seeds) % (where["block"] - first_block + 1)
            at = {"since": since, "holder": next(seeds) % max(1, next_address), "from_log": position_of(since, 0)}
            yield from self._read(standard.from_, {**where, **at})


def _balance_call(token: bytes, holder: bytes, token_id: bytes | None) -> ContractCall:
    return balance_of(token, holder) if token_id is None else balance_of_id(token, holder, unpack_uint(token_id))


def random_numbers(start: bytes) -> Iterator[int]:
    """Pseudo-random numbers seeded by the block hash: unknown before the block is made, the same for all after it."""
    state = start
    while True:
        state = hashlib.blake2b(state, digest_size=32).digest()
        for offset in range(0, 32, 8):
            yield int.from_bytes(state[offset : offset + 8], "big")
