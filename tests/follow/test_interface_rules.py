"""Every rule of the published interface for the index and the asset chain, on scenario-1 as it was followed.

What must come out is worked out here once more from the recorded containers alone, with no store in between.
"""

import asyncio
import json
import re
import time
from collections import defaultdict
from collections.abc import Iterator
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest
from tests.follow.history import containers, followed

from icefall.api.asgi import AsgiApp
from icefall.config.settings import Config
from icefall.db.sqlite import SqliteStore
from icefall.ipc.socket import SocketServer, socket_path
from icefall.node.identity import ensure_identity
from icefall.node.store import PACKAGE, store_path
from icefall.run.worker import build_app
from icefall.wire.address import address_text
from icefall.wire.avm.codec import genesis_txs, unpack_block, unpack_genesis, unpack_utxo
from icefall.wire.avm.types import Block, CreateAssetTx, ExportTx, ImportTx, TransferOutput, Tx, Utxo
from icefall.wire.avm.utxos import consumed, imported, produced
from icefall.wire.container.coreth import unpack_coreth_block
from icefall.wire.container.platform import unpack_platform_block
from icefall.wire.container.proposer import Container, unpack_container
from icefall.wire.genesis.network import network_genesis, packaged_genesis
from icefall.wire.ids import PLATFORM_CHAIN, hash256, id_from_text, id_text, input_id
from icefall.wire.text import checksum_hex
from icefall.xchain.store import put_refusals

X = "/ext/bc/X"
BLOCK_PATHS = ("/ext/index/C/block", "/ext/index/P/block", "/ext/index/X/block")
X_TX, X_VTX = "/ext/index/X/tx", "/ext/index/X/vtx"
PATHS = (*BLOCK_PATHS, X_TX, X_VTX)
FULL_PATHS = (*BLOCK_PATHS, X_TX)
LIMIT_MAX = 1024
UINT64_MAX = (1 << 64) - 1
ISO_8601 = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)")
UNUSED_ID = b"\xfe" * 32
GENESIS = network_genesis(packaged_genesis(12345), 12345, 1_794_753_768)


# -- what must come out ----------------------------------------------------------------------------------------------


@cache
def accepted(chain: str) -> list[Container]:
    return [unpack_container(checksum_hex.decode(row["bytes"])) for row in containers() if row["chain"] == chain]


@cache
def blocks() -> list[Block]:
    return [unpack_block(container.inner) for container in accepted("X")]


@cache
def txs() -> list[Tx]:
    return [tx for block in blocks() for tx in block.txs]


@cache
def assets() -> list[Tx]:
    return [*genesis_txs(unpack_genesis(GENESIS.x_genesis)), *txs()]


@cache
def unspent() -> dict[bytes, Utxo]:
    made = {input_id(utxo.txid, utxo.output_index): utxo for tx in assets() for utxo in produced(tx)}
    for tx in txs():
        for at in consumed(tx):
            del made[input_id(at.txid, at.output_index)]
    return made


@cache
def waiting(source: str) -> dict[bytes, Utxo]:
    """What P or C has exported to X, and X has not imported."""
    unpack = unpack_platform_block if source == "P" else unpack_coreth_block
    found = {
        export.utxo_id: unpack_utxo(export.utxo_raw)
        for container in accepted(source)
        for export in unpack(container.inner).exports_to(GENESIS.x_chain_id)
    }
    for tx in txs():
        for at in imported(tx):
            found.pop(input_id(at.txid, at.output_index), None)
    return found


def owned(utxos: dict[bytes, Utxo], *addresses: bytes) -> set[bytes]:
    return {utxo_id for utxo_id, utxo in utxos.items() if set(utxo.output.owners.addresses) & set(addresses)}


@cache
def holders() -> list[bytes]:
    """Every address of the history, the one that holds most first."""
    known = {address for utxo in unspent().values() for address in utxo.output.owners.addresses}
    return sorted(known, key=lambda address: (-len(owned(unspent(), address)), address))


