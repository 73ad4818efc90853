"""What a real anvil 1.7.1 answered by debug_* and by trace_*, in tests/vectors/evm-parity, and stores side by side.

The recorded chains' signed transactions were sent once more to a fresh anvil, block by block. `berlin-1` came out as
recorded: its calls and diffs are those of tests/vectors/evm. `shanghai` (from anvil-1) and `prague` (from geth-1) hold
chosen blocks with both kinds of answers.
"""

import lzma
import sqlite3
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
from tests.evm.digest import WAY_BACK
from tests.upstream.evm_recording import recorded_blocks

from icefall.db.statements import load

SAMPLES = ("berlin-1", "shanghai", "prague")
_FOLDER = Path(__file__).parent.parent / "vectors" / "evm-parity"
TABLES = load("icefall.db", "sqlite.sql").tables
_IDS = ("address", "sender", "recipient", "token", "holder", "owner", "creator")
# How a store counts addresses, and how often a token was to be read again: once per run of blocks.
_NUMBERING = {("address", "id"), ("block", "next_address"), ("block", "touched"), ("token", "metadata_version")}


class Sample(msgspec.Struct):
    number: int
    block: Any  # number and hash, as anvil had them
    calls: bytes
    diffs: bytes
    trace_block: bytes
    trace_replay: bytes


@cache
def samples(name: str) -> list[Sample]:
    packed = (_FOLDER / f"{name}.jsonl.xz").read_bytes()
    return [_sample(name, line) for line in lzma.decompress(packed).splitlines()]


def _sample(name: str, line: bytes) -> Sample:
    row = msgspec.json.decode(line, type=dict[str, msgspec.Raw])
    number, traces, replay = int(bytes(row["number"])), bytes(row["trace_block"]), bytes(row["trace_replay"])
    if "calls" in row:
        block = msgspec.json.decode(row["block"])
        return Sample(number, block, bytes(row["calls"]), bytes(row["diffs"]), traces, replay)
    recorded = recorded_blocks(name)[number]
    block = {"number": hex(number), "hash": recorded.hash}
    return Sample(number, block, recorded.calls or b"[]", recorded.diffs or b"[]", traces, replay)


Rows = list[dict[str, Any]]


def differing(one: Path, other: Path) -> tuple[dict[str, Rows], dict[str, Rows]]:
    """By table, rows of one store that the other does not have, and the other way round."""
    mine, theirs = tables(one), tables(other)
    return _less(mine, theirs), _less(theirs, mine)


def tables(path: Path) -> dict[str, Rows]:
    """All rows, with addresses for their IDs: those depend on what else a store had to name."""
    store = sqlite3.connect(path)
    try:
        names = dict(store.execute("select id, address from address").fetchall())
        found = {}
        for (table,) in store.execute(TABLES).fetchall():
            if table in WAY_BACK:
                continue
            cursor = store.execute(f"select * from {table}")
            columns = [column for column, *_ in cursor.description]
            found[table] = [_named(table, dict(zip(columns, row, strict=True)), names) for row in cursor]
        return found
    finally:
        store.close()


def _named(table: str, row: dict[str, Any], names: dict[int, bytes]) -> dict[str, Any]:
    if table == "token":  # at which block all tokens were compared depends on when there was time for it
        row["differed_at"] = row["differed_at"] is not None or row["untrusted_since"] is not None
    ids = (*_IDS, "before") if table == "nft_owner" else _IDS
    return {
        column: names[value] if column in ids and isinstance(value, int) else value
        for column, value in row.items()
        if (table, column) not in _NUMBERING
    }


def _less(mine: dict[str, Rows], theirs: dict[str, Rows]) -> dict[str, Rows]:
    found = {}
    for table, rows in mine.items():
        known = {tuple(row.items()) for row in theirs[table]}
        left = [row for row in rows if tuple(row.items()) not in known]
        if left:
            found[table] = left
    return found
