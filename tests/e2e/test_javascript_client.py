"""What real users run: the JavaScript client builds, signs and issues against `icefall node`."""

import json
import subprocess
from pathlib import Path

from tests.counterparts import npm_project, program
from tests.server import serving

AVAX = 10**9
HERE = Path(__file__).parent / "js"


def test_the_real_client_transfers_shares_and_exports(tmp_path: Path) -> None:
    folder = npm_project(HERE)
    with serving("node", tmp_path) as server:
        command = [program("node"), str(folder / "wallet.js"), server.url()]
        done = subprocess.run(command, capture_output=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr.decode()
        told = json.loads(done.stdout)

        assert told["context"]["networkID"] == 12345
        assert told["context"]["baseTxFee"] == "1000000"
        assert told["same"]
        assert int(told["height"]) == 5
        # 5 from the transfer and 2 out of the shared output, whose change went to its first owner.
        assert told["balance"] == str(7 * AVAX)
        assert told["utxos"] == 2
        kinds = {name: sorted(tx["unsignedTx"]) for name, tx in told["seen"].items()}
        assert "exportedOutputs" in kinds["exportP"]
        assert "exportedOutputs" in kinds["exportC"]
        assert len(told["seen"]["multisig"]["credentials"][0]["credential"]["signatures"]) == 2

        # What was exported waits in the other chains' memory, and every transaction is in its owner's history.
        told_txs = {tx["id"] for tx in told["seen"].values()}
        address = told["seen"]["transfer"]["unsignedTx"]["outputs"][1]["output"]["addresses"][0]
        history = server.call("/ext/bc/X", "avm.getAddressTxs", {"address": address})["result"]["txIDs"]
        assert told_txs <= set(history)
        assert len(history) == len(told_txs) + 1  # and the genesis
