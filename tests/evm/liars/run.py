"""Runs tokens that lie for as long as wanted: `python -m tests.evm.liars.run --store sqlite --tokens 200 --blocks 60`.

The chain grows and reorganises while it is followed into each store by a process of its own, which is killed at any
moment. Then it is indexed from scratch. All stores must agree, table by table, in every name and in every answer about
balances, owners, tokens and holders, and every balance of every holder at every block must be what balanceOf returns.
"""

import argparse
import asyncio
import random
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, NamedTuple

from tests.evm.adversarial.nodes import Node, anvil, geth
from tests.evm.digest import HOLDERS, logical_rows
from tests.evm.indexed import Indexing
from tests.evm.liars import follow
from tests.evm.liars.answers import answers, differing
from tests.evm.liars.checking import Result, UntrueChain, audited, compare, compare_ids, following
from tests.forked import started
from tests.postgres.server import server_url
from tests.store.opened import on_postgres, tables_of

from icefall.evm.auditing.audit import finish_audits
from icefall.evm.storing.store import ChainStore

REORG_DEPTH_MAX = 3
WAIT_LIMIT_S = 1800.0


class Size(NamedTuple):
    """How much there is of everything. One of `untrue_every` tokens lies; so do all with IDs."""

    tokens: int
    with_ids: int
    blocks: int
    per_block: int  # calls of tokens, most of which are transfers
    seed: int
    untrue_every: int
    per_tx: int = 1  # calls of tokens


def drive(node: Node, chain: UntrueChain, paths: Sequence[Path], size: Size) -> int:
    """Let the chain grow while it is followed, with reorganisations and kills. Return how often one was killed."""
    draw = random.Random(size.seed)
    kills = 0
    with followers(node, paths) as children:
        for _ in range(size.blocks):
            happen(chain, draw)
            if draw.random() < 0.5:  # else several blocks are stored at once, or none before a reorganisation
                wait_for_tip(node, paths)
            if draw.random() < 0.2:
                killed = draw.choice(paths)
                children[killed].kill()
                children[killed].join()
                children[killed] = started(follow.run, killed, node.url)
                kills += 1
        wait_for_tip(node, paths)
    return kills


def happen(chain: UntrueChain, draw: random.Random) -> None:
    chance = draw.random()
    if chance < 0.15:
        chain.reorganise(draw.randrange(1, REORG_DEPTH_MAX + 1))
    elif chance < 0.2 and chain.can_upgrade:
        chain.upgrade()
    else:
        chain.step()


@contextmanager
def followers(node: Node, paths: Sequence[Path]) -> Iterator[dict[Path, BaseProcess]]:
    children: dict[Path, BaseProcess] = {}
    if any(map(on_postgres, paths)):
        server_url()  # for the children too
    try:
        for path in paths:
            children[path] = started(follow.run, path, node.url)
        yield children
    finally:
        for child in children.values():
            child.kill()
            child.join()


def wait_for_tip(node: Node, paths: Sequence[Path]) -> None:
    """Wait until the newest block of the node is in all stores."""
    deadline = time.monotonic() + WAIT_LIMIT_S
    newest = node.call("eth_getBlockByNumber", "latest", False)["hash"]
    for path in paths:
        while tip_hash(path) != newest:
            assert time.monotonic() < deadline, f"{path.name} does not get to block {newest}"
            time.sleep(0.05)


def tip_hash(path: Path) -> str:
    try:
        with tables_of(path) as tables:
            rows = tables.rows("block", "number, hash", "number desc limit 1")[1]
    except Exception:  # it is being made
        return ""
    return "0x" + rows[0][1].hex() if rows else ""


async def indexed(node: Node, path: Path) -> None:
    """Index the chain to its end, with audits and names."""
    async with following(node, path) as found:
        await audited(node, found, WAIT_LIMIT_S)
        await finish_audits(found.follower.auditor, found.store)
        await read_names(found)


async def read_names(found: Indexing) -> None:
    """Read the names of all tokens that are due, now or later."""
    names = follow.names_loop(found.store._store, found, lambda: time.time() * 10 * follow._FASTER)
    while found.store.read("select 1 from token where read_at is null limit 1"):
        await names.round()


class Facts(NamedTuple):
    """The block of the proof, the one of a disagreement, and what was read of the token."""

    layout_since: int | None
    untrusted_since: int | None
    names: tuple[str, str, int]


def facts_of(store: ChainStore) -> dict[bytes, Facts]:
    rows = store.read(
        "select a.address, t.layout_since, t.untrusted_since, t.name, t.symbol, t.decimals"
        " from token t join address a on a.id = t.token"
    )
    return {address: Facts(since, untrusted, (*names,)) for address, since, untrusted, *names in rows}


def names_of(node: Node, tokens: Sequence[bytes]) -> dict[bytes, tuple[str, str, int]]:
    """What the contracts answer now."""
    selectors = ("0x06fdde03", "0x95d89b41", "0x313ce567")
    calls = [("eth_call", [{"to": "0x" + token.hex(), "data": one}, "latest"]) for token in tokens for one in selectors]
    answers = [bytes.fromhex(answer[2:]) for answer in node.batch(calls)]
    words: list[Any] = [
        answer[64:].rstrip(b"\0").decode() if len(answer) > 32 else int(answer.hex(), 16) for answer in answers
    ]
    return {token: tuple(words[3 * at : 3 * at + 3]) for at, token in enumerate(tokens)}


