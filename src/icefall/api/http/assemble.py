"""Compilation of the endpoint table to routes: each row with the services its handler takes, grouped by path."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial
from inspect import signature
from typing import Any, get_type_hints

import msgspec

from icefall.api.dialect import Dialect
from icefall.api.http.jsonrpc import RpcMethod, RpcService
from icefall.api.http.rest_params import RestBinder, body_reader
from icefall.api.http.result_cache import ResultCache, no_version
from icefall.api.http.routes import RestRoute, Route
from icefall.api.http.row import Handler, Rest, Rpc, binder_of
from icefall.api.http.rpc_params import NodeBinder
from icefall.evm.reading.directory import ChainDirectory
from icefall.evm.reading.one_history import in_one_history
from icefall.observe.counters import CallCounters

OTHERS = "(no endpoint)"
Services = Mapping[type, Any]


def counter_labels(rows: Iterable[Rest | Rpc]) -> list[str]:
    """One label per row, and a last one for requests without a row."""
    return [*(row.label for row in rows), OTHERS]


def with_services(handler: Handler, services: Services, *, has_body: bool = False) -> Callable[..., Awaitable[Any]]:
    """The handler with the services that its annotations name, and no others."""
    hints = get_type_hints(handler)
    wanted = [services[hints[name]] for name in list(signature(handler).parameters)[2 if has_body else 1 :]]
    if has_body:
        return lambda params, body: handler(params, body, *wanted)
    match wanted:
        case []:
            return handler
        case [one]:
            return lambda params: handler(params, one)
        case [one, two]:
            return lambda params: handler(params, one, two)
        case _:
            return lambda params: handler(params, *wanted)


def reads_chains(row: Rest) -> bool:
    """Whether answers of a row are made from the stores of chains, and may be read again. A stream reads them piece by
    piece, and checks each."""
    return row.verb != "POST" and not row.is_stream and ChainDirectory in get_type_hints(row.handler).values()


def binding(row: Rest) -> Callable[[tuple[str, ...], str], Any]:
    """The function that makes a row's parameters from the values in the path and the query."""
    binder = binder_of(row)
    if isinstance(binder, RestBinder):
        return binder.bind
    from_query = binder.from_query
    return lambda _, query: from_query(query)


class Mount(msgspec.Struct, frozen=True):
    """The paths under which the rows of `row_path` are served for one chain: all its names, with its own readers.
    `closed`: whether its chain is bootstrapping, at once if that is known. `version` is that of the store which they
    read."""

    row_path: str
    paths: tuple[str, ...]
    services: Services
    closed: Callable[[], bool | Awaitable[bool]] | None = None
    version: Callable[[], int] = no_version


def routes_of(
    rows: list[Rest | Rpc],
    enabled: Callable[[str], bool],
    services: Services,
    dialect: Dialect,
    counters: CallCounters,
    mounts: Sequence[Mount] = (),
) -> dict[str, Route]:
    """The paths of the enabled rows. `rows` and the labels of `counters` are in the same order."""
    routes: dict[str, Route] = {}
    mounted = {mount.row_path for mount in mounts}
    slots = {label: slot for slot, label in enumerate(counters.labels)}
    wanted = [row for row in rows if not row.needs or enabled(row.needs)]
    for row in wanted:
        if isinstance(row, Rest):
            version = services[ChainDirectory].version if row.cacheable else None
            call = with_services(row.handler, services, has_body=row.body is not None)
            if reads_chains(row):
                call = partial(in_one_history, call)
            read_body = None if row.body is None else body_reader(row.body)
            plain = RestRoute(row, binding(row), call, slots[row.label], version, read_body)
            routes.setdefault(row.path, Route({})).plain[row.verb] = plain
    for path in dict.fromkeys(row.path for row in wanted if isinstance(row, Rpc)):
        group = [row for row in wanted if isinstance(row, Rpc) and row.path == path]
        for mount in mounts if path in mounted else (Mount(path, (path,), {}),):
            if mount.row_path != path:
                continue
            own = {**services, **mount.services}
            methods = {
                r.method: RpcMethod(r, _rpc_binder(r, dialect), with_services(r.handler, own), slots[r.label])
                for r in group
            }
            service = RpcService(methods, dialect, counters, ResultCache(mount.version))
            for name in mount.paths:
                route = routes.setdefault(name, Route({}))
                route.service, route.closed = service, mount.closed
    return routes


def _rpc_binder(row: Rpc, dialect: Dialect) -> NodeBinder:
    return NodeBinder(row.params, () if dialect.index_encoding_checked else row.live_ignores)


def bases_of(routes: Mapping[str, Route]) -> frozenset[str]:
    """The paths that an alias may replace: the part of each after /ext/ that is common to its endpoints."""
    paths = [path.removeprefix("/ext/").split("/") for path in routes if path.startswith("/ext/")]
    return frozenset("/".join(parts[: 2 if parts[0] in ("bc", "index") else 1]) for parts in paths)
