"""A sample of tokens that lie, on anvil: every balance at every block is what the contract answers."""

import asyncio
from pathlib import Path

import pytest
from tests.awaited import awaited
from tests.evm.adversarial.nodes import anvil
from tests.evm.liars.checking import UntrueChain, audited, caught_up, compare, compare_ids, following
from tests.evm.liars.ids import ID_LAYOUTS
from tests.evm.liars.tokens import LAYOUTS, REFUSED

BLOCKS = 10


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
@awaited
async def test_every_balance_is_that_of_the_contract(engine: str, tmp_path: Path) -> None:
    path = tmp_path / f"live.{engine}"
    with anvil() as node:
        chain = UntrueChain(node, len(LAYOUTS), seed=1, per_block=20, with_ids=len(ID_LAYOUTS))
        async with following(node, path) as found:
            for _ in range(BLOCKS):
                chain.step()
                await caught_up(node, found)
            await audited(node, found)
            blocks = range(node.newest() + 1)
            of_ids = await asyncio.to_thread(
                compare_ids, chain, found, list(chain.id_tokens), chain.holders[:4], blocks
            )
            rows = found.store.read(
                "select a.address, t.layout_since, t.untrusted_since from token t join address a on a.id = t.token"
            )
        known = {address: (since, untrusted) for address, since, untrusted in rows}
        for address, token in chain.tokens.items():
            since, untrusted = known[address]
            assert (since is None) == (token.code in REFUSED), (token.code, since)
            assert untrusted is None or token.code in REFUSED, token.code
        for address, with_ids in chain.id_tokens.items():
            since, untrusted = known[address]
            assert (since is not None, untrusted) == (with_ids.is_provable, None), with_ids.code
        assert of_ids.wrong == []
        assert of_ids.compared > 200
        result = await compare(chain, path, blocks)
        assert result.wrong == []
        assert result.compared > 1000
