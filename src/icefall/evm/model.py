"""The rows of one block of an EVM chain: everything the store writes for it, in one value.

Positions order a chain: (block number, transaction index, log index or frame number, position in a batch).
"""

import enum
from collections.abc import Mapping

import msgspec

ZERO_ADDRESS = bytes(20)
ERC20, ERC721, ERC1155 = 1, 2, 4  # the numbers of token standards (standards.py), bits of token.standards
DECIMALS_MAX = 255  # a uint8 in ERC-20


class ProbedStandard(enum.Enum):
    """The standard of a contract whose transfer logs fit several, as its answers to calls show it."""

    ERC20 = "ERC-20"  # decimals() returns at most 255
    ERC721 = "ERC-721"  # it does not, but ownerOf(id) returns an address
    NEITHER = ""


class ContractInfo(msgspec.Struct, frozen=True, gc=False):
    """The derivation's input besides the block: the values of `ContractLookups`, and what is fixed for the chain."""

    has_code: Mapping[bytes, bool] = {}  # as of the block before
    probed: Mapping[bytes, ProbedStandard] = {}
    messengers: tuple[bytes, ...] = ()  # addresses of the chain's messenger contracts
    native_asset_id: bytes = b""  # the native coin in atomic transactions; empty: unknown, read balances from state


class ContractLookups(msgspec.Struct, frozen=True, gc=False):
    """The contract properties that `derive` needs. They do not change, except code, which `code_changes` keeps
    current."""

    code: frozenset[bytes]  # addresses whose code at the block before decides the type of a call
    probes: Mapping[bytes, int | None]  # contracts, each with a token ID to try ownerOf with; None: no NFT in any case


class CallType(enum.Enum):
    """The thing that a transaction does at its top level."""

    NATIVE_TRANSFER = "NATIVE_TRANSFER"
    CONTRACT_CALL = "CONTRACT_CALL"
    CONTRACT_CREATION = "CONTRACT_CREATION"


class BlockRow(msgspec.Struct, frozen=True, gc=False):
    """The block itself, with totals over its transactions."""

    number: int
    block_hash: bytes
    parent_hash: bytes
    time: int  # Unix seconds
    tx_count: int
    base_fee: int  # wei per gas; 0 where the chain has none
    gas_used: int
    gas_limit: int
    gas_cost: int  # coreth's and subnet-evm's blockGasCost; 0 elsewhere
    fees_spent: int  # wei: gas used times price, summed; blobs and atomic transactions not included
    fee_recipient: bytes | None = None
    size: int | None = None  # bytes of the encoded block; None: the node does not say
    fees_burned: int | None = None  # wei: the part of `fees_spent` that no one gets; None: not known of such a chain


class NativeTx(msgspec.Struct, frozen=True, gc=False):
    """A transaction."""

    tx_index: int
    tx_hash: bytes
    status: int  # 1 or 0
    type_id: int
    sender: bytes
    to: bytes  # of a creation, the address of the contract, created or not
    value: int
    nonce: int
    gas_limit: int
    gas_used: int
    gas_price: int  # wei per gas actually paid
    max_fee: int | None  # None: the type has no such field
    max_priority_fee: int | None
    call_type: CallType
    selector: bytes  # first four bytes of a contract call's input, fewer if it is shorter; empty otherwise
    input: bytes  # whole; readers need it of transactions that deployed a contract


class Erc20TransferRow(msgspec.Struct, frozen=True, gc=False):
    """A transfer of an amount."""

    tx_index: int
    log_index: int  # in the block
    token: bytes
    sender: bytes
    to: bytes
    value: int


class Erc721TransferRow(msgspec.Struct, frozen=True, gc=False):
    """A transfer of one token, or of a range of them."""

    tx_index: int
    log_index: int
    token: bytes
    sender: bytes
    to: bytes
    token_id: int
    last_id: int | None = None  # of a range (ERC-2309) that begins with `token_id`; None: of this token alone


class Erc1155TransferRow(msgspec.Struct, frozen=True, gc=False):
    """A transfer of an amount of one token ID; a batch is several of them."""

    tx_index: int
    log_index: int
    position: int  # in its batch; 0 for a single transfer
    token: bytes
    sender: bytes
    to: bytes
    token_id: int
    value: int


TransferRow = Erc20TransferRow | Erc721TransferRow | Erc1155TransferRow


class InternalTx(msgspec.Struct, frozen=True, gc=False):
    """A frame below the root that is a CALL or CALLCODE with value, or a creation."""

    tx_index: int
    frame: int  # pre-order number in the trace; the root would be 0
    kind: str  # CALL, CALLCODE, CREATE, CREATE2, CREATE3
    sender: bytes
    to: bytes  # empty: a creation that failed
    value: int
    gas_limit: int
    gas_used: int
    is_reverted: bool  # it, a frame around it, or the transaction failed


class Deployment(msgspec.Struct, frozen=True, gc=False):
    """A creation that succeeded, with or without code as its result. Of several at one address the latest counts."""

    address: bytes
    tx_index: int
    frame: int  # 0: the transaction itself
    creator: bytes  # sender, or the contract that created it


class Participant(msgspec.Struct, frozen=True, gc=False):
    """An address in whose list a transaction belongs: sender, recipient, created, party of a transfer or internal."""

    address: bytes
    tx_index: int


class NativeBalance(msgspec.Struct, frozen=True, gc=False):
    address: bytes
    balance: int  # wei


class NativeDelta(msgspec.Struct, frozen=True, gc=False):
    """A change to a balance that is not in this block: it is the newest stored one, else that of the block before."""

    address: bytes
    delta: int  # wei


