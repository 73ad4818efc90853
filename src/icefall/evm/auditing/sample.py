"""The choice of stored balances and owners that an audit compares with the contracts, block by block.

The choice is a function of the chain up to that block alone, seeded by the block's hash: a block stored live and the
same block stored in a batch of thousands lead to the same comparisons. due.py says which tokens are due at a block. Of
a due token the pairs the block names are compared, and holders from its whole history, which nothing may have touched.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, islice
from typing import Any, NamedTuple

from icefall.db.engine import Row
from icefall.evm.auditing.due import MOVES_MAX, SQL, TOKENS_MAX, BlockDue, Due, DueTokens, Key, Reads
from icefall.evm.contract_calls import holding_call
from icefall.evm.encoding import above, position_of, unpack_uint
from icefall.evm.model import ZERO_ADDRESS
from icefall.evm.standards import STANDARDS, Holding, TokenStandard
from icefall.upstream.evm.state import ContractCall

FIRST_CREDIT = 1_500  # comparisons a new index may make besides those its blocks earn
CREDIT_MAX = 4_000
PER_BLOCK = 1  # comparison a block earns,
TRANSFERS_PER_CHECK = 8  # and one more for so many of its transfers
LAG = 32  # blocks audited together; what they find changes the choice only after so many blocks
BY_STORAGE_EVERY = 16  # times that it is due, a token is compared whose balances come from its storage:
BY_STORAGE_NAMED = 2  # pairs that the block names,
BY_STORAGE_OTHERS = 4  # and others of its history
_OTHERS_MAX = 12
_UNLOGGED_MAX = 64  # of a token whose storage or code changed without a log that explains it
_NFTS_MAX = 512  # of an untrusted collection, whose owners must be found


class StateCheck(NamedTuple):
    """A stored value, and the call whose result it must equal at a block."""

    token: int
    token_address: bytes
    call: ContractCall
    stored: int | bytes  # a balance, or the owner of an NFT
    token_id: bytes  # of an NFT; empty for balances


class BlockSample(NamedTuple):
    """The comparisons to make at a block."""

    number: int
    block_hash: bytes | None  # None: there is no such block any more
    checks: list[StateCheck]
    credit: int  # what is left of the budget
    dropped: int  # tokens that were due, and of which less was compared than the block names
    by_turn: list[int]  # tokens whose turn it is, once every `interval` blocks


class _Token(NamedTuple):
    address: bytes
    first_block: int
    standards: int
    untrusted_since: int | None
    is_by_storage: bool  # its balances are what its storage holds, since its first block
    words_dropped_since: int | None  # until the block of the first word that was dropped

    def at(self, block: int) -> "_Token":
        """The token as it was known at a block."""
        has_dropped = self.words_dropped_since is not None and self.words_dropped_since <= block
        return self._replace(is_by_storage=False) if has_dropped else self

    def is_sampled(self, block_hash: bytes) -> bool:
        """Tell whether it is compared at a block where it is due: of a token whose balances come from its storage only
        now and then, for code may hold a constant balance."""
        if not self.is_by_storage:
            return True
        return next(random_numbers(b"storage" + block_hash + self.address)) % BY_STORAGE_EVERY == 0

    def compared(self, block: int, lag: int) -> tuple[bool, list[TokenStandard]]:
        """Tell whether it is untrusted, as far as audits of blocks `lag` before know, and which standards are compared:
        of an untrusted token none but the owners of its NFTs, which lists by owner need."""
        if self.first_block > block:
            return False, []
        is_untrusted = self.untrusted_since is not None and self.untrusted_since <= block - lag
        return is_untrusted, [
            standard
            for standard in STANDARDS
            if self.standards & standard.number and (standard.holding is Holding.OWNER or not is_untrusted)
        ]


_Tokens = Mapping[int, _Token]
_Ahead = dict[tuple[int, int, int, Key], list[Row]]  # rows by standard, block, token and key


class Sampler:
    def __init__(self, reads: Reads, interval: int, moves_max: int = MOVES_MAX) -> None:
        self._reads = reads
        self._due = DueTokens(reads, interval, moves_max)

    def over(self, first: int, last: int, credit: int) -> list[BlockSample]:
        """The samples of consecutive blocks, at most LAG of them."""
        run = self._due.of(first, last)
        tokens = self._tokens({token for block in run.values() for token in block.tokens})
        ahead = self._read_ahead(run, tokens, credit)
        found = []
        for number in range(first, last + 1):
            block = run.get(number)
            if block is None:
                found.append(BlockSample(number, None, [], credit, 0, []))
                continue
            credit = _earned(credit, block)
            lists: dict[bool, list[Iterator[StateCheck]]] = {True: [], False: []}
            for token, due in sorted(block.tokens.items()):
                if token in tokens and (stored := tokens[token].at(number)).is_sampled(block.block_hash):
                    checks_of = self._of_token(token, stored, due, number, block, ahead)
                    lists[due.changed_unlogged].append(checks_of)
            # Those first whose storage changed without a log: most likely their balances did.
            checks = list(islice(chain(_in_turns(lists[True]), _in_turns(lists[False])), credit))
            dropped = _dropped(checks, block, tokens, number) if len(checks) == credit else 0
            dropped += block.is_cut  # how many tokens the others are of was not looked at
            credit -= len(checks)
            found.append(BlockSample(number, block.block_hash, checks, credit, dropped, block.by_turn))
        return found

    def all_tokens(self, block: int, after: int, *, by_storage: bool = False) -> Iterator[tuple[int, list[StateCheck]]]:
        """Every token from the one after `after` on, with what to compare of it at the block. `by_storage`: also of all
        tokens whose balances come from their storage, not only of a sample."""
        found = self._reads.read(SQL.blocks, {"first": block, "last": block})
        while found:
            key = {"low": after + 1, "high": 1 << 62, "block": block, "count": TOKENS_MAX}
            numbers = [row[0] for row in self._reads.read(SQL.tokens_between, key)]
            tokens = self._tokens(numbers)
            at = BlockDue(found[0][1], found[0][2], {}, 0, [])
            all_due = Due({}, changed_unlogged=True)
            for token in numbers:
                stored = tokens[token]._replace(is_by_storage=False) if by_storage else tokens[token].at(block)
                is_sampled = stored.is_sampled(at.block_hash)
                checks = self._of_token(token, stored, all_due, block, at, {}, lag=0) if is_sampled else ()
                yield token, list(checks)
            if len(numbers) < TOKENS_MAX:
                return
            after = numbers[-1]

    def _tokens(self, numbers: Iterable[int]) -> dict[int, _Token]:
        keys = [{"token": token} for token in numbers]
        found = zip(keys, self._reads.read_each(SQL.token, keys), strict=True)
        return {key["token"]: _Token(*rows[0]) for key, rows in found if rows}

    def _read_ahead(self, run: Mapping[int, BlockDue], tokens: _Tokens, credit: int) -> _Ahead:
        """The rows that the blocks name, as many as will be compared if all of them can be: in one statement for
        all."""
        wanted: dict[TokenStandard, list[tuple[tuple[int, int, int, Key], dict[str, Any]]]] = {}
        for number, block in run.items():
            credit = left = _earned(credit, block)
            of_each = -(-credit // max(1, len(block.tokens)))
            for token in block.tokens.keys() & tokens.keys():
                stored, due = tokens[token].at(number), block.tokens[token]
                if stored.is_by_storage:  # few and seldom
                    continue
                for standard in stored.compared(number, LAG)[1]:
                    for key in islice(due.keys.get(standard.number, ()), of_each):
                        params = _params(number, token, stored) | {"holder": key[0], "token_id": key[1]}
                        wanted.setdefault(standard, []).append(((standard.number, number, token, key), params))
                        left -= 1
            credit = max(0, left)
        ahead: _Ahead = {}
        for standard, keys in wanted.items():
            rows = self._reads.read_each(_by_key(standard), [params for _, params in keys])
            ahead.update(zip([key for key, _ in keys], rows, strict=True))
        return ahead

    # -- what of a token ---------------------------------------------------------------------------------------

    def _of_token(
        self, token: int, stored: _Token, due: Due, number: int, block: BlockDue, ahead: _Ahead, lag: int = LAG
    ) -> Iterator[StateCheck]:
        is_untrusted, standards = stored.compared(number, lag)
        address = stored.address
        for standard in standards:
            count = _UNLOGGED_MAX if due.changed_unlogged else _OTHERS_MAX
            if is_untrusted:
                count = _NFTS_MAX if due.changed_unlogged else 0
            where = _params(number, token, stored)
            named = list(due.keys.get(standard.number, ()))
            seeds = random_numbers(block.block_hash + address + bytes([standard.number]))
            if stored.is_by_storage:
                first = next(seeds) % max(1, len(named))
                named, count = [*named[first:], *named[:first]][:BY_STORAGE_NAMED], BY_STORAGE_OTHERS
            others = self._others(standard, where, stored.first_block, block.next_address, count, seeds)
            seen: set[Key] = set()
            for holder, token_id, who, balance in chain(self._named(standard, where, named, ahead), others):
                if (holder, token_id) not in seen and who is not None:
                    seen.add((holder, token_id))
                    check = state_check(standard, token, address, who, token_id, balance)
                    if check is not None:
                        yield check

    def _named(
        self, standard: TokenStandard, where: Mapping[str, Any], keys: Iterable[Key], ahead: _Ahead
    ) -> Iterator[Row]:
        for key in keys:
            rows = ahead.get((standard.number, where["block"], where["token"], key))
            if rows is None:
                rows = self._reads.read(_by_key(standard), {**where, "holder": key[0], "token_id": key[1]})
            yield from rows

    def _others(
        self,
        standard: TokenStandard,
        where: Mapping[str, Any],
        first_block: int,
        next_address: int,
        count: int,
        seeds: Iterator[int],
    ) -> Iterator[Row]:
        """Read all holders, or all IDs, where they are few; else some at random positions of the token's history."""
        if not count:
            return
        oldest = self._reads.read(SQL.named(f"{standard.table}_oldest"), {**where, "count": count + 1})
        if len(oldest) <= count:
            yield from oldest
            return
        for _ in range(count):
            since = first_block + next(seeds) % (where["block"] - first_block + 1)
            at = {"since": since, "holder": next(seeds) % max(1, next_address), "from_log": position_of(since, 0)}
            yield from self._reads.read(SQL.named(f"{standard.table}_from"), {**where, **at})


