"""Objects of X that a worker keeps: asked about again, they are what a worker without any would answer, after every
commit of X, P or C and at any time, and they need no statement until there is one."""

import asyncio
import json
import random
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.pchain.replay import send
from tests.xchain.craft import ADDRESSES
from tests.xchain.memory_state import RULES
from tests.xchain.stored import Step, StoredChain
from tests.xchain.wallet import AVAX, NOW_S, Wallet

from icefall.api.http.asgi import AsgiApp
from icefall.api.node.asset_objects import AssetHoldings
from icefall.api.node.handlers import avm
from icefall.compose.node_setup import configured_network, node_logs
from icefall.compose.stores import Stores
from icefall.compose.worker import build_app
from icefall.config.load import load
from icefall.db.changes import unknown_version
from icefall.db.engine import Row, StatementParams, Transaction
from icefall.db.sqlite import SqliteReader, SqliteStore
from icefall.node.identity import ensure_identity
from icefall.node.store import PACKAGE, SQL, store_path
from icefall.wire.avm.codec import pack_utxo
from icefall.wire.avm.types import Owners, TransferOutput, Utxo
from icefall.wire.ids import LOCAL_ID, PLATFORM_CHAIN, hash256, id_text, input_id, network_hrp
from icefall.wire.text import checksum_hex
from icefall.wire.text.bech32 import address_text
from icefall.xchain.model import NewUtxo
from icefall.xchain.store import put_atomic, take_atomic

SEED = 20261119
BLOCKS = 20
X, P = "/ext/bc/X", "/ext/bc/P"
Question = tuple[str, str, dict[str, Any]]


def text_of(address: bytes, chain: str = "X") -> str:
    return address_text(chain, network_hrp(LOCAL_ID), address)


class Scene:
    """A chain in a store that tells of its commits, and two workers: one keeps objects, the other never does."""

    def __init__(self, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._directory = directory
        config = load("node", [f"--data-dir={directory}"], {}, directory).config
        (directory / "run").mkdir(parents=True)
        node_logs(config, "engine", configured_network(config, NOW_S), create=True)
        ensure_identity(directory / "staking")
        self.chain = StoredChain(directory, self._store())
        self.keeps = AsgiApp(build_app("node", config, with_engine=True))
        monkeypatch.setattr(Stores, "node_version", lambda _: unknown_version)
        self.reads = AsgiApp(build_app("node", config, with_engine=True))
        self.clock_s = NOW_S
        monkeypatch.setattr(avm, "time", SimpleNamespace(time=lambda: self.clock_s + 0.5))

    def _store(self) -> SqliteStore:
        return SqliteStore(store_path(self._directory), PACKAGE, changes=self._directory / "run" / "node-changes")

    def open_again(self) -> None:
        self.chain.store.close()
        self.chain = StoredChain(self._directory, self._store())

    async def put(self, step: Step) -> None:
        """Commit what peers export, or a block."""
        for peer, utxo in step.received:
            await self.export(peer, RULES.chain_id, utxo)
        for tx in step.txs:
            await self.chain.chain.issue(checksum_hex.encode(tx.raw), "hex")
        if step.txs:
            assert await self.chain.chain.accept_pending()

    async def export(self, source: bytes, destination: bytes, utxo: Utxo) -> bytes:
        """Commit an export from one chain to another, and return its ID."""
        utxo_id = input_id(utxo.txid, utxo.output_index)
        new = NewUtxo(utxo_id, utxo, pack_utxo(utxo), utxo.output.owners.addresses)
        await self.chain.store.write(lambda tx: put_atomic(tx, destination, source, [new]))
        return utxo_id

    async def answers(self, question: Question, number: int = 0) -> Any:
        """Return the answer of the worker that reads, after that of the other one, which must be the same, twice."""
        path, method, params = question
        call = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "number": number}}
        expected = await send(self.reads, json.dumps(call).encode(), path)
        for _ in range(2):
            assert await send(self.keeps, json.dumps(call).encode(), path) == expected, question
        return json.loads(expected[1])


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Scene]:
    made = Scene(tmp_path, monkeypatch)
    yield made
    made.chain.store.close()


