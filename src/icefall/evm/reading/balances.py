"""Balances of an address, now and in the past: from the store where logs and state diffs determine them, else from
state.

State is read at a block by its hash, so that a reorganisation in between is an error and never a wrong number. Zero
balances are left out of lists. A page looks at CANDIDATES_MAX candidates and makes CALLS_MAX contract calls at most, so
a short page need not be the last.
"""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain
from operator import itemgetter
from typing import Any, Protocol

import msgspec
from msgspec.structs import replace

from icefall.db.engine import Reader, Row
from icefall.errors import Unavailable
from icefall.evm.contract_calls import address_of, balance_of, holding_call, owner_of, uint_of
from icefall.evm.encoding import pack_uint, unpack_uint
from icefall.evm.model import ERC20, ZERO_ADDRESS
from icefall.evm.reading.erc20_candidates import Erc20Candidates
from icefall.evm.reading.model import Erc20Held, IdHeld, NftHeld
from icefall.evm.reading.nft_ranges import NftRangeReader
from icefall.evm.standards import Holding, TokenStandard, load_statements
from icefall.upstream.evm.errors import Aborted, Reverted
from icefall.upstream.evm.state import At, ContractCall

SQL = load_statements("icefall.evm.reading", "balances.sql")
CANDIDATES_MAX = 2_000
CALLS_MAX = 200  # of contracts, for one request
_PIECE = 200  # owners looked up before other requests can run, about 5 ms
_LAST_TOKEN = b"\xff" * 20
_from_bytes = int.from_bytes

NftKey = tuple[bytes, int]


class BalanceChange(msgspec.Struct, frozen=True, gc=False):
    """The balance from this block on."""

    block: int
    time: int
    balance: int


class StateReader(Protocol):
    async def balances(self, addresses: Sequence[bytes], at: At) -> list[int]: ...

    async def answers(self, calls: Sequence[ContractCall], at: At) -> list[bytes | Reverted]: ...


class CallBudget:
    """The contract calls that one request may still make."""

    def __init__(self) -> None:
        self.left = CALLS_MAX

    @property
    def spent(self) -> int:
        return CALLS_MAX - self.left

    def affordable(self, rows: Sequence[Any], needs_call: Callable[[Any], bool]) -> Sequence[Any]:
        """The first rows, up to one whose call would be too many. Their calls are spent."""
        if not any(map(needs_call, rows)):  # as in most pages
            return rows
        for index, row in enumerate(rows):
            if needs_call(row):
                if not self.left:
                    return rows[:index]
                self.left -= 1
        return rows


