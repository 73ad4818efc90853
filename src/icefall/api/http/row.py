"""A row of the endpoint table. Routing, validation, counters, OpenAPI, docs and tests all read rows."""

from collections.abc import Awaitable, Callable, Mapping
from enum import IntEnum
from functools import cache
from typing import Any, NamedTuple
from urllib.parse import quote

import msgspec

from icefall.api.http.rest_params import RestBinder
from icefall.api.http.rpc_params import NodeBinder
from icefall.api.http.structs import NoParams

NODE, DATA, METRICS = "node", "data", "metrics"
LISTENERS = (NODE, DATA, METRICS)

Handler = Callable[..., Awaitable[Any]]


class Weight(IntEnum):
    """The cost of a call to the chain data interface, in compute units."""

    FREE = 1
    SMALL = 10
    MEDIUM = 20
    LARGE = 50
    XL = 100
    XXL = 200


class MetricsWeight(IntEnum):
    """The cost of a call to the metrics interface, in compute units."""

    FREE = 1
    SMALL = 20
    MEDIUM = 100
    LARGE = 500
    XL = 1000
    XXL = 3000


def never(_: Any) -> bool:
    return False


def always(_: Any) -> bool:
    return True


class Rpc(msgspec.Struct, frozen=True, kw_only=True):
    """A JSON-RPC method at POST `path`. `needs` names the setting without which the path does not exist."""

    path: str
    method: str
    handler: Handler
    summary: str
    params: type[msgspec.Struct] = NoParams
    result: Any  # a struct, or a union of them where the dialects differ
    needs: str = ""
    deprecated: str = ""
    listener: str = NODE
    live_ignores: tuple[str, ...] = ()  # parameters that the existing node takes and does not look at
    repeatable: Callable[[Any], bool] = never  # whether a result depends on the store and the second alone

    @property
    def label(self) -> str:
        return self.method


def always_200(_: Any) -> int:
    return 200


def always_201(_: Any) -> int:
    return 201


class Rest(msgspec.Struct, frozen=True, kw_only=True):
    """A plain HTTP endpoint. `status` gives the HTTP status of a result; `media` its type when it is not JSON.

    A path may hold parameters, each a whole segment: `/v1/chains/{chainId}/blocks`. They are fields of `params` like
    those of the query."""

    verb: str  # GET, POST, PATCH, DELETE, or * where the existing node accepts any
    path: str
    handler: Handler
    summary: str
    params: type[msgspec.Struct] = NoParams
    body: type[msgspec.Struct] | None = None  # of the JSON that is sent; the handler takes it after its parameters
    result: Any
    status: Callable[[Any], int] = always_200
    media: str = "application/json"
    needs: str = ""
    listeners: tuple[str, ...] = (NODE,)
    weight: int = Weight.FREE  # units of the caller's budget, where rate limits are on
    keyless: bool = False  # served without a key even where keys are required
    never_limited: bool = False  # answered when the budget is spent too: monitoring must go on
    protected: bool = False  # it changes something: with a key, or for a caller on this machine
    success: int = 200  # status of a good answer, where `status` does not depend on it
    headers: tuple[tuple[str, str], ...] = ()  # of a good answer
    is_file: bool = False  # a part of a page, not an endpoint to describe
    cacheable: bool = False  # they depend on the store and state of the chain that the path begins with alone
    is_stream: bool = False  # goes on until the client leaves; takes Last-Event-ID
    body_example: Mapping[str, Any] = {}
    examples: Mapping[str, str] = {}  # of parameters, where that of their type does not fit
    operation: str = ""  # the name existing clients know it by
    deprecated: str = ""
    ours: bool = False  # not in the hosted service

    @property
    def label(self) -> str:
        return f"{self.verb if self.verb != '*' else 'GET'} {self.path}"


class Charged(NamedTuple):
    """The result of a handler that cost more than its row's weight says: `units` are charged after the fact."""

    result: Any
    units: int


class File(NamedTuple):
    """The result of a handler whose answers are of several types."""

    media: str
    body: bytes


def binder_of(row: Rest | Rpc) -> NodeBinder | RestBinder:
    """The binder of a row. The node interfaces ignore invalid query parameters; the other interfaces refuse them."""
    if isinstance(row, Rpc) or NODE in row.listeners:
        return _node_binder(row.params)
    return _rest_binder(row.params, row.path)


_node_binder, _rest_binder = cache(NodeBinder), cache(RestBinder)  # routes and their description use the same


def example_path(row: Rest) -> str:
    """A path with an example value for every parameter that it needs."""
    path, binder = row.path, binder_of(row)
    query = []
    for param in binder.all if isinstance(binder, RestBinder) else ():
        example = row.examples.get(param.name, param.type.example)
        if param.in_path:
            path = path.replace(f"{{{param.name}}}", example)
        elif param.required or param.name in row.examples:
            query.append(f"{param.name}={quote(example)}")
    return path + ("?" + "&".join(query) if query else "")
