"""From a path to what answers there. Built-in paths are a dictionary; paths with parameters are looked up by their
shape, and an administrator's aliases are asked of the store, both only when the dictionary does not know."""

import posixpath
from collections.abc import Awaitable, Callable, Mapping
from typing import Any
from urllib.parse import quote

import msgspec

from icefall.api.jsonrpc import RpcService
from icefall.node.admin.commands import ALIAS_MAX
from icefall.node.store import NodeReader

ROOT = "/ext/"
# What answers by itself: these names can never become aliases. `index/X` can, where only `index/X/block` answers.
NODE_BASES = frozenset(("admin", "health", "info", "metrics"))
_ALIAS_SIZE_MAX = len("bc/") + ALIAS_MAX  # a chain's alias stands behind bc/


class RestRoute(msgspec.Struct, frozen=True):
    """A REST row made ready. `bind` makes its parameters of the path's values and the query."""

    row: Any
    bind: Callable[[tuple[str, ...], str], Any]
    call: Any
    slot: int


class Route(msgspec.Struct):
    """What a path offers: plain endpoints by verb (`*` for any), and a JSON-RPC service."""

    plain: dict[str, RestRoute]
    service: RpcService | None = None
    closed: Callable[[], Awaitable[bool]] | None = None  # while its chain is bootstrapping

    def allow(self, *, head: bool) -> str:
        """The verbs this path takes, as an Allow header lists them."""
        verbs = [verb for verb in self.plain if verb != "*"]
        if head and "GET" in verbs:
            verbs.append("HEAD")
        return ", ".join(dict.fromkeys([*verbs, *(["POST"] if self.service else [])]))


class PathPatterns:
    """Paths with parameters, each a whole segment: where the parameters stand, by the number of segments."""

    def __init__(self, paths: Mapping[str, Route]) -> None:
        self._places: dict[int, list[tuple[int, ...]]] = {}
        self._routes: dict[tuple[str, ...], Route] = {}
        for path, route in paths.items():
            parts = path.split("/")
            places = tuple(place for place, part in enumerate(parts) if is_parameter(part))
            self._routes[_without(parts, places)] = route
            known = self._places.setdefault(len(parts), [])
            if places not in known:
                known.append(places)
                known.sort(key=len)  # a word of the table goes before a value

    def find(self, path: str) -> tuple[Route, tuple[str, ...]] | None:
        parts = path.split("/")
        for places in self._places.get(len(parts), ()):
            route = self._routes.get(_without(parts, places))
            if route is not None:
                return route, tuple([parts[place] for place in places])
        return None


def is_parameter(segment: str) -> bool:
    return segment[:1] == "{" and segment[-1:] == "}"


def _without(parts: list[str], places: tuple[int, ...]) -> tuple[str, ...]:
    kept = parts.copy()
    for place in places:
        kept[place] = "{}"
    return tuple(kept)


class Routes:
    def __init__(
        self, paths: Mapping[str, Route], bases: frozenset[str], node: NodeReader | None, *, full: bool
    ) -> None:
        shaped = {} if node else {path: route for path, route in paths.items() if "/{" in path}  # an alias is text
        self.paths = {path: route for path, route in paths.items() if path not in shaped}
        self._shapes = PathPatterns(shaped)
        self._bases = bases
        self._node = node
        self._full = full  # an alias may also stand for a whole endpoint, not only for a base

    async def find(self, path: str) -> tuple[Route, tuple[str, ...]] | None:
        """For what is not in `paths`: the route and the values of its parameters."""
        if self._node is None:
            return self._shapes.find(path)
        route = await self._through_alias(path[len(ROOT) :], set()) if path.startswith(ROOT) else None
        return (route, ()) if route else None

    async def _through_alias(self, rest: str, seen: set[str]) -> Route | None:
        """Aliases may name aliases, in any order of their making, and loops are nobody's business but the caller's."""
        assert self._node is not None
        for alias, tail in _splits(rest):
            target = await self._node.endpoint_of(alias)
            if target is None or alias in seen:
                continue
            seen.add(alias)
            if self._full or target in self._bases:
                route = self.paths.get(ROOT + target + tail)
                if route is not None:
                    return route
            route = await self._through_alias(target + tail, seen)
            if route is not None:
                return route
        return None


def _splits(path: str) -> list[tuple[str, str]]:
    """The ways to read a path as alias and tail, longest alias first. Nothing longer than an alias can be is tried."""
    cuts = [(path, "")] if len(path) <= _ALIAS_SIZE_MAX else []
    at = path.rfind("/", 0, _ALIAS_SIZE_MAX + 1)
    while at > 0:
        cuts.append((path[:at], path[at:]))
        at = path.rfind("/", 0, at)
    return cuts


def cleaned(path: str) -> str:
    """The path from the root, without `//`, `.` and `..`; a trailing slash stays."""
    clean = posixpath.normpath("/" + path)
    if clean.startswith("//"):
        clean = clean[1:]
    return clean + "/" if path.endswith("/") and clean != "/" else clean


def location(path: str, query: str) -> str:
    """A path as a Location header says it: nothing of it can end the header."""
    return quote(path, safe="/$&+,:;=@") + (f"?{query}" if query else "")
