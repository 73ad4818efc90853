"""JSON nested deeper than msgspec reads: EVM calls may go 1,024 deep, and the sender of a transaction decides how deep.

The text is cut into pieces of limited depth, in one pass and without recursion. msgspec reads each piece; a string with
the hash of the whole text marks where a deeper one was cut out.
"""

import re
from collections.abc import Callable
from typing import NamedTuple, TypeVar

import msgspec

from icefall.wire.errors import WireError
from icefall.wire.ids import hash256

_T = TypeVar("_T")
_PIECE_DEPTH = 100
_TOKEN = re.compile(rb'"(?:[^"\\]++|\\.)*+"|[\[\]{}]', re.DOTALL)


class _Piece(NamedTuple):
    text: bytes  # with marks for what was cut out of it
    start: int  # of the whole, in the original
    end: int


class CutJson:
    """`text` is the outermost piece. DecodeError if brackets do not match; everything else is left to msgspec."""

    def __init__(self, raw: bytes) -> None:
        self._raw = raw
        self._key = hash256(raw).hex()  # a text cannot contain its own hash
        self._pieces: list[_Piece] = []
        self.text = self._cut(raw)

    def _cut(self, raw: bytes) -> bytes:
        unfinished: list[list[bytes]] = [[]]  # the text so far of each piece we are in, outermost first
        begins: list[int] = []  # of the same, without the outermost
        depth = copied = 0
        for match in _TOKEN.finditer(raw):
            token = raw[match.start()]
            if token in b"[{":
                if depth and depth % _PIECE_DEPTH == 0:
                    unfinished[-1].append(raw[copied : match.start()])
                    unfinished.append([])
                    copied = match.start()
                    begins.append(copied)
                depth += 1
            elif token in b"]}":
                depth -= 1
                if depth > 0 and depth % _PIECE_DEPTH == 0:
                    text = b"".join((*unfinished.pop(), raw[copied : match.end()]))
                    copied = match.end()
                    unfinished[-1].append(b'"%s-%d"' % (self._key.encode(), len(self._pieces)))
                    self._pieces.append(_Piece(text, begins.pop(), copied))
                elif depth < 0:
                    break
        if depth:
            raise msgspec.DecodeError("JSON: brackets do not match")
        return b"".join((*unfinished[0], raw[copied:]))

    def piece(self, mark: str) -> bytes:
        """What was cut out where `mark` is now; marks may be in it in turn."""
        key, _, number = mark.partition("-")
        if key != self._key:
            raise WireError("JSON: a string where an array or object belongs")
        return self._pieces[int(number)].text

    def restored(self, text: bytes | msgspec.Raw) -> bytes:
        """A part of the outermost piece as it was in the original."""

        def original(mark: re.Match[bytes]) -> bytes:
            piece = self._pieces[int(mark[1])]
            return self._raw[piece.start : piece.end]

        return re.sub(rb'"%s-(\d+)"' % self._key.encode(), original, bytes(text))


def decode_any_depth(
    raw: bytes | msgspec.Raw, decode: Callable[[bytes | msgspec.Raw], _T]
) -> tuple[_T, CutJson | None]:
    """`decode` of the text as it is or, where it is too deep, of its outermost piece."""
    try:
        return decode(raw), None
    except RecursionError:
        cut = CutJson(bytes(raw))
        return decode(cut.text), cut
