"""From the table to an app: rows made ready with the services they ask for, gathered by path."""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from inspect import signature
from typing import Any, get_type_hints

from icefall.api.bind import Binder
from icefall.api.dialect import Dialect
from icefall.api.endpoint import Handler, Rest, Rpc
from icefall.api.jsonrpc import Method, Service
from icefall.api.routes import Plain, Route
from icefall.meters import Meters

OTHERS = "(no endpoint)"
Services = Mapping[type, Any]


def meter_labels(rows: Iterable[Rest | Rpc]) -> list[str]:
    """One label a row, and a last one for requests that no row answers."""
    return [*(row.label for row in rows), OTHERS]


def with_services(handler: Handler, services: Services) -> Callable[[Any], Awaitable[Any]]:
    """A handler says by its annotations which reader it may use; it gets that one and nothing else."""
    hints = get_type_hints(handler)
    wanted = [services[hints[name]] for name in list(signature(handler).parameters)[1:]]
    match wanted:
        case []:
            return handler
        case [one]:
            return lambda ask: handler(ask, one)
        case [one, two]:
            return lambda ask: handler(ask, one, two)
        case _:
            return lambda ask: handler(ask, *wanted)


def routes_of(
    rows: list[Rest | Rpc], enabled: Callable[[str], bool], services: Services, dialect: Dialect, meters: Meters
) -> dict[str, Route]:
    """The paths of the rows that are switched on. `rows` and the labels of `meters` are in the same order."""
    routes: dict[str, Route] = {}
    methods: dict[str, dict[str, Method]] = {}
    for slot, row in enumerate(rows):
        if row.needs and not enabled(row.needs):
            continue
        binder, call = Binder(row.params), with_services(row.handler, services)
        if isinstance(row, Rest):
            routes.setdefault(row.path, Route({})).plain[row.verb] = Plain(row, binder, call, slot)
        else:
            methods.setdefault(row.path, {})[row.method] = Method(row, binder, call, slot)
    for path, by_name in methods.items():
        routes.setdefault(path, Route({})).service = Service(by_name, dialect, meters)
    return routes


def bases_of(routes: Mapping[str, Route]) -> frozenset[str]:
    """What an alias may stand for as a whole: the part of each path after /ext/ that all its endpoints share."""
    return frozenset(path.removeprefix("/ext/").split("/")[0] for path in routes if path.startswith("/ext/"))
