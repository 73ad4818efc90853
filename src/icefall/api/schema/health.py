"""Health: parameters and results."""

from typing import Annotated

import msgspec

from icefall.api.params.node_kinds import Strings
from icefall.api.schema.names import Params, Result


class TagsParams(Params, frozen=True):
    tags: Strings = []


class TagQuery(msgspec.Struct, frozen=True):
    tag: Strings = []


# A check response is stored as it is sent, so this only describes it.
_TIME = {"type": "string", "format": "date-time"}
_CHECK = {
    "type": "object",
    "required": ["timestamp", "duration"],
    "properties": {
        "message": {"description": "additional context"},
        "error": {"description": "why the check failed"},
        "timestamp": _TIME | {"description": "time of the last run"},
        "duration": {"type": "integer", "description": "nanoseconds the last run took"},
        "contiguousFailures": {"type": "integer"},
        "timeOfFirstFailure": _TIME,
    },
}


class HealthReport(Result, frozen=True):
    checks: dict[str, Annotated[msgspec.Raw, msgspec.Meta(extra_json_schema=_CHECK)]]
    healthy: bool
