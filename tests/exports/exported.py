"""A recorded chain with messages between chains, in a data directory, and what `icefall export` wrote of it."""

import csv
import hashlib
import json
import shutil
import sqlite3
from pathlib import Path

from tests.api.data_scene import chain_id
from tests.evm.reading_scene import indexed
from tests.messages import logs

from icefall import cli
from icefall.evm.deriving.messages import messenger_event, messenger_row
from icefall.evm.storing.store import store_path
from icefall.exports import files
from icefall.exports.evm_tables import TABLES
from icefall.wire.evm.types import EventLog

CHAIN = "berlin-1"
BY_NAME = {table.name: table for table in TABLES}
ID = chain_id(CHAIN)
MESSAGE = logs.Sample(b"\1" * 32, b"\2" * 32, 7, b"\3" * 20, b"\4" * 20, b"hello", fee_token=b"\5" * 20, fee=9)
EVENTS = (
    logs.sent(MESSAGE),
    logs.raised(MESSAGE, 11),
    logs.received(MESSAGE, b"\6" * 20, b"\7" * 20),
    logs.failed(MESSAGE),
    logs.executed(MESSAGE),
    logs.receipt(MESSAGE, b"\7" * 20),
)


def put_chain(folder: Path) -> Path:
    path = store_path(folder / "data", ID)
    path.parent.mkdir(parents=True)
    shutil.copy(indexed(CHAIN).path, path)
    return folder / "data"


def put_messages(data_dir: Path) -> None:
    """An event of each kind, in a transaction of its own: the recorded chain sends one message."""
    with sqlite3.connect(store_path(data_dir, ID)) as writer:
        txs = writer.execute("select tx_at from tx order by tx_at limit ?", (len(EVENTS),)).fetchall()
        for number, ((tx_at,), (topics, data)) in enumerate(zip(txs, EVENTS, strict=True)):
            event = messenger_event(tx_at & 0xFFFFFF, EventLog(logs.MESSENGER, topics, data, 500 + number))
            assert event is not None
            row = messenger_row(tx_at >> 24, event)
            writer.execute(f"insert into messenger_event values ({', '.join('?' * len(row))})", row)
    writer.close()


def export(data_dir: Path, out: Path, *flags: str, chain: str = ID) -> int:
    return cli.main(["export", f"--data-dir={data_dir}", f"--chain={chain}", f"--out={out}", *flags])


def rows_of(out: Path, table: str) -> list[dict[str, str]]:
    manifest = json.loads((out / ID / table / files.MANIFEST).read_text())
    found = []
    for file in manifest["files"]:
        content = (out / ID / table / file["name"]).read_bytes()
        assert (len(content), hashlib.sha256(content).hexdigest()) == (file["bytes"], file["sha256"])
        rows = list(csv.DictReader(content.decode().splitlines()))
        assert len(rows) == file["rows"]
        found += rows
    return found


def spans(out: Path, table: str = "blocks") -> list[tuple[int, int]]:
    manifest = json.loads((out / ID / table / files.MANIFEST).read_text())
    assert {file["name"] for file in manifest["files"]} == {path.name for path in (out / ID / table).glob("*.csv")}
    return [(file["firstBlock"], file["lastBlock"]) for file in manifest["files"]]
