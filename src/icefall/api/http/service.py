"""The endpoints about the service itself: its health check, and the counters of a program in Prometheus' format."""

import time
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec
from msgspec import UNSET, UnsetType

from icefall.access.store import AccessReader
from icefall.api.http.rest_params import Switch
from icefall.api.http.structs import NoParams, RestParams, RestResult
from icefall.evm.health import ChainHealth, chain_health
from icefall.evm.reading.directory import ChainDirectory
from icefall.node.health.runner import HEALTH, Freshness, reported_results
from icefall.node.store import NodeReader, StoredResult
from icefall.observe.counters import FIELDS, totals
from icefall.observe.program import Processes, ProcessReader, ProgramProcess
from icefall.webhooks.messages import DeliveryState


class Indicator(RestResult, frozen=True):
    status: Literal["up", "down"]
    message: str | UnsetType = UNSET  # why it is down


class HealthCheckParams(RestParams, frozen=True):
    strict: Switch = False


class ServiceHealth(RestResult, frozen=True):
    status: Literal["ok", "error", "shutting_down"]
    info: dict[str, Indicator]
    error: dict[str, Indicator]
    details: dict[str, Indicator]


class StrictFailure(ServiceHealth, frozen=True):
    """Something is down, and the caller wants the status code to say so."""


async def health_check(params: HealthCheckParams, access: AccessReader, chains: ChainDirectory) -> ServiceHealth:
    """Check stores and chains. It is 200 whenever the store can be read, since stored data is served even while a chain
    is not followed; 503 if `strict` is given and something is down, other than a replica: another server answers in
    its place."""
    await access.check()  # raises an error that becomes a 503
    details = {"store": Indicator(status="up")}
    for chain in chains.all():
        problem = (await chain_health(chain.blocks, time.time())).problem
        details[f"chain-{chain.info.id}"] = Indicator("down" if problem else "up", problem or UNSET)
    problems = [name for name, one in details.items() if one.status == "down"]
    for number, replica in enumerate(await chains.replicas.states() if chains.replicas is not None else (), 1):
        details[f"replica-{number}"] = Indicator("down" if replica.problem else "up", replica.problem or UNSET)
    up = {name: one for name, one in details.items() if one.status == "up"}
    down = {name: one for name, one in details.items() if one.status == "down"}
    shape = StrictFailure if problems and params.strict else ServiceHealth
    return shape(status="error" if down else "ok", info=up, error=down, details=details)


async def live_check(_: NoParams) -> ServiceHealth:
    """Answer as long as the process runs."""
    up = {"process": Indicator(status="up")}
    return ServiceHealth(status="ok", info=up, error={}, details=up)


def verdict(health: ServiceHealth) -> int:
    return 503 if isinstance(health, StrictFailure) else 200


COUNTER, GAUGE = "counter", "gauge"


class CounterSource(msgspec.Struct, frozen=True):
    """The sources of a listener's metrics. `directory` holds its counters. `data_dir` and `node` are given only where
    it reports the whole program, `node` and `fresh` only where there is one."""

    directory: Path
    labels: list[str]
    version: str
    listener: str
    processes: ProcessReader
    data_dir: Path | None = None
    node: NodeReader | None = None
    fresh: Freshness | None = None
    webhooks: Callable[[], Awaitable[DeliveryState | None]] | None = None


class CounterFamily(NamedTuple):
    name: str
    type: str
    label: str
    summary: str


