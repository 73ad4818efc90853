"""Reads from state what a block's own data does not contain: contract info before it can be derived, and balances in no
diff or code in no trace afterwards.

Code is read as of the block before a batch and followed through its changes; the token standard of a contract is read
as of the first block that needs it. Where that state is pruned, both are those of the newest block. A balance that
differs from the stored one right before a block changed where no trace shows it (by a test client's cheat code, by a
subsidy); the block at which it changed is found by binary search.
"""

from collections.abc import Callable, Iterable, Sequence

from icefall.evm.contract_calls import NewestStateSource, StateSource, address_of, decimals, owner_of, uint_of
from icefall.evm.indexing.decoder import BlockOutline
from icefall.evm.model import DECIMALS_MAX, ContractInfo, NativeRow, ProbedStandard
from icefall.evm.packed import PackedBlock
from icefall.evm.storing.store import ChainStore
from icefall.upstream.evm.errors import NoState, Reverted
from icefall.upstream.evm.state import ContractCall

_CODE_CACHED = 100_000
_BALANCES_CACHED = 50_000
_UNSEEN_MAX = 32  # changes searched for between two blocks whose diffs contain an account

Known = tuple[int, int]  # balance, and the block it is of


class ContractCache:
    """The contract info of one chain. Call `forget` whenever blocks it has seen are not stored after all."""

    def __init__(
        self, store: ChainStore, state: NewestStateSource, messengers: tuple[bytes, ...], native_asset_id: bytes = b""
    ) -> None:
        self._store = store
        self._state = state
        self._messengers = messengers
        self.native_asset_id = native_asset_id
        self._code: dict[bytes, bool] = {}
        self._probed: dict[bytes, ProbedStandard] = {}
        self._redeployed: set[bytes] = set()  # their stored standard may be that of the contract before

    def forget(self) -> None:
        self._code.clear()
        self._probed.clear()
        self._redeployed.clear()

    def trim(self) -> None:
        """Bound the memory, only when every block it has seen is stored: what is dropped is read from the store
        again."""
        if len(self._code) > _CODE_CACHED:
            self._code.clear()

    async def fetch_code(self, blocks: Sequence[BlockOutline]) -> dict[bytes, bool]:
        """Read unknown code as of the block before these; the result is stored with the blocks that need it."""
        unknown_addresses = []
        followed = all(one.has_diffs for one in blocks)  # without diffs not every change is seen: it is read each time
        for address in dict.fromkeys(address for one in blocks for address in sorted(one.lookups.code)):
            if followed and address in self._code:
                continue
            stored = self._store.has_code(address) if followed else None
            if stored is None:
                unknown_addresses.append(address)
            else:
                self._code[address] = stored
        if not unknown_addresses:
            return {}
        first = blocks[0]
        before = first.parent_hash if first.number else first.block_hash
        codes = await _codes(self._state, unknown_addresses, before)
        found = {address: bool(code) for address, code in zip(unknown_addresses, codes, strict=True)}
        self._code.update(found)
        return found

    async def fetch_standards(self, block: BlockOutline) -> list[tuple[bytes, int, str]]:
        """Read unknown token standards: (contract, block, ProbedStandard) of each."""
        found = []
        for address, token_id in block.lookups.probes.items():
            if address in self._probed:
                continue
            stored = None if address in self._redeployed else self._store.probed_standard(address)
            if stored is None:
                stored = (await self._probe(address, token_id, block.block_hash)).value
                found.append((address, block.number, stored))
            self._probed[address] = ProbedStandard(stored)
        return found

    def fixed(self) -> ContractInfo:
        """The info that needs no lookup."""
        return ContractInfo(messengers=self._messengers, native_asset_id=self.native_asset_id)

    def info_for(self, blocks: Sequence[BlockOutline]) -> ContractInfo:
        """The info that `derive` needs for the blocks; all of it must have been fetched."""
        code = {address: self._code[address] for one in blocks for address in one.lookups.code}
        probed = {address: self._probed[address] for one in blocks for address in one.lookups.probes}
        return ContractInfo(code, probed, self._messengers, self.native_asset_id)

    def forget_standards(self, deployed: Iterable[bytes]) -> None:
        """Forget the standards of contracts that a derived block deployed, perhaps anew and with another one."""
        for address in deployed:
            self._redeployed.add(address)
            self._probed.pop(address, None)

    def update_code(self, code: Sequence[tuple[bytes, bool]]) -> None:
        """Apply the changes of a derived block."""
        self._code.update(code)

    async def _probe(self, address: bytes, token_id: int | None, at: bytes) -> ProbedStandard:
        (answer,) = await self._answers([decimals(address)], at)
        if uint_of(answer, DECIMALS_MAX) is not None:
            return ProbedStandard.ERC20
        if token_id is None:
            return ProbedStandard.NEITHER
        (answer,) = await self._answers([owner_of(address, token_id)], at)
        return ProbedStandard.NEITHER if address_of(answer) is None else ProbedStandard.ERC721

    async def _answers(self, calls: Sequence[ContractCall], at: bytes) -> list[bytes | Reverted]:
        try:
            return await self._state.answers(calls, at)
        except NoState:
            return await self._state.answers(calls, await self._state.head())


class NativeBalances:
    """The native balances, followed through blocks that are not stored yet, on top of the newest stored ones."""

    def __init__(self, newest: Callable[[Sequence[bytes]], Sequence[Known | None]], state: StateSource) -> None:
        self._newest = newest
        self._state = state
        self._known: dict[bytes, Known | None] = {}

    def forget(self) -> None:
        """Drop everything, whenever blocks it has seen are not stored after all."""
        self._known.clear()

    def trim(self) -> None:
        """Bound the memory, only when every block it has seen is stored: what is dropped is read from the store
        again."""
        if len(self._known) > _BALANCES_CACHED:
            self._known.clear()

    def load(self, blocks: Iterable[PackedBlock]) -> None:
        """Read what is stored of all accounts that the blocks may change."""
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


async def _codes(state: NewestStateSource, addresses: Sequence[bytes], at: bytes) -> list[bytes]:
    try:
        return await state.codes(addresses, at)
    except NoState:
        return await state.codes(addresses, await state.head())


async def resolve_code(rows: PackedBlock, state: NewestStateSource) -> tuple[tuple[bytes, bool], ...]:
    """Tell for each address whose code the block changed whether it has code after it."""
    unknown = [address for address, has_code in rows.code_changes if has_code is None]
    codes: Iterable[bytes] = await _codes(state, unknown, rows.block.block_hash) if unknown else ()
    read = {address: bool(code) for address, code in zip(unknown, codes, strict=True)}
    return tuple((address, read[address] if has_code is None else has_code) for address, has_code in rows.code_changes)
