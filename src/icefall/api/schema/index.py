"""The index of accepted containers: parameters and results."""

from icefall.api.params.node_kinds import NO_ID, Encoding, Id, Uint64
from icefall.api.schema.names import Params, Result


class ContainerByIdParams(Params, frozen=True):
    id: Id = NO_ID
    encoding: Encoding = "hex"


class ContainerByIndexParams(Params, frozen=True):
    index: Uint64 = 0
    encoding: Encoding = "hex"


class ContainerRangeParams(Params, frozen=True):
    start_index: Uint64 = 0
    num_to_fetch: Uint64 = 0
    encoding: Encoding = "hex"


class ContainerIdParams(Params, frozen=True):
    """`encoding` is accepted and ignored."""

    id: Id = NO_ID


class EncodingParams(Params, frozen=True):
    encoding: Encoding = "hex"


class IndexContainer(Result, frozen=True):
    id: str
    bytes: str
    timestamp: str
    encoding: str
    index: str


class Containers(Result, frozen=True):
    containers: list[IndexContainer]


class IndexNumber(Result, frozen=True):
    index: str


class IsAccepted(Result, frozen=True):
    is_accepted: bool
