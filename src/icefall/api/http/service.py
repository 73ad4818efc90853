"""The health check of the chain data and metrics interfaces: its parameters, its result in the shape that clients
check, and its handler.
"""

import time
from typing import Literal

from msgspec import UNSET, UnsetType

from icefall.access.store import AccessReader
from icefall.api.http.rest_params import Switch
from icefall.api.http.structs import RestParams, RestResult
from icefall.evm.health import chain_health
from icefall.evm.reading.directory import ChainDirectory


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
    is not followed; 503 if `strict` is given and something is down."""
    await access.check()  # raises an error that becomes a 503
    details = {"store": Indicator(status="up")}
    for chain in chains.all():
        problem = (await chain_health(chain.blocks, time.time())).problem
        details[f"chain-{chain.info.id}"] = Indicator("down" if problem else "up", problem or UNSET)
    up = {name: one for name, one in details.items() if one.status == "up"}
    down = {name: one for name, one in details.items() if one.status == "down"}
    shape = StrictFailure if down and params.strict else ServiceHealth
    return shape(status="error" if down else "ok", info=up, error=down, details=details)


def verdict(health: ServiceHealth) -> int:
    return 503 if isinstance(health, StrictFailure) else 200
