"""The storage of an account that a transaction changed, as text: decoded only for the accounts that need it.

The text is what prestateTracer sends: two JSON objects, before and after, each on a line. A zero is never written out:
a slot that is in the second alone was zero, one that is in the first alone is zero now.
"""

from collections.abc import Iterable, Mapping

import msgspec

from icefall.wire.errors import WireError

ZERO_WORD = "0x0"
_SLOTS = msgspec.json.Decoder(dict[str, str] | None)
_DELTA = msgspec.json.Decoder(dict[str, str | dict[str, str]] | str)
Words = tuple[str, str]  # before and after, as hex


def slot_changes(texts: Iterable[bytes]) -> dict[str, Words]:
    """The slots that consecutive transactions changed, by key: the words before the first and after the last."""
    found: dict[str, Words] = {}
    try:
        for text in texts:
            first, _, second = text.partition(b"\n")
            before = (_SLOTS.decode(first) if first else None) or {}
            after = (_SLOTS.decode(second) if second else None) or {}
            for key, word in after.items():
                was = before.pop(key, ZERO_WORD)
                found[key] = (found[key][0] if key in found else was, word)
            for key, was in before.items():
                found[key] = (found[key][0] if key in found else was, ZERO_WORD)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise WireError(f"storage: {error}") from error
    return found


def key_text(key: bytes) -> str:
    return "0x" + key.hex()


def key_of(text: str) -> bytes:
    """The key of a slot. WireError where it is no hex."""
    try:
        return bytes.fromhex(text[2:])
    except ValueError as error:
        raise WireError(f"storage: {error}") from error


def word_of(text: str) -> int:
    try:
        return int(text, 16)
    except ValueError as error:
        raise WireError(f"storage: {error}") from error


def text_of_deltas(deltas: Mapping[str, msgspec.Raw] | None) -> bytes:
    """The text of what trace_replayBlockTransactions sends: each slot with its words before and after. Empty where
    nothing changed."""
    before: dict[str, str] = {}
    after: dict[str, str] = {}
    for key, raw in (deltas or {}).items():
        delta = _DELTA.decode(raw)
        if isinstance(delta, str):
            continue
        changed = delta.get("*")
        sides = (
            (changed.get("from"), changed.get("to")) if isinstance(changed, dict) else (delta.get("-"), delta.get("+"))
        )
        for side, word in zip((before, after), sides, strict=True):
            if isinstance(word, str) and word_of(word):
                side[key] = word
    return msgspec.json.encode(before) + b"\n" + msgspec.json.encode(after) if before or after else b""
