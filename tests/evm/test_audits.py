"""What audits compare and what they cost: a function of the chain, whatever else is stored."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from tests.api.made_chain import ANN, BEN, erc20
from tests.awaited import awaited
from tests.evm.indexed import AUDIT_INTERVAL, indexing, open_store
from tests.evm.recordings import CHAINS, each_once
from tests.metrics.synthetic import address
from tests.upstream.evm_replay import EvmReplay

from icefall.db.engine import Transaction
from icefall.evm.auditing import due
from icefall.evm.auditing.audit import Auditor, finish_audits
from icefall.evm.auditing.sample import (
    BY_STORAGE_NAMED,
    BY_STORAGE_OTHERS,
    FIRST_CREDIT,
    LAG,
    PER_BLOCK,
    TRANSFERS_PER_CHECK,
    Sampler,
)
from icefall.evm.deriving.packing import packed
from icefall.evm.model import ZERO_ADDRESS
from icefall.evm.packed import ResolvedBlock
from icefall.evm.storing.store import ChainStore

LAST, LATER = 60, 120


async def index(path: Path, chain: str, last: int) -> None:
    replay = EvmReplay(chain)
    replay.shown = last
    async with indexing(path, replay) as it:
        await it.follower.run()


def samples(store: ChainStore, last: int, credit: int = FIRST_CREDIT, together: int = LAG) -> list[Any]:
    """What is compared block by block, by address: interned IDs may differ between stores."""
    sampler, found = Sampler(store, AUDIT_INTERVAL), []
    for first in range(0, last + 1, together):
        for sample in sampler.over(first, min(last, first + together - 1), credit):
            credit = sample.credit
            found.append((credit, [(check.call, check.stored) for check in sample.checks]))
    return found


@pytest.mark.parametrize("chain", CHAINS)
@awaited
async def test_later_blocks_do_not_change_what_a_block_compares(chain: str, tmp_path: Path) -> None:
    await index(tmp_path / "early.sqlite", chain, LAST)
    await index(tmp_path / "late.sqlite", chain, LATER)
    early, late = open_store(tmp_path / "early.sqlite"), open_store(tmp_path / "late.sqlite")
    try:
        expected = samples(early, LAST)
        assert any(checks for _, checks in expected)
        assert samples(late, LAST) == expected
    finally:
        early.close()
        late.close()


@pytest.mark.parametrize(("chain", "rows_together"), each_once(CHAINS, [8_192, 3]))
@awaited
async def test_what_a_block_compares_does_not_depend_on_the_blocks_audited_with_it(
    chain: str, rows_together: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor on how many rows may be read together."""
    await index(tmp_path / "chain.sqlite", chain, LATER)
    store = open_store(tmp_path / "chain.sqlite")
    try:
        for credit in (0, FIRST_CREDIT):
            alone = samples(store, LATER, credit, together=1)
            assert any(checks for _, checks in alone)
            with monkeypatch.context() as changed:
                changed.setattr(due, "_RUN_ROWS", rows_together)
                assert samples(store, LATER, credit) == alone
                assert samples(store, LATER, credit, together=7) == alone
    finally:
        store.close()


@awaited
async def test_a_run_of_blocks_is_read_in_few_statements(tmp_path: Path) -> None:
    """On a server each is a round trip: asked block by block there were five for each."""
    await index(tmp_path / "chain.sqlite", "geth-1", LATER)
    store, count = open_store(tmp_path / "chain.sqlite"), Counter[str]()
    read, read_each = store.read, store.read_each

    def counted(statement: str, params: Any = ()) -> Any:
        count[statement] += 1
        return read(statement, params)

    def each_counted(statement: str, params: Any) -> Any:
        count[statement] += 1
        return read_each(statement, params)

    store.read, store.read_each = counted, each_counted
    try:
        made = sum(len(checks) for _, checks in samples(store, LATER, credit=0))
        assert made > LATER / 2
        assert count.total() < LATER, count
    finally:
        store.close()


@awaited
async def test_comparisons_stay_within_what_blocks_earn(tmp_path: Path) -> None:
    await index(tmp_path / "chain.sqlite", "geth-1", LATER)
    store = open_store(tmp_path / "chain.sqlite")
    try:
        tables = ("erc20", "erc721", "erc1155")
        transfers = sum(store.read(f"select count(*) from {table}")[0][0] for table in tables)
        made = sum(len(checks) for _, checks in samples(store, LATER))
        assert 0 < made <= FIRST_CREDIT + PER_BLOCK * (LATER + 1) + transfers // TRANSFERS_PER_CHECK
        poor = samples(store, LATER, credit=0)
        assert 0 < sum(len(checks) for _, checks in poor) <= PER_BLOCK * (LATER + 1) + transfers // TRANSFERS_PER_CHECK
        assert min(credit for credit, _ in poor) == 0
    finally:
        store.close()


