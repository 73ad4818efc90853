"""Where a store engine is chosen: the only module outside `db/` that names one.

Everything else receives a store, a reader or a function that opens one, typed by the protocols of `db/engine.py`. A
second engine (PostgreSQL) plugs in here.
"""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from icefall.access import store as access
from icefall.db import sqlite
from icefall.db.engine import BlockingReader, Store
from icefall.db.lock import StoreLock
from icefall.db.sqlite import SqliteReader, SqliteStore
from icefall.evm.storing import store as evm
from icefall.node import store as node

if TYPE_CHECKING:
    from icefall.evm.reading.directory import LazyChainReader


def open_node_store(data_dir: Path) -> Store:
    """For the engine, which is the only writer."""
    return SqliteStore(node.store_path(data_dir), node.PACKAGE)


def open_node_reader(data_dir: Path) -> BlockingReader:
    return SqliteReader(node.store_path(data_dir))


def open_chain_store(data_dir: Path, chain_id: str) -> Store:
    """For the indexer, which is the only writer of an EVM chain's store."""
    return SqliteStore(evm.store_path(data_dir, chain_id), evm.PACKAGE)


def lock_chain_store(data_dir: Path, chain_id: str) -> StoreLock:
    """Before it is opened for writing. StoreError if another process writes it."""
    return StoreLock(evm.store_path(data_dir, chain_id).with_suffix(".lock"))


def has_chain_store(data_dir: Path, chain_id: str) -> bool:
    return evm.store_path(data_dir, chain_id).exists()


def open_chain_reader(data_dir: Path, chain_id: str) -> "LazyChainReader":
    """Opened at its first query: the indexer may create the store later."""
    from icefall.evm.reading.directory import LazyChainReader  # noqa: PLC0415 - most processes of a program need none

    return LazyChainReader(partial(open_chain_blocking_reader, data_dir, chain_id), f"chain {chain_id}")


def open_chain_blocking_reader(data_dir: Path, chain_id: str) -> BlockingReader | None:
    return SqliteReader(evm.store_path(data_dir, chain_id)) if has_chain_store(data_dir, chain_id) else None


def chain_files(data_dir: Path, chain_id: str) -> list[Path]:
    """The files of a chain's store, the store itself first; not all may exist."""
    path = evm.store_path(data_dir, chain_id)
    return [Path(f"{path}{ending}") for ending in ("", "-wal", "-shm")]


def open_access_reader(data_dir: Path) -> BlockingReader:
    return SqliteReader(access.store_path(data_dir))


def store_paths(data_dir: Path) -> list[Path]:
    """The files of all stores of a data directory, those that exist."""
    named = (node.store_path(data_dir), access.store_path(data_dir))
    return [path for path in (*named, *sorted((data_dir / "chains").glob("*.sqlite"))) if path.exists()]


def copy_store(path: Path, target: Path) -> int:
    """A consistent copy of a store that may be in use; its size."""
    return sqlite.copy_store(path, target)


def access_writer(data_dir: Path) -> access.AccessWriter:
    return access.AccessWriter(data_dir, open_access_store)


def open_access_store(data_dir: Path) -> Store:
    return SqliteStore(access.store_path(data_dir), access.PACKAGE)
