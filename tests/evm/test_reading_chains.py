"""Chains by name, and chains whose indexer has not started."""

import asyncio
import shutil
import sqlite3
from pathlib import Path

import pytest
from tests.evm.reading_scene import indexed, now

from icefall.compose.stores import Stores
from icefall.db.engine import StoreError
from icefall.db.sqlite import SqliteStore
from icefall.errors import NotFound
from icefall.evm.model import ERC20
from icefall.evm.reading.directory import ChainDirectory, ChainInfo, EvmChain, TokenInfo
from icefall.evm.reading.model import PageRange
from icefall.evm.storing.store import PACKAGE, ChainStore, store_path

TOKEN = TokenInfo("Avalanche", "AVAX", 18)
BLOCKCHAIN_ID = "2q9e4r6Mu3U68nU1fYjgbR6JvwrRx36CohpAX5UQxse55x1Q5"
LEARNT = "yH8D7ThNJkxmtkuv2jgBa4P1Rn3Qpr4pPr7QYNfcdoS6k6HWp"


def test_names(tmp_path: Path) -> None:
    c_chain = ChainInfo("43114", "C-Chain", TOKEN, aliases=("C", "avalanche-c"), blockchain_id=BLOCKCHAIN_ID)
    other = ChainInfo("99", "Other", TOKEN, aliases=("c", "Other"))
    chains = ChainDirectory([EvmChain(one, Stores(tmp_path).chain_reader(one.id)) for one in (c_chain, other)])
    assert [chain.info.id for chain in chains.all()] == ["43114", "99"]
    for name in ("43114", BLOCKCHAIN_ID, "C", "c", "AVALANCHE-C"):
        assert now(chains.find(name)).info is c_chain
    assert now(chains.find("other")).info is other
    for name in ("", "43115", "043114", BLOCKCHAIN_ID.lower(), "x" * 5000, LEARNT):
        with pytest.raises(NotFound, match="not indexed here"):
            now(chains.find(name))


def test_a_blockchain_id_the_indexer_has_learnt(tmp_path: Path) -> None:
    chain = EvmChain(ChainInfo("99", "Other", TOKEN), Stores(tmp_path).chain_reader("99"))
    chains = ChainDirectory([chain])
    assert now(chain.blockchain_id()) == ""
    path = store_path(tmp_path, "99")
    path.parent.mkdir()
    store = ChainStore(SqliteStore(path, PACKAGE))
    asyncio.run(store.put_meta({"blockchain_id": LEARNT}))
    store.close()
    assert now(chains.find(LEARNT)) is chain
    assert now(chain.blockchain_id()) == LEARNT
    assert now(chain.blocks.meta("nothing")) is None


def test_a_file_that_comes_later(tmp_path: Path) -> None:
    chain = EvmChain(ChainInfo("99", "Other", TOKEN), Stores(tmp_path).chain_reader("99"))
    path = store_path(tmp_path, "99")

    def not_yet(one: EvmChain) -> None:
        with pytest.raises(StoreError, match="chain 99 is not indexed yet"):
            now(one.blocks.tip())
        with pytest.raises(StoreError, match="chain 99 is not indexed yet"):
            now(one.lists.transfers_of(ERC20, bytes(20), PageRange(), 10))

    not_yet(chain)
    path.parent.mkdir()
    sqlite3.connect(path).close()
    path.touch()
    not_yet(chain)  # no tables yet
    path.unlink()
    shutil.copy(indexed("berlin-1").path, path)
    tip = now(chain.blocks.tip())
    assert tip is not None
    assert tip.number == 131
    assert now(chain.enriched.native_price("usd")) is None
    assert chain.method_names.of(bytes(20), bytes(4)) is None
