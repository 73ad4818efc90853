"""After a reorganisation readers return the new chain and nothing of the old one."""

import asyncio
import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from tests.evm.digest import digests, logical_rows
from tests.evm.indexed import open_store
from tests.evm.naive import Naive, naive
from tests.evm.reading_scene import RecordedStateReader, copied, expected, index, indexed, known_lines, now, scene_of
from tests.evm.recordings import CHAINS, each_once
from tests.evm.test_reading_balances import check_erc20, check_erc1155, check_native, check_nfts, owners_of
from tests.evm.test_reading_lists import LISTS, check_list
from tests.upstream.evm_recording import recorded_blocks, recording
from tests.upstream.evm_replay import EvmReplay

from icefall.demo.recording import Blocks, RecordedState, Recording

ANVIL = "anvil-1"


def same(path: Path, chain: str) -> None:
    found = digests(path)
    if found == expected(chain):
        return
    mine, theirs = logical_rows(path), logical_rows(indexed(chain).path)
    for table, rows in mine.items():
        assert set(map(repr, rows)) == set(map(repr, theirs[table])), table
    assert found == expected(chain)


# -- blocks that come again --------------------------------------------------------------------------------------------


async def roll_back(path: Path, ancestor: int) -> None:
    store = open_store(path)
    await store.roll_back(ancestor)
    store.close()


@pytest.mark.parametrize(("chain", "depth"), each_once(CHAINS, [1, 5, 100]))
def test_blocks_taken_away_and_given_again(chain: str, depth: int, tmp_path: Path) -> None:
    path = copied(chain, tmp_path / "chain.sqlite")
    replay = EvmReplay(chain)
    asyncio.run(roll_back(path, replay.head - depth))
    assert digests(path) != expected(chain)
    asyncio.run(index(path, replay))
    same(path, chain)


@pytest.mark.parametrize("chain", ["geth-1", "berlin-1"])
def test_a_rollback_leaves_what_was_there_before(chain: str, tmp_path: Path) -> None:
    path, clean = copied(chain, tmp_path / "chain.sqlite"), tmp_path / "clean.sqlite"
    last = EvmReplay(chain).head - 60
    asyncio.run(roll_back(path, last))
    asyncio.run(index(path, EvmReplay(chain), last))  # an audit of what is left
    asyncio.run(index(clean, EvmReplay(chain), last))
    mine, theirs = logical_rows(path), logical_rows(clean)
    untrusted = {row[0] for row in mine["token"] if row[4]} - {row[0] for row in theirs["token"] if row[4]}
    for table in mine:
        if table == "code":  # also of addresses that later blocks needed
            assert all(row in mine[table] for row in theirs[table])
        elif table not in ("erc20_balance", "erc1155_balance", "token") or not untrusted:  # stays untrusted
            assert mine[table] == theirs[table], table


def test_a_rollback_to_nothing(tmp_path: Path) -> None:
    path = copied("berlin-1", tmp_path / "chain.sqlite")
    asyncio.run(roll_back(path, -1))
    assert {table for table, rows in logical_rows(path).items() if rows} <= {"meta"}
    asyncio.run(index(path, EvmReplay("berlin-1")))
    same(path, "berlin-1")


# -- the recorded reorganisations --------------------------------------------------------------------------------------


class Branch(Recording):
    """The chain as it was before a reorganisation: the recorded one, and from some block on another."""

    def __init__(self, part: str, last: int) -> None:
        whole = recording(ANVIL)
        super().__init__(whole.folder, whole.kind)
        self.part = part
        self.last = last

    @property
    def first(self) -> int:
        return min(recorded_blocks(ANVIL, f"{self.part}_blocks"))

    def lines(self, name: str) -> Any:
        if name not in ("blocks", "state"):
            yield from super().lines(name)
            return
        for line in super().lines(name):
            if json.loads(line)["number"] >= self.first:
                break
            yield line
        yield from super().lines(f"{self.part}_{name}")


@cache
def branch(part: str) -> Branch:
    return Branch(part, max(recorded_blocks(ANVIL, f"{part}_blocks")))


class BranchReplay(EvmReplay):
    """An upstream that is on a branch."""

    def __init__(self, part: str) -> None:
        super().__init__(ANVIL, branch(part).blocks)
        self.part = part

    @property
    def state(self) -> RecordedState:
        return branch(self.part).state


def check_branch(path: Path, recorded: Naive, state: RecordedState, blocks: Blocks, lines: list[Any]) -> None:
    numbers = {bytes.fromhex(block.hash[2:]): block.number for block in blocks.values()}
    scene = scene_of(path, RecordedStateReader(state, numbers))
    tip = now(scene.chain.tip())
    assert tip is not None
    assert (tip.number, tip.block_hash) == (max(blocks), bytes.fromhex(blocks[max(blocks)].hash[2:]))
    check_native(scene, iter(lines))
    check_erc20(scene, iter(lines), frozenset())
    check_erc1155(scene, iter(lines))
    check_nfts(scene, owners_of(iter(lines)), (10,))
    moved = Naive(ANVIL, recorded.lines[lines[0]["number"] :]).addresses
    for name in LISTS:
        check_list(scene, recorded, name, moved)
    dropped = {item[3] for item in naive(ANVIL).txs} - {item[3] for item in recorded.txs}
    assert dropped
    assert all(now(scene.chain.tx(txid)) is None for txid in dropped)
    scene.reader.close()


def saids(blocks: Blocks) -> list[Any]:
    return [
        {
            "number": block.number,
            "block": json.loads(block.block),
            "receipts": json.loads(block.receipts),
            "calls": json.loads(block.calls or b"null"),
        }
        for block in blocks.values()
    ]


def test_recorded_reorganisations(tmp_path: Path) -> None:
    """A chain that is replaced from block 1954 on, and later cut off after block 1960 and continued otherwise."""
    path = tmp_path / "chain.sqlite"
    copied(ANVIL, path)
    asyncio.run(roll_back(path, 1900))
    for part in ("reorg1_before", "reorg2_before"):
        replay = BranchReplay(part)
        asyncio.run(index(path, replay))
        lines = known_lines(replay.state, branch(part).first - 3, replay.head)
        check_branch(path, Naive(ANVIL, saids(replay.blocks)), replay.state, replay.blocks, lines)
    asyncio.run(index(path, EvmReplay(ANVIL)))
    same(path, ANVIL)
