"""The reports of contracts, decoded: events by the hash of their signature, and the reasons of reverted calls.

A contract may emit any log, true or not. A log is decoded where its shape is exactly right; a token event of any other
shape becomes `MalformedEvent`, so that it can be counted, and everything else None.
"""

from collections.abc import Callable
from typing import TypeAlias

import msgspec

from icefall.wire.evm.rlp import keccak256
from icefall.wire.evm.types import EventLog

TRANSFER = bytes.fromhex("ddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef")
TRANSFER_SINGLE = bytes.fromhex("c3d58168c5ae7397731d063d5bbf3d657854427343f4c083240f7aacaa2d0f62")
TRANSFER_BATCH = bytes.fromhex("4a39dc06d4c0dbc64b70af90fd698a233a518aa5d07e595d983b8c0526c8f7fb")
CONSECUTIVE_TRANSFER = bytes.fromhex("deaa91b6123d068f5821d0fb0678463d1a8a6079fe8af5de3ce5e896dcf9133d")
APPROVAL = bytes.fromhex("8c5be1e5ebec7d5bd14f71427d1e84f3dd0314c0f7b2291e5b200ac8c7c3b925")
APPROVAL_FOR_ALL = bytes.fromhex("17307eab39ab6107e8899845ad3d59bd9653f200f220920489ca2b5937696c31")
DEPOSIT = bytes.fromhex("e1fffcc4923d04b559f4d29a8bfc6cda04eb5b0d3c460751c2402c5c5cc9109c")
WITHDRAWAL = bytes.fromhex("7fcf532c15f0a6db0bd6d0e038bea71d30d808c7d98cb3bf7268a95bf5081b65")
UPGRADED = bytes.fromhex("bc7cd75a20ee27fd9adebab32041f755214dbc6bffa90cc0225b39da2e5c2d3b")
BEACON_UPGRADED = bytes.fromhex("1cf3b03a6cf19fa2baba4df148e9dcabedea7f8a5c07840e207e5c089be95d3e")
URI = bytes.fromhex("6bb7ff708619ba0610cba295a58592e0451dee2622938c8755667688daf3529b")
METADATA_UPDATE = bytes.fromhex("f8e1a15aba9398e019f0b49df1a4fde98ee17ae345cb5f6b5e2c27f5033e8ce7")
BATCH_METADATA_UPDATE = bytes.fromhex("6bd5c950a8d8df17f772f5af37cb3655737899cbf903264b9795592da439661c")
SEND_CROSS_CHAIN_MESSAGE = bytes.fromhex("2a211ad4a59ab9d003852404f9c57c690704ee755f3c79d2c2812ad32da99df8")
RECEIVE_CROSS_CHAIN_MESSAGE = bytes.fromhex("292ee90bbaf70b5d4936025e09d56ba08f3e421156b6a568cf3c2840d9343e34")

# What the hashes are of; the tests recompute every one.
SIGNATURES = {
    TRANSFER: "Transfer(address,address,uint256)",
    TRANSFER_SINGLE: "TransferSingle(address,address,address,uint256,uint256)",
    TRANSFER_BATCH: "TransferBatch(address,address,address,uint256[],uint256[])",
    CONSECUTIVE_TRANSFER: "ConsecutiveTransfer(uint256,uint256,address,address)",
    APPROVAL: "Approval(address,address,uint256)",
    APPROVAL_FOR_ALL: "ApprovalForAll(address,address,bool)",
    DEPOSIT: "Deposit(address,uint256)",
    WITHDRAWAL: "Withdrawal(address,uint256)",
    UPGRADED: "Upgraded(address)",
    BEACON_UPGRADED: "BeaconUpgraded(address)",
    URI: "URI(string,uint256)",
    METADATA_UPDATE: "MetadataUpdate(uint256)",
    BATCH_METADATA_UPDATE: "BatchMetadataUpdate(uint256,uint256)",
    SEND_CROSS_CHAIN_MESSAGE: (
        "SendCrossChainMessage(bytes32,bytes32,"
        "(uint256,address,bytes32,address,uint256,address[],(uint256,address)[],bytes),(address,uint256))"
    ),
    RECEIVE_CROSS_CHAIN_MESSAGE: (
        "ReceiveCrossChainMessage(bytes32,bytes32,address,address,"
        "(uint256,address,bytes32,address,uint256,address[],(uint256,address)[],bytes))"
    ),
}


class Erc20Moved(msgspec.Struct, frozen=True, gc=False):
    """ERC-20: an amount moved."""

    sender: bytes
    to: bytes
    value: int


class Erc721Moved(msgspec.Struct, frozen=True, gc=False):
    """ERC-721: one token moved."""

    sender: bytes
    to: bytes
    token_id: int


class Erc721RangeMoved(msgspec.Struct, frozen=True, gc=False):
    """ERC-2309: all tokens from a first to a last ID moved, which are at least two."""

    sender: bytes
    to: bytes
    first_id: int
    last_id: int


