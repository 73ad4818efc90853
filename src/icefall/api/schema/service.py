"""The chain data service's own health, in the shape its clients check."""

from typing import Literal

from icefall.api.schema.names import RestTold


class Indicator(RestTold, frozen=True):
    status: Literal["up", "down"]


class ServiceHealth(RestTold, frozen=True):
    status: Literal["ok", "error", "shutting_down"]
    info: dict[str, Indicator]
    error: dict[str, Indicator]
    details: dict[str, Indicator]
