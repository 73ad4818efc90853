"""Compares stored rows with the upstream's chain: fetches, verifies and derives every block again."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import aclosing

import msgspec

from icefall.evm.deriving.derive import contract_lookups, derive
from icefall.evm.deriving.packing import TableRows
from icefall.evm.encoding import above, position_of, unpack_uint
from icefall.evm.model import BlockRows, ContractInfo, ProbedStandard
from icefall.evm.standards import STANDARDS, load_statements
from icefall.evm.storing.store import ChainStore
from icefall.upstream.evm.upstream import EvmUpstream
from icefall.wire.errors import WireError
from icefall.wire.evm.decode import decode_full
from icefall.wire.evm.types import FullBlock
from icefall.wire.evm.verify import verify_full

SQL = load_statements("icefall.evm.auditing", "verify.sql")

# By table: the statement that selects a block's rows, with the columns of the insert, and what the rows are.
COMPARED = {
    "tx": (SQL.tx, "transactions"),
    **{standard.table: (SQL.named(standard.table), f"{standard.name} transfers") for standard in STANDARDS},
    "erc20_in": (SQL.erc20_in, "tokens by block"),
    "internal": (SQL.internal, "internal transactions"),
    "deployment": (SQL.deployment, "deployments"),
    "message": (SQL.message, "messages"),
    "messenger_event": (SQL.messenger_event, "events of messengers"),
}


class StoreDifference(msgspec.Struct, frozen=True):
    """A difference between the stored rows of a block and those derived anew."""

    block: int
    what: str


class Verification:
    """The verification of one chain. Contract info is taken from the store: it is an input of the derivation, not a
    result."""

    def __init__(
        self,
        store: ChainStore,
        upstream: EvmUpstream,
        messengers: tuple[bytes, ...],
        native_asset_id: bytes,
        *,
        verify_roots: bool,
    ) -> None:
        self._verify_roots = verify_roots
        self._store = store
        self._upstream = upstream
        self._messengers = messengers
        self._native_asset_id = native_asset_id

    async def run(self, numbers: range, on_block: Callable[[int], None]) -> list[StoreDifference]:
        """Return the differences found; `on_block` is called with the number of each block that was compared."""
        found = []
        async with aclosing(self._upstream.fetch(numbers)) as blocks:
            async for block in blocks:
                try:
                    full = decode_full(
                        block.block, block.receipts, block.calls, block.diffs, block.calls_format, block.diffs_format
                    )
                    verify_full(full, None, roots=self._verify_roots)
                except WireError as error:
                    found.append(StoreDifference(block.number, f"the upstream's block is invalid: {error}"))
                    continue
                found += [StoreDifference(block.number, what) for what in self._compared(full)]
                on_block(block.number)
        return found

    def _compared(self, full: FullBlock) -> Iterator[str]:
        number = full.block.number
        if self._store.block_hash(number) != full.block.block_hash:
            yield "another block is stored"
            return
        try:
            rows = derive(full, self._contract_info(full))
        except KeyError:
            yield "a contract is called that is not in the store"
            return
        ids = _Ids(self._store)
        gathered = TableRows(ids)
        gathered.add(rows)
        span = {"from_at": position_of(number, 0), "to_at": above(number) - 1}
        for table, (select, name) in COMPARED.items():
            stored = set(self._store.read(select, span))
            derived = {tuple(map(_as_stored, row)) for row in gathered.of_table(table)}
            if stored != derived:
                extra, missing = len(stored - derived), len(derived - stored)
                yield f"{name}: {extra} stored that are not in the block, {missing} missing"
        if full.diffs is not None:
            yield from self._balances(rows, ids)

    def _contract_info(self, full: FullBlock) -> ContractInfo:
        lookups = contract_lookups(full)
        code = {address: self._had_code(address, full.block.number - 1) for address in lookups.code}
        probed = {address: ProbedStandard(self._store.probed_standard(address) or "") for address in lookups.probes}
        known = {address: has for address, has in code.items() if has is not None}
        return ContractInfo(known, probed, self._messengers, self._native_asset_id)

    def _had_code(self, address: bytes, block: int) -> bool | None:
        number = self._store.id_of(address)
        rows = self._store.read(SQL.code_before, {"address": number, "block": block}) if number is not None else []
        return bool(rows[0][0]) if rows else None

    def _balances(self, rows: BlockRows, ids: "_Ids") -> Iterator[str]:
        for one in rows.native_after:
            stored = self._store.read(SQL.native_at, {"address": ids(one.address), "block": rows.block.number})
            if not stored or unpack_uint(stored[0][0]) != one.balance:
                yield f"the native balance of 0x{one.address.hex()} is {one.balance}, another is stored"


class _Ids:
    """The IDs of addresses; one that is not stored gets a number that no row has."""

    def __init__(self, store: ChainStore) -> None:
        self._store = store

    def __call__(self, address: bytes) -> int:
        return self._store.id_of(address) or -int.from_bytes(address[-6:], "big") - 1


def stored_blocks(store: ChainStore, first: int | None, last: int | None) -> range:
    """The stored blocks that lie in the range; None: no limit."""
    lowest, highest = store.read(SQL.bounds)[0]
    if lowest is None:
        return range(0)
    return range(max(lowest, first or 0), min(highest, highest if last is None else last) + 1)


def _as_stored(value: object) -> object:
    return int(value) if isinstance(value, bool) else value


def summary(name: str, blocks: int, found: Sequence[StoreDifference]) -> str:
    lines = [f"{name}: block {one.block}: {one.what}" for one in found]
    verdict = f"{len({one.block for one in found})} blocks differ" if found else "all as stored"
    compared = "1 block compared" if blocks == 1 else f"{blocks} blocks compared"
    return "\n".join([*lines, f"{name}: {compared}, {verdict if blocks else 'nothing is verified'}"])
