"""The events of a messenger contract (ICM, Teleporter), decoded.

A message is sent on one chain and received on another; its ID is the same on both. The contract is known by its
address: others can emit logs that look the same. What a log says is bounded by its own size.
"""

from typing import NamedTuple

from icefall.wire.evm.events import RECEIVE_CROSS_CHAIN_MESSAGE, SEND_CROSS_CHAIN_MESSAGE

MESSAGE_EXECUTED = bytes.fromhex("34795cc6b122b9a0ae684946319f1e14a577b4e8f9b3dda9ac94c21a54d3188c")
MESSAGE_EXECUTION_FAILED = bytes.fromhex("4619adc1017b82e02eaefac01a43d50d6d8de4460774bc370c3ff0210d40c985")
RECEIPT_RECEIVED = bytes.fromhex("d13a7935f29af029349bed0a2097455b91fd06190a30478c575db3f31e00bf57")
ADD_FEE_AMOUNT = bytes.fromhex("c1bfd1f1208927dfbd414041dcb5256e6c9ad90dd61aec3249facbd34ff7b3e1")

_MESSAGE = "(uint256,address,bytes32,address,uint256,address[],(uint256,address)[],bytes)"
# What the hashes are of; the tests recompute every one.
SIGNATURES = {
    MESSAGE_EXECUTED: "MessageExecuted(bytes32,bytes32)",
    MESSAGE_EXECUTION_FAILED: f"MessageExecutionFailed(bytes32,bytes32,{_MESSAGE})",
    RECEIPT_RECEIVED: "ReceiptReceived(bytes32,bytes32,address,(address,uint256))",
    ADD_FEE_AMOUNT: "AddFeeAmount(bytes32,(address,uint256))",
}

# The kinds of events, as they are stored.
SENT, RECEIVED, EXECUTED, FAILED, RECEIPT, FEE = range(1, 7)
_KINDS = {  # by the first topic: the kind, and how many topics there are
    SEND_CROSS_CHAIN_MESSAGE: (SENT, 3),
    RECEIVE_CROSS_CHAIN_MESSAGE: (RECEIVED, 4),
    MESSAGE_EXECUTED: (EXECUTED, 3),
    MESSAGE_EXECUTION_FAILED: (FAILED, 3),
    RECEIPT_RECEIVED: (RECEIPT, 4),
    ADD_FEE_AMOUNT: (FEE, 2),
}
TOPICS = tuple(_KINDS)
_WORD = 32
_HEAD = 8 * _WORD  # of a message
_FEE_SIZE = 2 * _WORD


class MessageBody(NamedTuple):
    """A message as both of its events contain it."""

    nonce: int
    sender: bytes
    destination: bytes  # blockchain ID
    recipient: bytes
    required_gas: int
    relayers: tuple[bytes, ...]  # those that may deliver it; none: everyone
    receipts: tuple[tuple[int, bytes], ...]  # that it carries: nonce of the received message, and who is rewarded
    data: bytes


class Fee(NamedTuple):
    """The reward of whoever delivers a message."""

    token: bytes
    amount: int


class MessengerEvent(NamedTuple):
    """An event. `peer`: blockchain ID of the other chain; empty with an added fee. `party`: who delivered the message,
    or is rewarded for it. `data`: that of the log, where `decode_sent` and the others read it; else empty."""

    kind: int
    message_id: bytes
    peer: bytes
    party: bytes
    sender: bytes
    recipient: bytes
    data: bytes


def decode_event(topics: tuple[bytes, ...], data: bytes) -> MessengerEvent | None:
    """The event of a messenger's log; None for any other log, and for one of a wrong shape."""
    kind, count = _KINDS.get(topics[0] if topics else b"", (0, 0))
    if not kind or len(topics) != count:
        return None
    peer = topics[2] if count > 2 else b""
    party = topics[3][12:] if count > 3 else b""
    if kind in (SENT, RECEIVED):
        body = message_of(kind, data)
        if body is None or (kind == SENT and body.destination != peer):
            return None
        return MessengerEvent(kind, topics[1], peer, party, body.sender, body.recipient, data)
    if kind in (RECEIPT, FEE):
        return MessengerEvent(kind, topics[1], peer, party, b"", b"", data) if len(data) == _FEE_SIZE else None
    return MessengerEvent(kind, topics[1], peer, party, b"", b"", b"")


def message_of(kind: int, data: bytes) -> MessageBody | None:
    """The message in the data of a SENT or RECEIVED event; None where an offset or a length leaves the data."""
    least = 3 * _WORD if kind == SENT else 2 * _WORD
    offset = _int(data, 0 if kind == SENT else _WORD)
    if len(data) < least + _HEAD or offset + _HEAD > len(data):
        return None
    own = data[offset:]
    relayers = _array(own, 5 * _WORD, 1)
    receipts = _array(own, 6 * _WORD, 2)
    start = _int(own, 7 * _WORD)
    size = _int(own, start) if start + _WORD <= len(own) else len(own)
    if relayers is None or receipts is None or start + _WORD + size > len(own):
        return None
    return MessageBody(
        _int(own, 0),
        _address(own, _WORD),
        own[2 * _WORD : 3 * _WORD],
        _address(own, 3 * _WORD),
        _int(own, 4 * _WORD),
        tuple(_address(own, at) for at in relayers),
        tuple((_int(own, at), _address(own, at + _WORD)) for at in receipts),
        own[start + _WORD : start + _WORD + size],
    )


def fee_of(kind: int, data: bytes) -> Fee:
    """The fee in the data of a decoded SENT, RECEIPT or FEE event."""
    at = _WORD if kind == SENT else 0
    return Fee(_address(data, at), _int(data, at + _WORD))


def redeemer_of(data: bytes) -> bytes:
    """The address that may redeem the reward, from the data of a decoded RECEIVED event."""
    return _address(data, 0)


def _array(own: bytes, head: int, words: int) -> range | None:
    """Return where the items of an array begin, whose offset is at `head`; None where it would leave the data."""
    start = _int(own, head) + _WORD
    if start > len(own):
        return None
    count, size = _int(own, start - _WORD), words * _WORD
    return range(start, start + size * count, size) if count <= (len(own) - start) // size else None


def _int(data: bytes, at: int) -> int:
    return int.from_bytes(data[at : at + _WORD], "big")


def _address(data: bytes, at: int) -> bytes:
    return data[at + 12 : at + _WORD]
