"""Every store operation, on every engine: the same outcomes and the same rows as on SQLite.

That those of SQLite are right is what the other suites show. On PostgreSQL every fourth address is read, and on Citus,
where a statement takes ten times as long, every 32nd; ICEFALL_FUZZ_EVERY_ADDRESS=1 reads them all.
"""

import asyncio
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import pytest
from tests.evm.digest import digests_of
from tests.postgres.citus import citus_nodes
from tests.postgres.server import new_prefix, server_url
from tests.store.conformance.evm_operations import comparable, evm_outcomes
from tests.store.conformance.node_operations import access_outcomes, node_outcomes, usage_outcomes, xchain_outcomes
from tests.store.conformance.platform_operations import pchain_outcomes
from tests.store.conformance.recorder import RecordedStore
from tests.store.opened import FileTables, SchemaTables, Tables
from tests.store.test_every_statement import FILES
from tests.xchain.stored import digest_of

from icefall.compose.stores import StoreName, Stores
from icefall.evm.standards import load_statements as load

CHAIN = StoreName("chain", "7")
NODE = StoreName("node")
USUAL = {"sqlite": 1, "postgres": 4, "citus": 32}
EVERY = {engine: int(os.environ.get("ICEFALL_FUZZ_EVERY_ADDRESS", usual)) for engine, usual in USUAL.items()}
OF_ADDRESSES = ("address ", "history ")  # how outcomes begin of which there is one for each address


class Place(NamedTuple):
    stores: Stores
    folder: Path
    url: str
    prefix: str
    every: int  # of the addresses of a chain

    @contextmanager
    def tables(self, name: StoreName) -> Iterator[Tables]:
        if self.url:
            found: Tables = SchemaTables(self.url, f"{self.prefix}_{name.schema}")
        else:
            found = FileTables(name.path(self.folder))
        try:
            yield found
        finally:
            found.close()


@contextmanager
def place(engine: str) -> Iterator[Place]:
    url = "" if engine == "sqlite" else server_url() if engine == "postgres" else citus_nodes()[0]
    with TemporaryDirectory() as folder, ExitStack() as opened:
        prefix = new_prefix()
        stores = Stores(Path(folder), url, prefix)
        opened.callback(stores.close)
        yield Place(stores, Path(folder), url, prefix, EVERY[engine])


def evm(at: Place, used: set[str]) -> Any:
    store = RecordedStore(at.stores.chain_store("7"), used)
    found = asyncio.run(evm_outcomes(store, at.folder, at.every))
    store.close()
    with at.tables(CHAIN) as tables:
        return comparable(found), digests_of(tables)


def node(at: Place, used: set[str]) -> Any:
    store = RecordedStore(at.stores.node_store(), used)
    found = asyncio.run(node_outcomes(store))
    store.close()
    with at.tables(NODE) as tables:
        return found, digest_of(tables)


def xchain(at: Place, used: set[str]) -> Any:
    store = RecordedStore(at.stores.node_store(), used)
    found = asyncio.run(xchain_outcomes(store, at.folder))
    store.close()
    with at.tables(NODE) as tables:
        return found, digest_of(tables)


def pchain(at: Place, used: set[str]) -> Any:
    store = RecordedStore(at.stores.node_store(), used)
    found = asyncio.run(pchain_outcomes(store, at.folder))
    store.close()
    with at.tables(NODE) as tables:
        return found, digest_of(tables)


def access(at: Place, used: set[str]) -> Any:
    writer = at.stores.access_writer()
    writer.ensure()
    reader = at.stores.access_reader()
    found = asyncio.run(access_outcomes(writer, reader))
    reader.close()
    store = RecordedStore(at.stores.access_store(), used)
    found += asyncio.run(usage_outcomes(store))
    store.close()
    return found


AREAS: dict[str, Callable[[Place, set[str]], Any]] = {
    "evm": evm,
    "node": node,
    "xchain": xchain,
    "pchain": pchain,
    "access": access,
}


@cache
def on_sqlite(area: str) -> tuple[Any, set[str]]:
    used: set[str] = set()
    with place("sqlite") as at:
        return AREAS[area](at, used), used


def of_same_addresses(expected: Any, found: Any) -> Any:
    """What all addresses led to, without the addresses that were not read."""
    outcomes, rows = expected
    read = {key: one for key, one in outcomes.items() if key in found[0] or not key.startswith(OF_ADDRESSES)}
    assert all(any(key.startswith(start) for key in read) for start in OF_ADDRESSES)
    return read, rows


@pytest.mark.parametrize("area", AREAS)
@pytest.mark.parametrize("engine", ["postgres", "citus"])
def test_the_same_on_every_engine(engine: str, area: str) -> None:
    expected, _ = on_sqlite(area)
    used: set[str] = set()
    with place(engine) as at:
        found = AREAS[area](at, used)
    assert found == (of_same_addresses(expected, found) if area == "evm" else expected)
    if area == "evm":  # what servers read lists with, though not all addresses are read
        joined = load("icefall.evm.reading.lists", "joined.sql")
        assert {name for name in joined.names() if getattr(joined, name) not in used} == set()


def test_every_statement_is_among_them() -> None:
    """Of the chain's and the node's stores; the access store has no statement that its few operations do not use."""
    used = on_sqlite("evm")[1] | on_sqlite("node")[1] | on_sqlite("xchain")[1] | on_sqlite("pchain")[1]
    unused = {
        f"{package}/{file}": missing
        for package, file in (*FILES["icefall.evm"], *FILES["icefall.node"])
        if file not in ("copied.sql", "refolding.sql")  # tests/postgres/test_copying.py, tests/evm/test_refold.py
        and (
            missing := {name for name in load(package, file).names() if getattr(load(package, file), name) not in used}
        )
    }
    assert unused == {}
