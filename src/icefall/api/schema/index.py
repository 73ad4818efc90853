"""The index of accepted containers: parameters and results."""

from icefall.api.kinds import NO_ID, Encoding, Id, Uint64
from icefall.api.schema.names import Ask, Told


class ByIdAsk(Ask, frozen=True):
    id: Id = NO_ID
    encoding: Encoding = "hex"


class ByIndexAsk(Ask, frozen=True):
    index: Uint64 = 0
    encoding: Encoding = "hex"


class RangeAsk(Ask, frozen=True):
    start_index: Uint64 = 0
    num_to_fetch: Uint64 = 0
    encoding: Encoding = "hex"


class IdAsk(Ask, frozen=True):
    """`encoding` may be sent and says nothing here."""

    id: Id = NO_ID


class EncodingAsk(Ask, frozen=True):
    encoding: Encoding = "hex"


class IndexContainer(Told, frozen=True):
    id: str
    bytes: str
    timestamp: str
    encoding: str
    index: str


class Containers(Told, frozen=True):
    containers: list[IndexContainer]


class IndexNumber(Told, frozen=True):
    index: str


class IsAccepted(Told, frozen=True):
    is_accepted: bool
