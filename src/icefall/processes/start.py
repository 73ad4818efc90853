"""`icefall up | node | data | metrics`: which processes a verb starts, and what each of them runs."""

import asyncio
import gc
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from icefall import __version__
from icefall.access.budget_server import budget_socket
from icefall.access.budgets import limits_are_on
from icefall.api.http.row import DATA, NODE
from icefall.compose.child import (
    ENGINE,
    EXPORTS,
    GC_THRESHOLDS,
    INDEXER,
    LIMITS,
    REPLAY,
    TRY_AGAIN,
    WEBHOOKS,
    ChildArguments,
)
from icefall.compose.node_setup import health_limit_ns
from icefall.compose.process_file import process_file, put_process_file
from icefall.compose.shared_chains import put_chain_configs
from icefall.compose.stores import Stores, create_data_dir, stores_of
from icefall.config.load import with_chains
from icefall.config.settings import Config
from icefall.db.engine import StoreCorrupt, StoreError
from icefall.demo.chains import tables, tour_lines
from icefall.errors import StartRefused
from icefall.observe.cpu_samples import samples_directory, watch_requests
from icefall.observe.program import PROGRAM, name_process
from icefall.processes.forked import Child
from icefall.processes.listening import Address, ListeningSocket, listen
from icefall.processes.supervisor import Supervisor
from icefall.wire.ids import FUJI_ID, LOCAL_ID, MAINNET_ID, network_name

HAS_ENGINE = ("up", "node")
INDEXES = "up"
_NO_FILE = "No settings file was read: icefall.toml is neither here nor in the data directory"


def run(verb: str, config: Config, sockets: dict[str, ListeningSocket]) -> int:
    """`icefall up | node | data | metrics`, with the sockets that `listening.py` has opened."""
    addresses = {listener: listening.address for listener, listening in sockets.items()}
    config, replay = _with_demo(config)
    data_dir = Path(config.data_dir)
    create_data_dir(data_dir, "run")
    stores = stores_of(config)
    _create_access_store(stores)
    if verb == INDEXES:
        _share_chains(config, stores)
    start_text = _start_text(verb, config, stores, addresses, demo=replay is not None)
    stores.close()  # a connection cannot be used by two processes
    own_file = process_file(data_dir, verb)
    processes: dict[str, Any] = {"pid": os.getpid(), "verb": verb, "enginePid": None}
    if verb in HAS_ENGINE:
        processes["healthLimitNs"] = health_limit_ns(config)  # flags of this program, which `icefall status` has not
    processes |= {f"{name}Uri": address.url for name, address in addresses.items()}

    def engine_started(engine: Child) -> None:
        """The first engine may still refuse: until it is ready, the file may be that of another program."""
        processes["enginePid"] = engine.pid
        if engine.arguments.restarted:
            with suppress(StartRefused):  # a full disk
                put_process_file(own_file, processes)

    os.environ[PROGRAM] = str(os.getpid())
    name_process()
    watch_requests(samples_directory(Path(config.data_dir) / "run", os.getpid()))
    opened = [*sockets.values(), *([replay] if replay else [])]
    supervisor = Supervisor(
        verb, config, run_child, [listening.socket for listening in opened], _print_error, engine_started
    )
    supervisor.catch_signals()
    _import_roles(verb, sockets)
    try:
        _start(supervisor, verb, config, sockets, replay)
        if verb == INDEXES:  # what is indexed already is served before
            supervisor.start(WEBHOOKS)
            supervisor.start(EXPORTS)
        if verb == INDEXES and config.chain:
            supervisor.start(INDEXER)
        put_process_file(own_file, processes)
        print(start_text, flush=True)
        code = supervisor.watch()
        own_file.unlink(missing_ok=True)
        return code
    except StartRefused as refused:
        if str(refused):
            raise
        return 0 if supervisor.stop_requested else 1
    finally:
        supervisor.stop()
        gc.freeze()  # else Python visits every object once more before it ends: a sixth of the time of a start


def _start(
    supervisor: Supervisor,
    verb: str,
    config: Config,
    sockets: Mapping[str, ListeningSocket],
    replay: ListeningSocket | None,
) -> None:
    """All but the indexer, until every listener answers. Requests are served as soon as their limits hold."""
    has_engine = verb in HAS_ENGINE
    limits = _limits_socket(verb, config)
    supervisor.start(ENGINE if has_engine else LIMITS)
    if limits and not has_engine:
        supervisor.await_limits(limits)
    for listener, listening in sockets.items():
        for _ in range(config.http_workers):
            supervisor.start(listener, listening.socket)
    if replay:  # workers ask it for the state of tokens
        supervisor.start(REPLAY, replay.socket)
    if has_engine:
        supervisor.await_engine()
        if limits:
            supervisor.await_limits(limits)
        supervisor.use_engine()
    supervisor.await_listeners(listening.address for listening in sockets.values())


def _limits_socket(verb: str, config: Config) -> Path | None:
    """Return the socket at which the owner of the budgets listens. None without limits, and where a server has the
    budgets."""
    if verb == "node" or stores_of(config).url or not limits_are_on(config.rate_limits, config.http_host):
        return None
    return budget_socket(Path(config.data_dir))


def _print_error(text: str) -> None:
    print(f"icefall: {text}", file=sys.stderr, flush=True)


def _create_access_store(stores: Stores) -> None:
    """Creates the access store before any worker starts, because workers only read it."""
    try:
        stores.access_writer().ensure()
    except StoreError as error:
        raise StartRefused(str(error)) from error


def _share_chains(config: Config, stores: Stores) -> None:
    """Store the settings of the chains that are indexed: readers of the same stores serve them too."""
    try:
        put_chain_configs(config, stores)
    except StoreError as error:
        raise StartRefused(str(error)) from error


