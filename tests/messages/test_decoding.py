"""Logs of messengers: every event, and bytes that are none of them."""

import random

import pytest
from tests.messages import logs
from tests.messages.logs import Log, Sample, word

from icefall.wire.evm.messages import (
    EXECUTED,
    FAILED,
    FEE,
    RECEIPT,
    RECEIVED,
    SENT,
    SIGNATURES,
    Fee,
    decode_event,
    fee_of,
    message_of,
    redeemer_of,
)
from icefall.wire.evm.rlp import keccak256

A, B, C = b"\xaa" * 20, b"\xbb" * 20, b"\xcc" * 20
ONE = Sample(word(1), word(2), 7, A, B, b"hello", ((3, C), (4, A)), (B, C), C, 12)
CASES: list[tuple[Log, int]] = [
    (logs.sent(ONE), SENT),
    (logs.received(ONE, B, C), RECEIVED),
    (logs.executed(ONE), EXECUTED),
    (logs.failed(ONE), FAILED),
    (logs.receipt(ONE, A), RECEIPT),
    (logs.raised(ONE, 99), FEE),
]


@pytest.mark.parametrize(("topic", "signature"), SIGNATURES.items(), ids=list(SIGNATURES.values()))
def test_hashes_of_messenger_signatures(topic: bytes, signature: str) -> None:
    assert keccak256(signature.encode()) == topic


@pytest.mark.parametrize(("log", "kind"), CASES)
def test_events_of_a_message(log: Log, kind: int) -> None:
    event = decode_event(*log)
    assert event is not None
    assert (event.kind, event.message_id) == (kind, ONE.id)
    assert decode_event(log[0][:-1], log[1]) is None
    if kind in (SENT, RECEIVED):
        body = message_of(kind, event.data)
        assert body is not None
        assert body._asdict() == {
            "nonce": 7, "sender": A, "destination": word(2), "recipient": B, "required_gas": 100_000,
            "relayers": (B, C), "receipts": ((3, C), (4, A)), "data": b"hello",
        }  # fmt: skip
        assert (event.sender, event.recipient) == (A, B)


def test_fees_and_parties() -> None:
    assert fee_of(SENT, logs.sent(ONE)[1]) == Fee(C, 12)
    assert fee_of(FEE, logs.raised(ONE, 99)[1]) == Fee(C, 99)
    event = decode_event(*logs.received(ONE, B, C))
    assert event is not None
    assert (event.party, event.peer, redeemer_of(event.data)) == (B, word(1), C)


@pytest.mark.parametrize(("log", "kind"), CASES[:2])
def test_lengths_and_offsets_that_leave_the_data(log: Log, kind: int) -> None:
    """Whatever the bytes say, decoding ends, and takes no more than the log has."""
    chance = random.Random(kind)
    topics, data = log
    for size in range(0, len(data) - 32, 31):  # what pads the last bytes may be left out
        assert decode_event(topics, data[:size]) is None
    for _ in range(2000):
        at = 32 * chance.randrange(len(data) // 32)
        value = chance.choice((0, 1, 31, 32, 2**255, 2**256 - 1, len(data), chance.randrange(2 * len(data))))
        body = message_of(kind, data[:at] + word(value) + data[at + 32 :])
        if body is not None:
            assert 20 * len(body.relayers) + 40 * len(body.receipts) + len(body.data) <= 3 * len(data)
