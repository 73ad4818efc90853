"""The values that the P-Chain's state consists of, and what executing blocks changes in it. No store, no clock."""

from enum import IntEnum
from typing import NamedTuple, Protocol

import msgspec

from icefall.pchain.parameters import RewardParameters
from icefall.wire.avm.types import Owners
from icefall.wire.ids import PRIMARY_NETWORK
from icefall.wire.pvm.types import BlsSigner, Committee, Output, PlatformTx, StakeableOutput


class ExecutionFailed(Exception):
    """A block that cannot be what the network accepted, or a state that is not the network's. The text says which."""


class Priority(IntEnum):
    """Who comes first among stakers that begin, or end, at the same second."""

    PENDING_APRICOT_DELEGATOR = 1
    PENDING_VALIDATOR = 2
    PENDING_DELEGATOR = 3
    PENDING_SUBNET_VALIDATOR = 4
    PENDING_SUBNET_DELEGATOR = 5
    PENDING_PERMISSIONED = 6
    PERMISSIONED = 7
    SUBNET_DELEGATOR = 8
    SUBNET_VALIDATOR = 9
    DELEGATOR = 10
    VALIDATOR = 11


BEGINS_AS = {
    Priority.PENDING_APRICOT_DELEGATOR: Priority.DELEGATOR,
    Priority.PENDING_VALIDATOR: Priority.VALIDATOR,
    Priority.PENDING_DELEGATOR: Priority.DELEGATOR,
    Priority.PENDING_SUBNET_VALIDATOR: Priority.SUBNET_VALIDATOR,
    Priority.PENDING_SUBNET_DELEGATOR: Priority.SUBNET_DELEGATOR,
    Priority.PENDING_PERMISSIONED: Priority.PERMISSIONED,
}
DELEGATORS = frozenset(
    {
        Priority.PENDING_APRICOT_DELEGATOR,
        Priority.PENDING_DELEGATOR,
        Priority.PENDING_SUBNET_DELEGATOR,
        Priority.SUBNET_DELEGATOR,
        Priority.DELEGATOR,
    }
)


class StakerState(IntEnum):
    """What has become of a staking transaction: a pending staker has not begun, the last three have ended."""

    PENDING = 0
    CURRENT = 1
    REWARDED = 2
    NOT_REWARDED = 3
    REMOVED = 4


class PlatformStaker(msgspec.Struct, frozen=True, gc=False):
    """A validator or delegator of the primary network or a subnet (not of an L1), named by its staking transaction.

    `shares` are what a validator takes of its delegators' rewards, in millionths. A permissioned validator has no
    owners. A delegator's own reward goes to its validation owner. `seq` is the number of the transaction,
    `validator_seq` of a delegator that of its validator's.
    """

    txid: bytes
    subnet_id: bytes
    node_id: bytes
    weight: int
    start: int
    end: int
    potential_reward: int
    priority: Priority
    shares: int = 0
    validation_owner: Owners | None = None
    delegation_owner: Owners | None = None
    signer: BlsSigner | None = None
    seq: int = 0
    validator_seq: int | None = None

    @property
    def is_delegator(self) -> bool:
        return self.priority in DELEGATORS

    @property
    def is_pending(self) -> bool:
        return self.priority <= Priority.PENDING_PERMISSIONED


class L1Validator(msgspec.Struct, frozen=True, gc=False):
    """A validator of an L1. `end_accumulated_fee` is where the accrued fees of the chain end its balance; 0: it is
    inactive. `inactive_since` is the last second for which it paid before this activity, if ever."""

    validation_id: bytes
    subnet_id: bytes
    node_id: bytes
    public_key: bytes
    weight: int
    start: int
    min_nonce: int
    end_accumulated_fee: int
    remaining_balance_owner: Committee
    deactivation_owner: Committee
    is_removed: bool = False
    inactive_since: int = 0
    proof_of_possession: bytes = b""

    @property
    def is_active(self) -> bool:
        return self.end_accumulated_fee > 0 and not self.is_removed

    def balance_at(self, accrued_fees: int) -> int:
        """What it has left when the chain has accrued so much."""
        return self.end_accumulated_fee - accrued_fees if self.is_active else 0


class FeeSum(msgspec.Struct, frozen=True, gc=False):
    """A sum after its last change, which was on `day`. `paid` was paid until then, when the chain had accrued `since`;
    each of the `active` validators pays what is accrued from then on. `paying` have paid on that day."""

    day: int = 0
    active: int = 0
    paying: int = 0
    paid: int = 0
    since: int = 0

    def at(self, accrued: int) -> int:
        """What was paid until the chain has accrued so much."""
        return self.paid + self.active * (accrued - self.since)


