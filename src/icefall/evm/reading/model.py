"""Rows as readers return them. Addresses and hashes are bytes, amounts integers, positions those of positions.py.

`..._ref` is the interned ID of an address in the store: the key of token and NFT details, valid for one request only.
`cursor` is where the page after the row begins: pass it as `PageRange.before`.
"""

import msgspec

from icefall.evm.encoding import BLOCK_MAX, PER_BLOCK, index_of, position_of, unpack_uints
from icefall.evm.model import CallType
from icefall.evm.standards import BY_NUMBER

AFTER_ALL = position_of(BLOCK_MAX, PER_BLOCK - 1)
LISTED_AMOUNTS = 5  # of those packed with a transaction, up to the gas price


class PageRange(msgspec.Struct, frozen=True, gc=False):
    """Blocks from `start_block` up to, but not including, `end_block`; in them, rows behind the cursor `before`."""

    start_block: int = 0
    end_block: int | None = None
    before: tuple[int, ...] | None = None

    @property
    def low(self) -> int:
        return position_of(min(self.start_block, BLOCK_MAX), 0)

    @property
    def high(self) -> int:
        return AFTER_ALL if self.end_block is None else position_of(min(self.end_block, BLOCK_MAX), 0)

    def descending(self) -> dict[str, int]:
        """Positions in [low, high) that are not listed yet, newest first."""
        high = self.high if self.before is None else min(self.high, self.before[0])
        return {"low": self.low, "high": high}

    def ascending(self) -> dict[str, int]:
        """Return the positions in [low, high) that are not listed yet, oldest first."""
        low = self.low if self.before is None else max(self.low, self.before[0] + 1)
        return {"low": low, "high": self.high}

    def inside(self) -> dict[str, int]:
        """Return the bounds of rows with a second number inside their position: those below (high, inside)."""
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
    # None: not known, as of blocks that an older release has indexed.
    fee_recipient: bytes | None = None
    size: int | None = None
    fees_burned: int | None = None


class TxLocation(msgspec.Struct, frozen=True, gc=False):
    """The block and transaction a row belongs to."""

    block_number: int
    block_hash: bytes
    time: int
    tx_hash: bytes


class TxRead(msgspec.Struct, frozen=True, gc=False):
    location: TxLocation
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
    amounts: bytes  # the five before and the maximum fees, packed: lists do not show these
    call_type: CallType
    selector: bytes
    sender_ref: int
    to_ref: int

    @property
    def max_fees(self) -> tuple[int | None, int | None]:
        """The maximum fee and the maximum priority fee; None: a transaction of its type has none."""
        max_fee, max_priority_fee = unpack_uints(self.amounts)[LISTED_AMOUNTS:]
        return max_fee, max_priority_fee

    @property
    def max_fee(self) -> int | None:
        return self.max_fees[0]

    @property
    def max_priority_fee(self) -> int | None:
        return self.max_fees[1]

    @property
    def tx_index(self) -> int:
        return index_of(self.tx_at)

    @property
    def cursor(self) -> tuple[int, ...]:
        return (self.tx_at,)


class FullTxRead(msgspec.Struct, frozen=True, gc=False):
    """A transaction with the fields that only single ones return."""

    tx: TxRead
    input: bytes
    base_fee: int


class TransferRead(msgspec.Struct, frozen=True, gc=False):
    """A token transfer of any standard."""

    standard: int  # the number of a row of evm/standards.py
    location: TxLocation
    log_at: int
    position: int  # in its batch; 0 where a log is one transfer
    tx_at: int
    token: bytes
    sender: bytes
    to: bytes
    token_id: int  # 0 for ERC-20
    value: int  # for ERC-721 the last ID of a range; 0: one token
    token_ref: int
    sender_ref: int
    to_ref: int

    @property
    def log_index(self) -> int:
        return index_of(self.log_at)

    @property
    def cursor(self) -> tuple[int, ...]:
        return (self.log_at, self.position) if BY_NUMBER[self.standard].has_batches else (self.log_at,)


class InternalRead(msgspec.Struct, frozen=True, gc=False):
    location: TxLocation
    tx_at: int
    frame: int
    kind: str
    sender: bytes
    to: bytes  # empty for a creation that failed
    value: int
    gas_limit: int
    gas_used: int
    is_reverted: bool
    sender_ref: int
    to_ref: int  # 0 for a creation that failed

    @property
    def cursor(self) -> tuple[int, ...]:
        return (self.tx_at, self.frame)


class TxParts(msgspec.Struct):
    """What happened inside a transaction. Transfers are in log order. `truncated`: there are more."""

    transfers: list[TransferRead] = msgspec.field(default_factory=list)
    internals: list[InternalRead] = msgspec.field(default_factory=list)
    truncated: bool = False


class DeploymentRead(msgspec.Struct, frozen=True, gc=False):
    address: bytes
    tx_at: int
    frame: int  # 0 when the transaction itself created it
    creator: bytes  # the account or contract that ran the creation
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
    token_ref: int  # 0 for a token that is not in the store
    reputation: str | None  # Malicious or Benign; None for a token that is not on the list


class NftHeld(msgspec.Struct, frozen=True, gc=False):
    token: bytes
    token_id: int
    owner: bytes
    token_ref: int


class IdHeld(msgspec.Struct, frozen=True, gc=False):
    token: bytes
    token_id: int
    balance: int
    token_ref: int
