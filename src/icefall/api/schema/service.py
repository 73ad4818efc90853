"""Health of the chain data service, in the shape its clients check."""

from typing import Literal

from msgspec import UNSET, UnsetType

from icefall.api.schema.names import RestResult


class Indicator(RestResult, frozen=True):
    status: Literal["up", "down"]
    message: str | UnsetType = UNSET  # why it is down


class ServiceHealth(RestResult, frozen=True):
    status: Literal["ok", "error", "shutting_down"]
    info: dict[str, Indicator]
    error: dict[str, Indicator]
    details: dict[str, Indicator]
