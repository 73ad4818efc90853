"""Tokens whose logs contradict themselves are marked untrusted when the block is stored, before any audit."""

from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest
from tests.awaited import awaited
from tests.evm.indexed import Log, open_store
from tests.metrics.synthetic import address, assembled

from icefall.evm.auditing.audit import Auditor
from icefall.evm.deriving.packing import packed
from icefall.evm.model import (
    ZERO_ADDRESS,
    BlockRows,
    Erc20Delta,
    Erc20TransferRow,
    Erc721TransferRow,
    Erc1155TransferRow,
    IdDelta,
    NftOwner,
)
from icefall.evm.packed import ResolvedBlock
from icefall.evm.storing.store import ChainStore
from icefall.upstream.evm.errors import Reverted
from icefall.upstream.evm.state import At, ContractCall, StateCall

TOKEN, ANN, BEN, EVE, DAN = (address(number) for number in range(1, 6))


def erc20(number: int, sender: bytes, to: bytes, value: int) -> BlockRows:
    deltas = [Erc20Delta(TOKEN, holder, delta) for holder, delta in ((sender, -value), (to, value)) if any(holder)]
    move = Erc20TransferRow(0, 0, TOKEN, sender, to, value)
    return msgspec.structs.replace(assembled(number, number, ()), erc20_transfers=(move,), erc20_deltas=tuple(deltas))


def erc1155(number: int, sender: bytes, to: bytes, value: int, token_id: int = 7) -> BlockRows:
    deltas = [
        IdDelta(TOKEN, holder, token_id, delta) for holder, delta in ((sender, -value), (to, value)) if any(holder)
    ]
    move = Erc1155TransferRow(0, 0, 0, TOKEN, sender, to, token_id, value)
    return msgspec.structs.replace(
        assembled(number, number, ()), erc1155_transfers=(move,), erc1155_deltas=tuple(deltas)
    )


def erc721(number: int, sender: bytes, to: bytes, token_id: int = 7) -> BlockRows:
    move = Erc721TransferRow(0, 0, TOKEN, sender, to, token_id)
    owner = NftOwner(TOKEN, token_id, to, sender)
    return msgspec.structs.replace(assembled(number, number, ()), erc721_transfers=(move,), nft_owners=(owner,))


CONTRADICTIONS = {
    "ERC-20 balance below zero": [erc20(1, ZERO_ADDRESS, ANN, 5), erc20(2, ANN, BEN, 6)],
    "ERC-1155 balance below zero": [erc1155(1, ZERO_ADDRESS, ANN, 5), erc1155(2, ANN, BEN, 6)],
    "ERC-1155 transfer of another ID": [erc1155(1, ZERO_ADDRESS, ANN, 5), erc1155(2, ANN, BEN, 1, token_id=8)],
    "ERC-721 transfer by another than the owner": [erc721(1, ZERO_ADDRESS, ANN), erc721(2, EVE, BEN)],
}
CONSISTENT = {
    "ERC-20 balance of exactly zero": [erc20(1, ZERO_ADDRESS, ANN, 5), erc20(2, ANN, BEN, 5)],
    "ERC-1155 balance of exactly zero": [erc1155(1, ZERO_ADDRESS, ANN, 5), erc1155(2, ANN, BEN, 5)],
    "ERC-721 transfer by the owner": [erc721(1, ZERO_ADDRESS, ANN), erc721(2, ANN, BEN)],
}


async def untrusted_since(path: Path, batches: Sequence[Sequence[BlockRows]]) -> int | None:
    store = open_store(path)
    try:
        for batch in batches:
            await store.commit([ResolvedBlock(packed(rows), (), ()) for rows in batch])
        ((since,),) = store.read("select untrusted_since from token where token = ?", (store.id_of(TOKEN),))
    finally:
        store.close()
    return None if since is None else int(since)


