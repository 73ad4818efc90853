"""A worker of a listener: a stateless reader of the stores. Each listener has its app: node, data, metrics.

The supervisor holds the listening socket, and all workers of a listener accept from it: while one is restarted, clients
wait instead of being refused.
"""

import asyncio
import gc
import sys
from collections.abc import Callable
from functools import partial
from math import inf

import uvloop

from icefall.api.http.app import BODY_MAX, App
from icefall.api.http.row import DATA, NODE
from icefall.compose.app_parts import URGENT, starting_app
from icefall.compose.child import ENGINE_READY, GC_THRESHOLDS, ChildArguments, raise_file_limit, watch_stop
from icefall.compose.stores import stores_of
from icefall.config.settings import Config
from icefall.db.engine import StoreError, urgent_queries
from icefall.errors import StartRefused
from icefall.observe.log import Log
from icefall.server.listener import Listener
from icefall.server.owner import HttpLimits

_OTHER_FILES = 256  # file descriptors that are not connections: stores, logs, sockets of our own


def run_worker(arguments: ChildArguments, *, with_engine: bool) -> int:
    """Serves until it is stopped; the exit code."""
    listener, config = arguments.role, arguments.config
    is_starting = with_engine and not arguments.restarted
    app = starting_app(listener, config) if is_starting else build_app(listener, config, with_engine=with_engine)
    return uvloop.run(_serve(app, arguments))


async def _serve(app: App, arguments: ChildArguments) -> int:
    config = arguments.config
    stop = asyncio.Event()
    codes = [0]

    def end(code: int) -> None:
        codes.append(code)
        stop.set()

    def received(message: str) -> None:
        nonlocal app
        if message == ENGINE_READY:
            try:
                app = build_app(arguments.role, config, with_engine=True)
                app.start()
                server.use(app)
            except (StartRefused, StoreError) as error:
                print(f"icefall: {error}", file=sys.stderr, flush=True)
                end(1)

    watch_stop(end, received=received)
    app.start()
    server = Listener(app, _limits(config), URGENT, partial(_report, app.log), urgently(config))
    await server.serve(arguments.own_socket, stop, config.http_shutdown_timeout / 1e9)
    await app.close()
    return codes[-1]


def urgently(config: Config) -> type[urgent_queries] | None:
    """The mark by which queries of urgent requests get a session of their own, which only servers have."""
    return urgent_queries if stores_of(config).has_server else None


def _report(log: Log, request: str, bug: Exception) -> None:
    log.error("answer not sent", request=request, error=f"{type(bug).__name__}: {bug}")


def _limits(config: Config) -> HttpLimits:
    files = raise_file_limit() - _OTHER_FILES
    return HttpLimits(
        head_s=_seconds(config.http_read_header_timeout),
        idle_s=_seconds(config.http_idle_timeout),
        write_s=_seconds(config.http_write_timeout),
        connections_max=max(1, min(config.http_max_connections // config.http_workers, files)),
        held_max=(config.http_max_buffered << 20) // config.http_workers,
        body_max=BODY_MAX,
    )


def _seconds(duration_ns: int) -> float:
    return duration_ns / 1e9 if duration_ns else inf  # 0 means none, as with the node


def app_builder(listener: str) -> Callable[[Config, bool], App]:
    """Imports what the app of a listener needs. The supervisor does so for all workers, before it forks them."""
    if listener == NODE:
        from icefall.compose.node_app import node_app  # noqa: PLC0415 - `icefall data` needs no node

        return lambda config, _with_engine: node_app(config)
    if listener == DATA:
        from icefall.compose.rest_apps import data_app  # noqa: PLC0415

        return lambda config, with_engine: data_app(config, with_engine=with_engine)
    from icefall.compose.rest_apps import metrics_app  # noqa: PLC0415

    return lambda config, with_engine: metrics_app(config, with_engine=with_engine)


def build_app(listener: str, config: Config, *, with_engine: bool) -> App:
    """`with_engine`: the program runs an engine too, whose log levels hold here."""
    app = app_builder(listener)(config, with_engine)
    gc.collect()
    gc.freeze()  # what lives as long as the worker need not be scanned again and again
    gc.set_threshold(*GC_THRESHOLDS)
    return app
