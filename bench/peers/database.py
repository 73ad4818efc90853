"""A throwaway PostgreSQL server for all peers, with a database for each."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
from tests.postgres.server import PostgresServer, programs

from bench.load import cpu_seconds, descendants
from bench.peers.processes import Missing

# As an installation would have it, unlike tests: a commit reaches the disk.
_SETTINGS = {"fsync": "on", "shared_buffers": "'256MB'"}


class Database:
    """A database of its own in the shared server."""

    def __init__(self, server: "DatabaseServer", name: str) -> None:
        self.url = server.url_of(name)
        self._server = server
        server.execute(f"drop database if exists {name} with (force)")
        server.execute(f"create database {name}")
        server.execute("checkpoint")
        self._bytes_before = self._bytes()
        self._cpu_before = server.cpu_s()

    def _bytes(self) -> int:
        return int(self.number("select pg_database_size(current_database())"))

    def number(self, query: str) -> int:
        with psycopg.connect(self.url, autocommit=True) as session:
            row = session.execute(query.encode()).fetchone()
        assert row is not None
        return int(row[0])

    def run(self, script: str) -> None:
        with psycopg.connect(self.url, autocommit=True) as session:
            session.execute(script.encode())

    def cpu_s(self) -> float:
        """What the server spent since this database was made, which only one peer used meanwhile."""
        return self._server.cpu_s() - self._cpu_before

    def bytes_added(self) -> int:
        return self._bytes() - self._bytes_before


class DatabaseServer:
    def __init__(self, folder: Path) -> None:
        self._server = PostgresServer(folder, _SETTINGS)
        self._server.start()
        self.close = self._server.remove
        self._pid = int((folder / "data" / "postmaster.pid").read_text().split()[0])

    def url_of(self, name: str) -> str:
        return self._server.url.rpartition("/")[0] + "/" + name

    def execute(self, statement: str) -> None:
        with psycopg.connect(self._server.url, autocommit=True) as session:
            session.execute(statement.encode())

    def cpu_s(self) -> float:
        """Of all its processes, those that have ended included."""
        fields = Path(f"/proc/{self._pid}/stat").read_text().rpartition(")")[2].split()
        ended = int(fields[13]) + int(fields[14])
        return cpu_seconds(descendants(self._pid)) + ended / os.sysconf("SC_CLK_TCK")


@contextmanager
def database_server() -> Iterator[DatabaseServer]:
    if programs() is None:
        raise Missing("PostgreSQL is not on this machine")
    folder = Path(tempfile.mkdtemp(prefix="icefall-peers-"))
    try:
        server = DatabaseServer(folder)
        try:
            yield server
        finally:
            server.close()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
