"""Tokens whose logs contradict themselves are marked untrusted when the block is stored, before any audit."""

from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest
from tests.awaited import awaited
from tests.evm.indexed import open_store
from tests.metrics.synthetic import address, assembled

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

TOKEN, ANN, BEN, EVE = (address(number) for number in range(1, 5))


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
