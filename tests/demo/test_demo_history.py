"""The demo history as a local network imports it: complete, as recorded, once, also after interruptions."""

import asyncio
import os
import random
import sqlite3
import time
from collections import Counter, defaultdict
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.e2e.program import kill_all
from tests.server import Server, launch, serving
from tests.sync.dag_scene import stored_utxos
from tests.sync.history import containers
from tests.waiting import LIMIT_S, until
from tests.xchain.craft import AVAX, FEE, base, out, signed, spend
from tests.xchain.scenario_1 import final_utxos
from tests.xchain.stored import digest
from tests.xchain.wallet import EWOQ

from icefall.compose.engine import wants_history
from icefall.compose.node_setup import configured_network
from icefall.config.load import load
from icefall.config.settings import Config
from icefall.db.sqlite import SqliteStore
from icefall.demo import history
from icefall.node.store import PACKAGE, store_path
from icefall.node.sync.verify import ChainLinks, FollowedChain
from icefall.primary.chains import FollowedForeignChain, XChain, foreign_chains, genesis_time, index_x
from icefall.wire.avm.codec import unpack_block, unpack_utxo
from icefall.wire.avm.types import Owners, TransferOutput, Tx
from icefall.wire.container.core_txs import core_txs_of
from icefall.wire.container.platform import block_in_container
from icefall.wire.container.proposer import unpack_container
from icefall.wire.ids import FUJI_ID, LOCAL_ID, id_text
from icefall.wire.keys import address_of
from icefall.wire.pvm.codec import unpack_block as unpack_platform_block
from icefall.wire.text import checksum_hex
from icefall.xchain.ledger import Ledger

COUNTS = {"X": 156, "P": 62, "C": 12}
FEES = history.TX_FEE, history.CREATE_ASSET_TX_FEE
RICH = "X-local18jma8ppw3nhx5r4ap8clazz0dps7rv5u00z96u"
X = "/ext/bc/X"


class Broken(Exception):
    pass


class Opened(NamedTuple):
    store: SqliteStore
    chains: dict[str, FollowedChain]
    links: dict[str, ChainLinks]

    async def bring_in(self, runs_max: int = 1_000_000) -> None:
        """All of it, or so many runs."""
        left = runs_max

        def stop_after(_name: str, _count: int) -> None:
            nonlocal left
            left -= 1
            if left <= 0:
                raise Broken

        await history.import_into(self.chains, self.links, stop_after)


def config_of(directory: Path, *settings: str) -> Config:
    return load("up", [f"--data-dir={directory}", *settings], {}, directory).config


async def opened(directory: Path) -> Opened:
    config = config_of(directory)
    network = configured_network(config, history.GENESIS_TIME)
    store = SqliteStore(store_path(directory), PACKAGE)
    spec = network.asset_chains[0]
    ledger = Ledger(store, spec.rules, spec.genesis, spec.block_0, network.subnet_of, index_x)
    await ledger.start()
    x_id = spec.chain.chain_id
    chains: dict[str, FollowedChain] = {
        name: FollowedForeignChain(chain, x_id)
        for name, chain in foreign_chains(network, store, indexed=config.index_enabled).items()
    }
    chains["X"] = XChain(ledger)
    return Opened(store, chains, {name: ChainLinks(name, x_id) for name in chains})


def last_ids() -> dict[str, str]:
    return {run.chain: run.containers[-1].id_text for run in history.recorded_runs()}


def assert_all_there(directory: Path, chains: dict[str, FollowedChain]) -> None:
    assert {name: chain.count for name, chain in chains.items()} == COUNTS
    assert {name: id_text(chain.last_container_id) for name, chain in chains.items()} == last_ids()
    assert stored_utxos(directory) == final_utxos()


def test_the_whole_history_is_imported_as_recorded(tmp_path: Path) -> None:
    async def run() -> None:
        one = await opened(tmp_path)
        await one.bring_in()
        assert_all_there(tmp_path, one.chains)
        await one.bring_in()  # nothing is left to do
        one.store.close()

    asyncio.run(run())


