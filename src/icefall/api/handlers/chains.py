"""Which chains there are, and which of them know an address."""

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
from icefall.evm.reading.directory import ChainDirectory, ChainInfo, EvmChain


async def supported_chains(params: ChainsParams, chains: ChainDirectory) -> EvmChains:
    return EvmChains([await _told(chain) for chain in chains.all() if _fits(chain.info, params)])


def _fits(info: ChainInfo, params: ChainsParams) -> bool:
    """`fuji` and `testnet` mean the same: any test network."""
    wants_test = params.network != "mainnet"
    return (params.network is None or info.testnet == wants_test) and (params.feature is None or params.feature in info.features)


async def get_chain(params: ChainParams, chains: ChainDirectory) -> EvmChainResult:
    return await _told(await chains.find(params.chain_id))


async def _told(chain: EvmChain) -> EvmChainResult:
    return chain_result(chain.info, await chain.blockchain_id(), is_served=await _is_served(chain))


async def _is_served(chain: EvmChain) -> bool:
    """Whether there is a block to answer from."""
    try:
        return await chain.chain.tip() is not None
    except Unavailable:
        return False


async def address_chains(params: AddressChainsParams, chains: ChainDirectory) -> AddressChains:
    """A chain of which nothing is indexed yet knows nobody."""
    served = [chain for chain in chains.all() if await _is_served(chain)]
    knowing = [chain for chain in served if await chain.chain.is_known(params.address)]
    return AddressChains([await _told(chain) for chain in knowing], [])
