"""Counters of calls, health checks, chains and processes in Prometheus' text format."""

import time
from collections.abc import Iterable
from pathlib import Path

import msgspec

from icefall.api.params.node_binder import NoParams
from icefall.evm.following.health import ChainHealth, chain_health
from icefall.evm.reading.directory import ChainDirectory
from icefall.node.health.runner import HEALTH
from icefall.node.store import NodeReader
from icefall.observe.counters import FIELDS, process_stats, processes, totals


class CounterSource(msgspec.Struct, frozen=True):
    directory: Path
    labels: list[str]
    version: str
    node: NodeReader | None = None  # only where there is a node


_CALLS = {
    "calls": ("icefall_api_calls_total", "counter", "Calls answered", 1.0),
    "failures": ("icefall_api_failures_total", "counter", "Calls answered with an error", 1.0),
    "duration_ns": ("icefall_api_duration_seconds_total", "counter", "Time spent answering", 1e-9),
    "in_flight": ("icefall_api_in_flight", "gauge", "Calls being answered now", 1.0),
}
_PROCESS = {
    "cpu_seconds": ("icefall_process_cpu_seconds_total", "counter", "CPU time used"),
    "resident_bytes": ("icefall_process_resident_memory_bytes", "gauge", "Memory held"),
    "open_files": ("icefall_process_open_fds", "gauge", "Open files"),
    "started_unix": ("icefall_process_start_time_seconds", "gauge", "When it started"),
}
_CHAIN = {
    "blocks": "Blocks stored",
    "txs": "Transactions stored",
    "transfers": "Token transfers stored",
    "skipped_logs": "Token events of a wrong shape, skipped",
    "reorgs": "Reorganisations followed",
    "reorged_blocks": "Blocks dropped by reorganisations",
    "fetched_bytes": "Bytes fetched of blocks",
}


async def prometheus(_: NoParams, source: CounterSource, chains: ChainDirectory) -> str:
    lines: list[str] = []
    counts = totals(source.directory, len(source.labels))
    for index, field in enumerate(FIELDS):
        name, kind, summary, scale = _CALLS[field]
        values = [(label, row[index] * scale) for label, row in zip(source.labels, counts, strict=True)]
        lines += _family(name, kind, summary, "endpoint", values)
    if source.node is not None:
        checks = [(result.name, result.passed) for result in await source.node.health_results(HEALTH)]
        lines += _family("icefall_health_check_passing", "gauge", "1 when the check passed last", "check", checks)
    lines += await _chain_lines(chains)
    stats = [(str(pid), known) for pid in processes(source.directory) if (known := process_stats(pid))]
    for field, (name, kind, summary) in _PROCESS.items():
        lines += _family(name, kind, summary, "pid", [(pid, getattr(known, field)) for pid, known in stats])
    lines += _family("icefall_build_info", "gauge", "Version of this program", "version", [(source.version, 1)])
    return "\n".join(lines) + "\n"


async def _chain_lines(chains: ChainDirectory) -> list[str]:
    """From the status that indexers store: the same on every listener, and after a restart."""
    found = [(chain.info.id, await chain_health(chain.chain, time.time())) for chain in chains.all()]
    if not found:
        return []

    def gauge(name: str, summary: str, field: str) -> list[str]:
        values = [(chain, _detail(health, field)) for chain, health in found]
        return _family(name, "gauge", summary, "chain", values)

    synced = [(chain, health.synced) for chain, health in found]
    lines = _family("icefall_chain_synced", "gauge", "1 when everything up to the head is stored", "chain", synced)
    lines += gauge("icefall_chain_block", "The newest stored block", "lastIndexedBlock")
    lines += gauge("icefall_chain_head", "The newest block of the upstream", "head")
    for field, summary in _CHAIN.items():
        counts = [(chain, health.counts.get(field, 0)) for chain, health in found]
        lines += _family(f"icefall_chain_{field}_total", "counter", summary, "chain", counts)
    return lines


def _detail(health: ChainHealth, field: str) -> int:
    value = health.details.get(field)
    return -1 if value is None else int(value)


def _family(name: str, kind: str, summary: str, label: str, values: Iterable[tuple[str, float]]) -> list[str]:
    """A metric and its values, each by the value of its one label."""
    head = [f"# HELP {name} {summary}.", f"# TYPE {name} {kind}"]
    return head + [f'{name}{{{label}="{one}"}} {_number(value)}' for one, value in values]


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else f"{value:.9g}"
