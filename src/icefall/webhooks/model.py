"""A webhook, its events and its messages, as the stores hold them. IDs are UUIDs as text."""

from typing import Literal, NamedTuple
from uuid import UUID, uuid5

import msgspec

EVM_ACTIVITY = "address_activity"
PRIMARY_ACTIVITY, VALIDATOR_ACTIVITY = "primary_network_address_activity", "validator_activity"
PRIMARY = "primary"  # stands for the outbox of P, X and C where that of a chain is named by its ID
ACTIVE, INACTIVE = "active", "inactive"
Status = Literal["active", "inactive"]

PENDING, DELIVERED, FAILED, DROPPED = "pending", "delivered", "failed", "dropped"
ACTIVITY, REMOVED, TEST = "activity", "removed", "test"
MessageStatus = Literal["pending", "delivered", "failed", "dropped"]
MessageKind = Literal["activity", "removed", "test"]

_NAMESPACE = UUID("5a1c3ad4-6c1f-4c0e-9d6f-0d6f5c1b7e35")  # ours; changing it would send every event again


class Webhook(msgspec.Struct, frozen=True):
    """A webhook. The fields are the columns of its table, in their order."""

    id: str
    owner: str  # the name of an API key; empty: callers on this machine
    event_type: str
    chain_id: str
    url: str
    name: str
    description: str
    status: str
    reason: str  # why it was switched off by us
    include_internal_txs: int
    include_logs: int
    signatures: str  # first topics, as a JSON list of hex
    confirmations: int
    ordered: int
    start_block: int | None
    created: int  # Unix milliseconds
    filter: str = ""  # of the primary network: `webhooks/primary_matching.py`, as JSON
    live_block: int | None = None  # the first block that was matched when it was stored

    def started(self, block: int) -> "Webhook":
        """The webhook, from the first block on that is matched when it is stored."""
        start = block if self.start_block is None else self.start_block
        return msgspec.structs.replace(self, start_block=start, live_block=block)

    @property
    def is_active(self) -> bool:
        return self.status == ACTIVE

    @property
    def topics(self) -> frozenset[bytes]:
        """The first topics that a transaction must have one of; empty: any will do."""
        return frozenset(bytes.fromhex(one[2:]) for one in msgspec.json.decode(self.signatures, type=list[str]))


class Unfilled(NamedTuple):
    """A webhook with the next older block to match, and the first one that was matched when it was stored."""

    webhook: Webhook
    first: int
    end: int
    addresses: list[bytes]


class OutboxEvent(msgspec.Struct, frozen=True):
    """A row of a chain's outbox, as delivery reads it."""

    id: str
    sequence: int
    webhook: str
    tx_at: int
    block_hash: bytes
    tx_hash: bytes
    removals: int
    is_removed: int


class Message(msgspec.Struct, frozen=True):
    """A message. The fields are the columns of its table, in their order."""

    id: str
    event: str
    webhook: str
    number: int
    kind: str
    status: str
    chain_id: str
    block: int
    tx_hash: bytes
    created: float
    attempts: int
    next_at: float
    done_at: float | None
    body: bytes | None


class Attempt(msgspec.Struct, frozen=True):
    """One attempt to send a message. `code` 0: there was no answer. `error` is empty if the message was taken."""

    number: int
    at: float
    code: int
    duration_ms: float
    error: str


def event_id(webhook: str, chain_id: str, block_hash: bytes, tx_hash: bytes, sub_event: str = "") -> str:
    """The ID of an event: a chain that is indexed again gives the same one."""
    return str(uuid5(_NAMESPACE, f"{webhook} {chain_id} {block_hash.hex()} {tx_hash.hex()} {sub_event}"))


def message_id(event: str, removals: int) -> str:
    """The ID of the message about an event: another one if its block comes back after it was rolled back."""
    return event if removals == 0 else str(uuid5(_NAMESPACE, f"{event} again {removals}"))


def removal_id(event: str, removals: int) -> str:
    """The ID of the message that takes back the message with `message_id(event, removals)`."""
    return str(uuid5(_NAMESPACE, f"{event} removed {removals}"))