def test_the_shipped_history_has_every_transaction_of_scenario_1() -> None:
    """It was recorded anew, with stakes, subnets and an L1 behind; on X and C there is nothing else."""
    shipped: dict[str, list[str]] = defaultdict(list)
    for run in history.recorded_runs():
        for one in run.containers:
            shipped[run.chain] += _txids(run.chain, one.raw)
    recorded: dict[str, list[str]] = defaultdict(list)
    for row in containers():
        recorded[row["chain"]] += _txids(row["chain"], checksum_hex.decode(row["bytes"]))
    assert Counter(run.chain for run in history.recorded_runs() for _ in run.containers) == COUNTS
    assert {name: sorted(txids) for name, txids in shipped.items() if name != "P"} == {
        name: sorted(txids) for name, txids in recorded.items() if name != "P"
    }
    assert shipped["P"][: len(recorded["P"])] == recorded["P"]


def _txids(chain: str, raw: bytes) -> list[str]:
    inner = block_in_container(raw)
    if chain == "C":
        return [id_text(one.txid) for one in core_txs_of(inner)]
    block: Any = unpack_block(inner) if chain == "X" else unpack_platform_block(inner)
    return [id_text(tx.txid) for tx in block.txs]


def test_the_import_can_be_interrupted_after_any_run(tmp_path: Path) -> None:
    async def run() -> int:
        breaks = 0
        while True:
            one = await opened(tmp_path)
            try:
                await one.bring_in(runs_max=1)
            except Broken:
                breaks += 1
            else:
                assert_all_there(tmp_path, one.chains)
                return breaks
            finally:
                one.store.close()

    assert asyncio.run(run()) == sum(1 for _ in history.recorded_runs()) > 20


def test_a_damaged_recording_is_refused_and_not_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = list(history.recorded_runs())
    first = runs[0].containers[0]
    middle = len(first.raw) // 2
    spoilt = first._replace(raw=first.raw[:middle] + bytes([first.raw[middle] ^ 1]) + first.raw[middle + 1 :])
    monkeypatch.setattr(
        history, "recorded_runs", lambda: iter([runs[0]._replace(containers=[spoilt, *runs[0].containers[1:]])])
    )

    async def run() -> None:
        one = await opened(tmp_path)
        with pytest.raises(
            history.InvalidHistory, match=f"cannot be imported: {runs[0].chain} container 0 is labelled"
        ):
            await one.bring_in()
        assert {name: chain.count for name, chain in one.chains.items()} == dict.fromkeys(COUNTS, 0)
        one.store.close()

    asyncio.run(run())


def test_which_networks_import_the_history(tmp_path: Path) -> None:
    assert history.fits(LOCAL_ID, "", (), FEES)
    assert not history.fits(FUJI_ID, "", (), FEES)
    assert not history.fits(LOCAL_ID, "own.json", (), FEES)
    assert not history.fits(LOCAL_ID, "", ("http://127.0.0.1:1",), FEES)
    assert not history.fits(LOCAL_ID, "", (), (1, FEES[1]))
    store = SqliteStore(store_path(tmp_path), PACKAGE)
    assert genesis_time(store, with_history=wants_history(config_of(tmp_path))) == (history.GENESIS_TIME, True)
    assert genesis_time(store, with_history=wants_history(config_of(tmp_path, "--tx-fee=7")))[1] is False
    began, recorded = genesis_time(store, with_history=wants_history(config_of(tmp_path, "--no-demo")))
    assert (abs(began - time.time()) < LIMIT_S, recorded) == (True, False)
    store.close()


# -- the real program ----------------------------------------------------------------------------------------------


def heights(server: Server) -> dict[str, int]:
    checks = server.ask("GET", "/ext/health").json()["checks"]
    return {name: checks[name]["message"]["engine"]["consensus"]["lastAcceptedHeight"] for name in COUNTS}


