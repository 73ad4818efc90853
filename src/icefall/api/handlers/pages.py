"""What every listener says about itself: OpenAPI, a page to read, figures to scrape."""

import time
from pathlib import Path

import msgspec

from icefall.api.params.node_binder import NoParams
from icefall.evm.following.health import ChainHealth, chain_health
from icefall.evm.reading.directory import ChainDirectory
from icefall.node.health.runner import HEALTH
from icefall.node.store import NodeReader
from icefall.observe.counters import FIELDS, process_stats, processes, totals


class Pages(msgspec.Struct, frozen=True):
    """Made once when the worker starts."""

    openapi: bytes
    html: str


class CounterSource(msgspec.Struct, frozen=True):
    directory: Path
    labels: list[str]
    version: str
    node: NodeReader | None = None  # only where there is a node


async def openapi(_: NoParams, pages: Pages) -> bytes:
    return pages.openapi


async def docs(_: NoParams, pages: Pages) -> str:
    return pages.html


_FAMILIES = {
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


async def _chain_figures(chains: ChainDirectory) -> list[str]:
    """What the indexers have stored of themselves: the same on every listener, and after a restart."""
    found = [(one.info.id, await chain_health(one.chain, time.time())) for one in chains.all()]
    lines = []
    if found:
        lines += _head("icefall_chain_synced", "gauge", "1 when everything up to the head is stored")
        lines += [f'icefall_chain_synced{{chain="{name}"}} {int(one.synced)}' for name, one in found]
        lines += _head("icefall_chain_block", "gauge", "The newest stored block")
        lines += [f'icefall_chain_block{{chain="{name}"}} {_told(one, "lastIndexedBlock")}' for name, one in found]
        lines += _head("icefall_chain_head", "gauge", "The newest block of the upstream")
        lines += [f'icefall_chain_head{{chain="{name}"}} {_told(one, "head")}' for name, one in found]
    for field, says in _CHAIN.items() if found else ():
        name = f"icefall_chain_{field}_total"
        lines += _head(name, "counter", says)
        lines += [f'{name}{{chain="{chain}"}} {one.counts.get(field, 0)}' for chain, one in found]
    return lines


def _told(one: ChainHealth, what: str) -> int:
    known = one.details.get(what)
    return -1 if known is None else int(known)


async def prometheus(_: NoParams, source: CounterSource, chains: ChainDirectory) -> str:
    lines: list[str] = []
    figures = totals(source.directory, len(source.labels))
    for place, field in enumerate(FIELDS):
        name, kind, says, scale = _FAMILIES[field]
        lines += _head(name, kind, says)
        lines += [
            f'{name}{{endpoint="{label}"}} {_number(row[place] * scale)}'
            for label, row in zip(source.labels, figures, strict=True)
        ]
    if source.node is not None:
        lines += _head("icefall_health_check_passing", "gauge", "1 when the check passed last")
        for result in await source.node.health_results(HEALTH):
            lines.append(f'icefall_health_check_passing{{check="{result.name}"}} {int(result.passed)}')
    lines += await _chain_figures(chains)
    living = [(pid, known) for pid in processes(source.directory) if (known := process_stats(pid))]
    for field, (name, kind, says) in _PROCESS.items():
        lines += _head(name, kind, says)
        lines += [f'{name}{{pid="{pid}"}} {_number(getattr(known, field))}' for pid, known in living]
    lines += [
        *_head("icefall_build_info", "gauge", "Version of this program"),
        f'icefall_build_info{{version="{source.version}"}} 1',
    ]
    return "\n".join(lines) + "\n"


def _head(name: str, kind: str, says: str) -> list[str]:
    return [f"# HELP {name} {says}.", f"# TYPE {name} {kind}"]


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else f"{value:.9g}"
