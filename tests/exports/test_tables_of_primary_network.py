"""`icefall export` of P and X: the files say what the pages of the API say, on both engines, now and as of a block."""

import csv
import json
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest
from pyarrow import parquet
from tests.api.networks_scene import NetworkScene, network_scene
from tests.pchain.recorded import Playback, recorded_containers
from tests.postgres.server import new_prefix, server_url

from icefall import cli
from icefall.db.engine import Store
from icefall.node.store import SQL as NODE_SQL
from icefall.wire.ids import id_text

Rows = list[dict[str, str]]
P_TABLES = ("blocks", "transactions", "rewards", "utxos", "stakers")
X_TABLES = ("blocks", "transactions", "utxos")
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module", params=["p-local-1", "p-forks-1"])
def scene(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[NetworkScene]:
    folder = tmp_path_factory.mktemp(request.param)
    with network_scene(request.param, folder) as scene:
        bind(scene, scene.playback.store)
        yield scene


def bind(scene: NetworkScene, store: Store) -> None:
    """Note the network's ID, as the start of a node does."""
    network_id = str(scene.playback.network.asset_chains[0].rules.network_id)
    scene.run(store.write(lambda tx: tx.run(NODE_SQL.put_meta, {"name": "network_id", "value": network_id})))


def data_dir(scene: NetworkScene) -> Path:
    path: Path = scene.directory
    return path


def export(folder: Path, out: Path, *flags: str, chain: str = "P") -> int:
    return cli.main(["export", f"--data-dir={folder}", f"--chain={chain}", f"--out={out}", *flags])


def rows_of(out: Path, table: str, chain: str = "p-chain") -> Rows:
    manifest = json.loads((out / chain / table / "manifest.json").read_text())
    found: Rows = []
    for file in manifest["files"]:
        rows = list(csv.DictReader((out / chain / table / file["name"]).read_text().splitlines()))
        assert len(rows) == file["rows"]
        found += rows
    return found


def pages(scene: NetworkScene, target: str, name: str) -> list[Any]:
    """All items of a list of the API."""
    found, token = [], ""
    while True:
        answer = scene.result(f"{target}{'&' if '?' in target else '?'}pageSize=100{token}")
        found += answer[name]
        if not answer.get("nextPageToken"):
            return found
        token = f"&pageToken={answer['nextPageToken']}"


def total(amounts: list[dict[str, Any]]) -> str:
    return str(sum(int(one["amount"]) for one in amounts))


def test_blocks_and_transactions_are_those_of_the_api(scene: NetworkScene, tmp_path: Path) -> None:
    assert export(data_dir(scene), tmp_path, "--partition=range:7", "--table=blocks,transactions") == 0
    shown = [
        (row["number"], row["block_id"], row["type"], row["tx_count"], row["size"])
        for row in rows_of(tmp_path, "blocks")
    ]
    assert shown[::-1] == [
        (one["blockNumber"], one["blockHash"], one["blockType"], str(one["txCount"]), str(one["blockSizeBytes"]))
        for one in pages(scene, "/blockchains/p-chain/blocks", "blocks")
    ]
    avax = scene.playback.network.platform.avax_asset_id
    listed = pages(scene, "/blockchains/p-chain/transactions", "transactions")
    assert len(listed) > 20
    wanted = [
        (
            one["blockNumber"],
            one["txHash"],
            one["txType"],
            total([burned for burned in one["amountBurned"] if burned["assetId"] == id_text(avax)]),
            total(one["amountStaked"]),
            one.get("memo", ""),
        )
        for one in listed
    ]
    found = rows_of(tmp_path, "transactions")
    columns = ("block_number", "tx_id", "type", "burned", "staked", "memo")
    shown_txs = [tuple(row[name] for name in columns) for row in found]
    assert [row for row in shown_txs if row[0] != "0"][::-1] == [row for row in wanted if row[0] != "0"]
    assert [row["number"] for row in found] == [str(number) for number in range(len(found))]


def test_outputs_are_those_of_the_api(scene: NetworkScene, tmp_path: Path) -> None:
    assert export(data_dir(scene), tmp_path, "--table=utxos") == 0
    assert export(data_dir(scene), tmp_path, "--table=utxos", chain="X") == 0
    for chain in ("p-chain", "x-chain"):
        found = rows_of(tmp_path, "utxos", chain)
        own = {row["utxo_id"]: row for row in found}
        assert len(own) == len(found) > 10
        addresses = sorted({address for row in found for address in row["addresses"].split()})
        listed: dict[str, Any] = {}
        for group in (addresses[at : at + 50] for at in range(0, len(addresses), 50)):
            target = f"/blockchains/{chain}/utxos?addresses={','.join(group)}&includeSpent=true"
            listed |= {one["utxoId"]: one for one in pages(scene, target, "utxos")}
        if chain == "p-chain":  # the list has those shared with other chains too
            listed = {key: one for key, one in listed.items() if one["createdOnChainId"] == one["consumedOnChainId"]}
        if chain == "x-chain":  # the list has what others exported to X too, and not what X exported
            x_id = id_text(scene.playback.network.genesis.x_chain_id)
            own = {key: row for key, row in own.items() if row["spendable_on"] == x_id}
            listed = {key: one for key, one in listed.items() if one["createdOnChainId"] == x_id and key in own}
        assert set(listed) == {key for key, row in own.items() if row["addresses"]}
        for key, one in listed.items():
            row = own[key]
            amount = one["amount"] if chain == "p-chain" else one["asset"]["amount"]
            asset_id = one["assetId"] if chain == "p-chain" else one["asset"]["assetId"]
            assert (row["amount"], row["asset_id"], row["spent_tx_id"], row["threshold"]) == (
                amount,
                asset_id,
                one.get("consumingTxHash", ""),
                str(one["threshold"]),
            )
            if chain == "p-chain":
                assert (row["state"] == "staked", row["block_number"]) == (one["staked"], one["blockNumber"])


def test_stakers_and_rewards_are_those_of_the_api(scene: NetworkScene, tmp_path: Path) -> None:
    assert export(data_dir(scene), tmp_path, "--table=stakers,rewards") == 0
    stakers = {row["tx_id"]: row for row in rows_of(tmp_path, "stakers")}
    listed = pages(scene, "/validators", "validators") + pages(scene, "/delegators", "delegators")
    assert set(stakers) == {one["txHash"] for one in listed}
    for one in listed:
        row = stakers[one["txHash"]]
        assert (row["node_id"], row["stake_start"] != "") == (one["nodeId"], True)
        amount = one["amountStaked"] if "amountStaked" in one else one["amountDelegated"]
        assert row["weight"] == amount
    rewards = rows_of(tmp_path, "rewards")
    addresses = sorted({address for row in rewards for address in row["addresses"].split()})
    assert addresses
    paid = pages(scene, f"/rewards?addresses={','.join(addresses)}", "historicalRewards")
    key = ("staking_tx_id", "tx_id", "amount", "node_id", "addresses")
    shown = sorted(tuple(row[name] for name in key) for row in rewards)
    assert shown == sorted(
        (
            one["txHash"],
            one["rewardTxHash"],
            one["reward"]["amount"],
            one["nodeId"],
            " ".join(one["addresses"]),
        )
        for one in paid
    )


def test_an_export_up_to_a_block_says_what_was_then(scene: NetworkScene, tmp_path: Path) -> None:
    """A store that was played up to a block, and the whole one with --to, give the same files."""
    recording = scene.playback.recording
    height = scene.playback.platform.height * 2 // 3  # of p-local-1 a block that proposes, so the one before is last
    (tmp_path / "early").mkdir()
    early = Playback(tmp_path / "early", recording)
    scene.run(early.start())
    for one in recorded_containers(recording):
        if early.platform.height >= height:
            break
        scene.run(early.accept(one.chain, [one.fetched]))
    bind(scene, early.store)
    early.store.close()
    assert export(tmp_path / "early", tmp_path / "then") == 0
    last = json.loads((tmp_path / "then" / "p-chain" / "blocks" / "manifest.json").read_text())["files"][-1][
        "lastBlock"
    ]
    assert last == height - (recording == "p-local-1")
    assert export(data_dir(scene), tmp_path / "now", f"--to={last}") == 0
    for table in P_TABLES:
        then, now = rows_of(tmp_path / "then", table), rows_of(tmp_path / "now", table)
        assert then, table
        if table == "stakers":  # whether a period had begun by then is not stored; its reward is known from then on
            for before, later in zip(then, now, strict=True):
                if before["state"] == "pending":
                    before |= {name: later[name] for name in ("state", "potential_reward")}
        assert now == then, table


def test_both_engines_write_the_same_files(scene: NetworkScene, tmp_path: Path) -> None:
    prefix, url = new_prefix(), server_url()
    assert cli.main(["copy", str(data_dir(scene)), url, f"--store-prefix={prefix}"]) == 0
    for chain, name, tables in (("P", "p-chain", P_TABLES), ("X", "x-chain", X_TABLES)):
        assert export(data_dir(scene), tmp_path / "files", "--partition=range:10", chain=chain) == 0
        flags = (f"--store={url}", f"--store-prefix={prefix}", "--partition=range:10")
        assert export(tmp_path / "none", tmp_path / "server", *flags, chain=chain) == 0
        for table in tables:
            one, other = (tmp_path / engine / name / table / "manifest.json" for engine in ("files", "server"))
            assert one.read_text() == other.read_text(), table


def test_a_later_run_keeps_what_is_whole(scene: NetworkScene, tmp_path: Path) -> None:
    flags = ("--table=transactions", "--partition=range:5")
    assert export(data_dir(scene), tmp_path, *flags, "--to=12") == 0
    folder = tmp_path / "p-chain" / "transactions"
    before = {path.name: path.stat().st_mtime_ns for path in folder.glob("*.csv")}
    assert set(before) == {f"p-chain__transactions__{span}.csv" for span in ("0_4", "5_9", "10_12")}
    assert export(data_dir(scene), tmp_path, *flags) == 0
    later = {path.name: path.stat().st_mtime_ns for path in folder.glob("*.csv")}
    assert {name: later.get(name) for name in before} == {**before, "p-chain__transactions__10_12.csv": None}
    assert export(data_dir(scene), tmp_path / "days", "--table=blocks", "--partition=day") == 0
    days = [{row["time"][:10] for row in rows_of(tmp_path / "days", "blocks")}]
    assert len(list((tmp_path / "days" / "p-chain" / "blocks").glob("*.csv"))) == len(days[0])


def test_parquet_files_are_read_by_duckdb_and_pyarrow(scene: NetworkScene, tmp_path: Path) -> None:
    assert export(data_dir(scene), tmp_path, "--format=parquet") == 0
    assert export(data_dir(scene), tmp_path / "csv") == 0
    for table in P_TABLES:
        (path,) = (tmp_path / "p-chain" / table).glob("*.parquet")
        count = len(rows_of(tmp_path / "csv", table))
        assert parquet.read_table(path).num_rows == count
        assert duckdb.sql(f"select count(*) from '{path}'").fetchone() == (count,)


def test_the_question_of_the_page_is_answered(
    scene: NetworkScene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The query of docs/analysis.md about rewards runs on the exported files, and agrees with the API."""
    assert export(data_dir(scene), tmp_path / "export", "--format=parquet", "--partition=range:10") == 0
    monkeypatch.chdir(tmp_path)
    queries = re.findall(r"```sql\n(.*?)```", (ROOT / "docs" / "analysis.md").read_text(), re.DOTALL)
    (query,) = (one for one in queries if "export/p-chain/" in one)
    found = {owner: int(paid) for owner, _, paid in duckdb.sql(query).fetchall()}
    wanted: dict[str, int] = defaultdict(int)
    for one in pages(scene, f"/rewards?addresses={','.join(found)}", "historicalRewards"):
        for address in one["addresses"]:
            wanted[address] += int(one["reward"]["amount"])
    assert found == wanted != {}


def test_what_is_no_network_or_no_table_is_refused(
    scene: NetworkScene, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert export(data_dir(scene), tmp_path, "--table=stakers", chain="X") == 1
    assert "--table=stakers is not known" in capsys.readouterr().err
    assert export(tmp_path / "empty", tmp_path) == 1
    assert "empty" in capsys.readouterr().err
    assert export(data_dir(scene), tmp_path, chain="Q") == 1
    assert "neither P nor X" in capsys.readouterr().err
