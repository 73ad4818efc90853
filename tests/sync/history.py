"""scenario-1 followed into a real store: its containers in the order the recorded node accepted them."""

import gzip
import json
import re
from collections import defaultdict
from functools import cache
from graphlib import TopologicalSorter
from itertools import pairwise
from pathlib import Path
from typing import Any

from icefall.compose.node_setup import configured_network, node_logs
from icefall.config.load import load
from icefall.config.settings import Config
from icefall.db.engine import Transaction
from icefall.db.sqlite import SqliteStore
from icefall.node import index
from icefall.node.identity import ensure_identity
from icefall.node.store import PACKAGE, StartRequest, admit, store_path
from icefall.node.sync.foreign import ForeignChain, ForeignContainer
from icefall.primary.chains import index_x
from icefall.wire.avm.codec import unpack_utxo
from icefall.wire.container.coreth import unpack_coreth_block
from icefall.wire.container.platform import unpack_platform_block
from icefall.wire.container.proposer import ForeignBlock, unpack_container
from icefall.wire.ids import input_id
from icefall.wire.text import checksum_hex
from icefall.xchain.ledger import Ledger
from icefall.xchain.model import NewUtxo, owners_of
from icefall.xchain.replayed import FollowedLedger, ReceivedContainer
from icefall.xchain.store import put_atomic

VECTORS = Path(__file__).parent.parent / "vectors" / "scenario-1"
START = 1794753768  # the recorded node's first second: decides P's first block


def _rows(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in gzip.decompress((VECTORS / name).read_bytes()).splitlines()]


@cache
def containers() -> list[dict[str, Any]]:
    return sorted(_rows("containers.jsonl.gz"), key=lambda row: (row["timestamp"][:19], _fraction(row["timestamp"])))


def _fraction(timestamp: str) -> str:
    return timestamp[20:].rstrip("Z").ljust(9, "0")


@cache
def calls() -> list[dict[str, Any]]:
    return _rows("calls.jsonl.gz")


def exported(block: ForeignBlock, destination: bytes) -> list[NewUtxo]:
    found = []
    for export in block.exports_to(destination):
        utxo = unpack_utxo(export.utxo_raw)
        found.append(NewUtxo(export.utxo_id, utxo, export.utxo_raw, owners_of(utxo.output)))
    return found


async def followed(directory: Path) -> Config:
    """A data directory that holds the whole recorded history."""
    config = load("node", [f"--data-dir={directory}", "--dialect=live", "--index-enabled=true"], {}, directory).config
    (directory / "run").mkdir(parents=True)
    network = configured_network(config, START)
    node_logs(config, "engine", network, create=True)
    ensure_identity(directory / "staking")
    store = SqliteStore(store_path(directory), PACKAGE)
    await store.write(lambda tx: admit(tx, StartRequest(config.network_id, False, True, False), START))
    spec = network.asset_chains[0]
    ledger = Ledger(store, spec.rules, spec.genesis, spec.block_0, network.subnet_of, index_x)
    await ledger.start()
    x = FollowedLedger(ledger)
    by_name = {chain.name: chain for chain in network.chains}
    foreign = {
        name: ForeignChain(store, name, by_name[name].chain_id, by_name[name].genesis_block_id, index.BLOCKS_OF[name])
        for name in ("P", "C")
    }
    for row in containers():
        container = unpack_container(checksum_hex.decode(row["bytes"]))
        if row["chain"] == "X":
            await x.accept([ReceivedContainer(container.container_id, container.raw, container.inner)])
            continue
        unpack = unpack_platform_block if row["chain"] == "P" else unpack_coreth_block
        block, chain = unpack(container.inner), foreign[row["chain"]]
        exports = exported(block, spec.chain.chain_id)

        def hand_on(tx: Transaction, source: bytes = chain.chain_id, given: list[NewUtxo] = exports) -> None:
            put_atomic(tx, spec.chain.chain_id, source, given)

        received = ForeignContainer(container.container_id, container.raw, block.block_id, block.height)
        await chain.accept([received], hand_on)
    await store.write(_as_recorded)
    store.close()
    return config


def _as_recorded(tx: Transaction) -> None:
    """Inside one block the recorded node's order of outputs is random, ours is not. Take over its draw, as its answers
    to plain questions about one address show it, so that everything that follows from the order can be compared."""
    order: dict[bytes, set[bytes]] = defaultdict(set)
    newest_first: list[bytes] = []
    for row in calls():
        page = re.match(r"(?:one|dust) limit=None src=None page=(\d+)", row["note"])
        if page is None:
            continue
        answered = [_utxo_id(text) for text in json.loads(row["response"]["body"])["result"]["utxos"]]
        newest_first = answered if page[1] == "0" else newest_first + answered
        for newer, older in pairwise(newest_first):
            order[newer].add(older)
    oldest_first = TopologicalSorter(order).static_order()
    places: dict[bytes, int] = dict(tx.rows("select utxo_id, position from utxo"))
    drawn = [utxo_id for utxo_id in oldest_first if utxo_id in places]
    heights: dict[bytes, int] = dict(tx.rows("select txid, height from ledger_tx"))
    by_height: dict[int, list[bytes]] = defaultdict(list)
    raws: dict[bytes, bytes] = dict(tx.rows("select utxo_id, bytes from utxo"))
    for utxo_id in drawn:
        by_height[heights[raws[utxo_id][2:34]]].append(utxo_id)
    moved = []
    for same_block in by_height.values():
        free = sorted(places[utxo_id] for utxo_id in same_block)
        moved += [(-place, places[utxo_id]) for utxo_id, place in zip(same_block, free, strict=True)]
    for table in ("utxo", "utxo_owner"):
        tx.run_many(f"update {table} set position = ? where position = ?", moved)
        tx.run(f"update {table} set position = -position where position < 0")


def _utxo_id(text: str) -> bytes:
    utxo = unpack_utxo(checksum_hex.decode(text))
    return input_id(utxo.txid, utxo.output_index)
