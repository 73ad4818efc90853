"""Health of the chain data service, in the shape its clients check."""

from typing import Literal

from msgspec import UNSET, UnsetType

from icefall.api.params.rest_kinds import Switch
from icefall.api.schema.names import RestParams, RestResult


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
