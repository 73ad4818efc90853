"""Lists of subnets, blockchains and validators of L1s, page by page."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import msgspec

from icefall.db.statements import load
from icefall.pchain.model import ChainRow, L1Validator, Subnet
from icefall.pchain.periods import PeriodLists
from icefall.pchain.store import L1_REMOVED, l1_validator_of_row, subnet_of
from icefall.xchain.store import NEWEST

SQL = load("icefall.pchain", "subnet_lists.sql")
EVM_SQL = load("icefall.pchain", "evm_chains.sql")


class ListedSubnet(NamedTuple):
    """A subnet with the block that created it."""

    subnet: Subnet
    height: int
    time: int


class ListedChain(NamedTuple):
    """A blockchain with the block that created it."""

    chain: ChainRow
    height: int
    time: int


class SubnetLists(PeriodLists):
    """All lists of the P-Chain."""

    _has_sums = False

    async def has_sums(self) -> bool:
        """Tell whether the sums of stakers, rewards and fees are there. Once they are, they stay so."""
        self._has_sums = self._has_sums or not await self._store.rows(SQL.sums_missing)
        return self._has_sums

    async def subnet_page(self, low: int, below: int, limit: int, *, upwards: bool) -> list[ListedSubnet]:
        """Subnets by the numbers of the transactions that created them; the primary network is none of them."""
        key = {"low": low, "below": below, "limit": limit}
        return [_subnet(row) for row in await self._store.rows(SQL.named(f"subnets_{_order(upwards)}"), key)]

    async def listed_subnet(self, subnet_id: bytes) -> ListedSubnet | None:
        rows = await self._store.rows(SQL.subnet, {"subnet_id": subnet_id})
        return _subnet(rows[0]) if rows else None

    async def chain_page(self, low: int, below: int, limit: int, *, upwards: bool) -> list[ListedChain]:
        """Blockchains by the numbers of the transactions that created them; the P-Chain is none of them."""
        key = {"low": low, "below": below, "limit": limit}
        return [_chain(row) for row in await self._store.rows(SQL.named(f"chains_{_order(upwards)}"), key)]

    async def listed_chain(self, chain_id: bytes) -> ListedChain | None:
        rows = await self._store.rows(SQL.chain, {"chain_id": chain_id})
        return _chain(rows[0]) if rows else None

    async def blockchain_ids(self, evm_chain_id: int) -> list[bytes]:
        """The blockchains whose genesis has this EVM chain ID, oldest first. Anyone can create another one with it."""
        rows = await self._store.rows(EVM_SQL.blockchain_ids, {"evm_chain_id": evm_chain_id})
        return [chain_id for (chain_id,) in rows]

    async def evm_chain_ids(self, chain_ids: Sequence[bytes]) -> dict[bytes, int]:
        """The EVM chain IDs of those of these blockchains that are EVM chains."""
        return dict(await self._store.rows_of_each(EVM_SQL.evm_chain_ids, [(one,) for one in chain_ids]))

    async def chains_of(self, subnet_ids: Sequence[bytes]) -> dict[bytes, list[ListedChain]]:
        """The blockchains of subnets, oldest first."""
        rows = await self._store.rows_of_each(SQL.chains_of, [(one,) for one in subnet_ids]) if subnet_ids else []
        found: dict[bytes, list[ListedChain]] = {subnet_id: [] for subnet_id in subnet_ids}
        for one in sorted(map(_chain, rows), key=lambda one: one.chain.seq):
            found[one.chain.subnet_id].append(one)
        return found

    async def l1_page(
        self, source: str, key: bytes, statuses: Iterable[int], before: tuple[int, bytes] | None, limit: int
    ) -> list[L1Validator]:
        """Validators of L1s, newest first: all (l1_listed), of a subnet (l1_of_subnet) or of a node (l1_of_node)."""
        start, validation_id = before or (NEWEST, b"")
        found: list[L1Validator] = []
        for status in statuses:
            given: dict[str, Any] = {"status": status, "start": start, "validation_id": validation_id, "limit": limit}
            given |= {} if source == "l1_listed" else {"key": key}
            found += [_l1(row) for row in await self._store.rows(SQL.named(source), given)]
        return sorted(found, key=lambda one: (one.start, one.validation_id), reverse=True)[:limit]

    async def l1_validation(self, validation_id: bytes) -> L1Validator | None:
        """A validator of an L1, also after its removal."""
        rows = await self._store.rows(SQL.l1_validation, {"validation_id": validation_id})
        return _l1(rows[0]) if rows else None


def _order(upwards: bool) -> str:
    return "up" if upwards else "down"


def _subnet(row: Sequence[Any]) -> ListedSubnet:
    *columns, height, time = row
    return ListedSubnet(subnet_of(columns[0], tuple(columns[1:]), 0), height, time)


def _chain(row: Sequence[Any]) -> ListedChain:
    *columns, height, time = row
    return ListedChain(ChainRow(*columns), height, time)


def _l1(row: Sequence[Any]) -> L1Validator:
    *columns, status = row
    return msgspec.structs.replace(l1_validator_of_row(tuple(columns)), is_removed=status == L1_REMOVED)
