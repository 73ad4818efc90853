"""From a path to what answers there. Built-in paths are a dictionary; an administrator's aliases are asked of the
store, and only when the dictionary does not know."""

import posixpath
from collections.abc import Awaitable, Callable, Mapping
from typing import Any
from urllib.parse import quote

import msgspec

from icefall.api.jsonrpc import Service
from icefall.node.admin import ALIAS_MAX
from icefall.node.store import NodeReader

ROOT = "/ext/"
# What answers by itself: these names can never become aliases. `index/X` can, where only `index/X/block` answers.
NODE_BASES = frozenset(("admin", "health", "info", "metrics"))
_ALIAS_SIZE_MAX = len("bc/") + ALIAS_MAX  # a chain's alias stands behind bc/


class Plain(msgspec.Struct, frozen=True):
    """A REST row made ready."""

    row: Any
    binder: Any
    call: Any
    slot: int


class Route(msgspec.Struct):
    """What a path offers: plain endpoints by verb (`*` for any), and a JSON-RPC service."""

    plain: dict[str, Plain]
    service: Service | None = None
    closed: Callable[[], Awaitable[bool]] | None = None  # while its chain is bootstrapping

    def allow(self, *, head: bool) -> str:
        """The verbs this path takes, as an Allow header lists them."""
        verbs = [verb for verb in self.plain if verb != "*"]
        if head and "GET" in verbs:
            verbs.append("HEAD")
        return ", ".join(dict.fromkeys([*verbs, *(["POST"] if self.service else [])]))


class Routes:
    def __init__(
        self, paths: Mapping[str, Route], bases: frozenset[str], node: NodeReader | None, *, full: bool
    ) -> None:
        self.paths = paths
        self._bases = bases
        self._node = node
        self._full = full  # an alias may also stand for a whole endpoint, not only for a base

    async def find(self, path: str) -> Route | None:
        if self._node is None or not path.startswith(ROOT):
            return None
        return await self._through_alias(path[len(ROOT) :], set())

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
