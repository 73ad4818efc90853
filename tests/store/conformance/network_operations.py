"""Every list of X and of the atomic side of C, on the store of a recorded network."""

from typing import Any

from tests.pchain.recorded import Playback

from icefall.db.engine import Store, Transaction
from icefall.node.core_chain import CoreChainLists
from icefall.node.index import X_VTX, IndexReader
from icefall.primary.asset_tables import AssetChainTables
from icefall.primary.chains import foreign_chains
from icefall.primary.exported import FinalChainTables
from icefall.primary.listed import ListedCore, ListedPlatform, Steps, is_listed
from icefall.primary.platform_tables import PlatformTables
from icefall.primary.vertices import XVertices
from icefall.wire.container.vertex import pack_vertex, unpack_vertex
from icefall.wire.ids import hash256
from icefall.wire.packer import GENESIS_SIZE_MAX
from icefall.wire.pvm.codec import unpack_tx
from icefall.xchain.listed import StoredTxs
from icefall.xchain.listing import AssetChainLists, first_at
from icefall.xchain.outputs import OutputLists
from icefall.xchain.store import NEWEST
from icefall.xchain.vertices import VertexLists, forget_vertices

LISTED_TABLES = (
    "listed",
    "chain_output",
    "chain_output_owner",
    "early_spent",
    "asset_tx",
    "proposed_block",
    "c_block",
    "c_tx",
    "c_address_tx",
)


async def network_outcomes(store: Store, played: Playback) -> dict[str, Any]:
    x_chain_id = played.network.genesis.x_chain_id
    await _list_again(store, played)
    return {
        "asset chain": await _asset_chain(store, x_chain_id),
        "vertices": await _vertices(store, x_chain_id),
        "core chain": await _core_chain(store),
        "outputs": await _outputs(store, x_chain_id),
        "exported": [
            _exported(tables) for tables in (PlatformTables(store, "custom"), AssetChainTables(store, "custom"))
        ],
    }


def _exported(chain: FinalChainTables) -> list[Any]:
    """Every row of every table of `icefall export`, up to some block, and what the division into files asks."""
    span = chain.span()
    assert span is not None
    last = span[1] * 3 // 4
    time = chain.block_time(last)
    found: list[Any] = [span, chain.block_hash(last), time, chain.first_block_since(0, span[1], time)]
    for table in chain.tables:
        found.append([table.values(row) for piece in chain.pieces(table, 1, last) for row in piece])
        assert found[-1], table.name
    return found


async def _list_again(store: Store, played: Playback) -> None:
    """List everything once more in the background, as in a store of a release that had no lists."""

    def forget(tx: Transaction) -> None:
        for table in LISTED_TABLES:
            tx.run(f"delete from {table}")

    def listed(tx: Transaction) -> set[bool]:
        moving = tx.rows("select bytes from p_tx where type in (17, 18)")
        return {is_listed(tx, unpack_tx(bytes(raw), GENESIS_SIZE_MAX)) for (raw,) in moving}

    await store.write(forget)
    assert await store.write(listed) == {False}
    core = foreign_chains(played.network, store, indexed=True)["C"]
    steps: list[Steps] = [StoredTxs(store, played.network.genesis.x_chain_id), ListedPlatform(store)]
    for one in (*steps, ListedCore(store, core)):
        while await one.step():
            pass
    assert await store.write(listed) == {True}