class BalanceReader:
    """`state` None: there is no upstream, balances that need one are Unavailable."""

    def __init__(self, reader: Reader, state: StateReader | None) -> None:
        self._reader = reader
        self._state = state
        self._ranges = NftRangeReader(reader)
        self._erc20_candidates = Erc20Candidates(reader)
        self.state_reads = 0  # begun so far: with an answer or without one

    async def native(self, address: bytes, block: int) -> int:
        """Return the balance in wei, right after the block."""
        ((has_diffs, balance),) = await self._reader.rows(SQL.native, {"address": address, "block": block})
        if balance is not None and has_diffs != "0":
            return unpack_uint(balance)
        if self._state is None:
            raise Unavailable(f"this balance at block {block} is not in the index, and no upstream is configured")
        self.state_reads += 1
        return (await self._state.balances([address], await self._at(block)))[0]

    async def erc20(
        self,
        address: bytes,
        block: int,
        after: bytes | None,
        limit: int,
        only: Sequence[bytes] = (),
        budget: CallBudget | None = None,
    ) -> tuple[list[Erc20Held], bytes | None]:
        """List balances by token address, and the cursor if there is more. With `only` those of these tokens, zero or
        not; addresses that are no ERC-20 tokens are left out."""
        budget = budget or CallBudget()
        if only:
            return await self._erc20_only(address, block, sorted(set(only)), after or b"", limit, budget)

        needs_call = bool if address == ZERO_ADDRESS else itemgetter(2)  # no row is empty
        return await _page(
            partial(self._erc20_candidates.rows, address, block),
            partial(budget.affordable, needs_call=needs_call),
            partial(self._erc20_resolved, address, block),
            after or b"",
            limit,
            itemgetter(0),
            lambda held: held.token,
        )

    async def with_ids(
        self,
        standard: TokenStandard,
        address: bytes,
        block: int,
        after: NftKey | None,
        limit: int,
        token: bytes | None,
        budget: CallBudget,
    ) -> tuple[Sequence[IdHeld | NftHeld], NftKey | None]:
        """List tokens of a standard whose tokens have IDs: balances right after the block, or what is owned now."""
        if standard.holding is Holding.OWNER:
            return await self.nfts(address, after, limit, token, budget)
        return await self.of_ids(standard, address, block, after, limit, token, budget)

    async def of_ids(
        self,
        standard: TokenStandard,
        address: bytes,
        block: int,
        after: NftKey | None,
        limit: int,
        token: bytes | None = None,
        budget: CallBudget | None = None,
    ) -> tuple[list[IdHeld], NftKey | None]:
        """Return balances by token address and ID, of a standard that holds amounts of each ID."""

        async def resolve(rows: Sequence[Any]) -> list[IdHeld]:
            held = [IdHeld(at, unpack_uint(one), unpack_uint(amount), ref) for at, one, ref, _, amount in rows]
            untrusted = [index for index, row in enumerate(rows) if row[3] or address == ZERO_ADDRESS]
            calls = [holding_call(standard, held[index].token, address, held[index].token_id) for index in untrusted]
            for index, answer in zip(untrusted, await self._answers(calls, block), strict=True):
                one = held[index]
                held[index] = IdHeld(one.token, one.token_id, uint_of(answer) or 0, one.token_ref)
            return [one for one in held if one.balance]

        where = {"address": address, "block": block}
        is_zero = address == ZERO_ADDRESS
        affordable = partial((budget or CallBudget()).affordable, needs_call=lambda row: is_zero or row[3])
        return await self._by_id([SQL.named(standard.table)], where, affordable, resolve, after, limit, token)

    async def nfts(
        self,
        address: bytes,
        after: NftKey | None,
        limit: int,
        token: bytes | None = None,
        budget: CallBudget | None = None,
    ) -> tuple[list[NftHeld], NftKey | None]:
        """ERC-721 tokens it owns now, by token address and ID."""

        async def resolve(rows: Sequence[Any]) -> list[NftHeld]:
            rows = [row[:4] for row in rows if not any(row[4:])]  # those of ranges without an owner of their own
            held = [NftHeld(at, unpack_uint(token_id), address, ref) for at, token_id, ref, _ in rows]
            untrusted = [one for one, row in zip(held, rows, strict=True) if row[3]]
            answers = await self._answers([owner_of(one.token, one.token_id) for one in untrusted], None)
            not_owned = {
                (one.token, one.token_id)
                for one, answer in zip(untrusted, answers, strict=True)
                if address_of(answer) != address
            }
            return [one for one in held if (one.token, one.token_id) not in not_owned]

        statements = [SQL.nfts, SQL.nfts_by_state]
        affordable = partial((budget or CallBudget()).affordable, needs_call=lambda row: bool(row[3]))
        in_ranges = None if address == ZERO_ADDRESS else partial(self._ranges.held, address)
        where = {"address": address}
        return await self._by_id(statements, where, affordable, resolve, after, limit, token, in_ranges)

    async def owners(self, nfts: Sequence[NftKey]) -> list[bytes | None]:
        """The owners now; None for an NFT that is burned or unknown, or would need more than CALLS_MAX calls."""
        stored: dict[tuple[bytes, bytes], tuple[bytes, bool]] = {}
        keys = [(token, pack_uint(token_id)) for token, token_id in nfts]
        for start in range(0, len(keys), _PIECE):
            if start:
                await asyncio.sleep(0)
            rows = await self._reader.rows_of_each(SQL.nft_owner, keys[start : start + _PIECE])
            stored |= {(token, token_id): (owner, is_untrusted) for token, token_id, owner, is_untrusted in rows}
        for (token, token_id), key in zip(nfts, keys, strict=True):
            if key not in stored and (in_range := await self._ranges.owner(token, token_id)) is not None:
                stored[key] = in_range.owner, in_range.is_untrusted
        owners = [stored.get(key, (None, False)) for key in keys]
        untrusted = [index for index, (_, is_untrusted) in enumerate(owners) if is_untrusted][:CALLS_MAX]
        found = [None if is_untrusted else owner for owner, is_untrusted in owners]
        answers = await self._answers([owner_of(*nfts[index]) for index in untrusted], None)
        for index, answer in zip(untrusted, answers, strict=True):
            found[index] = address_of(answer)
        return [None if owner == ZERO_ADDRESS else owner for owner in found]

    # -- ERC-20 ------------------------------------------------------------------------------------------------

    async def _erc20_resolved(self, address: bytes, block: int, rows: Sequence[Any]) -> list[Erc20Held]:
        """Read those of the zero address from state alone: to the logs it is where tokens are minted and burned."""
        is_zero = address == ZERO_ADDRESS
        if not is_zero and not any(map(itemgetter(2), rows)):  # as in most pages
            return [
                Erc20Held(token, balance, ref, reputation)
                for token, ref, _, amount, reputation in rows
                if (balance := _from_bytes(amount[1:], "big"))
            ]
        untrusted = [row[0] for row in rows if row[2] or is_zero]
        from_state = await self._erc20_from_state(address, block, untrusted)
        return [
            Erc20Held(token, balance, ref, reputation)
            for token, ref, _, amount, reputation in rows
            if (balance := from_state[token] if token in from_state else unpack_uint(amount))
        ]

    async def _erc20_only(
        self, address: bytes, block: int, only: Sequence[bytes], after: bytes, limit: int, budget: CallBudget
    ) -> tuple[list[Erc20Held], bytes | None]:
        wanted = [token for token in only if token > after and not await self._is_nft(token)]
        page, held, untrusted = wanted[:limit], {}, []
        unknown: set[bytes] = set()  # not known as ERC-20 tokens: those that answer balanceOf with a number are
        for token in page:
            rows = await self._reader.rows(SQL.erc20_in, {"address": address, "block": block, "token": token})
            if rows:
                _, ref, is_untrusted, amount, reputation = rows[0]
                is_untrusted = is_untrusted or address == ZERO_ADDRESS
                held[token] = Erc20Held(token, unpack_uint(amount), ref, reputation)
            else:  # no transfer between them: only state can show that the balance is zero
                ((ref, reputation, standards),) = await self._reader.rows(SQL.never_held, {"token": token})
                held[token] = Erc20Held(token, 0, ref or 0, reputation)
                if not (standards or 0) & ERC20:
                    unknown.add(token)
                is_untrusted = self._state is not None
            untrusted += [token] if is_untrusted else []
        budget.left -= len(untrusted)  # a request names 100 tokens at most
        answers = await self._answers([balance_of(token, address) for token in untrusted], block)
        for token, balance in zip(untrusted, map(uint_of, answers), strict=True):
            held[token] = replace(held[token], balance=balance or 0)
            if balance is not None:
                unknown.discard(token)
        found = [held[token] for token in page if token not in unknown]
        return found, page[-1] if len(wanted) > limit else None

    async def _is_nft(self, token: bytes) -> bool:
        """NFT contracts answer balanceOf too, with a number of NFTs."""
        return bool(await self._reader.rows(SQL.nfts_only, {"token": token}))

    async def _erc20_from_state(self, address: bytes, block: int, tokens: Sequence[bytes]) -> dict[bytes, int]:
        answers = await self._answers([balance_of(token, address) for token in tokens], block)
        return {token: uint_of(answer) or 0 for token, answer in zip(tokens, answers, strict=True)}

    # -- all standards -----------------------------------------------------------------------------------------

    async def _by_id(
        self,
        statements: Sequence[str],
        where: dict[str, Any],
        affordable: Callable[[Sequence[Any]], Sequence[Any]],
        resolve: Callable[[Sequence[Any]], Any],
        after: NftKey | None,
        limit: int,
        token: bytes | None,
        others: Callable[[tuple[bytes, bytes], bytes, int], Any] | None = None,
    ) -> tuple[list[Any], NftKey | None]:
        """A list by (token address, ID), of one token or of all; rows of several statements are merged, and those that
        `others` reads behind a key, up to a last token."""
        start: tuple[bytes, bytes] = (token or b"", b"") if after is None else (after[0], pack_uint(after[1]))

        async def candidates(after: tuple[bytes, bytes], count: int) -> list[Any]:
            key = {"token": after[0], "token_id": after[1], "last_token": token or _LAST_TOKEN}
            found = [await self._reader.rows(statement, {**where, **key, "limit": count}) for statement in statements]
            if others is not None:
                found.append(await others(after, token or _LAST_TOKEN, count))
            return found[0] if not any(found[1:]) else sorted(set(chain(*found)))[:count]

        held, more = await _page(
            candidates,
            affordable,
            resolve,
            start,
            limit,
            lambda row: row[:2],
            lambda one: (one.token, pack_uint(one.token_id)),
        )
        return held, None if more is None else (more[0], unpack_uint(more[1]))

    async def _answers(self, calls: Sequence[ContractCall], block: int | None) -> list[bytes | Reverted]:
        """Return data of contract calls at a block; None: at the newest."""
        if not calls:
            return []
        if self._state is None:
            raise Unavailable("the balances of a token do not follow from its logs, and no upstream is configured")
        self.state_reads += 1
        at: At
        if block is None:
            ((_, at),) = await self._reader.rows(SQL.tip)
        else:
            at = await self._at(block)
        answers = await self._state.answers(calls, at)
        if any(isinstance(answer, Aborted) for answer in answers):
            raise Unavailable("the balance of a token cannot be read: its contract exceeds the limits of the node")
        return answers

    async def _at(self, block: int) -> At:
        """Return the hash of a block, at which state is read; its number if it is not stored."""
        rows = await self._reader.rows(SQL.block_hash, {"block": block})
        at: At = rows[0][0] if rows else block
        return at


