"""Hypothesis strategies for every value of the asset chain."""

from typing import Any

from hypothesis import strategies as st

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
    Utxo,
    UtxoId,
)

Values = st.SearchStrategy[Any]

u32 = st.integers(0, 2**32 - 1)
u64 = st.integers(0, 2**64 - 1)
ids = st.binary(min_size=32, max_size=32)
payloads = st.binary(max_size=40)
names = st.text(max_size=20) | st.binary(max_size=10).map(lambda raw: raw.decode(errors="surrogateescape"))


def several(values: Values, most: int = 3) -> Values:
    return st.lists(values, max_size=most).map(tuple)


indices = several(u32)
owners = st.builds(Owners, u64, u32, several(st.binary(min_size=20, max_size=20)))
signatures = several(st.binary(min_size=65, max_size=65))

transfer_outputs = st.builds(TransferOutput, u64, owners)
mint_outputs = st.builds(MintOutput, owners)
nft_outputs = st.builds(NftTransferOutput, u32, payloads, owners)
property_mint_outputs = st.builds(PropertyMintOutput, owners)
property_owned_outputs = st.builds(PropertyOwnedOutput, owners)
outputs: Values = st.one_of(
    transfer_outputs,
    mint_outputs,
    st.builds(NftMintOutput, u32, owners),
    nft_outputs,
    property_mint_outputs,
    property_owned_outputs,
)
fx_operations: Values = st.one_of(
    st.builds(MintOperation, indices, mint_outputs, transfer_outputs),
    st.builds(NftMintOperation, indices, u32, payloads, several(owners)),
    st.builds(NftTransferOperation, indices, nft_outputs),
    st.builds(PropertyMintOperation, indices, property_mint_outputs, property_owned_outputs),
    st.builds(PropertyBurnOperation, indices),
)
credentials: Values = st.one_of(
    st.builds(Credential, signatures), st.builds(NftCredential, signatures), st.builds(PropertyCredential, signatures)
)
transfer_inputs = st.builds(TransferInput, u64, indices)
verifiables: Values = st.one_of(credentials, outputs, fx_operations, transfer_inputs)
transferable_outputs = st.builds(TransferableOutput, ids, transfer_outputs)
transferable_inputs = st.builds(TransferableInput, ids, u32, ids, transfer_inputs)
operations = st.builds(Operation, ids, several(st.builds(UtxoId, ids, u32)), fx_operations)
states = st.builds(InitialState, u32, several(outputs))
utxos = st.builds(Utxo, ids, u32, ids, outputs)

_base = (u32, ids, several(transferable_outputs), several(transferable_inputs), payloads)
create_asset_txs = st.builds(CreateAssetTx, *_base, names, names, st.integers(0, 255), several(states))
unsigned_txs: Values = st.one_of(
    st.builds(BaseTx, *_base),
    create_asset_txs,
    st.builds(OperationTx, *_base, several(operations)),
    st.builds(ImportTx, *_base, ids, several(transferable_inputs)),
    st.builds(ExportTx, *_base, ids, several(transferable_outputs)),
)
