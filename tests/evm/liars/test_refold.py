"""`icefall index --refold` on the store of a release that did not read storage: every balance at every block is that of
the contract, also after the work was interrupted anywhere."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.awaited import awaited
from tests.evm.adversarial.nodes import CHAIN_ID, Node, anvil
from tests.evm.indexed import open_store
from tests.evm.liars.checking import Result, UntrueChain, audited, caught_up, compare, following
from tests.evm.liars.tokens import LAYOUTS, REFUSED
from tests.upstream.evm_scene import RecordingLog

from icefall.evm.indexing import refold
from icefall.evm.indexing.refold import Refold
from icefall.evm.layouts.proof import Prover
from icefall.evm.status import REFOLD_META, RefoldProgress, decode_refold
from icefall.evm.storing.store import ChainStore
from icefall.upstream.evm.upstream import EvmUpstream

BLOCKS = 8


class Killed(Exception):
    pass


async def refolded(node: Node, path: Path, kill_at: int | None = None) -> RefoldProgress | None:
    """Run it to its end. `kill_at`: until so many transactions were begun; the last one is not committed."""
    store, left = open_store(path), kill_at
    upstream = EvmUpstream([node.url], CHAIN_ID, RecordingLog())
    write = store.write

    async def interrupted(change: Callable[[Any], Any]) -> Any:
        nonlocal left
        if left == 0:

            def broken(tx: Any) -> None:
                change(tx)
                raise Killed

            return await write(broken)
        left = None if left is None else left - 1
        return await write(change)

    store.write = interrupted  # type: ignore[method-assign]
    shown: list[int] = []
    try:
        prover = Prover(upstream, upstream.is_avalanche)
        return await Refold(store, upstream, prover, lambda progress: shown.append(progress.next)).run()
    except Killed:
        return None
    finally:
        assert shown == sorted(shown)
        await upstream.close()
        store.close()


def sources(store: ChainStore) -> dict[bytes, str]:
    rows = store.read("select a.address, t.balance_source from token_trust t join address a on a.id = t.token")
    return dict(rows)


async def old_store(node: Node, path: Path) -> UntrueChain:
    """A chain whose first blocks were indexed without proofs."""
    chain = UntrueChain(node, len(LAYOUTS), seed=5, per_block=20, per_tx=4)
    async with following(node, path, proofs=False) as found:
        for _ in range(BLOCKS):
            chain.step()
            await caught_up(node, found)
    chain.step()
    async with following(node, path) as found:
        chain.step()
        await audited(node, found)
    return chain


async def wrong_before(chain: UntrueChain, path: Path, known: dict[int, list[int]]) -> Result:
    """What is wrong at the newest block of the old release if every token is believed."""
    marks = await marked(path, {})
    result = await compare(chain, path, [chain.node.newest() - 2], known)
    await marked(path, marks)
    return result


async def marked(path: Path, marks: dict[int, int]) -> dict[int, int]:
    """Mark these tokens untrusted, and no others. What was marked before."""
    store = open_store(path)

    def change(tx: Any) -> dict[int, int]:
        before = tx.rows("select token, untrusted_since from token where untrusted_since is not null")
        tx.run("update token set untrusted_since = null")
        for token, block in marks.items():
            tx.run("update token set untrusted_since = ? where token = ?", (block, token))
        return dict(before)

    try:
        return await store.write(change)
    finally:
        store.close()


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
@awaited
async def test_the_past_becomes_exact(engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refold, "STEP_BLOCKS", (1, 2, 2))
    path = tmp_path / f"old.{engine}"
    with anvil() as node:
        chain = await old_store(node, path)
        known: dict[int, list[int]] = {}
        assert (await wrong_before(chain, path, known)).wrong
        kills = 0
        while (done := await refolded(node, path, kill_at=3 * kills)) is None:
            kills += 1
        assert kills > 3
        assert (done.is_done, done.failed) == (True, [])
        assert done.corrected > 0
        blocks = range(node.newest() + 1)
        result = await compare(chain, path, blocks, known)
        assert (result.wrong, result.compared) == ([], len(blocks) * len(chain.addresses) * len(chain.holders))
        store = open_store(path)
        proven = {address for address, token in chain.tokens.items() if token.code not in REFUSED}
        assert {address for address, source in sources(store).items() if source == "storage"} == proven
        assert decode_refold(store.meta(REFOLD_META) or "").next >= BLOCKS
        store.close()
        again = await refolded(node, path)
        assert again is not None
        assert (again.corrected, again.done) == (0, 0)
        async with following(node, path) as found:  # and it is followed as before
            chain.step()
            await audited(node, found)
        assert (await compare(chain, path, range(node.newest() + 1), known)).wrong == []
