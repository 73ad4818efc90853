"""The handler of a transaction that is not indexed, but may be on its way into a block."""

from msgspec import UNSET

from icefall.api.data.schema.transactions import PendingTransaction, TransactionParams
from icefall.api.http.structs import address_text, hash_text
from icefall.evm.reading.directory import ChainDirectory, EvmChain
from icefall.wire.evm.types import PlacedTx


async def pending_transaction(params: TransactionParams, chains: ChainDirectory) -> PendingTransaction:
    """The upstream is asked only for what is not indexed."""
    chain = await chains.find(params.chain_id)
    tx_hash = hash_text(params.tx_hash)
    if await chain.blocks.tx(params.tx_hash) is not None:
        return PendingTransaction(chain_id=chain.info.id, tx_hash=tx_hash, tx_state="indexed")
    found = await chain.raw.unindexed_tx(params.tx_hash)
    if found is None:
        return PendingTransaction(chain_id=chain.info.id, tx_hash=tx_hash, tx_state="unknown")
    return await _shown(chain, found)


async def _shown(chain: EvmChain, found: PlacedTx) -> PendingTransaction:
    tx = found.tx
    is_call = bool(tx.to and tx.input)
    abi = (await chain.abis([tx.to])).get(tx.to) if is_call else None
    return PendingTransaction(
        chain_id=chain.info.id,
        tx_hash=hash_text(tx.tx_hash),
        tx_state="pending" if found.block is None else "included",
        block_number=UNSET if found.block is None else str(found.block),
        from_=address_text(tx.sender),
        to=address_text(tx.to) if tx.to else UNSET,
        value=str(tx.value),
        nonce=str(tx.nonce),
        tx_type=tx.type_id,
        gas_limit=str(tx.gas),
        gas_price=str(tx.gas_price) if tx.max_fee is None else UNSET,
        max_fee_per_gas=UNSET if tx.max_fee is None else str(tx.max_fee),
        max_priority_fee_per_gas=UNSET if tx.max_priority_fee is None else str(tx.max_priority_fee),
        method_name=(chain.contracts.name(tx.input, abi) or UNSET) if is_call else UNSET,
    )
