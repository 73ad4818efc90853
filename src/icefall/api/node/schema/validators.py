"""Results of the platform chain about validators: current ones, of L1s, and sets at a height."""

from typing import TypeAlias

import msgspec

from icefall.api.http.structs import Result

Absent: TypeAlias = msgspec.UnsetType


class OwnerDetails(Result, frozen=True):
    locktime: str
    threshold: str
    addresses: list[str]


class SignerDetails(Result, frozen=True):
    public_key: str
    proof_of_possession: str


class StakerDetails(Result, frozen=True):
    """What all stakers have, and a validator of a permissioned subnet has only that."""

    tx_id: str
    start_time: str
    end_time: str
    weight: str
    node_id: str


class DelegatorDetails(StakerDetails, frozen=True):
    reward_owner: OwnerDetails
    potential_reward: str


class ValidatorDetails(StakerDetails, frozen=True):
    """A validator that staked. `uptime` and `connected` are what the upstream sees; absent without one, and for
    validators of subnets. `signer` is absent without a BLS key, `delegators` unless one node was asked for."""

    validation_reward_owner: OwnerDetails
    delegation_reward_owner: OwnerDetails
    potential_reward: str
    accrued_delegatee_reward: str
    delegation_fee: str
    uptime: str | Absent = msgspec.UNSET
    connected: bool | Absent = msgspec.UNSET
    signer: SignerDetails | Absent = msgspec.UNSET
    delegator_count: str = "0"
    delegator_weight: str = "0"
    delegators: list[DelegatorDetails] | Absent = msgspec.UNSET


class L1ValidatorEntry(Result, frozen=True):
    """A validator of an L1. An inactive one has the balance 0."""

    node_id: str
    weight: str
    start_time: str
    validation_id: str
    public_key: str
    remaining_balance_owner: OwnerDetails
    deactivation_owner: OwnerDetails
    min_nonce: str
    balance: str


class L1ValidatorDetails(L1ValidatorEntry, frozen=True):
    """The same with its subnet, and the height at which this was so."""

    subnet_id: str
    height: str


AnyValidatorRow: TypeAlias = ValidatorDetails | StakerDetails | L1ValidatorEntry


class AnyValidator(Result, frozen=True):
    """What an entry of the list can have: it is one of ValidatorDetails, StakerDetails and L1ValidatorEntry, whose keys
    come in another order each. A schema can list only one of them."""

    node_id: str
    weight: str
    start_time: str
    tx_id: str | Absent = msgspec.UNSET
    end_time: str | Absent = msgspec.UNSET
    validation_reward_owner: OwnerDetails | Absent = msgspec.UNSET
    delegation_reward_owner: OwnerDetails | Absent = msgspec.UNSET
    potential_reward: str | Absent = msgspec.UNSET
    accrued_delegatee_reward: str | Absent = msgspec.UNSET
    delegation_fee: str | Absent = msgspec.UNSET
    uptime: str | Absent = msgspec.UNSET
    connected: bool | Absent = msgspec.UNSET
    signer: SignerDetails | Absent = msgspec.UNSET
    delegator_count: str | Absent = msgspec.UNSET
    delegator_weight: str | Absent = msgspec.UNSET
    delegators: list[DelegatorDetails] | Absent = msgspec.UNSET
    validation_id: str | Absent = msgspec.UNSET
    public_key: str | Absent = msgspec.UNSET
    remaining_balance_owner: OwnerDetails | Absent = msgspec.UNSET
    deactivation_owner: OwnerDetails | Absent = msgspec.UNSET
    min_nonce: str | Absent = msgspec.UNSET
    balance: str | Absent = msgspec.UNSET


class CurrentValidators(Result, frozen=True):
    validators: list[AnyValidator]


class SampledValidators(Result, frozen=True):
    validators: list[str]


class SetMember(Result, frozen=True):
    public_key: str | None
    weight: str


class WarpValidator(Result, frozen=True):
    """Validators with one BLS key, which count as one where messages are signed."""

    public_key: str
    weight: str
    node_ids: list[str]


class WarpValidators(Result, frozen=True):
    """`totalWeight` counts validators without a BLS key too."""

    validators: list[WarpValidator]
    total_weight: str


class AllValidatorSets(Result, frozen=True):
    validator_sets: dict[str, WarpValidators]
