"""Runs tokens that lie for as long as wanted: `python -m tests.evm.liars.run --store sqlite --tokens 200 --blocks 100`.

The chain grows, reorganises and is left by an indexer that ends at any moment. Then it is indexed from scratch, and
every balance of every holder at every block is compared with balanceOf in both stores.
"""

import argparse
import asyncio
import random
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.evm.adversarial.nodes import Node, anvil
from tests.evm.indexed import Indexing
from tests.evm.liars.checking import Result, UntrueChain, audited, caught_up, compare, compare_ids, following
from tests.evm.liars.tokens import REFUSED

REORG_DEPTH_MAX = 3


async def drive(node: Node, chain: UntrueChain, path: Path, blocks: int, seed: int) -> None:
    """Let the chain grow while it is followed, with reorganisations, and an indexer that ends and starts again."""
    draw = random.Random(seed)
    left = blocks
    while left > 0:
        async with following(node, path) as found:
            for _ in range(min(left, draw.randrange(4, 12))):
                left -= 1
                _happen(chain, draw)
                if draw.random() < 0.7:  # else several blocks are stored at once
                    await caught_up(node, found)
    async with following(node, path) as found:
        await audited(node, found)


def _happen(chain: UntrueChain, draw: random.Random) -> None:
    chance = draw.random()
    if chance < 0.15:
        chain.reorganise(draw.randrange(1, REORG_DEPTH_MAX + 1))
    elif chance < 0.2 and chain.can_upgrade:
        chain.upgrade()
    else:
        chain.step()


async def indexed_anew(node: Node, path: Path) -> None:
    async with following(node, path) as found:
        await audited(node, found)


def trust_of(found: Indexing) -> dict[bytes, tuple[int | None, int | None]]:
    """The block of the proof and the one of a disagreement, by token."""
    rows = found.store.read(
        "select a.address, t.layout_since, t.untrusted_since from token t join address a on a.id = t.token"
    )
    return {address: (since, untrusted) for address, since, untrusted in rows}


async def checked(node: Node, chain: UntrueChain, path: Path) -> Result:
    """Compare all balances, and check that every token that can be proven was."""
    async with following(node, path) as found:
        trust = trust_of(found)
        blocks = range(node.newest() + 1)
        trusted = {address: one for address, one in chain.id_tokens.items() if trust[address][1] is None}
        of_ids = await asyncio.to_thread(compare_ids, node, found, trusted, chain.holders, blocks)
    for address, with_ids in chain.id_tokens.items():
        since, untrusted = trust[address]
        assert (since is not None, untrusted) == (True, None), with_ids.code
    for address, token in chain.tokens.items():
        since, untrusted = trust[address]
        assert (since is None) == (token.code in REFUSED), (token.code, since)
        assert untrusted is None or token.code in REFUSED, (token.code, untrusted)
    result = await compare(node, path, chain.addresses, chain.holders, blocks)
    return Result(result.compared + of_ids.compared, result.wrong + of_ids.wrong, result.from_state)


async def run(folder: Path, stores: Sequence[str], tokens: int, blocks: int, seed: int) -> list[Result]:
    results = []
    for store in stores:
        live, fresh = (folder / f"{name}.{store}" for name in ("live", "fresh"))
        with anvil() as node:
            chain = UntrueChain(node, tokens, seed, per_block=max(12, 3 * tokens // 4), with_ids=tokens // 3)
            await drive(node, chain, live, blocks, seed)
            await indexed_anew(node, fresh)
            results += [await checked(node, chain, path) for path in (live, fresh)]
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--store", action="append", choices=["sqlite", "postgres"])
    parser.add_argument("--tokens", type=int, default=22)
    parser.add_argument("--blocks", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        results = asyncio.run(run(Path(folder), given.store or ["sqlite"], given.tokens, given.blocks, given.seed))
    for result in results:
        print(f"{result.compared} balances compared, {len(result.wrong)} wrong, {result.from_state} reads of state")
        for line in result.wrong[:20]:
            print(" ", line)
    raise SystemExit(any(result.wrong for result in results))


if __name__ == "__main__":
    main()
