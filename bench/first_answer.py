"""From `make up` on an empty data directory to the first answer with something in it, for each interface group.

What is installed stays installed: the clock starts with `make`, after the first run's install.
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
BUSY = "0x955FfD76eA8aE0DD686333CF0e79Ad4328329a2d"
LIMIT_S = 60.0
_LOOK_S = 0.02


class Group(NamedTuple):
    name: str
    listener: str
    path: str
    body: Any
    seen: Callable[[Any], Any]


def _rpc(method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


GROUPS = (
    Group("health", "node", "/ext/health", None, lambda told: told["healthy"]),
    Group("info", "node", "/ext/info", _rpc("info.getBlockchainID", alias="X"), lambda told: told["result"]),
    Group("asset chain", "node", "/ext/bc/X", _rpc("avm.getHeight"), lambda told: told["result"]["height"] == "176"),
    Group(
        "index",
        "node",
        "/ext/index/P/block",
        _rpc("index.getLastAccepted"),
        lambda told: told["result"]["index"] == "12",
    ),
    Group("chain data", "data", "/v1/chains/31337/blocks", None, lambda told: told["blocks"]),
    Group(
        "chain data, all blocks",
        "data",
        "/v1/chains/31337/blocks",
        None,
        lambda told: told["blocks"][0]["blockNumber"] == "1968",
    ),
    Group(
        "chain data, NFT metadata",
        "data",
        f"/v1/chains/43112/addresses/{BUSY}/balances:listErc721?pageSize=50",
        None,
        lambda told: any(nft["metadata"]["indexStatus"] == "indexed" for nft in told["erc721TokenBalances"]),
    ),
    Group("metrics", "metrics", "/v1/avg_tps/31337", None, lambda told: told["results"]),
)


def run() -> None:
    print("first answer: seconds from `make up` to an answer with something in it")
    print(f"  {'interface':<28}{'first start':>12}{'second':>9}")
    with TemporaryDirectory() as folder:
        first, second = _start(Path(folder)), _start(Path(folder))
    for group in GROUPS:
        print(f"  {group.name:<28}{first[group.name]:>12.1f}{second[group.name]:>9.1f}")
    slowest = max(first.values())
    print(f"  the last after {slowest:.1f} s: {'under' if slowest < LIMIT_S else 'NOT UNDER'} {LIMIT_S:.0f} s")


def _start(folder: Path) -> dict[str, float]:
    """Seconds for each group."""
    data_dir = folder / "data"
    settings = f"--data-dir={data_dir} --http-port=0 --data-port=0 --metrics-port=0"
    began = time.monotonic()
    with (folder / "terminal.txt").open("ab") as terminal:
        make = subprocess.Popen(["make", "up", f"ARGS={settings}"], cwd=ROOT, stdout=terminal, stderr=terminal)
    told: dict[str, Any] = {}
    took: dict[str, float] = {}
    try:
        while len(took) < len(GROUPS):
            if make.poll() is not None or time.monotonic() - began > 3 * LIMIT_S:
                raise SystemExit((folder / "terminal.txt").read_text())
            told = told or _process(data_dir)
            for group in GROUPS if told else ():
                if group.name not in took and _answers(told[f"{group.listener}Uri"], group):
                    took[group.name] = time.monotonic() - began
            time.sleep(_LOOK_S)
    finally:
        if told:
            os.kill(told["pid"], signal.SIGTERM)
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
            return bool(group.seen(json.loads(response.read())))
    except (urllib.error.URLError, KeyError, IndexError):
        return False
