"""The stores of a benchmark, in a folder or on a server, which are removed in the end."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import psycopg

from icefall.compose.stores import Stores


class OpenedStores(NamedTuple):
    """`settings`: those with which a program finds the stores, besides a config file in `folder`."""

    url: str
    folder: Path
    prefix: str
    stores: Stores

    @property
    def settings(self) -> list[str]:
        return [f"--store={self.url}", f"--store-prefix={self.prefix}"] if self.url else []

    def name(self, chain: str) -> str:
        """Return what kind of store it is, and where: it begins with SQLite, PostgreSQL or Citus."""
        if not self.url:
            return "SQLite"
        place = self.stores.chain_location(chain)[0]
        return f"PostgreSQL, {place.partition('/')[0]}" if "/" in place else f"Citus, {place}"

    def configure(self, chain: str, rpc: str = "http://127.0.0.1:1") -> Path:
        """Write a config file with one chain."""
        config = self.folder / "icefall.toml"
        config.write_text(f'[[chain]]\nid = "{chain}"\nrpc = "{rpc}"\nname = "bench"\n')
        return config


@contextmanager
def opened(url: str, chain: str) -> Iterator[OpenedStores]:
    prefix = f"bench{os.getpid()}_{time.time_ns() % 10**6}"
    with TemporaryDirectory() as folder:
        stores = Stores(Path(folder) / "data", url, prefix)
        try:
            yield OpenedStores(url, Path(folder), prefix, stores)
        finally:
            stores.close()
            if url:
                with psycopg.connect(url, autocommit=True) as session:
                    for name in ("access", f"chain_{chain}"):
                        session.execute(f"drop schema if exists {prefix}_{name} cascade")
