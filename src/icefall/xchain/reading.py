"""Everything a worker reads of an asset chain. What it has read last is kept until anything is committed."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from icefall.db.changes import LastRead, unknown_version
from icefall.db.engine import Reader, Row, StatementParams, StoreError
from icefall.xchain.object_cache import ObjectCache
from icefall.xchain.store import NEWEST, SQL, StoredUtxo

CACHED_MAX = 2 << 20  # bytes that a worker keeps of a chain: of blocks, transactions and lists, each
OVERHEAD = 200  # bytes of one of them besides what is stored, roughly
OutputsKey = tuple[bytes, bytes, int, int]  # the chain that exported them, or nothing; address, below, limit
AddressTx = tuple[int, bytes, int]  # its number, its ID, its height


class OutputsCache(ObjectCache[OutputsKey, list[StoredUtxo]]):
    """Lists of the unspent outputs of addresses, of a chain's own and of those exported to it."""

    __slots__ = ()

    async def of(self, key: OutputsKey, read: Callable[[OutputsKey], Awaitable[Sequence[Row]]]) -> list[StoredUtxo]:
        """Return the list of a key, which is read if it is not known. It may be given again, and is never changed."""
        cached = self.now()
        found = cached.get(key)
        if found is None:
            found = [StoredUtxo(*row) for row in await read(key)]
            self.put(cached, key, found, sum([len(utxo.raw) for utxo in found]) + OVERHEAD * (len(found) + 1))
        return found


class AssetChainReader:
    """`version`: the height, and the lists of addresses that were read last, are read once per version of the store."""

    def __init__(self, reader: Reader, chain_id: bytes, version: Callable[[], int] = unknown_version) -> None:
        self._reader = reader
        self._chain_id = chain_id
        self._number: int | None = None
        self._height = LastRead(version, self._read_height)
        self._outputs = OutputsCache(version, CACHED_MAX)
        self._address_txs: ObjectCache[tuple[bytes, bytes, int, int], list[AddressTx]]
        self._address_txs = ObjectCache(version, CACHED_MAX)

    async def _chain(self) -> int:
        """The chain's number in this store never changes once it has one."""
        if self._number is None:
            rows = await self._reader.rows(SQL.ledger, {"chain_id": self._chain_id})
            if not rows:
                raise StoreError("the chain is not in the store")
            self._number = int(rows[0][0])
        return self._number

    async def height(self) -> int:
        known = self._height.known()
        return known if known is not None else await self._height.get()

    async def _read_height(self) -> int:
        return int((await self._reader.rows(SQL.height, {"chain": await self._chain()}))[0][0])

    # -- blocks and transactions ----------------------------------------------------------------------------------

    async def block_at(self, height: int) -> bytes | None:
        if height > NEWEST:
            return None
        return await self._bytes(SQL.block_by_height, {"chain": await self._chain(), "height": height})

    async def block(self, block_id: bytes) -> bytes | None:
        return await self._bytes(SQL.block_by_id, {"chain": await self._chain(), "block_id": block_id})

    async def block_in_container(self, container_id: bytes) -> bytes | None:
        key = {"chain": await self._chain(), "container_id": container_id}
        return await self._bytes(SQL.block_by_container_id, key)

    async def tx(self, txid: bytes) -> bytes | None:
        return await self._bytes(SQL.tx, {"chain": await self._chain(), "txid": txid})

    async def refusal(self, txid: bytes) -> str | None:
        rows = await self._reader.rows(SQL.refused, {"chain": await self._chain(), "txid": txid})
        return rows[0][0] if rows else None

    async def _bytes(self, statement: str, params: StatementParams) -> bytes | None:
        rows = await self._reader.rows(statement, params)
        return rows[0][0] if rows else None

    # -- outputs --------------------------------------------------------------------------------------------------

    async def utxos(self, address: bytes, below: int, limit: int) -> list[StoredUtxo]:
        """List the unspent outputs of an address, newest first."""
        return await self._outputs.of((b"", address, below, limit), self._read_outputs)

    async def _read_outputs(self, key: OutputsKey) -> list[Row]:
        source, address, below, limit = key
        page = {"address": address, "below": below, "limit": limit}
        if source:
            sides = {"destination": self._chain_id, "source": source}
            return await self._reader.rows(SQL.atomic_of_address, {**sides, **page})
        return await self._reader.rows(SQL.utxos_of_address, {"chain": await self._chain(), **page})

    async def position(self, address: bytes, utxo_id: bytes) -> int | None:
        """The position of a UTXO in the list of an address."""
        key = {"chain": await self._chain(), "address": address, "utxo_id": utxo_id}
        rows = await self._reader.rows(SQL.utxo_position, key)
        return rows[0][0] if rows else None

    async def atomic_utxos(self, source: bytes, address: bytes, below: int, limit: int) -> list[StoredUtxo]:
        """List what another chain has exported to this one and was not imported yet, newest first."""
        return await self._outputs.of((source, address, below, limit), self._read_outputs)

    async def atomic_position(self, source: bytes, address: bytes, utxo_id: bytes) -> int | None:
        """The position of an exported UTXO in the list of an address."""
        key = {"destination": self._chain_id, "source": source, "address": address, "utxo_id": utxo_id}
        rows = await self._reader.rows(SQL.atomic_position, key)
        return rows[0][0] if rows else None

    # -- the history of an address --------------------------------------------------------------------------------

    async def address_txs(self, address: bytes, asset: bytes, below: int, limit: int) -> list[AddressTx]:
        """List the transactions of an address, of one asset or of all, newest first."""
        cached = self._address_txs.now()
        key = address, asset, below, limit
        known = cached.get(key)
        if known is not None:
            return known
        params = {"chain": await self._chain(), "address": address, "below": below, "limit": limit}
        if asset:
            rows: list[Any] = await self._reader.rows(SQL.txs_of_address_asset, params | {"asset": asset})
        else:
            rows = await self._reader.rows(SQL.txs_of_address, params)
        self._address_txs.put(cached, key, rows, OVERHEAD * (len(rows) + 1))
        return rows
