"""The native balances after a block: from the state diffs of its transactions, and from changes outside them."""

from collections.abc import Iterable

import msgspec

from icefall.evm.deriving.code import destroyed_not_in_diff
from icefall.evm.model import NativeBalance, NativeDelta, NativeTx
from icefall.wire.container.coreth import unpack_atomic_moves
from icefall.wire.evm.types import DecodedBlock, FullBlock

_WEI_PER_GWEI = 10**9  # the unit of withdrawals and of atomic transactions


class Balances(msgspec.Struct, frozen=True, gc=False):
    """The native balances that a block shows."""

    before: tuple[NativeBalance, ...]
    after: tuple[NativeBalance, ...]
    deltas: tuple[NativeDelta, ...]
    unknown: tuple[bytes, ...]  # to be read from state


def balances(full: FullBlock, txs: Iterable[NativeTx], native_asset_id: bytes) -> Balances:
    """Apply transactions first, then withdrawals or atomic moves, as the chains themselves do."""
    if full.diffs is None:
        return Balances((), (), (), tuple(_touched(full, txs)))
    before: dict[bytes, int] = {}
    after: dict[bytes, int] = {}
    unknown: dict[bytes, None] = {}
    for index, diff in enumerate(full.diffs):
        for account in diff.accounts:
            address, had, has = account.address, account.balance_before, account.balance_after
            if had is None or has is None:
                continue
            before.setdefault(address, had)
            after[address] = has
            if account.is_gone and account.had_code:
                # coreth reports this for every contract that ran SELFDESTRUCT, though it may live on with a balance.
                unknown[address] = None
            elif unknown:
                unknown.pop(address, None)
        if diff.omits_code:
            unknown.update(dict.fromkeys(destroyed_not_in_diff(full, index)))
    deltas: dict[bytes, int] = {}
    for address, delta in _outside_txs(full.block, native_asset_id):
        if delta is None:
            unknown[address] = None
        elif address in after:
            after[address] += delta
        else:
            deltas[address] = deltas.get(address, 0) + delta
    return Balances(
        before=tuple([NativeBalance(address, balance) for address, balance in before.items()]),
        after=tuple(
            [
                NativeBalance(address, balance)
                for address, balance in after.items()
                if balance != before[address] and address not in unknown
            ]
        ),
        deltas=tuple([NativeDelta(address, delta) for address, delta in deltas.items() if address not in unknown]),
        unknown=tuple(unknown),
    )


def _outside_txs(block: DecodedBlock, native_asset_id: bytes) -> list[tuple[bytes, int | None]]:
    """The changes that are in no transaction; None where the amount must be read from state."""
    found: list[tuple[bytes, int | None]] = [
        (one.address, one.amount_gwei * _WEI_PER_GWEI) for one in block.withdrawals or ()
    ]
    for move in unpack_atomic_moves(block.ext_data) if block.ext_data else ():
        if not native_asset_id:
            found.append((move.address, None))
        elif move.asset_id == native_asset_id:
            found.append((move.address, move.amount * _WEI_PER_GWEI))
    return found


def _touched(full: FullBlock, txs: Iterable[NativeTx]) -> dict[bytes, None]:
    """Every address that may have been paid or have paid, in order of appearance."""
    found: dict[bytes, None] = {}
    for tx in txs:
        found[full.block.miner] = found[tx.sender] = found[tx.to] = None
        for frame in full.traces[tx.tx_index].frames if full.traces is not None else ():
            found[frame.sender] = None
            if frame.to:
                found[frame.to] = None
    found.update(dict.fromkeys([address for address, _ in _outside_txs(full.block, b"")]))
    return found
