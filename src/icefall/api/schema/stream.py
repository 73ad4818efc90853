"""The live stream: what it is asked for, and its events besides blocks and transactions."""

from typing import Any

from icefall.api.params.rest_kinds import EventTypes, LastEventId, MaybeAddress, MaybeChain
from icefall.api.schema.names import RestParams, RestResult


class StreamParams(RestParams, frozen=True):
    chain_id: MaybeChain = None
    address: MaybeAddress = None
    types: EventTypes = ("blocks", "transactions")
    last_event_id: LastEventId = ""


class TransferEvent(RestResult, frozen=True):
    """`transfer` is an item of the transfer lists."""

    chain_id: str
    transfer: Any


class RollbackEvent(RestResult, frozen=True):
    """The blocks above `blockNumber` are no longer part of the chain."""

    chain_id: str
    block_number: str


class SkippedEvent(RestResult, frozen=True):
    """The client was away for too long: the blocks from `startBlock` to before `endBlock` are not sent."""

    chain_id: str
    start_block: str
    end_block: str
