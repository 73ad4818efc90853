"""Shapes that several operations of the primary network interface share."""

from typing import Literal

from msgspec import UNSET, UnsetType

from icefall.api.http.structs import RestParams, RestResult
from icefall.api.networks.params import NetworkName

RewardType = Literal["VALIDATOR", "DELEGATOR", "VALIDATOR_FEE"]


class NetworkParams(RestParams, frozen=True):
    network: NetworkName


class PrimaryChainInfo(RestResult, frozen=True):
    """`network` is the name that was asked for: clients know three, and a network has its own besides."""

    chain_name: Literal["p-chain", "x-chain", "c-chain"]
    network: str


class NetworkAsset(RestResult, frozen=True):
    """An asset with an amount, in its smallest unit."""

    asset_id: str
    name: str
    symbol: str
    denomination: int
    type: Literal["secp256k1", "nft"]
    amount: str


class OwnershipInfo(RestResult, frozen=True):
    locktime: int
    threshold: int
    addresses: list[str]


class ManagerDetails(RestResult, frozen=True):
    blockchain_id: str
    contract_address: str


class BlsCredentials(RestResult, frozen=True):
    public_key: str
    proof_of_possession: str | UnsetType = UNSET


class PlatformUtxoResult(RestResult, frozen=True, kw_only=True):
    """An output of the P-Chain. What consumed it is absent while it is unspent, and where it was exported."""

    addresses: list[str]
    utxo_id: str
    utxo_bytes: str | UnsetType = UNSET
    tx_hash: str
    output_index: int
    amount: str
    asset_id: str
    asset: NetworkAsset
    block_number: str
    block_timestamp: int
    created_on_chain_id: str
    consumed_on_chain_id: str
    consuming_tx_hash: str | UnsetType = UNSET
    consuming_block_number: str | UnsetType = UNSET
    consuming_block_timestamp: int | UnsetType = UNSET
    platform_locktime: int | UnsetType = UNSET
    stakeable_locktime: int | UnsetType = UNSET
    threshold: int | UnsetType = UNSET
    staked: bool | UnsetType = UNSET
    utxo_start_timestamp: int | UnsetType = UNSET
    utxo_end_timestamp: int | UnsetType = UNSET
    reward_type: RewardType | UnsetType = UNSET
    utxo_type: Literal["STAKE", "TRANSFER"]
