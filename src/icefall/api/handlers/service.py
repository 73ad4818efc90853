"""How the chain data service itself is: for load balancers and clients that ask before they start."""

from icefall.access.store import AccessReader
from icefall.api.bind import NoParams
from icefall.api.schema.service import Indicator, ServiceHealth

_UP = {"store": Indicator(status="up")}
_OK = ServiceHealth(status="ok", info=_UP, error={}, details=_UP)


async def health_check(_: NoParams, access: AccessReader) -> ServiceHealth:
    await access.check()  # raises what becomes a 503, in the shape of every other failure
    return _OK
