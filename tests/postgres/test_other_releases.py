"""Readers of a chain that an indexer of another release has migrated, or that their role may not read: 503 with the
reason, and never rows that may mean something else."""

import asyncio
import sqlite3
from functools import partial
from pathlib import Path

import psycopg
import pytest
from tests.postgres.server import new_prefix, server_url

from icefall.compose.stores import Stores
from icefall.db.engine import StoreDenied, StoreOfOtherRelease
from icefall.db.migrate import load_schema
from icefall.evm.reading import directory
from icefall.evm.reading.chain import ChainReader
from icefall.evm.reading.directory import LazyChainReader
from icefall.evm.storing.store import PACKAGE

KNOWN = load_schema(PACKAGE, "postgres").number
DEVELOPED = 10  # the number of the last schema of the development versions


@pytest.fixture(autouse=True)
def check_every_query(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(directory, "RELEASE_CHECK_S", 0.0)


class PutNumber:
    """What another release would write, as far as a reader sees it."""

    def __init__(self, path: Path | None, schema: str = "") -> None:
        self._path = path
        self._schema = schema

    def __call__(self, number: int) -> None:
        if self._path is not None:
            connection = sqlite3.connect(self._path)
            connection.execute(f"pragma user_version = {number}")
            connection.close()
            return
        with psycopg.connect(server_url(), autocommit=True) as admin:
            table = f"{self._schema}.schema_version"
            admin.execute(f"update {table} set number = {number}")


async def expect_refusals(stores: Stores, put_number: PutNumber) -> None:
    reader = stores.chain_reader("7")
    chain = ChainReader(reader)
    assert await chain.tip() is None
    for number, reason in (
        (KNOWN + 1, f"written by a newer Icefall .schema {KNOWN + 1}"),
        (DEVELOPED, "made by a development version: index again"),
    ):
        put_number(number)
        for _ in range(2):
            with pytest.raises(StoreOfOtherRelease, match=f"chain 7 was {reason}"):
                await chain.tip()
        put_number(KNOWN)
        assert await chain.tip() is None
    reader.close()
    newer = LazyChainReader(partial(stores.chain_blocking_reader, "7"), "chain 7", KNOWN + 1)
    with pytest.raises(StoreOfOtherRelease, match=f"chain 7 was written by an older Icefall .schema {KNOWN}"):
        await ChainReader(newer).tip()


def test_a_file_of_another_release_is_not_read(tmp_path: Path) -> None:
    stores = Stores(tmp_path)
    stores.chain_store("7").close()
    asyncio.run(expect_refusals(stores, PutNumber(tmp_path / "chains" / "7.sqlite")))


def test_a_schema_of_another_release_is_not_read(tmp_path: Path) -> None:
    prefix = new_prefix()
    stores = Stores(tmp_path, server_url(), prefix)
    stores.chain_store("7").close()
    asyncio.run(expect_refusals(stores, PutNumber(None, f"{prefix}_chain_7")))
    stores.close()


def test_missing_rights_are_named(tmp_path: Path) -> None:
    prefix = new_prefix()
    role = f"no_rights_{prefix}"
    owner = Stores(tmp_path, server_url(), prefix)
    owner.chain_store("7").close()
    owner.close()
    with psycopg.connect(server_url(), autocommit=True) as admin:
        admin.execute(f"create role {role} login")
        stores = Stores(tmp_path, server_url().replace("postgres@", f"{role}@"), prefix)
        for right, reason in (("", "for schema"), (f"grant usage on schema {prefix}_chain_7 to {role}", "for table")):
            if right:
                admin.execute(right)
            with pytest.raises(StoreDenied, match=f"too few rights: permission denied {reason} "):
                asyncio.run(ChainReader(stores.chain_reader("7")).tip())
    stores.close()
