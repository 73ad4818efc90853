"""Every operation on the node's store, the asset chain in it, and the store of keys."""

import hashlib
from pathlib import Path
from typing import Any

from tests.xchain.stored import StoredChain, history

from icefall.access.budgets import DAY_S, Spent
from icefall.access.store import AccessReader, AccessWriter, key_hash, page_token_secret
from icefall.access.usage import AnsweredRequest, UsageCounts, UsageKey, UsageRow
from icefall.access.usage_store import UsageReader, UsageStore
from icefall.db.engine import BlockingReader, Store, Transaction
from icefall.node.index import ALL_SERIES, C_BLOCK, IndexReader
from icefall.node.store import SQL, NodeReader, StoredResult, put_learned, read_learned, read_meta
from icefall.node.sync.foreign import ForeignChain, ForeignContainer
from icefall.wire.avm.utxos import consumed
from icefall.wire.ids import input_id
from icefall.xchain.mempool import Refusal
from icefall.xchain.reading import AssetChainReader
from icefall.xchain.store import NEWEST, StoredState, put_refusals, take_atomic
from icefall.xchain.store import SQL as X_SQL

SEED, BLOCKS = 11, 25


def _name(number: int, size: int = 32) -> bytes:
    return hashlib.sha256(bytes([number])).digest()[:size]


def _plain(result: StoredResult) -> tuple[Any, ...]:
    return result.name, result.tags, result.passed, result.stored_ns


async def node_outcomes(store: Store) -> dict[str, Any]:
    reader = NodeReader(store)

    def change(tx: Transaction) -> None:
        put_learned(tx, b"genesis", b"\1" * 32)
        tx.run(SQL.put_meta, {"name": "bootstrapping", "value": '["X"]'})
        for number, alias in enumerate(("b", "A", "ä", "ab")):
            tx.run(SQL.put_endpoint_alias, {"alias": alias, "endpoint": "info"})
            tx.run(SQL.put_chain_alias, {"alias": alias, "chain_id": _name(number % 2)})
        for level in ("INFO", "DEBUG"):
            tx.run(SQL.put_logger_level, {"logger": "main", "log_level": level, "display_level": "OFF"})
        for passed in (False, True):
            result = {"report": "health", "name": "disk", "tags": '["x"]', "passed": passed, "answer": b"{}"}
            tx.run(SQL.put_health_result, {**result, "stored_ns": 2**60})
        tx.run(SQL.put_health_result, {**result, "name": "Bell", "stored_ns": 1})
        tx.run(SQL.put_vm_plugin, {"vm_id": "vm", "aliases": "[]", "failure": "no"})
        tx.run(SQL.put_probe, {"value": 1})
        tx.run(SQL.put_probe, {"value": 2})

    await store.write(change)
    found: dict[str, Any] = {
        "learned": read_learned(store), "missing": read_meta(store, "none"), "probe": store.read(SQL.probe),
        "bootstrapping": await reader.bootstrapping(), "levels": await reader.logger_levels(),
        "aliases": [await reader.aliases_of(_name(number)) for number in (0, 1, 9)],
        "endpoints": [await reader.endpoint_of(name) for name in ("A", "a", "ä", "a\0b")],
        "chains": [await reader.chain_of(name) for name in ("b", "none")],
        "plugins": await reader.plugins(),
    }  # fmt: skip
    found["health"] = [(*_plain(one), bytes(one.answer)) for one in await reader.health_results("health")]
    found["alias count"] = await store.write(lambda tx: tx.rows(SQL.endpoint_alias_count))
    found["cleared"] = await store.write(lambda tx: tx.run(SQL.clear_health_results))
    foreign = ForeignChain(store, "C", _name(7), _name(8), C_BLOCK)
    for height in range(1, 40):
        raw = bytes([height]) * height
        await foreign.accept([ForeignContainer(_name(height), _name(height + 100), raw, height)], lambda tx: None)
    found["followed"] = ForeignChain(store, "C", _name(7), _name(8), C_BLOCK).position
    found["container IDs"] = [foreign.container_id_at(number) for number in (0, 38, 39)]
    found["series"] = await _series(store, _name(7))
    return found


async def _series(store: Store, chain_id: bytes) -> list[Any]:
    found: list[Any] = []
    for series in ALL_SERIES:
        reader = IndexReader(store, series, chain_id)
        rows = await reader.run(0, 1000)
        found += [await reader.last_number(), [(number, key, raw) for number, key, _, raw in rows]]
        found.append(await reader.number_of(rows[-1][1] if rows else b""))
    return found


