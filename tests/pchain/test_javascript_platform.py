"""The JavaScript client reads a P-Chain that was executed here, with no other node about."""

import asyncio
import json
import subprocess
from pathlib import Path
from typing import Any

from tests.counterparts import npm_project, program
from tests.pchain.replay import Replay
from tests.server import serving
from tests.waiting import LIMIT_S
from tests.wire.platform_vectors import p_rows
from tests.wire.wire_vectors import VECTORS

RECORDING = "p-local-1"
SCRIPTS = Path(__file__).parent.parent / "e2e" / "js"
ADDRESS = "P-local18jma8ppw3nhx5r4ap8clazz0dps7rv5u00z96u"


async def _stored(directory: Path) -> None:
    replay = Replay(RECORDING, directory)
    await replay.start()
    await replay.finish()
    replay.store.close()


def _recorded(method: str, params: dict[str, Any]) -> Any:
    """What the recorded node answered at the last height."""
    rows = p_rows(RECORDING, "final")
    found = next(row for row in rows if row["method"] == f"platform.{method}" and row["params"] == params)
    return found["response"]["result"]


def test_the_javascript_client_reads_what_was_executed(tmp_path: Path) -> None:
    folder = npm_project(SCRIPTS)
    asyncio.run(_stored(tmp_path / "data"))
    genesis = VECTORS / RECORDING / "genesis-local.json"
    validators = _recorded("getCurrentValidators", {})["validators"]
    node_id = next(one["nodeID"] for one in validators)
    one = _recorded("getCurrentValidators", {"nodeIDs": [node_id]})["validators"][0]
    fees = _recorded("getFeeState", {})
    settings = ("--network-id=local", f"--genesis-file={genesis}", "--index-enabled=true")
    with serving("node", tmp_path, *settings) as server:
        command = [program("node"), str(folder / "platform.js"), "read", server.url(), ADDRESS, node_id]
        done = subprocess.run(command, capture_output=True, timeout=LIMIT_S, check=False)
    assert done.returncode == 0, done.stderr.decode()
    assert json.loads(done.stdout) == {
        "height": _recorded("getHeight", {})["height"],
        "utxos": int(_recorded("getUTXOs", {"addresses": [ADDRESS], "encoding": "hex"})["numFetched"]),
        "unlocked": _recorded("getBalance", {"addresses": [ADDRESS]})["unlocked"],
        "validators": len(validators),
        "delegators": len(one["delegators"]),
        "rewards": one["validationRewardOwner"]["addresses"],
        "price": str(fees["price"]),
        "capacity": str(fees["capacity"]),
        "weights": {"0": 1, "1": 1000, "2": 1000, "3": 4},
        "supply": _recorded("getCurrentSupply", {})["supply"],
        "subnets": len(_recorded("getSubnets", {})["subnets"]),
        "stake": _recorded("getTotalStake", {})["weight"],
    }
