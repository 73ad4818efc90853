"""Every rule of the published interface for the asset chain, on scenario-1 as it was followed."""

import asyncio
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.sync.expected import (
    GENESIS,
    accepted,
    assets,
    blocks,
    holders,
    owned,
    text_of,
    txs,
    unspent,
    utxo_id_of,
    waiting,
)
from tests.sync.followed_node import Followed, Node, X, node_after_following

from icefall.config.settings import Config
from icefall.db.sqlite import SqliteStore
from icefall.ipc.socket import SocketServer, socket_path
from icefall.node.store import PACKAGE, store_path
from icefall.wire.avm.types import CreateAssetTx, ExportTx, ImportTx, TransferOutput
from icefall.wire.ids import PLATFORM_CHAIN, id_from_text, id_text, input_id
from icefall.wire.text import checksum_hex
from icefall.xchain.mempool import Refusal
from icefall.xchain.store import put_refusals

LIMIT_MAX = 1024
UINT64_MAX = (1 << 64) - 1
UNUSED_ID = b"\xfe" * 32


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Followed:
    return node_after_following(tmp_path_factory.mktemp("rules"))


@pytest.fixture(scope="module")
def node(history: Followed) -> Node:
    return history.node


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
    await store.write(lambda tx: put_refusals(tx, 1, [Refusal(rejected, "because", is_final=True)]))
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


@pytest.mark.parametrize("source", ["P", "C"])
def test_a_start_in_the_list_of_another_address_means_the_beginning(node: Node, source: str) -> None:
    exported = waiting(source)
    tried = 0
    for address in {address for utxo in exported.values() for address in utxo.output.owners.addresses}:
        for utxo_id in exported.keys() - owned(exported, address):
            start = {"address": text_of(address), "utxo": id_text(utxo_id)}
            page = utxos(node, address, sourceChain=source, startIndex=start)
            assert {utxo_id_of(text) for text in page["utxos"]} == owned(exported, address)
            tried += 1
    assert tried


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
