"""The recorded history `scenario-1`: what a real node answered to every attempt to issue a transaction, in order."""

import calendar
import gzip
import json
import re
import time
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from icefall.wire.avm.codec import unpack_block
from icefall.wire.avm.types import Block
from icefall.wire.container.proposer import unpack_container
from icefall.wire.text import checksum_hex

SCENARIO = Path(__file__).parent.parent / "vectors" / "scenario-1"


class Attempt(NamedTuple):
    """A row of the scenario: a transaction sent to X, P or C, and what was answered."""

    n: int
    kind: str
    time: float  # the node's clock lay between the two
    done_time: float
    chain: str
    request: Any
    path: str
    accepted: bool
    txid_text: str | None
    error: str | None
    height: int | None
    shared_memory: list[bytes]


class AcceptedBlock(NamedTuple):
    accepted_at: float
    container_id_text: str
    container: bytes
    block: Block


@cache
def attempts() -> list[Attempt]:
    rows = map(json.loads, gzip.decompress((SCENARIO / "scenario.jsonl.gz").read_bytes()).splitlines())
    return [
        Attempt(
            n=row["n"],
            kind=row["kind"],
            time=row["time"],
            done_time=row.get("doneTime", row["time"]),
            chain=row["chain"],
            request=row["request"],
            path=row.get("path", "/ext/bc/X"),
            accepted=row["accepted"],
            txid_text=row["txID"],
            error=row["response"].get("error", {}).get("message"),
            height=row["height"],
            shared_memory=[checksum_hex.decode(text) for text in row.get("sharedMemoryUTXOs", ())],
        )
        for row in rows
    ]


@cache
def accepted_blocks() -> list[AcceptedBlock]:
    rows = map(json.loads, gzip.decompress((SCENARIO / "containers.jsonl.gz").read_bytes()).splitlines())
    return [_accepted_block(row) for row in rows if row["chain"] == "X"]


@cache
def final_utxos() -> dict[str, bytes]:
    """By the text of their IDs."""
    rows = json.loads(gzip.decompress((SCENARIO / "final_utxos.json.gz").read_bytes()))
    return {row["inputID"]: checksum_hex.decode(row["utxo"]) for row in rows}


def _accepted_block(row: dict[str, str]) -> AcceptedBlock:
    container = checksum_hex.decode(row["bytes"])
    block = unpack_block(unpack_container(container).inner)
    return AcceptedBlock(_unix(row["timestamp"]), row["id"], container, block)


def _unix(rfc3339: str) -> float:
    seconds, fraction = re.fullmatch(r"(.+?)(\.\d+)?Z", rfc3339).groups()  # type: ignore[union-attr]
    return calendar.timegm(time.strptime(seconds, "%Y-%m-%dT%H:%M:%S")) + float(fraction or 0)
