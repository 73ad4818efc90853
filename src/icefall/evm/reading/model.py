"""What readers answer. Addresses and hashes are bytes, amounts are numbers, positions are those of places.py.

`..._ref` is the store's own number of an address: it finds what enrichment knows, and is good for one request only.
`cursor` is where a page that ends with the row goes on: give it back as `Span.before`.
"""

import msgspec

from icefall.evm.model import CallType
from icefall.evm.positions import BLOCK_MAX, PER_BLOCK, inside_of, place

AFTER_ALL = place(BLOCK_MAX, PER_BLOCK - 1)


class Span(msgspec.Struct, frozen=True, gc=False):
    """Blocks from `start_block` up to, not with, `end_block`; and of them what comes after the cursor `before`."""

    start_block: int = 0
    end_block: int | None = None
    before: tuple[int, ...] | None = None

    @property
    def low(self) -> int:
        return place(min(self.start_block, BLOCK_MAX), 0)

    @property
    def high(self) -> int:
        return AFTER_ALL if self.end_block is None else place(min(self.end_block, BLOCK_MAX), 0)

    def descending(self) -> dict[str, int]:
        """Positions in [low, high) still to come."""
        high = self.high if self.before is None else min(self.high, self.before[0])
        return {"low": self.low, "high": high}

    def ascending(self) -> dict[str, int]:
        low = self.low if self.before is None else max(self.low, self.before[0] + 1)
        return {"low": low, "high": self.high}

    def inside(self) -> dict[str, int]:
        """Of rows with a place inside their position: those below (high, inside)."""
        if self.before is None or self.before[0] >= self.high:
            return {"low": self.low, "high": self.high, "inside": 0}
        return {"low": self.low, "high": self.before[0], "inside": self.before[1] if len(self.before) > 1 else 0}


class BlockRead(msgspec.Struct, frozen=True, gc=False):
    number: int
    block_hash: bytes
    parent_hash: bytes
    time: int
    tx_count: int
    base_fee: int
    gas_used: int
    gas_limit: int
    gas_cost: int
    fees_spent: int
    cumulative_txs: int


class TxPlace(msgspec.Struct, frozen=True, gc=False):
    """Where and when something happened."""

    block_number: int
    block_hash: bytes
    time: int
    tx_hash: bytes


class TxRead(msgspec.Struct, frozen=True, gc=False):
    place: TxPlace
    tx_at: int
    status: int
    type_id: int
    sender: bytes
    to: bytes
    value: int
    nonce: int
    gas_limit: int
    gas_used: int
    gas_price: int
    max_fee: int | None
    max_priority_fee: int | None
    call_type: CallType
    selector: bytes
    sender_ref: int
    to_ref: int

    @property
    def tx_index(self) -> int:
        return inside_of(self.tx_at)

    @property
    def cursor(self) -> tuple[int, ...]:
        return (self.tx_at,)


class FullTxRead(msgspec.Struct, frozen=True, gc=False):
    """With what only single transactions are asked for."""

    tx: TxRead
    input: bytes
    base_fee: int


class Erc20Read(msgspec.Struct, frozen=True, gc=False):
    place: TxPlace
    log_at: int
    tx_at: int
    token: bytes
    sender: bytes
    to: bytes
    value: int
    token_ref: int
    sender_ref: int
    to_ref: int

    @property
    def log_index(self) -> int:
        return inside_of(self.log_at)

    @property
    def cursor(self) -> tuple[int, ...]:
        return (self.log_at,)


class Erc721Read(msgspec.Struct, frozen=True, gc=False):
    place: TxPlace
    log_at: int
    tx_at: int
    token: bytes
    sender: bytes
    to: bytes
    token_id: int
    token_ref: int
    sender_ref: int
    to_ref: int

    @property
    def log_index(self) -> int:
        return inside_of(self.log_at)

    @property
    def cursor(self) -> tuple[int, ...]:
        return (self.log_at,)


class Erc1155Read(msgspec.Struct, frozen=True, gc=False):
    place: TxPlace
    log_at: int
    position: int  # in its batch
    tx_at: int
    token: bytes
    sender: bytes
    to: bytes
    token_id: int
    value: int
    token_ref: int
    sender_ref: int
    to_ref: int

    @property
    def log_index(self) -> int:
        return inside_of(self.log_at)

    @property
    def cursor(self) -> tuple[int, ...]:
        return (self.log_at, self.position)


class InternalRead(msgspec.Struct, frozen=True, gc=False):
    place: TxPlace
    tx_at: int
    frame: int
    kind: str
    sender: bytes
    to: bytes  # empty: a creation that failed
    value: int
    gas_limit: int
    gas_used: int
    is_reverted: bool
    sender_ref: int
    to_ref: int  # 0: none

    @property
    def cursor(self) -> tuple[int, ...]:
        return (self.tx_at, self.frame)


class Parts(msgspec.Struct):
    """What happened inside a transaction, in chain order."""

    erc20: list[Erc20Read] = msgspec.field(default_factory=list)
    erc721: list[Erc721Read] = msgspec.field(default_factory=list)
    erc1155: list[Erc1155Read] = msgspec.field(default_factory=list)
    internals: list[InternalRead] = msgspec.field(default_factory=list)


class DeploymentRead(msgspec.Struct, frozen=True, gc=False):
    address: bytes
    tx_at: int
    frame: int  # 0: by the transaction itself
    creator: bytes  # who ran the creation
    tx_hash: bytes
    sender: bytes  # of the transaction

    @property
    def cursor(self) -> tuple[int, ...]:
        return (self.tx_at, self.frame)


class MessageRead(msgspec.Struct, frozen=True, gc=False):
    message_id: bytes
    peer_blockchain_id: bytes
    is_source: bool


class Erc20Held(msgspec.Struct, frozen=True, gc=False):
    token: bytes
    balance: int
    token_ref: int  # 0: a token the store does not know


class NftHeld(msgspec.Struct, frozen=True, gc=False):
    token: bytes
    token_id: int
    owner: bytes
    token_ref: int


class Erc1155Held(msgspec.Struct, frozen=True, gc=False):
    token: bytes
    token_id: int
    balance: int
    token_ref: int
