"""The node's certificate: made once, complete or not at all, never replaced."""

import errno
import os
import ssl
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from Crypto.Hash import RIPEMD160
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec

from icefall.node.identity import IdentityError, NodeIdentity, ensure_identity
from icefall.wire.ids import node_id_from_text

WAY_OUT = "restore it from a backup, or remove staker.crt and staker.key to start with a new NodeID"

# Made by Go's crypto/x509 with the template the Go node uses: serial number 0, no names.
GO_CERTIFICATE = """-----BEGIN CERTIFICATE-----
MIIBEDCBt6ADAgECAgEAMAoGCCqGSM49BAMCMAAwIBcNMDAwMTAxMDAwMDAwWhgP
MjEyNjExMTUxODA4MThaMAAwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAARZsDP9
nsqkKR1zTJvFKKTgn5roo6TWtVlV6z+zJeKBCmddhF5yuNKvPCNkTuWNrum2fp0p
kiZqE2JKmDV4PS8joyAwHjAOBgNVHQ8BAf8EBAMCB4AwDAYDVR0TAQH/BAIwADAK
BggqhkjOPQQDAgNIADBFAiAHroYvxOe1ckI80tyU+s1OI1BzKXklkgst0ESP35qS
dgIhALiZKRW5LN2sBJqXI7OgdOLAw8zeOK8Eg0g6wnrmtn2a
-----END CERTIFICATE-----
"""
GO_KEY = """-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgAO3K+ZapV8eRXSY/
KvNJnLOA7dEuPrbYZRLFeYC5m3KhRANCAARZsDP9nsqkKR1zTJvFKKTgn5roo6TW
tVlV6z+zJeKBCmddhF5yuNKvPCNkTuWNrum2fp0pkiZqE2JKmDV4PS8j
-----END PRIVATE KEY-----
"""


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def refusal(directory: Path) -> str:
    with pytest.raises(IdentityError) as error:
        ensure_identity(directory)
    return str(error.value)


def test_first_start_makes_a_certificate(tmp_path: Path) -> None:
    directory = tmp_path / "data" / "staking"
    identity = ensure_identity(directory)
    assert identity.certificate_pem_path == directory / "staker.crt"
    assert identity.key_path == directory / "staker.key"
    assert names(directory) == ["staker.crt", "staker.key"]
    assert identity.key_path.stat().st_mode & 0o777 == 0o600

    certificate = x509.load_pem_x509_certificate(identity.certificate_pem_path.read_bytes())
    public = certificate.public_key()
    assert isinstance(public, ec.EllipticCurvePublicKey)
    assert public.curve.name == "secp256r1"
    certificate.verify_directly_issued_by(certificate)
    now = datetime.now(UTC)
    assert certificate.not_valid_before_utc < now
    assert 99 <= certificate.not_valid_after_utc.year - now.year <= 100


def test_node_id_is_the_hash_of_the_certificate(tmp_path: Path) -> None:
    identity = ensure_identity(tmp_path)
    der = ssl.PEM_cert_to_DER_cert(identity.certificate_pem_path.read_text())
    assert identity.node_id_text.startswith("NodeID-")
    assert node_id_from_text(identity.node_id_text) == RIPEMD160.new(sha256(der).digest()).digest()


def test_tls_accepts_the_pair(tmp_path: Path) -> None:
    identity = ensure_identity(tmp_path)
    ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(identity.certificate_pem_path, identity.key_path)


def test_later_starts_keep_it(tmp_path: Path) -> None:
    first = ensure_identity(tmp_path)
    content = first.certificate_pem_path.read_bytes(), first.key_path.read_bytes()
    assert ensure_identity(tmp_path) == first
    assert (first.certificate_pem_path.read_bytes(), first.key_path.read_bytes()) == content


def test_every_node_is_someone_else(tmp_path: Path) -> None:
    assert ensure_identity(tmp_path / "a").node_id_text != ensure_identity(tmp_path / "b").node_id_text


def test_an_identity_of_the_go_node_is_kept(tmp_path: Path) -> None:
    (tmp_path / "staker.crt").write_text(GO_CERTIFICATE)
    (tmp_path / "staker.key").write_text(GO_KEY)
    identity = ensure_identity(tmp_path)
    assert identity == NodeIdentity(identity.node_id_text, tmp_path / "staker.crt", tmp_path / "staker.key")
    der = ssl.PEM_cert_to_DER_cert(GO_CERTIFICATE)
    assert node_id_from_text(identity.node_id_text) == RIPEMD160.new(sha256(der).digest()).digest()


