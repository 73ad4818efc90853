"""Verification compares stored rows with the upstream's blocks, and finds damage in each kind of row."""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from tests.awaited import awaited
from tests.evm.indexed import indexing, messenger_of, open_store
from tests.evm.recordings import LOCAL_AVAX
from tests.upstream.evm_replay import EvmReplay
from tests.upstream.evm_scene import upstream_of

from icefall.evm.auditing.verify import Verification, stored_blocks
from icefall.evm.encoding import REPEATS_TRANSFER

CHAIN, LAST = "geth-1", 60
REPEATS = f"substr(input, 1, 2) = x'{REPEATS_TRANSFER.hex()}'"


@pytest.fixture(scope="module")
def indexed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("indexed") / "indexed.sqlite"
    replay = EvmReplay(CHAIN)
    replay.shown = LAST

    @awaited
    async def index() -> None:
        async with indexing(path, replay) as it:
            await it.follower.run()

    index()
    return path


@pytest.fixture
def stored(indexed: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(indexed, tmp_path / "stored.sqlite"))


def changed(path: Path, statement: str) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        assert connection.execute(statement).rowcount == 1


async def verified(path: Path) -> list[str]:
    store, replay = open_store(path), EvmReplay(CHAIN)
    replay.shown = LAST
    async with upstream_of(replay) as upstream:
        await upstream.probe_all()
        verification = Verification(store, upstream, (messenger_of(replay),), LOCAL_AVAX, verify_roots=False)
        found = await verification.run(stored_blocks(store, None, None), lambda _: None)
    store.close()
    return [one.what for one in found]


@awaited
async def test_what_was_indexed_is_as_the_upstream_says(stored: Path) -> None:
    with closing(sqlite3.connect(stored)) as connection:
        ((repeating,),) = connection.execute(f"select count(*) from tx where {REPEATS}")
    assert repeating > 10
    assert await verified(stored) == []


@pytest.mark.parametrize("damage", ["amounts = x'80'", "input = x'000003'", "input = x''", "selector = x'01020304'"])
@awaited
async def test_a_changed_transaction_is_found(stored: Path, damage: str) -> None:
    with closing(sqlite3.connect(stored)) as connection:
        ((at,),) = connection.execute(f"select min(tx_at) from tx where {REPEATS} and substr(input, 3) = x'02'")
    changed(stored, f"update tx set {damage} where tx_at = {at}")
    assert await verified(stored) == ["transactions: 1 stored that are not in the block, 1 missing"]


FIRST_TOKEN = "(token, block) = (select token, block from erc20_in order by token, block limit 1)"


@pytest.mark.parametrize(
    ("damage", "stored_too_many"),
    [("update erc20_in set last_log = last_log + 1", 1), ("delete from erc20_in", 0)],
)
@awaited
async def test_a_block_of_a_token_that_is_wrong_or_missing_is_found(
    stored: Path, damage: str, stored_too_many: int
) -> None:
    changed(stored, f"{damage} where {FIRST_TOKEN}")
    assert await verified(stored) == [f"tokens by block: {stored_too_many} stored that are not in the block, 1 missing"]
