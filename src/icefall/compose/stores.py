"""The choice of a store engine: this is the only module outside `db/` that names one.

Everything else receives a store, a reader or a function that opens one, typed by the protocols of `db/engine.py`. A
store is a SQLite file in the data directory, or a schema of the PostgreSQL server that `--store` names.
"""

import os
import re
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import cached_property, partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from icefall.access import store as access
from icefall.config.settings import Config
from icefall.db import sqlite
from icefall.db.changes import StoreVersion, unknown_version
from icefall.db.disk import StoreLock
from icefall.db.engine import BlockingReader, MigratedReader, StatementParams, Store
from icefall.db.migrate import load_schema
from icefall.db.replicas import Replicas
from icefall.db.sqlite import SqliteReader, SqliteStore
from icefall.errors import StartRefused
from icefall.evm.storing import store as evm
from icefall.node import store as node

if TYPE_CHECKING:
    from icefall.db.citus import CitusNodeReader
    from icefall.db.postgres_pool import ServerPool
    from icefall.evm.reading.directory import LazyChainReader
    from icefall.evm.reading.one_history import Standbys

PREFIX = "icefall"
_UNFINISHED = "_copied"
DRIVER = "psycopg[binary]>=3.2,<4"  # as the extra `postgres` of the package


class StoreName(NamedTuple):
    """One store of an installation: the node's, that of keys and secrets, or an EVM chain's."""

    role: str  # node, access or chain
    chain_id: str = ""

    @property
    def package(self) -> str:
        return {"node": node.PACKAGE, "access": access.PACKAGE, "chain": evm.PACKAGE}[self.role]

    @property
    def schema(self) -> str:
        return f"{self.role}_{self.chain_id}" if self.chain_id else self.role

    @property
    def shown(self) -> str:
        return f"chain {self.chain_id}" if self.chain_id else self.role

    def path(self, data_dir: Path) -> Path:
        if self.role == "chain":
            return evm.store_path(data_dir, self.chain_id)
        return node.store_path(data_dir) if self.role == "node" else access.store_path(data_dir)