@awaited
async def test_tokens_by_storage_are_compared_seldom_and_a_little(tmp_path: Path) -> None:
    await index(tmp_path / "chain.sqlite", "geth-1", LATER)
    store = open_store(tmp_path / "chain.sqlite")
    try:
        before = sum(len(checks) for _, checks in samples(store, LATER))
        by_storage = "update token set layout_since = first_block, layout_standard = standards where standards = 1"
        await store.write(lambda tx: tx.run(by_storage))
        tokens = {address for (address,) in store.read("select address from address a join token t on t.token = a.id"
                                                       " where t.layout_since is not null")}  # fmt: skip
        made = [Counter(call.to for call, _ in checks) for _, checks in samples(store, LATER)]
        of_each = [count for block in made for token, count in block.items() if token in tokens]
        assert 0 < max(of_each) <= BY_STORAGE_NAMED + BY_STORAGE_OTHERS
        assert sum(of_each) < before / 20
        for by_all in (False, True):  # what `icefall index --verify` compares is not limited
            sampled = Sampler(store, 0).all_tokens(LATER, 0, by_storage=by_all)
            most = max(len(checks) for _, checks in sampled if any(check.token_address in tokens for check in checks))
            assert (most > BY_STORAGE_NAMED + BY_STORAGE_OTHERS) == by_all
        await store.write(lambda tx: tx.run("update token set words_dropped_since = :block", {"block": LATER // 2}))
        later = [Counter(call.to for call, _ in checks) for _, checks in samples(store, LATER)]
        assert later[: LATER // 2] == made[: LATER // 2]  # audited before the block is stored, or long after
        of_blocks = [[block[token] for block in some[LATER // 2 :] for token in tokens] for some in (made, later)]
        assert sum(of_blocks[1]) > 4 * sum(of_blocks[0])
    finally:
        store.close()


@awaited
async def test_tokens_whose_storage_changed_without_a_log_are_compared_first(tmp_path: Path) -> None:
    """Where one comparison is left: most likely their balances changed."""
    named, changed = address(7), address(8)
    store = open_store(tmp_path / "a.sqlite")
    try:
        for rows in (erc20(1, ZERO_ADDRESS, ANN, 5, named), erc20(2, ZERO_ADDRESS, BEN, 5, changed)):
            await store.commit([ResolvedBlock(packed(rows), (), ())])
        block = packed(erc20(3, ANN, BEN, 1, named))
        await store.commit([ResolvedBlock(replace(block, storage_changed_unlogged=[changed]), (), ())])
        ((sample,), (all_of_it,)) = (Sampler(store, 0).over(3, 3, credit) for credit in (0, FIRST_CREDIT))
        assert [check.token_address for check in sample.checks] == [changed]
        assert sample.dropped == 1  # the token that the block names
        assert {check.token_address for check in all_of_it.checks} == {named, changed}
        assert all_of_it.dropped == 0
    finally:
        store.close()


@pytest.mark.parametrize("together", [1, 2])
@awaited
async def test_transfers_that_were_not_looked_at_count_as_dropped(together: int, tmp_path: Path) -> None:
    store = open_store(tmp_path / "a.sqlite")
    try:
        one, two = erc20(1, ZERO_ADDRESS, ANN, 5), erc20(2, ZERO_ADDRESS, ANN, 5)
        moved = two.erc20_transfers[0]
        two = replace(two, erc20_transfers=(moved, replace(moved, log_index=1, token=address(8))))
        await store.commit([ResolvedBlock(packed(rows), (), ()) for rows in (one, two)])
        sampler = Sampler(store, 0, moves_max=1)
        found = [sample for first in range(1, 3, together) for sample in sampler.over(first, first + together - 1, 100)]
        assert [sample.dropped for sample in found] == [0, 1]
    finally:
        store.close()


@awaited
async def test_blocks_without_state_are_skipped(tmp_path: Path) -> None:
    """A full node keeps the state of its newest blocks only."""
    replay = EvmReplay("geth-1")
    replay.shown = LATER
    async with indexing(tmp_path / "chain.sqlite", replay) as it:
        await it.follower.run()

        def forget(tx: Transaction) -> None:
            tx.run("delete from audit")

        await it.store.write(forget)
        replay.off |= {"blockHash"}
        replay.pruned_below = LATER - 63
        auditor = Auditor(it.store, it.upstream, AUDIT_INTERVAL, it.log)
        await finish_audits(auditor, it.store)
        assert auditor.audited_to() < 20  # the first transfers: neither their state nor that of newer blocks tells
        assert await it.store.write(lambda tx: tx.rows("select max(block) from audit")) == [(LATER,)]
        assert auditor.checks > 0
        assert auditor.dropped > 0
        skipped = [fields for message, fields in it.log.lines if "no upstream has their state" in message]
        assert [(fields["first"], fields["last"]) for fields in skipped] == [(0, LATER - 64)]


@awaited
async def test_an_untrusted_token_is_logged_once(tmp_path: Path) -> None:
    """Neither each comparison that disagrees nor the next process reports it again."""
    replay = EvmReplay("geth-1")
    async with indexing(tmp_path / "chain.sqlite", replay) as it:
        await it.follower.run()

        def tokens() -> list[str]:
            return [fields["token"] for message, fields in it.log.lines if message.startswith("token untrusted")]

        once = tokens()
        assert len(once) == len(set(once)) > 1

        def forget(tx: Transaction) -> None:
            tx.run("delete from audit")

        await it.store.write(forget)
        await finish_audits(Auditor(it.store, it.upstream, AUDIT_INTERVAL, it.log), it.store)
        assert tokens() == once


@awaited
async def test_a_rollback_takes_its_audits_back(tmp_path: Path) -> None:
    replay = EvmReplay("geth-1")
    replay.shown = LATER
    async with indexing(tmp_path / "chain.sqlite", replay) as it:
        await it.follower.run()
        calls = replay.asked("eth_call")
        await it.store.roll_back(LAST)
        auditor = Auditor(it.store, it.upstream, AUDIT_INTERVAL, it.log)
        assert auditor.audited_to() <= LAST
        await finish_audits(auditor, it.store)
        assert auditor.audited_to() == LAST
        assert replay.asked("eth_call") > calls
