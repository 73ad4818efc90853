"""How many statements each node call runs on the store of a followed node, so that none grows unnoticed.

Counted at the first call after a commit, and at the next one: what does not change between commits is read once.
"""

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.sync.followed_node import Node
from tests.sync.history import followed

from icefall.api.http.row import Rpc
from icefall.api.node.endpoints import INDEX, NODE_ENDPOINTS, X
from icefall.config.settings import Config
from icefall.db.changes import ChangeCount
from icefall.db.sqlite import SqliteReader

OWNER = "X-local18jma8ppw3nhx5r4ap8clazz0dps7rv5u00z96u"
X_PATH, INDEX_PATH = "/ext/bc/X", "/ext/index/X/tx"

# method: (parameters, statements after a commit, statements of the same call again). `ID` stands for a
# transaction, `BLOCK` for a block, both of the store. Calls to X also read whether it is bootstrapping.
COUNTS: dict[str, tuple[dict[str, Any], int, int]] = {
    "avm.getAddressTxs": ({"address": OWNER, "assetID": "AVAX", "pageSize": 4}, 2, 0),
    "avm.getAllBalances": ({"address": OWNER}, 3, 0),
    "avm.getAssetDescription": ({"assetID": "AVAX"}, 2, 0),
    "avm.getBalance": ({"address": OWNER, "assetID": "AVAX"}, 3, 0),
    "avm.getBlock": ({"blockID": "BLOCK"}, 2, 0),
    "avm.getBlockByHeight": ({"height": 3}, 2, 0),
    "avm.getHeight": ({}, 2, 0),
    "avm.getTx": ({"txID": "ID"}, 2, 0),
    "avm.getTxFee": ({}, 1, 0),
    "avm.getTxStatus": ({"txID": "ID"}, 2, 1),
    "avm.getUTXOs": ({"addresses": [OWNER], "limit": 10}, 2, 0),
    "index.getContainerByID": ({"id": "ID"}, 1, 1),
    "index.getContainerByIndex": ({"index": 3}, 0, 0),
    "index.getContainerRange": ({"startIndex": 1, "numToFetch": 20}, 1, 0),
    "index.getIndex": ({"id": "ID"}, 1, 1),
    "index.getLastAccepted": ({}, 1, 0),
    "index.isAccepted": ({"id": "ID"}, 1, 1),
}
OF_THE_ENGINE = {"avm.issueTx"}


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Config:
    made = asyncio.run(followed(tmp_path_factory.mktemp("followed")))
    return msgspec.structs.replace(made, upstream=("http://127.0.0.1:1",))


@pytest.fixture(scope="module")
def commits(config: Config) -> ChangeCount:
    """What the engine tells workers of its commits."""
    return ChangeCount(Path(config.data_dir) / "run" / "node-changes")


@pytest.fixture(scope="module")
def node(config: Config, commits: ChangeCount) -> Node:  # a worker looks for it when it starts
    return Node(config)


@pytest.fixture
def statements(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    run: list[str] = []
    read = SqliteReader.read

    def counted(self: SqliteReader, statement: str, params: Any = ()) -> Any:
        run.append(statement)
        return read(self, statement, params)

    monkeypatch.setattr(SqliteReader, "read", counted)
    return run


def test_every_method_of_the_asset_chain_and_the_index_is_counted() -> None:
    methods = {row.method for row in NODE_ENDPOINTS if isinstance(row, Rpc) and row.path in (X, INDEX)}
    assert methods == set(COUNTS) | OF_THE_ENGINE


@pytest.mark.parametrize("method", COUNTS)
def test_statements_of_a_call(method: str, node: Node, commits: ChangeCount, statements: list[str]) -> None:
    known = {
        "ID": node.ask(INDEX_PATH, "index.getContainerByIndex", index=3).result["id"],
        "BLOCK": node.ask(X_PATH, "avm.getBlockByHeight", height=3, encoding="json").result["block"]["id"],
    }
    params, *expected = COUNTS[method]
    given = {name: known.get(value, value) if isinstance(value, str) else value for name, value in params.items()}
    path = INDEX_PATH if method.startswith("index.") else X_PATH
    node.ask(path, method, **given)
    commits.begin()
    commits.end()
    found = []
    for _ in expected:
        statements.clear()
        assert "result" in node.ask(path, method, **given).value
        found.append(len(statements))
    assert found == expected, method


@pytest.mark.parametrize(
    ("path", "method", "params"),
    [
        ("/ext/health", "health.health", {}),
        ("/ext/health", "health.liveness", {}),
        ("/ext/info", "info.isBootstrapped", {"chain": "X"}),
    ],
)
def test_health_runs_no_statement(
    path: str, method: str, params: dict[str, Any], node: Node, statements: list[str]
) -> None:
    node.ask(path, method, **params)
    statements.clear()
    node.ask(path, method, **params)
    assert statements == []
