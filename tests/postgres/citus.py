"""A throwaway cluster of Citus: a coordinator and two workers, with schemas spread over them.

Citus is in no registry. Where it is not installed, the tests that want it are skipped and say so; where it is but this
server does not load it, they fail on CI."""

import atexit
import subprocess
from functools import cache
from pathlib import Path

import psycopg
import pytest
from tests.counterparts import missing
from tests.postgres.server import PostgresServer, ServerRefused, programs, server_folder

NODES = 3
DATABASE = "icefall"
SETTINGS = {"shared_preload_libraries": "'citus'", "wal_level": "logical", "max_prepared_transactions": "50"}


def is_installed() -> bool:
    """For the server that tests start."""
    found = programs()
    if found is None:
        missing("PostgreSQL")
    command = [str(found / "pg_config"), "--sharedir"]
    shared = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    return (Path(shared) / "extension" / "citus.control").exists()


@cache
def _cluster() -> list[PostgresServer] | str:
    """The servers, the coordinator first; or why there are none."""
    servers: list[PostgresServer] = []
    for _ in range(NODES):
        server = PostgresServer(server_folder(), SETTINGS)
        try:
            server.start()
        except ServerRefused as refused:
            return str(refused)
        atexit.register(server.remove)
        servers.append(server)
        with psycopg.connect(server.url, autocommit=True) as admin:
            admin.execute(f"create database {DATABASE}")
        server.url = server.url.removesuffix("postgres") + DATABASE
        with psycopg.connect(server.url, autocommit=True) as admin:
            admin.execute("create extension citus")
    with psycopg.connect(servers[0].url, autocommit=True) as admin:
        admin.execute(f"select citus_set_coordinator_host('127.0.0.1', {servers[0].port})")
        for worker in servers[1:]:
            admin.execute(f"select citus_add_node('127.0.0.1', {worker.port})")
        admin.execute(f"alter database {DATABASE} set citus.enable_schema_based_sharding to on")
    return servers


def citus_nodes() -> list[str]:
    """The URLs of the nodes, the coordinator first."""
    if not is_installed():
        pytest.skip("Citus is not installed for the PostgreSQL of this machine")
    found = _cluster()
    if isinstance(found, str):
        missing(f"a Citus that this PostgreSQL loads ({found})")
    return [server.url for server in found]
