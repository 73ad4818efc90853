"""Pages of getUTXOs: addresses in byte order, outputs of each newest first, every output once per call.

A page ends where it searched last, not at the last output found, and the next one continues there. An address is
searched for at most `limit` outputs per call.
"""

from collections.abc import Iterable
from typing import Protocol

import msgspec

from icefall.wire.ids import EMPTY_ID, EMPTY_SHORT_ID
from icefall.xchain.store import NEWEST, StoredUtxo


class UtxoCursor(msgspec.Struct, frozen=True):
    address: bytes = EMPTY_SHORT_ID
    utxo_id: bytes = EMPTY_ID


class UtxoPage(msgspec.Struct, frozen=True):
    utxos: list[StoredUtxo]
    end: UtxoCursor


class UtxoReader(Protocol):
    """What pages are read from: the outputs of a chain, and those exported to it, both newest first."""

    async def utxos(self, address: bytes, below: int, limit: int) -> list[StoredUtxo]: ...

    async def position(self, address: bytes, utxo_id: bytes) -> int | None: ...

    async def atomic_utxos(self, source: bytes, address: bytes, below: int, limit: int) -> list[StoredUtxo]: ...

    async def atomic_position(self, source: bytes, address: bytes, utxo_id: bytes) -> int | None: ...


class UtxoLists(Protocol):
    """The lists a page is cut from: an address's own outputs, or those another chain exported to it."""

    async def after(self, address: bytes, utxo_id: bytes, limit: int) -> list[StoredUtxo]: ...

    def end_of(self, address: bytes, start: bytes, searched: list[StoredUtxo], before: bytes) -> bytes:
        """The UTXO ID a page ends with when `address` was searched last."""
        ...


class OwnUtxos:
    """Continues after the start; if the start has been spent, the list of its address is read from the beginning."""

    def __init__(self, chain: UtxoReader) -> None:
        self._chain = chain

    async def after(self, address: bytes, utxo_id: bytes, limit: int) -> list[StoredUtxo]:
        position = None if utxo_id == EMPTY_ID else await self._chain.position(address, utxo_id)
        return await self._chain.utxos(address, NEWEST if position is None else position, limit)

    def end_of(self, _address: bytes, _start: bytes, searched: list[StoredUtxo], before: bytes) -> bytes:
        return searched[-1].utxo_id if searched else before


class ExportedUtxos:
    """The UTXOs exported to a chain. Like the node's shared memory, it returns the start itself once more. A start that
    is not in the list of its address, imported or never there, means the beginning of that list."""

    def __init__(self, chain: UtxoReader, source: bytes) -> None:
        self._chain = chain
        self._source = source

    async def after(self, address: bytes, utxo_id: bytes, limit: int) -> list[StoredUtxo]:
        position = None if utxo_id == EMPTY_ID else await self._chain.atomic_position(self._source, address, utxo_id)
        return await self._chain.atomic_utxos(
            self._source, address, NEWEST if position is None else position + 1, limit
        )

    def end_of(self, _address: bytes, start: bytes, searched: list[StoredUtxo], _before: bytes) -> bytes:
        return searched[-1].utxo_id if searched else start


async def page_of(lists: UtxoLists, addresses: Iterable[bytes], start: UtxoCursor, limit: int) -> UtxoPage:
    found: list[StoredUtxo] = []
    seen: set[bytes] | None = None  # one address has no output twice
    end = start
    for address in sorted(set(addresses)):
        if address < start.address:
            continue
        begin = start.utxo_id if address == start.address else EMPTY_ID
        rows = await lists.after(address, begin, limit)
        if found:
            seen = seen if seen is not None else {utxo.utxo_id for utxo in found}
            rows = _add_new(found, seen, rows, limit)
        else:
            found += rows
        end = UtxoCursor(address, lists.end_of(address, begin, rows, end.utxo_id))
        if len(found) == limit:
            break
    return UtxoPage(found, end)


def _add_new(found: list[StoredUtxo], seen: set[bytes], rows: list[StoredUtxo], limit: int) -> list[StoredUtxo]:
    """Adds what was not seen, up to the limit; the rows that were searched for it."""
    searched = []
    for utxo in rows:
        searched.append(utxo)
        if utxo.utxo_id not in seen:
            seen.add(utxo.utxo_id)
            found.append(utxo)
            if len(found) == limit:
                break
    return searched
