"""Same chain, same answers: balances, names and owners do not depend on how the blocks arrived.

A node is driven through tokens whose logs do not tell the truth, one step at a time while it is followed. Then the same
chain is indexed from scratch in other batches. Both stores must answer alike, and as the node's state says.
"""

import json
import time
from pathlib import Path
from urllib.request import urlopen

from tests.evm.adversarial.answers import ask_all, questions
from tests.evm.adversarial.compare import Comparison, report
from tests.evm.adversarial.nodes import CHAIN_ID, Node
from tests.evm.adversarial.scenario import Scenario
from tests.evm.adversarial.state import State
from tests.forked import ForkedProgram
from tests.server import serving
from tests.waiting import LIMIT_S

STORED_LIMIT_S = 300.0
INDEX_LIMIT_S = 300.0
SETTINGS = ("--no-nft-metadata", "--poll-interval=50ms")  # nothing is fetched from outside of the chain


def _config(folder: Path, node: Node) -> Path:
    path = folder / "icefall.toml"
    path.write_text(f'[[chain]]\nid = "{CHAIN_ID}"\nrpc = ["{node.url}"]\ntestnet = true\n')
    return path


def _index(folder: Path, config: Path, *settings: str) -> ForkedProgram:
    folder.mkdir(exist_ok=True)
    arguments = ("index", f"--config-file={config}", f"--data-dir={folder / 'data'}", *SETTINGS, *settings)
    return ForkedProgram(*arguments, output=folder / "index.txt")


def _index_to(folder: Path, config: Path, last: int) -> None:
    process = _index(folder, config, f"--to={last}")
    try:
        code = process.wait(INDEX_LIMIT_S)
    finally:
        process.kill()
        process.wait()
    assert code == 0, (folder / "index.txt").read_text(errors="replace")


def _newest_stored(url: str) -> int:
    try:
        with urlopen(f"{url}/v1/chains/{CHAIN_ID}/blocks?pageSize=1", timeout=LIMIT_S) as response:
            blocks = json.loads(response.read())["blocks"]
    except OSError:  # HTTPError too: nothing is indexed yet
        return -1
    return int(blocks[0]["blockNumber"]) if blocks else -1


def _follow(node: Node, made: Scenario, folder: Path, config: Path) -> None:
    """Runs the scenario; the next step waits until the blocks of the one before are stored."""
    indexing = _index(folder, config)
    try:
        with serving("data", folder, f"--config-file={config}") as server:
            for step in [None, *made.steps]:
                node.fund() if step is None else node.run(step)
                newest, deadline = node.newest(), time.monotonic() + STORED_LIMIT_S
                while _newest_stored(server.url("data")) < newest:
                    assert indexing.poll() is None, (folder / "index.txt").read_text(errors="replace")
                    assert time.monotonic() < deadline, f"block {newest} is not stored"
                    time.sleep(0.05)
    finally:
        indexing.terminate()
        code = indexing.wait(LIMIT_S)
    assert code == 0, (folder / "index.txt").read_text(errors="replace")


def check(node: Node, made: Scenario, tmp_path: Path, every: int) -> None:
    """Compares at every `every`-th block and at the newest one."""
    config = _config(tmp_path, node)
    live, fresh = tmp_path / "live", tmp_path / "fresh"
    _follow(node, made, live, config)
    newest = node.newest()
    _index_to(live, config, newest)
    for last in (7, newest // 3, newest):
        _index_to(fresh, config, last)
    state = State(node, made, sorted({*range(0, newest, every), newest}))
    asked = questions(state)
    answers = []
    for folder in (live, fresh):
        with serving("data", folder, f"--config-file={config}") as server:
            answers.append(ask_all(server.url("data"), asked))
    found = list(Comparison(state).run(asked, *answers))
    assert not found, report(found)