class Subnet(msgspec.Struct, frozen=True, gc=False):
    """A subnet: who controls it, what makes it elastic, what made it an L1. Empty bytes: it is not. `seq` is the number
    of the transaction that created it."""

    subnet_id: bytes
    owner: Owners
    seq: int
    transformation_txid: bytes = b""
    asset_id: bytes = b""
    rewards: RewardParameters | None = None
    min_validator_stake: int = 0
    min_delegator_stake: int = 0
    conversion_id: bytes = b""
    manager_chain_id: bytes = b""
    manager_address: bytes = b""
    conversion_txid: bytes = b""


class ChainRow(NamedTuple):
    """A blockchain, whose ID is that of the transaction that created it, with the number of that. `evm_chain_id` is
    what its genesis says, if it is one of an EVM chain."""

    chain_id: bytes
    subnet_id: bytes
    name: str
    vm_id: bytes
    seq: int = 0
    evm_chain_id: int | None = None


class UtxoState(IntEnum):
    """A staked output is no UTXO yet: it becomes unspent when its stake ends."""

    UNSPENT = 0
    STAKED = 1
    SPENT = 2


class UtxoKind(IntEnum):
    """Why an output was made: by a transaction's sender, as a stake, or as a reward of one of three kinds."""

    PLAIN = 0
    STAKE = 1
    VALIDATOR_REWARD = 2
    DELEGATOR_REWARD = 3
    VALIDATOR_FEE = 4


class UtxoRow(msgspec.Struct, gc=False):
    """An output with its history. `created_seq` and the others are numbers of transactions (`TxRow.seq`).

    `position` orders what became spendable: a stake that returns gets a new one. `made` is the first one, so it orders
    what was made. `position_before` and `state_before` are what the store has; None if it is not stored yet.
    """

    position: int
    utxo_id: bytes
    raw: bytes
    addresses: tuple[bytes, ...]
    asset_id: bytes
    amount: int
    state: UtxoState = UtxoState.UNSPENT
    kind: UtxoKind = UtxoKind.PLAIN
    locktime: int = 0
    stakeable_locktime: int = 0
    created_seq: int = 0
    created_time: int = 0
    stake_start: int | None = None
    stake_end: int | None = None
    reward_of: int | None = None
    returned_seq: int | None = None
    returned_time: int | None = None
    spent_seq: int | None = None
    spent_time: int | None = None
    position_before: int | None = None
    state_before: int | None = None
    made: int = 0


class TxRow(NamedTuple):
    """An accepted transaction; a proposal that was aborted is one too."""

    seq: int
    tx: PlatformTx
    height: int
    is_committed: bool


class ExecutedBlock(NamedTuple):
    """An executed block. `time`, `supply` (of AVAX), `active_l1` (validators of L1s) and `accrued_fees` are those after
    it. `container` is None where the index holds it, and `certificate` that of the proposer, if there is one."""

    height: int
    block_id: bytes
    block_type: int
    time: int
    tx_count: int
    inner_size: int
    supply: int
    active_l1: int
    accrued_fees: int
    inner_at: int = 0
    container_id: bytes = b""
    container: bytes | None = None
    certificate: bytes = b""


class WeightChange(NamedTuple):
    """The weight of a node in a validator set after a block; 0: it is not in it any more. An empty key: none."""

    subnet_id: bytes
    height: int
    node_id: bytes
    weight: int
    public_key: bytes


class Lookup(Protocol):
    """What execution reads of the stored state."""

    def utxo(self, utxo_id: bytes) -> UtxoRow | None: ...

    def tx(self, txid: bytes) -> TxRow | None: ...

    def subnet(self, subnet_id: bytes) -> Subnet | None: ...

    def fee_sum(self, scope: int, key: bytes) -> FeeSum | None: ...


def is_primary(subnet_id: bytes) -> bool:
    return subnet_id == PRIMARY_NETWORK


def plain_output(output: Output) -> tuple[int, int, Owners]:
    """The amount of an output, until when it can only be staked, and its owners."""
    if isinstance(output, StakeableOutput):
        return output.output.amount, output.locktime, output.output.owners
    return output.amount, 0, output.owners


def balance_category(locktime: int, stakeable_locktime: int, stake: tuple[int, int] | None, at: int) -> str:
    """The balance to which an output belongs at a time. `stake`: from when to when it is staked, if it still is."""
    if stake is not None:
        start, end = stake
        if start > at:
            return "pending_staked"
        return "locked_staked" if stakeable_locktime > end else "unlocked_staked"
    if locktime > at:
        return "locked_platform"
    return "locked_stakeable" if stakeable_locktime > at else "unlocked_unstaked"


class Exported(NamedTuple):
    """An output put into another chain's memory."""

    destination: bytes
    utxo_id: bytes
    raw: bytes
    addresses: tuple[bytes, ...]


class Imported(NamedTuple):
    """An output taken out of what another chain exported to us."""

    source: bytes
    utxo_id: bytes
