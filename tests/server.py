"""The real program, started for a test: a data directory of its own, free ports, and an end that must be clean."""

import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from tests.forked import ForkedProgram
from tests.postgres.server import server_url
from tests.store.opened import EVERYWHERE, schema_of
from tests.waiting import LIMIT_S

from icefall.config.settings import BY_NAME

JSON_TYPE = "application/json"


class Reply(NamedTuple):
    """An answer as it came; `status` 0 when the connection ended without one."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes

    def header(self, name: str) -> str | None:
        return next((value for key, value in self.headers if key.lower() == name), None)

    def all(self, name: str) -> list[str]:
        return [value for key, value in self.headers if key.lower() == name]

    def json(self) -> Any:
        return json.loads(self.body)


class Wire:
    """One connection in raw bytes: a client library would normalise what is sent."""

    def __init__(self, url: str, timeout_s: float = LIMIT_S) -> None:
        parts = urlsplit(url)
        assert parts.hostname
        assert parts.port
        self.address = (parts.hostname, parts.port)
        self._timeout_s = timeout_s
        self._socket: socket.socket | None = None

    def __enter__(self) -> "Wire":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def send(
        self,
        method: str,
        target: str,
        headers: Mapping[str, str] | None = None,
        body: bytes = b"",
        *,
        version: str = "HTTP/1.1",
    ) -> Reply:
        """Headers go out exactly as given; nothing is added."""
        lines = [f"{method} {target} {version}", *(f"{name}: {value}" for name, value in (headers or {}).items())]
        head = "\r\n".join(lines).encode("utf-8", "surrogateescape")
        return self.exchange(head + b"\r\n\r\n" + body, method)

    def exchange(self, raw: bytes, method: str) -> Reply:
        for attempt in (1, 2):  # a connection kept open may have been closed since; then once more on a new one
            fresh = self._socket is None
            if self._socket is None:
                self._socket = socket.create_connection(self.address, timeout=self._timeout_s)
            reply = self._exchange(self._socket, raw, method)
            if reply.status or fresh or attempt == 2:
                break
        return reply

    def _exchange(self, connection: socket.socket, raw: bytes, method: str) -> Reply:
        with suppress(OSError):  # refused before all was sent; the answer may still be there
            connection.sendall(raw)
        try:
            response = HTTPResponse(connection, method=method)
            try:
                response.begin()
                reply = Reply(response.status, response.getheaders(), response.read())
                keep = not response.will_close and response.status != 101
            finally:
                response.close()
        except (OSError, HTTPException):
            reply, keep = Reply(0, [], b""), False
        if not keep:
            self.close()
        return reply


class Server:
    """A running `icefall <verb>`."""

    def __init__(self, verb: str, data_dir: Path, process: ForkedProgram, terminal: Path) -> None:
        self.verb = verb
        self.data_dir = data_dir
        self.process = process
        self._terminal = terminal
        self.process_info: dict[str, Any] = {}

    def url(self, listener: str = "node") -> str:
        return str(self.process_info[f"{listener}Uri"])

    def wire(self, listener: str = "node", timeout_s: float = LIMIT_S) -> Wire:
        return Wire(self.url(listener), timeout_s)

    def ask(
        self,
        method: str,
        path: str,
        body: bytes = b"",
        headers: Mapping[str, str] | None = None,
        listener: str = "node",
    ) -> Reply:
        """One request on a connection of its own."""
        with self.wire(listener) as wire:
            given = {"Host": f"{wire.address[0]}:{wire.address[1]}", **(headers or {})}
            if body:
                given.setdefault("Content-Type", JSON_TYPE)
                given.setdefault("Content-Length", str(len(body)))
            return wire.send(method, path, given, body)

    def call(self, path: str, method: str, params: Any = None) -> Any:
        """A JSON-RPC call; the whole answer."""
        body = {"jsonrpc": "2.0", "id": 1, "method": method} | ({} if params is None else {"params": params})
        return self.ask("POST", path, json.dumps(body).encode()).json()

    def output(self) -> str:
        """What the program has written to the terminal."""
        return self._terminal.read_text(errors="replace")

    def await_start(self) -> None:
        process_file = self.data_dir / ("process.json" if self.verb in ("up", "node") else f"process-{self.verb}.json")
        deadline = time.monotonic() + LIMIT_S
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                raise AssertionError(f"the program ended with {self.process.returncode}: {self.output()}")
            if self._started(process_file):
                return
            time.sleep(0.02)
        raise AssertionError(f"the program did not start: {self.output()}")

    def _started(self, process_file: Path) -> bool:
        try:
            self.process_info = json.loads(process_file.read_bytes())
        except (FileNotFoundError, json.JSONDecodeError):
            return False
        return bool(self.process_info["pid"] == self.process.pid)  # one that was killed leaves its file behind

    def await_ready(self) -> None:
        """Until readiness answers 200 and each check has run: those of health may end later than readiness."""
        deadline = time.monotonic() + LIMIT_S
        while self.ask("GET", "/ext/health/readiness").status != 200 or not self._has_run_checks():
            assert time.monotonic() < deadline, self.output()
            time.sleep(0.05)

    def _has_run_checks(self) -> bool:
        reply = self.ask("POST", "/ext/health", b'{"jsonrpc":"2.0","id":1,"method":"health.health"}')
        return reply.status != 0 and b"not yet run" not in reply.body

    def stop(self) -> int:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(LIMIT_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise AssertionError(f"the program did not stop: {self.output()}") from None


def store_settings(data_dir: Path) -> list[str]:
    return [f"--store={server_url()}", f"--store-prefix={schema_of(data_dir)}"]


@contextmanager
def serving(
    verb: str,
    directory: Path,
    *settings: str,
    started: bool = True,
    ready: bool = True,
    code: int = 0,
    environment: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    store: str = "",
) -> Iterator[Server]:
    """The program, until the block ends; then SIGTERM, and `code` is what it must end with."""
    server = launch(verb, directory, *settings, environment=environment, cwd=cwd, store=store)
    try:
        if started:
            server.await_start()
        if ready and "nodeUri" in server.process_info:
            server.await_ready()
        yield server
    except BaseException:
        server.stop()
        raise
    ended = server.stop()
    assert ended == code, f"ended with {ended}: {server.output()}"


def launch(
    verb: str,
    directory: Path,
    *settings: str,
    environment: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    store: str = "",
) -> Server:
    """Starts the program, without waiting for anything; the caller stops it.

    `store`: "postgres" for schemas of the throwaway server, of a prefix that belongs to the directory.

    Without the demo unless `--demo` is given: indexing it would take seconds from every test.
    """
    directory.mkdir(parents=True, exist_ok=True)
    data_dir = directory / "data"
    ports = ("http-port", "data-port", "metrics-port")
    used = [port for port in ports if verb in BY_NAME[port].verbs]
    given = [f"--{port}=0" for port in used if not any(one.startswith(f"--{port}=") for one in settings)]
    if verb == "up" and "--demo" not in settings:
        given.append("--no-demo")
    if store == "postgres" or EVERYWHERE:
        given += store_settings(data_dir)
    kept = {name: value for name, value in os.environ.items() if not name.startswith("ICEFALL_")}
    terminal = directory / "terminal.txt"
    arguments = (verb, f"--data-dir={data_dir}", *given, *settings)
    process = ForkedProgram(*arguments, output=terminal, environment={**kept, **(environment or {})}, cwd=cwd)
    return Server(verb, data_dir, process, terminal)
