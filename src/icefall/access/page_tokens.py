"""Page tokens: the position in a list, signed, bound to its query, valid for a day. Workers store none.

A token is neither a secret nor a permission: it only must not be forged or used with another query, where its cursor
would mean something else. `scope` is any text or bytes that identifies the query: see `api/http/paging.py`.

The time of issue is that of the minute: a page that is asked for again has the same token, so its answer can be kept.
"""

import base64
import hmac
import uuid
from hashlib import blake2b

from icefall.errors import BadRequest

LIFETIME_S = 24 * 3600
ISSUE_STEP_S = 60
CURSOR_SIZE_MAX = 256
NUMBER_MAX = 2**32 - 1
_VERSION = b"\x02"
_SCOPE_SIZE, _MAC_SIZE = 8, 16
_HEAD_SIZE = 1 + 4 + _SCOPE_SIZE
_MAC_BITS = 58

_ALTERED = "pageToken is not one that this service issued, or was altered"
_OTHER_QUERY = "pageToken belongs to another query: send it with the parameters of the answer it came from"
_EXPIRED = "pageToken has expired after 24 hours: start again from the first page"
_INVALID = "pageToken is not one that this service issued for this query"


def _key(secret: bytes, use: bytes) -> bytes:
    """Return the key of one kind of token. Each has its own, so that one kind is never valid as another."""
    return hmac.digest(secret, b"icefall page token " + use, "sha256")


def _bytes(scope: bytes | str) -> bytes:
    return scope.encode() if isinstance(scope, str) else scope


def _short_hash(scope: bytes | str) -> bytes:
    return blake2b(_bytes(scope), digest_size=_SCOPE_SIZE).digest()


def _issue_time(now: int) -> int:
    return (now - now % ISSUE_STEP_S) & NUMBER_MAX


def _check_age(issued: int, now: int) -> None:
    """Raise BadRequest for an expired token. One from the future is valid: it is signed, so our clock was set back."""
    if now - issued >= LIFETIME_S + ISSUE_STEP_S:
        raise BadRequest(_EXPIRED)


class PageTokens:
    """Tokens of the chain data API: base64url of version, issue time, scope, MAC and a cursor of any bytes."""

    def __init__(self, secret: bytes) -> None:
        self._key = _key(secret, b"data")

    def issue(self, scope: bytes | str, cursor: bytes, now: int) -> str:
        if len(cursor) > CURSOR_SIZE_MAX:
            raise ValueError(f"a cursor may have {CURSOR_SIZE_MAX} bytes, got {len(cursor)}")
        head = _VERSION + _issue_time(now).to_bytes(4, "big") + _short_hash(scope)
        return _text(head + self._mac(head, cursor) + cursor)

    def read(self, token: str, scope: bytes | str, now: int) -> bytes:
        """Return the cursor of a token. BadRequest says what is wrong with it."""
        raw = _raw(token)
        head, mac, cursor = raw[:_HEAD_SIZE], raw[_HEAD_SIZE : _HEAD_SIZE + _MAC_SIZE], raw[_HEAD_SIZE + _MAC_SIZE :]
        if raw[:1] != _VERSION or not hmac.compare_digest(mac, self._mac(head, cursor)):
            raise BadRequest(_ALTERED)
        if head[5:] != _short_hash(scope):
            raise BadRequest(_OTHER_QUERY)
        _check_age(int.from_bytes(head[1:5], "big"), now)
        return cursor

    def _mac(self, head: bytes, cursor: bytes) -> bytes:
        """Return the keyed BLAKE2b (RFC 7693): HMAC-SHA256 takes almost twice as long for a whole token."""
        return blake2b(head + cursor, digest_size=_MAC_SIZE, key=self._key).digest()


def _text(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def _raw(token: str) -> bytes:
    """Decode a token. Only what `_text` returns is accepted: the decoder itself ignores stray characters and unused
    bits."""
    try:
        raw = base64.urlsafe_b64decode(token.encode("ascii") + b"=" * (-len(token) % 4))
    except ValueError:
        raise BadRequest(_ALTERED) from None
    if _text(raw) != token:
        raise BadRequest(_ALTERED)
    return raw


class NumberTokens:
    """Tokens of the metrics API, formatted as UUIDs (version 8).

    The 122 free bits are a cursor of 32, the issue time of 32 and a MAC of 58. The MAC covers the query, so a token of
    another query looks like an altered one.
    """

    def __init__(self, secret: bytes) -> None:
        self._key = _key(secret, b"metrics")

    def issue(self, scope: bytes | str, cursor: int, now: int) -> str:
        if not 0 <= cursor <= NUMBER_MAX:
            raise ValueError(f"a cursor must fit in 32 bits, got {cursor}")
        issued = _issue_time(now)
        free = cursor << 90 | issued << _MAC_BITS | self._mac(scope, cursor, issued)
        high, middle, low = free >> 74, free >> 62 & 0xFFF, free & (1 << 62) - 1
        return str(uuid.UUID(int=high << 80 | 8 << 76 | middle << 64 | 2 << 62 | low))

    def read(self, token: str, scope: bytes | str, now: int) -> int:
        try:
            whole = uuid.UUID(token)
        except ValueError:
            raise BadRequest(_INVALID) from None
        if str(whole) != token or whole.version != 8 or whole.variant != uuid.RFC_4122:
            raise BadRequest(_INVALID)
        free = whole.int >> 80 << 74 | (whole.int >> 64 & 0xFFF) << 62 | whole.int & (1 << 62) - 1
        cursor, issued, mac = free >> 90, free >> _MAC_BITS & NUMBER_MAX, free & (1 << _MAC_BITS) - 1
        if not hmac.compare_digest(mac.to_bytes(8, "big"), self._mac(scope, cursor, issued).to_bytes(8, "big")):
            raise BadRequest(_INVALID)
        _check_age(issued, now)
        return cursor

    def _mac(self, scope: bytes | str, cursor: int, issued: int) -> int:
        signed = cursor.to_bytes(4, "big") + issued.to_bytes(4, "big") + _bytes(scope)
        return int.from_bytes(hmac.digest(self._key, signed, "sha256")[:8], "big") >> (64 - _MAC_BITS)
