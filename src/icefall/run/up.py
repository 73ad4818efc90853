"""Which processes a verb means, and what each of them runs. `engine.py` and `worker.py` say what they are made of."""

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

import msgspec

from icefall import __version__
from icefall.access.store import ensure_store
from icefall.api.endpoint import DATA, METRICS, NODE
from icefall.config.load import Config, with_chains
from icefall.db.engine import StoreError
from icefall.demo.chains import tables
from icefall.demo.tour import shown
from icefall.errors import StartRefused
from icefall.evm.storing.store import store_path
from icefall.node.identity import IdentityError
from icefall.run.engine import run_engine
from icefall.run.indexer import run_indexer
from icefall.run.supervisor import Address, PortClaim, Supervisor, claim, orders
from icefall.run.worker import run_listener
from icefall.wire.genesis.networks import LOCAL_ID, network_name

LISTENERS_OF = {"up": (NODE, DATA, METRICS), "node": (NODE,), "data": (DATA,), "metrics": (METRICS,)}
HAS_ENGINE = ("up", "node")
INDEXER, REPLAY = "indexer", "replay"


def run(verb: str, config: Config) -> int:
    """`icefall up | node | data | metrics`."""
    config, claims = _claimed(verb, config)
    addresses = {listener: claimed.address for listener, claimed in claims.items()}
    config, replay = _with_demo(config)
    data_dir = _made(Path(config.data_dir))
    _ensure_access(data_dir)
    greeting = _greeting(verb, config, addresses, demo=replay is not None)
    supervisor = Supervisor(verb, config, lambda text: print(f"icefall: {text}", file=sys.stderr, flush=True))
    supervisor.catch_signals()
    try:
        engine = supervisor.start("engine") if verb in HAS_ENGINE else None
        if replay:
            supervisor.start(REPLAY, replay.address.port)
        for listener in addresses:
            supervisor.start(listener)
        supervisor.await_listeners([*addresses.values(), *([replay.address] if replay else [])])
        if verb == "up" and config.chain:
            supervisor.start(INDEXER)
        process_file = data_dir / ("process.json" if engine else f"process-{verb}.json")  # beside a node's, not over it
        told = {"pid": os.getpid(), "enginePid": engine.pid if engine else None}
        _put(process_file, told | {f"{name}Uri": address.url for name, address in addresses.items()})
        print(greeting, flush=True)
        code = supervisor.watch()
        process_file.unlink(missing_ok=True)
        return code
    except StartRefused as refused:
        if str(refused):
            raise
        return 0 if supervisor.told_to_stop else 1
    finally:
        supervisor.stop()


def _ensure_access(data_dir: Path) -> None:
    """Before any worker starts: they only read it."""
    try:
        ensure_store(data_dir)
    except StoreError as error:
        raise StartRefused(str(error)) from error


def _put(process_file: Path, told: dict[str, Any]) -> None:
    """Where this program is to be found, for scripts."""
    try:
        process_file.write_text(json.dumps(told, indent=2))
    except OSError as error:
        raise StartRefused(f"{process_file} cannot be written: {error.strerror}") from error


def _claimed(verb: str, config: Config) -> tuple[Config, dict[str, PortClaim]]:
    """The configuration with real ports in place of 0, and what each listener may listen on."""
    ports = {NODE: "http_port", DATA: "data_port", METRICS: "metrics_port"}
    claims = {
        listener: claim(listener, Address(config.http_host, getattr(config, ports[listener])))
        for listener in LISTENERS_OF[verb]
    }
    changed = {ports[listener]: claimed.address.port for listener, claimed in claims.items()}
    return msgspec.structs.replace(config, **changed), claims


def _with_demo(config: Config) -> tuple[Config, PortClaim | None]:
    """The recorded chains among those to index, and where they are replayed: for a local network of its own only.

    Where there are no other chains nothing leaves the machine: of their NFTs, what the chains hold is read.
    """
    if not config.demo or config.network_id != LOCAL_ID or config.upstream:
        return config, None
    claimed = claim(REPLAY, Address("127.0.0.1", 0))
    with_demo = with_chains(config, tables(claimed.address.url), "demo")
    if with_demo.chain == config.chain:
        return config, None
    return msgspec.structs.replace(with_demo, nft_metadata=config.nft_metadata and bool(config.chain)), claimed


def _made(data_dir: Path) -> Path:
    try:
        (data_dir / "run").mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise StartRefused(f"the data directory {data_dir} cannot be made: {error.strerror}") from error
    if not all(os.access(path, os.W_OK | os.X_OK) for path in (data_dir, data_dir / "run")):
        raise StartRefused(f"the data directory {data_dir} cannot be written: Permission denied")
    return data_dir


def _greeting(verb: str, config: Config, addresses: dict[str, Address], *, demo: bool) -> str:
    lines = [f"Icefall {__version__} is up: network {network_name(config.network_id)}, data in {config.data_dir}", ""]
    lines += [f"  {name:<8} {address.url}   (read {address.url}/docs)" for name, address in addresses.items()]
    if demo:
        lines += ["", "Ten calls to try, on recorded chains (--no-demo starts without them):"]
        if not all(store_path(Path(config.data_dir), chain.id).exists() for chain in config.chain):
            lines += ["The EVM chains are being indexed now, which takes some seconds the first time."]
        lines += ["", *shown({name: address.url for name, address in addresses.items()})]
    elif NODE in addresses:
        url = addresses[NODE].url
        lines += ["", "Try:", f"  curl {url}/ext/health",
                  f"""  curl -H content-type:application/json {url}/ext/info \\
       -d '{{"jsonrpc":"2.0","id":1,"method":"info.getBlockchainID","params":{{"alias":"X"}}}}'"""]  # fmt: skip
    return "\n".join([*lines, "", "Stop with Ctrl-C." if verb == "up" else ""]).rstrip() + "\n"


def _child() -> int:
    """`python -m icefall.run.up <role>`, started by the supervisor."""
    told = orders()
    try:
        if told.role == "engine":
            import uvloop  # noqa: PLC0415

            return uvloop.run(run_engine(told.config))
        if told.role == REPLAY:
            from icefall.run.replay import run_replay  # noqa: PLC0415

            return asyncio.run(run_replay(told.port))
        if told.role == INDEXER:
            return asyncio.run(run_indexer(told.config, show=False))
        return run_listener(told.role, told.config, beside_engine=told.verb in HAS_ENGINE)
    except (StartRefused, StoreError, IdentityError) as error:
        print(f"icefall: {error}", file=sys.stderr, flush=True)
        return 1


if __name__ == "__main__":
    raise SystemExit(_child())
