"""Search on all chains: blocks, transactions, addresses, and tokens by the beginning of their name or symbol."""

import re
from typing import cast

from msgspec import UNSET

from icefall.api.data.handlers.chains import has_blocks
from icefall.api.data.schema.explorer import (
    Found,
    FoundAddress,
    FoundBlock,
    FoundToken,
    FoundTransaction,
    SearchParams,
    SearchResult,
)
from icefall.api.data.schema.tokens import ErcType
from icefall.api.http.structs import address_text, hash_text
from icefall.evm.reading.directory import ChainDirectory, EvmChain
from icefall.evm.reading.model import BlockRead
from icefall.evm.reading.tokens import TokenRead

_ADDRESS = re.compile(r"0x[0-9a-fA-F]{40}")
_HASH = re.compile(r"0x[0-9a-fA-F]{64}")
_NUMBER = re.compile(r"[0-9]{1,18}")


async def search(params: SearchParams, chains: ChainDirectory) -> SearchResult:
    """Search on all chains. Blocks come first: a block number may also be the beginning of a token's name."""
    text, found = params.query, list[Found]()
    indexed = [chain for chain in chains.all() if await has_blocks(chain)]
    for chain in indexed:
        if _ADDRESS.fullmatch(text):
            found += await _address(chain, bytes.fromhex(text[2:]))
        elif _HASH.fullmatch(text):
            found += await _hash(chain, bytes.fromhex(text[2:]))
        elif _NUMBER.fullmatch(text):
            found += _block(chain, await chain.blocks.block(int(text)))
    if not (_ADDRESS.fullmatch(text) or _HASH.fullmatch(text)):
        for chain in indexed:
            found += [_token(chain, one) for one in await chain.tokens.search(text, params.page_size)]
    return SearchResult(results=found[: params.page_size])


async def _address(chain: EvmChain, address: bytes) -> list[Found]:
    if not await chain.blocks.is_known(address):
        return []
    contract = await chain.tokens.contract(address)
    if contract is not None and contract.erc_type:
        token = TokenRead(0, address, 0, contract.erc_type, contract.name, contract.symbol, contract.decimals)
        return [_token(chain, token)]
    is_contract = (contract is not None and contract.has_code) or await chain.transfers.deployment(address) is not None
    return [
        FoundAddress(
            chain_id=chain.info.id,
            chain_name=chain.info.shown_name,
            address=address_text(address),
            is_contract=is_contract,
        )
    ]


async def _hash(chain: EvmChain, wanted: bytes) -> list[Found]:
    full = await chain.blocks.tx(wanted)
    if full is None:
        return _block(chain, await chain.blocks.block(wanted))
    return [
        FoundTransaction(
            chain_id=chain.info.id,
            chain_name=chain.info.shown_name,
            tx_hash=hash_text(wanted),
            block_number=str(full.tx.location.block_number),
            block_timestamp=full.tx.location.time,
        )
    ]


def _block(chain: EvmChain, block: BlockRead | None) -> list[Found]:
    if block is None:
        return []
    return [
        FoundBlock(
            chain_id=chain.info.id,
            chain_name=chain.info.shown_name,
            block_number=str(block.number),
            block_hash=hash_text(block.block_hash),
            block_timestamp=block.time,
        )
    ]


def _token(chain: EvmChain, token: TokenRead) -> FoundToken:
    return FoundToken(
        chain_id=chain.info.id,
        chain_name=chain.info.shown_name,
        address=address_text(token.address),
        erc_type=cast(ErcType, token.erc_type),
        name=token.name or UNSET,
        symbol=token.symbol or UNSET,
        decimals=UNSET if token.decimals is None else token.decimals,
    )