class Stores:
    """The stores of one installation, as a process opens them. `close` closes the connections they share.

    `url`: a PostgreSQL server, empty for files in the data directory. `chain_urls`: chains that are elsewhere.
    `page_cache_mb`: what the writer of an EVM chain's file keeps of it in memory. `replica_urls`: standbys of the
    server, from which chains may be read.
    """

    def __init__(
        self,
        data_dir: Path,
        url: str = "",
        prefix: str = PREFIX,
        chain_urls: Mapping[str, str] | None = None,
        page_cache_mb: int = sqlite.PAGE_CACHE_MB,
        replica_urls: Sequence[str] = (),
        replica_lag_max_s: float = 10.0,
    ) -> None:
        self.data_dir = data_dir
        self.url = url
        self._prefix = prefix
        self._chain_urls = chain_urls or {}
        self._page_cache_mb = page_cache_mb
        self._replica_urls = replica_urls
        self._replica_lag_max_s = replica_lag_max_s
        self._pools: dict[str, ServerPool] = {}
        self._at_nodes: dict[str, CitusNodeReader] = {}  # by chain

    @property
    def has_server(self) -> bool:
        return bool(self.url or self._chain_urls)

    def close(self) -> None:
        for reader in self._at_nodes.values():
            reader.close()
        for pool in self._pools.values():
            pool.close()

    def names(self) -> list[StoreName]:
        """Those that exist."""
        if self.url:
            pool = self._pool(self.url)
            from icefall.db.postgres import schemas_of  # noqa: PLC0415 - only with the driver

            found = [schema.removeprefix(self._schema("")) for schema in schemas_of(pool, self._schema(""))]
            chains = [StoreName("chain", name[6:]) for name in found if re.fullmatch(r"chain_\d+", name)]
            return [*(StoreName(role) for role in ("access", "node") if role in found), *chains]
        paths = sorted((self.data_dir / "chains").glob("*.sqlite"))
        every = [StoreName("access"), StoreName("node"), *(StoreName("chain", path.stem) for path in paths)]
        return [name for name in every if name.path(self.data_dir).exists()]

    def sizes(self) -> list[tuple[str, int]]:
        """List the stores that exist: the file in the data directory or the schema, and how many bytes it has."""
        if self.url:
            pool = self._pool(self.url)
            from icefall.db.postgres import schema_location  # noqa: PLC0415 - only with the driver

            schemas = [self._schema(name.schema) for name in self.names()]
            return [(f"schema {schema}", schema_location(pool, schema)[1]) for schema in schemas]
        return [(str(path.relative_to(self.data_dir)), sqlite.file_size(path)) for path in store_paths(self.data_dir)]

    def open(self, name: StoreName) -> Store:
        """Open the store as its only writer."""
        match name.role:
            case "node":
                return self.node_store()
            case "chain":
                return self.chain_store(name.chain_id)
        return self.access_store()

    def open_unfinished(self, name: StoreName) -> Store:
        """A store that does not have its name yet."""
        if self.url:
            return self._schema_store(self.url, f"{name.schema}{_UNFINISHED}", name.package)
        path = name.path(self.data_dir)
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        beside = path.with_suffix(f".{_UNFINISHED}")
        return _LockedFile(beside, path.with_suffix(".lock"), name.package)

    def finish(self, name: StoreName) -> None:
        """Gives an unfinished store its name, after it was closed."""
        if self.url:
            pool = self._pool(self.url)
            from icefall.db.postgres import rename_schema  # noqa: PLC0415 - only with the driver

            old, new = (self._schema(f"{name.schema}{suffix}") for suffix in (_UNFINISHED, ""))
            rename_schema(pool, old, new)
        else:
            path = name.path(self.data_dir)
            path.with_suffix(f".{_UNFINISHED}").rename(path)

    # -- the node ----------------------------------------------------------------------------------------------

    def node_store(self) -> Store:
        """Open the node's store for the engine, which is the only writer."""
        if self.url:
            return self._schema_store(self.url, "node", node.PACKAGE)
        path, lock_path = node.store_path(self.data_dir), self.data_dir / "node.lock"
        return _LockedFile(path, lock_path, node.PACKAGE, self._changes_path())

    def node_reader(self, *, mapped: bool = True) -> BlockingReader:
        if self.url:
            return self._schema_reader(self.url, "node")
        return SqliteReader(node.store_path(self.data_dir), mapped=mapped)

    def node_version(self) -> Callable[[], int]:
        """Tells a reader whether the node's store has changed. A server is written by other machines too."""
        return unknown_version if self.url else StoreVersion(self._changes_path())

    def _changes_path(self) -> Path:
        return self.data_dir / "run" / "node-changes"

    # -- EVM chains --------------------------------------------------------------------------------------------

    def chain_url(self, chain_id: str) -> str:
        return self._chain_urls.get(chain_id) or self.url

    def chain_store(self, chain_id: str, *, exclusive: bool = True) -> Store:
        """Open an EVM chain's store for the indexer, its only writer; not `exclusive`: beside a running indexer."""
        if url := self.chain_url(chain_id):
            return self._schema_store(url, f"chain_{chain_id}", evm.PACKAGE, exclusive=exclusive)
        path = evm.store_path(self.data_dir, chain_id)
        if not exclusive:
            return SqliteStore(path, evm.PACKAGE)
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        return _LockedFile(path, path.with_suffix(".lock"), evm.PACKAGE, page_cache_mb=self._page_cache_mb)

    def has_chain_store(self, chain_id: str) -> bool:
        if url := self.chain_url(chain_id):
            pool = self._pool(url)
            from icefall.db.postgres import has_tables  # noqa: PLC0415 - only with the driver

            return has_tables(pool, self._schema(f"chain_{chain_id}"))
        return evm.store_path(self.data_dir, chain_id).exists()

    def chain_location(self, chain_id: str) -> tuple[str, int]:
        """Return the place of a chain's store, and how many bytes it takes."""
        if url := self.chain_url(chain_id):
            pool = self._pool(url)
            from icefall.db.postgres import schema_location  # noqa: PLC0415 - only with the driver

            return schema_location(pool, self._schema(f"chain_{chain_id}"))
        path = evm.store_path(self.data_dir, chain_id)
        return str(path), sqlite.file_size(path)

    def chain_reader(self, chain_id: str) -> "LazyChainReader":
        """Opened at its first query: the indexer may create the store later."""
        return self._lazy_reader(chain_id, partial(self.chain_blocking_reader, chain_id))

    def _lazy_reader(self, chain_id: str, open_reader: Callable[[], MigratedReader | None]) -> "LazyChainReader":
        from icefall.evm.reading.directory import LazyChainReader  # noqa: PLC0415 - most processes need none

        known = load_schema(evm.PACKAGE, "postgres" if self.chain_url(chain_id) else "sqlite").number
        return LazyChainReader(open_reader, f"chain {chain_id}", known)

    @cached_property
    def replicas(self) -> Replicas | None:
        """The standbys of the server, measured; None where there are none."""
        if not self._replica_urls:
            return None
        pools = [self._pool(url) for url in (self.url, *self._replica_urls)]
        from icefall.db.postgres import server_position  # noqa: PLC0415 - only with the driver

        ask_primary, *asks = [partial(server_position, pool) for pool in pools]
        named = {pool.shown_url: ask for pool, ask in zip(pools[1:], asks, strict=True)}
        return Replicas(ask_primary, named, self._replica_lag_max_s)

    def chain_standbys(self, chain_id: str) -> "Standbys | None":
        """Readers of a chain at the standbys, which a chain with a server of its own has not; without standbys, at the
        node of Citus that holds it."""
        url = self.chain_url(chain_id)
        if not url:
            return None
        if self.replicas is None or url != self.url:
            return self._chain_node(chain_id, self._pool(url))
        from icefall.evm.reading.one_history import Standbys  # noqa: PLC0415 - most processes need none

        readers = [
            self._lazy_reader(chain_id, partial(self._schema_reader, url, f"chain_{chain_id}"))
            for url in self._replica_urls
        ]
        return Standbys(readers, self.replicas)

    def _chain_node(self, chain_id: str, pool: "ServerPool") -> "Standbys":
        from icefall.db.citus import CitusNodeChoice, CitusNodeReader  # noqa: PLC0415 - only with the driver
        from icefall.evm.reading.one_history import Standbys  # noqa: PLC0415 - most processes need none

        if (before := self._at_nodes.get(chain_id)) is not None:  # of a chain with other settings
            before.close()
        reader = self._at_nodes[chain_id] = CitusNodeReader(pool, self._schema(f"chain_{chain_id}"), self._pool)
        return Standbys([self._lazy_reader(chain_id, lambda: reader)], CitusNodeChoice(reader), can_lose=True)

    def chain_blocking_reader(self, chain_id: str, *, mapped: bool = True) -> MigratedReader | None:
        """None if the chain has no store. `mapped`: a file is read as mapped memory."""
        if url := self.chain_url(chain_id):
            return self._schema_reader(url, f"chain_{chain_id}")
        path = evm.store_path(self.data_dir, chain_id)
        return SqliteReader(path, mapped=mapped) if path.exists() else None

    # -- keys and secrets --------------------------------------------------------------------------------------

    def access_reader(self) -> BlockingReader:
        if self.url:
            return self._schema_reader(self.url, "access")
        return SqliteReader(access.store_path(self.data_dir))

    def access_store(self) -> Store:
        """Open the access store for a process that writes it for long. Others, as `icefall keys`, write it too."""
        if self.url:
            return self._schema_store(self.url, "access", access.PACKAGE, exclusive=False)
        with access.locked(self.data_dir):  # creating and migrating are not one transaction
            return SqliteStore(access.store_path(self.data_dir), access.PACKAGE)

    def access_writer(self) -> access.AccessWriter:
        if self.url:
            return access.AccessWriter(access.AccessSchema(self.access_store))
        return access.AccessWriter(access.AccessFile(self.data_dir, partial(SqliteStore, package=access.PACKAGE)))

    # -- PostgreSQL --------------------------------------------------------------------------------------------

    def _schema(self, what: str) -> str:
        return f"{self._prefix}_{what}"

    def _schema_store(self, url: str, what: str, package: str, *, exclusive: bool = True) -> Store:
        pool = self._pool(url)
        from icefall.db.postgres import PostgresStore  # noqa: PLC0415 - only with the driver

        return PostgresStore(pool, self._schema(what), package, exclusive=exclusive)

    def _schema_reader(self, url: str, what: str) -> MigratedReader:
        pool = self._pool(url)
        from icefall.db.postgres import PostgresReader  # noqa: PLC0415 - only with the driver

        return PostgresReader(pool, self._schema(what))

    def _pool(self, url: str) -> "ServerPool":
        """The connections to a server. It is called before anything is imported that needs the driver."""
        if url not in self._pools:
            try:
                from icefall.db.postgres_pool import ServerPool  # noqa: PLC0415 - only with the driver
            except ImportError as error:
                raise StartRefused(f"a PostgreSQL store needs its driver: {_driver_command()}") from error
            self._pools[url] = ServerPool(url)
        return self._pools[url]


