"""Handlers of the indexed chains: their list, the chains on which an address occurs, and how far one is indexed."""

import time
from typing import Literal, cast

from msgspec import UNSET, UnsetType

from icefall.api.data.schema.chains import (
    AddressChains,
    AddressChainsParams,
    ChainParams,
    ChainsParams,
    EvmChainResult,
    EvmChains,
    UtilityAddresses,
)
from icefall.api.data.schema.explorer import IndexingParams, IndexingResult, UpstreamResult
from icefall.api.data.schema.tokens import NetworkToken
from icefall.api.http.structs import address_text
from icefall.errors import Unavailable
from icefall.evm.health import chain_health
from icefall.evm.reading.directory import ChainDirectory, ChainInfo, EvmChain, TokenInfo
from icefall.evm.status import REFOLD_META, ChainStatus, decode_refold, decode_status

Features = list[Literal["nftIndexing", "webhooks", "teleporter"]]


def chain_result(info: ChainInfo, blockchain_id: str, *, is_available: bool) -> EvmChainResult:
    return EvmChainResult(
        chain_id=info.id,
        status="OK" if is_available else "UNAVAILABLE",
        chain_name=info.shown_name,
        description=info.description,
        platform_chain_id=blockchain_id or UNSET,
        subnet_id=info.subnet_id or UNSET,
        vm_id=info.vm_id or UNSET,
        explorer_url=info.explorer_url or UNSET,
        rpc_url=info.rpc_url,
        ws_url=info.ws_url or UNSET,
        is_testnet=info.testnet,
        utility_addresses=UtilityAddresses(_checksummed(info.multicall)) if info.multicall else UNSET,
        network_token=network_token(info.token),
        chain_logo_uri=info.logo or UNSET,
        private=info.private,
        enabled_features=cast(Features, list(info.features)),
    )


def _checksummed(address: str) -> str:
    return address_text(bytes.fromhex(address[2:]))


def network_token(token: TokenInfo) -> NetworkToken:
    return NetworkToken(token.name, token.symbol, token.decimals, token.logo_uri or UNSET, token.description or UNSET)


async def supported_chains(params: ChainsParams, chains: ChainDirectory) -> EvmChains:
    return EvmChains([await _result(chain) for chain in chains.all() if _matches(chain.info, params)])


def _matches(info: ChainInfo, params: ChainsParams) -> bool:
    return is_of_network(info, params.network) and (params.feature is None or params.feature in info.features)


def is_of_network(info: ChainInfo, network: str | None) -> bool:
    """Whether a chain is of a network. `fuji` and `testnet` mean the same, any test network; None is any network."""
    return network is None or info.testnet == (network != "mainnet")


async def get_chain(params: ChainParams, chains: ChainDirectory) -> EvmChainResult:
    return await _result(await chains.find(params.chain_id))


async def _result(chain: EvmChain) -> EvmChainResult:
    health = await chain_health(chain.blocks, time.time())
    return chain_result(chain.info, await chain.blockchain_id(), is_available=health.is_available)


async def has_blocks(chain: EvmChain) -> bool:
    """Whether at least one block is indexed."""
    try:
        return await chain.blocks.tip() is not None
    except Unavailable:
        return False


async def address_chains(params: AddressChainsParams, chains: ChainDirectory) -> AddressChains:
    """List the chains on which an address occurs. A chain without indexed blocks is left out."""
    indexed = [chain for chain in chains.all() if await has_blocks(chain)]
    found = [chain for chain in indexed if await chain.blocks.is_known(params.address)]
    return AddressChains([await _result(chain) for chain in found], [])


async def indexing(params: IndexingParams, chains: ChainDirectory) -> IndexingResult:
    chain = await chains.find(params.chain_id)
    health = await chain_health(chain.blocks, time.time())
    text = await chain.blocks.meta("status")
    status = decode_status(text) if text is not None else ChainStatus(0.0, False)
    lowest, tip = await chain.blocks.lowest(), await chain.blocks.tip()
    last = tip.number if tip is not None else None
    refolded = await chain.blocks.meta(REFOLD_META)
    refold = decode_refold(refolded) if refolded is not None else None
    return IndexingResult(
        chain_id=chain.info.id,
        first_block=_number(lowest),
        last_block=_number(last),
        head_block=_number(status.head),
        is_synced=health.synced,
        is_running=not status.stopped and health.is_fresh,
        blocks_per_second=status.blocks_per_s if health.is_fresh else 0.0,
        eta_seconds=_eta_s(status, last) if health.is_fresh else UNSET,
        audited_to_block=_number(status.audited_to if status.audited_to >= 0 else None),
        audits_dropped=status.counts.get("audits_dropped", 0),
        words_dropped=status.counts.get("words_dropped", 0),
        logs_stored_from_block=await _stored_from(chain, "logs_from"),
        calls_stored_from_block=await _stored_from(chain, "calls_from"),
        refolded_to_block=_number(refold.next - 1 if refold is not None else None),
        refold_target_block=_number(refold.end - 1 if refold is not None else None),
        problem=health.problem or UNSET,
        limitations=list(status.degraded),
        upstreams=[
            UpstreamResult(name=one.name, state=one.state, problem=one.problem or UNSET) for one in status.upstreams
        ],
    )


def _eta_s(status: ChainStatus, last: int | None) -> int | UnsetType:
    """The seconds until the target is stored; absent while nothing is stored."""
    if status.target is None or status.blocks_per_s <= 0:
        return 0 if status.synced else UNSET
    return round(max(0, status.target - (-1 if last is None else last)) / status.blocks_per_s)


async def _stored_from(chain: EvmChain, name: str) -> str | UnsetType:
    return await chain.blocks.meta(name) or UNSET


def _number(number: int | None) -> str | UnsetType:
    return UNSET if number is None else str(number)
