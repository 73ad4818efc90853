"""State diffs that omit code (those of trace_replayBlockTransactions). Call frames show which accounts may have been
destroyed, created or given a delegation; their code and balance must then be read from state."""

from icefall.wire.evm.types import CREATIONS, FullBlock


def destroyed_not_in_diff(full: FullBlock, index: int) -> list[bytes]:
    """Accounts that ran SELFDESTRUCT in a transaction whose diff does not show the result."""
    return [] if _is_complete(full, index) else _accounts_in_frames(full, index, ("SELFDESTRUCT",))


def code_not_in_diff(full: FullBlock, index: int) -> list[bytes]:
    """Accounts whose code may have been set or removed in a transaction whose diff does not show it."""
    if _is_complete(full, index):
        return []
    found = _accounts_in_frames(full, index, ("SELFDESTRUCT", *CREATIONS))
    if full.block.txs[index].authorizations and full.diffs is not None:
        found += [account.address for account in full.diffs[index].accounts if account.has_code is None]
    return found


def created_not_in_diff(full: FullBlock, index: int) -> list[bytes]:
    """Contracts that a transaction created and did not destroy, where its diff does not show their code."""
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
