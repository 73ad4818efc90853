"""The indexed chains, and those on which an address occurs."""

from typing import Literal

from msgspec import UNSET, UnsetType

from icefall.api.params.rest_kinds import ChainName, EvmAddress, Feature, Network
from icefall.api.schema.names import RestParams, RestResult
from icefall.api.schema.parties import NetworkToken


class ChainsParams(RestParams, frozen=True):
    network: Network = None
    feature: Feature = None


class ChainParams(RestParams, frozen=True):
    chain_id: ChainName


class AddressChainsParams(RestParams, frozen=True):
    address: EvmAddress


class UtilityAddresses(RestResult, frozen=True):
    multicall: str


class EvmChainResult(RestResult, frozen=True, kw_only=True):
    """`status` is `OK` while blocks are stored and the indexer is at the tip or makes progress."""

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


class EvmChains(RestResult, frozen=True):
    chains: list[EvmChainResult]


class AddressChains(RestResult, frozen=True):
    """`unindexedChains` is always empty: only indexed chains are known here."""

    indexed_chains: list[EvmChainResult]
    unindexed_chains: list[str]
