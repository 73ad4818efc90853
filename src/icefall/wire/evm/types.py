"""Blocks of an EVM chain as nodes send them: immutable values. Numbers are ints, addresses and hashes are bytes.

A missing address (recipient of a creation, contract of a failed creation) is empty bytes.
"""

from collections.abc import Iterable

import msgspec

from icefall.wire.errors import WireError

CREATIONS = ("CREATE", "CREATE2")  # call frames that create a contract


class InvalidData(WireError):
    """An answer that contradicts itself or what the chain proves."""


class IncompleteBlock(InvalidData):
    """Parts that are missing, or belong to different blocks: a lagging node or a reorganisation between two calls."""


class OtherTransactions(IncompleteBlock):
    """A part of a block that has the right number of entries, but of other transactions: a reorganisation."""


class RootMismatch(InvalidData):
    """Transactions or receipts that do not give the root in the header: changed, or encoded by rules we do not know."""


class ParentMismatch(InvalidData):
    """A valid block whose parent is not the expected one: where blocks are not final, a reorganisation."""


class Access(msgspec.Struct, frozen=True, gc=False):
    address: bytes
    slots: tuple[bytes, ...]


class Authorization(msgspec.Struct, frozen=True, gc=False):
    """EIP-7702: lets an account run the code at `address`."""

    chain_id: int
    address: bytes
    nonce: int
    y_parity: int
    r: int
    s: int


class EvmTx(msgspec.Struct, frozen=True, gc=False):
    tx_hash: bytes
    type_id: int
    nonce: int
    gas: int
    gas_price: int  # as mined
    max_fee: int | None  # types 2 and up
    max_priority_fee: int | None
    sender: bytes
    to: bytes  # empty: a creation
    value: int
    input: bytes
    chain_id: int
    v: int  # type 0: as signed; others: the parity
    r: bytes  # without leading zeros, as it is hashed
    s: bytes
    access_list: tuple[Access, ...]
    authorizations: tuple[Authorization, ...]
    max_blob_fee: int
    blob_hashes: tuple[bytes, ...]


class Withdrawal(msgspec.Struct, frozen=True, gc=False):
    """Money from the beacon chain, credited after a block's transactions."""

    index: int
    validator_index: int
    address: bytes
    amount_gwei: int


class DecodedBlock(msgspec.Struct, frozen=True, gc=False):
    """A block with its transactions and every header field its hash covers. None: the client does not send it."""

    number: int
    block_hash: bytes
    parent_hash: bytes
    uncles_hash: bytes
    miner: bytes
    state_root: bytes
    transactions_root: bytes
    receipts_root: bytes
    bloom: bytes
    difficulty: int
    gas_limit: int
    gas_used: int
    time: int
    extra: bytes
    mix_hash: bytes
    nonce: bytes
    txs: tuple[EvmTx, ...]
    base_fee: int | None
    withdrawals_root: bytes | None
    withdrawals: tuple[Withdrawal, ...] | None
    blob_gas_used: int | None
    excess_blob_gas: int | None
    beacon_root: bytes | None
    requests_hash: bytes | None
    ext_data_hash: bytes | None  # from here on: coreth
    ext_data: bytes | None  # codec bytes of the atomic transactions
    ext_data_gas_used: int | None
    gas_cost: int | None
    time_ms: int | None
    min_delay_excess: int | None
    unknown_fields: bool  # has fields we have never seen, which its hash may cover
    size: int | None = None  # bytes of the encoded block, as the node says; no hash covers it


class PlacedTx(msgspec.Struct, frozen=True, gc=False):
    """A transaction, and the number of its block; None: no block holds it yet."""

    tx: EvmTx
    block: int | None


class EventLog(msgspec.Struct, frozen=True, gc=False):
    address: bytes
    topics: tuple[bytes, ...]
    data: bytes
    index: int  # in the block


class Receipt(msgspec.Struct, frozen=True, gc=False):
    tx_hash: bytes
    block_hash: bytes
    index: int
    type_id: int
    status: int | None  # None: before Byzantium, when there was a state root instead
    state_root: bytes
    gas_used: int
    cumulative_gas: int
    gas_price: int | None  # None: an old client
    sender: bytes
    contract: bytes  # set for failed creations too; empty: none
    bloom: bytes
    logs: tuple[EventLog, ...]


class CallFrame(msgspec.Struct, frozen=True, gc=False):
    """One call of a transaction's trace."""

    number: int  # pre-order, the transaction itself is 0
    opcode: str  # CALL, CREATE2, SELFDESTRUCT and so on
    sender: bytes
    to: bytes  # empty: a creation that failed
    value: int
    gas: int
    gas_used: int
    is_reverted: bool  # it failed, or a frame around it did
    is_create3_proxy: bool  # its init code is the one every CREATE3 library uses


class Trace(msgspec.Struct, frozen=True, gc=False):
    """The frames of a transaction that are indexed: the root, and those that carry value, create or destroy."""

    tx_hash: bytes  # empty: an old client
    frames: tuple[CallFrame, ...]
    frame_count: int  # of all frames


class TreeCall(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """One call of a transaction with its data. `is_reverted`: it failed, or a call around it did; `error`: why it
    failed itself."""

    depth: int  # of the transaction itself: 0
    opcode: str
    sender: bytes
    to: bytes  # empty: a creation that failed
    value: int
    gas: int
    gas_used: int
    input: bytes
    output: bytes
    error: str
    is_reverted: bool


Calls = tuple[TreeCall, ...]  # every call of a transaction, in pre-order


class AccountDiff(msgspec.Struct, frozen=True, gc=False):
    """The changes of a transaction to an account, as the client reports them. prestateTracer reports every field."""

    address: bytes
    balance_before: int | None  # None, both: not reported, because it did not change
    balance_after: int | None
    had_code: bool | None  # None, both: not reported, although it may have changed
    has_code: bool | None
    is_gone: bool  # reported as deleted, which coreth also does for accounts that still exist
    changed_storage: bool
    changed_implementation: bool = False  # a slot in which proxies keep the address of their code
    nonce_before: int | None = None  # None: not reported
    storage: bytes = b""  # what changed of it: two JSON objects, before and after, each on a line; empty: nothing


class TxDiff(msgspec.Struct, frozen=True, gc=False):
    tx_hash: bytes  # empty: an old client
    accounts: tuple[AccountDiff, ...]
    omits_code: bool = False  # of at least one of them


def omits_code(accounts: Iterable[AccountDiff]) -> bool:
    """Return whether it is not reported for one of the accounts if it has code."""
    return any(account.has_code is None for account in accounts)


class FullBlock(msgspec.Struct, frozen=True, gc=False):
    """Everything fetched for one block. `traces`, `diffs`: None without a tracer, and at genesis."""

    block: DecodedBlock
    receipts: tuple[Receipt, ...]
    traces: tuple[Trace, ...] | None
    diffs: tuple[TxDiff, ...] | None
