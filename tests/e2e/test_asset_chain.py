"""The asset chain as a user meets it: the real program, transactions through the RPC, a restart in between."""

from pathlib import Path
from typing import Any

from bench.history import ADDRESS
from bench.ledger import ADDRESS_TEXT, issue, richest, transfer
from tests.server import Server, serving
from tests.waiting import until

from icefall.wire.avm.codec import genesis_txs, pack_genesis
from icefall.wire.avm.types import CreateAssetTx, GenesisAsset, InitialState, Owners, TransferOutput
from icefall.wire.avm.utxos import produced
from icefall.wire.ids import EMPTY_ID, hash256, id_text
from icefall.wire.text import checksum_hex

X = "/ext/bc/X"


def status(server: Server, txid: str) -> str:
    return str(server.call(X, "avm.getTxStatus", {"txID": txid})["result"]["status"])


def result_of(server: Server, method: str, **params: Any) -> Any:
    return server.call(X, method, params)["result"]


def test_a_transaction_is_unknown_then_processing_then_accepted_and_its_rival_rejected(tmp_path: Path) -> None:
    with serving("node", tmp_path, "--block-time=5s") as server:
        first = transfer(richest(server), 3)
        pending = transfer(produced(first)[0], 2)
        rival = transfer(produced(first)[0], 4)
        issue(server, first)  # the first block comes at once, the next not before five seconds have passed
        assert status(server, id_text(pending.txid)) == "Unknown"
        assert result_of(server, "avm.issueTx", tx=checksum_hex.encode(pending.raw))["txID"] == id_text(pending.txid)
        assert status(server, id_text(pending.txid)) == "Processing"
        assert result_of(server, "avm.issueTx", tx=checksum_hex.encode(pending.raw))["txID"] == id_text(pending.txid)
        refused = server.call(X, "avm.issueTx", {"tx": checksum_hex.encode(rival.raw)})["error"]
        assert refused["message"] == f"tx conflicts with other tx: {id_text(rival.txid)}"
        until(lambda: status(server, id_text(pending.txid)) == "Accepted", "the second transaction's block")
        assert status(server, id_text(rival.txid)) == "Rejected"
    with serving("node", tmp_path) as server:
        assert status(server, id_text(pending.txid)) == "Accepted"
        assert status(server, id_text(rival.txid)) == "Rejected"


def test_blocks_keep_the_order_of_issue_and_their_bound(tmp_path: Path) -> None:
    with serving("node", tmp_path, "--block-time=1s", "--block-txs-max=2") as server:
        first = transfer(richest(server), 5)
        txs = [transfer(utxo, 1) for utxo in produced(first)]  # before the first block: the next comes a second later
        issue(server, first)
        for tx in txs:
            result_of(server, "avm.issueTx", tx=checksum_hex.encode(tx.raw))
        until(lambda: status(server, id_text(txs[-1].txid)) == "Accepted", "the last transaction's block")
        heights = range(2, int(result_of(server, "avm.getHeight")["height"]) + 1)
        blocks = [result_of(server, "avm.getBlockByHeight", height=str(n), encoding="json")["block"] for n in heights]
        accepted = [[tx["id"] for tx in block["txs"]] for block in blocks]
        assert [txid for block in accepted for txid in block] == [id_text(tx.txid) for tx in txs]
        assert max(len(block) for block in accepted) == 2
        assert [block["parentID"] for block in blocks[1:]] == [block["id"] for block in blocks[:-1]]


def test_the_history_of_an_address_page_by_page(tmp_path: Path) -> None:
    with serving("node", tmp_path) as server:
        expected = []
        for _ in range(5):
            expected.append(issue(server, transfer(richest(server), 2)))
        asset = result_of(server, "avm.getAssetDescription", assetID="AVAX")["assetID"]
        expected = [asset, *expected][::-1]
        for filtered in ({}, {"assetID": "AVAX"}, {"assetID": asset}):
            seen: list[str] = []
            cursor: dict[str, str] = {}
            while True:
                page = result_of(server, "avm.getAddressTxs", address=ADDRESS_TEXT, pageSize=2, **filtered, **cursor)
                seen += page["txIDs"]
                if "cursor" not in page:
                    break
                cursor = {"cursor": page["cursor"]}
            assert seen == expected
        nothing = result_of(server, "avm.getAddressTxs", address=ADDRESS_TEXT, assetID=expected[0])
        assert nothing == {"txIDs": []}


def test_deprecated_methods_say_so_in_a_header(tmp_path: Path) -> None:
    with serving("node", tmp_path) as server:
        body = b'{"jsonrpc":"2.0","id":1,"method":"%b"}'
        assert server.ask("POST", X, body % b"avm.getTxStatus").header("deprecation") == "true"
        assert server.ask("POST", X, body % b"avm.getHeight").header("deprecation") is None


def other_genesis() -> tuple[bytes, bytes]:
    """Genesis bytes of another instance with an asset of its own, and that asset's ID."""
    output = TransferOutput(10**15, Owners(0, 1, (ADDRESS,)))
    state = InitialState(0, (output,))
    asset = CreateAssetTx(12345, EMPTY_ID, (), (), b"", "Dex Token", "DEX", 6, (state,))
    row = GenesisAsset("DEX", asset)
    return pack_genesis([row]), genesis_txs([row])[0].txid


def test_another_instance_with_its_own_genesis(tmp_path: Path) -> None:
    genesis, asset_id = other_genesis()
    chain_id = id_text(hash256(b"another chain"))
    (tmp_path / "dex.hex").write_text("0x" + genesis.hex() + "\n")
    config = tmp_path / "icefall.toml"
    config.write_text(f'[[asset_chain]]\nid = "{chain_id}"\ngenesis = "dex.hex"\naliases = ["dex"]\n')
    with serving("node", tmp_path, f"--config-file={config}") as server:
        for name in (chain_id, "dex"):
            answer = server.call(f"/ext/bc/{name}", "avm.getAssetDescription", {"assetID": "DEX"})["result"]
            assert answer == {"assetID": id_text(asset_id), "name": "Dex Token", "symbol": "DEX", "denomination": "6"}
        address = "dex-local1" + ADDRESS_TEXT.partition("-local1")[2]
        balance = server.call("/ext/bc/dex", "avm.getBalance", {"address": address, "assetID": "DEX"})["result"]
        assert balance["balance"] == str(10**15)
        assert server.call("/ext/info", "info.getBlockchainID", {"alias": "dex"})["result"]["blockchainID"] == chain_id
        assert "dex" in server.ask("GET", "/ext/health").json()["checks"]
        # X's own transactions are not this chain's.
        wrong = transfer(richest(server), 2)
        refused = server.call("/ext/bc/dex", "avm.issueTx", {"tx": checksum_hex.encode(wrong.raw)})["error"]
        assert refused["message"] == "tx has wrong chain ID"
        assert server.call("/ext/bc/dex", "avm.getHeight")["result"]["height"] == "0"
