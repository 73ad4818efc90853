"""Reads from state what a block's own data does not contain: balances in no diff, code in no trace.

A balance that differs from the stored one right before a block changed where no trace shows it (by a test client's
cheat code, by a subsidy); the block at which it changed is found by binary search.
"""

from collections.abc import Callable, Iterable, Sequence

from icefall.evm.model import NativeRow
from icefall.evm.packed import PackedBlock
from icefall.evm.state_calls import StateSource
from icefall.upstream.evm.errors import NoState

_KEPT = 50_000
_UNSEEN_MAX = 32  # changes searched for between two blocks whose diffs contain an account


Known = tuple[int, int]  # balance, and the block it is of


class NativeBalances:
    """Follows native balances through blocks that are not stored yet, on top of the newest stored ones."""

    def __init__(self, newest: Callable[[Sequence[bytes]], Sequence[Known | None]], state: StateSource) -> None:
        self._newest = newest
        self._state = state
        self._known: dict[bytes, Known | None] = {}

    def forget(self) -> None:
        """Call it whenever blocks it has seen are not stored after all."""
        self._known.clear()

    def trim(self) -> None:
        """Call only when every block it has seen is stored: what is dropped here is read from the store again."""
        if len(self._known) > _KEPT:
            self._known.clear()

    def load(self, blocks: Iterable[PackedBlock]) -> None:
        """Reads what is stored of all accounts that the blocks may change."""
        unread: dict[bytes, None] = {}
        for rows in blocks:
            for addresses in (rows.native_before, rows.native_after, rows.native_deltas, rows.unknown_native):
                unread.update(dict.fromkeys([address for address in addresses if address not in self._known]))
        self._known.update(zip(unread, self._newest(list(unread)), strict=True))

    async def resolve(self, rows: PackedBlock) -> tuple[NativeRow, ...]:
        """The balance rows of a block that was loaded."""
        number, found = rows.block.number, []
        before, after = dict(rows.native_before), dict(rows.native_after)
        for address, balance in before.items():
            known = self._known[address]
            if known is None:
                after.setdefault(address, balance)  # kept, so that an unseen change is noticed later
            elif known[0] != balance:
                found += await self._unseen(address, known, balance, number - 1)
        if rows.unknown_native:
            read = await self._state.balances(rows.unknown_native, rows.block.block_hash)
            after.update(zip(rows.unknown_native, read, strict=True))
        for address, delta in rows.native_deltas.items():
            known = self._known[address]
            if known is None:
                had = (await self._state.balances([address], rows.block.parent_hash))[0]
                before[address] = had
                known = had, number - 1
            after[address] = known[0] + delta
        for address, balance in after.items():
            known = self._known[address]
            if known is None:
                found.append(NativeRow(address, number, balance, before.get(address)))
            elif known[0] != balance:
                found.append(NativeRow(address, number, balance, None))
            else:
                continue  # what is known stays what the store has, so that rows do not depend on where batches end
            self._known[address] = balance, number
        return tuple(found)

    async def _unseen(self, address: bytes, known: Known, now: int, last: int) -> list[NativeRow]:
        """The changes after `known` that lead to `now` at block `last`."""
        found: list[NativeRow] = []
        balance, block = known
        while balance != now and len(found) < _UNSEEN_MAX:
            try:
                block, balance = await self._first_other(address, balance, block, last)
            except NoState:
                block, balance = last, now  # no upstream has the state in between
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


async def resolve_code(rows: PackedBlock, state: StateSource) -> tuple[tuple[bytes, bool], ...]:
    """Whether each address has code after the block, of those whose code it changed."""
    unknown = [address for address, has_code in rows.code_changes if has_code is None]
    codes: Iterable[bytes] = await state.codes(unknown, rows.block.block_hash) if unknown else ()
    read = {address: bool(code) for address, code in zip(unknown, codes, strict=True)}
    return tuple((address, read[address] if has_code is None else has_code) for address, has_code in rows.code_changes)
