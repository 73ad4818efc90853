"""A chain and its native token as the chain data API returns them. Fields that are not configured are absent."""

from typing import Literal, cast

from msgspec import UNSET

from icefall.api.data.schema.chains import EvmChainResult, UtilityAddresses
from icefall.api.data.schema.tokens import NetworkToken
from icefall.api.http.structs import address_text
from icefall.evm.reading.directory import ChainInfo, TokenInfo

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