class Erc1155Moved(msgspec.Struct, frozen=True, gc=False):
    """ERC-1155: amounts of several tokens moved; pairs of token ID and amount, in order, repeats and zeros kept."""

    sender: bytes
    to: bytes
    items: tuple[tuple[int, int], ...]


class AmbiguousTransfer(msgspec.Struct, frozen=True, gc=False):
    """A transfer with fewer indexed arguments than the standards: of an amount or a token ID, whichever it has."""

    sender: bytes
    to: bytes
    number: int
    can_be_nft: bool


class NativeWrapped(msgspec.Struct, frozen=True, gc=False):
    """Deposit or Withdrawal of a wrapped native token: its balance changed without a transfer."""

    holder: bytes


class Approved(msgspec.Struct, frozen=True, gc=False):
    """An allowance, which is storage that changes while no balance does. `value` is what is stored: an amount, an
    address as a number, or 1 and 0; None: the log does not say."""

    value: int | None


class MetadataChanged(msgspec.Struct, frozen=True, gc=False):
    """Token IDs from `first` to `last` have new metadata."""

    first: int
    last: int


class ImplementationChanged(msgspec.Struct, frozen=True, gc=False):
    """A proxy runs other code from here on."""


class CrossChainMessage(msgspec.Struct, frozen=True, gc=False):
    """A cross-chain message sent or received, if the log comes from the messenger."""

    message_id: bytes
    peer_blockchain_id: bytes
    is_sent: bool


class MalformedEvent(msgspec.Struct, frozen=True, gc=False):
    """A token event whose shape is wrong."""

    event: str  # Transfer, TransferSingle, TransferBatch, ConsecutiveTransfer


Event: TypeAlias = (
    Erc20Moved
    | Erc721Moved
    | Erc721RangeMoved
    | Erc1155Moved
    | AmbiguousTransfer
    | NativeWrapped
    | Approved
    | MetadataChanged
    | ImplementationChanged
    | CrossChainMessage
    | MalformedEvent
)


def decode_log(log: EventLog) -> Event | None:
    """The event of a log; None for events that are not indexed."""
    topics = log.topics
    decode = _DECODERS.get(topics[0]) if topics else None
    return None if decode is None else decode(topics, log.data)


def _transfer(topics: tuple[bytes, ...], data: bytes) -> Event:
    if len(topics) == 3 and len(data) == 32:  # nearly all
        return Erc20Moved(topics[1][12:], topics[2][12:], int.from_bytes(data, "big"))
    shape = len(topics), len(data)
    if shape == (4, 0):
        return Erc721Moved(topics[1][12:], topics[2][12:], _int(topics[3]))
    if shape == (1, 96):
        return AmbiguousTransfer(data[12:32], data[44:64], _int(data[64:]), True)
    if shape == (2, 64):
        return AmbiguousTransfer(topics[1][12:], data[12:32], _int(data[32:]), False)
    return MalformedEvent("Transfer")


def _consecutive_transfer(topics: tuple[bytes, ...], data: bytes) -> Event:
    if len(topics) != 4 or len(data) != 32:
        return MalformedEvent("ConsecutiveTransfer")
    sender, to, first, last = topics[2][12:], topics[3][12:], _int(topics[1]), _int(data)
    if first == last:
        return Erc721Moved(sender, to, first)
    return Erc721RangeMoved(sender, to, first, last) if first < last else MalformedEvent("ConsecutiveTransfer")


def _transfer_single(topics: tuple[bytes, ...], data: bytes) -> Event:
    if len(topics) != 4 or len(data) != 64:
        return MalformedEvent("TransferSingle")
    return Erc1155Moved(topics[2][12:], topics[3][12:], ((_int(data[:32]), _int(data[32:])),))


def _transfer_batch(topics: tuple[bytes, ...], data: bytes) -> Event:
    if len(topics) == 4 and len(data) >= 64:
        ids = _array(data, _int(data[:32]))
        values = _array(data, _int(data[32:64]))
        if ids is not None and values is not None and len(ids) == len(values):
            return Erc1155Moved(topics[2][12:], topics[3][12:], tuple(zip(ids, values, strict=True)))
    return MalformedEvent("TransferBatch")


def _array(data: bytes, offset: int) -> list[int] | None:
    """The numbers of an array that begins at `offset`; None where it would leave the data."""
    start = offset + 32
    if start > len(data):
        return None
    count = _int(data[offset:start])
    if count > (len(data) - start) // 32:
        return None
    return [_int(data[at : at + 32]) for at in range(start, start + 32 * count, 32)]


def _wrapped(topics: tuple[bytes, ...], data: bytes) -> Event | None:
    return NativeWrapped(topics[1][12:]) if len(topics) == 2 and len(data) == 32 else None


def _approved(topics: tuple[bytes, ...], data: bytes) -> Event:
    if len(topics) == 4:  # of an NFT
        return Approved(_int(topics[2]))
    return Approved(_int(data) if len(data) == 32 else None)


def _upgraded(topics: tuple[bytes, ...], data: bytes) -> Event:
    return ImplementationChanged()


