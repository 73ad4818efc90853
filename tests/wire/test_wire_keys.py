"""Keys, addresses and recoverable signatures."""

from hashlib import sha256
from typing import Any

import pytest
from tests.wire.wire_vectors import vectors

from icefall.wire.errors import WireError
from icefall.wire.ids import short_id_text
from icefall.wire.keys import (
    CURVE_ORDER,
    PRIVATE_KEY_PREFIX,
    address_of,
    private_key_from_text,
    public_key,
    recover,
    sign,
)
from icefall.wire.text import cb58
from icefall.wire.text.bech32 import address_text

SECRET = private_key_from_text("PrivateKey-ewoqjP7PxY4yr3iLTpLisriqt94hdyDFNgchSxGGztUrTXtNN")
DIGEST = sha256(b"what was signed").digest()


@pytest.mark.parametrize("row", vectors("keys"), ids=lambda row: row["name"])
def test_keys(row: Any) -> None:
    secret, expect = bytes.fromhex(row["hex"]), dict(row["expect"])
    address = address_of(secret)
    derived = {
        "cb58": cb58.encode(secret),
        "formatted": PRIVATE_KEY_PREFIX + cb58.encode(secret),
        "publicKey": public_key(secret).hex(),
        "address": address.hex(),
        "shortID": short_id_text(address),
    }
    for name, value in expect.items():
        if name in derived:
            assert derived[name] == value
        elif name.startswith("X-"):
            assert address_text("X", name[2:], address) == value
    if "formatted" in expect:
        assert private_key_from_text(expect["formatted"]) == secret


@pytest.mark.parametrize("row", vectors("secp256k1"), ids=lambda row: row["name"])
def test_signatures(row: Any) -> None:
    expect = row["expect"]
    digest = sha256(expect["msg"].encode()).digest()
    if row["kind"] == "signature-rs":
        assert sign(bytes.fromhex(expect["privateKey"]), digest)[:64].hex() == row["hex"]
    else:
        assert sign(cb58.decode(expect["privateKeyCB58"]), digest).hex() == row["hex"]
        assert recover(bytes.fromhex(row["hex"]), digest).hex() == expect["address"]


def scalar(value: int) -> bytes:
    return value.to_bytes(32, "big")


GOOD = sign(SECRET, DIGEST)
R, S, V = GOOD[:32], GOOD[32:64], GOOD[64]
HIGH_S = scalar(CURVE_ORDER - int.from_bytes(S, "big"))


@pytest.mark.parametrize(
    ("signature", "reason"),
    [
        (R + HIGH_S + bytes([V ^ 1]), "signature was mutated from its original format"),
        (R + scalar(CURVE_ORDER // 2 + 1) + bytes([V]), "signature was mutated from its original format"),
        (R + S + bytes([V + 4]), "wasn't expecting a compressed key"),
        (R + S + bytes([V | 2]), "invalid signature"),
        (R + S + b"\x1b", "invalid signature"),
        (R + S + b"\xff", "invalid signature"),
        (scalar(0) + S + bytes([V]), "invalid signature"),
        (R + scalar(0) + bytes([V]), "invalid signature"),
        (scalar(CURVE_ORDER) + S + bytes([V]), "invalid signature"),
        (R + scalar(CURVE_ORDER) + bytes([V]), "invalid signature"),
        (R + scalar(CURVE_ORDER + 5) + bytes([V]), "invalid signature"),
        (R + S, "invalid signature length"),
    ],
)
def test_bad_signatures(signature: bytes, reason: str) -> None:
    with pytest.raises(WireError) as caught:
        recover(signature, DIGEST)
    assert str(caught.value) == reason


def test_flipped_recovery_bit_names_another_signer() -> None:
    assert recover(GOOD, DIGEST) == address_of(SECRET)
    assert recover(R + S + bytes([V ^ 1]), DIGEST) != address_of(SECRET)


@pytest.mark.parametrize(
    "bad",
    [
        lambda: private_key_from_text("ewoq"),
        lambda: private_key_from_text("PrivateKey-11111111111111111111111111111111LpoYY"),
        lambda: private_key_from_text(PRIVATE_KEY_PREFIX + cb58.encode(b"short")),
        lambda: sign(SECRET, b"not a digest"),
        lambda: address_of(scalar(CURVE_ORDER)),
    ],
)
def test_bad_keys(bad: Any) -> None:
    with pytest.raises(WireError):
        bad()
