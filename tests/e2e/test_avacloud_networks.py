"""The official client of the hosted service asks for the primary network of the demo, in the live dialect: it checks
every answer against its own schemas."""

import json
import subprocess
from pathlib import Path
from typing import Any

from tests.counterparts import npm_project, program
from tests.demo.prepared import demo_serving
from tests.waiting import LIMIT_S

from icefall.api.describing.examples import X_ASSET

HERE = Path(__file__).parent / "avacloud"
RICH = "local18jma8ppw3nhx5r4ap8clazz0dps7rv5u00z96u"
NODE = "NodeID-7Xhw2mDxuDS44j42TCB6U5579esbSt3Lg"
API = "data.primaryNetwork"
STAKING = ["AddPermissionlessDelegatorTx", "AddPermissionlessValidatorTx"]


def calls(txs: dict[str, list[str]]) -> list[tuple[str, Any]]:
    """Every operation on every chain that has it."""
    found: list[tuple[str, Any]] = []
    for chain in ("p-chain", "x-chain", "c-chain"):
        of = {"network": "fuji", "blockchainId": chain}
        of_rich = of | {"addresses": RICH}
        found += [
            (f"{API}.blocks.listLatest", of | {"pageSize": 5}),
            (f"{API}.blocks.get", of | {"blockId": "1"}),
            (f"{API}.blocks.listByNodeId", of | {"nodeId": NODE}),
            (f"{API}.transactions.listLatest", of | {"pageSize": 5}),
            (f"{API}.transactions.listLatest", of_rich | {"sortOrder": "asc", "txTypes": ["ImportTx", "ExportTx"]}),
            (f"{API}.utxos.listByAddresses", of_rich | {"pageSize": 7, "includeSpent": True}),
            (f"{API}.balances.listByAddresses", of_rich),
            (f"{API}.balances.listByAddresses", of_rich | {"blockTimestamp": 1795036500}),
            *((f"{API}.transactions.get", of | {"txHash": one}) for one in txs[chain]),
        ]
    x = {"network": "fuji", "blockchainId": "x-chain"}
    asset = x | {"assetId": X_ASSET["assetId"]}
    p = {"network": "fuji", "blockchainId": "p-chain"}
    return [
        *found,
        (f"{API}.getAssetDetails", asset),
        (f"{API}.transactions.listAssetTransactions", asset),
        (f"{API}.transactions.listAssetTransactions", asset | {"txTypes": ["BaseTx", "CreateAssetTx"]}),
        (f"{API}.transactions.listActiveStakingTransactions", p | {"txTypes": STAKING, "addresses": RICH}),
        (f"{API}.vertices.listLatest", x),
        (f"{API}.vertices.listByHeight", x | {"vertexHeight": 1}),
    ]


def test_the_real_client_takes_every_answer(tmp_path: Path) -> None:
    folder = npm_project(HERE)
    with demo_serving(tmp_path, "--dialect=live") as server:
        txs = {
            chain: [
                one["txHash"]
                for one in server.ask(
                    "GET", f"/v1/networks/fuji/blockchains/{chain}/transactions?pageSize=30", listener="data"
                ).json()["transactions"]
            ]
            for chain in ("p-chain", "x-chain", "c-chain")
        }
        requests = calls(txs)
        command = [program("node"), str(folder / "drive.js"), server.url("data"), json.dumps(requests)]
        done = subprocess.run(command, capture_output=True, timeout=LIMIT_S, check=False)
    assert done.returncode == 0, done.stderr.decode()
    answers = json.loads(done.stdout)
    wrong = [(one, said["error"]) for one, said in zip(requests, answers, strict=True) if "error" in said]
    assert wrong == []
    assert all(txs.values())
