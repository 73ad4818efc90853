"""The access store: API keys (their hashes) and our secrets, in one small file of their own, so that `icefall data` and
`icefall metrics` need no node beside them."""

import asyncio
import fcntl
import hashlib
import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple, TypeVar

from icefall.db.engine import Reader, StoreError, Transaction
from icefall.db.sqlite import SqliteReader, SqliteStore
from icefall.db.statements import load

T = TypeVar("T")

SQL = load("icefall.access", "queries.sql")
PACKAGE = "icefall.access"
KEY_PREFIX = "ice_"  # so that a key found in a log or a repository is known for what it is
_KEY_SIZE, _SECRET_SIZE = 32, 32
_PAGE_TOKENS = "page_tokens"


def store_path(data_dir: Path) -> Path:
    return data_dir / "access.sqlite"


class Key(NamedTuple):
    name: str
    tier: str
    revoked: int | None


class ListedKey(NamedTuple):
    name: str
    tier: str
    created: int
    revoked: int | None


def new_key() -> str:
    return KEY_PREFIX + secrets.token_urlsafe(_KEY_SIZE)


def key_hash(key: str) -> bytes:
    """Plain SHA-256: a key is 32 random bytes, so there is nothing to guess that a slow hash would protect."""
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()


class AccessReader:
    """What a worker may ask. A key is looked up at every request, so a revoked one is refused at once."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    async def key(self, key: str) -> Key | None:
        rows = await self._reader.rows(SQL.key_by_hash, {"hash": key_hash(key)})
        return Key(*rows[0]) if rows else None

    async def check(self) -> None:
        """StoreError where the store cannot be read."""
        await self._reader.rows(SQL.secret, {"name": _PAGE_TOKENS})


def open_reader(data_dir: Path) -> SqliteReader:
    return SqliteReader(store_path(data_dir))


def page_token_secret(reader: SqliteReader) -> bytes:
    rows = reader.read(SQL.secret, {"name": _PAGE_TOKENS})
    if not rows:
        raise StoreError("the access store holds no secret for page tokens: remove access.sqlite, or restore it")
    return bytes(rows[0][0])


# -- writing: whoever starts first, and `icefall keys` -------------------------------------------------------------


def ensure_store(data_dir: Path) -> None:
    """The store with its secret, made if it is not there. Any number of processes may do this at once."""
    write(data_dir, lambda _: None)


def write(data_dir: Path, change: Callable[[Transaction], T]) -> T:
    """One transaction, from a process that has no event loop. Servers go on reading meanwhile."""

    def whole(tx: Transaction) -> T:
        tx.run(SQL.add_secret, {"name": _PAGE_TOKENS, "value": secrets.token_bytes(_SECRET_SIZE)})
        return change(tx)

    with _alone(data_dir):
        store = SqliteStore(store_path(data_dir), PACKAGE)
        try:
            return asyncio.run(store.write(whole))
        finally:
            store.close()


@contextmanager
def _alone(data_dir: Path) -> Iterator[None]:
    """Creating and migrating is no single transaction, so only one process at a time does it."""
    try:
        fd = os.open(data_dir / "access.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        os.close(os.open(store_path(data_dir), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))  # for our eyes only
    except OSError as error:
        raise StoreError(f"{data_dir} cannot be written: {error.strerror}; use another --data-dir") from error
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


class NameTaken(Exception):
    """Another living key has this name."""


def add_key(data_dir: Path, name: str, tier: str, now: int) -> str:
    """A new key, in the only moment in which it is known."""
    key = new_key()

    def change(tx: Transaction) -> None:
        if tx.rows(SQL.living_key, {"name": name}):
            raise NameTaken(name)
        tx.run(SQL.add_key, {"hash": key_hash(key), "name": name, "tier": tier, "created": now})

    write(data_dir, change)
    return key


def revoke_key(data_dir: Path, name: str, now: int) -> bool:
    """Whether there was such a key."""
    return bool(write(data_dir, lambda tx: tx.run(SQL.revoke_key, {"name": name, "revoked": now})))


def all_keys(data_dir: Path) -> list[ListedKey]:
    return write(data_dir, lambda tx: [ListedKey(*row) for row in tx.rows(SQL.all_keys)])
