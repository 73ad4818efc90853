"""`icefall export`: every row of the files equals the recorded chain, on both engines and in every format."""

import csv
import json
import re
import sqlite3
from collections import defaultdict
from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb
import pytest
from pyarrow import parquet
from tests.evm.naive import Item, naive
from tests.evm.recordings import derived
from tests.exports.exported import BY_NAME, CHAIN, ID, MESSAGE, export, put_chain, put_messages, rows_of, spans
from tests.messages import logs
from tests.postgres.server import new_prefix, server_url

from icefall import cli
from icefall.compose.exported_chains import opened_tables
from icefall.compose.stores import Stores
from icefall.evm.storing.store import store_path
from icefall.exports import files, formats
from icefall.exports.evm_tables import TABLES
from icefall.wire.ids import id_text

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data directory with a chain whose logs are stored."""
    data_dir = put_chain(tmp_path_factory.mktemp("exported"))
    put_messages(data_dir)
    return data_dir


def hexed(value: bytes) -> str:
    return f"0x{value.hex()}"


def transaction(item: Item) -> tuple[Any, ...]:
    number, _, _, tx_hash, at, status, type_id, sender, to, value, nonce, _, gas_used, price, *_ = item
    amounts = (str(value), str(nonce), str(gas_used), str(price))
    return (
        str(number),
        str(at & 0xFFFFFF),
        hexed(tx_hash),
        hexed(sender),
        hexed(to),
        bool(status),
        str(type_id),
        amounts,
    )


def exported_transaction(row: dict[str, str]) -> tuple[Any, ...]:
    amounts = (row["value"], row["nonce"], row["gas_used"], row["gas_price"])
    parties = (row["from_address"], row["to_address"], row["succeeded"] == "true", row["type"], amounts)
    return (row["block_number"], row["tx_index"], row["tx_hash"], *parties)


def test_every_row_equals_the_recorded_chain(data_dir: Path, tmp_path: Path) -> None:
    assert export(data_dir, tmp_path, "--partition=range:50") == 0
    chain = naive(CHAIN)
    assert [exported_transaction(row) for row in rows_of(tmp_path, "transactions")] == list(map(transaction, chain.txs))
    assert [row["input"] for row in rows_of(tmp_path, "transactions")] == [hexed(data) for data, _ in chain.inputs]
    transfers = {
        "erc20_transfers": [(*one[:4], one[4], None, *one[6:9], None, one[9]) for one in chain.erc20],
        "erc721_transfers": [(*one[:4], one[4], None, *one[6:9], one[9], None) for one in chain.erc721],
        "erc1155_transfers": [(*one[:6], *one[7:]) for one in chain.erc1155],
    }
    for table, expected in transfers.items():
        shown = [
            {
                "block_number": str(number),
                "log_index": str(at & 0xFFFFFF),
                "tx_hash": hexed(tx_hash),
                "token": hexed(token),
                "from_address": hexed(sender),
                "to_address": hexed(to),
                **({} if position is None else {"batch_index": str(position)}),
                **({} if token_id is None else {"token_id": str(token_id)}),
                **({"last_token_id": ""} if value is None else {"value": str(value)}),
            }
            for number, _, _, tx_hash, at, position, token, sender, to, token_id, value in expected
        ]
        found = rows_of(tmp_path, table)
        assert [{name: row[name] for name in row if name != "block_time"} for row in found] == shown, table
    blocks = [line.line["block"] for line in derived(CHAIN)]
    assert [(row["number"], row["hash"]) for row in rows_of(tmp_path, "blocks")] == [
        (str(int(block["number"], 16)), block["hash"]) for block in blocks
    ]
    logs = [log for line in derived(CHAIN) for receipt in line.line["receipts"] for log in receipt["logs"]]
    assert [(row["address"], row["data"], row["topic0"]) for row in rows_of(tmp_path, "logs")] == [
        (log["address"].lower(), log["data"], (log["topics"] or [""])[0]) for log in logs
    ]
    assert len(rows_of(tmp_path, "internal_transactions")) == len(chain.internals)
    assert [row["address"] for row in rows_of(tmp_path, "contracts")] == [hexed(one[0]) for one in chain.deployments]


def test_blocks_have_what_became_of_their_fees(data_dir: Path, tmp_path: Path) -> None:
    """Who got them, what was burned, and the size: as the node has them; empty where an older release indexed."""
    assert export(data_dir, tmp_path, "--table=blocks") == 0
    blocks = [line.line["block"] for line in derived(CHAIN)]
    expected = [
        (one["miner"].lower(), str(int(one["size"], 16)), str(int(one.get("baseFeePerGas", "0x0"), 16) * gas))
        for one in blocks
        for gas in (int(one["gasUsed"], 16),)
    ]
    found = rows_of(tmp_path, "blocks")
    assert [(row["fee_recipient"], row["size"], row["fees_burned"]) for row in found] == expected
    older = put_chain(tmp_path / "older")
    with sqlite3.connect(store_path(older, ID)) as writer:
        writer.execute("update block set fee_recipient = null, size = null, fees_burned = null where number < 3")
    writer.close()
    for file_format in ("csv", "parquet"):
        assert export(older, tmp_path / file_format, "--table=blocks", f"--format={file_format}") == 0
    rows = rows_of(tmp_path / "csv", "blocks")
    assert [(row["fee_recipient"], row["size"], row["fees_burned"]) for row in rows] == [("", "", "")] * 3 + expected[
        3:
    ]
    (file,) = (tmp_path / "parquet" / ID / "blocks").glob("*.parquet")
    columns = parquet.read_table(file).select(["fee_recipient", "size", "fees_burned"]).to_pylist()
    assert [set(row.values()) for row in columns[:3]] == [{None}] * 3
    assert [(row["fee_recipient"], str(row["size"]), row["fees_burned"]) for row in columns[3:]] == expected[3:]


def test_events_of_messages_between_chains(data_dir: Path, tmp_path: Path) -> None:
    """One row each; older ones that are still filled in are left out."""
    assert export(data_dir, tmp_path, "--table=message_events") == 0
    found = rows_of(tmp_path, "message_events")
    rows = [row for row in found if row["message_id"] == hexed(MESSAGE.id)]
    assert len(found) == len(rows) + 1
    source, destination = id_text(MESSAGE.source), id_text(MESSAGE.destination)
    said = (hexed(MESSAGE.sender), hexed(MESSAGE.recipient), "7", hexed(b"hello"))
    nothing = ("",) * 4
    parties = ("from_address", "to_address", "nonce", "data", "relayer")
    names = ("event", "other_blockchain_id", *parties, "fee_token", "fee")
    token = hexed(MESSAGE.fee_token)
    assert [tuple(row[name] for name in names) for row in rows] == [
        ("sent", destination, *said, "", token, "9"),
        ("fee_added", "", *nothing, "", token, "11"),
        ("received", source, *said, hexed(b"\6" * 20), "", ""),
        ("failed", source, *nothing, "", "", ""),
        ("executed", source, *nothing, "", "", ""),
        ("receipt", destination, *nothing, hexed(b"\7" * 20), token, "9"),
    ]
    assert {row["messenger"] for row in rows} == {hexed(logs.MESSENGER)}
    assert [row["tx_hash"] for row in rows] == [hexed(one[3]) for one in naive(CHAIN).txs[: len(rows)]]
    filling = put_chain(tmp_path / "filling")
    with sqlite3.connect(store_path(filling, ID)) as writer:
        writer.execute("insert into meta values ('messages_missing_below', '70')")
    writer.close()
    assert export(filling, tmp_path, "--table=message_events", "--to=60", f"--out={tmp_path / 'early'}") == 0
    assert not (tmp_path / "early" / ID).exists()
    assert export(filling, tmp_path / "late", "--table=message_events") == 0
    assert spans(tmp_path / "late", "message_events")[0][0] == 70


def test_both_engines_write_the_same_files(data_dir: Path, tmp_path: Path) -> None:
    prefix = new_prefix()
    url = server_url()
    assert cli.main(["copy", str(data_dir), url, f"--store-prefix={prefix}"]) == 0
    assert export(data_dir, tmp_path / "files") == 0
    assert export(data_dir, tmp_path / "server", f"--store={url}", f"--store-prefix={prefix}") == 0
    for table in TABLES:
        one, other = (tmp_path / engine / ID / table.name / files.MANIFEST for engine in ("files", "server"))
        assert one.read_text() == other.read_text(), table.name
        assert json.loads(one.read_text())["files"][0]["rows"] > 0, table.name


@pytest.mark.parametrize("file_format", ["jsonl", "parquet"])
def test_formats_hold_the_same_values(file_format: str, data_dir: Path, tmp_path: Path) -> None:
    for table in ("transactions", "tokens", "blocks"):
        assert export(data_dir, tmp_path, f"--table={table}", f"--format={file_format}") == 0
        assert export(data_dir, tmp_path / "csv", f"--table={table}") == 0
        (path,) = (tmp_path / ID / table).glob(f"*.{file_format}")
        if file_format == "parquet":
            found = parquet.read_table(path).to_pylist()
        else:
            found = [json.loads(line) for line in path.read_text().splitlines()]
        times = [name for name, kind in BY_NAME[table].columns if kind == "time"]
        for row, shown in zip(found, rows_of(tmp_path / "csv", table), strict=True):
            for name, value in row.items():
                if file_format == "parquet" and name in times:
                    assert value.strftime("%Y-%m-%dT%H:%M:%SZ") == shown[name]
                else:
                    assert ("" if value is None else str(value).lower()) == shown[name].lower(), name


def test_the_store_is_not_mapped_into_the_memory_of_the_command(data_dir: Path) -> None:
    """Pages of a store that is mapped count as memory of the process: as many as the store has."""
    maps = Path("/proc/self/maps")
    with opened_tables(Stores(data_dir), ID) as chain:
        assert sum(1 for piece in chain.pieces(BY_NAME["blocks"], 0, 200) for _ in piece) > 100
        assert f"{ID}.sqlite\n" not in maps.read_text()
    reader = Stores(data_dir).chain_blocking_reader(ID)
    assert reader is not None
    with closing(reader):
        reader.read("select * from block")
        assert f"{ID}.sqlite\n" in maps.read_text(), "a worker maps it"


def test_days_are_those_of_utc(data_dir: Path, tmp_path: Path) -> None:
    assert export(data_dir, tmp_path, "--table=blocks", "--partition=day") == 0
    manifest = json.loads((tmp_path / ID / "blocks" / files.MANIFEST).read_text())
    days = [
        {row["time"][:10] for row in csv.DictReader((tmp_path / ID / "blocks" / file["name"]).read_text().splitlines())}
        for file in manifest["files"]
    ]
    assert all(len(day) == 1 for day in days)
    assert len({day for found in days for day in found}) == len(days)


def test_the_questions_of_the_page_are_answered(
    data_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every query of docs/analysis.md about an EVM chain runs on the exported files; two agree with the chain."""
    assert export(data_dir, tmp_path / "export", "--format=parquet", "--partition=range:50") == 0
    monkeypatch.chdir(tmp_path)
    queries = re.findall(r"```sql\n(.*?)```", (ROOT / "docs" / "analysis.md").read_text(), re.DOTALL)
    own = [query.replace("export/43114/", f"export/{ID}/") for query in queries if "export/43114/" in query]
    answers = [duckdb.sql(query).fetchall() for query in own]
    assert [bool(answer) for answer in answers] == [True] * 6
    holdings: dict[tuple[str, str], int] = defaultdict(int)
    for *_, token, sender, to, value in naive(CHAIN).erc20:
        holdings[hexed(token), hexed(sender)] -= value
        holdings[hexed(token), hexed(to)] += value
    wrong_logs = {token for (token, holder), value in holdings.items() if value < 0 and int(holder, 16)}
    found = {(token, holder): int(balance) for _, token, holder, balance in answers[0] if token not in wrong_logs}
    assert len(found) > 20
    assert found == {key: holdings[key] for key in found}
    assert sum(transfers for _, _, transfers, _ in answers[1]) == len(naive(CHAIN).erc20)


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", "\tx", "\rx", "\n=1", "\uff1d1+1", "\uff20SUM(A1)"])
def test_text_that_anyone_may_write_is_no_formula(text: str) -> None:
    assert formats.guarded(text) == f"'{text}"
    assert formats.guarded(f"a{text}") == f"a{text}"
    assert formats.guarded(f"a {text}") == f"a {text}"


