"""A throwaway PostgreSQL server for the tests of this process: found in PATH or where Debian puts it."""

import atexit
import itertools
import os
import re
import shutil
import signal
import subprocess
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path

import psycopg
from tests.counterparts import missing
from tests.made_once import made_once
from tests.ports import hold_port, port_of
from tests.tidy.source import ROOT
from tests.waiting import until

DEBIAN = Path("/usr/lib/postgresql")
SETTINGS = {
    "listen_addresses": "'127.0.0.1'",
    "unix_socket_directories": "''",
    "shared_buffers": "'64MB'",
    "max_connections": "200",
    "fsync": "off",  # an immediate stop of the server, not of the machine, is what tests try
    "max_wal_size": "'1GB'",
}
URL = "ICEFALL_TEST_POSTGRES"
_prefixes = itertools.count()


def programs() -> Path | None:
    """The folder of the server's programs."""
    found = shutil.which("postgres")
    if found is not None:
        return Path(found).resolve().parent
    versions = [path.parent for path in DEBIAN.glob("*/bin/postgres")]
    return max(versions, key=lambda path: int(path.parent.name), default=None)


def as_server_user(command: list[str]) -> list[str]:
    """The server refuses to run as root."""
    return ["runuser", "-u", "postgres", "--", *command] if os.geteuid() == 0 else command


def server_folder() -> Path:
    """On a disk, for which it does not wait. Other temporary files may be in memory (tests/conftest.py)."""
    return Path(tempfile.mkdtemp(prefix="icefall-postgres-", dir="/var/tmp"))


def _copy(folder: Path, beside: Path) -> None:
    """With owners and modes, about which the server is strict."""
    subprocess.run(["cp", "-a", str(folder), str(beside)], check=True, timeout=120)


def _is_alive(pid: int) -> bool:
    """Tell whether a process runs; one that has ended and was not waited for does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


class ServerRefused(Exception):
    """The server did not start; its last words."""


class PostgresServer:
    def __init__(self, folder: Path, settings: dict[str, str] | None = None) -> None:
        found = programs()
        if found is None:
            missing("PostgreSQL")
        self._programs = found
        self._folder = folder
        self._held = hold_port()  # also while it is stopped
        self.port = port_of(self._held)
        self.url = f"postgresql://postgres@127.0.0.1:{self.port}/postgres"
        if os.geteuid() == 0:
            shutil.chown(folder, "postgres")
        self._make_data(folder / "data")
        text = "".join(f"{name} = {value}\n" for name, value in {**SETTINGS, **(settings or {})}.items())
        with (folder / "data" / "postgresql.conf").open("a") as file:
            file.write(f"port = {self.port}\n{text}")

    def _make_data(self, path: Path) -> None:
        _copy(made_once("initdb", self._initdb), path)  # initdb takes longer than a copy

    def _initdb(self, path: Path) -> None:
        data = self._folder / "first"
        self._run("initdb", "-D", str(data), "-A", "trust", "-U", "postgres", "--no-sync", "-E", "UTF8")
        _copy(data, path)

    def _run(self, program: str, *arguments: str) -> None:
        command = as_server_user([str(self._programs / program), *arguments])
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120, cwd="/")
        assert done.returncode == 0, done.stderr + done.stdout

    def start(self) -> None:
        data, log = self._folder / "data", self._folder / "log"
        # Its output would keep our pipe open for as long as it runs.
        command = as_server_user([str(self._programs / "pg_ctl"), "-D", str(data), "-l", str(log), "-w", "start"])
        done = subprocess.run(
            command, check=False, timeout=120, cwd="/", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        if done.returncode:
            self._held.close()
            raise ServerRefused(log.read_text(errors="replace")[-300:] if log.exists() else "no log")

    def stop(self, how: str = "fast") -> None:
        self._run("pg_ctl", "-D", str(self._folder / "data"), "-m", how, "-w", "stop")

    def kill(self) -> None:
        """End the server as a crash of its machine would: by SIGKILL, and before anything is written any more."""
        lock = self._folder / "data" / "postmaster.pid"
        pid = int(lock.read_text().split()[0])
        sessions = [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
        for one in (pid, *sessions):
            with suppress(ProcessLookupError):
                os.kill(one, signal.SIGKILL)
        until(lambda: not any(map(_is_alive, (pid, *sessions))), "the processes of the server are gone")
        lock.unlink()  # its process may not have been waited for, and then looks alive to the next server

    def promote(self) -> None:
        """Make a standby the primary."""
        self._run("pg_ctl", "-D", str(self._folder / "data"), "-w", "promote")

    def remove(self) -> None:
        with suppress(AssertionError):  # it was killed
            self.stop("immediate")
        self._held.close()
        shutil.rmtree(self._folder, ignore_errors=True)


class StandbyServer(PostgresServer):
    """A streaming standby of a running server, made by pg_basebackup."""

    def __init__(self, folder: Path, primary: PostgresServer) -> None:
        self._primary = primary
        super().__init__(folder)

    def _make_data(self, path: Path) -> None:
        at = ["-h", "127.0.0.1", "-p", str(self._primary.port), "-U", "postgres"]
        self._run("pg_basebackup", *at, "-D", str(path), "-R", "-X", "stream", "--checkpoint=fast", "--no-sync")


@cache
def shared_server() -> PostgresServer:
    """One for all tests of this process, which use prefixes of their own; stopped when it ends."""
    server = PostgresServer(server_folder())
    server.start()
    atexit.register(server.remove)
    os.environ[URL] = server.url
    return server


def server_url() -> str:
    """Of the server of this process, or of the test that started it."""
    return os.environ.get(URL) or shared_server().url


def new_prefix() -> str:
    return f"t{os.getpid()}_{next(_prefixes)}"


def reader_role(prefix: str, chain_id: str) -> str:
    """Creates the role that docs/scaling.md describes, with its words; the URL of the server for it."""
    role = f"reader_{prefix}"
    (grants,) = re.findall(r"```sql\n(grant .+?)```", (ROOT / "docs" / "scaling.md").read_text(), re.DOTALL)
    text = re.sub(r"icefall_chain_\d+", f"icefall_chain_{chain_id}", grants).replace("icefall_", f"{prefix}_")
    with psycopg.connect(server_url(), autocommit=True) as admin:
        admin.execute(f"create role {role} login")
        admin.execute(re.sub(r"to reader\b", f"to {role}", text))
    return server_url().replace("postgres@", f"{role}@")