# Damage


@pytest.mark.parametrize("content", [b"", b"junk", GO_CERTIFICATE[:200].encode(), GO_KEY.encode(), b"\xff\x00"])
def test_a_damaged_certificate(tmp_path: Path, content: bytes) -> None:
    ensure_identity(tmp_path)
    path = tmp_path / "staker.crt"
    path.write_bytes(content)
    text = refusal(tmp_path)
    assert text.startswith(f"{path}: not a certificate in PEM form (")
    assert text.endswith(f"; {WAY_OUT}")
    assert path.read_bytes() == content


@pytest.mark.parametrize("content", [b"", b"junk", GO_KEY[:100].encode(), GO_CERTIFICATE.encode(), b"\xff\x00"])
def test_a_damaged_key(tmp_path: Path, content: bytes) -> None:
    ensure_identity(tmp_path)
    path = tmp_path / "staker.key"
    path.write_bytes(content)
    text = refusal(tmp_path)
    assert text.startswith(f"{path}: not an unencrypted private key in PEM form (")
    assert text.endswith(f"; {WAY_OUT}")
    assert path.read_bytes() == content


def test_a_key_of_another_certificate(tmp_path: Path) -> None:
    ensure_identity(tmp_path)
    (tmp_path / "staker.key").write_text(GO_KEY)
    assert refusal(tmp_path) == f"{tmp_path / 'staker.key'}: not the key of staker.crt; {WAY_OUT}"


@pytest.mark.parametrize("lost", ["staker.crt", "staker.key"])
def test_a_lost_half(tmp_path: Path, lost: str) -> None:
    ensure_identity(tmp_path)
    (tmp_path / lost).unlink()
    before = names(tmp_path)
    assert refusal(tmp_path) == f"{tmp_path / lost}: missing, but its other half is there; {WAY_OUT}"
    assert names(tmp_path) == before


def test_an_unreadable_file(tmp_path: Path) -> None:
    ensure_identity(tmp_path)
    (tmp_path / "staker.key").unlink()
    (tmp_path / "staker.key").mkdir()
    assert refusal(tmp_path) == f"{tmp_path / 'staker.key'}: is a directory"


def test_a_directory_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("")
    assert refusal(tmp_path / "data").startswith(f"cannot keep the node's identity in {tmp_path / 'data'}: ")


# Ending in the middle of the first start


class Cut(BaseException):
    pass


STEPS = ["open", "fsync", "replace"]


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("nth", [0, 1, 2, 3])
def test_a_first_start_cut_short_is_finished_by_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, nth: int
) -> None:
    """Cut before the n-th opening, syncing or renaming; whatever is left, the next start has one whole identity."""
    calls = 0
    holder: Any = Path if step == "replace" else os
    real = getattr(holder, step)

    def cut(*args: Any, **options: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == nth + 1:
            raise Cut
        return real(*args, **options)

    with monkeypatch.context() as patch:
        patch.setattr(holder, step, cut)
        try:
            first = ensure_identity(tmp_path)
        except Cut:
            first = None
    key_before = (tmp_path / "staker.key").read_bytes() if (tmp_path / "staker.key").exists() else None
    identity = ensure_identity(tmp_path)
    assert first in (None, identity)
    assert key_before in (None, identity.key_path.read_bytes())
    assert names(tmp_path) == ["staker.crt", "staker.key"]
    assert ensure_identity(tmp_path) == identity


def test_a_full_disk_leaves_no_half(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        assert "No space left on device" in refusal(tmp_path)
    assert not {"staker.crt", "staker.key"} & set(names(tmp_path))
    ensure_identity(tmp_path)


def test_the_key_is_private_from_its_first_byte(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: dict[str, tuple[int, int]] = {}
    real = os.open

    def watch(path: Path, flags: int, mode: int = 0o777) -> int:
        opened[Path(path).name] = flags & os.O_EXCL, mode
        return real(path, flags, mode)

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", watch)
        ensure_identity(tmp_path)
    assert opened[".staker.key.new"] == (os.O_EXCL, 0o600)
