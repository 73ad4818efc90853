"""The handler of call data, and decoded data as results show it."""

from collections.abc import Sequence

from msgspec import UNSET, UnsetType

from icefall.api.data.schema.abis import DecodedData, DecodedParameter, TransactionInput
from icefall.api.data.schema.transactions import TransactionParams
from icefall.api.http.structs import hash_text
from icefall.errors import NotFound
from icefall.evm.model import CallType
from icefall.evm.reading.contracts import Decoded
from icefall.evm.reading.directory import ChainDirectory, EvmChain
from icefall.evm.reading.model import FullTxRead
from icefall.wire.evm.abi_decoding import DecodedValue


async def transaction_input(params: TransactionParams, chains: ChainDirectory) -> TransactionInput:
    chain = await chains.find(params.chain_id)
    found = await indexed_tx(chain, params.tx_hash)
    is_call = found.tx.call_type is CallType.CONTRACT_CALL
    abi = (await chain.abis([found.tx.to])).get(found.tx.to) if is_call else None
    return TransactionInput(
        tx_hash=hash_text(params.tx_hash),
        input=hash_text(found.input),
        method_name=(chain.contracts.name(found.input, abi) or UNSET) if is_call else UNSET,
        decoded_input=decoded_data(chain.contracts.call(found.input, abi)) if is_call else UNSET,
    )


async def indexed_tx(chain: EvmChain, tx_hash: bytes) -> FullTxRead:
    """Return a transaction; NotFound if it is not indexed."""
    found = await chain.blocks.tx(tx_hash)
    if found is None:
        raise NotFound(f"chain {chain.info.id} has no indexed transaction {hash_text(tx_hash)}")
    return found


def decoded_data(found: Decoded | None) -> DecodedData | UnsetType:
    if found is None:
        return UNSET
    return DecodedData(signature=found.declared.signature, parameters=decoded_values(found.values))


def decoded_values(values: Sequence[DecodedValue]) -> list[DecodedParameter]:
    return [
        DecodedParameter(
            name=one.name,
            type=one.type,
            value=one.value,
            is_indexed=one.is_indexed or UNSET,
            is_hash=one.is_hash or UNSET,
        )
        for one in values
    ]