_CALLS = {
    "calls": (CounterFamily("icefall_api_calls_total", COUNTER, "endpoint", "Calls answered"), 1.0),
    "failures": (CounterFamily("icefall_api_failures_total", COUNTER, "endpoint", "Calls answered with an error"), 1.0),
    "duration_ns": (
        CounterFamily("icefall_api_duration_seconds_total", COUNTER, "endpoint", "Time spent answering"),
        1e-9,
    ),
    "cached": (
        CounterFamily("icefall_api_cached_total", COUNTER, "endpoint", "Calls answered from the answer cache"),
        1.0,
    ),
    "in_flight": (CounterFamily("icefall_api_in_flight", GAUGE, "endpoint", "Calls being answered now"), 1.0),
}
_PROCESS = {
    "cpu_seconds": CounterFamily("icefall_process_cpu_seconds_total", COUNTER, "process", "CPU time used"),
    "resident_bytes": CounterFamily("icefall_process_resident_memory_bytes", GAUGE, "process", "Memory held"),
    "open_files": CounterFamily("icefall_process_open_fds", GAUGE, "process", "Open files"),
    "started_unix": CounterFamily("icefall_process_start_time_seconds", GAUGE, "process", "When it started"),
}
_CHECK = CounterFamily("icefall_health_check_passing", GAUGE, "check", "1 when the check passed last")
_NODE_CHAIN = {
    "height": CounterFamily("icefall_node_chain_height", GAUGE, "chain", "The newest block of X, P or C"),
    "lag": CounterFamily("icefall_node_chain_lag", GAUGE, "chain", "Blocks that the upstream has and we have not"),
    "rate": CounterFamily("icefall_node_chain_blocks_per_second", GAUGE, "chain", "Blocks per second meanwhile"),
}
_SYNCED = CounterFamily("icefall_chain_synced", GAUGE, "chain", "1 when everything up to the head is stored")
_HEALTHY = CounterFamily("icefall_chain_healthy", GAUGE, "chain", "1 when the chain is followed without a problem")
_CHAIN_GAUGES = {
    "lastIndexedBlock": CounterFamily("icefall_chain_block", GAUGE, "chain", "The newest stored block"),
    "head": CounterFamily("icefall_chain_head", GAUGE, "chain", "The newest block of the upstream"),
    "secondsSinceProgress": CounterFamily(
        "icefall_chain_progress_age_seconds", GAUGE, "chain", "Time since a block was stored, or all were"
    ),
    "auditedTo": CounterFamily("icefall_chain_audited_block", GAUGE, "chain", "The newest audited block"),
}
_CHAIN_COUNTS = {
    field: CounterFamily(f"icefall_chain_{field}_total", COUNTER, "chain", summary)
    for field, summary in {
        "blocks": "Blocks stored",
        "txs": "Transactions stored",
        "transfers": "Token transfers stored",
        "skipped_logs": "Token events of a wrong shape, skipped",
        "audits_dropped": "Comparisons of tokens with their contracts that were due and exceeded the budget",
        "words_dropped": "Changed words of the storage of tokens that did not fit into the store",
        "reorgs": "Reorganisations followed",
        "reorged_blocks": "Blocks dropped by reorganisations",
        "fetched_bytes": "Bytes fetched of blocks",
    }.items()
}
_REPLICA_LAG = CounterFamily("icefall_replica_lag_seconds", GAUGE, "replica", "Age that rows of a replica may have")
_REPLICA_USED = CounterFamily("icefall_replica_usable", GAUGE, "replica", "1 when chains are read from the replica")
_WEBHOOK_ATTEMPTS = CounterFamily("icefall_webhook_attempts_total", COUNTER, "outcome", "Attempts to send a message")
_WEBHOOK_MESSAGES = CounterFamily("icefall_webhook_messages_total", COUNTER, "outcome", "Messages that have ended")
_WEBHOOK_QUEUE = CounterFamily("icefall_webhook_queue", GAUGE, "state", "Messages that wait, and events not read yet")
_WEBHOOK_OLDEST = CounterFamily("icefall_webhook_oldest_seconds", GAUGE, "state", "Age of the oldest that waits")
_WEBHOOKS = CounterFamily("icefall_webhooks", GAUGE, "status", "Webhooks by status")
_STORE = CounterFamily("icefall_store_size_bytes", GAUGE, "store", "Size of a store with its -wal file")
_BUILD = CounterFamily("icefall_build_info", GAUGE, "version", "Version of this program")
METRICS = (
    *(metric for metric, _ in _CALLS.values()),
    *_PROCESS.values(),
    *_NODE_CHAIN.values(),
    *(_CHECK, _SYNCED, _HEALTHY, *_CHAIN_GAUGES.values(), *_CHAIN_COUNTS.values()),
    *(_REPLICA_LAG, _REPLICA_USED),
    *(_WEBHOOK_ATTEMPTS, _WEBHOOK_MESSAGES, _WEBHOOK_QUEUE, _WEBHOOK_OLDEST, _WEBHOOKS),
    *(_STORE, _BUILD),
)


async def prometheus(_: NoParams, source: CounterSource, chains: ChainDirectory) -> str:
    lines: list[str] = []
    counts = totals(source.directory, len(source.labels))
    for index, field in enumerate(FIELDS):
        metric, scale = _CALLS[field]
        lines += _family(
            metric, [(label, row[index] * scale) for label, row in zip(source.labels, counts, strict=True)]
        )
    if source.data_dir is not None:
        lines += await _program_lines(source, source.data_dir, chains)
    stats = _reported(source, await source.processes.read())
    for field, metric in _PROCESS.items():
        lines += _process_family(metric, [(one, getattr(known, field)) for one, known in stats])
    return "\n".join(lines) + "\n"


async def _program_lines(source: CounterSource, data_dir: Path, chains: ChainDirectory) -> list[str]:
    lines = []
    if source.node is not None and source.fresh is not None:
        results = await reported_results(source.node, source.fresh, HEALTH)
        lines += _family(_CHECK, [(result.name, float(result.passed)) for result in results])
        lines += _node_chain_lines(results)
    lines += await _chain_lines(chains)
    if chains.replicas is not None:
        states = await chains.replicas.states()
        lines += _family(_REPLICA_LAG, [(one.name, one.lag_s) for one in states if one.lag_s is not None])
        lines += _family(_REPLICA_USED, [(one.name, float(not one.problem)) for one in states])
    delivery = await source.webhooks() if source.webhooks is not None else None
    if delivery is not None:
        lines += _webhook_lines(delivery, time.time())
    lines += _family(_STORE, _sizes(data_dir))
    return lines + _family(_BUILD, [(source.version, 1.0)])


