"""The identity of this node: a self-signed TLS certificate, created once and kept, whose hash is the NodeID.

The files are those of the Go node (`staker.crt`, `staker.key`), so an operator can bring an identity along. What is
there is never replaced: a lost or damaged file is an error that says what to do.
"""

import os
import warnings
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.types import PublicKeyTypes
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)
from cryptography.utils import CryptographyDeprecationWarning

from icefall.errors import StartRefused
from icefall.node.info import CERTIFICATE_NAME
from icefall.wire.ids import node_id_text

KEY_NAME = "staker.key"
VALID_YEARS = 100


class IdentityError(StartRefused):
    """The identity cannot be read or created; the text names the file and what to do."""


class NodeIdentity(NamedTuple):
    """A NodeID, and the files that prove it."""

    node_id_text: str
    certificate_pem_path: Path
    key_path: Path


def ensure_identity(directory: Path) -> NodeIdentity:
    """The identity kept in `directory`, created on first use. The caller holds the data directory's lock.

    A new certificate and key are first complete and on disk under other names. Then the key gets its name, and last the
    certificate; a start that finds only the key takes the certificate that was about to get its name.
    """
    certificate_path, key_path = directory / CERTIFICATE_NAME, directory / KEY_NAME
    fresh_certificate, fresh_key = (path.with_name(f".{path.name}.new") for path in (certificate_path, key_path))
    try:
        if not certificate_path.exists() and not key_path.exists():
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            certificate_pem, key_pem = _make()
            _write(fresh_certificate, certificate_pem, 0o644)
            _write(fresh_key, key_pem, 0o600)
            fresh_key.replace(key_path)
            _sync(directory)
        if not certificate_path.exists() and fresh_certificate.exists():
            _check(fresh_certificate, key_path)
            fresh_certificate.replace(certificate_path)
            _sync(directory)
    except OSError as failure:
        raise IdentityError(f"cannot keep the node's identity in {directory}: {failure}") from failure
    return NodeIdentity(node_id_text(_check(certificate_path, key_path)), certificate_path, key_path)


def _make() -> tuple[bytes, bytes]:
    key = ec.generate_private_key(ec.SECP256R1())
    now = datetime.now(UTC)
    no_name = x509.Name([])
    certificate = (
        x509.CertificateBuilder(no_name, no_name, key.public_key(), x509.random_serial_number())
        .not_valid_before(datetime(2000, 1, 1, tzinfo=UTC))
        .not_valid_after(datetime(now.year + VALID_YEARS, now.month, 1, tzinfo=UTC))
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .sign(key, SHA256())
    )
    key_pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return certificate.public_bytes(Encoding.PEM), key_pem


def _check(certificate_path: Path, key_path: Path) -> bytes:
    """The certificate's DER bytes, provided the two files belong together."""
    certificate = _certificate(certificate_path)
    try:
        key = load_pem_private_key(_read(key_path), password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise _damaged(key_path, f"not an unencrypted private key in PEM form ({error})") from error
    if _raw(key.public_key()) != _raw(certificate.public_key()):
        raise _damaged(key_path, f"not the key of {certificate_path.name}")
    return certificate.public_bytes(Encoding.DER)


def _certificate(path: Path) -> x509.Certificate:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CryptographyDeprecationWarning)  # the Go node's own have serial number 0
        try:
            return x509.load_pem_x509_certificate(_read(path))
        except ValueError as error:
            raise _damaged(path, f"not a certificate in PEM form ({error})") from error


def _raw(key: PublicKeyTypes) -> bytes:
    return key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError as failure:
        raise _damaged(path, "missing, but its other half is there") from failure
    except OSError as failure:
        raise IdentityError(f"{path}: {(failure.strerror or str(failure)).lower()}") from failure


def _damaged(path: Path, what: str) -> IdentityError:
    advice = f"restore it from a backup, or remove {CERTIFICATE_NAME} and {KEY_NAME} to start with a new NodeID"
    return IdentityError(f"{path}: {what}; {advice}")


def _write(path: Path, content: bytes, mode: int) -> None:
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _sync(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
