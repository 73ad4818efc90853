"""The IDs of accepted containers by number, with which an upstream that has less than we do is compared."""

import asyncio
from pathlib import Path

from tests.xchain.stored import StoredChain, history

from icefall.db.sqlite import SqliteStore
from icefall.node.index import C_BLOCK
from icefall.node.store import PACKAGE, store_path
from icefall.node.sync.foreign import ForeignChain, ForeignContainer
from icefall.primary.chains import FollowedForeignChain, XChain
from icefall.wire.ids import hash256

CHAIN_ID, GENESIS_ID = hash256(b"chain"), hash256(b"genesis")


def test_the_asset_chain_keeps_them_all(tmp_path: Path) -> None:
    asyncio.run(_asset_chain(tmp_path))


async def _asset_chain(directory: Path) -> None:
    stored = StoredChain(directory)
    x = XChain(stored.chain.ledger)
    steps, accepted = [], []
    for step in history(1, 5):
        steps.append(step)
        await stored.carry_on(iter(steps))
        accepted.append(x.last_container_id)
    assert [x.container_id_at(number) for number in range(6)] == [*accepted, None]
    stored.store.close()


def test_other_chains_keep_them_in_a_complete_index(tmp_path: Path) -> None:
    asyncio.run(_other_chains(tmp_path))


async def _other_chains(directory: Path) -> None:
    store = SqliteStore(store_path(directory), PACKAGE)
    ids = [hash256(bytes([number])) for number in range(6)]

    def chain(*, indexed: bool) -> ForeignChain:
        return ForeignChain(store, "C", CHAIN_ID, GENESIS_ID, C_BLOCK if indexed else None)

    async def accept(into: ForeignChain, *numbers: int) -> None:
        run = [ForeignContainer(ids[number], b"raw", ids[number], number + 1) for number in numbers]
        await into.accept(run, lambda _: None)

    first = chain(indexed=True)
    await accept(first, 0, 1, 2)
    followed = FollowedForeignChain(first, hash256(b"X"))
    assert [followed.container_id_at(number) for number in (0, 2, 3)] == [ids[0], ids[2], None]
    without = chain(indexed=False)
    await accept(without, 3, 4)
    assert without.container_id_at(0) is None
    again = chain(indexed=True)
    await accept(again, 5)  # the fourth in the index, but not of the chain
    assert [again.container_id_at(number) for number in (0, 3, 5)] == [None] * 3
    store.close()
