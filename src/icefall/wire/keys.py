"""secp256k1 keys: their texts, the address they own, recoverable signatures."""

from coincurve import PrivateKey, PublicKey

from icefall.wire.errors import WireError
from icefall.wire.ids import hash160
from icefall.wire.text import cb58

PRIVATE_KEY_PREFIX = "PrivateKey-"
PRIVATE_KEY_SIZE = 32
SIGNATURE_SIZE = 65
CURVE_ORDER = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141


def private_key_from_text(text: str) -> bytes:
    """The 32 secret bytes behind `PrivateKey-...`."""
    if not text.startswith(PRIVATE_KEY_PREFIX):
        raise WireError(f"private key missing {PRIVATE_KEY_PREFIX} prefix")
    secret = cb58.decode(text.removeprefix(PRIVATE_KEY_PREFIX))
    _check_secret(secret)
    return secret


def public_key(secret: bytes) -> bytes:
    """The 33-byte compressed public key of a private key."""
    _check_secret(secret)
    return PrivateKey(secret).public_key.format(compressed=True)


def address_of(secret: bytes) -> bytes:
    """The 20-byte address that a private key owns."""
    return hash160(public_key(secret))


def sign(secret: bytes, digest: bytes) -> bytes:
    """The deterministic recoverable signature (r, s, v) of a 32-byte digest."""
    _check_secret(secret)
    if len(digest) != 32:
        raise WireError(f"a digest has 32 bytes, got {len(digest)}")
    return PrivateKey(secret).sign_recoverable(digest, hasher=None)


def recover(signature: bytes, digest: bytes) -> bytes:
    """The 20-byte address whose key signed `digest`."""
    return hash160(recover_key(signature, digest))


def recover_key(signature: bytes, digest: bytes) -> bytes:
    """The 33-byte compressed public key that signed `digest`."""
    if len(signature) != SIGNATURE_SIZE:
        raise WireError("invalid signature length")
    if int.from_bytes(signature[32:64], "big") % CURVE_ORDER > CURVE_ORDER // 2:
        raise WireError("signature was mutated from its original format")
    version = signature[64]
    if version >= 8:
        raise WireError("invalid signature")
    # Versions 4..7 mean "compressed key", which a node checks only after the recovery succeeded.
    try:
        key = PublicKey.from_signature_and_message(signature[:64] + bytes([version & 3]), digest, hasher=None)
    except Exception as error:  # coincurve raises a bare Exception for an unrecoverable signature
        raise WireError("invalid signature") from error
    if version >= 4:
        raise WireError("wasn't expecting a compressed key")
    return key.format(compressed=True)


def _check_secret(secret: bytes) -> None:
    if len(secret) != PRIVATE_KEY_SIZE:
        raise WireError(f"a private key has {PRIVATE_KEY_SIZE} bytes, got {len(secret)}")
    if not 0 < int.from_bytes(secret, "big") < CURVE_ORDER:
        raise WireError("a private key is a number between 1 and the order of the curve")