def _uri(topics: tuple[bytes, ...], data: bytes) -> Event | None:
    return MetadataChanged(_int(topics[1]), _int(topics[1])) if len(topics) == 2 else None


def _metadata_update(topics: tuple[bytes, ...], data: bytes) -> Event | None:
    return MetadataChanged(_int(data), _int(data)) if len(topics) == 1 and len(data) == 32 else None


def _batch_metadata_update(topics: tuple[bytes, ...], data: bytes) -> Event | None:
    if len(topics) != 1 or len(data) != 64:
        return None
    return MetadataChanged(_int(data[:32]), _int(data[32:]))


def _sent(topics: tuple[bytes, ...], data: bytes) -> Event | None:
    return CrossChainMessage(topics[1], topics[2], True) if len(topics) == 3 else None


def _received(topics: tuple[bytes, ...], data: bytes) -> Event | None:
    return CrossChainMessage(topics[1], topics[2], False) if len(topics) == 4 else None


def _int(raw: bytes) -> int:
    return int.from_bytes(raw, "big")


_DECODERS: dict[bytes, Callable[[tuple[bytes, ...], bytes], Event | None]] = {
    TRANSFER: _transfer,
    TRANSFER_SINGLE: _transfer_single,
    TRANSFER_BATCH: _transfer_batch,
    CONSECUTIVE_TRANSFER: _consecutive_transfer,
    APPROVAL: _approved,
    APPROVAL_FOR_ALL: _approved,
    DEPOSIT: _wrapped,
    WITHDRAWAL: _wrapped,
    UPGRADED: _upgraded,
    BEACON_UPGRADED: _upgraded,
    URI: _uri,
    METADATA_UPDATE: _metadata_update,
    BATCH_METADATA_UPDATE: _batch_metadata_update,
    SEND_CROSS_CHAIN_MESSAGE: _sent,
    RECEIVE_CROSS_CHAIN_MESSAGE: _received,
}


# Signatures of events that many contracts share, by their first topic: shown beside a log.
_KNOWN_SIGNATURES = (
    "Transfer(address,address,uint256)",
    "Approval(address,address,uint256)",
    "ApprovalForAll(address,address,bool)",
    "TransferSingle(address,address,address,uint256,uint256)",
    "TransferBatch(address,address,address,uint256[],uint256[])",
    "ConsecutiveTransfer(uint256,uint256,address,address)",
    "URI(string,uint256)",
    "Deposit(address,uint256)",
    "Withdrawal(address,uint256)",
    "OwnershipTransferred(address,address)",
    "RoleGranted(bytes32,address,address)",
    "RoleRevoked(bytes32,address,address)",
    "Upgraded(address)",
    "AdminChanged(address,address)",
    "BeaconUpgraded(address)",
    "Initialized(uint8)",
    "Initialized(uint64)",
    "Paused(address)",
    "Unpaused(address)",
    "MetadataUpdate(uint256)",
    "BatchMetadataUpdate(uint256,uint256)",
    "Swap(address,uint256,uint256,uint256,uint256,address)",
    "Swap(address,address,int256,int256,uint160,uint128,int24)",
    "Sync(uint112,uint112)",
    "Mint(address,uint256,uint256)",
    "Burn(address,uint256,uint256,address)",
    "PairCreated(address,address,address,uint256)",
    "SendCrossChainMessage(bytes32,bytes32,(uint256,address,bytes32,address,uint256,address[],(uint256,address)[],bytes),"
    "(address,uint256))",
)
EVENT_SIGNATURES = {keccak256(signature.encode()): signature for signature in _KNOWN_SIGNATURES}


# -- reverts -------------------------------------------------------------------------------------------------------

_WORD = 32
_ERROR = bytes.fromhex("08c379a0")
_PANIC = bytes.fromhex("4e487b71")
TEXT_MAX = 1_000  # the contract decides how long it is
_PANICS = {
    0x01: "assertion failed",
    0x11: "arithmetic overflow or underflow",
    0x12: "division or modulo by zero",
    0x21: "invalid value of an enum",
    0x22: "invalid encoding in storage",
    0x31: "pop of an empty array",
    0x32: "array index out of bounds",
    0x41: "too much memory",
    0x51: "call of an uninitialized function",
}


def reason_of(output: bytes) -> str | None:
    """Return what a reverted call returned as text: Error(string), or Panic(uint256) by its code; None where it is
    neither."""
    body = output[4:]
    if output[:4] == _PANIC and len(body) == _WORD:
        code = int.from_bytes(body, "big")
        return f"panic 0x{code:02x}: {_PANICS.get(code, 'unknown')}" if code < 1 << 64 else None
    if output[:4] != _ERROR or len(body) < 2 * _WORD or int.from_bytes(body[:_WORD], "big") != _WORD:
        return None
    size = int.from_bytes(body[_WORD : 2 * _WORD], "big")
    if size > len(body) - 2 * _WORD:
        return None
    return body[2 * _WORD : 2 * _WORD + min(size, 4 * TEXT_MAX)].decode("utf-8", "replace")[:TEXT_MAX]