def state_check(
    standard: TokenStandard, token: int, address: bytes, who: bytes, token_id: bytes | None, balance: bytes | None
) -> StateCheck | None:
    """The comparison of a stored balance of `who`, or of its being the owner; None: nothing is compared."""
    call = holding_call(standard, address, who, unpack_uint(token_id or b""))
    if standard.holding is Holding.OWNER:
        return StateCheck(token, address, call, who, token_id or b"")
    return None if who == ZERO_ADDRESS else StateCheck(token, address, call, unpack_uint(balance or b""), b"")


def _by_key(standard: TokenStandard) -> str:
    return SQL.named(f"{standard.table}_by_key")


def _in_turns(lists: list[Iterator[StateCheck]]) -> Iterator[StateCheck]:
    """Yield one of each after the other; what is not asked for is not read."""
    while lists:
        left = []
        for one in lists:
            check = next(one, None)
            if check is not None:
                left.append(one)
                yield check
        lists = left


def _dropped(checks: Iterable[StateCheck], block: BlockDue, tokens: _Tokens, number: int) -> int:
    """The tokens of which less was compared than the block names, one key aside, which may be the zero address."""
    made = Counter(check.token for check in checks)
    count = 0
    for token, due in block.tokens.items():
        if token in tokens and (stored := tokens[token].at(number)).is_sampled(block.block_hash):
            standards = stored.compared(number, LAG)[1]
            named = sum(len(due.keys.get(standard.number, ())) for standard in standards)
            named = min(named, BY_STORAGE_NAMED) if stored.is_by_storage else named
            count += bool(standards) and (not made[token] or made[token] + 1 < named)
    return count


def _earned(credit: int, block: BlockDue) -> int:
    return min(CREDIT_MAX, credit + PER_BLOCK + block.transfers // TRANSFERS_PER_CHECK)


def _params(block: int, token: int, stored: _Token) -> dict[str, Any]:
    return {"token": token, "address": stored.address, "block": block, "to_log": above(block) - 1}


def random_numbers(start: bytes) -> Iterator[int]:
    """Yield pseudo-random numbers seeded by the block hash: unknown before the block is made, the same for all after
    it."""
    state = start
    while True:
        state = hashlib.blake2b(state, digest_size=32).digest()
        for offset in range(0, 32, 8):
            yield int.from_bytes(state[offset : offset + 8], "big")
