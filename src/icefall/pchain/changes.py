"""What a batch of P-Chain blocks changes, noted while they are executed and written by the store in one transaction."""

from typing import NamedTuple

from icefall.pchain.l1_fees import FeeKey
from icefall.pchain.model import (
    ChainRow,
    ExecutedBlock,
    Exported,
    FeeSum,
    Imported,
    L1Validator,
    PlatformStaker,
    StakerState,
    Subnet,
    TxRow,
    UtxoRow,
    WeightChange,
)
from icefall.pchain.stakers import Members
from icefall.pchain.sums import DelegationSums, StakeTotal


class StakerChange(NamedTuple):
    """What has become of a staker, at which height; by which transaction it ended, if by one."""

    staker: PlatformStaker
    state: StakerState
    height: int
    ended_seq: int | None = None


class L1Move(NamedTuple):
    """A change of an L1 validator at a height, by transaction `seq`; None: its balance had ended. `before` None: it is
    new. `accrued_fees` are those of the chain then."""

    height: int
    seq: int | None
    before: L1Validator | None
    after: L1Validator
    accrued_fees: int = 0


class Changes:
    """What a batch of blocks changes. A staker, subnet or validator that changes often is written once."""

    def __init__(self) -> None:
        self.blocks: list[ExecutedBlock] = []
        self.txs: list[TxRow] = []
        self.tx_of: dict[bytes, TxRow] = {}  # the same by their IDs
        self.utxos: dict[bytes, UtxoRow] = {}  # all that was made, loaded or changed
        # Addresses with the number of a transaction: owners of what it took or made, owners of stakes that it gave
        # back, and who gets the reward of its stake.
        self.address_txs: set[tuple[bytes, int]] = set()
        self.returned: set[tuple[bytes, int]] = set()
        self.payees: set[tuple[bytes, int]] = set()
        self.stakers: dict[bytes, StakerChange] = {}
        self.delegations: dict[bytes, DelegationSums] = {}  # by the validator's transaction
        self.fee_owners: dict[bytes, tuple[bytes, ...]] = {}  # of delegators that begin: who gets the validator's share
        self.rewards: list[tuple[UtxoRow, bytes]] = []  # outputs that were paid, with the node
        self.stake_days: dict[tuple[bytes, int], StakeTotal] = {}  # by the subnet and the day
        self.delegatee_rewards: dict[bytes, int] = {}  # by the validator's transaction
        self.subnets: dict[bytes, Subnet] = {}
        self.chains: list[ChainRow] = []
        self.l1_validators: dict[bytes, tuple[L1Validator, int]] = {}  # with that height too
        self.l1_moves: list[L1Move] = []  # every change, in order
        self.l1_after: dict[bytes, L1Validator] = {}  # the L1 validators after the batch
        self.accrued: list[tuple[int, int]] = []  # the accrued fees before and after each block
        self.l1_fees: dict[tuple[FeeKey, int], FeeSum] = {}  # by whose they are and the day
        self.accrued_days: list[tuple[int, int]] = []  # days that ended, with the accrued fees at their end
        self.supplies: dict[bytes, int] = {}
        self.weights: list[WeightChange] = []
        self.snapshots: list[tuple[bytes, int, Members]] = []
        self.exported: list[Exported] = []
        self.imported: list[Imported] = []
