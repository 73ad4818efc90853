"""A random history on a real store: the same seed gives the same history, in one go or after any number of crashes."""

import asyncio
import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from tests.store.opened import Tables, die_at, open_store, tables_of
from tests.xchain.wallet import NOW_S, Peered, Wallet

from icefall.compose.node_setup import configured_network
from icefall.config.load import load
from icefall.db.engine import Store, Transaction
from icefall.node.store import PACKAGE, meta, store_path
from icefall.node.store import SQL as NODE_SQL
from icefall.observe.log import LevelPage, Logs
from icefall.primary.chains import index_x
from icefall.wire.avm.codec import pack_utxo
from icefall.wire.avm.types import Tx
from icefall.wire.ids import input_id
from icefall.wire.text import checksum_hex
from icefall.xchain.chain import AssetChain, BlockPace
from icefall.xchain.ledger import Ledger
from icefall.xchain.model import NewUtxo, owners_of
from icefall.xchain.store import put_atomic

TXS_MAX = 8
QUIET = "OFF"


class Step(NamedTuple):
    """What peers export, then the transactions of one block."""

    received: list[Peered]
    txs: list[Tx]


def history(seed: int, blocks: int) -> Iterator[Step]:
    wallet = Wallet(seed, target=10 * TXS_MAX)
    first = wallet.fan_out(80)
    wallet.accepted()
    yield Step([], [first])
    for _ in range(blocks - 1):
        received = [wallet.receive() for _ in range(wallet.random.randrange(3))]
        txs = [wallet.tx() for _ in range(wallet.random.randint(1, TXS_MAX))]
        wallet.accepted()
        yield Step(received, txs)


class StoredChain:
    """A chain on a store of its own, with a clock that stands still unless another is given."""

    def __init__(self, directory: Path, store: Store | None = None, now: Callable[[], float] = lambda: NOW_S) -> None:
        config = load("node", [f"--data-dir={directory}"], {}, directory).config
        network = configured_network(config, NOW_S)
        spec = network.asset_chains[0]
        page = LevelPage.private(["X"])
        page.put("X", QUIET, QUIET)
        self.chain_id = spec.chain.chain_id
        self.store = store or open_store(store_path(directory), PACKAGE)
        ledger = Ledger(self.store, spec.rules, spec.genesis, spec.block_0, network.subnet_of, index_x)
        self.chain = AssetChain(ledger, BlockPace(), Logs("test", page, None, "plain")["X"], now=now)

    async def carry_on(self, steps: Iterator[Step]) -> None:
        """Do what is still to be done. Exports and blocks are commits of their own; each is done once."""
        await self.chain.ledger.start()
        done = int(await self.store.write(lambda tx: meta(tx, "received") or "0"))
        for number, step in enumerate(steps, 1):
            if number > done:
                await self.store.write(lambda tx, n=number, s=step: self._receive(tx, n, s))  # type: ignore[misc]
            if number > self.chain.ledger.height:
                for tx in step.txs:
                    await self.chain.issue(checksum_hex.encode(tx.raw), "hex")
                assert await self.chain.accept_pending()
                assert self.chain.ledger.height == number

    def _receive(self, tx: Transaction, number: int, step: Step) -> None:
        for peer_chain_id, utxo in step.received:
            utxo_id = input_id(utxo.txid, utxo.output_index)
            new = NewUtxo(utxo_id, utxo, pack_utxo(utxo), owners_of(utxo.output))
            put_atomic(tx, self.chain_id, peer_chain_id, [new])
        tx.run(NODE_SQL.put_meta, {"name": "received", "value": str(number)})


def digest(directory: Path) -> str:
    """Of every row of every table but those that tell of this run (checks, facts); acceptance times left out."""
    with tables_of(store_path(directory)) as tables:
        return digest_of(tables)


def digest_of(tables: Tables) -> str:
    total = hashlib.sha256()
    for table in tables.names():
        if table in ("health_result", "probe", "meta"):
            continue
        listed = ", ".join(column for column in tables.columns(table) if column != "accepted_ns")
        for row in tables.rows(table, listed, listed)[1]:
            total.update(repr((table, row)).encode())
    return total.hexdigest()


def run(directory: Path, seed: int, blocks: int, die: int | None = None) -> None:
    """Carry the history on from where it is in the store."""
    if die is not None:
        die_at(die)
    stored = StoredChain(directory)
    asyncio.run(stored.carry_on(history(seed, blocks)))
    stored.store.close()