def text_of(address: bytes) -> str:
    return address_text("X", "local", address)


def utxo_id_of(text: str) -> bytes:
    utxo = unpack_utxo(checksum_hex.decode(text))
    return input_id(utxo.txid, utxo.output_index)


# -- asking ----------------------------------------------------------------------------------------------------------


class Answer(NamedTuple):
    """`result` is missing when there is an error."""

    value: dict[str, Any]
    headers: dict[str, str]

    @property
    def result(self) -> Any:
        return self.value["result"]

    @property
    def failed(self) -> str:
        """The error's message."""
        assert "result" not in self.value
        assert isinstance(self.value["error"]["code"], int)
        return str(self.value["error"]["message"])


class Node:
    """The followed store, queried in process."""

    def __init__(self, config: Config) -> None:
        self.config = config
        ensure_identity(Path(config.data_dir) / "staking")  # as the engine does
        self._app = AsgiApp(build_app("node", config, with_engine=True))

    def ask(self, path: str, method: str, **params: Any) -> Answer:
        return asyncio.run(self.asked(path, method, **params))

    async def asked(self, path: str, method: str, **params: Any) -> Answer:
        call = {"jsonrpc": "2.0", "id": 7, "method": method} | ({"params": params} if params else {})
        sent: list[dict[str, Any]] = []

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": json.dumps(call).encode()}

        async def send(message: dict[str, Any]) -> None:
            sent.append(message)

        headers = [(b"host", b"127.0.0.1:9650"), (b"content-type", b"application/json")]
        scope = {"type": "http", "method": "POST", "path": path, "query_string": b"", "headers": headers}
        await self._app(scope, receive, send)
        start, body = sent
        assert start["status"] == 200, body
        value = json.loads(body["body"])
        assert set(value) in ({"jsonrpc", "id", "result"}, {"jsonrpc", "id", "error"})
        assert (value["jsonrpc"], value["id"]) == ("2.0", 7)
        return Answer(value, {name.decode(): text.decode() for name, text in start["headers"]})

    def walk(self, path: str, step: int = 100) -> Iterator[dict[str, Any]]:
        """A whole index, in ranges."""
        last = int(self.ask(path, "index.getLastAccepted", encoding="hex").result["index"])
        for start in range(0, last + 1, step):
            answer = self.ask(path, "index.getContainerRange", startIndex=start, numToFetch=step, encoding="hex")
            assert isinstance(answer.result, list)
            yield from answer.result


class Followed(NamedTuple):
    node: Node
    began: float
    ended: float


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Followed:
    began = time.time()
    config = asyncio.run(followed(tmp_path_factory.mktemp("rules")))
    return Followed(Node(msgspec.structs.replace(config, dialect="interface")), began, time.time())


@pytest.fixture(scope="module")
def node(history: Followed) -> Node:
    return history.node


# -- the index -------------------------------------------------------------------------------------------------------


def expected_ids(path: str) -> list[bytes]:
    if path == X_TX:
        return [tx.txid for tx in txs()]
    return [container.container_id for container in accepted(path.split("/")[3])]


@pytest.mark.parametrize("path", FULL_PATHS)
def test_containers_have_the_fields_of_the_interface_and_no_others(history: Followed, path: str) -> None:
    rows, before = list(history.node.walk(path)), history.began
    assert [id_from_text(row["id"]) for row in rows] == expected_ids(path)
    for number, row in enumerate(rows):
        assert set(row) == {"id", "bytes", "timestamp", "encoding", "index"}
        assert all(isinstance(value, str) for value in row.values())
        assert (row["encoding"], row["index"]) == ("hex", str(number))
        raw = checksum_hex.decode(row["bytes"])  # with its checksum
        assert id_from_text(row["id"]) == (hash256(raw) if path == X_TX else unpack_container(raw).container_id)
        assert ISO_8601.fullmatch(row["timestamp"])
        moment = datetime.fromisoformat(row["timestamp"][:19] + row["timestamp"][19:].lstrip(".0123456789")).timestamp()
        assert before - 1 <= moment <= history.ended  # when this node accepted it, in order
        before = max(before, moment)


