"""What shows that a token is untrusted, and what audits left out, is rolled back with its block: a store that saw a
block which was replaced knows what one knows that never saw it."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tests.awaited import awaited
from tests.evm.indexed import Log, open_store
from tests.evm.test_untrusted_tokens import ANN, BEN, CONTRADICTIONS, TOKEN, StateOfOwner, audit, erc20, erc721
from tests.metrics.synthetic import assembled

from icefall.evm.auditing import audit as audit_module
from icefall.evm.auditing import sample
from icefall.evm.auditing.audit import Auditor
from icefall.evm.deriving.packing import packed
from icefall.evm.model import ZERO_ADDRESS, BlockRows
from icefall.evm.packed import ResolvedBlock
from icefall.evm.storing.store import ChainStore
from icefall.upstream.evm.errors import Reverted
from icefall.upstream.evm.state import StateCall

ENGINES = pytest.mark.parametrize("engine", ["sqlite", "postgres"])
INTERVAL = 5_000
NUMBERS = {assembled(number, 0, ()).block.block_hash: number for number in range(10)}
TRUSTED = None, None, False, "audited"


class StateOfHolder(StateOfOwner):
    """The state of a token of which no address has anything, but at `others`: the balance of all, by block."""

    def __init__(self, others: Mapping[int, int]) -> None:
        super().__init__()
        self.others = others
        self.asked: list[int] = []  # the block of each question

    async def results(self, calls: Sequence[StateCall]) -> list[bytes | Reverted]:
        blocks = [at if isinstance(at, int) else NUMBERS[at] for _, at in calls]
        self.asked += blocks
        return [self.others.get(block, 0).to_bytes(32, "big") for block in blocks]


@asynccontextmanager
async def opened(path: Path) -> AsyncIterator[ChainStore]:
    store = open_store(path)
    try:
        yield store
    finally:
        store.close()


async def commit(store: ChainStore, *blocks: BlockRows) -> None:
    for rows in blocks:
        await store.commit([ResolvedBlock(packed(rows), (), ())])


def known(store: ChainStore) -> tuple[int | None, int | None, bool, str]:
    """Since when the token is untrusted, at which block it was found so among all tokens, and what answers say."""
    ((since, at, is_untrusted, source),) = store.read(
        "select t.untrusted_since, t.differed_at, u.is_untrusted, u.balance_source"
        " from token t join token_trust u on u.token = t.token where t.token = ?",
        (store.id_of(TOKEN),),
    )
    return since, at, bool(is_untrusted), source


@ENGINES
@pytest.mark.parametrize("case", CONTRADICTIONS)
@awaited
async def test_a_contradiction_is_rolled_back(case: str, engine: str, tmp_path: Path) -> None:
    first, second = CONTRADICTIONS[case]
    async with opened(tmp_path / f"a.{engine}") as store:
        await commit(store, first, second)
        assert known(store) == (2, None, True, "logs")
        await store.roll_back(1)
        assert known(store)[0] is None
        await commit(store, second)
        assert known(store) == (2, None, True, "logs")


def repeated(blocks: int) -> list[BlockRows]:
    """A mint, and blocks that name its owner again."""
    return [erc721(1, ZERO_ADDRESS, BEN), *(erc721(number, BEN, BEN) for number in range(2, blocks + 1))]


@ENGINES
@awaited
async def test_what_an_audit_found_is_rolled_back_and_found_again(engine: str, tmp_path: Path) -> None:
    """The NFT is given away without a log at block 3."""
    async with opened(tmp_path / f"a.{engine}") as store:
        state = StateOfOwner()
        auditor = Auditor(store, state, INTERVAL, Log())
        for rows, owner in zip(repeated(4), (BEN, BEN, ANN, ANN), strict=True):
            state.owner = owner
            await commit(store, rows)
            await audit(auditor, store)
        assert known(store) == (3, None, True, "logs")
        await store.roll_back(3)
        assert known(store) == (3, None, True, "logs")
        await store.roll_back(2)
        assert known(store) == TRUSTED
        state.owner = ANN  # the replacement lies as well
        await commit(store, repeated(3)[2])
        await audit(auditor, store)
        assert known(store) == (3, None, True, "logs")


class StateOfNext(StateOfOwner):
    """A node that answers with the state of a block which came meanwhile, the first time that it is asked at each."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: set[object] = set()

    async def results(self, calls: Sequence[StateCall]) -> list[bytes | Reverted]:
        owners = [BEN if one.at in self.asked else ANN for one in calls]
        self.asked |= {one.at for one in calls}
        return [owner.rjust(32, b"\0") for owner in owners]