def _webhook_lines(state: DeliveryState, now: float) -> list[str]:
    """The metrics of delivery, which no process keeps in memory: the same after a restart."""
    count = state.counters.get
    lines = _family(_WEBHOOK_ATTEMPTS, [(one, float(count(f"attempts_{one}", 0))) for one in ("taken", "failed")])
    lines += _family(_WEBHOOK_MESSAGES, [(one, float(count(f"messages_{one}", 0))) for one in ("delivered", "failed")])
    waiting = [("pending", float(state.pending)), ("not_taken_over", float(sum(state.behind.values())))]
    lines += _family(_WEBHOOK_QUEUE, waiting)
    age_s = 0.0 if state.oldest is None else max(0.0, now - state.oldest)
    lines += _family(_WEBHOOK_OLDEST, [("pending", age_s)])
    inactive = state.webhooks - state.active
    return lines + _family(_WEBHOOKS, [("active", float(state.active)), ("inactive", float(inactive))])


class _Consensus(msgspec.Struct, frozen=True, rename="camel"):
    last_accepted_height: int | None = None


class _ChainEngine(msgspec.Struct, frozen=True):
    consensus: _Consensus = _Consensus()


class _Following(msgspec.Struct, frozen=True, rename="camel"):
    containers: int | None = None
    of: int | None = None
    executed: int | None = None
    per_second: float | None = None
    executed_per_second: float | None = None


class _ChainMessage(msgspec.Struct, frozen=True):
    engine: _ChainEngine
    following: _Following = _Following()


class _ChainAnswer(msgspec.Struct):
    message: _ChainMessage


def _node_chain_lines(results: Iterable[StoredResult]) -> list[str]:
    """The heights of X, P and C, from what their health checks say."""
    found: dict[str, list[tuple[str, float]]] = {field: [] for field in _NODE_CHAIN}
    for result in results:
        if result.name.startswith("chain-"):  # an indexed EVM chain has metrics of its own
            continue
        try:
            message = msgspec.json.decode(result.answer, type=_ChainAnswer).message
        except msgspec.ValidationError:
            continue  # the check of something else
        followed = message.following
        height = followed.executed if followed.executed is not None else followed.containers
        height = height if height is not None else message.engine.consensus.last_accepted_height
        rate = followed.executed_per_second if followed.executed is not None else followed.per_second
        lag = max(0, followed.of - height) if followed.of is not None and height is not None else None
        for field, value in (("height", height), ("lag", lag), ("rate", rate)):
            if value is not None:
                found[field].append((result.name, float(value)))
    return [line for field, values in found.items() if values for line in _family(_NODE_CHAIN[field], values)]


def _sizes(data_dir: Path) -> list[tuple[str, float]]:
    found = []
    for path in sorted((*data_dir.glob("*.sqlite"), *(data_dir / "chains").glob("*.sqlite"))):
        files = [one for one in (path, Path(f"{path}-wal")) if one.exists()]
        found.append((path.stem, float(sum(one.stat().st_size for one in files))))
    return found


def _reported(source: CounterSource, processes: Processes) -> Processes:
    """The processes that a listener reports: its own, and those of no listener if it reports the whole program."""
    others = {"node", "data", "metrics"} - {source.listener}
    whole = source.data_dir is not None
    return [
        (one, stats) for one, stats in processes if one.role == source.listener or (whole and one.role not in others)
    ]


async def _chain_lines(chains: ChainDirectory) -> list[str]:
    """The metrics of all chains, from the status that indexers store: the same after a restart."""
    found = [(chain.info.id, await chain_health(chain.blocks, time.time())) for chain in chains.all()]
    if not found:
        return []
    lines = _family(_SYNCED, [(chain, float(health.synced)) for chain, health in found])
    lines += _family(_HEALTHY, [(chain, float(not health.problem)) for chain, health in found])
    for field, metric in _CHAIN_GAUGES.items():
        lines += _family(metric, [(chain, value) for chain, health in found if (value := _detail(health, field)) >= 0])
    for field, metric in _CHAIN_COUNTS.items():
        lines += _family(metric, [(chain, float(health.counts.get(field, 0))) for chain, health in found])
    return lines


def _detail(health: ChainHealth, field: str) -> float:
    """The value of a gauge; -1 while it is unknown, and then there is no sample."""
    value = health.details.get(field)
    return -1.0 if value is None else float(value)


def _family(metric: CounterFamily, values: Iterable[tuple[str, float]]) -> list[str]:
    """A metric and its values, each by the value of its label."""
    return _head(metric) + [f'{metric.name}{{{metric.label}="{one}"}} {_number(value)}' for one, value in values]


def _process_family(metric: CounterFamily, values: Iterable[tuple[ProgramProcess, float]]) -> list[str]:
    """A metric of processes, by role and process ID: several workers have one role."""
    samples = [f'{metric.name}{{process="{one.role}",pid="{one.pid}"}} {_number(value)}' for one, value in values]
    return _head(metric) + samples


def _head(metric: CounterFamily) -> list[str]:
    return [f"# HELP {metric.name} {metric.summary}.", f"# TYPE {metric.name} {metric.type}"]


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else f"{value:.9g}"
