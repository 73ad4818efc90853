"""Handlers of the health interface: stored results, filtered by tag. A request never runs a check."""

from collections.abc import Sequence

from icefall.api.http.structs import NoParams
from icefall.api.node.schema.node import HealthReport, TagQuery, TagsParams
from icefall.node.health.runner import HEALTH, READINESS, UNFILTERED, Freshness, reported_results
from icefall.node.store import NodeReader

ALL = "all"
_ALIVE = HealthReport({}, True)


async def _report(node: NodeReader, fresh: Freshness, report: str, tags: Sequence[str]) -> HealthReport:
    """Make a report of every check, or with tags of those that carry one, and of the global ones."""
    results = await reported_results(node, fresh, report)
    if tags and ALL not in tags:
        wanted = set(tags).difference(UNFILTERED)
        results = [result for result in results if not result.tags or not wanted.isdisjoint(result.tags)]
    checks = {result.name: result.answer for result in results}
    return HealthReport(checks, all(result.passed for result in results))


async def health(params: TagsParams, node: NodeReader, fresh: Freshness) -> HealthReport:
    return await _report(node, fresh, HEALTH, params.tags)


async def readiness(params: TagsParams, node: NodeReader, fresh: Freshness) -> HealthReport:
    return await _report(node, fresh, READINESS, params.tags)


async def liveness(_: TagsParams) -> HealthReport:
    return _ALIVE


async def get_health(params: TagQuery, node: NodeReader, fresh: Freshness) -> HealthReport:
    return await _report(node, fresh, HEALTH, params.tag)


async def get_readiness(params: TagQuery, node: NodeReader, fresh: Freshness) -> HealthReport:
    return await _report(node, fresh, READINESS, params.tag)


async def get_liveness(_: NoParams) -> HealthReport:
    return _ALIVE


def verdict(report: HealthReport) -> int:
    return 200 if report.healthy else 503
