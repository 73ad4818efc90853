"""Every operation on the outbox of webhooks in the store of an EVM chain."""

from typing import Any

import msgspec

from icefall.db.engine import Store, Transaction
from icefall.webhooks.delivering import OutboxReader
from icefall.webhooks.matching import Event, EventDetail
from icefall.webhooks.outbox import SQL, Outbox, put_events

NEWEST = (1 << 63) - 1
EVENTS = [
    Event(f"id{number}", "webhook", 5 + number, number, bytes([number]) * 32, b"t" * 32, detail)
    for number, detail in enumerate([msgspec.msgpack.encode(EventDetail(b"r" * 32, 5, None))] * 3)
]


async def outbox_outcomes(store: Store) -> list[Any]:
    """Events written, rolled back, written again and deleted for their age."""

    async def head() -> int:
        return 0

    reader, outbox = OutboxReader("1", store, head), Outbox("1")
    found: list[Any] = [await reader.outbox_id()]
    await store.write(lambda tx: put_events(tx, EVENTS, 100))
    found.append(len(await reader.outbox_id()))
    await store.write(lambda tx: outbox.roll_back_above(tx, 5))
    await store.write(lambda tx: put_events(tx, EVENTS[2:], 101))
    found += [await reader.after(0), [await reader.event(one.id) for one in EVENTS], await reader.event("none")]
    await store.write(lambda tx: tx.run(SQL.renew_outbox_id, {"value": "that of a copy"}))
    found.append(await reader.outbox_id())
    await store.write(_drop_old)
    found.append(await reader.after(0))
    span = {"low": 0, "high": NEWEST}
    found.append(sorted(tuple(row) for row in store.read(SQL.tx_hashes, span)))
    for (number,) in store.read("select id from address order by id limit 50"):
        found += [sorted(store.read(one, {**span, "id": number})) for one in (SQL.native_txs, SQL.touching_txs)]
    return found


def _drop_old(tx: Transaction) -> None:
    """The newest row stays. The ID of the outbox is random, so it goes."""
    tx.run(SQL.drop_old_events, {"before": 1000})
    tx.run("delete from meta where name = 'webhook_outbox'")
