"""Starts that must be refused: exit code 1, one plain sentence, nothing changed."""

import asyncio
import socket
from pathlib import Path

import pytest
from tests.e2e.program import Outcome, family, outcome
from tests.server import serving

from icefall.db.sqlite import SqliteStore
from icefall.node.store import PACKAGE, StartRequest, admit, store_path


def made_store(data_dir: Path) -> SqliteStore:
    return SqliteStore(store_path(data_dir), PACKAGE)


def assert_refused(ended: Outcome, *parts: str) -> None:
    assert ended.code == 1, ended.said
    assert "Traceback" not in ended.said
    for part in parts:
        assert part in ended.said
    (sentence,) = [line for line in ended.said.splitlines() if line.startswith("icefall: ")]
    assert all(part in sentence for part in parts)


def test_a_data_directory_in_use(tmp_path: Path) -> None:
    with serving("node", tmp_path) as server:
        before_start = (server.data_dir / "process.json").read_bytes()
        before = family(server.process.pid)
        ended = outcome("node", server.data_dir)
        assert_refused(ended, f"{server.data_dir} is in use by process {server.process.pid}", "--data-dir")
        assert (server.data_dir / "process.json").read_bytes() == before_start
        assert family(server.process.pid) == before
        assert server.ask("GET", "/ext/health").status == 200


@pytest.mark.parametrize("shared", [False, True], ids=["plain", "SO_REUSEPORT"])
def test_a_port_in_use(tmp_path: Path, shared: bool) -> None:
    with socket.socket() as other:
        if shared:
            other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        for name, what in (("http", "node"), ("data", "data"), ("metrics", "metrics")):
            ended = outcome("up", tmp_path / "data", f"--{name}-port={port}")
            assert_refused(
                ended,
                f"cannot listen on 127.0.0.1:{port} for the {what} interface: Address already in use",
                f"use another --{name}-port",
            )
        assert not (tmp_path / "data").exists()


def test_another_network(tmp_path: Path) -> None:
    store = made_store(tmp_path)
    asyncio.run(store.write(lambda tx: admit(tx, StartRequest(12345, False, False, False), 1)))
    store.close()
    before = store_path(tmp_path).read_bytes()
    assert_refused(outcome("node", tmp_path, "--network-id=fuji"), "belongs to network 12345, not 5", "-id=12345")
    assert store_path(tmp_path).read_bytes() == before
    assert not (tmp_path / "staking").exists()


@pytest.mark.parametrize(
    ("number", "parts"),
    [
        (999, ("written by a newer Icefall (schema 999", "upgrade Icefall")),
        (4, ("made by a development version: index again", "another --data-dir")),
    ],
)
def test_a_store_of_another_release(tmp_path: Path, number: int, parts: tuple[str, ...]) -> None:
    made_store(tmp_path).close()
    store = store_path(tmp_path)
    written = bytearray(store.read_bytes())
    written[60:64] = number.to_bytes(4, "big")  # user_version
    store.write_bytes(written)
    assert_refused(outcome("node", tmp_path), *parts)
    assert store.read_bytes() == written


def test_a_file_that_is_no_store(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / "node.sqlite").write_bytes(b"holiday notes" * 1000)
    assert_refused(outcome("node", data), "node.sqlite cannot be", "file is not a database")
    assert (data / "node.sqlite").read_bytes() == b"holiday notes" * 1000


def test_a_file_where_the_data_directory_should_be(tmp_path: Path) -> None:
    (tmp_path / "data").touch()
    for verb in ("node", "data"):
        assert_refused(outcome(verb, tmp_path / "data"), f"the data directory {tmp_path / 'data'} cannot be created")


@pytest.mark.parametrize("verb", ["node", "data"])
@pytest.mark.parametrize("fresh", [True, False], ids=["empty", "used"])
def test_a_data_directory_that_cannot_be_written(tmp_path: Path, verb: str, fresh: bool) -> None:
    data = tmp_path / "data"
    data.mkdir()
    made = [data] if fresh else [data / "run", data]
    for folder in made:
        folder.mkdir(exist_ok=True)
        folder.chmod(0o555)
    ended = outcome(verb, data, bound_by_modes=True)
    for folder in made:
        folder.chmod(0o755)
    assert_refused(ended, f"{data}", "Permission denied")
    assert [path.name for path in data.iterdir()] == ([] if fresh else ["run"])


@pytest.mark.parametrize(
    ("settings", "parts"),
    [
        (["--genesis-file=/nowhere.json"], ["--genesis-file /nowhere.json: No such file or directory"]),
        (["--network-id=mainnet"], ["mainnet's genesis", "--genesis-file"]),
        (["--http-host=203.0.113.7"], ["cannot listen on 203.0.113.7:0", "Cannot assign requested address"]),
        (["--nope"], ["unknown setting --nope"]),
    ],
    ids=lambda value: value[0][:20],
)
def test_settings_that_cannot_be_met(tmp_path: Path, settings: list[str], parts: list[str]) -> None:
    assert_refused(outcome("node", tmp_path / "data", *settings), *parts)


@pytest.mark.parametrize("content", [b"{", b"{}", b'{"networkID": 12345}'])
def test_an_invalid_genesis(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "genesis.json").write_bytes(content)
    ended = outcome("node", tmp_path / "data", f"--genesis-file={tmp_path / 'genesis.json'}")
    assert_refused(ended, f"--genesis-file {tmp_path / 'genesis.json'}")