@pytest.mark.parametrize("case", CONTRADICTIONS)
@awaited
async def test_a_contradiction_marks_the_token(case: str, tmp_path: Path) -> None:
    first, second = CONTRADICTIONS[case]
    assert await untrusted_since(tmp_path / "one_batch.sqlite", [[first, second]]) == 2
    assert await untrusted_since(tmp_path / "two_batches.sqlite", [[first], [second]]) == 2


@pytest.mark.parametrize("case", CONSISTENT)
@awaited
async def test_consistent_logs_are_trusted(case: str, tmp_path: Path) -> None:
    first, second = CONSISTENT[case]
    assert await untrusted_since(tmp_path / "one_batch.sqlite", [[first, second]]) is None
    assert await untrusted_since(tmp_path / "two_batches.sqlite", [[first], [second]]) is None


class StateOfOwner:
    """The state of a collection that has given its NFT away without a log. `owner` is what it answers, at any block."""

    def __init__(self) -> None:
        self.owner = ANN

    async def results(self, calls: Sequence[StateCall]) -> list[bytes | Reverted]:
        return [self.owner.rjust(32, b"\0") for _ in calls]

    async def answers(self, calls: Sequence[ContractCall], at: At) -> list[bytes | Reverted]:
        raise AssertionError(calls)

    async def balances(self, addresses: Sequence[bytes], at: At) -> list[int]:
        raise AssertionError(addresses)

    async def codes(self, addresses: Sequence[bytes], at: At) -> list[bytes]:
        raise AssertionError(addresses)


def owners_found(store: ChainStore) -> set[tuple[bytes, int]]:
    return {(owner, block) for owner, block in store.read("select owner, block from nft_state_owner")}


async def audit(auditor: Auditor, store: ChainStore) -> None:
    while (tip := store.tip()) is not None and await auditor.step(tip):
        pass


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
@awaited
async def test_an_owner_that_an_audit_found_outlasts_a_later_finding(engine: str, tmp_path: Path) -> None:
    """Audits of blocks that stay are not made again: what they found has to stay too."""
    store, state = open_store(tmp_path / f"a.{engine}"), StateOfOwner()
    auditor = Auditor(store, state, 5_000, Log())
    blocks = [erc721(1, ZERO_ADDRESS, BEN), erc721(2, BEN, BEN), *(erc721(number, BEN, EVE) for number in (3, 4))]
    for rows, owner in zip(blocks, (ANN, ANN, DAN, ANN), strict=True):
        state.owner = owner
        await store.commit([ResolvedBlock(packed(rows), (), ())])
        await audit(auditor, store)
    assert owners_found(store) == {(ANN, 1), (DAN, 3)}
    await store.roll_back(2)
    assert owners_found(store) == {(ANN, 1)}
    store.close()


@awaited
async def test_all_tokens_are_compared_again_after_a_reorganisation_of_one_block(tmp_path: Path) -> None:
    store, state = open_store(tmp_path / "a.sqlite"), StateOfOwner()
    auditor = Auditor(store, state, 5_000, Log())
    state.owner = BEN
    await store.commit([ResolvedBlock(packed(erc721(1, ZERO_ADDRESS, BEN)), (), ())])
    await audit(auditor, store)
    for name in (b"one", b"other"):
        rows = msgspec.structs.replace(assembled(2, 2, ()))
        block = msgspec.structs.replace(rows.block, block_hash=name.rjust(32, b"\0"))
        await store.commit([ResolvedBlock(packed(msgspec.structs.replace(rows, block=block)), (), ())])
        await audit(auditor, store)
        tip = store.tip()
        assert tip is not None
        assert not auditor.is_swept(tip)
        state.owner = ANN
        await auditor.sweep(tip)
        assert auditor.is_swept(tip)
        assert owners_found(store) == {(ANN, 2)}
        state.owner = BEN
        await store.roll_back(1)
        assert owners_found(store) == set()
    store.close()
