"""Test data for the wire layer: vectors and recorded answers, read from tests/vectors."""

import gzip
import json
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from icefall.wire.container.proposer import OPTION, Container, unpack_container
from icefall.wire.evm import rlp
from icefall.wire.packer import VERSION_BYTES, pack_blob, u32
from icefall.wire.text import checksum_hex

VECTORS = Path(__file__).parent.parent / "vectors"
SCENARIO_START = 1_794_753_768  # when the recorded local network was started


def vectors(name: str) -> list[Any]:
    rows: list[Any] = json.loads((VECTORS / f"{name}.json").read_bytes())
    return rows


def recorded(name: str) -> list[Any]:
    return [json.loads(line) for line in gzip.decompress((VECTORS / name).read_bytes()).splitlines()]


class Recorded(NamedTuple):
    chain: str
    position: int
    id_text: str
    container: Container


@cache
def containers() -> list[Recorded]:
    rows = recorded("scenario-1/containers.jsonl.gz")
    return [
        Recorded(row["chain"], int(row["index"]), row["id"], unpack_container(checksum_hex.decode(row["bytes"])))
        for row in rows
    ]


def pack_option(parent_id: bytes, inner: bytes) -> bytes:
    """The bytes of an option container: one without a time, a height or a signature."""
    return VERSION_BYTES + u32(OPTION) + parent_id + pack_blob(inner)


def coreth_block(atomic_txs: bytes) -> bytes:
    """The smallest C-Chain block that holds these atomic transactions."""
    return rlp.encode([[bytes(32)] + [b""] * 15, [], [], b"", atomic_txs])


def inner_blocks(chain: str) -> list[bytes]:
    return [row.container.inner for row in containers() if row.chain == chain]
