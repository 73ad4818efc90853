"""Finds contracts whose code was set, removed or replaced by a block. Pure.

State diffs may omit code (those of trace_replayBlockTransactions). Call frames show then which accounts may have been
destroyed, created or given a delegation; their code and balance must be read from state.
"""

from collections.abc import Iterable, Iterator, Sequence

from icefall.evm.deriving.tokens import ParsedLog
from icefall.evm.model import CodeChange, Deployment
from icefall.wire.evm.authorizations import signed_delegations
from icefall.wire.evm.events import ImplementationChanged
from icefall.wire.evm.types import CREATIONS, FullBlock, TxDiff


def code_changes(full: FullBlock, made: Iterable[Deployment]) -> Iterator[CodeChange]:
    """The code after the block, one row per address; None where the client's diff is not reliable."""
    found: dict[bytes, bool | None] = {}
    if full.diffs is not None:
        for index, diff in enumerate(full.diffs):
            for account in diff.accounts:
                has_code, had_code = account.has_code, account.had_code
                if has_code is None or (has_code == had_code and not found and not account.is_gone):
                    continue
                if account.is_gone and had_code:
                    found[account.address] = None  # gone on geth and anvil, still there on coreth
                elif has_code != had_code or account.address in found:
                    found[account.address] = has_code
            if diff.omits_code:
                found.update(dict.fromkeys(code_not_in_diff(full, index)))
    else:
        # A creation may leave no code, and an authorization (EIP-7702) applies only if its nonce is right.
        found.update(dict.fromkeys([one.address for one in made]))
        for tx in full.block.txs:
            found.update(dict.fromkeys([one.authority for one in signed_delegations(tx)]))
        for trace in full.traces or ():
            found.update(
                {one.sender: None for one in trace.frames if one.opcode == "SELFDESTRUCT" and not one.is_reverted}
            )
    for address, has_code in found.items():
        yield CodeChange(address, has_code)


def code_changed(
    diffs: Sequence[TxDiff] | None, events: Iterable[ParsedLog], code: Iterable[CodeChange]
) -> Iterator[bytes]:
    """The contracts that run other code after the block: deployed, destroyed, delegated, or proxies that were
    upgraded."""
    seen = {change.address: None for change in code}
    seen.update({one.address: None for one in events if isinstance(one.event, ImplementationChanged)})
    for diff in diffs or ():
        for account in diff.accounts:
            if account.changed_implementation:
                seen[account.address] = None
    yield from seen


def destroyed_not_in_diff(full: FullBlock, index: int) -> list[bytes]:
    """The accounts that ran SELFDESTRUCT in a transaction whose diff does not show the result."""
    return [] if _is_complete(full, index) else _accounts_in_frames(full, index, ("SELFDESTRUCT",))


def code_not_in_diff(full: FullBlock, index: int) -> list[bytes]:
    """The accounts whose code may have been set or removed in a transaction whose diff does not show it."""
    if _is_complete(full, index):
        return []
    found = _accounts_in_frames(full, index, ("SELFDESTRUCT", *CREATIONS))
    if full.block.txs[index].authorizations and full.diffs is not None:
        found += [account.address for account in full.diffs[index].accounts if account.has_code is None]
    return found


def created_not_in_diff(full: FullBlock, index: int) -> list[bytes]:
    """The contracts that a transaction created and did not destroy, where its diff does not show their code."""
    if _is_complete(full, index):
        return []
    gone = set(_accounts_in_frames(full, index, ("SELFDESTRUCT",)))
    return [address for address in _accounts_in_frames(full, index, CREATIONS) if address not in gone]


def _is_complete(full: FullBlock, index: int) -> bool:
    return full.diffs is not None and not full.diffs[index].omits_code


def _accounts_in_frames(full: FullBlock, index: int, kinds: tuple[str, ...]) -> list[bytes]:
    if full.traces is None:
        return []
    accounts = full.diffs[index].accounts if full.diffs is not None else ()
    known = {account.address for account in accounts if account.has_code is not None}
    found = [
        frame.sender if frame.opcode == "SELFDESTRUCT" else frame.to
        for frame in full.traces[index].frames
        if frame.opcode in kinds and not frame.is_reverted
    ]
    return [address for address in dict.fromkeys(found) if address not in known]
