"""EIP-7702: which accounts the authorizations of a transaction give code to, or take it from.

A client's state diff may leave that out: anvil's prestateTracer has `pre.code` and nothing about code in `post` where a
delegation was cleared, and its trace_replayBlockTransactions has "=" in any case. The authorization list and the nonces
in the diff decide then.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec
from coincurve import PublicKey

from icefall.wire.evm import rlp
from icefall.wire.evm.rlp import keccak256
from icefall.wire.evm.types import Authorization, EvmTx, TxDiff, omits_code
from icefall.wire.keys import CURVE_ORDER

_MAGIC = b"\x05"
_NO_ADDRESS = bytes(20)
_NONCE_MAX = 2**64 - 1
_WORD = 32


class SignedDelegation(NamedTuple):
    """A request of `authority` to run the code of another account or, without `sets_code`, to run none from now on."""

    authority: bytes
    nonce: int  # it applies only if the authority has this one
    sets_code: bool


def signed_delegations(tx: EvmTx) -> Iterator[SignedDelegation]:
    """Yield the delegations of a transaction in order, without those that cannot apply: for another chain, or without a
    valid signature."""
    for one in tx.authorizations:
        if one.chain_id in (0, tx.chain_id) and one.nonce < _NONCE_MAX:
            authority = authority_of(one)
            if authority is not None:
                yield SignedDelegation(authority, one.nonce, one.address != _NO_ADDRESS)


def authority_of(one: Authorization) -> bytes | None:
    """The account that signed an authorization; None if its signature is invalid."""
    if one.y_parity > 1 or not 0 < one.s <= CURVE_ORDER // 2 or not 0 < one.r < CURVE_ORDER:
        return None
    fields = [rlp.number(one.chain_id), one.address, rlp.number(one.nonce)]
    digest = keccak256(_MAGIC + rlp.encode(fields))
    signature = one.r.to_bytes(_WORD, "big") + one.s.to_bytes(_WORD, "big") + bytes([one.y_parity])
    try:
        key = PublicKey.from_signature_and_message(signature, digest, hasher=None)
    except Exception:  # coincurve raises a bare Exception for an unrecoverable signature
        return None
    return keccak256(key.format(compressed=False)[1:])[12:]


def with_delegations(txs: Sequence[EvmTx], diffs: tuple[TxDiff, ...]) -> tuple[TxDiff, ...]:
    """Return the diffs, with the code that accounts got or lost by authorizations where a client left it out."""
    if len(txs) != len(diffs) or not any(tx.authorizations for tx in txs):  # a wrong number is refused later
        return diffs
    return tuple([_completed(tx, diff) if tx.authorizations else diff for tx, diff in zip(txs, diffs, strict=True)])


def _completed(tx: EvmTx, diff: TxDiff) -> TxDiff:
    nonces = {account.address: account.nonce_before for account in diff.accounts}
    if tx.sender in nonces:
        nonces[tx.sender] = tx.nonce + 1  # counted before the authorizations are processed
    applied = _applied(tx, nonces)
    accounts = tuple(
        [
            msgspec.structs.replace(account, has_code=applied[account.address])
            if account.address in applied and account.has_code == account.had_code  # else the diff reports it
            else account
            for account in diff.accounts
        ]
    )
    return msgspec.structs.replace(diff, accounts=accounts, omits_code=omits_code(accounts))


def _applied(tx: EvmTx, nonces: Mapping[bytes, int | None]) -> dict[bytes, bool | None]:
    """Return whether each authority has code after the authorizations; None: its nonce is not known. An account that is
    not in the diff has its old nonce, so nothing was applied to it."""
    found: dict[bytes, bool | None] = {}
    now = dict(nonces)
    for one in signed_delegations(tx):
        nonce = now.get(one.authority, -1)
        if nonce is None:
            found[one.authority] = None
        elif nonce == one.nonce:
            found[one.authority] = one.sets_code
            now[one.authority] = nonce + 1
    return found
