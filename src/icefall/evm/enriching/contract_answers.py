"""Encodes contract calls for token metadata and decodes their answers strictly. Pure.

A name or symbol is an ABI string whose offset and length lie inside the answer, or exactly one word of text padded with
zeros on the right (the bytes32 form); it must be UTF-8. Zeros, control characters and those that change the direction
of writing are removed, and text longer than TEXT_SIZE_MAX characters is cut.
"""

import re

from icefall.evm.model import DECIMALS_MAX
from icefall.wire.evm.rlp import keccak256

TEXT_SIZE_MAX = 256
WORD = 32
# C0 and C1 controls, direction marks and overrides, line and paragraph separators, the byte order mark.
_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]")


def _selector(signature: str) -> bytes:
    return keccak256(signature.encode())[:4]


NAME, SYMBOL, DECIMALS = _selector("name()"), _selector("symbol()"), _selector("decimals()")
_TOKEN_URI, _URI = _selector("tokenURI(uint256)"), _selector("uri(uint256)")


def token_uri_call(token_id: int) -> bytes:
    """Call data of tokenURI(id), for an ERC-721 token."""
    return _TOKEN_URI + token_id.to_bytes(WORD, "big")


def uri_call(token_id: int) -> bytes:
    """Call data of uri(id), for an ERC-1155 token."""
    return _URI + token_id.to_bytes(WORD, "big")


def text_of(answer: bytes) -> str:
    """The text that name() or symbol() returned; empty if the answer is invalid."""
    is_bytes32 = len(answer) == WORD and answer[0] != 0
    text = _utf8(answer.rstrip(b"\0") if is_bytes32 else string_of(answer))
    return printable(text or "")[:TEXT_SIZE_MAX]


def decimals_of(answer: bytes) -> int | None:
    """The number that decimals() returned: one word, at most 255."""
    number = int.from_bytes(answer, "big")
    return number if len(answer) == WORD and number <= DECIMALS_MAX else None


def uri_of(answer: bytes) -> str | None:
    """The URI that tokenURI(id) or uri(id) returned, without surrounding spaces; None: not a string."""
    text = _utf8(string_of(answer))
    return None if text is None else text.strip(" \t\r\n\0")


def with_id(uri: str, token_id: int) -> str:
    """An ERC-1155 URI for one token: `{id}` stands for 64 lower-case hex digits."""
    return uri.replace("{id}", f"{token_id:064x}")


def printable(text: str) -> str:
    """Without characters that are invisible or change how the others are displayed."""
    return _UNPRINTABLE.sub("", text)


def string_of(answer: bytes) -> bytes | None:
    """The bytes of an ABI string or bytes value that is the only thing returned."""
    if len(answer) < 2 * WORD:
        return None
    start = int.from_bytes(answer[:WORD], "big") + WORD
    if start > len(answer):
        return None
    size = int.from_bytes(answer[start - WORD : start], "big")
    return answer[start : start + size] if size <= len(answer) - start else None


def _utf8(raw: bytes | None) -> str | None:
    try:
        return None if raw is None else raw.decode("utf-8")
    except UnicodeDecodeError:
        return None
