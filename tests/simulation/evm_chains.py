"""EVM chains to simulate with: one true chain and branches that were dropped, all with valid hashes, links and state.

Their blocks hold what recorded blocks held, in the recorded order, with empty blocks between them: so the state after
each block is a recorded one, although block numbers, times and hashes are new.
"""

import random
from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import msgspec
from tests.upstream.evm_recording import recording

from icefall.demo.recording import RecordedBlock, Recording
from icefall.wire.evm.decode import decode_full
from icefall.wire.evm.hashes import header_hash
from icefall.wire.evm.rlp import EMPTY_ROOT

CONTENTS = 12  # recorded blocks in one chain
WORLDS = 12
# Where to begin in a recording: its first blocks, and some that are rich without being long.
_STARTS = (("geth-1", 0), ("geth-1", 40), ("geth-1", 60), ("berlin-1", 11), ("geth-1", 78), ("geth-1", 108))
_EMPTY_HEADER = {
    "transactions": [],
    "gasUsed": "0x0",
    "transactionsRoot": "0x" + EMPTY_ROOT.hex(),
    "receiptsRoot": "0x" + EMPTY_ROOT.hex(),
    "logsBloom": "0x" + "00" * 256,
}


class SimulatedBlock(NamedTuple):
    """`content`: the recorded block whose state is the state after this one."""

    sent: RecordedBlock
    content: int


Blocks = tuple[SimulatedBlock, ...]  # by number, from 0


class Chain:
    def __init__(self, blocks: Blocks) -> None:
        self.blocks = blocks
        self.head = len(blocks) - 1
        self.by_number = {number: block.sent for number, block in enumerate(blocks)}
        self.numbers = {block.sent.hash: number for number, block in enumerate(blocks)}


class World(NamedTuple):
    recording: Recording
    first: int  # where the index begins
    shown: int  # the true chain's head at the beginning
    true: Chain
    branches: list[Chain]

    def hashes(self) -> set[bytes]:
        """Of all blocks that are part of any of its chains."""
        return {bytes.fromhex(block.sent.hash[2:]) for chain in (self.true, *self.branches) for block in chain.blocks}


@cache
def world(number: int) -> World:
    source = random.Random(number)
    name, first = _STARTS[number % len(_STARTS)]
    found = recording(name)
    before = tuple(SimulatedBlock(found.blocks[height], height) for height in range(first))
    true = _extended(found, before, range(first, first + CONTENTS), source, b"true")
    branches: list[Blocks] = []
    for index in range(4):
        parent = source.choice([true, *branches])
        fork = source.randint(max(1, first), len(true) - 3)
        height = source.randint(fork + 1, len(true) - 2)
        common = parent[:fork]
        done = common[-1].content + 1
        contents = range(done, min(done + height - len(common), first + CONTENTS))
        branch = _extended(found, common, contents, source, f"branch {index}".encode())
        branches.append(branch[: height + 1])
    return World(found, first, source.randint(first, len(true) - 4), Chain(true), [Chain(one) for one in branches])


def _extended(found: Recording, chain: Blocks, contents: Sequence[int], source: random.Random, mark: bytes) -> Blocks:
    """With empty blocks among those of the recording."""
    for content in contents:
        while chain and source.random() < 0.25:
            chain = (*chain, _block(found, chain, None, mark))
        chain = (*chain, _block(found, chain, content, mark))
    return chain


def _block(found: Recording, chain: Blocks, content: int | None, mark: bytes) -> SimulatedBlock:
    """The next block: with the transactions of a recorded one, or with none."""
    if content == 0:
        return SimulatedBlock(found.blocks[0], 0)
    kept = content if content is not None else chain[-1].content
    recorded = found.blocks[kept]
    header, receipts = msgspec.json.decode(recorded.block), msgspec.json.decode(recorded.receipts)
    if content is None:
        receipts = []
        header |= _EMPTY_HEADER
        if "withdrawals" in header:
            header |= {"withdrawals": [], "withdrawalsRoot": "0x" + EMPTY_ROOT.hex()}
    parent = msgspec.json.decode(chain[-1].sent.block)
    header |= {
        "number": hex(len(chain)),
        "parentHash": parent["hash"],
        "timestamp": hex(int(parent["timestamp"], 16) + 1500),  # so that hours end within a chain
        "extraData": "0x" + mark.hex(),
    }
    traces = (msgspec.Raw(b"[]"), msgspec.Raw(b"[]")) if content is None else (recorded.calls, recorded.diffs)
    _put_position(header, receipts, "0x" + "00" * 32)
    full = decode_full(msgspec.json.encode(header), msgspec.json.encode(receipts), None, None)
    header["hash"] = "0x" + header_hash(full.block).hex()
    _put_position(header, receipts, header["hash"])
    calls, diffs = (msgspec.Raw(one or b"null") for one in traces)
    line = {"number": len(chain), "block": header, "receipts": receipts, "calls": calls, "diffs": diffs}
    return SimulatedBlock(RecordedBlock(msgspec.json.encode(line)), kept)


def _put_position(header: dict[str, Any], receipts: list[dict[str, Any]], block_hash: str) -> None:
    """Into everything that repeats where it is."""
    position = {"blockNumber": header["number"], "blockHash": block_hash}
    time = {"blockTimestamp": header["timestamp"]}
    for tx in header["transactions"]:
        tx.update(position | (time if "blockTimestamp" in tx else {}))
    for receipt in receipts:
        receipt.update(position)
        for log in receipt["logs"]:
            log.update(position | (time if "blockTimestamp" in log else {}))