async def _page(
    candidates: Callable[[Any, int], Any],
    affordable: Callable[[Sequence[Any]], Sequence[Any]],
    resolve: Callable[[Sequence[Any]], Any],
    start: Any,
    limit: int,
    cursor_of_row: Callable[[Any], Any],
    cursor_of_held: Callable[[Any], Any],
) -> tuple[list[Any], Any]:
    """Resolve candidates, more each time, until a page is full, CANDIDATES_MAX are read or the calls are spent. And the
    cursor."""
    held: list[Any] = []
    read, count = 0, limit + 1
    while read < CANDIDATES_MAX:
        rows = await candidates(start, count)
        resolved = affordable(rows)
        held += await resolve(resolved)
        if len(held) > limit:
            return held[:limit], cursor_of_held(held[limit - 1])
        if len(resolved) < len(rows):
            return held, cursor_of_row(resolved[-1]) if resolved else start
        if len(rows) < count:
            return held, None
        start = cursor_of_row(rows[-1])
        read += len(rows)
        count = min(2 * count, CANDIDATES_MAX)
    return held, start


class HistoryReader:
    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    async def native(self, address: bytes, low: int, high: int, limit: int) -> list[BalanceChange]:
        """Changes in the blocks from `low` to before `high`, newest first."""
        where = {"address": address, "low": low, "high": high, "limit": limit}
        return [_change(row) for row in await self._reader.rows(SQL.native_changes, where)]

    async def erc20(self, address: bytes, token: bytes, low: int, high: int, limit: int) -> list[BalanceChange]:
        where = {"address": address, "token": token, "low": low, "high": high, "limit": limit}
        return [_change(row) for row in await self._reader.rows(SQL.erc20_changes, where)]

    async def is_untrusted(self, address: bytes, token: bytes) -> bool | None:
        """Whether the stored balances of a holder of this ERC-20 token may be wrong; None: it never held any."""
        rows = await self._reader.rows(SQL.is_holder, {"address": address, "token": token})
        return bool(rows[0][0]) if rows else None

    async def periods(self, span: int) -> tuple[int, int] | None:
        """The first and the last period (metrics/rollup.py) with a block; None: there is no block."""
        ((first, last),) = await self._reader.rows(SQL.periods, {"span": span})
        return None if first is None else (first, last)

    async def last_block(self, span: int, period: int) -> int | None:
        """The last block of a period, or of the newest one before it that has blocks."""
        rows = await self._reader.rows(SQL.last_block_of_period, {"span": span, "period": period})
        return rows[0][0] if rows else None


def _change(row: Row) -> BalanceChange:
    return BalanceChange(row[0], row[1], unpack_uint(row[2]))
