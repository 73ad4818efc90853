"""`icefall status`: the state of an instance on one screen, from its stores and files; it needs no running program."""

import asyncio
import json
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec

from icefall import __version__
from icefall.access.budgets import DAY_S
from icefall.access.store import AccessReader
from icefall.access.usage import total
from icefall.access.usage_store import UsageReader
from icefall.compose.node_setup import freshness
from icefall.compose.process_file import running_programs
from icefall.compose.shared_chains import with_stored_chains
from icefall.compose.stores import Stores, stores_of
from icefall.config.settings import Config
from icefall.db.disk import free_space
from icefall.db.engine import StoreError
from icefall.errors import StartRefused
from icefall.evm.health import SILENT_S, chain_health
from icefall.evm.indexing.progress import duration_text
from icefall.evm.reading.chain import ChainReader
from icefall.evm.status import ChainStatus, UpstreamStatus, decode_status
from icefall.node.health.runner import HEALTH, reported_results
from icefall.node.store import NodeReader

_ERRORS_SHOWN = 5
_LINE_MAX = 160  # columns of a line that quotes an error
_LOG_TAIL = 256 << 10  # bytes of each log that are searched for errors


class ProgramState(msgspec.Struct, frozen=True, rename="camel"):
    """`urls`: the addresses of its listeners, by name. `verb`: `up`, `node`, `data`, `metrics` or `index`."""

    pid: int
    urls: dict[str, str]
    verb: str = ""


class ChainState(msgspec.Struct, frozen=True, rename="camel"):
    """`lag`: blocks behind the head. `block_at`: when the newest block was made, in Unix time. `upstreams`: each with
    why it cannot be used, empty if it can. `is_reporting`: its indexer has reported lately. `warning`: what is wrong
    with its settings, although it is indexed."""

    id: str
    name: str
    problem: str
    synced: bool = False
    block: int | None = None
    block_at: int | None = None
    head: int | None = None
    lag: int | None = None
    blocks_per_second: float = 0.0
    upstreams: dict[str, str] = {}
    last_problem: str = ""
    last_problem_at: int = 0
    warning: str = ""
    is_reporting: bool = False


class StoreState(msgspec.Struct, frozen=True, rename="camel"):
    path: str
    bytes: int


class ReplicaStatus(msgspec.Struct, frozen=True, rename="camel"):
    """`lag_seconds`: how old its rows may be; None if it is not known. `problem`: why it is not read."""

    name: str
    lag_seconds: float | None
    problem: str


class KeyState(msgspec.Struct, frozen=True, rename="camel"):
    """`calls` and `units` of today, in UTC. The key without a name stands for all callers without one."""

    name: str
    tier: str
    calls: int
    units: int


class LoggedError(msgspec.Struct, frozen=True, rename="camel"):
    time: str
    level: str
    logger: str
    message: str


class Status(msgspec.Struct, frozen=True, rename="camel"):
    """`health`: whether each check of the node passes. `failures`: why not, of those that do not."""

    version: str
    data_dir: str
    programs: list[ProgramState]
    health: dict[str, bool]
    failures: dict[str, str]
    chains: list[ChainState]
    stores: list[StoreState]
    free_bytes: int
    keys: list[KeyState]
    errors: list[LoggedError]
    replicas: list[ReplicaStatus] = []


def status(config: Config, *, as_json: bool) -> str:
    """The text to print."""
    data_dir = Path(config.data_dir)
    if not data_dir.is_dir():
        raise StartRefused(f"there is no data directory {data_dir}: has Icefall been started with it?")
    with closing(stores_of(config)) as stores:
        found = asyncio.run(_status(config, stores))
    return msgspec.json.format(msgspec.json.encode(found)).decode() if as_json else screen(found, time.time())


