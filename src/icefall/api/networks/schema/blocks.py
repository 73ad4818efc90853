"""Parameters and results of network details and of blocks of the P-Chain."""

from msgspec import UNSET, UnsetType

from icefall.api.http.rest_params import PageSize, PageToken
from icefall.api.http.structs import Page, RestParams, RestResult
from icefall.api.networks.params import BlockIdParam, NetworkName, PrimaryChain, Time
from icefall.api.networks.schema.assets import PrimaryChainInfo


class PlatformBlocksParams(RestParams, frozen=True):
    network: NetworkName
    blockchain_id: PrimaryChain
    start_timestamp: Time = None
    end_timestamp: Time = None
    page_token: PageToken = ""
    page_size: PageSize = 10


class PlatformBlockParams(RestParams, frozen=True):
    network: NetworkName
    blockchain_id: PrimaryChain
    block_id: BlockIdParam


class ProposerDetails(RestResult, frozen=True):
    """The proposer's wrapping of a block. An option has no more than its ID and its parent."""

    proposer_id: str
    proposer_parent_id: str
    proposer_node_id: str | UnsetType = UNSET
    proposer_p_chain_height: int | UnsetType = UNSET
    proposer_timestamp: int | UnsetType = UNSET


class PrimaryNetworkBlock(RestResult, frozen=True):
    block_number: str
    block_hash: str
    parent_hash: str
    block_timestamp: int
    block_type: str
    tx_count: int
    transactions: list[str]
    block_size_bytes: int
    current_supply: str | UnsetType = UNSET
    active_l1_validators: int | UnsetType = UNSET
    l1_validators_accrued_fees: int | UnsetType = UNSET
    proposer_details: ProposerDetails | UnsetType = UNSET


class PrimaryNetworkBlockPage(Page, frozen=True):
    blocks: list[PrimaryNetworkBlock]
    chain_info: PrimaryChainInfo


class StakingDistribution(RestResult, frozen=True):
    version: str
    amount_staked: str
    validator_count: int


class NetworkValidators(RestResult, frozen=True):
    validator_count: int
    total_amount_staked: str
    estimated_annual_staking_reward: str
    staking_distribution_by_version: list[StakingDistribution]
    staking_ratio: str


class NetworkDelegators(RestResult, frozen=True):
    delegator_count: int
    total_amount_staked: str


class NetworkDetails(RestResult, frozen=True):
    validator_details: NetworkValidators
    delegator_details: NetworkDelegators