@pytest.mark.parametrize("sign", ["=", "+", "-", "@", "\uff1d", "\uff20"])
def test_a_separator_of_other_languages_begins_no_formula(sign: str) -> None:
    """A spreadsheet that separates cells by semicolons divides the text there, whether it is quoted or not."""
    assert formats.guarded(f"a;{sign}1;b") == f"a;'{sign}1;b"
    assert formats.guarded("a;b") == "a;b"


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--table=block",), "--table=block is not known; did you mean blocks?"),
        (("--format=xls",), "--format=xls is not known; use one of csv, jsonl, parquet"),
        (("--partition=range:0",), "--partition=range:0 is neither day nor range:N, as in range:100000"),
        (("--from=x",), "--from=x is not a block number"),
        (("--from=999999",), "blocks 0 to"),
    ],
)
def test_a_flag_that_makes_no_sense_is_refused(
    flags: tuple[str, ...], message: str, data_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert export(data_dir, tmp_path, *flags) == 1
    assert message in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_folder_with_another_export_is_refused(
    data_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert export(data_dir, tmp_path, "--table=blocks") == 0
    assert export(data_dir, tmp_path, "--table=blocks", "--format=jsonl") == 1
    assert "holds an export with another format, partition or columns" in capsys.readouterr().err
    path = tmp_path / ID / "blocks" / files.MANIFEST
    manifest = json.loads(path.read_text())
    path.write_text(json.dumps({**manifest, "version": manifest["version"] - 1}))
    assert export(data_dir, tmp_path, "--table=blocks") == 1
    assert "made by another release: choose another --out" in capsys.readouterr().err
    assert export(data_dir, tmp_path, chain="77") == 1
    assert "chain 77 is not indexed" in capsys.readouterr().err
