"""JSON nested deeper than the fast decoder dares: calls may go 1,024 deep, and whoever pays for the gas decides.

What lies too deep is cut out and leaves a mark, so that the rest can be taken apart; afterwards it is put back.
"""

import re
import secrets
from collections.abc import Callable
from typing import TypeVar

import msgspec

_T = TypeVar("_T")
_DEPTH_KEPT = 100
_PIECE = re.compile(rb'"(?:[^"\\]++|\\.)*+"|[\[\]{}]', re.DOTALL)


class FlattenedJson:
    def __init__(self, raw: bytes) -> None:
        """RecursionError if the brackets do not match: then it is deep and broken."""
        self._key = secrets.token_hex(16).encode()  # what is cut out may hold anything, but not this
        self._cut: list[bytes] = []
        self.text = b"".join(self._pieces(raw))

    def _pieces(self, raw: bytes) -> list[bytes]:
        kept, depth, start, cut_at = [], 0, 0, 0
        for match in _PIECE.finditer(raw):
            mark = raw[match.start()]
            if mark in b"[{":
                depth += 1
                if depth == _DEPTH_KEPT + 1:
                    cut_at = match.start()
            elif mark in b"]}":
                depth -= 1
                if depth == _DEPTH_KEPT:
                    kept += [raw[start:cut_at], b'"%s-%d"' % (self._key, len(self._cut))]
                    self._cut.append(raw[cut_at : match.end()])
                    start = match.end()
        if depth:
            raise RecursionError("nested without end")
        return [*kept, raw[start:]]

    def restored(self, text: bytes | msgspec.Raw) -> bytes:
        return re.sub(rb'"%s-(\d+)"' % self._key, lambda match: self._cut[int(match[1])], bytes(text))


def taken_apart_if_deep(
    raw: bytes | msgspec.Raw, take: Callable[[bytes | msgspec.Raw], _T]
) -> tuple[_T, FlattenedJson | None]:
    """`take` of it as it is, or of its flattened form where it is too deep."""
    try:
        return take(raw), None
    except RecursionError:
        flat = FlattenedJson(bytes(raw))
        return take(flat.text), flat
