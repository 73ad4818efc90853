"""The tables of the node's store that belong to no chain, and whether a data directory fits these settings."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Protocol

import msgspec

from icefall.db.changes import LastRead, unknown_version
from icefall.db.engine import Reader, Row, StatementParams, Transaction
from icefall.db.statements import load
from icefall.errors import StartRefused

SQL = load("icefall.node", "queries.sql")
PACKAGE = "icefall.node"


def store_path(data_dir: Path) -> Path:
    return data_dir / "node.sqlite"


class StoredResult(msgspec.Struct, frozen=True):
    """The last result of a check; `answer` is its JSON object as it is sent."""

    name: str
    tags: list[str]
    passed: bool
    answer: msgspec.Raw
    stored_ns: int


class StoredPlugin(msgspec.Struct, frozen=True):
    vm_id: str
    aliases: list[str]
    failure: str


class NodeReader:
    """Everything a worker reads from the node store. `version`: what hardly changes is read once per version."""

    def __init__(self, reader: Reader, version: Callable[[], int] = unknown_version) -> None:
        self._reader = reader
        self._version = version
        self._tags = msgspec.json.Decoder(list[str])
        self._bootstrapping = LastRead(version, self._read_bootstrapping)
        self._health: dict[str, LastRead[list[StoredResult]]] = {}

    async def endpoint_of(self, alias: str) -> str | None:
        rows = await self._reader.rows(SQL.endpoint_of_alias, {"alias": alias})
        return rows[0][0] if rows else None

    async def chain_of(self, alias: str) -> bytes | None:
        rows = await self._reader.rows(SQL.chain_of_alias, {"alias": alias})
        return rows[0][0] if rows else None

    async def aliases_of(self, chain_id: bytes) -> list[str]:
        return [alias for (alias,) in await self._reader.rows(SQL.aliases_of_chain, {"chain_id": chain_id})]

    async def logger_levels(self) -> dict[str, tuple[str, str]]:
        return {name: (log, display) for name, log, display in await self._reader.rows(SQL.logger_levels)}

    async def health_results(self, report: str) -> list[StoredResult]:
        known = self._health.get(report)
        if known is None:
            known = self._health[report] = LastRead(self._version, partial(self._read_health, report))
        return await known.get()

    async def _read_health(self, report: str) -> list[StoredResult]:
        rows = await self._reader.rows(SQL.health_results, {"report": report})
        return [
            StoredResult(
                name, self._tags.decode(tags) if tags != "[]" else [], bool(passed), msgspec.Raw(answer), stored_ns
            )
            for name, tags, passed, answer, stored_ns in rows
        ]

    async def bootstrapping(self) -> list[str]:
        """The names of the chains that are not bootstrapped yet."""
        return await self._bootstrapping.get()

    def known_bootstrapping(self) -> list[str] | None:
        """The same, if it was read since anything was committed."""
        return self._bootstrapping.known()

    async def _read_bootstrapping(self) -> list[str]:
        rows = await self._reader.rows(SQL.meta, {"name": "bootstrapping"})
        return self._tags.decode(rows[0][0]) if rows else []

    async def plugins(self) -> list[StoredPlugin]:
        rows = await self._reader.rows(SQL.vm_plugins)
        return [StoredPlugin(vm_id, self._tags.decode(aliases), failure) for vm_id, aliases, failure in rows]


def meta(tx: Transaction, name: str) -> str | None:
    rows = tx.rows(SQL.meta, {"name": name})
    return rows[0][0] if rows else None


class _ReadableStore(Protocol):
    def read(self, statement: str, params: StatementParams = ()) -> list[Row]: ...


def read_meta(store: _ReadableStore, name: str) -> str | None:
    rows = store.read(SQL.meta, {"name": name})
    return rows[0][0] if rows else None


def read_learned(store: _ReadableStore) -> tuple[bytes, bytes] | None:
    """X genesis and C-Chain ID of a network that was learnt from an upstream."""
    x_genesis, c_chain_id = read_meta(store, "learned_x_genesis"), read_meta(store, "learned_c_chain_id")
    return (bytes.fromhex(x_genesis), bytes.fromhex(c_chain_id)) if x_genesis and c_chain_id else None


def put_learned(tx: Transaction, x_genesis: bytes, c_chain_id: bytes) -> None:
    tx.run(SQL.put_meta, {"name": "learned_x_genesis", "value": x_genesis.hex()})
    tx.run(SQL.put_meta, {"name": "learned_c_chain_id", "value": c_chain_id.hex()})


OWN, FOLLOWED = "own", "followed"


class StartRequest(msgspec.Struct, frozen=True):
    """How the program was asked to start."""

    network_id: int
    follows: bool
    index_enabled: bool
    allow_incomplete: bool

    @property
    def mode(self) -> str:
        return FOLLOWED if self.follows else OWN


def refusal(known: Callable[[str], str | None], start: StartRequest) -> str | None:
    """Why the start is refused and what to do instead, or None. `known` reads a value from the `meta` table."""
    network, mode = known("network_id"), known("mode")
    if network is not None and int(network) != start.network_id:
        return (
            f"this data directory belongs to network {network}, not {start.network_id}: "
            f"use another --data-dir, or --network-id={network}"
        )
    if mode == FOLLOWED and not start.follows:
        return "this data directory follows another node: give --upstream, or use another --data-dir"
    if mode == OWN and start.follows:
        return "this data directory holds a network of its own: follow a node with another --data-dir"
    if start.allow_incomplete:
        return None
    if start.index_enabled and known("index_incomplete"):
        return (
            "index is incomplete but incomplete indices are disabled: this data directory once ran without the index. "
            "Accept what it misses with --index-allow-incomplete, or start on a fresh --data-dir"
        )
    if not start.index_enabled and known("indexed"):
        return (
            "running would cause index to become incomplete but incomplete indices are disabled: start with "
            "--index-enabled=true, or accept that the index will miss what is accepted now with "
            "--index-allow-incomplete"
        )
    return None


def admit(tx: Transaction, start: StartRequest, genesis_time: int) -> None:
    """Bind the data directory. `genesis_time` decides where a local network's P-Chain begins; the first one stays."""
    reason = refusal(lambda name: meta(tx, name), start)
    if reason is not None:
        raise StartRefused(reason)
    values = {"network_id": str(start.network_id), "mode": start.mode}
    if meta(tx, "genesis_time") is None:
        values["genesis_time"] = str(genesis_time)
    values["indexed" if start.index_enabled else "index_incomplete"] = "1"
    for name, value in values.items():
        tx.run(SQL.put_meta, {"name": name, "value": value})
