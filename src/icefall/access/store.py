"""The access store: hashes of API keys, and our secrets. It is separate, so that `icefall data` needs no node."""

import asyncio
import fcntl
import hashlib
import os
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from typing import NamedTuple, Protocol, TypeVar

from icefall.db.engine import BlockingReader, Reader, Store, StoreError, StoreLost, Transaction
from icefall.db.statements import load

T = TypeVar("T")

SQL = load("icefall.access", "queries.sql")
WEBHOOKS = load("icefall.access", "webhooks.sql")
PACKAGE = "icefall.access"
KEY_PREFIX = "ice_"  # so that a key in a log or a repository can be recognised
_KEY_SIZE, _SECRET_SIZE = 32, 32
PAGE_TOKENS = "page_tokens"


def store_path(data_dir: Path) -> Path:
    return data_dir / "access.sqlite"


class Key(NamedTuple):
    """`is_admin`: it may change what all callers see."""

    name: str
    tier: str
    revoked: int | None
    is_admin: int = 0


class ListedKey(NamedTuple):
    name: str
    tier: str
    created: int
    revoked: int | None
    is_admin: int = 0


def new_key() -> str:
    return KEY_PREFIX + secrets.token_urlsafe(_KEY_SIZE)


def key_hash(key: str) -> bytes:
    """Return the plain SHA-256 of a key: it is 32 random bytes, so a slow hash would not make guessing harder."""
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()


