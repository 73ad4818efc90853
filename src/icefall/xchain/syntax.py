"""Checks of a transaction by itself, before any state is read.

The order of the checks is the node's: a transaction with several faults is refused for the first.
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import Any

from icefall.wire.avm.parts import pack_operation, pack_part
from icefall.wire.avm.types import (
    BaseTx,
    CreateAssetTx,
    Credential,
    ExportTx,
    ImportTx,
    InitialState,
    MintOperation,
    MintOutput,
    NftCredential,
    NftMintOperation,
    NftMintOutput,
    NftTransferOperation,
    NftTransferOutput,
    Operation,
    OperationTx,
    Owners,
    PropertyBurnOperation,
    PropertyCredential,
    PropertyMintOperation,
    PropertyMintOutput,
    PropertyOwnedOutput,
    TransferableInput,
    TransferableOutput,
    TransferInput,
    TransferOutput,
    Tx,
)
from icefall.wire.ids import EMPTY_ID
from icefall.wire.text.go_text import utf8
from icefall.xchain.model import ChainRules, TxRefused

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


MEMO_SIZE_MAX = 256
NAME_SIZE_MAX = 128
SYMBOL_SIZE_MAX = 4
DENOMINATION_MAX = 32
AMOUNT_MAX = 2**64 - 1

_Outputs = tuple[TransferableOutput, ...]
_Inputs = tuple[TransferableInput, ...]

# What Go calls white space; Python's own strip() would also take \x1c to \x1f.
_WHITE_SPACE = (
    "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029"
    "\u202f\u205f\u3000"
)
_NAME_CHARS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789 ")
_SYMBOL_CHARS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZ")


def verify_syntax(tx: Tx, rules: ChainRules) -> None:
    """Refuses a transaction that no state could make valid."""
    unsigned = tx.unsigned
    expected = _KINDS[type(unsigned)](unsigned, rules)
    for credential in tx.credentials:
        verify_part(credential)
    if len(tx.credentials) != expected:
        raise TxRefused(f"wrong number of credentials: {len(tx.credentials)} != {expected}")


# One function per type. Each returns how many credentials the transaction must carry.


def _verify_base(tx: BaseTx, rules: ChainRules) -> int:
    _verify_chain(tx, rules)
    _verify_flow(rules, rules.tx_fee, (tx.outputs,), (tx.inputs,))
    return len(tx.inputs)


def _verify_create_asset(tx: CreateAssetTx, rules: ChainRules) -> int:
    _verify_names(tx)
    _verify_chain(tx, rules)
    _verify_flow(rules, rules.create_asset_tx_fee, (tx.outputs,), (tx.inputs,))
    for state in tx.initial_states:
        _verify_state(state, rules)
    if not ascending([state.fx_index for state in tx.initial_states]):
        raise TxRefused("initial states not sorted and unique")
    return len(tx.inputs)


def _verify_operation_tx(tx: OperationTx, rules: ChainRules) -> int:
    if not tx.operations:
        raise TxRefused("an operationTx must have at least one operation")
    _verify_chain(tx, rules)
    _verify_flow(rules, rules.tx_fee, (tx.outputs,), (tx.inputs,))
    spent = {(at.txid, at.output_index) for at in tx.inputs}
    for operation in tx.operations:
        _verify_operation(operation, spent)
    if len(tx.operations) > 1 and not ascending([pack_operation(operation) for operation in tx.operations]):
        raise TxRefused("operations not sorted and unique")
    return len(tx.inputs) + len(tx.operations)


def _verify_import(tx: ImportTx, rules: ChainRules) -> int:
    if not tx.imported_inputs:
        raise TxRefused("no import inputs")
    _verify_chain(tx, rules)
    _verify_flow(rules, rules.tx_fee, (tx.outputs,), (tx.inputs, tx.imported_inputs))
    return len(tx.inputs) + len(tx.imported_inputs)


def _verify_export(tx: ExportTx, rules: ChainRules) -> int:
    if not tx.exported_outputs:
        raise TxRefused("no export outputs")
    _verify_chain(tx, rules)
    _verify_flow(rules, rules.tx_fee, (tx.outputs, tx.exported_outputs), (tx.inputs,))
    return len(tx.inputs)


_KINDS: dict[type, Callable[[Any, ChainRules], int]] = {
    BaseTx: _verify_base,
    CreateAssetTx: _verify_create_asset,
    OperationTx: _verify_operation_tx,
    ImportTx: _verify_import,
    ExportTx: _verify_export,
}


def _verify_chain(tx: BaseTx, rules: ChainRules) -> None:
    if tx.network_id != rules.network_id:
        raise TxRefused("tx has wrong network ID")
    if tx.blockchain_id != rules.chain_id:
        raise TxRefused("tx has wrong chain ID")
    if len(tx.memo) > MEMO_SIZE_MAX:
        raise TxRefused(f"memo exceeds maximum length: {len(tx.memo)} > {MEMO_SIZE_MAX}")


def _verify_flow(rules: ChainRules, fee: int, output_lists: Iterable[_Outputs], input_lists: Iterable[_Inputs]) -> None:
    """Check that of every asset at least as much goes in as comes out, the fee included. What is left over is
    burned."""
    produced = {rules.fee_asset_id: fee}
    for outputs in output_lists:
        _add_outputs(outputs, produced)
    consumed: dict[bytes, int] = {}
    for inputs in input_lists:
        _add_inputs(inputs, consumed)
    if max(produced.values()) > AMOUNT_MAX or max(consumed.values(), default=0) > AMOUNT_MAX:
        raise TxRefused("overflow")
    for asset_id, amount in produced.items():
        if amount > consumed.get(asset_id, 0):
            raise TxRefused("insufficient funds")


def _add_outputs(outputs: _Outputs, produced: dict[bytes, int]) -> None:
    for row in outputs:
        asset_id, output = row.asset_id, row.output
        _verify_asset_id(asset_id)
        verify_transfer_output(output)
        produced[asset_id] = produced.get(asset_id, 0) + output.amount
    if len(outputs) > 1 and not sorted_loosely([_output_order(row) for row in outputs]):
        raise TxRefused("outputs not sorted")


def _output_order(row: TransferableOutput) -> tuple[Any, ...]:
    """Compares like the asset ID followed by the output's bytes, without packing them."""
    owners = row.output.owners
    addresses = owners.addresses
    return row.asset_id, row.output.amount, owners.locktime, owners.threshold, len(addresses), addresses


