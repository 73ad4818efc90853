"""A real client with tracers, followed while it works: what is stored agrees with what the client returns."""

import asyncio
from pathlib import Path

from tests.awaited import awaited
from tests.evm.indexed import DEPTH_MAX, Indexing, Log, indexing_of, open_store
from tests.evm.live_client import Anvil, anvil
from tests.waiting import LIMIT_S

from icefall.evm.encoding import unpack_uint
from icefall.evm.indexing.follower import BlockRange
from icefall.evm.indexing.reorgs import ReorgRules
from icefall.evm.storing.store import ChainStore
from icefall.upstream.evm.upstream import EvmUpstream

BLOCKS = 90


@awaited
async def test_a_live_client_is_followed_to_the_wei(tmp_path: Path) -> None:
    with anvil() as client:
        client.fund(BLOCKS)
        store = open_store(tmp_path / "chain.sqlite")
        upstream = EvmUpstream([client.url], client.chain_id, Log())
        try:
            await _followed(
                client,
                indexing_of(
                    store, upstream, BlockRange(), roots=True, rules=ReorgRules("1", DEPTH_MAX, development=True)
                ),
                store,
            )
        finally:
            await upstream.close()
            store.close()


async def _followed(client: Anvil, it: Indexing, store: ChainStore) -> None:
    running = asyncio.create_task(it.follower.run())
    for number in range(1, BLOCKS + 1):
        await asyncio.to_thread(client.mine, number)
        if number % 30 == 0:  # now it is at the tip, now it has to catch up
            await in_step(client, it, running)
    await in_step(client, it, running)
    assert it.follower.status.txs > 150
    assert it.follower.status.transfers > 60
    _compare(client, store, range(0, BLOCKS + 1, 9))

    await asyncio.to_thread(client.ask, "anvil_reorg", 5, [])
    await in_step(client, it, running)
    assert it.follower.status.reorged_blocks == 5
    await asyncio.to_thread(client.ask, "anvil_rollback", 3)
    await asyncio.to_thread(client.ask, "evm_mine")
    await asyncio.to_thread(client.ask, "evm_mine")
    await in_step(client, it, running)
    _compare(client, store, range(BLOCKS - 8, BLOCKS))
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def in_step(client: Anvil, it: Indexing, running: "asyncio.Task[None]") -> None:
    """Until the store's tip is the client's."""
    deadline = asyncio.get_running_loop().time() + LIMIT_S
    while True:
        assert not running.done(), running.exception()
        newest = await asyncio.to_thread(client.ask, "eth_getBlockByNumber", "latest", False)
        tip = it.store.tip()
        if tip is not None and "0x" + tip.block_hash.hex() == newest["hash"] and it.follower.status.synced:
            return
        assert asyncio.get_running_loop().time() < deadline, it.follower.status
        await asyncio.sleep(0.05)


def _compare(client: Anvil, store: ChainStore, blocks: range) -> None:
    rows = store.read("select a.address, b.block, b.balance from native_balance b join address a on a.id = b.address")
    assert rows
    addresses = sorted({address for address, _, _ in rows})
    compared = 0
    for block in blocks:
        known = {}
        for address, at, balance in sorted(rows):
            if at <= block:
                known[address] = unpack_uint(balance)
        asked = [address for address in addresses if address in known]
        assert client.balances(asked, block) == [known[address] for address in asked], f"at block {block}"
        compared += len(asked)
    assert compared > 50
