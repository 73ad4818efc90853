"""Calls to P that blocks alone do not decide: without an upstream, while it executes, and where it cannot."""

import asyncio
import json
from functools import partial
from pathlib import Path

from tests.pchain.replay import Replay, ask
from tests.wire.platform_vectors import p_txs

from icefall.api.http.asgi import AsgiApp
from icefall.compose.node_setup import configured_network, node_logs
from icefall.compose.worker import build_app
from icefall.config.load import load
from icefall.db.engine import Transaction
from icefall.db.sqlite import SqliteStore
from icefall.node.identity import ensure_identity
from icefall.node.store import PACKAGE, SQL, StartRequest, admit, put_learned, store_path
from icefall.primary.network import LearnedNetwork
from icefall.wire.genesis.network import network_genesis, packaged_genesis
from icefall.wire.ids import id_text
from icefall.wire.pvm.types import CreateSubnetTx
from icefall.wire.text import checksum_hex

UNKNOWN = "2JVSBoinj9C2J33VntvzYtVJNZdN2NKiwwKjcumHUWEb5DbBrm"


def put_bootstrapping(names: str, tx: Transaction) -> None:
    tx.run(SQL.put_meta, {"name": "bootstrapping", "value": names})


def test_without_an_upstream_nothing_is_invented(tmp_path: Path) -> None:
    """A transaction is refused in one sentence, no uptime is shown, and the proposed height is the last one."""

    async def scene() -> None:
        replay = Replay("p-local-1", tmp_path / "node")
        await replay.start()
        await replay.advance(25)
        app = replay.app()
        tx = checksum_hex.encode(p_txs("p-local-1")[-1].raw)
        _, text = await ask(app, "platform.issueTx", {"tx": tx})
        assert json.loads(text)["error"]["message"] == (
            "platform.issueTx needs an upstream: a network of its own has no validators to accept transactions of the "
            "P-Chain"
        )
        _, text = await ask(app, "platform.getCurrentValidators", {})
        assert all(not {"uptime", "connected"} & row.keys() for row in json.loads(text)["result"]["validators"])
        _, text = await ask(app, "platform.getProposedHeight", {})
        assert json.loads(text)["result"] == {"height": "25"}
        replay.store.close()

    asyncio.run(scene())


def test_what_is_refused_as_the_node_does(tmp_path: Path) -> None:
    """Questions that the recordings do not hold, and the texts of AvalancheGo 1.14.2."""

    async def scene() -> None:
        replay = Replay("p-local-1", tmp_path / "node")
        await replay.start()
        await replay.advance(25)
        app = replay.app()
        txid = id_text(next(tx.txid for tx in p_txs("p-local-1") if not isinstance(tx.unsigned, CreateSubnetTx)))
        _, text = await ask(app, "platform.getSubnets", {"ids": [UNKNOWN, txid]})
        assert json.loads(text)["error"]["message"] == f'"{txid}" is not a subnet'
        for height in (2**64 - 1, str(2**64 - 1)):
            for method in ("platform.getValidatorsAt", "platform.getAllValidatorsAt"):
                _, text = await ask(app, method, {"height": height})
                assert json.loads(text)["error"]["message"].startswith("couldn't unmarshal an argument")
        _, text = await ask(app, "platform.getValidatorsAt", {"height": 26})
        assert "current P-chain height (25) \\u003c requested P-Chain height (26)" in text  # as Go writes JSON
        _, text = await ask(app, "platform.issueTx", {"encoding": "json"})
        assert json.loads(text)["error"]["message"].endswith("couldn't unpack codec version")
        replay.store.close()

    asyncio.run(scene())


def test_samples_are_of_validators_only(tmp_path: Path) -> None:
    async def scene() -> None:
        replay = Replay("p-local-1", tmp_path / "node")
        await replay.start()
        app = replay.app()
        _, text = await ask(app, "platform.getValidatorsAt", {"height": 0})
        members = json.loads(text)["result"]
        _, text = await ask(app, "platform.sampleValidators", {"size": 40})
        drawn = json.loads(text)["result"]["validators"]
        assert len(drawn) == 40
        assert set(drawn) <= set(members)
        _, text = await ask(
            app,
            "platform.sampleValidators",
            {"size": 1, "subnetID": UNKNOWN},
        )
        assert json.loads(text)["error"]["message"].endswith("errored with missing validators")
        replay.store.close()

    asyncio.run(scene())


def test_calls_are_refused_until_stored_blocks_are_executed(tmp_path: Path) -> None:
    async def scene() -> None:
        replay = Replay("p-local-1", tmp_path / "node", "--upstream=http://127.0.0.1:9")
        await replay.start()
        app = replay.app()
        for names, status in (('["P"]', 503), ('["X"]', 200)):
            await replay.store.write(partial(put_bootstrapping, names))
            assert (await ask(app, "platform.getHeight", {}))[0] == status
        replay.store.close()

    asyncio.run(scene())


def test_a_network_without_a_known_genesis_says_so(tmp_path: Path) -> None:
    """What does not depend on blocks is answered all the same."""

    async def scene() -> None:
        genesis = network_genesis(packaged_genesis(5), 5, 0)  # another than all local networks have
        arguments = ["--network-id=4321", f"--data-dir={tmp_path}", "--upstream=http://127.0.0.1:9", "--dialect=live"]
        config = load("node", arguments, {}, tmp_path).config
        store = SqliteStore(store_path(tmp_path), PACKAGE)
        await store.write(lambda tx: admit(tx, StartRequest(4321, True, False, False), 0))
        await store.write(lambda tx: put_learned(tx, genesis.x_genesis, genesis.c_chain_id))
        await store.write(partial(put_bootstrapping, "[]"))
        ensure_identity(tmp_path / "staking")
        (tmp_path / "run").mkdir()
        network = configured_network(config, 0, LearnedNetwork(genesis.x_genesis, genesis.c_chain_id))
        node_logs(config, "engine", network, create=True)
        app = AsgiApp(build_app("node", config, with_engine=True))
        status, text = await ask(app, "platform.getTx", {"txID": UNKNOWN})
        assert "give it with --genesis-file" in text, (status, text)
        status, text = await ask(app, "platform.getFeeConfig", {})
        assert json.loads(text)["result"]["maxCapacity"] == 1_000_000
        store.close()

    asyncio.run(scene())
