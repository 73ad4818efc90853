"""The indexed chains, and those on which an address occurs."""

import time

from icefall.api.presenting.chains import chain_result
from icefall.api.schema.chains import (
    AddressChains,
    AddressChainsParams,
    ChainParams,
    ChainsParams,
    EvmChainResult,
    EvmChains,
)
from icefall.errors import Unavailable
from icefall.evm.following.health import chain_health
from icefall.evm.reading.directory import ChainDirectory, ChainInfo, EvmChain


async def supported_chains(params: ChainsParams, chains: ChainDirectory) -> EvmChains:
    return EvmChains([await _result(chain) for chain in chains.all() if _matches(chain.info, params)])


def _matches(info: ChainInfo, params: ChainsParams) -> bool:
    return is_of_network(info, params.network) and (params.feature is None or params.feature in info.features)


def is_of_network(info: ChainInfo, network: str | None) -> bool:
    """`fuji` and `testnet` mean the same: any test network. None: any network."""
    return network is None or info.testnet == (network != "mainnet")


async def get_chain(params: ChainParams, chains: ChainDirectory) -> EvmChainResult:
    return await _result(await chains.find(params.chain_id))


async def _result(chain: EvmChain) -> EvmChainResult:
    health = await chain_health(chain.chain, time.time())
    return chain_result(chain.info, await chain.blockchain_id(), is_available=health.is_available)


async def has_blocks(chain: EvmChain) -> bool:
    """Whether at least one block is indexed."""
    try:
        return await chain.chain.tip() is not None
    except Unavailable:
        return False


async def address_chains(params: AddressChainsParams, chains: ChainDirectory) -> AddressChains:
    """A chain without indexed blocks is left out."""
    indexed = [chain for chain in chains.all() if await has_blocks(chain)]
    found = [chain for chain in indexed if await chain.chain.is_known(params.address)]
    return AddressChains([await _result(chain) for chain in found], [])
