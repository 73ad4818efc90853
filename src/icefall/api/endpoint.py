"""What a row of the endpoint table is. Routing, validation, metering, OpenAPI, docs and tests all read rows."""

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from icefall.api.bind import NoParams

NODE, DATA, METRICS = "node", "data", "metrics"
LISTENERS = (NODE, DATA, METRICS)

Handler = Callable[..., Awaitable[Any]]


class Rpc(msgspec.Struct, frozen=True, kw_only=True):
    """A JSON-RPC method at POST `path`. `needs` names the setting without which the path does not exist."""

    path: str
    method: str
    handler: Handler
    says: str
    params: type[msgspec.Struct] = NoParams
    result: Any  # a struct, or a union of them where the dialects differ
    needs: str = ""
    deprecated: str = ""
    listener: str = NODE

    @property
    def label(self) -> str:
        return self.method


class Rest(msgspec.Struct, frozen=True, kw_only=True):
    """A plain HTTP endpoint. `status` gives the HTTP status of a result; `media` its type when it is not JSON."""

    verb: str  # GET, or * where the existing node takes any
    path: str
    handler: Handler
    says: str
    params: type[msgspec.Struct] = NoParams
    result: Any
    status: Callable[[Any], int] = lambda _: 200
    media: str = "application/json"
    needs: str = ""
    listeners: tuple[str, ...] = (NODE,)

    @property
    def label(self) -> str:
        return f"{self.verb if self.verb != '*' else 'GET'} {self.path}"
