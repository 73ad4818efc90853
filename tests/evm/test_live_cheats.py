"""What a test client changes outside transactions, followed live: balances that are set, and accounts impersonated."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path

from tests.awaited import awaited
from tests.evm.indexed import DEPTH_MAX, Indexing, Log, indexing_of, open_store
from tests.evm.live_client import Anvil, anvil
from tests.evm.test_live_client import in_step

from icefall.evm.indexing.follower import BlockRange
from icefall.evm.indexing.reorgs import ReorgRules
from icefall.upstream.evm.upstream import EvmUpstream

X, Y, ACTOR = (bytes(19) + bytes([number]) for number in (0xAA, 0xBB, 0xCC))
ETHER = 10**18


@asynccontextmanager
async def followed(client: Anvil, path: Path) -> AsyncIterator[tuple[Indexing, "asyncio.Task[None]"]]:
    """A follower of a development chain that proves what it stores."""
    rules = ReorgRules("1", DEPTH_MAX, development=True)
    upstream = EvmUpstream([client.url], client.chain_id, Log())
    with closing(open_store(path)) as store:
        it = indexing_of(store, upstream, BlockRange(), roots=True, rules=rules, poll_s=0.05)
        running = asyncio.create_task(it.follower.run())
        try:
            yield it, running
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
            await upstream.close()


def hexed(address: bytes) -> str:
    return "0x" + address.hex()


def pay(client: Anvil, to: bytes, amount: int, sender: str | None = None) -> str:
    sent = {"from": sender or client.ask("eth_accounts")[0], "to": hexed(to), "value": hex(amount)}
    paid: str = client.ask("eth_sendTransaction", sent)
    client.ask("evm_mine")
    return paid


@awaited
async def test_a_balance_that_was_set_goes_with_the_block_it_was_set_at(tmp_path: Path) -> None:
    """X has 100, is given 5000 by hand two blocks later, and is seen to have it two blocks after that."""
    with anvil() as client:
        async with followed(client, tmp_path / "chain.sqlite") as (it, running):
            pay(client, X, 100)
            pay(client, Y, 1)
            client.ask("anvil_setBalance", hexed(X), hex(5000))
            pay(client, Y, 1)
            await in_step(client, it, running)
            pay(client, X, 7)
            await in_step(client, it, running)
            assert it.store.newest_native([X]) == [(5007, 4)]
            for depth in (1, 3):
                client.ask("anvil_reorg", depth, [])
                await in_step(client, it, running)
                (known,) = it.store.newest_native([X])
                assert known is not None
                assert client.balances([X], 4) == [known[0]], f"after a reorganisation of depth {depth}"
            assert known == (100, 1)


@awaited
async def test_a_transaction_of_an_impersonated_account_is_indexed(tmp_path: Path) -> None:
    with anvil() as client:
        async with followed(client, tmp_path / "chain.sqlite") as (it, running):
            client.ask("anvil_setBalance", hexed(ACTOR), hex(ETHER))
            client.ask("anvil_impersonateAccount", hexed(ACTOR))
            paid = pay(client, X, 100, hexed(ACTOR))
            pay(client, X, 5)
            await in_step(client, it, running)
            assert (it.follower.status.tip, it.follower.status.problem) == (2, "")
            assert it.store.newest_native([X]) == [(105, 2)]
            assert it.store.read("select hash from tx where tx_at >> 24 = 1") == [(bytes.fromhex(paid[2:]),)]
            assert any("without a signature" in str(line) for line in it.log.lines)
