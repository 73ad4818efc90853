"""Faults of single values: which is found first, and that no type goes unchecked."""

import pytest
from tests.xchain.craft import ADDRESSES, ALICE, refusal_of

from icefall.wire.avm.types import (
    Credential,
    MintOperation,
    MintOutput,
    NftCredential,
    NftMintOperation,
    NftMintOutput,
    NftTransferOperation,
    NftTransferOutput,
    Output,
    Owners,
    PropertyBurnOperation,
    PropertyCredential,
    PropertyMintOperation,
    PropertyMintOutput,
    PropertyOwnedOutput,
    TransferInput,
    TransferOutput,
    Verifiable,
)
from icefall.xchain.syntax import verify_part

UNSPENDABLE = Owners(0, 2, ADDRESSES[:1])
WASTEFUL = Owners(0, 0, ADDRESSES[:1])
UNSORTED = Owners(0, 1, (ADDRESSES[1], ADDRESSES[0]))
PAYLOAD = b"p" * 1025
PARTS: list[tuple[Verifiable | Output, str]] = [
    (TransferInput(0, (1, 0)), "input has no value"),
    (TransferInput(1, (1, 0)), "address indices not sorted and unique"),
    (MintOutput(WASTEFUL), "output representation should be optimized"),
    (TransferOutput(1, UNSORTED), "addresses not sorted and unique"),
    (MintOperation((1, 0), MintOutput(UNSPENDABLE), TransferOutput(0, ALICE)), "address indices not sorted and unique"),
    (MintOperation((0,), MintOutput(UNSPENDABLE), TransferOutput(0, ALICE)), "output is unspendable"),
    (MintOperation((0,), MintOutput(ALICE), TransferOutput(0, ALICE)), "output has no value"),
    (NftMintOutput(0, UNSPENDABLE), "output is unspendable"),
    (NftTransferOutput(0, PAYLOAD, UNSPENDABLE), "payload too large"),
    (NftTransferOutput(0, b"", UNSPENDABLE), "output is unspendable"),
    (NftMintOperation((1, 0), 0, PAYLOAD, (UNSPENDABLE,)), "payload too large"),
    (NftMintOperation((1, 0), 0, b"", (ALICE, UNSPENDABLE)), "output is unspendable"),
    (NftMintOperation((1, 0), 0, b"", (ALICE,)), "address indices not sorted and unique"),
    (NftTransferOperation((1, 0), NftTransferOutput(0, PAYLOAD, ALICE)), "address indices not sorted and unique"),
    (NftTransferOperation((0,), NftTransferOutput(0, PAYLOAD, ALICE)), "payload too large"),
    (PropertyMintOutput(UNSPENDABLE), "output is unspendable"),
    (PropertyOwnedOutput(WASTEFUL), "output representation should be optimized"),
    (
        PropertyMintOperation((1, 0), PropertyMintOutput(UNSPENDABLE), PropertyOwnedOutput(WASTEFUL)),
        "address indices not sorted and unique",
    ),
    (
        PropertyMintOperation((0,), PropertyMintOutput(UNSPENDABLE), PropertyOwnedOutput(WASTEFUL)),
        "output is unspendable",
    ),
    (
        PropertyMintOperation((0,), PropertyMintOutput(ALICE), PropertyOwnedOutput(WASTEFUL)),
        "output representation should be optimized",
    ),
    (PropertyBurnOperation((0, 0)), "address indices not sorted and unique"),
]


@pytest.mark.parametrize(("part", "text"), PARTS)
def test_malformed_parts(part: Verifiable, text: str) -> None:
    assert refusal_of(verify_part, part) == text


def test_every_part_has_its_check() -> None:
    credentials = (Credential(()), NftCredential(()), PropertyCredential(()))
    for credential in credentials:
        verify_part(credential)
    assert {type(part).type_id for part, _ in PARTS} | {row.type_id for row in credentials} == set(range(5, 20))