async def _asset_chain(store: Store, chain_id: bytes) -> list[Any]:
    lists = AssetChainLists(store, chain_id)
    blocks, txs = await lists.counts()
    page = await lists.blocks(0, blocks, blocks)
    found: list[Any] = [page, await lists.block(1), await lists.block(page[0].block_id)]
    found += [await lists.block(2**70), await lists.blocks_at([0, 2])]
    every = await lists.txs(0, txs, txs, upwards=True)
    middle = every[len(every) // 2].time
    found += [every, await lists.first_height(middle, blocks), await lists.first_seq(middle, txs)]
    owners = [row[0] for row in store.read("select distinct address from chain_output_owner order by address")]
    for upwards in (True, False):
        found.append(await lists.txs(1, txs, 5, upwards=upwards))
        found.append(await lists.txs_of(owners, 0, txs, 5, upwards=upwards))
    for (asset,) in store.read("select distinct asset from asset_tx order by asset"):
        found.append(await lists.txs_of_asset(asset, 0, txs, 5))
    found.append(sorted(await lists.raw_txs([one.txid for one in every])))
    return [*found, [await lists.tx(one.txid) for one in every]]


async def _vertices(store: Store, chain_id: bytes) -> list[Any]:
    """A small DAG of stored transactions, then a stray, which makes all of them be deleted again."""
    every = await AssetChainLists(store, chain_id).txs(0, NEWEST, 3, upwards=True)
    first = pack_vertex(chain_id, 0, (), tuple(one.raw for one in every))
    second = pack_vertex(chain_id, 1, (hash256(first),), (every[0].raw,))
    last = pack_vertex(chain_id, 2, (hash256(second),), ())
    kept = XVertices(store, chain_id, hash256(last), indexed=True)
    found: list[Any] = [kept.count, kept.number_of(hash256(first)), kept.are_accepted([one.txid for one in every])]
    found.append(kept.are_accepted([every[0].txid, bytes(32)]))
    for batch in ([first, second], [last]):
        found.append(await kept.put([unpack_vertex(raw) for raw in batch], batch))
    lists = VertexLists(store, chain_id)
    page = await lists.newest(NEWEST, 5)
    found += [page, await lists.newest(2, 1), await lists.vertex(hash256(second)), await lists.txids(page)]
    found += [await lists.at_height(1, -1, NEWEST, 5, upwards=upwards) for upwards in (True, False)]
    found += [await lists.of_txs([one.seq for one in every]), kept.count, kept.number_of(hash256(last))]
    assert found[4:6] == [True, True]
    assert len(page) == 3
    stray = pack_vertex(chain_id, 1, (hash256(first),), (every[1].raw,))
    await store.write(lambda tx: forget_vertices(tx, X_VTX.number))
    batch = [first, stray, second, last]
    found.append(await kept.put([unpack_vertex(raw) for raw in batch], batch))
    assert found[-1] is False
    return [*found, kept.count, await IndexReader(store, X_VTX, chain_id).last_number()]


async def _core_chain(store: Store) -> list[Any]:
    lists = CoreChainLists(store, first_at)
    blocks, txs = await lists.block_count(), await lists.tx_count()
    page = await lists.blocks(0, blocks, blocks)
    found: list[Any] = [page, await lists.block(1), await lists.block(page[0].block_id), await lists.blocks_at([1, 2])]
    every = await lists.txs(0, txs, txs, upwards=True)
    middle = page[len(page) // 2].time
    found += [every, await lists.first_height(middle, blocks), await lists.first_seq(middle, txs)]
    owners = [row[0] for row in store.read("select distinct address from c_address_tx order by address")]
    for upwards in (True, False):
        found.append(await lists.txs(1, txs, 5, upwards=upwards))
        found.append(await lists.txs_of(owners, 0, txs, 5, upwards=upwards))
    found.append(sorted(await lists.raw_txs([one.txid for one in every])))
    return [*found, [await lists.tx(one.txid) for one in every]]


async def _outputs(store: Store, x_chain_id: bytes) -> list[Any]:
    lists = OutputLists(store)
    rows = store.read("select distinct chain_id, address from chain_output_owner order by chain_id, address")
    found: list[Any] = []
    for chain_id, address in rows:
        found.append(await lists.owns_on(chain_id, address))
        for upwards in (True, False):
            for by_amount in (True, False):
                found.append(
                    await lists.owned(chain_id, [address], (0, 1), None, 3, upwards=upwards, by_amount=by_amount)
                )
    utxo_ids = [row[0] for row in store.read("select distinct utxo_id from chain_output order by utxo_id")]
    found.append(await lists.with_ids(utxo_ids))
    for chain_id, node_id in store.read("select distinct chain_id, node_id from proposed_block order by 1, 2"):
        found.append(await lists.proposed(chain_id, node_id, 0, 1000, 5))
    return [*found, await lists.is_complete(x_chain_id, bytes(32))]
