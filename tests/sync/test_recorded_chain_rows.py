"""The recorded probes of the asset chain and the index (recordings of the HTTP interface), in the live dialect: on a
fresh node, and on one that holds the five blocks the recorded node held."""

import asyncio
import calendar
import json
import time
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from tests.api.recording import Row, difference, rows, send
from tests.server import Server, serving
from tests.sync.history import START

from icefall.compose.node_setup import configured_network
from icefall.config.load import load
from icefall.db.sqlite import SqliteStore
from icefall.node import index
from icefall.node.store import PACKAGE, StartRequest, admit, store_path
from icefall.primary.chains import index_x
from icefall.wire.container.proposer import unpack_container
from icefall.wire.text import checksum_hex
from icefall.xchain.ledger import Ledger
from icefall.xchain.replayed import FollowedLedger, ReceivedContainer

LIVE = ("--dialect=live", "--index-enabled=true", "--api-admin-enabled=true")
EMPTY = ("index_empty",)
FIVE_BLOCKS = ("index_pop", "addr_cb58", "restart_tz", "verify")
OTHERS = "other networks of the recorder: two nodes, or a C-Chain with blocks"


@cache
def containers() -> dict[int, tuple[bytes, int]]:
    """The five X blocks and when they were accepted, taken from answers about them."""
    found: dict[int, tuple[bytes, int]] = {}
    for row in rows(("index",)):
        if row.part != "index_pop" or row.request.path != "/ext/index/X/block" or '"bytes"' not in row.response.body:
            continue
        result = json.loads(row.response.body)["result"]
        for container in result.get("containers", [result]):
            if container["encoding"] == "hex":
                found[int(container["index"])] = checksum_hex.decode(container["bytes"]), _ns(container["timestamp"])
    assert sorted(found) == [0, 1, 2, 3, 4]
    return found


def _ns(timestamp: str) -> int:
    """`2026-11-15T14:28:21.0063839Z`, to the nanosecond."""
    seconds, _, fraction = timestamp.rstrip("Z").partition(".")
    whole = calendar.timegm(time.strptime(seconds, "%Y-%m-%dT%H:%M:%S"))
    return whole * 10**9 + int(fraction.ljust(9, "0"))


async def grown(data_dir: Path) -> None:
    data_dir.mkdir(parents=True)
    config = load("node", [f"--data-dir={data_dir}"], {}, data_dir).config
    network = configured_network(config, START)
    store = SqliteStore(store_path(data_dir), PACKAGE)
    await store.write(lambda tx: admit(tx, StartRequest(config.network_id, False, True, False), START))
    spec = network.asset_chains[0]
    ledger = Ledger(store, spec.rules, spec.genesis, spec.block_0, network.subnet_of, index_x)
    await ledger.start()
    for number, (raw, accepted_ns) in sorted(containers().items()):
        container = unpack_container(raw)
        await FollowedLedger(ledger).accept([ReceivedContainer(container.container_id, container.raw, container.inner)])
        values = (accepted_ns, index.X_BLOCK.number, number)
        await store.write(
            lambda tx, row=values: tx.run("update container set accepted_ns = ? where series = ? and number = ?", row)  # type: ignore[misc]
        )
    store.close()


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving("node", tmp_path_factory.mktemp("fresh"), *LIVE) as server:
        yield server


@pytest.fixture(scope="module")
def five(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    directory = tmp_path_factory.mktemp("five")
    asyncio.run(grown(directory / "data"))
    with serving("node", directory, *LIVE) as server:
        yield server


def explained(row: Row) -> str | None:
    body = row.response.body
    if '"txs":null' in body or '"credentials":null' in body:
        return "null for the empty lists of its own genesis"
    if row.request.path == "/ext/index/X/tx" and row.part in FIVE_BLOCKS:
        return "X/tx is fed from blocks here"
    if "getAddressTxs" in row.request.body or row.request.path.endswith("/wallet"):
        return "avm.getAddressTxs exists here, /wallet does not"
    if row.part not in ("index_empty", "index_pop") and ('"utxos":["0x' in body or '"balance":"2' in body):
        return "by then the recorded chain had grown"
    return None


def compare(server: Server, parts: tuple[str, ...]) -> None:
    reasons: Counter[str] = Counter()
    wrong, equal = [], 0
    with server.wire() as wire:
        for row in rows(("avm", "index")):
            if row.part not in parts:
                continue
            reason = explained(row)
            if reason:
                reasons[reason] += 1
                continue
            text = difference(row, send(row, wire), server.data_dir)
            if text:
                wrong.append(f"{row.n} {row.note} {row.request.path} {row.request.body[:200]}: {text}")
            else:
                equal += 1
    print(f"{equal} equal, {dict(reasons)}")
    assert not wrong, f"{len(wrong)} differ:\n" + "\n".join(wrong[:12])
    assert equal > 500


def test_a_fresh_node_answers_as_recorded(fresh: Server) -> None:
    compare(fresh, EMPTY)


def test_a_node_with_the_recorded_blocks_answers_as_recorded(five: Server) -> None:
    compare(five, FIVE_BLOCKS)


def test_every_row_is_accounted_for() -> None:
    parts = {row.part for row in rows(("avm", "index"))}
    assert parts - set(EMPTY) - set(FIVE_BLOCKS) == {"catchup", "index_c", "pair", "verify2"}, OTHERS
