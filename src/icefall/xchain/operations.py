"""What each operation may do with the output it consumes.

A row of `_RULES` names the credential and the output an operation needs, and the check that ties the two together.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from icefall.wire.avm.types import (
    Credential,
    FxOperation,
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
    Verifiable,
)
from icefall.xchain.model import TxRefused


def verify_operation(operation: FxOperation, credential: Verifiable, outputs: Sequence[Output]) -> Owners:
    """The owners who must have signed; TxRefused if the operation does not fit the one output it consumes."""
    rule = _RULES[type(operation)]
    if rule.credential is Credential:  # the first Fx checks the credential first, the others the count
        _verify_credential(rule, credential)
        if len(outputs) != 1:
            raise TxRefused("wrong number of utxos for the operation")
    else:
        if len(outputs) != 1:
            raise TxRefused("wrong number of UTXOs for the operation")
        _verify_credential(rule, credential)
    output = outputs[0]
    if type(output) is not rule.consumes:
        raise TxRefused("wrong utxo type")
    rule.check(operation, output)
    owners: Owners = output.owners
    return owners


def _keeps_mint_owners(operation: MintOperation, output: MintOutput) -> None:
    if operation.mint_output.owners != output.owners:
        raise TxRefused("wrong mint output created from the operation")


def _keeps_group(operation: NftMintOperation, output: NftMintOutput) -> None:
    if operation.group_id != output.group_id:
        raise TxRefused("wrong unique ID provided")


def _keeps_token(operation: NftTransferOperation, output: NftTransferOutput) -> None:
    if operation.output.group_id != output.group_id:
        raise TxRefused("wrong unique ID provided")
    if operation.output.payload != output.payload:
        raise TxRefused("wrong bytes provided")


def _keeps_property_owners(operation: PropertyMintOperation, output: PropertyMintOutput) -> None:
    if operation.mint_output.owners != output.owners:
        raise TxRefused("wrong mint output provided")


def _keeps_nothing(_operation: PropertyBurnOperation, _output: PropertyOwnedOutput) -> None:
    """Nothing is left after burning."""


class _Rule(NamedTuple):
    credential: type
    consumes: type
    check: Callable[[Any, Any], None]


_RULES = {
    MintOperation: _Rule(Credential, MintOutput, _keeps_mint_owners),
    NftMintOperation: _Rule(NftCredential, NftMintOutput, _keeps_group),
    NftTransferOperation: _Rule(NftCredential, NftTransferOutput, _keeps_token),
    PropertyMintOperation: _Rule(PropertyCredential, PropertyMintOutput, _keeps_property_owners),
    PropertyBurnOperation: _Rule(PropertyCredential, PropertyOwnedOutput, _keeps_nothing),
}


def _verify_credential(rule: _Rule, credential: Verifiable) -> None:
    if type(credential) is not rule.credential:
        raise TxRefused("wrong credential type")
