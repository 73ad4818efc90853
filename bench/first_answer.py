"""Seconds from `make up` on an empty data directory to the first answer with content, for each API.

Dependencies are installed before: the clock starts with `make`.
"""

import json
import os
import signal
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[1]
BUSY = "0x5d038640E1a2085e1e4fB53dAaca6807f892b00C"
C_BUSY = "0x955FfD76eA8aE0DD686333CF0e79Ad4328329a2d"
LIMIT_S = 60.0
_POLL_S = 0.02


class Group(NamedTuple):
    name: str
    listener: str
    path: str
    body: Any
    has_content: Callable[[Any], Any]


def _rpc(method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


GROUPS = (
    Group("health", "node", "/ext/health", None, lambda answer: answer["healthy"]),
    Group("info", "node", "/ext/info", _rpc("info.getBlockchainID", alias="X"), lambda answer: answer["result"]),
    Group(
        "asset chain", "node", "/ext/bc/X", _rpc("avm.getHeight"), lambda answer: answer["result"]["height"] == "176"
    ),
    Group(
        "index",
        "node",
        "/ext/index/P/block",
        _rpc("index.getLastAccepted"),
        lambda answer: answer["result"]["index"] == "12",
    ),
    Group("chain data", "data", "/v1/chains/3210042/blocks", None, lambda answer: answer["blocks"]),
    Group(
        "chain data, all blocks",
        "data",
        "/v1/chains/3210042/blocks",
        None,
        lambda answer: answer["blocks"][0]["blockNumber"] == "1968",
    ),
    Group(
        "chain data, NFT metadata",
        "data",
        f"/v1/chains/43112/addresses/{C_BUSY}/balances:listErc721?pageSize=50",
        None,
        lambda answer: any(nft["metadata"]["indexStatus"] == "indexed" for nft in answer["erc721TokenBalances"]),
    ),
    Group("metrics", "metrics", "/v1/avg_tps/3210042", None, lambda answer: answer["results"]),
)


def run() -> None:
    print("first answer: seconds from `make up` to an answer with content")
    print(f"  {'interface':<28}{'first start':>12}{'second':>9}")
    with TemporaryDirectory() as folder:
        first, second = _start(Path(folder)), _start(Path(folder))
    for group in GROUPS:
        print(f"  {group.name:<28}{first[group.name]:>12.1f}{second[group.name]:>9.1f}")
    slowest = max(first.values())
    print(f"  the last after {slowest:.1f} s: {'under' if slowest < LIMIT_S else 'NOT UNDER'} {LIMIT_S:.0f} s")


def _start(folder: Path) -> dict[str, float]:
    """Seconds until each group answers."""
    data_dir = folder / "data"
    settings = f"--data-dir={data_dir} --http-port=0 --data-port=0 --metrics-port=0"
    began = time.monotonic()
    with (folder / "terminal.txt").open("ab") as terminal:
        make = subprocess.Popen(["make", "up", f"ARGS={settings}"], cwd=ROOT, stdout=terminal, stderr=terminal)
    process: dict[str, Any] = {}
    took: dict[str, float] = {}
    try:
        while len(took) < len(GROUPS):
            if make.poll() is not None or time.monotonic() - began > 3 * LIMIT_S:
                raise SystemExit((folder / "terminal.txt").read_text())
            process = process or _process(data_dir)
            for group in GROUPS if process else ():
                if group.name not in took and _answers(process[f"{group.listener}Uri"], group):
                    took[group.name] = time.monotonic() - began
            time.sleep(_POLL_S)
    finally:
        if process:
            os.kill(process["pid"], signal.SIGTERM)
        make.wait()
    return took


def _process(data_dir: Path) -> dict[str, Any]:
    try:
        return dict(json.loads((data_dir / "process.json").read_bytes()))
    except (FileNotFoundError, json.JSONDecodeError):
        return {}


def _answers(base_url: str, group: Group) -> bool:
    body = None if group.body is None else json.dumps(group.body).encode()
    request = urllib.request.Request(base_url + group.path, body, {"content-type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=10) as response:
            return bool(group.has_content(json.loads(response.read())))
    except (urllib.error.URLError, KeyError, IndexError):
        return False