def _add_inputs(inputs: _Inputs, consumed: dict[bytes, int]) -> None:
    for row in inputs:
        asset_id, given = row.asset_id, row.input
        _verify_asset_id(asset_id)
        verify_transfer_input(given)
        consumed[asset_id] = consumed.get(asset_id, 0) + given.amount
    if len(inputs) > 1 and not ascending([(row.txid, row.output_index) for row in inputs]):
        raise TxRefused("inputs not sorted and unique")


def _verify_asset_id(asset_id: bytes) -> None:
    if asset_id == EMPTY_ID:
        raise TxRefused("empty asset ID is not valid")


def _verify_names(tx: CreateAssetTx) -> None:
    name_size, symbol_size = len(utf8(tx.name)), len(utf8(tx.symbol))
    if name_size < 1:
        raise TxRefused("name is too short, minimum size is 1")
    if name_size > NAME_SIZE_MAX:
        raise TxRefused(f"name is too long, maximum size is {NAME_SIZE_MAX}")
    if symbol_size < 1:
        raise TxRefused("symbol is too short, minimum size is 1")
    if symbol_size > SYMBOL_SIZE_MAX:
        raise TxRefused(f"symbol is too long, maximum size is {SYMBOL_SIZE_MAX}")
    if not tx.initial_states:
        raise TxRefused("assets must support at least one Fx")
    if tx.denomination > DENOMINATION_MAX:
        raise TxRefused("denomination is too large")
    if tx.name.strip(_WHITE_SPACE) != tx.name:
        raise TxRefused("unexpected whitespace provided")
    if not _NAME_CHARS.issuperset(tx.name):
        raise TxRefused("asset's name must be made up of only letters and numbers")
    if not _SYMBOL_CHARS.issuperset(tx.symbol):
        raise TxRefused("asset's symbol must be all upper case letters")


def _verify_state(state: InitialState, rules: ChainRules) -> None:
    if state.fx_index >= rules.fx_count:
        raise TxRefused("unknown feature extension")
    for output in state.outputs:
        verify_part(output)
    if len(state.outputs) > 1 and not sorted_loosely([pack_part(output) for output in state.outputs]):
        raise TxRefused("outputs not sorted")


def _verify_operation(operation: Operation, spent: set[tuple[bytes, int]]) -> None:
    """An operation that consumes nothing the transaction already spends; adds what it consumes to `spent`."""
    consumed = [(at.txid, at.output_index) for at in operation.utxo_ids]
    if not ascending(consumed):
        raise TxRefused("utxo IDs not sorted and unique")
    _verify_asset_id(operation.asset_id)
    verify_part(operation.operation)
    for at in consumed:
        if at in spent:
            raise TxRefused("inputs attempt to double spend an input")
        spent.add(at)
