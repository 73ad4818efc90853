"""Native balances folded from blocks equal the recorded state: every known address, every block, to the wei."""

from collections.abc import Iterable
from typing import Any

import msgspec
import pytest
from tests.evm.recordings import (
    CHAINS,
    LOCAL_AVAX,
    REORGS,
    Code,
    contract_info_for,
    derived,
    full_blocks,
    like,
    meta,
    states,
    unhex,
)

from icefall.evm.deriving.derive import derive
from icefall.evm.model import BlockRows


class Fold:
    """The least a store can do: the newest balance by address, and what was asked of state."""

    def __init__(self) -> None:
        self.balance: dict[bytes, int] = {}
        self.asked: list[tuple[int, bytes]] = []

    def take(self, rows: BlockRows, before: dict[bytes, int], state: dict[bytes, int]) -> None:
        """`before` and `state`: the true balances, for what must be asked."""
        for one in rows.native_before:
            assert self.balance.setdefault(one.address, one.balance) == one.balance, (rows.block.number, one)
        for one in rows.native_after:
            self.balance[one.address] = one.balance
        for delta in rows.native_deltas:
            if delta.address not in self.balance:
                self.balance[delta.address] = before[delta.address]
            self.balance[delta.address] += delta.delta
        for address in rows.unknown_native:
            self.asked.append((rows.block.number, address))
            self.balance[address] = state[address]


def cheats(chain: str) -> set[tuple[int, bytes]]:
    """What the recorder changed by hand: anvil then serves another state of a block than the block itself made."""
    return {
        (one["afterBlock"], unhex(one["address"].lower()))
        for one in meta(chain)["hiddenNativeChanges"]
        if one["kind"] == "anvil_setBalance"
    }


def folded(
    all_rows: Iterable[BlockRows], lines: Iterable[Any], cheated: set[tuple[int, bytes]]
) -> tuple[Fold, int, list[tuple[int, bytes]]]:
    """The fold, how many balances were compared, and where it differs from the state."""
    fold = Fold()
    state: dict[bytes, int] = {}
    checks = 0
    wrong = []
    for rows, line in zip(all_rows, lines, strict=True):
        before = dict(state)
        state.update({unhex(address): int(balance) for address, balance in line["native"].items()})
        if not before:  # balances after the first block are in no block
            fold.balance.update(state)
            continue
        fold.take(rows, before, state)
        for address, balance in state.items():
            checks += 1
            if fold.balance[address] != balance:
                wrong.append((rows.block.number, address))
                if (rows.block.number, address) in cheated:
                    fold.balance[address] = balance
    return fold, checks, wrong


@pytest.mark.parametrize("chain", CHAINS)
def test_every_balance_of_every_block(chain: str) -> None:
    fold, checks, wrong = folded([one.rows for one in derived(chain)], states(chain), cheats(chain))
    assert set(wrong) == cheats(chain)
    assert checks >= 10_000
    # Nothing but self-destructs is asked of state.
    destroyed = {
        (one.full.block.number, frame.sender)
        for one in derived(chain)
        for trace in one.full.traces or ()
        for frame in trace.frames
        if frame.opcode == "SELFDESTRUCT" and not frame.is_reverted
    }
    assert set(fold.asked) <= destroyed


@pytest.mark.parametrize("part", REORGS)
def test_balances_of_both_branches(part: str) -> None:
    code = Code(like("anvil"))
    fulls = full_blocks(like("anvil"), f"{part}_")
    rows = [derive(full, contract_info_for(like("anvil"), full, code)) for full in fulls]
    _, checks, wrong = folded(rows, states(like("anvil"), f"{part}_"), set())
    assert wrong == []
    assert checks > 1000


@pytest.mark.parametrize("chain", CHAINS)
def test_withdrawals_and_atomic_moves_are_where_they_should_be(chain: str) -> None:
    """They change balances of blocks that may have no transaction at all."""
    moved = 0
    for one in derived(chain):
        block = one.full.block
        if block.withdrawals or block.ext_data:
            moved += 1
            assert one.rows.native_deltas or one.rows.native_after
    assert moved == {"geth-1": 13, "cchain-1": 18}.get(chain, moved)


def test_without_the_asset_atomic_addresses_are_asked() -> None:
    asked = 0
    for one in derived(like("cchain")):
        if one.full.block.ext_data:
            info = contract_info_for(like("cchain"), one.full, Code(like("cchain")))
            assert info.native_asset_id == LOCAL_AVAX
            blind = derive(one.full, msgspec.structs.replace(info, native_asset_id=b""))
            assert blind.native_deltas == ()
            assert {delta.address for delta in one.rows.native_deltas} <= set(blind.unknown_native)
            assert not {row.address for row in blind.native_after} & set(blind.unknown_native)
            other = derive(one.full, msgspec.structs.replace(info, native_asset_id=bytes(32)))
            assert other.native_deltas == ()  # another asset is not native money
            asked += len(blind.unknown_native)
    assert asked >= 18


@pytest.mark.parametrize("chain", CHAINS)
def test_without_diffs_whoever_changed_is_asked(chain: str) -> None:
    """The addresses named are enough: each whose true balance changed in a block is among them."""
    code = Code(chain)
    state: dict[bytes, int] = {}
    for one, line in zip(derived(chain), states(chain), strict=True):
        blind = msgspec.structs.replace(one.full, diffs=None)
        rows = derive(blind, contract_info_for(chain, blind, code))
        code.take(one.rows)
        assert (rows.native_before, rows.native_after, rows.native_deltas) == ((), (), ())
        now = {unhex(address): int(balance) for address, balance in line["native"].items()}
        if one.rows.block.number:
            changed = {address for address, balance in now.items() if state.get(address) != balance}
            cheated = {address for number, address in cheats(chain) if number == one.rows.block.number}
            assert changed - cheated <= set(rows.unknown_native)
        state.update(now)
