"""Chains: which there are, and which know an address."""

from typing import Literal

from msgspec import UNSET, UnsetType

from icefall.api.rest_kinds import ChainName, EvmAddress, Feature, Network
from icefall.api.schema.names import RestAsk, RestTold
from icefall.api.schema.parties import NetworkToken


class ChainsAsk(RestAsk, frozen=True):
    network: Network = None
    feature: Feature = None


class ChainAsk(RestAsk, frozen=True):
    chain_id: ChainName


class AddressChainsAsk(RestAsk, frozen=True):
    address: EvmAddress


class UtilityAddresses(RestTold, frozen=True):
    multicall: str


class EvmChainTold(RestTold, frozen=True, kw_only=True):
    chain_id: str
    status: Literal["OK", "UNAVAILABLE"]
    chain_name: str
    description: str
    platform_chain_id: str | UnsetType = UNSET
    subnet_id: str | UnsetType = UNSET
    vm_id: str | UnsetType = UNSET
    vm_name: Literal["EVM"] = "EVM"
    explorer_url: str | UnsetType = UNSET
    rpc_url: str
    ws_url: str | UnsetType = UNSET
    is_testnet: bool
    utility_addresses: UtilityAddresses | UnsetType = UNSET
    network_token: NetworkToken
    chain_logo_uri: str | UnsetType = UNSET
    private: bool
    enabled_features: list[Literal["nftIndexing", "webhooks", "teleporter"]]


class EvmChains(RestTold, frozen=True):
    chains: list[EvmChainTold]


class AddressChains(RestTold, frozen=True):
    """`unindexedChains` would be chains that saw the address without being indexed here: we know of none."""

    indexed_chains: list[EvmChainTold]
    unindexed_chains: list[str]
