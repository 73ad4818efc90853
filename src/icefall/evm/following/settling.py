"""What a block leaves open is asked of state before it is stored: balances no diff tells, code no trace tells.

A balance that differs from the stored one before a block changed where no trace shows it (a cheat of a test client, a
subsidy); the block at which it did is found by asking.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

import msgspec

from icefall.evm.model import BlockRows
from icefall.upstream.evm.errors import NoState, Reverted
from icefall.upstream.evm.state import At, ContractCall

_UNSEEN_MAX = 32  # changes looked for between two blocks that show an account


class StateSource(Protocol):
    """The chain's state at a block."""

    async def balances(self, addresses: Sequence[bytes], at: At) -> list[int]: ...

    async def codes(self, addresses: Sequence[bytes], at: At) -> list[bytes]: ...

    async def answers(self, calls: Sequence[ContractCall], at: At) -> list[bytes | Reverted]: ...


class NativeRow(msgspec.Struct, frozen=True, gc=False):
    address: bytes
    block: int  # usually the settled one; earlier where an unseen change was found
    balance: int
    before: int | None  # of the address's first row: what it had until then


class SettledBlock(msgspec.Struct, frozen=True, gc=False):
    """A block with nothing left open."""

    rows: BlockRows
    native: tuple[NativeRow, ...]
    code: tuple[tuple[bytes, bool], ...]
    asked_code: tuple[tuple[bytes, bool], ...] = ()  # as of the block before


Known = tuple[int, int]  # balance, and the block it is of


class NativeBalances:
    """Follows native balances through blocks that are not stored yet, on top of the newest stored ones."""

    def __init__(self, newest: Callable[[bytes], Known | None], state: StateSource) -> None:
        self._newest = newest
        self._state = state
        self._known: dict[bytes, Known | None] = {}

    async def settle(self, rows: BlockRows) -> tuple[NativeRow, ...]:
        number, found = rows.block.number, []
        before = {one.address: one.balance for one in rows.native_before}
        after = {one.address: one.balance for one in rows.native_after}
        for address, balance in before.items():
            known = self._of(address)
            if known is None:
                after.setdefault(address, balance)  # a first sight is kept: an unseen change is told by it
            elif known[0] != balance:
                found += await self._unseen(address, known, balance, number - 1)
        if rows.ask_native:
            told = await self._state.balances(rows.ask_native, rows.block.block_hash)
            after.update(zip(rows.ask_native, told, strict=True))
        for change in rows.native_deltas:
            known = self._of(change.address)
            if known is None:
                had = (await self._state.balances([change.address], rows.block.parent_hash))[0]
                before[change.address] = had
                known = had, number - 1
            after[change.address] = known[0] + change.delta
        for address, balance in after.items():
            known = self._of(address)
            if known is None:
                found.append(NativeRow(address, number, balance, before.get(address)))
            elif known[0] != balance:
                found.append(NativeRow(address, number, balance, None))
            self._known[address] = balance, number
        return tuple(found)

    def _of(self, address: bytes) -> Known | None:
        if address not in self._known:
            self._known[address] = self._newest(address)
        return self._known[address]

    async def _unseen(self, address: bytes, known: Known, now: int, last: int) -> list[NativeRow]:
        """The changes after `known` that lead to `now` at block `last`."""
        found: list[NativeRow] = []
        balance, block = known
        while balance != now and len(found) < _UNSEEN_MAX:
            try:
                block, balance = await self._first_other(address, balance, block, last)
            except NoState:
                block, balance = last, now  # nobody remembers when
            found.append(NativeRow(address, block, balance, None))
            self._known[address] = balance, block
        return found

    async def _first_other(self, address: bytes, balance: int, low: int, high: int) -> Known:
        """The first block from `low` on with another balance; `high` has one. `low` itself may have been rewritten."""
        seen = balance
        while low < high:
            middle = (low + high) // 2
            (at_middle,) = await self._state.balances([address], middle)
            if at_middle == balance:
                low = middle + 1
            else:
                high, seen = middle, at_middle
        if seen == balance:
            (seen,) = await self._state.balances([address], high)
        return high, seen


async def settled_code(rows: BlockRows, state: StateSource) -> tuple[tuple[bytes, bool], ...]:
    """Who has code after the block, of those it gave or took it."""
    open_ones = [change.address for change in rows.code_changes if change.has_code is None]
    told: Iterable[bytes] = await state.codes(open_ones, rows.block.block_hash) if open_ones else ()
    asked = {address: bool(code) for address, code in zip(open_ones, told, strict=True)}
    return tuple(
        (change.address, asked[change.address] if change.has_code is None else change.has_code)
        for change in rows.code_changes
    )