def _driver_command() -> str:
    """The command that installs the driver beside this program, whether that came from a checkout, a wheel or pipx."""
    if (Path(sys.prefix) / "pipx_metadata.json").exists():
        return f"pipx inject icefall '{DRIVER}'"
    python = shlex.quote(sys.executable)
    if find_spec("pip") is None:
        return f"uv pip install --python {python} '{DRIVER}'"
    return f"{python} -m pip install '{DRIVER}'"


def store_paths(data_dir: Path) -> list[Path]:
    """The files of all stores of a data directory, those that exist. The access store comes first: it says how far
    delivery has read the outboxes in the others, so a copy of it must be no newer than theirs."""
    named = (access.store_path(data_dir), node.store_path(data_dir))
    return [path for path in (*named, *sorted((data_dir / "chains").glob("*.sqlite"))) if path.exists()]


def chain_files(data_dir: Path, chain_id: str) -> list[Path]:
    """The files of a chain's store in the data directory, the store itself first; not all may exist."""
    path = evm.store_path(data_dir, chain_id)
    return [Path(f"{path}{ending}") for ending in ("", "-wal", "-shm")]


def copy_store(path: Path, target: Path, change: str = "", params: StatementParams = ()) -> int:
    """Make a consistent copy of a store that may be in use, and return its size. `change`: run in the copy."""
    return sqlite.copy_store(path, target, change, params)