@pytest.mark.parametrize("path", FULL_PATHS)
def test_a_container_is_found_by_id_by_number_and_as_the_last(node: Node, path: str) -> None:
    rows = list(node.walk(path))
    for row in (rows[0], rows[len(rows) // 2], rows[-1]):
        assert node.ask(path, "index.getContainerByID", id=row["id"], encoding="hex").result == row
        assert node.ask(path, "index.getContainerByIndex", index=row["index"], encoding="hex").result == row
        assert node.ask(path, "index.getContainerByIndex", index=int(row["index"])).result == row
        assert node.ask(path, "index.getIndex", id=row["id"], encoding="hex").result == {"index": row["index"]}
        assert node.ask(path, "index.isAccepted", id=row["id"], encoding="hex").result == {"isAccepted": True}
    assert node.ask(path, "index.getLastAccepted", encoding="hex").result == rows[-1]


@pytest.mark.parametrize("path", PATHS)
def test_what_was_never_accepted_is_not_found(node: Node, path: str) -> None:
    unused = id_text(UNUSED_ID)
    assert node.ask(path, "index.isAccepted", id=unused, encoding="hex").result == {"isAccepted": False}
    assert node.ask(path, "index.getIndex", id=unused, encoding="hex").failed
    assert node.ask(path, "index.getContainerByID", id=unused, encoding="hex").failed
    assert node.ask(path, "index.getContainerByIndex", index="100000", encoding="hex").failed


def count_of(path: str) -> int:
    return 0 if path == X_VTX else len(expected_ids(path))


def ranged(node: Node, path: str, start: int, count: int) -> Answer:
    return node.ask(path, "index.getContainerRange", startIndex=str(start), numToFetch=str(count), encoding="hex")


@pytest.mark.parametrize("path", PATHS)
def test_range_rule_1_a_count_of_zero_is_null(node: Node, path: str) -> None:
    for start in (0, count_of(path), 1 << 40):
        assert ranged(node, path, start, 0).result is None


@pytest.mark.parametrize("path", PATHS)
def test_range_rule_2_a_start_behind_the_last_is_an_error(node: Node, path: str) -> None:
    for start in (count_of(path), count_of(path) + 1, 1 << 63, (1 << 64) - 1):
        assert ranged(node, path, start, 1).failed


@pytest.mark.parametrize("path", PATHS)
def test_range_rule_3_more_than_1024_is_an_error(node: Node, path: str) -> None:
    for count in (1025, 1 << 32, (1 << 64) - 1):
        assert "[0,1024]" in ranged(node, path, 0, count).failed
    if path != X_VTX:
        assert len(ranged(node, path, 0, 1024).result) == count_of(path)


@pytest.mark.parametrize("path", FULL_PATHS)
def test_range_rule_4_where_fewer_exist_those_are_returned(node: Node, path: str) -> None:
    last = count_of(path) - 1
    assert [row["index"] for row in ranged(node, path, last - 2, 1024).result] == [str(last - 2 + n) for n in range(3)]
    assert [row["index"] for row in ranged(node, path, last, 2).result] == [str(last)]
    assert [row["index"] for row in ranged(node, path, 1, 2).result] == ["1", "2"]


def test_vertices_are_readable_and_there_are_none(node: Node) -> None:
    for method in ("index.getLastAccepted", "index.getContainerByIndex"):
        assert node.ask(X_VTX, method, encoding="hex").failed
    assert ranged(node, X_VTX, 0, 1).failed == "no containers have been accepted"


def test_transactions_are_read_in_order_through_the_index(node: Node) -> None:
    """As the interface describes it: IDs by index from X/tx, then avm.getTx with each."""
    for number, tx in enumerate(txs()):
        row = node.ask(X_TX, "index.getContainerByIndex", index=str(number), encoding="hex").result
        result = node.ask(X, "avm.getTx", txID=row["id"]).result
        assert result == {"tx": row["bytes"], "encoding": "hex"}
        assert checksum_hex.decode(result["tx"]) == tx.raw


# -- the asset chain: blocks and transactions ------------------------------------------------------------------------


def test_blocks_by_their_own_id_by_their_containers_and_by_height(node: Node) -> None:
    for container, block in zip(accepted("X"), blocks(), strict=True):
        expected = {"block": checksum_hex.encode(block.raw), "encoding": "hex"}
        assert node.ask(X, "avm.getBlock", blockID=id_text(block.block_id)).result == expected
        assert node.ask(X, "avm.getBlock", blockID=id_text(container.container_id), encoding="hex").result == expected
        assert node.ask(X, "avm.getBlockByHeight", height=str(block.height)).result == expected
    as_json = node.ask(X, "avm.getBlock", blockID=id_text(block.block_id), encoding="json").result
    assert as_json["encoding"] == "json"
    assert (as_json["block"]["id"], as_json["block"]["height"]) == (id_text(block.block_id), block.height)
    assert [tx["id"] for tx in as_json["block"]["txs"]] == [id_text(tx.txid) for tx in block.txs]


def test_the_height_is_the_last_blocks_under_every_name_of_the_chain(node: Node) -> None:
    for path in (X, f"/ext/bc/{id_text(GENESIS.x_chain_id)}"):
        assert node.ask(path, "avm.getHeight").result == {"height": str(len(blocks()))}


def test_transactions_as_json(node: Node) -> None:
    base = {"networkID", "blockchainID", "outputs", "inputs", "memo"}
    more = {ImportTx: {"sourceChain", "importedInputs"}, ExportTx: {"destinationChain", "exportedOutputs"}}
    for tx in txs():
        result = node.ask(X, "avm.getTx", txID=id_text(tx.txid), encoding="json").result
        assert result["encoding"] == "json"
        assert {"unsignedTx", "credentials", "id"} <= set(result["tx"])
        assert result["tx"]["id"] == id_text(tx.txid)
        unsigned = result["tx"]["unsignedTx"]
        assert base | more.get(type(tx.unsigned), set()) <= set(unsigned)
        assert (unsigned["networkID"], unsigned["blockchainID"]) == (12345, id_text(GENESIS.x_chain_id))
        for output in unsigned["outputs"]:
            assert {"assetID", "fxID", "output"} <= set(output)
            assert {"addresses", "amount", "locktime", "threshold"} <= set(output["output"])
        for given in unsigned["inputs"]:
            assert {"txID", "outputIndex", "assetID", "fxID", "input"} <= set(given)
            assert {"amount", "signatureIndices"} <= set(given["input"])
        for credential in result["tx"]["credentials"]:
            assert set(credential) == {"fxID", "credential"}
            assert all(signature.startswith("0x") for signature in credential["credential"]["signatures"])


def test_all_four_states_of_a_transaction(node: Node) -> None:
    asyncio.run(_all_four_states(node.config))


async def _all_four_states(config: Config) -> None:
    processing, rejected = b"\x01" * 32, b"\x02" * 32
    data_dir = Path(config.data_dir)
    store = SqliteStore(store_path(data_dir), PACKAGE)
    await store.write(lambda tx: put_refusals(tx, 1, [(rejected, "because")]))
    store.close()
    commands = {"tx_state": lambda chain, txid: "Processing" if txid == processing else ""}
    engine = SocketServer(socket_path(data_dir), commands, lambda: lambda: None)
    await engine.start()
    node = Node(config)
    try:
        for txid, status in (
            (txs()[0].txid, "Accepted"),
            (txs()[-1].txid, "Accepted"),
            (processing, "Processing"),
            (rejected, "Rejected"),
            (UNUSED_ID, "Unknown"),
        ):
            answer = await node.asked(X, "avm.getTxStatus", txID=id_text(txid))
            assert answer.result == {"status": status}
            assert answer.headers["deprecation"] == "true"
    finally:
        await engine.stop()


# -- the asset chain: UTXOs ------------------------------------------------------------------------------------------


def utxos(node: Node, *addresses: bytes, **more: Any) -> dict[str, Any]:
    result = node.ask(X, "avm.getUTXOs", addresses=[text_of(address) for address in addresses], **more).result
    fields = {"numFetched", "utxos", "endIndex", "encoding"} | ({"sourceChain"} if "sourceChain" in more else set())
    assert set(result) == fields
    assert set(result["endIndex"]) == {"address", "utxo"}
    assert result["encoding"] == "hex"
    assert result["numFetched"] == str(len(result["utxos"]))
    assert len(set(result["utxos"])) == len(result["utxos"])  # within one call each comes once
    assert isinstance(result, dict)
    return result


def pages(node: Node, *addresses: bytes, limit: int, **more: Any) -> Iterator[list[bytes]]:
    """Rule 4: the end of a page is the start of the next; a page that is not full is the last."""
    start: dict[str, Any] = {}
    while True:
        page = utxos(node, *addresses, limit=limit, **start, **more)
        yield [utxo_id_of(text) for text in page["utxos"]]
        if int(page["numFetched"]) < limit:
            return
        start = {"startIndex": page["endIndex"]}


def test_utxos_rule_1_each_references_a_requested_address(node: Node) -> None:
    for address in holders():
        expected = owned(unspent(), address)
        found = [utxo_id for page in pages(node, address, limit=LIMIT_MAX) for utxo_id in page]
        assert set(found) == expected
    several = holders()[1:6]
    assert {utxo_id_of(text) for text in utxos(node, *several)["utxos"]} == owned(unspent(), *several)


def test_utxos_rule_2_at_most_the_limit_and_never_more_than_1024(node: Node) -> None:
    rich = holders()[0]
    assert len(owned(unspent(), rich)) > LIMIT_MAX
    assert utxos(node, rich)["numFetched"] == "1024"
    for limit, count in ((1, 1), (10, 10), (1023, 1023), (1024, 1024), (1025, 1024), (2**32 - 1, 1024)):
        assert utxos(node, rich, limit=limit)["numFetched"] == str(count)


@pytest.mark.parametrize("source", ["P", "C"])
def test_utxos_rule_3_what_another_chain_exported(node: Node, source: str) -> None:
    exported = waiting(source)
    everyone = sorted({address for utxo in exported.values() for address in utxo.output.owners.addresses})
    assert everyone
    chain_id = PLATFORM_CHAIN if source == "P" else GENESIS.c_chain_id
    for name in (source, id_text(chain_id)):
        page = utxos(node, *everyone, sourceChain=name)
        assert page["sourceChain"] == name
        assert {utxo_id_of(text) for text in page["utxos"]} == owned(exported, *everyone)
    for address in everyone:
        page = utxos(node, address, sourceChain=source)
        assert {utxo_id_of(text) for text in page["utxos"]} == owned(exported, address)
        paged = {utxo_id for part in pages(node, address, limit=2, sourceChain=source) for utxo_id in part}
        assert paged == owned(exported, address)


@pytest.mark.parametrize("limit", [7, 100, 1024])
def test_utxos_rule_4_pages_lead_through_all_of_them(node: Node, limit: int) -> None:
    for addresses in (holders()[:1], holders()[1:3], holders()[:4]):
        found = [utxo_id for page in pages(node, *addresses, limit=limit) for utxo_id in page]
        assert set(found) == owned(unspent(), *addresses)
        if len(addresses) == 1:  # rule 5: only what several addresses share may come again on another page
            assert len(found) == len(set(found))


def test_utxos_rule_6_without_a_start_they_come_from_the_beginning(node: Node) -> None:
    rich = holders()[0]
    whole = utxos(node, rich)["utxos"]
    for limit in (1, 10, 500):
        assert utxos(node, rich, limit=limit)["utxos"] == whole[:limit]


# -- the asset chain: assets, balances, fees --------------------------------------------------------------------------


def spendable(address: bytes) -> dict[bytes, dict[bytes, int]]:
    """By asset, the amounts of what the address can spend now and alone."""
    found: dict[bytes, dict[bytes, int]] = defaultdict(dict)
    for utxo_id in owned(unspent(), address):
        utxo = unspent()[utxo_id]
        owners = utxo.output.owners
        alone = owners.addresses == (address,) and owners.locktime <= time.time()
        if isinstance(utxo.output, TransferOutput) and alone:
            found[utxo.asset_id][utxo_id] = utxo.output.amount
    return found


def test_balances_are_the_sum_of_the_outputs_they_name(node: Node) -> None:
    overflown = 0
    for address in holders():
        answer = node.ask(X, "avm.getAllBalances", address=text_of(address))
        assert answer.headers["deprecation"] == "true"
        assert set(answer.result) == {"balances"}
        assert all(set(row) == {"asset", "balance"} for row in answer.result["balances"])
        balances = {row["asset"]: row["balance"] for row in answer.result["balances"]}
        expected = spendable(address)
        named = {"AVAX" if asset == GENESIS.avax_asset_id else id_text(asset): asset for asset in expected}
        assert set(balances) == set(named)
        for name, asset_id in named.items():
            total = sum(expected[asset_id].values())
            assert balances[name] == str(min(total, UINT64_MAX))
            one = node.ask(X, "avm.getBalance", address=text_of(address), assetID=name)
            assert one.headers["deprecation"] == "true"
            if total > UINT64_MAX:  # a number that its type cannot hold
                assert one.failed == "overflow"
                overflown += 1
                continue
            assert set(one.result) == {"balance", "utxoIDs"}
            assert one.result["balance"] == str(total)
            assert all(set(at) == {"txID", "outputIndex"} for at in one.result["utxoIDs"])
            found = {input_id(id_from_text(at["txID"]), at["outputIndex"]) for at in one.result["utxoIDs"]}
            assert found == set(expected[asset_id])
    assert overflown


def test_every_asset_is_described(node: Node) -> None:
    made = [tx for tx in assets() if isinstance(tx.unsigned, CreateAssetTx)]
    assert len(made) > 1
    for tx in made:
        asset = tx.unsigned
        assert isinstance(asset, CreateAssetTx)
        result = node.ask(X, "avm.getAssetDescription", assetID=id_text(tx.txid)).result
        assert result == {
            "assetID": id_text(tx.txid),
            "name": asset.name,
            "symbol": asset.symbol,
            "denomination": str(asset.denomination),
        }
    by_name = node.ask(X, "avm.getAssetDescription", assetID="AVAX").result
    assert by_name["assetID"] == id_text(GENESIS.avax_asset_id)


def test_fees(node: Node) -> None:
    assert node.ask(X, "avm.getTxFee").result == {"txFee": "1000000", "createAssetTxFee": "1000000"}


def test_what_is_not_deprecated_does_not_say_so(node: Node) -> None:
    for method, params in (
        ("avm.getHeight", {}),
        ("avm.getTxFee", {}),
        ("avm.getTx", {"txID": id_text(txs()[0].txid)}),
        ("avm.getAssetDescription", {"assetID": "AVAX"}),
        ("avm.getUTXOs", {"addresses": [text_of(holders()[0])], "limit": 1}),
    ):
        assert "deprecation" not in node.ask(X, method, **params).headers
