"""The zero address, from which tokens are minted and to which they are burned: no NFT is its own, and what contracts
credit to it is read from their state alone."""

from collections.abc import Sequence
from pathlib import Path

from msgspec.structs import replace
from tests.awaited import awaited
from tests.evm.indexed import open_store
from tests.evm.reading_scene import now
from tests.metrics.synthetic import address, assembled
from tests.store.opened import open_reader

from icefall.evm.deriving.packing import packed
from icefall.evm.deriving.tokens import ParsedLog, erc20_deltas, id_deltas, nft_owners
from icefall.evm.model import (
    ZERO_ADDRESS,
    BlockRows,
    Erc20Delta,
    Erc20TransferRow,
    Erc721TransferRow,
    Erc1155TransferRow,
    IdDelta,
)
from icefall.evm.packed import ResolvedBlock
from icefall.evm.reading.balances import BalanceReader, CallBudget
from icefall.evm.standards import BY_ID, load_statements
from icefall.upstream.evm.errors import Reverted
from icefall.upstream.evm.state import At, ContractCall
from icefall.wire.evm.events import NativeWrapped

COIN, ITEMS, NFTS, ANN, BEN = (address(number) for number in range(1, 6))
CREDITED = 7
AUDIT_SQL = load_statements("icefall.evm.auditing", "audit.sql")
TOKEN_ID = 5


def block(number: int, sender: bytes, to: bytes, value: int) -> BlockRows:
    """A transfer of each standard between the same two, with the changes that the indexer derives from it."""
    coins = (Erc20TransferRow(0, 0, COIN, sender, to, value),)
    items = (Erc1155TransferRow(0, 1, 0, ITEMS, sender, to, TOKEN_ID, value),)
    nfts = (Erc721TransferRow(0, 2, NFTS, sender, to, TOKEN_ID),)
    return replace(
        assembled(number, number, ()),
        erc20_transfers=coins,
        erc20_deltas=tuple(erc20_deltas(coins, ())),
        erc1155_transfers=items,
        erc1155_deltas=tuple(id_deltas(items)),
        erc721_transfers=nfts,
        nft_owners=tuple(nft_owners(nfts)),
    )


MINTED, BURNED, MINTED_AGAIN = (
    block(1, ZERO_ADDRESS, ANN, 9),
    block(2, ANN, ZERO_ADDRESS, 4),
    block(3, ZERO_ADDRESS, BEN, 1),
)


class CreditingContracts:
    """State in which every contract has credited the zero address."""

    def __init__(self) -> None:
        self.asked: list[bytes] = []

    async def balances(self, addresses: Sequence[bytes], at: At) -> list[int]:
        return [0] * len(addresses)

    async def answers(self, calls: Sequence[ContractCall], at: At) -> list[bytes | Reverted]:
        self.asked += [call.to for call in calls]
        return [CREDITED.to_bytes(32, "big")] * len(calls)


def test_logs_never_change_what_it_holds() -> None:
    """It is named with no change, so that it is a candidate for the balances that are read from state."""
    for given in (MINTED, BURNED, MINTED_AGAIN):
        assert {one.delta for one in given.erc20_deltas if one.holder == ZERO_ADDRESS} <= {0}
        assert {one.delta for one in given.erc1155_deltas if one.holder == ZERO_ADDRESS} <= {0}
    assert MINTED.erc20_deltas == (Erc20Delta(COIN, ANN, 9),)
    assert MINTED.erc1155_deltas == (IdDelta(ITEMS, ANN, TOKEN_ID, 9),)
    assert BURNED.erc20_deltas == (Erc20Delta(COIN, ANN, -4), Erc20Delta(COIN, ZERO_ADDRESS, 0))
    assert BURNED.erc1155_deltas == (
        IdDelta(ITEMS, ANN, TOKEN_ID, -4),
        IdDelta(ITEMS, ZERO_ADDRESS, TOKEN_ID, 0),
    )
    wrapped = [ParsedLog(0, index, COIN, NativeWrapped(holder)) for index, holder in enumerate((ZERO_ADDRESS, ANN))]
    assert list(erc20_deltas((), wrapped)) == [Erc20Delta(COIN, ANN, 0)]


@awaited
async def test_what_it_holds_is_read_from_state(tmp_path: Path) -> None:
    store = open_store(tmp_path / "chain.sqlite")
    await store.commit([ResolvedBlock(packed(rows), (), ()) for rows in (MINTED, BURNED)])
    await store.write(lambda tx: tx.run(AUDIT_SQL.put_checkpoint, {"block": 2, "credit": 0, "dropped_from": None}))
    store.close()
    contracts = CreditingContracts()
    reader = open_reader(tmp_path / "chain.sqlite")
    balances, budget = BalanceReader(reader, contracts), CallBudget()
    coins, _ = now(balances.erc20(ZERO_ADDRESS, 2, None, 10, budget=budget))
    only, _ = now(balances.erc20(ZERO_ADDRESS, 2, None, 10, [COIN], budget=budget))
    items, _ = now(balances.of_ids(BY_ID[0], ZERO_ADDRESS, 2, None, 10, budget=budget))
    assert [(one.token, one.balance) for one in (*coins, *only)] == [(COIN, CREDITED)] * 2
    assert [(one.token, one.token_id, one.balance) for one in items] == [(ITEMS, TOKEN_ID, CREDITED)]
    assert contracts.asked == [COIN, COIN, ITEMS]
    assert budget.spent == 3
    ((ann, _), (many, _)) = now(balances.erc20(ANN, 2, None, 10)), now(balances.of_ids(BY_ID[0], ANN, 2, None, 10))
    assert ([one.balance for one in ann], [one.balance for one in many]) == ([5], [5])
    assert len(contracts.asked) == 3, "tokens that the audits trust need no call"
    reader.close()


@awaited
async def test_it_owns_no_nft_after_a_mint_that_followed_a_burn_is_rolled_back(tmp_path: Path) -> None:
    store = open_store(tmp_path / "chain.sqlite")
    held = "select a.address from nft_held h join address a on a.id = h.owner"
    owners = []
    for rows in (MINTED, BURNED, MINTED_AGAIN):
        await store.commit([ResolvedBlock(packed(rows), (), ())])
        owners.append([owner for (owner,) in store.read(held)])
    await store.roll_back(2)
    owners.append([owner for (owner,) in store.read(held)])
    await store.roll_back(1)
    owners.append([owner for (owner,) in store.read(held)])
    store.close()
    assert owners == [[ANN], [], [BEN], [], [ANN]]
