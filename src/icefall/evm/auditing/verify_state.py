"""Compares what is stored of a block's state with the upstream: balances, owners of NFTs, names, symbols and decimals.

It compares a sample of them, chosen as audits choose theirs, or all. The balances and owners of an untrusted token are
not compared: they are read from state whenever they are asked for.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice, takewhile
from typing import Any, NamedTuple

import msgspec

from icefall.db.engine import Row
from icefall.evm.auditing.audit import agrees
from icefall.evm.auditing.sample import Sampler, StateCheck, random_numbers, state_check
from icefall.evm.contract_calls import DECIMALS, NAME, SYMBOL, address_of, decimals_of, text_of, uint_of
from icefall.evm.encoding import unpack_uint
from icefall.evm.standards import STANDARDS, Holding, load_statements
from icefall.evm.storing.store import ChainStore
from icefall.upstream.evm.errors import Reverted
from icefall.upstream.evm.state import At, ContractCall, StateCall
from icefall.upstream.evm.upstream import EvmUpstream

SQL = load_statements("icefall.evm.auditing", "verify.sql")

SAMPLE_CHECKS = 20_000  # of balances and owners of tokens,
SAMPLE_NATIVE = 5_000  # and of native balances
_AT_ONCE = 300
_PAGE = 500
_WORDS = ("name", "symbol", "decimals")
_HOLDER, _ID = slice(16, 36), slice(36, 68)  # in the data of a call of balanceOf
# By what a standard holds: where its pages begin, whose last value is part of the row if it is a token ID.
_FIRST: dict[Holding, dict[str, Any]] = {
    Holding.AMOUNT: {"since": -1, "holder": -1},
    Holding.AMOUNT_BY_ID: {"since": -1, "holder": -1, "token_id": b""},
    Holding.OWNER: {"token_id": b""},
}


class StoredToken(NamedTuple):
    """A token with what is stored of its contract."""

    token: int
    address: bytes
    is_untrusted: int
    is_read: int
    name: str | None
    symbol: str | None
    decimals: int | None


class StateResult(msgspec.Struct):
    """The count of what was compared at a block, and the differences as lines of text."""

    block: int
    balances: int = 0
    owners: int = 0
    names: int = 0  # tokens: name, symbol and decimals of each
    untrusted: int = 0  # tokens whose balances were not compared
    unread: int = 0  # tokens whose names have not been read yet
    differences: list[str] = msgspec.field(default_factory=list)


class StateVerification:
    """The verification of one chain at one of its stored blocks."""

    def __init__(self, store: ChainStore, upstream: EvmUpstream, block: int, block_hash: bytes) -> None:
        self._reads = store
        self._read = store.read
        self._upstream = upstream
        self._at = {"block": block}
        self._block_hash = block_hash
        self._result = StateResult(block)

    async def run(self, *, everything: bool) -> StateResult:
        """Compare a sample, or all. UpstreamFailure where no upstream has the state of the block."""
        checks: list[StateCheck] = []
        tokens: list[StoredToken] = []
        for token, of_token in self._all_tokens() if everything else self._some_tokens():
            self._result.untrusted += token.is_untrusted
            self._result.unread += not token.is_read
            tokens += [token] if token.is_read else []
            for check in () if token.is_untrusted else of_token:
                checks.append(check)
                if len(checks) >= _AT_ONCE:
                    await self._compare_checks(checks)
                    checks = []
            if len(tokens) * len(_WORDS) >= _AT_ONCE:
                await self._compare_names(tokens)
                tokens = []
        await self._compare_checks(checks)
        await self._compare_names(tokens)
        await self._compare_native(self._all_native() if everything else self._some_native())
        return self._result

    # -- what to compare ---------------------------------------------------------------------------------------

    def _some_tokens(self) -> Iterator[tuple[StoredToken, Iterable[StateCheck]]]:
        """Yield tokens from one chosen by the block's hash on; all of them if they are few."""
        block, sampler = self._at["block"], Sampler(self._reads, 0)
        start = next(random_numbers(self._block_hash)) % self._next_address()
        before = takewhile(lambda one: one[0] <= start, sampler.all_tokens(block, 0, by_storage=True))
        left = SAMPLE_CHECKS
        for number, found in chain(sampler.all_tokens(block, start, by_storage=True), before):
            if left <= 0:
                return
            checks = found[:left]
            (token,) = self._tokens(number - 1, 1)
            left -= 0 if token.is_untrusted else len(checks)
            yield token, checks

    def _all_tokens(self) -> Iterator[tuple[StoredToken, Iterable[StateCheck]]]:
        after = -1
        while tokens := self._tokens(after, _PAGE):
            yield from ((token, self._all_of(token)) for token in tokens)
            after = tokens[-1].token

    def _tokens(self, after: int, count: int) -> list[StoredToken]:
        return [StoredToken(*row) for row in self._read(SQL.tokens, {**self._at, "after": after, "count": count})]

    def _all_of(self, token: StoredToken) -> Iterator[StateCheck]:
        where = {**self._at, "token": token.token}
        for standard in STANDARDS:
            pages = self._pages(SQL.named(f"{standard.table}_page"), where, _FIRST[standard.holding], standard.has_ids)
            for row in pages:
                token_id, who, *balance = row if standard.has_ids else (None, *row)
                check = state_check(standard, token.token, token.address, who, token_id, *(balance or [None]))
                if check is not None:
                    yield check

    def _all_native(self) -> Iterator[Row]:
        yield from self._pages(SQL.native_page, self._at, {"address": -1})

    def _some_native(self) -> Iterator[Row]:
        count = self._next_address()
        if count <= SAMPLE_NATIVE:
            yield from self._all_native()
            return
        found = {}
        for number in islice(random_numbers(self._block_hash), SAMPLE_NATIVE):
            cursor = {"address": number % count, "count": 1}
            found.update(dict.fromkeys(self._read(SQL.native_page, {**self._at, **cursor})))
        yield from (row[1:] for row in found)

    def _pages(self, statement: str, where: Mapping[str, Any], cursor: dict[str, Any], keep: int = 0) -> Iterator[Row]:
        """Yield the rows of a statement whose first columns are its cursor, without it but for its `keep` last ones."""
        while rows := self._read(statement, {**where, **cursor, "count": _PAGE}):
            yield from (row[len(cursor) - keep :] for row in rows)
            cursor = dict(zip(cursor, rows[-1], strict=False))

    def _next_address(self) -> int:
        """The number above the highest ID of an address."""
        return int(self._read(SQL.address_count, ())[0][0])

    # -- comparing ---------------------------------------------------------------------------------------------

    async def _compare_checks(self, checks: Sequence[StateCheck]) -> None:
        answers = await self._upstream.results([StateCall(check.call, self._block_hash) for check in checks])
        for check, answer in zip(checks, answers, strict=True):
            if check.token_id:
                self._result.owners += 1
            else:
                self._result.balances += 1
            if not agrees(check.stored, answer):
                self._result.differences.append(_described(check, answer))

    async def _compare_names(self, tokens: Sequence[StoredToken]) -> None:
        """Compare names. One read after a later block is right too: names have no history."""
        self._result.names += len(tokens)
        differing = await self._other_names(tokens, self._block_hash)
        newest = await self._upstream.head() if differing else 0
        now = dict(await self._other_names([token for token, _ in differing], newest))
        for token, words in differing:
            if token in now:
                self._result.differences += [f"token {_hex(token.address)}: {word}" for word in words]

    async def _other_names(self, tokens: Sequence[StoredToken], at: At) -> list[tuple[StoredToken, list[str]]]:
        """The tokens that are not called at the block what is stored, and in which words."""
        calls = [ContractCall(token.address, data) for token in tokens for data in (NAME, SYMBOL, DECIMALS)]
        answers = iter(await self._upstream.answers(calls, at) if calls else ())
        found = []
        for token in tokens:
            name, symbol, decimals = (b"" if isinstance(it, Reverted) else it for it in (next(answers) for _ in _WORDS))
            state = text_of(name), text_of(symbol), decimals_of(decimals)
            stored = token.name, token.symbol, token.decimals
            rows = zip(_WORDS, stored, state, strict=True)
            words = [f"{word} {mine!r} stored, {theirs!r} in state" for word, mine, theirs in rows if mine != theirs]
            if words:
                found.append((token, words))
        return found

    async def _compare_native(self, rows: Iterator[Row]) -> None:
        known = [(address, unpack_uint(balance)) for address, balance in rows if balance is not None]
        for start in range(0, len(known), _AT_ONCE):
            some = known[start : start + _AT_ONCE]
            state = await self._upstream.balances([address for address, _ in some], self._block_hash)
            self._result.balances += len(some)
            self._result.differences += [
                f"native balance of {_hex(address)}: {stored} stored, {true} in state"
                for (address, stored), true in zip(some, state, strict=True)
                if stored != true
            ]