class Erc20Delta(msgspec.Struct, frozen=True, gc=False):
    """The net change of a holder in this block; 0 where logs only name it (Deposit and Withdrawal)."""

    token: bytes
    holder: bytes  # the zero address only with delta 0: tokens are minted from it and burned to it
    delta: int


class IdDelta(msgspec.Struct, frozen=True, gc=False):
    """The net change of a holder's amount of one token ID in this block."""

    token: bytes
    holder: bytes  # the zero address only with delta 0
    token_id: int
    delta: int


class NftOwner(msgspec.Struct, frozen=True, gc=False):
    """An ERC-721 token that moved in this block, once however often."""

    token: bytes
    token_id: int
    owner: bytes  # after the block; the zero address: burned
    owner_before: bytes  # by the first move; the zero address: minted


class NftRange(msgspec.Struct, frozen=True, gc=False):
    """A range of ERC-721 tokens that a log of this block moved, without the first of them, which is an NftOwner."""

    token: bytes
    log_index: int
    first_id: int
    last_id: int
    owner: bytes  # the zero address: burned
    is_known: bool  # an earlier log of this block names one of its IDs


class CodeChange(msgspec.Struct, frozen=True, gc=False):
    """An address whose code was set or removed: creation, delegation (EIP-7702), self-destruct."""

    address: bytes
    has_code: bool | None  # None: the client's data is not reliable, read it from state at this block


class MetadataChange(msgspec.Struct, frozen=True, gc=False):
    """The tokens whose metadata must be read again."""

    token: bytes
    first_id: int
    last_id: int


class TeleporterMessage(msgspec.Struct, frozen=True, gc=False):
    """The first cross-chain message of a transaction."""

    tx_index: int
    message_id: bytes
    peer_blockchain_id: bytes  # destination if `is_source`, else origin
    is_source: bool


class MessengerEventRow(msgspec.Struct, frozen=True, gc=False):
    """An event of a messenger contract. `data`: as in `MessengerEvent` of wire/evm/messages.py."""

    tx_index: int
    log_index: int
    kind: int
    message_id: bytes
    messenger: bytes
    peer: bytes
    party: bytes
    sender: bytes
    recipient: bytes
    data: bytes


class StoredRaw(msgspec.Struct, frozen=True):
    """The raw data of a chain that is stored: `store_logs` and `store_traces` of its settings. `matched`: logs also go
    along with the block to be matched with webhooks, stored or not."""

    logs: bool = False
    calls: bool = False
    matched: bool = False


class MatchedLogs(msgspec.Struct, frozen=True, gc=False):
    """The logs of a block as webhooks are matched with them."""

    receipts_root: bytes
    cumulative_gas: tuple[int, ...]  # after each transaction
    emitters: tuple[bytes, ...]  # each contract once
    packed: bytes  # columns of log index, transaction index, address, topics and data: `columns_of` of evm/packed.py


class RawRows(msgspec.Struct, frozen=True, gc=False):
    """The raw data of one block, packed as it is stored. None: not wanted, or the upstream cannot send it."""

    wanted: StoredRaw = StoredRaw()
    logs: tuple[tuple[int, int, bytes, bytes, bytes, bytes], ...] | None = None  # log index, then as in the table
    calls: tuple[bytes, ...] | None = None  # of each transaction
    matched: MatchedLogs | None = None


NO_RAW = RawRows()


class RawBlock(msgspec.Struct, frozen=True, gc=False):
    """The raw data of a block whose other rows are stored already."""

    number: int
    block_hash: bytes
    rows: RawRows


class BlockRows(msgspec.Struct, frozen=True, gc=False):
    """Everything a block changes: written in one transaction, or not at all. Lists are in chain order."""

    block: BlockRow
    txs: tuple[NativeTx, ...]
    erc20_transfers: tuple[Erc20TransferRow, ...]
    erc721_transfers: tuple[Erc721TransferRow, ...]
    erc1155_transfers: tuple[Erc1155TransferRow, ...]
    internals: tuple[InternalTx, ...]  # empty without traces
    deployments: tuple[Deployment, ...]  # without traces only those of transactions
    participants: tuple[Participant, ...]  # by transaction
    native_before: tuple[NativeBalance, ...]  # balance right before the block of every account in a diff
    native_after: tuple[NativeBalance, ...]  # balance right after it, where it is another
    native_deltas: tuple[NativeDelta, ...]  # withdrawals and atomic moves of accounts in no diff
    unknown_native: tuple[bytes, ...]  # addresses whose balance must be read from state at this block
    erc20_deltas: tuple[Erc20Delta, ...]  # the pairs to compare with balanceOf
    erc1155_deltas: tuple[IdDelta, ...]  # the same for balanceOf(address,id)
    nft_owners: tuple[NftOwner, ...]  # the same for ownerOf
    storage_changed_unlogged: tuple[bytes, ...]  # contracts, in a transaction without a log of theirs that explains it
    code_changed: tuple[bytes, ...]  # contracts that run other code from here on: deployed, destroyed, upgraded
    code_changes: tuple[CodeChange, ...]
    metadata_changes: tuple[MetadataChange, ...]
    messages: tuple[TeleporterMessage, ...]
    skipped_logs: Mapping[str, int]  # token events of wrong shape or standard, by event name
    storage: tuple[tuple[bytes, bytes], ...] = ()  # contract, and what a transaction changed of its storage, as text
    raw: RawRows = NO_RAW
    nft_ranges: tuple[NftRange, ...] = ()
    messenger_events: tuple[MessengerEventRow, ...] = ()
    approvals: tuple[tuple[bytes, int], ...] = ()  # contract, and the allowance that a log of it says is stored


class NativeRow(msgspec.Struct, frozen=True, gc=False):
    address: bytes
    block: int  # usually the resolved one; earlier where a change in no trace was found
    balance: int
    before: int | None  # on the address's first row: the balance until then