class _LockedFile(SqliteStore):
    """A file whose lock is held while it is open."""

    is_only_writer = True

    def __init__(
        self,
        path: Path,
        lock_path: Path,
        package: str,
        changes: Path | None = None,
        page_cache_mb: int = sqlite.PAGE_CACHE_MB,
    ) -> None:
        with ExitStack() as on_failure:
            lock = StoreLock(lock_path)
            on_failure.callback(lock.release)
            super().__init__(path, package, changes=changes, page_cache_mb=page_cache_mb)
            on_failure.pop_all()
        self._held = lock

    def close(self) -> None:
        super().close()
        self._held.release()


def stores_of(config: Config) -> Stores:
    if config.replica and not config.store:
        raise StartRefused("--replica names a standby of the server of --store: name that too")
    elsewhere = {chain.id: chain.store for chain in config.chain if chain.store}
    return Stores(
        Path(config.data_dir),
        config.store,
        config.store_prefix,
        elsewhere,
        config.page_cache,
        config.replica,
        config.replica_lag_max / 1e9,
    )


def create_data_dir(data_dir: Path, subdirectory: str = "") -> None:
    """Create the data directory, with a subdirectory if one is given. StartRefused where it cannot be created or
    written."""
    directory = data_dir / subdirectory
    try:
        for path in (data_dir, directory):  # a parent gets the usual mode, not this one
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise StartRefused(f"the data directory {data_dir} cannot be created: {error.strerror}") from error
    if not all(os.access(path, os.W_OK | os.X_OK) for path in (data_dir, directory)):
        raise StartRefused(f"the data directory {data_dir} cannot be written: Permission denied")