def questions(addresses: list[str], asset: str, height: int, block_id: str, txid: str) -> Iterator[Question]:
    """Questions about what may have changed with a commit, and about what cannot."""
    for encoding in ("hex", "json"):
        yield X, "avm.getBlockByHeight", {"height": height, "encoding": encoding}
        yield X, "avm.getBlockByHeight", {"height": height + 1, "encoding": encoding}
        yield X, "avm.getBlock", {"blockID": block_id, "encoding": encoding}
        yield X, "avm.getTx", {"txID": txid, "encoding": encoding}
    yield X, "avm.getHeight", {}
    yield X, "avm.getAssetDescription", {"assetID": "AVAX"}
    for address in addresses:
        for partial in (False, True):
            yield X, "avm.getBalance", {"address": address, "assetID": asset, "includePartial": partial}
            yield X, "avm.getAllBalances", {"address": address, "includePartial": partial}
        yield X, "avm.getAddressTxs", {"address": address, "pageSize": 5}
        yield X, "avm.getAddressTxs", {"address": address, "assetID": asset}
        for source in ("P", "C"):
            yield X, "avm.getUTXOs", {"addresses": [address], "sourceChain": source}
    yield X, "avm.getUTXOs", {"addresses": addresses}
    on_p = ["P" + address[1:] for address in addresses]
    yield P, "platform.getUTXOs", {"addresses": on_p, "sourceChain": "X"}


async def _compare(scene: Scene, drawn: random.Random, addresses: list[str]) -> None:
    """Ask about three addresses at two moments between two commits."""
    tip = scene.chain.chain.ledger.tip
    txid = id_text(tip.txs[0].txid) if tip.txs else id_text(AVAX)
    asked = drawn.sample(addresses, 3)
    asset = drawn.choice(("AVAX", txid))
    for from_now_s in drawn.sample((-2000, 0, 1, 2000), 2):
        scene.clock_s = NOW_S + from_now_s
        for question in questions(asked, asset, tip.height, id_text(tip.block_id), txid):
            await scene.answers(question)
    for source in ({}, {"sourceChain": "P"}):
        params = {"addresses": asked, "limit": 7, **source}
        page = await scene.answers((X, "avm.getUTXOs", params))
        await scene.answers((X, "avm.getUTXOs", {**params, "startIndex": page["result"]["endIndex"]}))


def test_what_is_kept_is_what_is_read_after_every_commit_and_at_any_time(scene: Scene) -> None:
    async def run() -> None:
        drawn, wallet = random.Random(SEED), Wallet(SEED, target=60)
        addresses = [text_of(address) for address in wallet.secrets]
        await scene.chain.chain.ledger.start()
        await scene.put(Step([], [wallet.fan_out(60)]))
        wallet.accepted()
        for number in range(BLOCKS):
            await _compare(scene, drawn, addresses)
            await scene.put(Step([wallet.receive() for _ in range(3)], []))
            await _compare(scene, drawn, addresses)
            await scene.put(Step([], [wallet.tx() for _ in range(drawn.randint(1, 6))]))
            wallet.accepted()
            if number == BLOCKS // 2:
                await _compare(scene, drawn, addresses)
                scene.open_again()
                await scene.chain.chain.ledger.start()
        await _compare(scene, drawn, addresses)

    asyncio.run(run())


def _exported(number: int, owner: bytes) -> Utxo:
    return Utxo(hash256(b"exported %d" % number), 0, AVAX, TransferOutput(10, Owners(0, 1, (owner,))))


