"""Event decoding: every shape of decided rules, and the hashes of all signatures."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from icefall.wire.evm.events import (
    APPROVAL,
    APPROVAL_FOR_ALL,
    BATCH_METADATA_UPDATE,
    DEPOSIT,
    METADATA_UPDATE,
    RECEIVE_CROSS_CHAIN_MESSAGE,
    SEND_CROSS_CHAIN_MESSAGE,
    SIGNATURES,
    TRANSFER,
    TRANSFER_BATCH,
    TRANSFER_SINGLE,
    URI,
    WITHDRAWAL,
    AmbiguousTransfer,
    Approved,
    CrossChainMessage,
    Erc20Moved,
    Erc721Moved,
    Erc1155Moved,
    Event,
    MalformedEvent,
    MetadataChanged,
    NativeWrapped,
    decode_log,
)
from icefall.wire.evm.rlp import keccak256
from icefall.wire.evm.types import EventLog

A, B, C = b"\xaa" * 20, b"\xbb" * 20, b"\xcc" * 20


def word(value: int | bytes) -> bytes:
    return value.to_bytes(32, "big") if isinstance(value, int) else value.rjust(32, b"\0")


def log(*topics: bytes, data: bytes = b"") -> EventLog:
    return EventLog(C, topics, data, 0)


def batch(ids: list[int], values: list[int]) -> bytes:
    arrays = [word(len(ids)), *map(word, ids), word(len(values)), *map(word, values)]
    return b"".join([word(64), word(96 + 32 * len(ids)), *arrays])


@pytest.mark.parametrize(("topic", "signature"), SIGNATURES.items(), ids=list(SIGNATURES.values()))
def test_signatures(topic: bytes, signature: str) -> None:
    assert keccak256(signature.encode()) == topic


PARTIES = word(C), word(A), word(B)
CASES: list[tuple[EventLog, Event | None]] = [
    (log(TRANSFER, word(A), word(B), data=word(7)), Erc20Moved(A, B, 7)),
    (log(TRANSFER, word(A), word(B), data=word(2**256 - 1)), Erc20Moved(A, B, 2**256 - 1)),
    (log(TRANSFER, b"\xff" * 12 + A, word(B), data=word(7)), Erc20Moved(A, B, 7)),  # the low 20 bytes are the address
    (log(TRANSFER, word(A), word(B), word(7)), Erc721Moved(A, B, 7)),
    (log(TRANSFER, data=word(A) + word(B) + word(7)), AmbiguousTransfer(A, B, 7, True)),
    (log(TRANSFER, word(A), data=word(B) + word(7)), AmbiguousTransfer(A, B, 7, False)),
    *[(log(TRANSFER, word(A), word(B), data=bytes(size)), MalformedEvent("Transfer")) for size in (0, 31, 33, 64)],
    (log(TRANSFER, word(A), word(B), word(7), data=bytes(32)), MalformedEvent("Transfer")),
    (log(TRANSFER, word(A), data=bytes(32)), MalformedEvent("Transfer")),
    (log(TRANSFER), MalformedEvent("Transfer")),
    (log(TRANSFER_SINGLE, *PARTIES, data=word(1) + word(2)), Erc1155Moved(A, B, ((1, 2),))),
    (log(TRANSFER_SINGLE, *PARTIES, data=word(1)), MalformedEvent("TransferSingle")),
    (log(TRANSFER_SINGLE, *PARTIES, data=bytes(96)), MalformedEvent("TransferSingle")),
    (log(TRANSFER_SINGLE, word(C), data=word(1) + word(2)), MalformedEvent("TransferSingle")),
    (log(TRANSFER_BATCH, *PARTIES, data=batch([], [])), Erc1155Moved(A, B, ())),
    (log(TRANSFER_BATCH, *PARTIES, data=batch([4, 4, 4], [1, 0, 2])), Erc1155Moved(A, B, ((4, 1), (4, 0), (4, 2)))),
    (log(TRANSFER_BATCH, *PARTIES, data=batch([4], [1, 2])), MalformedEvent("TransferBatch")),
    (log(TRANSFER_BATCH, *PARTIES, data=b""), MalformedEvent("TransferBatch")),
    (log(TRANSFER_BATCH, *PARTIES, data=word(2**255) + word(96) + bytes(64)), MalformedEvent("TransferBatch")),
    (log(TRANSFER_BATCH, *PARTIES, data=word(64) + word(64) + word(2**64)), MalformedEvent("TransferBatch")),
    (log(TRANSFER_BATCH, *PARTIES, data=batch([4], [1])[:-1]), MalformedEvent("TransferBatch")),
    (log(TRANSFER_BATCH, *PARTIES, data=word(64) + word(64) + word(1) + word(9)), Erc1155Moved(A, B, ((9, 9),))),
    (log(TRANSFER_BATCH, *PARTIES[:2], data=batch([4], [1])), MalformedEvent("TransferBatch")),
    (log(APPROVAL, word(A), word(B), data=word(7)), Approved(7)),
    (log(APPROVAL, word(A), word(B), word(7)), Approved(int.from_bytes(word(B), "big"))),
    (log(APPROVAL, word(A), word(B)), Approved(None)),
    (log(APPROVAL_FOR_ALL, word(A), word(B), data=word(1)), Approved(1)),
    (log(DEPOSIT, word(A), data=word(1)), NativeWrapped(A)),
    (log(WITHDRAWAL, word(A), data=word(1)), NativeWrapped(A)),
    (log(DEPOSIT, data=word(A) + word(1)), None),
    (log(URI, word(5), data=bytes(96)), MetadataChanged(5, 5)),
    (log(URI, data=bytes(96)), None),
    (log(METADATA_UPDATE, data=word(5)), MetadataChanged(5, 5)),
    (log(METADATA_UPDATE, word(5)), None),
    (log(BATCH_METADATA_UPDATE, data=word(5) + word(9)), MetadataChanged(5, 9)),
    (log(BATCH_METADATA_UPDATE, data=word(5)), None),
    (log(SEND_CROSS_CHAIN_MESSAGE, word(1), word(2)), CrossChainMessage(word(1), word(2), True)),
    (log(SEND_CROSS_CHAIN_MESSAGE, word(1)), None),
    (log(RECEIVE_CROSS_CHAIN_MESSAGE, word(1), word(2), word(A)), CrossChainMessage(word(1), word(2), False)),
    (log(RECEIVE_CROSS_CHAIN_MESSAGE, word(1), word(2)), None),
    (log(data=bytes(96)), None),
    (log(word(1), word(A), word(B), data=word(7)), None),
]


@pytest.mark.parametrize(("log_entry", "event"), CASES)
def test_shapes(log_entry: EventLog, event: Event | None) -> None:
    assert decode_log(log_entry) == event


@settings(max_examples=500, deadline=None, database=None)
@given(
    st.sampled_from(list(SIGNATURES)),
    st.lists(st.binary(min_size=32, max_size=32), max_size=3),
    st.one_of(
        st.binary(max_size=300),
        st.lists(st.one_of(st.integers(0, 400), st.integers(0, 2**256 - 1)), max_size=12).map(
            lambda numbers: b"".join(map(word, numbers))
        ),
    ),
)
def test_nothing_a_contract_logs_can_break_us(topic: bytes, topics: list[bytes], data: bytes) -> None:
    event = decode_log(log(topic, *topics, data=data))
    if isinstance(event, Erc1155Moved):
        assert len(event.items) * 32 <= len(data)
