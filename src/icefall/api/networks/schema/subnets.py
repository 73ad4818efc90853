"""Parameters and results of subnets, blockchains and the supply of AVAX."""

from typing import Any

from msgspec import UNSET, UnsetType

from icefall.api.http.rest_params import HoldersPageSize, Network, PageToken, SortOrder, Timestamp
from icefall.api.http.structs import Page, RestParams, RestResult
from icefall.api.networks.params import IdParam, ManyPageSize, NetworkName, PrimaryChain
from icefall.api.networks.schema.assets import ManagerDetails, OwnershipInfo


class NoQuery(RestParams, frozen=True):
    """The parameters of an operation that takes none."""


class NetworkSubnetsParams(RestParams, frozen=True):
    network: NetworkName
    sort_order: SortOrder = "desc"
    page_token: PageToken = ""
    page_size: ManyPageSize = 100


class NetworkSubnetParams(RestParams, frozen=True):
    network: NetworkName
    subnet_id: IdParam


class NetworkBlockchainParams(RestParams, frozen=True):
    network: NetworkName
    blockchain_id: PrimaryChain


class NetworkBlockchain(RestResult, frozen=True, kw_only=True):
    create_block_timestamp: int
    create_block_number: str
    blockchain_id: str
    vm_id: str
    subnet_id: str
    blockchain_name: str
    evm_chain_id: int
    genesis_data: dict[str, Any] | UnsetType = UNSET


class BlockchainPage(Page, frozen=True, kw_only=True):
    blockchains: list[NetworkBlockchain]


class NetworkSubnet(RestResult, frozen=True, kw_only=True):
    create_block_timestamp: int
    create_block_index: str
    subnet_id: str
    owner_addresses: list[str]
    threshold: int
    locktime: int
    subnet_ownership_info: OwnershipInfo
    is_l1: bool
    l1_conversion_transaction_hash: str | UnsetType = UNSET
    l1_validator_manager_details: ManagerDetails | UnsetType = UNSET
    blockchains: list[NetworkBlockchain]


class SubnetPage(Page, frozen=True, kw_only=True):
    subnets: list[NetworkSubnet]


class AvaxSupply(RestResult, frozen=True, kw_only=True):
    """Amounts in AVAX. What is not known here is absent, and then what would be computed from it."""

    circulating_supply: str
    total_supply: str
    total_p_burned: str
    total_c_burned: str | UnsetType = UNSET
    total_x_burned: str | UnsetType = UNSET
    total_staked: str
    total_locked: str
    total_rewards: str
    last_updated: str
    genesis_unlock: str
    l1_validator_fees: str


class ValidatorAddressesParams(RestParams, frozen=True):
    """The time frame is that of the transactions which began validation, from `startTimestamp` to before
    `endTimestamp`."""

    subnet_id: IdParam
    network: Network = None
    start_timestamp: Timestamp = None
    end_timestamp: Timestamp = None
    page_token: PageToken = ""
    page_size: HoldersPageSize = 1000


class ValidatorAddresses(RestResult, frozen=True):
    addresses: list[str]
    sort_key: str


class ValidatorAddressPage(Page, frozen=True, kw_only=True):
    addresses: list[ValidatorAddresses]
