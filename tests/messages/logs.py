"""Logs of a messenger as its contract would emit them, and what they say, joined without a store.

The naive join reads all logs of all chains for every message: there is nothing in it to go wrong.
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from icefall.api.http.structs import address_text
from icefall.wire.evm.events import RECEIVE_CROSS_CHAIN_MESSAGE, SEND_CROSS_CHAIN_MESSAGE
from icefall.wire.evm.messages import ADD_FEE_AMOUNT, MESSAGE_EXECUTED, MESSAGE_EXECUTION_FAILED, RECEIPT_RECEIVED
from icefall.wire.evm.rlp import keccak256
from icefall.wire.ids import id_text

MESSENGER = bytes.fromhex("253b2784c75e510dd0ff1da844684a1ac0aa5fcf")
Log = tuple[tuple[bytes, ...], bytes]  # topics, data


def word(value: int | bytes) -> bytes:
    return value.to_bytes(32, "big") if isinstance(value, int) else value.rjust(32, b"\0")


class Sample(NamedTuple):
    """A message."""

    source: bytes  # blockchain IDs
    destination: bytes
    nonce: int
    sender: bytes
    recipient: bytes
    data: bytes = b""
    receipts: tuple[tuple[int, bytes], ...] = ()
    relayers: tuple[bytes, ...] = ()
    fee_token: bytes = bytes(20)
    fee: int = 0

    @property
    def id(self) -> bytes:
        parts: tuple[int | bytes, ...] = (MESSENGER, self.source, self.destination, self.nonce)
        return keccak256(b"".join(map(word, parts)))

    def encoded(self) -> bytes:
        relayers = word(len(self.relayers)) + b"".join(map(word, self.relayers))
        receipts = word(len(self.receipts)) + b"".join(word(one) for pair in self.receipts for one in pair)
        data = word(len(self.data)) + self.data + bytes(-len(self.data) % 32)
        head = 8 * 32
        heads: tuple[int | bytes, ...] = (self.nonce, self.sender, self.destination, self.recipient, 100_000)
        offsets = (head, head + len(relayers), head + len(relayers) + len(receipts))
        return b"".join(map(word, (*heads, *offsets))) + relayers + receipts + data


def sent(one: Sample) -> Log:
    data = word(96) + word(one.fee_token) + word(one.fee) + one.encoded()
    return (SEND_CROSS_CHAIN_MESSAGE, one.id, one.destination), data


def received(one: Sample, deliverer: bytes, redeemer: bytes) -> Log:
    return (
        (RECEIVE_CROSS_CHAIN_MESSAGE, one.id, one.source, word(deliverer)),
        word(redeemer) + word(64) + one.encoded(),
    )


def executed(one: Sample) -> Log:
    return (MESSAGE_EXECUTED, one.id, one.source), b""


def failed(one: Sample) -> Log:
    return (MESSAGE_EXECUTION_FAILED, one.id, one.source), word(32) + one.encoded()


def receipt(one: Sample, rewarded: bytes) -> Log:
    return (RECEIPT_RECEIVED, one.id, one.destination, word(rewarded)), word(one.fee_token) + word(one.fee)


def raised(one: Sample, total: int) -> Log:
    return (ADD_FEE_AMOUNT, one.id), word(one.fee_token) + word(total)


class Emitted(NamedTuple):
    """A log in its place on a chain."""

    chain: str
    at: tuple[int, int]  # block and log index
    time: int
    order: int  # of its chain in the list: higher goes first at equal times
    tx_hash: bytes
    paid: int
    log: Log


def naive(samples: Iterable[Sample], emitted: list[Emitted], chain_ids: Mapping[bytes, str]) -> list[dict[str, Any]]:
    """The messages that a list of all of them shows. `chain_ids`: the indexed chains by blockchain ID."""
    found = []
    for one in samples:
        events = sorted((log for log in emitted if log.log[0][1] == one.id), key=lambda log: log.at)
        by_topic: dict[bytes, list[Emitted]] = {}
        for event in events:
            by_topic.setdefault(event.log[0][0], []).append(event)
        first = by_topic.get(SEND_CROSS_CHAIN_MESSAGE) or by_topic.get(RECEIVE_CROSS_CHAIN_MESSAGE)
        if first is not None:
            found.append(((first[0].time, first[0].order, first[0].at), _shown(one, by_topic, chain_ids)))
    return [shown for _, shown in sorted(found, key=lambda pair: pair[0], reverse=True)]


def _shown(one: Sample, by_topic: dict[bytes, list[Emitted]], chain_ids: Mapping[bytes, str]) -> dict[str, Any]:
    sending = by_topic.get(SEND_CROSS_CHAIN_MESSAGE)
    receiving = by_topic.get(RECEIVE_CROSS_CHAIN_MESSAGE)
    shown: dict[str, Any] = {
        "messageId": one.id.hex(),
        "icmContractAddress": address_text(MESSENGER),
        "sourceBlockchainId": id_text(one.source),
        "destinationBlockchainId": id_text(one.destination),
        "sourceEvmChainId": chain_ids.get(one.source, ""),
        "destinationEvmChainId": chain_ids.get(one.destination, ""),
        "messageNonce": str(one.nonce),
        "from": address_text(one.sender),
        "to": address_text(one.recipient),
        "messageExecuted": MESSAGE_EXECUTED in by_topic,
        "receipts": [
            {"receivedMessageNonce": str(nonce), "relayerRewardAddress": address_text(rewarded)}
            for nonce, rewarded in one.receipts
        ],
        "receiptDelivered": RECEIPT_RECEIVED in by_topic,
        "status": "pending" if not receiving else "delivered" if sending else "delivered_source_not_indexed",
    }
    if one.data:
        shown["data"] = "0x" + one.data.hex()
    fee = 0
    if sending:
        raises = by_topic.get(ADD_FEE_AMOUNT)
        fee = int.from_bytes(raises[-1].log[1][32:], "big") if raises else one.fee
        shown["sourceTransaction"] = _transaction(sending[0])
    if receiving:
        topics, data = receiving[0].log
        shown["destinationTransaction"] = _transaction(receiving[0]) | {
            "rewardRedeemer": address_text(data[12:32]),
            "delivererAddress": address_text(topics[3][12:]),
        }
    token = one.fee_token if fee else bytes(20)
    shown["rewardDetails"] = {
        "address": address_text(token),
        "name": "",
        "symbol": "",
        "decimals": 0,
        **({"namesRead": False} if fee else {}),
        "ercType": "ERC-20",
        "value": str(fee),
    }
    return shown


def _transaction(event: Emitted) -> dict[str, Any]:
    return {"txHash": "0x" + event.tx_hash.hex(), "timestamp": event.time, "gasSpent": str(event.paid)}
