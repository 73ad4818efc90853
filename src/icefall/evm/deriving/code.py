"""Addresses whose code was set or removed."""

from collections.abc import Iterable, Iterator

from icefall.evm.deriving.incomplete_diffs import code_not_in_diff
from icefall.evm.model import CodeChange, Deployment
from icefall.wire.evm.authorizations import signed_delegations
from icefall.wire.evm.types import FullBlock


def code_changes(full: FullBlock, made: Iterable[Deployment]) -> Iterator[CodeChange]:
    """The state after the block, one row per address; None where the client's diff is not reliable."""
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
