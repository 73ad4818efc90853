"""Transactions and blocks as the node's JSON: same keys, same order, same bytes.

The text is built by hand because the order of keys differs between types and no key is ever absent. Addresses
carry the alias and network of the chain that answers, so both are passed in.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

from icefall.wire.avm.types import (
    BaseTx,
    Block,
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
    TransferOutput,
    Tx,
)
from icefall.wire.errors import WireError
from icefall.wire.ids import AVM_FX_IDS, EMPTY_ID, NFT_FX_ID, PROPERTY_FX_ID, SECP256K1_FX_ID
from icefall.wire.text import cb58
from icefall.wire.text.bech32 import address_text
from icefall.wire.text.go_text import json_string

_SECP, _NFT, _PROPERTY = (cb58.encode(fx_id) for fx_id in (SECP256K1_FX_ID, NFT_FX_ID, PROPERTY_FX_ID))
_EMPTY = cb58.encode(EMPTY_ID)
_id = lru_cache(maxsize=4096)(cb58.encode)  # assets and chains recur within and between transactions


class ChainNaming(NamedTuple):
    """The alias of the answering chain and the address prefix of its network, with which addresses are written."""

    chain: str
    hrp: str


def tx_json(tx: Tx, naming: ChainNaming) -> bytes:
    """Write a transaction as `avm.getTx` shows it."""
    return _tx(tx, naming).encode()


def block_json(block: Block, naming: ChainNaming) -> bytes:
    """Write a block as `avm.getBlock` shows it."""
    txs = ",".join([_tx(tx, naming) for tx in block.txs])
    return (
        f'{{"parentID":"{_id(block.parent_id)}","height":{block.height},"time":{block.time},'
        f'"merkleRoot":"{_id(block.merkle_root)}","txs":[{txs}],"id":"{cb58.encode(block.block_id)}"}}'
    ).encode()


def _tx(tx: Tx, naming: ChainNaming) -> str:
    credentials = ",".join([_credential(credential) for credential in tx.credentials])
    special = _SPECIAL[type(tx.unsigned)](tx.unsigned, naming)
    return (
        f'{{"unsignedTx":{{{_base(tx.unsigned, naming)}{special}}},"credentials":[{credentials}],'
        f'"id":"{cb58.encode(tx.txid)}"}}'
    )


def _base(tx: BaseTx, naming: ChainNaming) -> str:
    return (
        f'"networkID":{tx.network_id},"blockchainID":"{_id(tx.blockchain_id)}",'
        f'"outputs":{_outputs(tx.outputs, naming)},"inputs":{_inputs(tx.inputs)},"memo":"0x{tx.memo.hex()}"'
    )


def _create_asset(tx: CreateAssetTx, naming: ChainNaming) -> str:
    states = ",".join([_state(state, naming) for state in tx.initial_states])
    return (
        f',"name":{json_string(tx.name)},"symbol":{json_string(tx.symbol)},"denomination":{tx.denomination},'
        f'"initialStates":[{states}]'
    )


def _operations(tx: OperationTx, naming: ChainNaming) -> str:
    operations = ",".join([_operation(operation, naming) for operation in tx.operations])
    return f',"operations":[{operations}]'


def _import(tx: ImportTx, _naming: ChainNaming) -> str:
    return f',"sourceChain":"{_id(tx.source_chain)}","importedInputs":{_inputs(tx.imported_inputs)}'


def _export(tx: ExportTx, naming: ChainNaming) -> str:
    return (
        f',"destinationChain":"{_id(tx.destination_chain)}","exportedOutputs":{_outputs(tx.exported_outputs, naming)}'
    )


def _outputs(outputs: tuple[TransferableOutput, ...], naming: ChainNaming) -> str:
    rows = [
        f'{{"assetID":"{_id(out.asset_id)}","fxID":"{_SECP}","output":{transfer_output_json(out.output, naming)}}}'
        for out in outputs
    ]
    return f"[{','.join(rows)}]"


def _inputs(inputs: tuple[TransferableInput, ...]) -> str:
    rows = [
        f'{{"txID":"{_id(at.txid)}","outputIndex":{at.output_index},"assetID":"{_id(at.asset_id)}","fxID":"{_SECP}",'
        f'"input":{{"amount":{at.input.amount},"signatureIndices":{numbers_json(at.input.signature_indices)}}}}}'
        for at in inputs
    ]
    return f"[{','.join(rows)}]"


def _state(state: InitialState, naming: ChainNaming) -> str:
    fx_id = cb58.encode(AVM_FX_IDS[state.fx_index]) if state.fx_index < len(AVM_FX_IDS) else _EMPTY
    outputs = ",".join([_output(output, naming) for output in state.outputs])
    return f'{{"fxIndex":{state.fx_index},"fxID":"{fx_id}","outputs":[{outputs}]}}'


def _operation(operation: Operation, naming: ChainNaming) -> str:
    inputs = ",".join([f'{{"txID":"{_id(at.txid)}","outputIndex":{at.output_index}}}' for at in operation.utxo_ids])
    fx_id, render = _OPERATIONS[type(operation.operation)]
    body = render(operation.operation, naming)
    return f'{{"assetID":"{_id(operation.asset_id)}","inputIDs":[{inputs}],"fxID":"{fx_id}","operation":{{{body}}}}}'


def _credential(credential: Any) -> str:
    fx_id = _CREDENTIALS.get(type(credential))
    if fx_id is None:
        raise WireError(f"{type(credential).__name__} in the position of a credential")
    signatures = ",".join([f'"0x{signature.hex()}"' for signature in credential.signatures])
    return f'{{"fxID":"{fx_id}","credential":{{"signatures":[{signatures}]}}}}'


def numbers_json(values: tuple[int, ...]) -> str:
    """Write a list of numbers."""
    return f"[{','.join(map(str, values))}]"


def _addresses(owners: Owners, naming: ChainNaming) -> str:
    chain, hrp = naming
    quoted = ",".join([_address(chain, hrp, address) for address in owners.addresses])
    return f'"addresses":[{quoted}]'


@lru_cache(maxsize=4096)
def _address(chain: str, hrp: str, address: bytes) -> str:
    return json_string(address_text(chain, hrp, address))


def owners_json(owners: Owners, naming: ChainNaming) -> str:
    """Write the owners of an output that has no amount."""
    return f'{{{_addresses(owners, naming)},"locktime":{owners.locktime},"threshold":{owners.threshold}}}'


def transfer_output_json(output: TransferOutput, naming: ChainNaming) -> str:
    """Write an output with its amount, whose key stands among those of the owners."""
    owners = output.owners
    return (
        f'{{{_addresses(owners, naming)},"amount":{output.amount},"locktime":{owners.locktime},'
        f'"threshold":{owners.threshold}}}'
    )


def _nft_mint_output(output: NftMintOutput, naming: ChainNaming) -> str:
    owners = output.owners
    return (
        f'{{{_addresses(owners, naming)},"groupID":{output.group_id},"locktime":{owners.locktime},'
        f'"threshold":{owners.threshold}}}'
    )


def _nft_transfer_output(output: NftTransferOutput, naming: ChainNaming) -> str:
    owners = output.owners
    return (
        f'{{{_addresses(owners, naming)},"groupID":{output.group_id},"locktime":{owners.locktime},'
        f'"payload":"0x{output.payload.hex()}","threshold":{owners.threshold}}}'
    )


def _owned_output(output: MintOutput | PropertyMintOutput | PropertyOwnedOutput, naming: ChainNaming) -> str:
    return owners_json(output.owners, naming)


def _output(output: Any, naming: ChainNaming) -> str:
    return _OUTPUTS[type(output)](output, naming)


def _mint_operation(op: MintOperation, naming: ChainNaming) -> str:
    return (
        f'"mintInput":{_signers(op)},"mintOutput":{_owned_output(op.mint_output, naming)},'
        f'"transferOutput":{transfer_output_json(op.transfer_output, naming)}'
    )


def _nft_mint_operation(op: NftMintOperation, naming: ChainNaming) -> str:
    outputs = ",".join([owners_json(owners, naming) for owners in op.outputs])
    return f'"mintInput":{_signers(op)},"groupID":{op.group_id},"payload":"0x{op.payload.hex()}","outputs":[{outputs}]'


def _nft_transfer_operation(op: NftTransferOperation, naming: ChainNaming) -> str:
    return f'"input":{_signers(op)},"output":{_nft_transfer_output(op.output, naming)}'


def _property_mint_operation(op: PropertyMintOperation, naming: ChainNaming) -> str:
    return (
        f'"mintInput":{_signers(op)},"mintOutput":{_owned_output(op.mint_output, naming)},'
        f'"ownedOutput":{_owned_output(op.owned_output, naming)}'
    )


def _property_burn_operation(op: PropertyBurnOperation, _naming: ChainNaming) -> str:
    return f'"signatureIndices":{numbers_json(op.signature_indices)}'


def _signers(op: MintOperation | NftMintOperation | NftTransferOperation | PropertyMintOperation) -> str:
    return f'{{"signatureIndices":{numbers_json(op.signature_indices)}}}'


_Render = Callable[[Any, ChainNaming], str]

_SPECIAL: dict[type, _Render] = {
    BaseTx: lambda _tx, _naming: "",
    CreateAssetTx: _create_asset,
    OperationTx: _operations,
    ImportTx: _import,
    ExportTx: _export,
}
_OUTPUTS: dict[type, _Render] = {
    TransferOutput: transfer_output_json,
    MintOutput: _owned_output,
    NftMintOutput: _nft_mint_output,
    NftTransferOutput: _nft_transfer_output,
    PropertyMintOutput: _owned_output,
    PropertyOwnedOutput: _owned_output,
}
_OPERATIONS: dict[type, tuple[str, _Render]] = {
    MintOperation: (_SECP, _mint_operation),
    NftMintOperation: (_NFT, _nft_mint_operation),
    NftTransferOperation: (_NFT, _nft_transfer_operation),
    PropertyMintOperation: (_PROPERTY, _property_mint_operation),
    PropertyBurnOperation: (_PROPERTY, _property_burn_operation),
}
_CREDENTIALS: dict[type, str] = {Credential: _SECP, NftCredential: _NFT, PropertyCredential: _PROPERTY}
