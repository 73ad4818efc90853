"""The official client of the hosted service asks for the primary network of the demo, in the live dialect: it checks
every answer against its own schemas."""

import json
import subprocess
from pathlib import Path
from typing import Any

from tests.counterparts import npm_project, program
from tests.demo.prepared import demo_serving
from tests.e2e.test_avacloud_staking import CALLS as STAKING_CALLS
from tests.waiting import LIMIT_S

from icefall.api.describing.examples import X_ASSET

HERE = Path(__file__).parent / "avacloud"
RICH = "local18jma8ppw3nhx5r4ap8clazz0dps7rv5u00z96u"
NODE = "NodeID-7Xhw2mDxuDS44j42TCB6U5579esbSt3Lg"
API = "data.primaryNetwork"
X = {"network": "fuji", "blockchainId": "x-chain"}
VERTEX = "11111111111111111111111111111111LpoYY"
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
    asset = X | {"assetId": X_ASSET["assetId"]}
    p = {"network": "fuji", "blockchainId": "p-chain"}
    return [
        *found,
        (f"{API}.getAssetDetails", asset),
        (f"{API}.transactions.listAssetTransactions", asset),
        (f"{API}.transactions.listAssetTransactions", asset | {"txTypes": ["BaseTx", "CreateAssetTx"]}),
        (f"{API}.transactions.listActiveStakingTransactions", p | {"txTypes": STAKING, "addresses": RICH}),
        (f"{API}.vertices.listLatest", X),
        (f"{API}.vertices.listByHeight", X | {"vertexHeight": 1}),
    ]


NOT_ANSWERED: list[tuple[str, Any, str]] = [  # with the client's error
    (f"{API}.vertices.getByHash", {**X, "vertexHash": VERTEX}, "NotFound"),  # no recorded network has a DAG
    (f"{API}.getChainIdsForAddresses", {"network": "fuji", "addresses": RICH}, "ResponseValidationError"),
]  # the second cannot pass for a local network: docs/hosted-api.md


def func_name(method: str) -> str:
    """The name of the client's file with an operation."""
    first, *rest = method.split(".")
    return first + "".join(one[0].upper() + one[1:] for one in rest)


def test_every_operation_of_the_client_is_called() -> None:
    folder = npm_project(HERE) / "node_modules" / "@avalabs" / "avacloud-sdk" / "funcs"
    known = {path.stem for path in folder.glob("dataPrimaryNetwork*.js")}
    called = [*calls({chain: [""] for chain in ("p-chain", "x-chain", "c-chain")}), *STAKING_CALLS]
    assert {func_name(name) for name, *_ in (*called, *NOT_ANSWERED)} == known


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
        requests = [*calls(txs), *((name, request) for name, request, _ in NOT_ANSWERED)]
        command = [program("node"), str(folder / "drive.js"), server.url("data"), json.dumps(requests)]
        done = subprocess.run(command, capture_output=True, timeout=LIMIT_S, check=False)
    assert done.returncode == 0, done.stderr.decode()
    answers = json.loads(done.stdout)
    wrong = [(one, said["error"]) for one, said in zip(requests, answers, strict=True) if "error" in said]
    assert [(name, error["name"]) for (name, _), error in wrong] == [(name, error) for name, _, error in NOT_ANSWERED]
    assert all(txs.values())