@pytest.mark.parametrize(
    ("path", "method", "source", "destination"),
    [(X, "avm.getUTXOs", PLATFORM_CHAIN, RULES.chain_id), (P, "platform.getUTXOs", RULES.chain_id, PLATFORM_CHAIN)],
    ids=["from P to X", "from X to P"],
)
def test_exports_and_imports_of_other_chains_are_seen_at_once(
    scene: Scene, path: str, method: str, source: bytes, destination: bytes
) -> None:
    """Neither is a block of the chain that is asked."""

    async def run() -> None:
        await scene.chain.chain.ledger.start()
        own, other = ("X", "P") if path == X else ("P", "X")
        question = path, method, {"addresses": [text_of(ADDRESSES[0], own)], "sourceChain": other}

        async def found() -> list[str]:
            utxos: list[str] = (await scene.answers(question))["result"]["utxos"]
            return utxos

        assert await found() == []
        exported = [_exported(number, ADDRESSES[0]) for number in range(2)]
        texts = [checksum_hex.encode(pack_utxo(utxo)) for utxo in exported]
        first = await scene.export(source, destination, exported[0])
        assert await found() == texts[:1]
        await scene.export(source, destination, exported[1])
        assert await found() == [texts[1], texts[0]]
        await scene.chain.store.write(lambda tx: take_atomic(tx, destination, source, first))
        assert await found() == texts[1:]

    asyncio.run(run())


def _touch(tx: Transaction) -> None:
    tx.run(SQL.put_meta, {"name": "touched", "value": "1"})


def test_what_was_asked_about_needs_no_statement_until_a_commit(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    statements: list[str] = []
    read = SqliteReader.read

    def counted(self: SqliteReader, statement: str, params: StatementParams = ()) -> list[Row]:
        statements.append(statement)
        return read(self, statement, params)

    async def run() -> None:
        wallet = Wallet(SEED)
        await scene.chain.chain.ledger.start()
        await scene.put(Step([], [wallet.fan_out(10)]))
        tip = scene.chain.chain.ledger.tip
        address = text_of(next(iter(wallet.secrets)))
        asked = list(questions([address], "AVAX", tip.height - 1, id_text(tip.block_id), id_text(tip.txs[0].txid)))

        async def count(app: AsgiApp, number: int) -> int:
            before = len(statements)
            for path, method, params in asked:
                call = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "number": number}}
                assert "result" in json.loads((await send(app, json.dumps(call).encode(), path))[1]), (method, params)
            return len(statements) - before

        monkeypatch.setattr(SqliteReader, "read", counted)
        first = await count(scene.keeps, 1)
        assert await count(scene.keeps, 2) == 0
        await scene.chain.store.write(_touch)
        assert await count(scene.keeps, 3) == first - 1, "all but the number of the chain, which never changes"
        assert [await count(scene.reads, number) >= first - 1 for number in range(2)] == [True, True]

    asyncio.run(run())


def _held(amount: int, locktime: int, owners: int = 1) -> bytes:
    output = TransferOutput(amount, Owners(locktime, 1, ADDRESSES[:owners]))
    return pack_utxo(Utxo(hash256(b"%d" % amount), 0, AVAX, output))


@pytest.mark.parametrize(
    ("now_s", "amount", "since", "until"),
    [(99, 1, 0, 100), (100, 3, 100, 200), (199, 3, 100, 200), (200, 7, 200, 1 << 64), (300, 7, 200, 1 << 64)],
)
def test_holdings_say_when_the_next_output_is_unlocked(now_s: int, amount: int, since: int, until: int) -> None:
    holdings = AssetHoldings(now_s, partial=False)
    holdings.add([_held(1, 0), _held(2, 100), _held(4, 200), _held(8, 0, owners=2)])
    assert (holdings.assets[AVAX].amount, holdings.since, holdings.until) == (amount, since, until)
    partial = AssetHoldings(now_s, partial=True)
    partial.add([_held(1, 0), _held(2, 100), _held(4, 200), _held(8, 0, owners=2)])
    assert (partial.assets[AVAX].amount, partial.since, partial.until) == (15, 0, 1 << 64)
