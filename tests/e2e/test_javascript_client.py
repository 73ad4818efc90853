"""What real users run: the JavaScript client builds, signs and issues against `icefall node`."""

import json
import subprocess
from pathlib import Path

from tests.counterparts import npm_project, program
from tests.server import serving
from tests.waiting import LIMIT_S

AVAX = 10**9
HERE = Path(__file__).parent / "js"


def test_the_real_client_transfers_shares_and_exports(tmp_path: Path) -> None:
    folder = npm_project(HERE)
    with serving("node", tmp_path) as server:
        command = [program("node"), str(folder / "wallet.js"), server.url()]
        done = subprocess.run(command, capture_output=True, timeout=LIMIT_S, check=False)
        assert done.returncode == 0, done.stderr.decode()
        report = json.loads(done.stdout)

        assert report["context"]["networkID"] == 12345
        assert report["context"]["baseTxFee"] == "1000000"
        assert report["same"]
        assert int(report["height"]) == 5
        # 5 from the transfer and 2 out of the shared output, whose change went to its first owner.
        assert report["balance"] == str(7 * AVAX)
        assert report["utxos"] == 2
        kinds = {name: sorted(tx["unsignedTx"]) for name, tx in report["seen"].items()}
        assert "exportedOutputs" in kinds["exportP"]
        assert "exportedOutputs" in kinds["exportC"]
        assert len(report["seen"]["multisig"]["credentials"][0]["credential"]["signatures"]) == 2

        # What was exported waits in the other chains' memory, and every transaction is in its owner's history.
        reported_txs = {tx["id"] for tx in report["seen"].values()}
        address = report["seen"]["transfer"]["unsignedTx"]["outputs"][1]["output"]["addresses"][0]
        history = server.call("/ext/bc/X", "avm.getAddressTxs", {"address": address})["result"]["txIDs"]
        assert reported_txs <= set(history)
        assert len(history) == len(reported_txs) + 1  # and the genesis
