"""A sample of tokens that lie, on anvil: every balance at every block is what the contract answers."""

from pathlib import Path

import pytest
from tests.awaited import awaited
from tests.evm.adversarial.nodes import anvil
from tests.evm.liars.checking import UntrueChain, audited, caught_up, compare, following
from tests.evm.liars.tokens import LAYOUTS, REFUSED

BLOCKS = 10


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
@awaited
async def test_every_balance_is_that_of_the_contract(engine: str, tmp_path: Path) -> None:
    path = tmp_path / f"live.{engine}"
    with anvil() as node:
        chain = UntrueChain(node, len(LAYOUTS), seed=1, per_block=12)
        async with following(node, path) as found:
            for _ in range(BLOCKS):
                chain.step()
                await caught_up(node, found)
            await audited(node, found)
            rows = found.store.read(
                "select a.address, t.layout_since, t.untrusted_since from token t join address a on a.id = t.token"
            )
        known = {address: (since, untrusted) for address, since, untrusted in rows}
        for address, token in chain.tokens.items():
            since, untrusted = known[address]
            assert (since is None) == (token.code in REFUSED), (token.code, since)
            assert untrusted is None or token.code in REFUSED, token.code
        result = await compare(node, path, chain.addresses, chain.holders, range(node.newest() + 1))
        assert result.wrong == []
        assert result.compared > 1000