def _described(check: StateCheck, answer: bytes | Reverted) -> str:
    token = f"token {_hex(check.token_address)}"
    if isinstance(check.stored, bytes):
        owner = address_of(answer)
        state = _answer(answer) if owner is None else _hex(owner)
        return f"{token}, ID {unpack_uint(check.token_id)}: owner {_hex(check.stored)} stored, {state} in state"
    data, number = check.call.data, uint_of(answer)
    token_id = f", ID {int.from_bytes(data[_ID], 'big')}" if data[_ID] else ""
    state = _answer(answer) if number is None else str(number)
    return f"{token}{token_id}, holder {_hex(data[_HOLDER])}: balance {check.stored} stored, {state} in state"


def _answer(answer: bytes | Reverted) -> str:
    """An answer that is neither a number nor an address, as text."""
    return f"a revert ({answer})" if isinstance(answer, Reverted) else f"{_hex(answer[:64])} of {len(answer)} bytes"


def _hex(raw: bytes) -> str:
    return "0x" + raw.hex()


def state_summary(name: str, result: StateResult) -> str:
    lines = [f"{name}: block {result.block}: {line}" for line in result.differences]
    counted = f"{result.balances} balances, {result.owners} owners and {result.names} names compared with state"
    verdict = f"{len(result.differences)} differ" if result.differences else "all as stored"
    skipped = f"; {result.untrusted} untrusted tokens skipped" if result.untrusted else ""
    unread = f"; {result.unread} names not read yet" if result.unread else ""
    return "\n".join([*lines, f"{name}: {counted} at block {result.block}, {verdict}{skipped}{unread}"])
