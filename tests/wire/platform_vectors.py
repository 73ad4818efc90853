"""Recorded P-Chain histories: the containers of two networks, read from tests/vectors."""

import json
import lzma
from functools import cache
from typing import Any, NamedTuple

from tests.wire.wire_vectors import VECTORS

from icefall.wire.container.platform import block_in_container
from icefall.wire.container.proposer import Container, unpack_container
from icefall.wire.errors import WireError
from icefall.wire.pvm.codec import unpack_block
from icefall.wire.pvm.types import PlatformTx
from icefall.wire.text import checksum_hex

P_RECORDINGS = ("p-local-1", "p-forks-1")


def p_rows(recording: str, name: str) -> list[Any]:
    """The lines of one recorded file, such as `calls`."""
    return [
        json.loads(line)
        for line in lzma.decompress((VECTORS / recording / f"{name}.jsonl.xz").read_bytes()).splitlines()
    ]


class PContainer(NamedTuple):
    """A recorded container of the P-Chain. `wrapping` is None for a block from before there were proposers."""

    height: int
    id_text: str
    raw: bytes
    wrapping: Container | None
    inner: bytes


@cache
def p_containers(recording: str) -> list[PContainer]:
    found = []
    for row in p_rows(recording, "containers"):
        if row["chain"] != "P":
            continue
        raw = checksum_hex.decode(row["bytes"])
        try:
            wrapping = unpack_container(raw)
        except WireError:
            wrapping = None
        found.append(PContainer(int(row["index"]) + 1, row["id"], raw, wrapping, block_in_container(raw)))
    return found


def p_blocks(*recordings: str) -> list[bytes]:
    return [row.inner for recording in recordings or P_RECORDINGS for row in p_containers(recording)]


def p_txs(*recordings: str) -> list[PlatformTx]:
    blocks = [unpack_block(raw) for raw in p_blocks(*recordings)]
    return [tx for block in blocks for tx in (*block.txs, *([block.proposal] if block.proposal else []))]
