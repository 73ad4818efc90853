"""What a state diff keeps to itself. Where it says nothing of code (trace_replayBlockTransactions), frames say whom to
ask about: some clients hide there that an account was destroyed, made or given a delegation."""

from icefall.wire.evm.types import FullBlock

_CREATIONS = ("CREATE", "CREATE2")


def destroyed_untold(full: FullBlock, index: int) -> list[bytes]:
    """Accounts that ran SELFDESTRUCT in a transaction whose diff does not tell what became of them."""
    return [] if _is_told(full, index) else _of_frames(full, index, ("SELFDESTRUCT",))


def code_untold(full: FullBlock, index: int) -> list[bytes]:
    """Accounts that may have got code or lost it in a transaction, and its diff does not tell."""
    if _is_told(full, index):
        return []
    found = _of_frames(full, index, ("SELFDESTRUCT", *_CREATIONS))
    if full.block.txs[index].authorizations and full.diffs is not None:
        found += [account.address for account in full.diffs[index].accounts if account.has_code is None]
    return found


def made_untold(full: FullBlock, index: int) -> list[bytes]:
    """Contracts that a transaction made and left, as far as its diff does not tell what is there now."""
    if _is_told(full, index):
        return []
    gone = set(_of_frames(full, index, ("SELFDESTRUCT",)))
    return [address for address in _of_frames(full, index, _CREATIONS) if address not in gone]


def _is_told(full: FullBlock, index: int) -> bool:
    return full.diffs is not None and all(account.has_code is not None for account in full.diffs[index].accounts)


def _of_frames(full: FullBlock, index: int, kinds: tuple[str, ...]) -> list[bytes]:
    if full.traces is None:
        return []
    told = full.diffs[index].accounts if full.diffs is not None else ()
    known = {account.address for account in told if account.has_code is not None}
    places = [
        frame.sender if frame.kind == "SELFDESTRUCT" else frame.to
        for frame in full.traces[index].frames
        if frame.kind in kinds and not frame.is_reverted
    ]
    return [address for address in dict.fromkeys(places) if address not in known]
