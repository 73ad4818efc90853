"""From what a caller sent to a typed parameter struct, before any handler runs."""

from typing import Any, get_args, get_type_hints
from urllib.parse import unquote_plus

import msgspec

from icefall.api.kinds import TEXTS, InvalidValue, ParamKind
from icefall.wire.text.jsonscan import elements, members


class NoParams(msgspec.Struct, frozen=True):
    """For calls that take none. What is sent anyway must still be an object or a list."""


class Binder:
    """Compiled once per parameter struct."""

    def __init__(self, params: type[msgspec.Struct]) -> None:
        self.params = params
        self.kinds: dict[str, ParamKind] = {}
        self._by_key: dict[str, tuple[str, ParamKind]] = {}
        hints = get_type_hints(params, include_extras=True)
        for field in msgspec.structs.fields(params):
            kind = next(extra for extra in get_args(hints[field.name])[1:] if isinstance(extra, ParamKind))
            self.kinds[field.encode_name] = kind
            self._by_key[field.encode_name] = self._by_key[field.encode_name.lower()] = (field.name, kind)
        self._none = params()

    def from_json(self, raw: bytes) -> Any:
        """`raw` is empty when params are left out. Unknown keys are ignored, case does not matter, the last wins."""
        if not raw or raw == b"null":
            return self._none
        if raw[:1] == b"[":
            items = elements(raw)
            if not items or items[0] == b"null":
                return self._none
            raw = items[0]
        if raw[:1] != b"{":
            raise InvalidValue("an object")
        given: dict[str, Any] = {}
        for key, value in members(raw):
            known = self._by_key.get(key) or self._by_key.get(key.lower())
            if known is not None:
                name, kind = known
                if value != b"null":
                    given[name] = kind.read(value)
        return self.params(**given) if given else self._none

    def from_query(self, query: str) -> Any:
        """Only repeated texts so far: what is not a known name is ignored."""
        if not query or not self._by_key:
            return self._none
        given: dict[str, list[str]] = {}
        for pair in query.split("&"):
            if ";" in pair or not _unescapes(pair):
                continue  # as the node does: a piece that cannot be read is left out
            key, _, value = pair.partition("=")
            known = self._by_key.get(unquote_plus(key))
            if known is not None and known[1] is TEXTS:
                given.setdefault(known[0], []).append(unquote_plus(value, errors="replace"))
        return self.params(**given) if given else self._none


def _unescapes(piece: str) -> bool:
    at = piece.find("%")
    while at >= 0:
        if len(piece) < at + 3 or any(c not in "0123456789abcdefABCDEF" for c in piece[at + 1 : at + 3]):
            return False
        at = piece.find("%", at + 1)
    return True
