"""The way from a path to its route. Paths without parameters are in a dictionary. Others are matched with the patterns
of paths with parameters, or on the node listener with the aliases in the store.
"""

import posixpath
from collections.abc import Awaitable, Callable, Mapping, Sequence
from operator import itemgetter
from typing import Any
from urllib.parse import quote

import msgspec

from icefall.api.http.jsonrpc import RpcService
from icefall.errors import NotFound
from icefall.evm.reading.directory import ChainVersion
from icefall.node.chains import ALIAS_MAX, ALIASES_FOLLOWED_MAX, TOO_MANY_FOLLOWED, splits
from icefall.node.store import NodeReader

ROOT = "/ext/"


class RestRoute(msgspec.Struct, frozen=True):
    """A compiled REST row. `bind` makes its parameters from the values in the path and the query. `version` is that of
    the chain that its answers depend on, by the values in the path; None if they are not cached."""

    row: Any
    bind: Callable[[tuple[str, ...], str], Any]
    call: Any
    slot: int
    version: Callable[[tuple[str, ...]], Awaitable[ChainVersion | None]] | None = None
    read_body: Callable[[bytes], Any] | None = None  # None: it takes none


class Route(msgspec.Struct):
    """The things that a path serves: plain endpoints by verb (`*` for any), and a JSON-RPC service."""

    plain: dict[str, RestRoute]
    service: RpcService | None = None
    closed: Callable[[], bool | Awaitable[bool]] | None = None  # while its chain is bootstrapping

    def allow(self, *, head: bool) -> str:
        """The verbs this path takes, as an Allow header lists them."""
        verbs = [verb for verb in self.plain if verb != "*"]
        if head and "GET" in verbs:
            verbs.append("HEAD")
        return ", ".join(dict.fromkeys([*verbs, *(["POST"] if self.service else [])]))


class PathPatterns:
    """Paths with parameters, each a whole segment, the last one maybe with a verb behind it (`{tokenId}:reindex`, which
    counts as two segments): by the number of segments and which of them are parameters."""

    def __init__(self, paths: Mapping[str, Route]) -> None:
        self._alike: dict[int, dict[tuple[int, ...], _AlikePaths]] = {}
        self._verbs = {":" + path.rpartition("}:")[2] for path in paths if "}:" in path}
        for path, route in paths.items():
            parts = path.replace("}:", "}/:").split("/")
            indexes = tuple(index for index, part in enumerate(parts) if is_parameter(part))
            alike = self._alike.setdefault(len(parts), {})
            if indexes not in alike:
                alike[indexes] = _AlikePaths(len(parts), indexes)
            alike[indexes].routes[alike[indexes].literals(parts)] = route
        for count, alike in self._alike.items():  # a literal segment is preferred to a parameter
            self._alike[count] = dict(sorted(alike.items(), key=lambda item: len(item[0])))

    def find(self, path: str) -> tuple[Route, tuple[str, ...]] | None:
        parts = path.split("/")
        if ":" in parts[-1]:
            value, _, verb = parts[-1].rpartition(":")
            found = self._find([*parts[:-1], value, ":" + verb]) if ":" + verb in self._verbs else None
            if found is not None and found[1][-1] == value:  # not the verb as a value
                return found
        return self._find(parts)

    def _find(self, parts: list[str]) -> tuple[Route, tuple[str, ...]] | None:
        alike = self._alike.get(len(parts))
        for paths in alike.values() if alike is not None else ():
            route = paths.routes.get(paths.literals(parts))
            if route is not None:
                return route, paths.values(parts)
        return None


class _AlikePaths:
    """The paths with as many segments and the same of them parameters: routes by the other segments."""

    def __init__(self, count: int, parameters: tuple[int, ...]) -> None:
        self.literals = _items([index for index in range(count) if index not in parameters])
        self.values = _items(parameters)
        self.routes: dict[tuple[str, ...], Route] = {}


def _items(indexes: Sequence[int]) -> Callable[[Sequence[str]], tuple[str, ...]]:
    """The function that takes these items of a list."""
    if len(indexes) < 2:  # itemgetter returns a tuple of two or more
        return lambda parts: tuple(parts[index] for index in indexes)
    return itemgetter(*indexes)


def is_parameter(segment: str) -> bool:
    return segment[:1] == "{" and segment[-1:] == "}"


class Routes:
    def __init__(
        self, paths: Mapping[str, Route], bases: frozenset[str], node: NodeReader | None, *, full: bool
    ) -> None:
        patterns = {} if node else {path: route for path, route in paths.items() if "/{" in path}
        self.paths = {path: route for path, route in paths.items() if path not in patterns}
        self._patterns = PathPatterns(patterns)
        self._bases = bases
        self._node = node
        self._full = full  # an alias may also name a whole endpoint, not only a base

    async def find(self, path: str) -> tuple[Route, tuple[str, ...]] | None:
        """Find the route of a path that is not in `paths`, and the values of its parameters."""
        if self._node is None:
            return self._patterns.find(path)
        route = await self._through_alias(path[len(ROOT) :], set()) if path.startswith(ROOT) else None
        return (route, ()) if route else None

    async def is_endpoint(self, rest: str, seen: set[str]) -> bool:
        """Whether something is served at `/ext/<rest>` or below it, by its own name or through aliases."""
        if ROOT + rest in self.paths or rest in self._bases:
            return True
        assert self._node is not None
        for alias, tail in splits(rest):
            target = await self._node.endpoint_of(alias) if alias not in seen else None
            if target is not None and len(seen) < ALIASES_FOLLOWED_MAX:
                seen.add(alias)
                if await self.is_endpoint(target + tail, seen):
                    return True
        return False

    async def _through_alias(self, rest: str, seen: set[str]) -> Route | None:
        """Find the route behind an alias. Aliases may name other aliases, in any order of creation; a loop of aliases
        leads nowhere."""
        assert self._node is not None
        for alias, tail in splits(rest):
            target = await self._node.endpoint_of(alias)
            if target is None or alias in seen:
                continue
            if len(seen) == ALIASES_FOLLOWED_MAX:
                raise NotFound(f"/ext/{rest[:ALIAS_MAX]}: {TOO_MANY_FOLLOWED}")
            seen.add(alias)
            if self._full or target in self._bases:
                route = self.paths.get(ROOT + target + tail)
                if route is not None:
                    return route
            route = await self._through_alias(target + tail, seen)
            if route is not None:
                return route
        return None


class EndpointNames:
    """The endpoints of the node listener by the part of their path after `/ext/`. `routes` is set once they are
    compiled: admin.alias, which looks endpoints up, is one of them."""

    def __init__(self) -> None:
        self.routes: Routes | None = None

    async def exists(self, endpoint: str) -> bool:
        """Whether it is an endpoint, the common part of some, or an alias of one of those."""
        assert self.routes is not None
        return await self.routes.is_endpoint(endpoint, set())


def cleaned(path: str) -> str:
    """The path from the root, without `//`, `.` and `..`; a trailing slash stays."""
    clean = posixpath.normpath("/" + path)
    if clean.startswith("//"):
        clean = clean[1:]
    return clean + "/" if path.endswith("/") and clean != "/" else clean


def location(path: str, query: str) -> str:
    """A path quoted for a Location header, so that it cannot end the header."""
    return quote(path, safe="/$&+,:;=@") + (f"?{query}" if query else "")
