"""The bytes of a message and its signatures. Pure.

The body is canonical JSON (RFC 8785), so that a receiver may verify the raw bytes, or what it has parsed and written
again. `x-signature` is what clients of the hosted service check; the other three headers are those of Standard Webhooks
1.0, which also protect against replays.
"""

import base64
import hashlib
import hmac
import json
from collections.abc import Sequence
from typing import Any

SECRET_SIZE = 32
_INTEGER_MAX = 2**53 - 1  # above it, JavaScript would write another number


def canonical_json(value: Any) -> bytes:
    """Write canonical JSON: keys sorted by UTF-16 code units, no spaces, UTF-8. Numbers must be integers: their form is
    then the same in every language."""
    return json.dumps(_checked(value), ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()


def _checked(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _checked(value[key]) for key in sorted(value, key=_utf16)}
    if isinstance(value, list | tuple):
        return [_checked(one) for one in value]
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()  # a lone surrogate has no UTF-8
    if value is None or isinstance(value, bool):
        return value
    if not isinstance(value, int) or abs(value) > _INTEGER_MAX:
        raise TypeError(f"{value!r} has no canonical form here")
    return value


def _utf16(text: str) -> bytes:
    return text.encode("utf-16-be", "surrogatepass")


def signature_of(secret: bytes, body: bytes) -> str:
    """The value of `x-signature`."""
    return base64.b64encode(hmac.new(secret, body, hashlib.sha256).digest()).decode()


def signature_headers(secrets: Sequence[bytes], message_id: str, at: int, body: bytes) -> dict[str, str]:
    """The headers of an attempt at a time in Unix seconds. The first secret is the newest one. While an older one is
    still valid after a rotation, `webhook-signature` has one signature for each."""
    signed = f"{message_id}.{at}.".encode() + body
    return {
        "x-signature": signature_of(secrets[0], body),
        "webhook-id": message_id,
        "webhook-timestamp": str(at),
        "webhook-signature": " ".join(f"v1,{signature_of(secret, signed)}" for secret in secrets),
    }


def standard_secret(secret: bytes) -> str:
    """Write the secret as libraries for Standard Webhooks take it."""
    return "whsec_" + base64.b64encode(secret).decode()