async def checked(node: Node, chain: UntrueChain, path: Path, known: dict[int, list[int]]) -> Result:
    """Compare all balances, owners and names, and check that every token that can be proven was. `known`: what
    contracts answered when another store was compared."""
    async with following(node, path) as found:
        facts = facts_of(found.store)
        blocks = range(node.newest() + 1)
        trusted = [address for address in chain.id_tokens if facts[address].untrusted_since is None]
        of_ids = await asyncio.to_thread(compare_ids, chain, found, trusted, chain.holders, blocks)
    wrong = [
        f"{token.code} {address.hex()}: proven at {one.layout_since}, untrusted since {one.untrusted_since}"
        for address, token in chain.all_tokens.items()
        if is_surprising(one := facts[address], is_provable=token.is_provable)
    ]
    result = await compare(chain, path, blocks, known)
    names = names_of(node, chain.addresses)
    wrong += [
        f"{token.hex()} is {facts[token].names}, not {name}"
        for token, name in names.items()
        if facts[token].names != name
    ]
    compared = result.compared + of_ids.compared + len(names)
    return Result(compared, result.wrong + of_ids.wrong + wrong, result.from_state)


def is_surprising(facts: Facts, *, is_provable: bool) -> bool:
    return (facts.layout_since is not None) != is_provable or (is_provable and facts.untrusted_since is not None)


def differing_tables(live: Path, fresh: Path) -> list[str]:
    """The tables in which two stores of the chain differ. Holders are counted later, by a loop that does not run."""
    one, other = logical_rows(live), logical_rows(fresh)
    return [table for table in one if table not in HOLDERS and one[table] != other[table]]


def differing_answers(node: Node, chain: UntrueChain, folder: Path, live: Path, fresh: Path) -> list[str]:
    """The requests to which two stores of the chain answer differently."""
    nfts = [address for address, token in chain.id_tokens.items() if token.has_owners]
    of = [answers(path, node, folder, [*chain.all_tokens], chain.holders, nfts) for path in (live, fresh)]
    print(f"{live.name} and {fresh.name}: {len(of[0])} answers compared", flush=True)
    return differing(*of)


def run(
    folder: Path, stores: Sequence[str], fresh: Sequence[str], size: Size, *, on_anvil: bool
) -> list[tuple[str, Result]]:
    """`stores` are filled while the chain grows, those of `fresh` afterwards."""
    results = []
    lives = [folder / f"live.{store}" for store in stores]
    freshes = [folder / f"fresh.{store}" for store in fresh]
    with anvil() if on_anvil else geth(folder) as node:
        chain = UntrueChain(
            node,
            size.tokens,
            size.seed,
            size.per_block,
            with_ids=size.with_ids,
            untrue_every=size.untrue_every,
            per_tx=size.per_tx,
        )
        kills = drive(node, chain, lives, size)
        newest = node.call("eth_getBlockByNumber", "latest", False)["hash"]
        print(f"{node.newest()} blocks, {chain.reorganisations} reorganisations, {kills} kills", flush=True)
        known: dict[int, list[int]] = {}
        for path in (*lives, *freshes):
            asyncio.run(indexed(node, path))
            results.append((path.name, asyncio.run(checked(node, chain, path, known))))
            print(path.name, described(results[-1][1]), flush=True)
        for path in (*lives, *freshes[1:]):
            for table in differing_tables(path, freshes[0]):
                results[0][1].wrong.append(f"{path.name} and {freshes[0].name} differ in {table}")
            results[0][1].wrong.extend(differing_answers(node, chain, folder, path, freshes[0]))
        if node.call("eth_getBlockByNumber", "latest", False)["hash"] != newest:  # names would be others, for one
            results[0][1].wrong.append("the node made blocks by itself while stores were compared")
    return results


def described(result: Result) -> str:
    return f"{result.compared} values compared, {len(result.wrong)} wrong, {result.from_state} reads of state"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--store", action="append", choices=["sqlite", "postgres"])
    parser.add_argument("--tokens", type=int, default=22)
    parser.add_argument("--blocks", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--node", choices=["anvil", "geth"], default="geth")
    parser.add_argument(
        "--per-transaction",
        type=int,
        help="calls of tokens in one: 1, or 10 with anvil, which traces a transaction by making those before it again",
    )
    parser.add_argument("--untrue-every", type=int, default=10)
    given = parser.parse_args()
    per_block = max(12, 3 * given.tokens // 4)
    per_tx = given.per_transaction or (10 if given.node == "anvil" else 1)
    size = Size(given.tokens, given.tokens // 3, given.blocks, per_block, given.seed, given.untrue_every, per_tx)
    with tempfile.TemporaryDirectory() as folder:
        stores = given.store or ["sqlite", "postgres"]
        results = run(Path(folder), stores, stores, size, on_anvil=given.node == "anvil")
    for name, result in results:
        print(f"{name}: {described(result)}")
        for line in result.wrong[:20]:
            print(" ", line)
    raise SystemExit(any(result.wrong for _, result in results))


if __name__ == "__main__":
    main()
