"""Parameters and results of transactions, outputs and balances of the P-Chain."""

from typing import Any, Literal

from msgspec import UNSET, UnsetType

from icefall.api.http.rest_params import PageSize, PageToken, SortOrder
from icefall.api.http.structs import Page, RestParams, RestResult
from icefall.api.networks.params import Addresses, IdParam, NetworkName, OptionalId, PrimaryChain, Time, TxTypes
from icefall.api.networks.schema.assets import (
    BlsCredentials,
    ManagerDetails,
    NetworkAsset,
    OwnershipInfo,
    PlatformUtxoResult,
    PrimaryChainInfo,
)

PlatformTxType = Literal[
    "AddValidatorTx",
    "AddSubnetValidatorTx",
    "AddDelegatorTx",
    "CreateChainTx",
    "CreateSubnetTx",
    "ImportTx",
    "ExportTx",
    "AdvanceTimeTx",
    "RewardValidatorTx",
    "RemoveSubnetValidatorTx",
    "TransformSubnetTx",
    "AddPermissionlessValidatorTx",
    "AddPermissionlessDelegatorTx",
    "BaseTx",
    "TransferSubnetOwnershipTx",
    "ConvertSubnetToL1Tx",
    "RegisterL1ValidatorTx",
    "SetL1ValidatorWeightTx",
    "DisableL1ValidatorTx",
    "IncreaseL1ValidatorBalanceTx",
]


class PlatformTxParams(RestParams, frozen=True):
    network: NetworkName
    blockchain_id: PrimaryChain
    tx_hash: IdParam


class PlatformTxsParams(RestParams, frozen=True):
    network: NetworkName
    blockchain_id: PrimaryChain
    addresses: Addresses = ()
    tx_types: TxTypes = ()
    start_timestamp: Time = None
    end_timestamp: Time = None
    sort_order: SortOrder = "desc"
    page_token: PageToken = ""
    page_size: PageSize = 10


class ListedTxsParams(PlatformTxsParams, frozen=True):
    l1_validation_id: OptionalId = None


class PlatformBalancesParams(RestParams, frozen=True):
    network: NetworkName
    blockchain_id: PrimaryChain
    addresses: Addresses
    block_timestamp: Time = None


class L1ValidatorOfTx(RestResult, frozen=True):
    """A validator of an L1 right after the transaction."""

    validation_id: str
    validation_id_hex: str
    node_id: str
    subnet_id: str
    weight: int
    remaining_balance: int
    balance_change: int | UnsetType = UNSET
    bls_credentials: BlsCredentials | UnsetType = UNSET


class BlockchainInfo(RestResult, frozen=True):
    chain_name: str
    vm_id: str
    genesis_data: dict[str, Any] | UnsetType = UNSET


class PlatformTransaction(RestResult, frozen=True, kw_only=True):
    tx_hash: str
    tx_type: PlatformTxType
    block_timestamp: int
    block_number: str
    block_hash: str
    consumed_utxos: list[PlatformUtxoResult]
    emitted_utxos: list[PlatformUtxoResult]
    source_chain: str | UnsetType = UNSET
    destination_chain: str | UnsetType = UNSET
    value: list[NetworkAsset]
    amount_burned: list[NetworkAsset]
    amount_staked: list[NetworkAsset]
    amount_l1_validator_balance_burned: list[NetworkAsset]
    start_timestamp: int | UnsetType = UNSET
    end_timestamp: int | UnsetType = UNSET
    delegation_fee_percent: str | UnsetType = UNSET
    node_id: str | UnsetType = UNSET
    subnet_id: str | UnsetType = UNSET
    l1_validator_manager_details: ManagerDetails | UnsetType = UNSET
    l1_validator_details: list[L1ValidatorOfTx] | UnsetType = UNSET
    estimated_reward: str | UnsetType = UNSET
    reward_tx_hash: str | UnsetType = UNSET
    reward_addresses: list[str] | UnsetType = UNSET
    memo: str | UnsetType = UNSET
    staking_tx_hash: str | UnsetType = UNSET
    subnet_ownership_info: OwnershipInfo | UnsetType = UNSET
    bls_credentials: BlsCredentials | UnsetType = UNSET
    blockchain_info: BlockchainInfo | UnsetType = UNSET


class PlatformTransactionPage(Page, frozen=True):
    transactions: list[PlatformTransaction]
    chain_info: PrimaryChainInfo


class PlatformUtxoPage(Page, frozen=True):
    utxos: list[PlatformUtxoResult]
    chain_info: PrimaryChainInfo


class CategoryAmount(NetworkAsset, frozen=True):
    utxo_count: int


class SharedAmount(CategoryAmount, frozen=True):
    """What waits in the memory shared with another chain."""

    shared_with_chain_id: str
    status: str


class PlatformBalances(RestResult, frozen=True):
    unlocked_unstaked: list[CategoryAmount]
    unlocked_staked: list[CategoryAmount]
    locked_platform: list[CategoryAmount]
    locked_stakeable: list[CategoryAmount]
    locked_staked: list[CategoryAmount]
    pending_staked: list[CategoryAmount]
    atomic_memory_unlocked: list[SharedAmount]
    atomic_memory_locked: list[SharedAmount]


class PlatformBalancesResult(RestResult, frozen=True):
    balances: PlatformBalances
    chain_info: PrimaryChainInfo
