"""Parameters and results of the platform chain: blocks, transactions, outputs, subnets, fees."""

import msgspec

from icefall.api.http.rpc_params import (
    NO_ID,
    Boolean,
    Encoding,
    Id,
    Ids,
    NodeIds,
    SetHeight,
    StartIndex,
    String,
    Strings,
    Uint16,
    Uint32,
)
from icefall.api.http.structs import Params, Result
from icefall.api.node.schema.avm import Index, UtxoReference


class SubnetParams(Params, frozen=True):
    subnet_id: Id = NO_ID


class SubnetsParams(Params, frozen=True):
    ids: Ids = []


class BlockchainParams(Params, frozen=True):
    blockchain_id: Id = NO_ID


class BlockchainStatusParams(Params, frozen=True):
    blockchain_id: String = ""


class OutputsParams(Params, frozen=True):
    addresses: Strings = []
    source_chain: String = ""
    limit: Uint32 = 0
    start_index: StartIndex = ("", "")
    encoding: Encoding = "hex"


class AddressesParams(Params, frozen=True):
    addresses: Strings = []


class StakeParams(Params, frozen=True):
    addresses: Strings = []
    validators_only: Boolean = False
    encoding: Encoding = "hex"


class ValidatorsParams(Params, frozen=True):
    subnet_id: Id = NO_ID
    node_ids: NodeIds = []


class ValidationParams(Params, frozen=True):
    validation_id: Id = NO_ID


class ValidatorsAtParams(Params, frozen=True):
    height: SetHeight = 0
    subnet_id: Id = NO_ID


class AllValidatorsAtParams(Params, frozen=True):
    height: SetHeight = 0


class SampleParams(Params, frozen=True):
    size: Uint16 = 0
    subnet_id: Id = NO_ID


class Timestamp(Result, frozen=True):
    timestamp: str


class Outputs(Result, frozen=True):
    num_fetched: str
    utxos: list[str]
    end_index: Index
    encoding: str


class RewardOutputs(Result, frozen=True):
    num_fetched: str
    utxos: list[str]
    encoding: str


class PlatformBalance(Result, frozen=True):
    """Balances in nAVAX, then the same by asset. `utxoIDs` is null where there are none."""

    balance: str
    unlocked: str
    locked_stakeable: str
    locked_not_stakeable: str
    balances: dict[str, str]
    unlockeds: dict[str, str]
    locked_stakeables: dict[str, str]
    locked_not_stakeables: dict[str, str]
    utxo_ids: list[UtxoReference] | None


class StakedAmounts(Result, frozen=True):
    staked: str
    stakeds: dict[str, str]
    staked_outputs: list[str]
    encoding: str


class SubnetDetails(Result, frozen=True):
    """A subnet. The conversion fields are of the empty ID, and the address is null, where it is not an L1."""

    is_permissioned: bool
    control_keys: list[str]
    threshold: str
    locktime: str
    subnet_transformation_tx_id: str
    conversion_id: str
    manager_chain_id: str
    manager_address: str | None


class SubnetEntry(Result, frozen=True):
    id: str
    control_keys: list[str]
    threshold: str


class SubnetList(Result, frozen=True):
    """`subnets` is null where none of those asked for exists."""

    subnets: list[SubnetEntry] | None


class StakingAsset(Result, frozen=True):
    asset_id: str


class Supply(Result, frozen=True):
    supply: str
    height: str


class TotalStake(Result, frozen=True):
    stake: str
    weight: str


class MinStake(Result, frozen=True):
    min_validator_stake: str
    min_delegator_stake: str


class ValidatedBy(Result, frozen=True):
    subnet_id: str


class Validates(Result, frozen=True):
    blockchain_ids: list[str]


class BlockchainEntry(Result, frozen=True):
    id: str
    name: str
    subnet_id: str
    vm_id: str


class BlockchainList(Result, frozen=True):
    blockchains: list[BlockchainEntry]


class BlockchainStatus(Result, frozen=True):
    status: str


class PlatformTxStatus(Result, frozen=True):
    """`reason` says why a transaction was dropped."""

    status: str
    reason: str | msgspec.UnsetType = msgspec.UNSET


class PlatformFeeState(Result, frozen=True):
    capacity: int
    excess: int
    price: int
    timestamp: str


class ValidatorFeeState(Result, frozen=True):
    excess: int
    price: int
    timestamp: str


class ValidatorFeeConfig(Result, frozen=True):
    capacity: int
    target: int
    min_price: int
    excess_conversion_constant: int
