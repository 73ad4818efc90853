"""What a new user does in the first hour: names as addresses, Ctrl-C at any moment, a quiet start and a quiet stop."""

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from tests.demo.prepared import demo_serving
from tests.e2e.program import family, outcome
from tests.server import serving
from tests.upstream.evm_replay import EvmReplay
from tests.upstream.threaded import in_thread
from tests.waiting import LIMIT_S, until


def test_a_name_to_listen_on(tmp_path: Path) -> None:
    with serving("up", tmp_path, "--http-host=localhost") as server:
        assert server.url("data").startswith("http://127.0.0.1:")
        for listener, path in (("node", "/ext/health/liveness"), ("data", "/v1/chains"), ("metrics", "/openapi.json")):
            assert server.ask("GET", path, listener=listener).status == 200


def test_a_name_that_does_not_exist(tmp_path: Path) -> None:
    code, said = outcome("up", tmp_path, "--http-host=no-such-host.invalid")
    assert code == 1
    assert said.startswith("icefall: --http-host=no-such-host.invalid is no address and cannot be resolved: ")


def start(verb: str, data_dir: Path, *settings: str, terminal: Path) -> "subprocess.Popen[bytes]":
    """In a process group of its own, as a shell starts it: Ctrl-C reaches every process in it."""
    ports = [f"--{port}=0" for port in ("http-port", "data-port", "metrics-port")] if verb == "up" else []
    with terminal.open("wb") as out:
        return subprocess.Popen(
            [sys.executable, "-m", "icefall", verb, f"--data-dir={data_dir}", *ports, *settings],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            process_group=0,
            env={name: value for name, value in os.environ.items() if not name.startswith("ICEFALL_")},
        )


INTERRUPTED_IMPORT = """
import os, signal, sys

class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            os.kill(os.getpid(), signal.SIGINT)

import icefall.__main__
sys.meta_path.insert(0, Interrupt())
sys.argv = ["icefall", "up", "--data-dir={folder}", "--http-port=0", "--data-port=0", "--metrics-port=0"]
sys.exit(icefall.__main__.main())
"""


@pytest.mark.parametrize("module", ["icefall.cli", "icefall.config.settings", "icefall.processes.start"])
def test_ctrl_c_while_modules_load(tmp_path: Path, module: str) -> None:
    command = [sys.executable, "-c", INTERRUPTED_IMPORT.format(module=module, folder=tmp_path)]
    done = subprocess.run(command, capture_output=True, timeout=LIMIT_S, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, b"", b"")


@pytest.mark.parametrize("processes", [2, 4, 5])
def test_ctrl_c_while_processes_start(tmp_path: Path, processes: int) -> None:
    process = start("up", tmp_path / "data", "--no-demo", terminal=tmp_path / "terminal.txt")
    until(lambda: len(family(process.pid)) >= processes, "processes to start")
    os.killpg(process.pid, signal.SIGINT)
    assert process.wait(LIMIT_S) == 0
    assert "Traceback" not in (tmp_path / "terminal.txt").read_text()


def size_of(stores: Path) -> int:
    """In bytes."""
    size = 0
    for path in stores.rglob("*.sqlite*"):
        with suppress(FileNotFoundError):  # a journal that was there for a moment
            size += path.stat().st_size
    return size


def test_ctrl_c_while_indexing(tmp_path: Path) -> None:
    with in_thread(EvmReplay("anvil-1")) as replay:
        (tmp_path / "icefall.toml").write_text(f'[[chain]]\nid = "{replay.chain_id}"\nrpc = ["{replay.url}"]\n')
        terminal = tmp_path / "terminal.txt"
        config_file = f"--config-file={tmp_path / 'icefall.toml'}"
        process = start("index", tmp_path / "data", config_file, terminal=terminal)
        until(lambda: size_of(tmp_path / "data" / "chains") > 1 << 20, "blocks to be stored")
        os.killpg(process.pid, signal.SIGINT)
        assert process.wait(LIMIT_S) == 0
    assert "Traceback" not in terminal.read_text()


def test_a_start_and_a_stop_without_warnings(tmp_path: Path) -> None:
    """With a request that opens a connection to an upstream in between. The first start of the demo is in
    tests/demo/test_demo_up.py."""
    with demo_serving(tmp_path) as server:
        unknown = "0x" + "77" * 20
        path = f"/v1/chains/43112/addresses/{unknown}/balances:getNative"
        assert server.ask("GET", path, listener="data").status == 200
    said = server.output()
    assert "WARN" not in said
    assert "ERROR" not in said
    assert "Unclosed" not in said


def test_a_private_network_with_the_name_of_a_public_one(tmp_path: Path) -> None:
    with serving("node", tmp_path, "--network-id=fuji") as server:
        until(lambda: "is up: network fuji" in server.output(), "the start text")
        said = server.output()
    assert "This is a private network with the genesis of fuji" in said
    assert "  icefall node --network-id=fuji --upstream=http://host:9650" in said


def test_an_rpc_url_whose_path_is_wrong(tmp_path: Path) -> None:
    """For example the port of Icefall itself, which serves no EVM chain."""
    with serving("node", tmp_path) as server:
        config = tmp_path / "icefall.toml"
        config.write_text(f'[[chain]]\nid = "777"\nrpc = ["{server.url()}/ext/bc/C/rpc"]\n')
        terminal = tmp_path / "index.txt"
        process = start("index", tmp_path / "other", f"--config-file={config}", terminal=terminal)
        until(lambda: "nothing is served at the path of its URL" in terminal.read_text(), "the reason in the log")
        process.terminate()
        assert process.wait(LIMIT_S) == 0
    assert "answered 404" in terminal.read_text()