@awaited
async def test_a_difference_counts_only_if_the_node_says_so_twice(tmp_path: Path) -> None:
    async with opened(tmp_path / "a.sqlite") as store:
        auditor = Auditor(store, StateOfNext(), INTERVAL, Log())
        await commit(store, *repeated(3))
        await audit(auditor, store)
        assert known(store) == TRUSTED
        assert store.read("select owner from nft_state_owner") == []
        tip = store.tip()
        assert tip is not None
        await Auditor(store, StateOfNext(), INTERVAL, Log()).sweep(tip)
        assert known(store) == TRUSTED


@ENGINES
@awaited
async def test_what_was_found_among_all_tokens_is_rolled_back(engine: str, tmp_path: Path) -> None:
    """Audits of blocks do not depend on it, because when all tokens are compared depends on when blocks arrive."""
    async with opened(tmp_path / f"a.{engine}") as store:
        state = StateOfOwner()
        state.owner = BEN
        auditor = Auditor(store, state, INTERVAL, Log())
        await commit(store, *repeated(2))
        await audit(auditor, store)
        assert known(store) == TRUSTED
        tip = store.tip()
        assert tip is not None
        state.owner = ANN
        await auditor.sweep(tip)
        assert known(store) == (None, 2, True, "logs")
        await commit(store, repeated(3)[2])
        await audit(auditor, store)
        assert known(store) == (3, 2, True, "logs")
        await store.roll_back(2)
        assert known(store) == (None, 2, True, "logs")
        await store.roll_back(1)
        state.owner = BEN
        await audit(auditor, store)
        assert known(store) == TRUSTED


@ENGINES
@awaited
async def test_what_audits_left_out_is_made_up_at_its_own_block_and_rolled_back(
    engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`auditedToBlock` is the newest block before the first of which not everything was compared: comparisons at newer
    blocks, also of all tokens, do not move it. Ann has one too many at block 3, and no more at block 4."""
    monkeypatch.setattr(sample, "PER_BLOCK", 0)
    holders = [ANN, BEN]
    blocks: Sequence[BlockRows] = [erc20(number, ZERO_ADDRESS, holders[number % 2], 0) for number in range(1, 6)]
    async with opened(tmp_path / f"a.{engine}") as store:
        state = StateOfHolder({3: 1})
        auditor = Auditor(store, state, INTERVAL, Log())
        await commit(store, *blocks[:2])
        await audit(auditor, store)
        assert auditor.audited_to() == 2

        await store.write(lambda tx: tx.run("update audit set credit = 0"))  # nothing is left of the budget
        await commit(store, *blocks[2:4])
        await audit(auditor, store)
        assert (auditor.audited_to(), auditor.dropped) == (2, 2)
        tip = store.tip()
        assert tip is not None
        await auditor.sweep(tip)
        assert (auditor.audited_to(), known(store)) == (2, TRUSTED)

        state.asked.clear()
        assert [await auditor.make_up() for _ in range(3)] == [True, True, False]
        assert list(dict.fromkeys(state.asked)) == [3, 4]
        assert (auditor.audited_to(), known(store)) == (4, (None, 3, True, "logs"))
        await store.roll_back(3)
        await audit(auditor, store)
        assert auditor.audited_to() == 2  # they were made up for a batch that ended with a block that is gone
        assert known(store) == (None, 3, True, "logs")
        await store.roll_back(2)
        assert (auditor.audited_to(), known(store)) == (2, TRUSTED)
        state.others = {}
        await store.write(lambda tx: tx.run("update audit set credit = 1000"))
        await commit(store, *blocks[2:])
        await audit(auditor, store)
        assert (auditor.audited_to(), known(store)) == (5, TRUSTED)


@ENGINES
@awaited
async def test_what_was_left_out_is_made_up_as_far_as_the_budget_goes(
    engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Time in which nothing is due earns more."""
    monkeypatch.setattr(sample, "PER_BLOCK", 0)
    monkeypatch.setattr(audit_module, "FIRST_CREDIT", 0)
    monkeypatch.setattr(audit_module, "MADE_UP_CHECKS", 1)
    async with opened(tmp_path / f"a.{engine}") as store:
        auditor = Auditor(store, StateOfHolder({}), INTERVAL, Log())
        await commit(store, *(erc20(number, ZERO_ADDRESS, BEN, 0) for number in range(1, 4)))
        await audit(auditor, store)
        assert auditor.audited_to() == 0
        for audited_to in range(1, 4):
            assert [await auditor.make_up() for _ in range(2)] == [True, False]
            assert auditor.audited_to() == audited_to
            auditor.idle(60)