def payment(server: Server) -> Tx:
    """A transaction of the rich key to itself, from its present outputs."""
    result = server.call(X, "avm.getUTXOs", {"addresses": [RICH], "limit": "1024"})["result"]["utxos"]
    own = Owners(0, 1, (address_of(EWOQ),))
    for text in result:
        utxo = unpack_utxo(checksum_hex.decode(text))
        held = utxo.output
        if utxo.asset_id == AVAX and isinstance(held, TransferOutput) and held.owners == own and held.amount > FEE:
            return signed(base([out(held.amount - FEE, own)], [spend(utxo)], b"demo"), [EWOQ])
    raise AssertionError("it holds nothing that can be spent")


def wait_accepted(server: Server, txid: str) -> None:
    until(lambda: server.call(X, "avm.getTxStatus", {"txID": txid})["result"]["status"] == "Accepted", "its block")


def test_the_network_continues_after_the_history(tmp_path: Path) -> None:
    settings = "--index-enabled=true"
    with serving("up", tmp_path, "--demo", settings) as server:
        assert heights(server) == COUNTS
        assert stored_utxos(server.data_dir) == final_utxos()
        tx = payment(server)
        txid = server.call(X, "avm.issueTx", {"tx": checksum_hex.encode(tx.raw)})["result"]["txID"]
        wait_accepted(server, txid)
        assert server.call(X, "avm.getHeight")["result"]["height"] == "157"
        result = server.call("/ext/index/X/block", "index.getLastAccepted", {"encoding": "hex"})["result"]
        container = unpack_container(checksum_hex.decode(result["bytes"]))
        assert result["index"] == "156"
        assert id_text(container.parent_id) == last_ids()["X"]
        with serving("node", tmp_path / "follower", f"--upstream={server.url()}", settings) as follower:
            until(lambda: heights(follower) == COUNTS | {"X": 157}, "the follower at the tip")
    before = digest(tmp_path / "data")
    for given in ("--no-demo", "--demo"):
        with serving("up", tmp_path, settings, given) as server:
            assert server.call(X, "avm.getHeight")["result"]["height"] == "157"
            assert server.call(X, "avm.getTx", {"txID": txid, "encoding": "hex"})["result"]["tx"]
    assert server.output().count("demo history imported") == 1
    assert digest(tmp_path / "data") == before


def test_without_the_demo_nothing_is_imported_now_or_later(tmp_path: Path) -> None:
    with serving("up", tmp_path, "--no-demo") as server:
        assert heights(server) == dict.fromkeys(COUNTS, 0)
        assert server.ask("GET", "/v1/chains", listener="data").json() == {"chains": []}
        assert "replay" not in server.output()
    with serving("up", tmp_path, "--demo") as server:
        assert heights(server) == dict.fromkeys(COUNTS, 0), "the network has begun without a history"


def containers_stored(data_dir: Path) -> int:
    try:
        with closing(sqlite3.connect(f"file:{store_path(data_dir)}?mode=ro", uri=True)) as connection:
            return int(connection.execute("select count(*) from container where series <> 4").fetchone()[0])
    except sqlite3.OperationalError:
        return 0


@pytest.mark.parametrize("seed", range(int(os.environ.get("ICEFALL_FUZZ_SEEDS", "1"))))
def test_a_kill_in_the_middle_loses_nothing(seed: int, tmp_path: Path) -> None:
    data_dir = tmp_path / "data"
    chance = random.Random(seed)
    stops = sorted(chance.randrange(1, 210) for _ in range(3))
    for stop in stops:
        server = launch("up", tmp_path, "--demo")
        deadline = time.monotonic() + LIMIT_S
        while containers_stored(data_dir) < stop:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        kill_all(server)
        server.process.wait()
        assert containers_stored(data_dir) >= stop
    with serving("node", tmp_path, "--index-enabled=true") as server:  # what was begun is finished, by whatever verb
        assert heights(server) == COUNTS
        assert stored_utxos(data_dir) == final_utxos()
        assert containers_stored(data_dir) == sum(COUNTS.values())
