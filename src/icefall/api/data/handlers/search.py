"""Search on all chains: chains, blocks, transactions, addresses, and tokens by a part of their name or symbol."""

from collections.abc import Sequence
from typing import cast

from msgspec import UNSET

from icefall.api.data.handlers.chains import has_blocks
from icefall.api.data.schema.explorer import (
    Found,
    FoundAddress,
    FoundBlock,
    FoundChain,
    FoundToken,
    FoundTransaction,
    SearchParams,
    SearchResult,
)
from icefall.api.data.schema.tokens import ErcType
from icefall.api.data.searched_text import HexRange, SearchedText, read_text
from icefall.api.http.structs import address_text, hash_text
from icefall.evm.reading.chain import TxPlace
from icefall.evm.reading.directory import ChainDirectory, ChainInfo, EvmChain
from icefall.evm.reading.model import BlockRead
from icefall.evm.reading.tokens import ContractRead, TokenRead

PREFIXED_MAX = 10  # things of a kind on a chain that are listed for the beginning of a hash or an address


async def search(params: SearchParams, chains: ChainDirectory) -> SearchResult:
    """Search on all chains. Names come last: a block number may also be a part of a token's name."""
    wanted, size = read_text(params.query), params.page_size
    found: list[Found] = [_chain(chain.info) for chain in chains.all() if await _is_named(chain, params.query)]
    indexed = [chain for chain in chains.all() if await has_blocks(chain)]
    for chain in indexed:
        found += await _exact(chain, wanted)
    for chain in indexed:
        found += await _beginning(chain, wanted, min(size, PREFIXED_MAX))
    if not wanted.is_whole:
        known = {(one.chain_id, one.address) for one in found if isinstance(one, FoundToken)}
        for chain in indexed:
            tokens = [_token(chain, one) for one in await chain.tokens.search(params.query, size)]
            found += [one for one in tokens if (one.chain_id, one.address) not in known]
    return SearchResult(results=found[:size])


async def _is_named(chain: EvmChain, text: str) -> bool:
    """Whether the text is a chain's ID, or a part of its name or its native token's; one character: its beginning."""
    info = chain.info
    low, names = text.lower(), (info.shown_name.lower(), info.token.name.lower())
    if text in (info.id, await chain.blockchain_id(), *info.aliases) or low == info.token.symbol.lower():
        return True
    return any(low in name for name in names) if len(low) > 1 else any(name.startswith(low) for name in names)


async def _exact(chain: EvmChain, wanted: SearchedText) -> list[Found]:
    if wanted.address is not None:
        return await _address(chain, wanted.address)
    if wanted.hash is not None:
        return await _hash(chain, wanted.hash)
    return [] if wanted.number is None else _blocks(chain, [await chain.blocks.block(wanted.number)])


async def _beginning(chain: EvmChain, wanted: SearchedText, limit: int) -> list[Found]:
    """What begins with the digits: blocks, transactions and addresses, some of each."""
    found: list[Found] = []
    if wanted.hash_prefix is not None:
        found += await _hashes(chain, wanted.hash_prefix, limit)
    if wanted.address_prefix is not None:
        between = wanted.address_prefix
        addresses = await chain.tokens.addresses_between(between.first, between.last, limit)
        found += [_known_address(chain, address, contract) for address, contract in addresses]
    return found


async def _hashes(chain: EvmChain, between: HexRange, limit: int) -> list[Found]:
    blocks = await chain.blocks.blocks_between(between.first, between.last, limit)
    txs = await chain.blocks.txs_between(between.first, between.last, limit)
    return [*_blocks(chain, blocks), *(_transaction(chain, one) for one in txs)]


async def _address(chain: EvmChain, address: bytes) -> list[Found]:
    found = await chain.tokens.addresses_between(address, address, 1)
    return [_known_address(chain, address, contract) for _, contract in found]


async def _hash(chain: EvmChain, wanted: bytes) -> list[Found]:
    full = await chain.blocks.tx(wanted)
    if full is None:
        return _blocks(chain, [await chain.blocks.block(wanted)])
    return [_transaction(chain, TxPlace(wanted, full.tx.location.block_number, full.tx.location.time))]


def _chain(info: ChainInfo) -> FoundChain:
    return FoundChain(chain_id=info.id, chain_name=info.shown_name, symbol=info.token.symbol)


def _transaction(chain: EvmChain, tx: TxPlace) -> FoundTransaction:
    return FoundTransaction(
        chain_id=chain.info.id,
        chain_name=chain.info.shown_name,
        tx_hash=hash_text(tx.tx_hash),
        block_number=str(tx.block_number),
        block_timestamp=tx.time,
    )


def _blocks(chain: EvmChain, blocks: Sequence[BlockRead | None]) -> list[Found]:
    return [
        FoundBlock(
            chain_id=chain.info.id,
            chain_name=chain.info.shown_name,
            block_number=str(block.number),
            block_hash=hash_text(block.block_hash),
            block_timestamp=block.time,
        )
        for block in blocks
        if block is not None
    ]


def _known_address(chain: EvmChain, address: bytes, contract: ContractRead) -> Found:
    if contract.erc_type:
        return _token(
            chain, TokenRead(0, address, 0, contract.erc_type, contract.name, contract.symbol, contract.decimals)
        )
    return FoundAddress(
        chain_id=chain.info.id,
        chain_name=chain.info.shown_name,
        address=address_text(address),
        is_contract=contract.has_code,
    )


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