async def xchain_outcomes(store: Store, folder: Path) -> dict[str, Any]:
    stored = StoredChain(folder, store)
    steps = list(history(SEED, BLOCKS))
    await stored.carry_on(iter(steps))
    chain_id, ledger = stored.chain_id, stored.chain.ledger
    reader = AssetChainReader(store, chain_id)
    await store.write(lambda tx: take_atomic(tx, chain_id, _name(1), _name(2)))  # before it was exported
    moved = {"chain": ledger.at.chain, "next_seq": 1, "next_position": 1, "seq_before": 0}
    assert await store.write(lambda tx: tx.run(X_SQL.advance_before_blocks, moved)) == 0
    refusals = [Refusal(_name(n), str(n), is_final=True) for n in range(70)]
    await store.write(lambda tx: put_refusals(tx, ledger.at.chain, refusals))
    found: dict[str, Any] = {"height": await reader.height(), "series": await _series(store, chain_id)}
    found["refused"] = [await reader.refusal(_name(number)) for number in (0, 5, 6, 69)]
    found["blocks"] = [await reader.block_at(height) for height in (0, 1, BLOCKS, BLOCKS + 1, 2**70)]
    found["container IDs"] = [ledger.container_id_at(height) for height in (1, BLOCKS, BLOCKS + 1)]
    tip = ledger.tip
    found["tip"] = [await reader.block(tip.block_id), await reader.block_in_container(ledger.last_container_id)]
    state = StoredState(store, ledger.at.chain, chain_id, lambda _: b"")
    for step in steps:
        for tx in step.txs:
            spent = [input_id(one.txid, one.output_index) for one in consumed(tx)]
            found[tx.txid.hex()] = [await reader.tx(tx.txid), state.has_tx(tx.txid), [state.utxo(one) for one in spent]]
        for peer, utxo in step.received:
            found[f"received {utxo.txid.hex()}"] = state.atomic_utxo(peer, utxo.txid)
    found["txid"] = state.txid_at(3)
    addresses = {row[0] for row in store.read("select address from utxo_owner union select address from atomic_owner")}
    sources = {row[0] for row in store.read("select source from atomic_count")}
    for address in sorted(addresses):
        own = await reader.utxos(address, NEWEST, 5)
        found[f"{address.hex()} utxos"] = [own, [await reader.position(address, one.utxo_id) for one in own]]
        found[f"{address.hex()} txs"] = await reader.address_txs(address, b"", NEWEST, 5)
        for source in sorted(sources):
            some = await reader.atomic_utxos(source, address, NEWEST, 5)
            places = [await reader.atomic_position(source, address, one.utxo_id) for one in some]
            found[f"{address.hex()} from {source.hex()}"] = [some, places]
    assets = {row[0] for row in store.read("select distinct asset from address_tx")}
    for address in sorted(addresses)[:3]:
        for asset in sorted(assets):
            found[f"{address.hex()} {asset.hex()}"] = await reader.address_txs(address, asset, NEWEST, 5)
    return found


async def access_outcomes(writer: AccessWriter, reader: BlockingReader) -> list[Any]:
    writer.ensure()
    secret = page_token_secret(reader)
    writer.ensure()
    keys = AccessReader(reader)
    alice, bob = writer.add_key("alice", "pro", 5), writer.add_key("Bob", "free", 6)
    found: list[Any] = [len(secret), page_token_secret(reader) == secret, await keys.key(alice), await keys.key("none")]
    found += [writer.revoke_key("alice", 7), writer.revoke_key("alice", 8), await keys.key(alice), await keys.key(bob)]
    writer.add_key("alice", "free", 9)
    await keys.check()
    assert key_hash(alice) != key_hash(bob)
    return [*found, writer.all_keys(), await keys.active_keys()]


async def usage_outcomes(store: Store) -> list[Any]:
    """Budgets, usage by day, and the log of requests; `store` is that of keys."""
    owner, reader, now = UsageStore(store), UsageReader(store), 20_000.5 * DAY_S
    today = int(now) // DAY_S
    counts = UsageCounts(2, 7, [1] * len(UsageCounts().durations))
    keys = [UsageKey(today - day, caller, "/v1/x", "43114", 200) for day in (0, 1, 999) for caller in ("", "Bob", "ä")]
    requests = [
        AnsweredRequest(now - age * DAY_S, caller, "/v1/x", "/v1/x", "43114", 200, 1, 0.25 * age, "::1", "a\0b", "ä")
        for age in (0, 1, 30) for caller in ("Bob", "ä", "bob")
    ]  # fmt: skip
    for units in (5, 2**40):
        spent = [Spent(caller, today * 1440, units, today, 2 * units) for caller in ("Bob", "ä", "1.2.3.4")]
        spent.append(Spent("old", 0, 1, today - 1, 1))
        await owner.save(spent, [UsageRow(key, counts) for key in keys], requests)
    await owner.save([], [], [])
    found: list[Any] = [sorted(await owner.spent_today(now)), sorted(await owner.spent_today(now - DAY_S))]
    for dropped in (False, True):
        if dropped:
            await owner.drop_old(now)
        found.append(sorted(map(repr, await reader.between(0, today))))
        everything: dict[str, Any] = {
            "caller": "",
            "before": 2**62,
            "first": 0.0,
            "last": now,
            "path": "",
            "chain": "",
            "status": 0,
        }
        some: list[dict[str, Any]] = [{}, {"caller": "Bob"}, {"before": 4}, {"status": 404}, {"chain": "43114"}]
        for wanted in some:
            listed = await reader.requests(**(everything | wanted), count=20)
            found.append([(one.id, one.request.caller, one.request.at, one.request.duration_ms) for one in listed])
    found.append(sorted(await owner.spent_today(now - DAY_S)))
    return found