def _with_demo(config: Config) -> tuple[Config, ListeningSocket | None]:
    """The recorded chains added to those to index, and where they are replayed; only for a local network.

    If there are no other chains, metadata and pictures of NFTs are not fetched, so that the demo needs no network.
    """
    if not config.demo or config.network_id != LOCAL_ID or config.upstream:
        return config, None
    listening = listen(REPLAY, Address("127.0.0.1", 0))
    with_demo = with_chains(config, tables(listening.address.url), "demo")
    if with_demo.chain == config.chain:
        listening.socket.close()
        return config, None
    fetches = bool(config.chain)
    own = {
        "nft_metadata": config.nft_metadata and fetches,
        "picture_cache": config.picture_cache if fetches else 0,
    }
    return msgspec.structs.replace(with_demo, **own), listening


def _start_text(verb: str, config: Config, stores: Stores, addresses: dict[str, Address], *, demo: bool) -> str:
    of_network = f"network {network_name(config.network_id)}, " if verb in HAS_ENGINE else ""
    lines = [f"Icefall {__version__} is up: {of_network}data in {config.data_dir}"]
    lines += [f"Settings from {config.config_file}" if config.config_file else _NO_FILE, ""]
    lines += [f"  {name:<8} {address.url}   (read {address.url}/docs)" for name, address in addresses.items()]
    if DATA in addresses and config.explorer:
        lines += [f"  explorer {addresses[DATA].url}/   (open it in a browser)"]
    lines += _network_lines(verb, config)
    if demo:
        lines += ["", "Ten calls to try, on recorded chains (--no-demo starts without them):"]
        if not all(stores.has_chain_store(chain.id) for chain in config.chain):
            lines += ["The EVM chains are being indexed now, which takes some seconds the first time."]
        lines += ["", *tour_lines({name: address.url for name, address in addresses.items()})]
    elif NODE in addresses:
        url = addresses[NODE].url
        lines += ["", "Try:", f"  curl {url}/ext/health",
                  f"""  curl -H content-type:application/json {url}/ext/info \\
       -d '{{"jsonrpc":"2.0","id":1,"method":"info.getBlockchainID","params":{{"alias":"X"}}}}'"""]  # fmt: skip
    return "\n".join([*lines, "", "Stop with Ctrl-C." if verb == "up" else ""]).rstrip() + "\n"


def _network_lines(verb: str, config: Config) -> list[str]:
    """A network of one's own may have the name of a public one; then the start says which of the two this is."""
    name = network_name(config.network_id)
    if verb not in HAS_ENGINE or config.upstream or config.network_id not in (MAINNET_ID, FUJI_ID):
        return []
    return ["", f"This is a private network with the genesis of {name}: it is not connected to {name} and starts",
            "empty. To follow the real one, name a node of it that has a complete index:",
            f"  icefall {verb} --network-id={name} --upstream=http://host:9650"]  # fmt: skip


def _import_roles(verb: str, listeners: Iterable[str]) -> None:
    """What children run is imported here, once for all of them."""
    gc.disable()  # what is imported stays: there is no garbage to look for
    from icefall.compose.worker import app_builder  # noqa: PLC0415 - the supervisor of another verb needs less

    for listener in listeners:
        app_builder(listener)
    if verb in HAS_ENGINE:
        from icefall.compose import engine  # noqa: F401, PLC0415
    gc.enable()
    gc.freeze()  # else the first collection of every child would write to, and so copy, all of this memory


def run_child(arguments: ChildArguments) -> int:
    """A process that the supervisor has forked; its exit code."""
    try:
        return _role(arguments)()
    except (StartRefused, StoreError) as error:
        _print_error(str(error))
        may_pass = isinstance(error, StoreError) and not isinstance(error, StoreCorrupt)
        return TRY_AGAIN if arguments.restarted and may_pass else 1


def _role(arguments: ChildArguments) -> Callable[[], int]:
    """What a child runs. What only one role needs is imported by that child."""
    config = arguments.config
    if arguments.role == ENGINE:
        import uvloop  # noqa: PLC0415

        from icefall.compose.engine import run_engine  # noqa: PLC0415

        gc.set_threshold(*GC_THRESHOLDS)
        indexes = arguments.verb == INDEXES
        return lambda: uvloop.run(run_engine(config, indexes=indexes, restarted=arguments.restarted))
    if arguments.role == REPLAY:
        from icefall.compose.side_processes import run_replay  # noqa: PLC0415

        return lambda: asyncio.run(run_replay(arguments.own_socket))
    if arguments.role == LIMITS:
        from icefall.compose.side_processes import run_limits  # noqa: PLC0415

        return lambda: asyncio.run(run_limits(config))
    if arguments.role == WEBHOOKS:
        import uvloop  # noqa: PLC0415

        from icefall.compose.webhook_delivery import run_delivery  # noqa: PLC0415

        return lambda: uvloop.run(run_delivery(config, supervised=True, with_engine=arguments.verb in HAS_ENGINE))
    if arguments.role == EXPORTS:
        from icefall.compose.export_jobs import run_exports  # noqa: PLC0415

        return lambda: asyncio.run(run_exports(config, supervised=True, with_engine=arguments.verb in HAS_ENGINE))
    if arguments.role == INDEXER:
        gc.disable()  # as above
        from icefall.compose.indexer import run_indexer  # noqa: PLC0415

        gc.enable()
        return lambda: asyncio.run(run_indexer(config, show=False))
    from icefall.compose.worker import run_worker  # noqa: PLC0415

    return lambda: run_worker(arguments, with_engine=arguments.verb in HAS_ENGINE)