class AccessReader:
    """Reads keys for workers. A key is read at every request, so a revoked one is refused at once."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    async def key(self, key: str) -> Key | None:
        rows = await self._reader.rows(SQL.key_by_hash, {"hash": key_hash(key)})
        return Key(*rows[0]) if rows else None

    async def active_keys(self) -> list[tuple[str, str]]:
        """Return the names and tiers of the keys that are not revoked."""
        rows = await self._reader.rows(SQL.all_keys)
        return [(name, tier) for name, tier, _, revoked, _ in rows if revoked is None]

    async def check(self) -> None:
        """Raise StoreError where the store cannot be read."""
        await self._reader.rows(SQL.secret, {"name": PAGE_TOKENS})


def page_token_secret(reader: BlockingReader) -> bytes:
    rows = reader.read(SQL.secret, {"name": PAGE_TOKENS})
    if not rows:
        raise StoreError("the access store holds no secret for page tokens: restore it, or remove it")
    return bytes(rows[0][0])


def stored_chain_configs(reader: BlockingReader) -> list[str]:
    """The settings of every chain that is indexed into these stores, as JSON objects, in their order."""
    return [config for _, config in reader.read(SQL.chain_configs)]


async def read_chain_configs(reader: Reader) -> list[str]:
    """Return the same as `stored_chain_configs`, in an event loop."""
    return [config for _, config in await reader.rows(SQL.chain_configs)]


def is_chain_shared(reader: BlockingReader, chain_id: str) -> bool:
    """Whether the settings of this chain are stored."""
    return any(one == chain_id for one, _ in reader.read(SQL.chain_configs))


def drop_chain_command(schema: str, chain_id: str) -> str:
    """The statement that deletes the settings of a chain, for a user to run on a server."""
    named = SQL.drop_chain_config.strip().rstrip(";").replace("chain_config", f"{schema}.chain_config")
    return named.replace(":chain_id", f"'{chain_id}'")


class NameTaken(Exception):
    """An active key has this name already."""


class AccessPlace(Protocol):
    """The place of the store. `exists` may be answered with True if only opening it can tell."""

    def exists(self) -> bool: ...

    def opened(self) -> AbstractContextManager[Store]: ...


class AccessFile:
    """A file in the data directory. `open_store` opens the store of a path."""

    def __init__(self, data_dir: Path, open_store: Callable[[Path], Store]) -> None:
        self._data_dir = data_dir
        self._open_store = open_store

    def exists(self) -> bool:
        return store_path(self._data_dir).exists()

    @contextmanager
    def opened(self) -> Iterator[Store]:
        with locked(self._data_dir), closing(self._open_store(store_path(self._data_dir))) as store:
            yield store


class AccessSchema:
    """A schema of a server, which is created and migrated safely by any number of processes."""

    def __init__(self, open_store: Callable[[], Store]) -> None:
        self._open_store = open_store

    def exists(self) -> bool:
        return True

    def opened(self) -> AbstractContextManager[Store]:
        return closing(self._open_store())


class AccessWriter:
    """Writes the store, one short transaction per call, from a process that has no event loop.

    Each call opens the store anew, so that `icefall keys` works next to running servers.
    """

    def __init__(self, place: AccessPlace) -> None:
        self._place = place

    def exists(self) -> bool:
        return self._place.exists()

    def ensure(self) -> None:
        """Create the store and its secret if they are missing. Any number of processes may do this at once."""
        self._write(lambda _: None)

    def write(self, change: Callable[[Transaction], T]) -> T:
        """Make a change of other tables of the store."""
        return self._write(change)

    def add_key(self, name: str, tier: str, now: int, *, is_admin: bool = False) -> str:
        """Return a new key; only its hash is stored."""
        key = new_key()

        def change(tx: Transaction) -> None:
            if tx.rows(SQL.active_key, {"name": name}):
                raise NameTaken(name)
            row = {"hash": key_hash(key), "name": name, "tier": tier, "created": now, "is_admin": int(is_admin)}
            tx.run(SQL.add_key, row)

        self._write(change)
        return key

    def revoke_key(self, name: str, now: int) -> bool:
        """Revoke the key of that name with its webhooks, and tell whether there was one."""

        def change(tx: Transaction) -> bool:
            tx.rows(WEBHOOKS.lock_webhooks)
            tx.run(WEBHOOKS.switch_off_webhooks_of, {"owner": name, "reason": "its API key was revoked"})
            return bool(tx.run(SQL.revoke_key, {"name": name, "revoked": now}))

        return self._write(change)

    def put_chain_configs(self, configs: Mapping[str, str]) -> None:
        """Store the settings of chains by chain ID. Chains that other programs index stay."""

        def change(tx: Transaction) -> None:
            rows = enumerate(configs.items())
            tx.run_many(
                SQL.put_chain_config,
                [{"chain_id": one, "position": position, "config": text} for position, (one, text) in rows],
            )

        self._write(change)

    def drop_chain_config(self, chain_id: str) -> None:
        """Delete the settings of a chain, so that readers no longer list it."""
        self._write(lambda tx: tx.run(SQL.drop_chain_config, {"chain_id": chain_id}))

    def all_keys(self) -> list[ListedKey]:
        return self._write(lambda tx: [ListedKey(*row) for row in tx.rows(SQL.all_keys)])

    def _write(self, change: Callable[[Transaction], T]) -> T:
        def whole(tx: Transaction) -> T:
            if not tx.rows(SQL.secret, {"name": PAGE_TOKENS}):  # the role of a reader may not even try to insert one
                tx.run(SQL.add_secret, {"name": PAGE_TOKENS, "value": secrets.token_bytes(_SECRET_SIZE)})
            return change(tx)

        with self._place.opened() as store:
            return store.write_here(whole)


@contextmanager
def locked(data_dir: Path) -> Iterator[None]:
    """Hold the lock that a process needs while it opens the store to write it. Creating and migrating are not one
    transaction, so only one process at a time may do it."""
    try:
        data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        fd = os.open(data_dir / "access.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise _unwritable(data_dir, error) from error
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        _create_private(data_dir)
        yield
    finally:
        os.close(fd)


def _create_private(data_dir: Path) -> None:
    """Create the store's file so that only its owner can read it; leave one that exists alone.

    An existing one must not even be opened: closing any descriptor of a file drops all POSIX locks of the process on
    it, those of SQLite too, and then another process deletes the -wal file that this one writes.
    """
    try:
        os.close(os.open(store_path(data_dir), os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    except FileExistsError:
        return
    except OSError as error:
        raise _unwritable(data_dir, error) from error


def _unwritable(data_dir: Path, error: OSError) -> StoreError:
    return StoreError(f"{data_dir} cannot be written: {error.strerror}; use another --data-dir")


class ReopenedStore:
    def __init__(self, open_store: Callable[[], Store]) -> None:
        self._open_store = open_store
        self._opening = asyncio.Lock()
        self._store: Store | None = None

    async def write(self, change: Callable[[Transaction], T]) -> T:
        store = await self._opened()
        try:
            return await store.write(change)
        except StoreLost:
            if self._store is store:
                self._store = None
                store.close()
            raise

    async def _opened(self) -> Store:
        """Open the store in a thread: a server that does not answer must not hold up the loop."""
        async with self._opening:
            if self._store is None:
                self._store = await asyncio.to_thread(self._open_store)
            return self._store

    def close(self) -> None:
        if self._store is not None:
            self._store.close()
            self._store = None
