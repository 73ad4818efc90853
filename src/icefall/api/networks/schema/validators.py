"""Parameters and results of validators, delegators and rewards of the primary network."""

from typing import Literal

from msgspec import UNSET, UnsetType

from icefall.api.http.rest_params import PageSize, PageToken, SortOrder, Switch
from icefall.api.http.structs import Page, RestParams, RestResult
from icefall.api.networks.params import (
    Addresses,
    DelegationStatus,
    FeePercent,
    MaybeCurrency,
    NetworkName,
    NodeId,
    NodeIds,
    NodeParts,
    OptionalId,
    OptionalNodeId,
    Seconds,
    StakeAmount,
    UptimePercent,
    ValidationStatus,
    ValidatorSort,
)
from icefall.api.networks.schema.assets import BlsCredentials, NetworkAsset, RewardType


class NetworkValidatorsParams(RestParams, frozen=True):
    network: NetworkName
    node_ids: NodeParts = ()
    reward_addresses: Addresses = ()
    subnet_id: OptionalId = None
    validation_status: ValidationStatus = None
    sort_by: ValidatorSort = "blockIndex"
    sort_order: SortOrder = "desc"
    min_time_remaining: Seconds = None
    max_time_remaining: Seconds = None
    min_delegation_capacity: StakeAmount = None
    max_delegation_capacity: StakeAmount = None
    min_fee_percentage: FeePercent = None
    max_fee_percentage: FeePercent = None
    min_uptime_performance: UptimePercent = None
    max_uptime_performance: UptimePercent = None
    page_token: PageToken = ""
    page_size: PageSize = 10


class ValidatorParams(RestParams, frozen=True):
    network: NetworkName
    node_id: NodeId
    validation_status: ValidationStatus = None
    sort_order: SortOrder = "desc"
    page_token: PageToken = ""
    page_size: PageSize = 10


class DelegatorsParams(RestParams, frozen=True):
    network: NetworkName
    reward_addresses: Addresses = ()
    node_ids: NodeIds = ()
    delegation_status: DelegationStatus = None
    sort_order: SortOrder = "desc"
    page_token: PageToken = ""
    page_size: PageSize = 10


class RewardsParams(RestParams, frozen=True):
    network: NetworkName
    addresses: Addresses = ()
    node_ids: NodeIds = ()
    sort_order: SortOrder = "desc"
    page_token: PageToken = ""
    page_size: PageSize = 10


class PaidRewardsParams(RewardsParams, frozen=True):
    """Clients may name a currency, as for other lists; rewards have no prices here."""

    currency: MaybeCurrency = None


class L1ValidatorsParams(RestParams, frozen=True):
    network: NetworkName
    l1_validation_id: OptionalId = None
    node_id: OptionalNodeId = None
    subnet_id: OptionalId = None
    include_inactive_l1_validators: Switch = False
    page_token: PageToken = ""
    page_size: PageSize = 10


class ValidatorRewards(RestResult, frozen=True, kw_only=True):
    validation_reward_amount: str
    delegation_reward_amount: str
    reward_addresses: list[str] | UnsetType = UNSET
    reward_tx_hash: str | UnsetType = UNSET


class ValidatorHealth(RestResult, frozen=True, kw_only=True):
    reachability_percent: float
    benched_p_chain_requests_percent: float
    benched_x_chain_requests_percent: float
    benched_c_chain_requests_percent: float


class ValidationDetails(RestResult, frozen=True, kw_only=True):
    """A validation period. Which fields it has depends on its status."""

    tx_hash: str
    node_id: str
    subnet_id: str
    amount_staked: str
    delegation_fee: str | UnsetType = UNSET
    start_timestamp: int
    end_timestamp: int
    bls_credentials: BlsCredentials | UnsetType = UNSET
    stake_percentage: float | UnsetType = UNSET
    delegator_count: int | UnsetType = UNSET
    amount_delegated: str | UnsetType = UNSET
    uptime_performance: float | UnsetType = UNSET
    avalanche_go_version: str | UnsetType = UNSET
    delegation_capacity: str | UnsetType = UNSET
    potential_rewards: ValidatorRewards | UnsetType = UNSET
    rewards: ValidatorRewards | UnsetType = UNSET
    remove_tx_hash: str | UnsetType = UNSET
    remove_timestamp: int | UnsetType = UNSET
    validation_status: Literal["active", "pending", "completed", "removed"]
    validator_health: ValidatorHealth | UnsetType = UNSET
    geolocation: UnsetType | None = UNSET


class ValidatorPage(Page, frozen=True, kw_only=True):
    validators: list[ValidationDetails]


class DelegationDetails(RestResult, frozen=True, kw_only=True):
    """A delegation. What it is paid is estimated until it has ended."""

    tx_hash: str
    node_id: str
    reward_addresses: list[str]
    amount_delegated: str
    delegation_fee: str
    start_timestamp: int
    end_timestamp: int
    estimated_gross_reward: str | UnsetType = UNSET
    estimated_net_reward: str | UnsetType = UNSET
    gross_reward: str | UnsetType = UNSET
    net_reward: str | UnsetType = UNSET
    delegation_status: Literal["active", "pending", "completed"]


class DelegatorPage(Page, frozen=True, kw_only=True):
    delegators: list[DelegationDetails]


class CommitteeOwner(RestResult, frozen=True, kw_only=True):
    addresses: list[str]
    threshold: int


class ListedL1Validator(RestResult, frozen=True, kw_only=True):
    """A validator of an L1 after the last block."""

    validation_id: str
    validation_id_hex: str
    node_id: str
    subnet_id: str
    weight: int
    remaining_balance: int
    creation_timestamp: int
    bls_credentials: BlsCredentials
    remaining_balance_owner: CommitteeOwner
    deactivation_owner: CommitteeOwner


class L1ValidatorPage(Page, frozen=True, kw_only=True):
    validators: list[ListedL1Validator]
    block_height: str


class PendingReward(RestResult, frozen=True, kw_only=True):
    """What a staking period that lasts will pay if the validator is online enough."""

    addresses: list[str]
    tx_hash: str
    amount_staked: str
    node_id: str
    start_timestamp: int
    end_timestamp: int
    reward_type: RewardType
    progress: float
    estimated_reward: NetworkAsset


class PendingRewardPage(Page, frozen=True, kw_only=True):
    pending_rewards: list[PendingReward]


class HistoricalReward(RestResult, frozen=True, kw_only=True):
    """A reward that was paid."""

    addresses: list[str]
    tx_hash: str
    amount_staked: str
    node_id: str
    start_timestamp: int
    end_timestamp: int
    reward_type: RewardType
    utxo_id: str
    output_index: int
    reward: NetworkAsset
    reward_tx_hash: str


class HistoricalRewardPage(Page, frozen=True, kw_only=True):
    historical_rewards: list[HistoricalReward]
