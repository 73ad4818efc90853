"""Runs tokens that lie for as long as wanted: `python -m tests.evm.liars.run --store sqlite --tokens 200 --blocks 60`.

The chain grows, reorganises and is left by an indexer that ends at any moment. Then it is indexed from scratch. Both
stores must agree, table by table and in every name, and every balance of every holder at every block must be what
balanceOf returns.
"""

import argparse
import asyncio
import random
import tempfile
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from tests.evm.adversarial.nodes import Node, anvil, geth
from tests.evm.digest import HOLDERS, logical_rows
from tests.evm.indexed import Indexing, open_store
from tests.evm.liars.checking import Result, UntrueChain, audited, caught_up, compare, compare_ids, following
from tests.evm.liars.tokens import REFUSED

from icefall.db.engine import Transaction
from icefall.evm.enriching.loops import TokenMetadataLoop
from icefall.evm.enriching.nft_outcomes import EnrichCounts

REORG_DEPTH_MAX = 3
WAIT_LIMIT_S = 1800.0
_LATER_S = 3600  # names that were read lately are read again


async def drive(node: Node, chain: UntrueChain, path: Path, blocks: int, seed: int) -> None:
    """Let the chain grow while it is followed, with reorganisations, and an indexer that ends and starts again."""
    draw = random.Random(seed)
    left = blocks
    while left > 0:
        async with following(node, path) as found:
            for _ in range(min(left, draw.randrange(4, 12))):
                left -= 1
                await asyncio.to_thread(_happen, chain, draw)
                if draw.random() < 0.7:  # else several blocks are stored at once
                    await caught_up(node, found, WAIT_LIMIT_S)
                elif draw.random() < 0.5:
                    await read_names(found)
    await indexed(node, path)


def _happen(chain: UntrueChain, draw: random.Random) -> None:
    chance = draw.random()
    if chance < 0.15:
        chain.reorganise(draw.randrange(1, REORG_DEPTH_MAX + 1))
    elif chance < 0.2 and chain.can_upgrade:
        chain.upgrade()
    else:
        chain.step()


async def indexed(node: Node, path: Path) -> None:
    """Index the chain to its end, with audits and names."""
    async with following(node, path) as found:
        await audited(node, found, WAIT_LIMIT_S)
        await read_names(found)


async def read_names(found: Indexing) -> None:
    loop = TokenMetadataLoop(found.store._store, found.upstream, EnrichCounts(), lambda: time.time() + _LATER_S)
    while await loop.round():
        pass


def facts_of(found: Indexing) -> dict[bytes, tuple[int | None, int | None, tuple[str, str, int]]]:
    """The block of the proof, the one of a disagreement, and what was read of the token, by address."""
    rows = found.store.read(
        "select a.address, t.layout_since, t.untrusted_since, t.name, t.symbol, t.decimals"
        " from token t join address a on a.id = t.token"
    )
    return {address: (since, untrusted, tuple(names)) for address, since, untrusted, *names in rows}


def names_of(node: Node, tokens: Sequence[bytes]) -> dict[bytes, tuple[str, str, int]]:
    """What the contracts answer now."""
    selectors = ("0x06fdde03", "0x95d89b41", "0x313ce567")
    calls = [("eth_call", [{"to": "0x" + token.hex(), "data": one}, "latest"]) for token in tokens for one in selectors]
    answers = [bytes.fromhex(answer[2:]) for answer in node.batch(calls)]
    words = [answer[64:].rstrip(b"\0").decode() if len(answer) > 32 else int(answer.hex(), 16) for answer in answers]
    return {token: (*words[3 * at : 3 * at + 3],) for at, token in enumerate(tokens)}  # type: ignore[misc]


