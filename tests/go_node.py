"""A running AvalancheGo, which the caller names: tests and benchmarks beside a real node."""

import json
import os
import subprocess
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.server import JSON_TYPE

PROGRAM = "ICEFALL_TEST_AVALANCHEGO"
LOCAL = ("--network-id=local", "--sybil-protection-enabled=false")
_START_S, _POLL_S = 120.0, 0.1


def avalanchego() -> str:
    """The program that tests run beside ours; without it the calling test is skipped."""
    named = os.environ.get(PROGRAM, "")
    if not named:
        pytest.skip(f"{PROGRAM} does not name an AvalancheGo")
    return named


class GoNode:
    """A running AvalancheGo."""

    def __init__(self, process: subprocess.Popen[bytes], data_dir: Path) -> None:
        self.process = process
        self._context = data_dir / "process.json"

    def url(self) -> str:
        return str(json.loads(self._context.read_bytes())["uri"])

    def call(self, path: str, method: str, params: Any = None) -> Any:
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params or {}}).encode()
        request = urllib.request.Request(self.url() + path, body, {"content-type": JSON_TYPE})
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)

    def is_ready(self) -> bool:
        try:
            return bool(self.call("/ext/info", "info.isBootstrapped", {"chain": "X"})["result"]["isBootstrapped"])
        except (OSError, KeyError, json.JSONDecodeError):
            return False


@contextmanager
def go_node(program: str, folder: Path, *flags: str, network: Sequence[str] = LOCAL) -> Iterator[GoNode]:
    """Run the program as a network of one node, which continues where it was if the folder is one of before."""
    folder.mkdir(exist_ok=True)
    (folder / "process.json").unlink(missing_ok=True)
    with (folder / "terminal.txt").open("wb") as terminal:
        process = subprocess.Popen(
            [
                program,
                *network,
                "--index-enabled=true",
                "--fd-limit=15000",
                f"--data-dir={folder}",
                "--http-port=0",
                "--staking-port=0",
                *flags,
            ],
            stdout=terminal,
            stderr=terminal,
        )
    node = GoNode(process, folder)
    try:
        _await(node.is_ready, process, folder / "terminal.txt")
        yield node
    finally:
        process.terminate()
        process.wait()


def _await(done: Any, process: subprocess.Popen[bytes], output: Path) -> None:
    deadline = time.monotonic() + _START_S
    while not done():
        assert process.poll() is None, output.read_text()
        assert time.monotonic() < deadline, output.read_text()
        time.sleep(_POLL_S)
