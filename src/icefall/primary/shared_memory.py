"""What P and C move between the chains besides X's own part: imports leave the shared memory, exports enter it.

Exports of P and C to X are put there when their containers are accepted (`primary/chains.py`); what X exports, X itself
puts there. All else is here: what P imports and exports to C, and what C imports and exports to P.
"""

from collections.abc import Iterable, Sequence

import msgspec

from icefall.db.engine import Store, Transaction
from icefall.node.store import SQL, meta, read_meta
from icefall.node.sync.foreign import ForeignChain
from icefall.pchain.changes import Changes
from icefall.primary.listed import ListedPlatform
from icefall.primary.outbox import PrimaryOutbox
from icefall.wire.avm.codec import unpack_utxo
from icefall.wire.container.coreth import unpack_shared_memory
from icefall.wire.container.platform import block_in_container
from icefall.wire.ids import EMPTY_ID
from icefall.xchain.model import NewUtxo, owners_of
from icefall.xchain.store import put_atomic, take_atomic

P_CHAIN_ID = EMPTY_ID
_UNREAD = "p_unread"  # the numbers of the containers of P whose blocks could not be read, as JSON
_APPLIED = "c_shared_memory"  # how many containers of C have been applied
_BATCH = 256


def unread_numbers(store: Store) -> list[int]:
    """The stored containers of P whose exports to X are not known, because a type in them was unknown."""
    return msgspec.json.decode(read_meta(store, _UNREAD) or "[]", type=list[int])


def note_unread(tx: Transaction, added: Iterable[int] = (), read: Iterable[int] = ()) -> None:
    """Add containers that cannot be read, with the transaction that stores them, and leave out those that were."""
    known = msgspec.json.decode(meta(tx, _UNREAD) or "[]", type=list[int])
    numbers = sorted({*known, *added}.difference(read))
    tx.run(SQL.put_meta, {"name": _UNREAD, "value": msgspec.json.encode(numbers).decode()})


class PlatformMoves:
    """Applies what executed blocks of P import, and what they export to other chains than X."""

    def __init__(self, x_chain_id: bytes, listed: ListedPlatform, outbox: PrimaryOutbox | None = None) -> None:
        self._x_chain_id = x_chain_id
        self._listed = listed
        self._outbox = outbox

    def __call__(self, tx: Transaction, changes: Changes) -> None:
        self._listed.put(tx, changes)
        if self._outbox is not None:
            self._outbox.put_platform(tx, changes)
        for source, utxo_id in changes.imported:
            take_atomic(tx, P_CHAIN_ID, source, utxo_id)
        for one in changes.exported:
            if one.destination != self._x_chain_id:
                new = NewUtxo(one.utxo_id, unpack_utxo(one.raw), one.raw, one.addresses)
                put_atomic(tx, one.destination, P_CHAIN_ID, [new])


class CoreMoves:
    """Applies what C imports and exports to P, container by container. An older data directory has containers that were
    stored without: `catch_up` applies them, and until it is done new ones wait for it."""

    def __init__(self, store: Store, chain: ForeignChain) -> None:
        self._store = store
        self._chain = chain
        self.applied = int(read_meta(store, _APPLIED) or 0)

    @property
    def is_current(self) -> bool:
        return self.applied >= self._chain.position.count

    def put(self, tx: Transaction, inners: Iterable[bytes], applied: int) -> None:
        """Apply blocks; `applied` is how many have been then."""
        for inner in inners:
            imports, exports = unpack_shared_memory(inner)
            for source, utxo_id in imports:
                take_atomic(tx, self._chain.chain_id, source, utxo_id)
            for export in exports:
                if export.destination_chain == P_CHAIN_ID:
                    utxo = unpack_utxo(export.utxo_raw)
                    new = NewUtxo(export.utxo_id, utxo, export.utxo_raw, owners_of(utxo.output))
                    put_atomic(tx, P_CHAIN_ID, self._chain.chain_id, [new])
        tx.run(SQL.put_meta, {"name": _APPLIED, "value": str(applied)})

    async def step(self) -> bool:
        """Apply some stored containers. False if there are none that were not applied."""
        if self.is_current:
            return False
        rows: Sequence[tuple[int, bytes, bytes]] = self._chain.stored(self.applied, _BATCH)
        if not rows or rows[0][0] != self.applied:  # the index was off, so nothing can be known of them
            count = self._chain.position.count
            await self._store.write(lambda tx: self.put(tx, (), count))
            self.applied = count
            return False
        inners = [block_in_container(raw) for _, _, raw in rows]
        after = rows[-1][0] + 1
        await self._store.write(lambda tx: self.put(tx, inners, after))
        self.applied = after
        return True