async def _status(config: Config, stores: Stores) -> Status:
    data_dir = stores.data_dir
    running = running_programs(data_dir)
    programs = [ProgramState(one.pid, one.urls, one.verb) for one in running]
    node = next((one for one in running if one.health_limit_ns), None)
    listed = [chain.id for chain in config.chain]
    names = {chain.id: chain.name for chain in with_stored_chains(config, stores).chain}  # of the demo's chains too
    try:
        ids = [*listed, *(one.chain_id for one in stores.names() if one.chain_id and one.chain_id not in listed)]
        sizes = stores.sizes()
    except StoreError as error:
        raise StartRefused(str(error)) from error
    failures = await _failures(stores, node.health_limit_ns) if node is not None else {}
    return Status(
        version=__version__,
        data_dir=str(data_dir),
        programs=programs,
        health={name: not error for name, error in failures.items()},
        failures={name: error for name, error in failures.items() if error},
        chains=[await _chain(stores, chain_id, names.get(chain_id, "")) for chain_id in ids],
        stores=[StoreState(*one) for one in sizes],
        free_bytes=free_space(data_dir).available_bytes,
        keys=await _keys(stores),
        errors=_last_errors(Path(config.log_dir)),
        replicas=await _replicas(stores),
    )


async def _replicas(stores: Stores) -> list[ReplicaStatus]:
    states = await stores.replicas.states() if stores.replicas is not None else []
    return [ReplicaStatus(one.name, None if one.lag_s is None else round(one.lag_s, 3), one.problem) for one in states]


async def _failures(stores: Stores, limit_ns: int) -> dict[str, str]:
    """Return why each check fails, empty if it passes: the checks that /ext/health serves."""
    try:
        with closing(stores.node_reader()) as reader:
            results = await reported_results(NodeReader(reader), freshness(stores.data_dir, limit_ns), HEALTH)
    except StoreError as error:
        return {"database": str(error)}
    return {one.name: "" if one.passed else _error_of(one.answer) for one in results}


def _error_of(answer: msgspec.Raw) -> str:
    return str(msgspec.json.decode(answer, type=dict[str, Any]).get("error") or "it fails")


async def _chain(stores: Stores, chain_id: str, name: str) -> ChainState:
    reader = stores.chain_reader(chain_id)
    try:
        chain = ChainReader(reader)
        health = await chain_health(chain, time.time())
        text, tip = (await chain.meta("status"), await chain.tip()) if health.details else (None, None)
    except StoreError as error:
        return ChainState(chain_id, name, str(error))
    finally:
        reader.close()
    if text is None:
        return ChainState(chain_id, name, health.problem)
    stored, details, now = decode_status(text), health.details, time.time()
    block, head = details["lastIndexedBlock"], details["head"]
    return ChainState(
        chain_id,
        name,
        health.problem,
        synced=health.synced,
        block=block,
        block_at=tip.time if tip is not None else None,
        head=head,
        lag=None if head is None else max(0, head - (-1 if block is None else block)),
        blocks_per_second=round(stored.blocks_per_s, 1),
        upstreams={one.name: _why_not(one, stored, now) for one in stored.upstreams},
        last_problem=stored.last_problem,
        last_problem_at=int(stored.last_problem_at),
        warning=stored.warning,
        is_reporting=now - stored.at <= SILENT_S,
    )


async def _keys(stores: Stores) -> list[KeyState]:
    try:
        reader = stores.access_reader()
    except StoreError:
        return []
    try:
        today = int(time.time()) // DAY_S
        used = await UsageReader(reader).between(today, today)
        known = await AccessReader(reader).active_keys()
    except StoreError:  # of another release, which the next start migrates or refuses
        return []
    finally:
        reader.close()
    found = []
    for name, tier in [*known, ("", "")]:
        counts = total(row for row in used if row.key.caller == name)
        if name or counts.calls:
            found.append(KeyState(name, tier, counts.calls, counts.units))
    return found


