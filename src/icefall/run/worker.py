"""A listener and its workers: stateless readers of the stores. Each listener has its app: node, data, metrics."""

import asyncio
import gc
import os
import signal
import threading
from pathlib import Path

import msgspec

from icefall.access.budget_server import serve_budgets
from icefall.access.budgets import limits_are_on
from icefall.api.app import App
from icefall.api.endpoints.row import DATA, METRICS, NODE
from icefall.api.rsgi import RsgiApp
from icefall.config.settings import Config
from icefall.run.app_parts import FOREVER_NS
from icefall.run.child import die_with_parent, watch_supervisor
from icefall.run.data_app import data_app
from icefall.run.metrics_app import metrics_app
from icefall.run.node_app import node_app

_ARGUMENTS = "_ICEFALL_WORKER_ARGUMENTS"  # from a listener to its workers, through granian


class _WorkerArguments(msgspec.Struct):
    listener: str
    config: Config
    with_engine: bool
    parent_pid: int


def run_listener(listener: str, config: Config, *, with_engine: bool) -> int:
    """Serves until it is stopped. Granian starts the workers and restarts those that die."""
    from granian import Granian  # noqa: PLC0415  only the process that listens needs a server
    from granian.constants import HTTPModes, Interfaces, Loops  # noqa: PLC0415
    from granian.http import HTTP1Settings  # noqa: PLC0415
    from granian.log import LogLevels  # noqa: PLC0415

    os.environ[_ARGUMENTS] = msgspec.json.encode(_WorkerArguments(listener, config, with_engine, os.getpid())).decode()
    watch_supervisor(lambda line: None if line else os.kill(os.getpid(), signal.SIGTERM))
    limited = limits_are_on(config.rate_limits, config.http_host)
    if listener != NODE and not with_engine and limited and not config.store:
        keeping = serve_budgets(Path(config.data_dir))  # without an engine this process may own the budgets
        threading.Thread(target=asyncio.run, args=(keeping,), daemon=True).start()
    Granian(
        "icefall.run.worker:worker_app",
        factory=True,
        address=config.http_host or "0.0.0.0",  # noqa: S104  an empty host means all, as with the node
        port={NODE: config.http_port, DATA: config.data_port, METRICS: config.metrics_port}[listener],
        interface=Interfaces.RSGI,
        workers=config.http_workers,
        loop=Loops.uvloop,
        http=HTTPModes.http1,  # in `auto` a connection that never sends anything would be kept for ever
        websockets=False,
        http1_settings=HTTP1Settings(header_read_timeout=max(1, (config.http_idle_timeout or FOREVER_NS) // 10**6)),
        log_level=LogLevels.error,
        respawn_failed_workers=True,
        respawn_interval=0.5,
        workers_kill_timeout=max(1, config.http_shutdown_timeout // 10**9 - 2),
    ).serve()
    return 0


def worker_app() -> RsgiApp:
    """What a granian worker serves."""
    arguments = msgspec.json.decode(os.environ[_ARGUMENTS], type=_WorkerArguments)
    die_with_parent(arguments.parent_pid)
    app = RsgiApp(build_app(arguments.listener, arguments.config, with_engine=arguments.with_engine))
    gc.collect()
    gc.freeze()  # what lives as long as the worker need not be scanned again and again
    gc.set_threshold(50_000, 20, 100)
    return app


def build_app(listener: str, config: Config, *, with_engine: bool) -> App:
    """`with_engine`: the program runs an engine too, whose log levels hold here."""
    if listener == NODE:
        return node_app(config)
    service_app = data_app if listener == DATA else metrics_app
    return service_app(config, with_engine=with_engine)