async def checked(node: Node, chain: UntrueChain, path: Path) -> Result:
    """Compare all balances, owners and names, and check that every token that can be proven was."""
    async with following(node, path) as found:
        facts = facts_of(found)
        blocks = range(node.newest() + 1)
        trusted = [address for address in chain.id_tokens if facts[address][1] is None]
        of_ids = await asyncio.to_thread(compare_ids, chain, found, trusted, chain.holders, blocks)
    for address, with_ids in chain.id_tokens.items():
        since, untrusted, _ = facts[address]
        assert (since is not None) == with_ids.is_provable, with_ids.code
        # After a reorganisation a token's own view is wrong, and so are its logs.
        assert untrusted is None or not with_ids.is_provable, with_ids.code
    for address, token in chain.tokens.items():
        since, untrusted, _ = facts[address]
        assert (since is None) == (token.code in REFUSED), (token.code, since)
        assert untrusted is None or token.code in REFUSED, (token.code, untrusted)
    result = await compare(chain, path, blocks)
    names = names_of(node, chain.addresses)
    wrong = [
        f"{token.hex()} is {facts[token][2]}, not {name}" for token, name in names.items() if facts[token][2] != name
    ]
    compared = result.compared + of_ids.compared + len(names)
    return Result(compared, result.wrong + of_ids.wrong + wrong, result.from_state)


def distrust(path: Path, tokens: Iterable[bytes]) -> set[bytes]:
    """Mark tokens as untrusted. All that are."""
    store = open_store(path)

    def change(tx: Transaction) -> set[bytes]:
        for token in tokens:
            tx.run(
                "update token set untrusted_since = 0"
                " where untrusted_since is null and token = (select id from address where address = ?)",
                (token,),
            )
        rows = tx.rows(
            "select a.address from token t join address a on a.id = t.token where t.untrusted_since is not null"
        )
        return {address for (address,) in rows}

    try:
        return asyncio.run(store.write(change))
    finally:
        store.close()


def differing_tables(live: Path, fresh: Path) -> list[str]:
    """The tables in which two stores of the chain differ. A token that blocks have shown to be untrusted stays so when
    they are rolled back: it is made so in both. Holders are counted later, by a loop that does not run."""
    distrust(live, distrust(fresh, distrust(live, ())))
    one, other = logical_rows(live), logical_rows(fresh)
    return [table for table in one if table not in HOLDERS and one[table] != other[table]]


async def run(
    folder: Path, stores: Sequence[str], tokens: int, blocks: int, seed: int, untrue_every: int, *, on_anvil: bool
) -> list[Result]:
    results = []
    for store in stores:
        live, fresh = (folder / f"{name}.{store}" for name in ("live", "fresh"))
        with anvil() if on_anvil else geth(folder / store) as node:
            per_block = max(12, 3 * tokens // 4)
            chain = UntrueChain(node, tokens, seed, per_block, with_ids=tokens // 3, untrue_every=untrue_every)
            await drive(node, chain, live, blocks, seed)
            await indexed(node, fresh)
            results += [await checked(node, chain, path) for path in (live, fresh)]
            differing = await asyncio.to_thread(differing_tables, live, fresh)
            results[-1].wrong.extend(f"live and fresh differ in {table}" for table in differing)
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--store", action="append", choices=["sqlite", "postgres"])
    parser.add_argument("--tokens", type=int, default=22)
    parser.add_argument("--blocks", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--node", choices=["anvil", "geth"], default="geth", help="anvil is slow with large blocks")
    parser.add_argument("--untrue-every", type=int, default=10)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        stores, on_anvil = given.store or ["sqlite"], given.node == "anvil"
        settings = given.tokens, given.blocks, given.seed, given.untrue_every
        results = asyncio.run(run(Path(folder), stores, *settings, on_anvil=on_anvil))
    for result in results:
        print(f"{result.compared} values compared, {len(result.wrong)} wrong, {result.from_state} reads of state")
        for line in result.wrong[:20]:
            print(" ", line)
    raise SystemExit(any(result.wrong for result in results))


if __name__ == "__main__":
    main()