def _last_errors(log_dir: Path) -> list[LoggedError]:
    """The newest lines of level ERROR or FATAL in the logs."""
    found = []
    for path in log_dir.glob("*.log"):
        try:
            with path.open("rb") as file:
                file.seek(max(0, path.stat().st_size - _LOG_TAIL))
                lines = file.read().splitlines()
        except OSError:
            continue
        for line in lines:
            if b'"ERROR"' not in line and b'"FATAL"' not in line:
                continue
            try:
                row = json.loads(line)
                reason = row.get("error") or row.get("why") or row.get("reason") or ""
                text = f"{row['message']}{': ' if reason else ''}{reason}"
                found.append(LoggedError(row["time"], row["level"], row["logger"], text))
            except (ValueError, KeyError, TypeError):
                continue
    return sorted(found, key=lambda one: one.time)[-_ERRORS_SHOWN:]


def screen(status: Status, now: float) -> str:
    """Write the status as a screen for a terminal."""
    lines = [f"Icefall {status.version}, data in {status.data_dir}, {status.free_bytes / 1e9:,.1f} GB free", ""]
    lines += [
        f"process {one.pid}: {', '.join(f'{name} {url}' for name, url in one.urls.items()) or f'icefall {one.verb}'}"
        for one in status.programs
    ] or ["no program runs on it"]
    if status.health:
        lines.append(f"health: {'failing: ' + ', '.join(status.failures) if status.failures else 'all checks pass'}")
        lines += [f"  {name}: {error}"[:_LINE_MAX] for name, error in status.failures.items()]
    for chain in status.chains:
        lines += ["", *_chain_lines(chain, now)]
    lines += ["", "stores:", *(f"  {one.path:<28} {one.bytes / 1e6:>12,.1f} MB" for one in status.stores)]
    if status.replicas:
        lines += ["", "replicas:", *(f"  {_replica_text(one)}"[:_LINE_MAX] for one in status.replicas)]
    if status.keys:
        lines += ["", "use today:"]
        lines += [f"  {one.name or '(without a key)':<28} {one.tier:<8} {one.calls:>10,} calls {one.units:>12,} units"
                  for one in status.keys]  # fmt: skip
    if status.errors:
        lines += ["", "last errors:"]
        lines += [f"  {one.time[:19]} {one.logger}: {one.message}"[:_LINE_MAX] for one in status.errors]
    return "\n".join(lines)


def _replica_text(replica: ReplicaStatus) -> str:
    lag = "lag not known" if replica.lag_seconds is None else f"at most {replica.lag_seconds:,.1f} s behind"
    return f"{replica.name}: {lag}{f', not read: {replica.problem}' if replica.problem else ''}"


def _chain_lines(chain: ChainState, now: float) -> list[str]:
    where = "no block yet" if chain.block is None else f"block {chain.block:,}"
    lag = "" if chain.lag is None else f", {chain.lag:,} behind the head"
    age = "" if chain.block_at is None else f", {duration_text(max(0.0, now - chain.block_at))} old"
    rate = f", {chain.blocks_per_second:,.1f} blocks/s" if chain.is_reporting else ""
    how = ", synced" if chain.synced else rate
    lines = [f"chain {chain.id}{f' ({chain.name})' if chain.name else ''}: {where}{age}{lag}{how}"]
    lines += [f"  problem: {chain.problem}"] if chain.problem else []
    lines += [f"  warning: {chain.warning}"] if chain.warning else []
    lines += [f"  upstream {name}: {problem or 'usable'}" for name, problem in chain.upstreams.items()]
    return lines


def _why_not(upstream: UpstreamStatus, chain: ChainStatus, now: float) -> str:
    """Return why the upstream cannot be used, empty if it can. What an indexer last knew of it is not true for ever."""
    if now - chain.at > SILENT_S:
        return "not known: no indexer asks it"
    if upstream.state == "usable":
        silent_s = int(now - chain.upstream_seen_at)
        return f"no answer for {silent_s:,} s" if chain.upstream_seen_at and silent_s > SILENT_S else ""
    return f"{upstream.state}: {upstream.problem}" if upstream.problem else upstream.state
