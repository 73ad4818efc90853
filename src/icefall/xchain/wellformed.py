"""Whether a single value of an Fx is well formed, independent of its transaction and of the chain's state."""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

from icefall.wire.avm.types import (
    Credential,
    MintOperation,
    MintOutput,
    NftCredential,
    NftMintOperation,
    NftMintOutput,
    NftTransferOperation,
    NftTransferOutput,
    Owners,
    PropertyBurnOperation,
    PropertyCredential,
    PropertyMintOperation,
    PropertyMintOutput,
    PropertyOwnedOutput,
    TransferInput,
    TransferOutput,
)
from icefall.xchain.model import TxRefused

PAYLOAD_SIZE_MAX = 1024


def ascending(values: Sequence[Any]) -> bool:
    """Whether each value is greater than the one before: sorted, and none twice."""
    return len(values) < 2 or all(first < second for first, second in pairwise(values))


def sorted_loosely(values: Sequence[Any]) -> bool:
    """Whether no value is smaller than the one before. Equal ones are allowed."""
    return len(values) < 2 or all(first <= second for first, second in pairwise(values))


def verify_part(value: Any) -> None:
    """An output, input, operation or credential by itself."""
    _CHECKS[type(value)](value)


def verify_owners(owners: Owners) -> None:
    addresses = owners.addresses
    if owners.threshold > len(addresses):
        raise TxRefused("output is unspendable")
    if owners.threshold == 0 and addresses:
        raise TxRefused("output representation should be optimized")
    if not ascending(addresses):
        raise TxRefused("addresses not sorted and unique")


def verify_transfer_output(output: TransferOutput) -> None:
    if output.amount == 0:
        raise TxRefused("output has no value")
    verify_owners(output.owners)


def verify_transfer_input(given: TransferInput) -> None:
    if given.amount == 0:
        raise TxRefused("input has no value")
    _verify_indices(given.signature_indices)


def _verify_indices(indices: tuple[int, ...]) -> None:
    if not ascending(indices):
        raise TxRefused("address indices not sorted and unique")


def _verify_payload(payload: bytes) -> None:
    if len(payload) > PAYLOAD_SIZE_MAX:
        raise TxRefused("payload too large")


def _verify_owned(output: MintOutput | NftMintOutput | PropertyMintOutput | PropertyOwnedOutput) -> None:
    verify_owners(output.owners)


def _verify_nft(output: NftTransferOutput) -> None:
    _verify_payload(output.payload)
    verify_owners(output.owners)


def _verify_mint(operation: MintOperation) -> None:
    _verify_indices(operation.signature_indices)
    verify_owners(operation.mint_output.owners)
    verify_transfer_output(operation.transfer_output)


def _verify_nft_mint(operation: NftMintOperation) -> None:
    _verify_payload(operation.payload)
    for owners in operation.outputs:
        verify_owners(owners)
    _verify_indices(operation.signature_indices)


def _verify_nft_transfer(operation: NftTransferOperation) -> None:
    _verify_indices(operation.signature_indices)
    _verify_nft(operation.output)


def _verify_property_mint(operation: PropertyMintOperation) -> None:
    _verify_indices(operation.signature_indices)
    verify_owners(operation.mint_output.owners)
    verify_owners(operation.owned_output.owners)


def _verify_property_burn(operation: PropertyBurnOperation) -> None:
    _verify_indices(operation.signature_indices)


def _verify_credential(_: Credential | NftCredential | PropertyCredential) -> None:
    """Any list of signatures is well formed; whether they are valid depends on the outputs they unlock."""


_CHECKS: dict[type, Callable[[Any], None]] = {
    TransferInput: verify_transfer_input,
    MintOutput: _verify_owned,
    TransferOutput: verify_transfer_output,
    MintOperation: _verify_mint,
    Credential: _verify_credential,
    NftMintOutput: _verify_owned,
    NftTransferOutput: _verify_nft,
    NftMintOperation: _verify_nft_mint,
    NftTransferOperation: _verify_nft_transfer,
    NftCredential: _verify_credential,
    PropertyMintOutput: _verify_owned,
    PropertyOwnedOutput: _verify_owned,
    PropertyMintOperation: _verify_property_mint,
    PropertyBurnOperation: _verify_property_burn,
    PropertyCredential: _verify_credential,
}
