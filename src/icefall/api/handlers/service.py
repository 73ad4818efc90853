"""Health of the chain data service, for load balancers and clients."""

import time

from msgspec import UNSET

from icefall.access.store import AccessReader
from icefall.api.schema.service import HealthCheckParams, Indicator, ServiceHealth, StrictFailure
from icefall.evm.following.health import chain_health
from icefall.evm.reading.directory import ChainDirectory


async def health_check(params: HealthCheckParams, access: AccessReader, chains: ChainDirectory) -> ServiceHealth:
    """200 whenever the store can be read: stored data is served even while a chain is not followed. With `strict`
    then 503."""
    await access.check()  # raises an error that becomes a 503
    details = {"store": Indicator(status="up")}
    for chain in chains.all():
        problem = (await chain_health(chain.chain, time.time())).problem
        details[f"chain-{chain.info.id}"] = Indicator("down" if problem else "up", problem or UNSET)
    up = {name: one for name, one in details.items() if one.status == "up"}
    down = {name: one for name, one in details.items() if one.status == "down"}
    shape = StrictFailure if down and params.strict else ServiceHealth
    return shape(status="error" if down else "ok", info=up, error=down, details=details)


def verdict(health: ServiceHealth) -> int:
    return 503 if isinstance(health, StrictFailure) else 200
