"""Signatures of validators, made by py_ecc: keys, their proofs of possession, and what several sign together."""

import sys
from collections.abc import Iterable
from functools import cache

# py_ecc raises the limit of recursion for the whole process, and deep JSON would then end it instead of being refused.
recursion_limit = sys.getrecursionlimit()

from py_ecc.bls.ciphersuites import G2ProofOfPossession  # noqa: E402
from py_ecc.optimized_bls12_381.optimized_curve import curve_order  # noqa: E402

sys.setrecursionlimit(recursion_limit)

from icefall.wire.ids import hash256  # noqa: E402
from icefall.wire.pvm.types import BlsSigner  # noqa: E402


def secret_of(seed: bytes) -> int:
    return int.from_bytes(hash256(seed), "big") % curve_order


@cache
def public_key_of(secret: int) -> bytes:
    return bytes(G2ProofOfPossession.SkToPk(secret))


@cache
def signer_of(secret: int) -> BlsSigner:
    """The public key of a secret, and the proof that it has an owner."""
    return BlsSigner(public_key_of(secret), bytes(G2ProofOfPossession.PopProve(secret)))


def signed_together(secrets: Iterable[int], message: bytes) -> bytes:
    """The aggregate of what each secret signs: the signature of their sum, because signing multiplies by the secret."""
    return bytes(G2ProofOfPossession.Sign(sum(secrets) % curve_order, message))


def sorts_at(public_key: bytes) -> bytes:
    """What the node sorts validators by, which is the uncompressed key: without the flags, it begins with x as here."""
    return bytes((public_key[0] & 0x1F,)) + public_key[1:]
