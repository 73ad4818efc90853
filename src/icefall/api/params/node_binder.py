"""From JSON-RPC params, or the query of a node endpoint, to a typed parameter struct, by the node's rules."""

from typing import Any, get_type_hints
from urllib.parse import unquote_plus

import msgspec

from icefall.api.params.kinds import InvalidValue, kind_in
from icefall.api.params.node_kinds import STRINGS, NodeKind
from icefall.wire.text.jsonscan import elements, members


class NoParams(msgspec.Struct, frozen=True):
    """For calls that take none. What is sent anyway must still be an object or a list."""


class NodeBinder:
    """Compiled once per parameter struct."""

    def __init__(self, params: type[msgspec.Struct]) -> None:
        self.params = params
        self.kinds: dict[str, NodeKind] = {}
        self._by_key: dict[str, tuple[str, NodeKind]] = {}
        hints = get_type_hints(params, include_extras=True)
        for field in msgspec.structs.fields(params):
            kind: NodeKind = kind_in(hints[field.name])
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
        """Only lists of strings, each a repeated key. Unknown keys are ignored."""
        if not query or not self._by_key:
            return self._none
        given: dict[str, list[str]] = {}
        for pair in query.split("&"):
            if ";" in pair or not _unescapes(pair):
                continue  # as the node does: an invalid pair is left out
            key, _, value = pair.partition("=")
            known = self._by_key.get(unquote_plus(key))
            if known is not None and known[1] is STRINGS:
                given.setdefault(known[0], []).append(unquote_plus(value, errors="replace"))
        return self.params(**given) if given else self._none


def _unescapes(pair: str) -> bool:
    at = pair.find("%")
    while at >= 0:
        if len(pair) < at + 3 or any(c not in "0123456789abcdefABCDEF" for c in pair[at + 1 : at + 3]):
            return False
        at = pair.find("%", at + 1)
    return True
