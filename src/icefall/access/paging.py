"""Page tokens: where a list goes on, signed, bound to the query it came from, good for a day. No worker remembers any.

A token is no secret and no permission: it only must not be forged or carried to another query, where its cursor would
mean something else. `scope` is any text or bytes that tells one query from another: see `api/paging.py`.
"""

import base64
import hashlib
import hmac
import uuid

from icefall.errors import BadRequest

LIFETIME_S = 24 * 3600
CURSOR_SIZE_MAX = 256
NUMBER_MAX = 2**32 - 1
_VERSION = 1
_SCOPE_SIZE, _MAC_SIZE = 8, 16
_HEAD_SIZE = 1 + 4 + _SCOPE_SIZE
_MAC_BITS = 58

_ALTERED = "pageToken is not one that this service issued, or was altered"
_FOREIGN = "pageToken belongs to another query: send it with the parameters of the answer it came from"
_EXPIRED = "pageToken has expired after 24 hours: start again from the first page"
_NEITHER = "pageToken is not one that this service issued for this query"


def _key(secret: bytes, use: bytes) -> bytes:
    """A key for each kind of token: one of a kind can never pass for the other."""
    return hmac.digest(secret, b"icefall page token " + use, "sha256")


def _bytes(scope: bytes | str) -> bytes:
    return scope.encode() if isinstance(scope, str) else scope


def _short_hash(scope: bytes | str) -> bytes:
    return hashlib.sha256(_bytes(scope)).digest()[:_SCOPE_SIZE]


def _check_age(issued: int, now: int) -> None:
    """A token from the future is good: it is signed, so it was our clock that was set back."""
    if now - issued > LIFETIME_S:
        raise BadRequest(_EXPIRED)


class PageTokens:
    """Tokens of the chain data interface: base64url of version, issue time, scope, MAC and a cursor of any bytes."""

    def __init__(self, secret: bytes) -> None:
        self._key = _key(secret, b"data")

    def issue(self, scope: bytes | str, cursor: bytes, now: int) -> str:
        if len(cursor) > CURSOR_SIZE_MAX:
            raise ValueError(f"a cursor may have {CURSOR_SIZE_MAX} bytes, got {len(cursor)}")
        head = (
            bytes((_VERSION,))
            + (now & NUMBER_MAX).to_bytes(4, "big")
            + hashlib.sha256(_bytes(scope)).digest()[:_SCOPE_SIZE]
        )
        return _text(head + self._mac(head, cursor) + cursor)

    def read(self, token: str, scope: bytes | str, now: int) -> bytes:
        """The cursor, or BadRequest that says what is wrong with the token."""
        raw = _raw(token)
        head, mac, cursor = raw[:_HEAD_SIZE], raw[_HEAD_SIZE : _HEAD_SIZE + _MAC_SIZE], raw[_HEAD_SIZE + _MAC_SIZE :]
        if raw[:1] != bytes((_VERSION,)) or not hmac.compare_digest(mac, self._mac(head, cursor)):
            raise BadRequest(_ALTERED)
        if head[5:] != _short_hash(scope):
            raise BadRequest(_FOREIGN)
        _check_age(int.from_bytes(head[1:5], "big"), now)
        return cursor

    def _mac(self, head: bytes, cursor: bytes) -> bytes:
        return hmac.digest(self._key, head + cursor, "sha256")[:_MAC_SIZE]


def _text(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def _raw(token: str) -> bytes:
    """Only the one text that `_text` makes: a decoder would let stray characters and unused bits pass."""
    try:
        raw = base64.urlsafe_b64decode(token.encode("ascii") + b"=" * (-len(token) % 4))
    except ValueError:
        raise BadRequest(_ALTERED) from None
    if _text(raw) != token:
        raise BadRequest(_ALTERED)
    return raw


class NumberTokens:
    """Tokens of the metrics interface, shaped as UUIDs (version 8): the 122 free bits are a cursor of 32, the issue
    time of 32 and 58 of a MAC, so that a foreign token cannot be told from an altered one."""

    def __init__(self, secret: bytes) -> None:
        self._key = _key(secret, b"metrics")

    def issue(self, scope: bytes | str, cursor: int, now: int) -> str:
        if not 0 <= cursor <= NUMBER_MAX:
            raise ValueError(f"a cursor must fit in 32 bits, got {cursor}")
        free = cursor << 90 | (now & NUMBER_MAX) << _MAC_BITS | self._mac(scope, cursor, now & NUMBER_MAX)
        high, middle, low = free >> 74, free >> 62 & 0xFFF, free & (1 << 62) - 1
        return str(uuid.UUID(int=high << 80 | 8 << 76 | middle << 64 | 2 << 62 | low))

    def read(self, token: str, scope: bytes | str, now: int) -> int:
        try:
            whole = uuid.UUID(token)
        except ValueError:
            raise BadRequest(_NEITHER) from None
        if str(whole) != token or whole.version != 8 or whole.variant != uuid.RFC_4122:
            raise BadRequest(_NEITHER)
        free = whole.int >> 80 << 74 | (whole.int >> 64 & 0xFFF) << 62 | whole.int & (1 << 62) - 1
        cursor, issued, mac = free >> 90, free >> _MAC_BITS & NUMBER_MAX, free & (1 << _MAC_BITS) - 1
        if not hmac.compare_digest(mac.to_bytes(8, "big"), self._mac(scope, cursor, issued).to_bytes(8, "big")):
            raise BadRequest(_NEITHER)
        _check_age(issued, now)
        return cursor

    def _mac(self, scope: bytes | str, cursor: int, issued: int) -> int:
        signed = cursor.to_bytes(4, "big") + issued.to_bytes(4, "big") + _bytes(scope)
        return int.from_bytes(hmac.digest(self._key, signed, "sha256")[:8], "big") >> (64 - _MAC_BITS)
