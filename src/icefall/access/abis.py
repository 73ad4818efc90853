"""ABIs of contracts in the access store, which every worker reads: added and removed there, from any process."""

from collections.abc import Callable
from typing import NamedTuple, Protocol, TypeVar

from icefall.db.engine import Reader, Transaction
from icefall.db.statements import load
from icefall.errors import BadRequest

T = TypeVar("T")
SQL = load("icefall.access", "abis.sql")
ABIS_MAX = 2_000  # of an installation; each worker has the names of their functions in memory
_REMOVALS_KEPT = 10_000  # later changes after which a removal is forgotten; workers look once a second


class AbiWriter(Protocol):
    """The access store, opened when something is written."""

    async def write(self, change: Callable[[Transaction], T]) -> T: ...


class ListedAbi(NamedTuple):
    chain_id: str
    address: bytes
    origin: str  # the name of an API key; empty: the command line
    added: int  # Unix time
    size: int  # characters


class ChangedAbi(NamedTuple):
    """A change: the ABI of a contract is this now. An empty text: it was removed."""

    chain_id: str
    address: bytes
    text: str
    version: int


def put_abi(tx: Transaction, chain_id: str, address: bytes, text: str, origin: str, now: int) -> None:
    """Add the ABI of a contract, in place of one that was there. BadRequest where there are too many."""
    tx.rows(SQL.lock_abis)
    where = {"chain_id": chain_id, "address": address}
    ((count,),) = tx.rows(SQL.count_abis)
    if count >= ABIS_MAX and not tx.rows(SQL.abi_of, where):
        raise BadRequest(f"there are {count} ABIs already, which is as many as are stored: remove one first")
    tx.run(SQL.put_abi, {**where, "abi": text, "origin": origin, "added": now, "version": _next(tx)})


def remove_abi(tx: Transaction, chain_id: str, address: bytes, now: int) -> bool:
    """Remove the ABI of a contract, and tell whether there was one."""
    tx.rows(SQL.lock_abis)
    where = {"chain_id": chain_id, "address": address}
    if not tx.rows(SQL.abi_of, where):
        return False
    version = _next(tx)
    tx.run(SQL.put_abi, {**where, "abi": "", "origin": "", "added": now, "version": version})
    tx.run(SQL.drop_removed_abis, {"version": version - _REMOVALS_KEPT})
    return True


def _next(tx: Transaction) -> int:
    ((newest,),) = tx.rows(SQL.newest_abi)
    return int(newest) + 1


def listed_abis(tx: Transaction) -> list[ListedAbi]:
    return [ListedAbi(chain, bytes(address), *rest) for chain, address, *rest in tx.rows(SQL.listed_abis)]


class AbiStore:
    """The ABIs, as workers read and change them."""

    def __init__(self, reader: Reader, store: AbiWriter) -> None:
        self._reader = reader
        self._store = store

    async def changed(self, version: int, count: int) -> list[ChangedAbi]:
        """Return changes after the one of this version, oldest first."""
        rows = await self._reader.rows(SQL.changed_abis, {"version": version, "count": count})
        return [ChangedAbi(chain, bytes(address), text, number) for chain, address, text, number in rows]

    async def text(self, chain_id: str, address: bytes) -> str | None:
        rows = await self._reader.rows(SQL.abi_of, {"chain_id": chain_id, "address": address})
        return str(rows[0][0]) if rows else None

    async def put(self, chain_id: str, address: bytes, text: str, origin: str, now: int) -> None:
        await self._store.write(lambda tx: put_abi(tx, chain_id, address, text, origin, now))

    async def remove(self, chain_id: str, address: bytes, now: int) -> bool:
        return await self._store.write(lambda tx: remove_abi(tx, chain_id, address, now))
