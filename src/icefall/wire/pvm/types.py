"""Values of the P-Chain: blocks, transactions, outputs, inputs, UTXOs.

Plain immutable values. Byte layouts are in `parts` and `codec`, JSON is in `json`, messages signed by validators of an
L1 are in `warp`. An owner and an authorisation have only one type each in the codec, so their type IDs are not kept.
"""

from enum import IntEnum
from typing import ClassVar, TypeAlias

import msgspec

from icefall.wire.avm.types import Credential, Owners, TransferInput, TransferOutput


class StakeableInput(msgspec.Struct, frozen=True, gc=False):
    """An input that spends a locked output before `locktime`, which only staking may do."""

    type_id: ClassVar[int] = 21
    locktime: int
    input: TransferInput


class StakeableOutput(msgspec.Struct, frozen=True, gc=False):
    """An output that until `locktime` (Unix seconds) can be staked but not transferred."""

    type_id: ClassVar[int] = 22
    locktime: int
    output: TransferOutput


Output: TypeAlias = TransferOutput | StakeableOutput
Input: TypeAlias = TransferInput | StakeableInput


class PlatformOutput(msgspec.Struct, frozen=True, gc=False):
    asset_id: bytes
    output: Output


class PlatformInput(msgspec.Struct, frozen=True, gc=False):
    txid: bytes
    output_index: int
    asset_id: bytes
    input: Input


class PlatformUtxo(msgspec.Struct, frozen=True, gc=False):
    txid: bytes
    output_index: int
    asset_id: bytes
    output: Output


class Validator(msgspec.Struct, frozen=True, gc=False):
    """Who stakes from when to when (Unix seconds). From Durango on `start` has no meaning."""

    node_id: bytes
    start: int
    end: int
    weight: int


class BlsSigner(msgspec.Struct, frozen=True, gc=False):
    """A BLS public key with the proof that its owner knows the secret key."""

    public_key: bytes
    proof_of_possession: bytes


class Committee(msgspec.Struct, frozen=True, gc=False):
    """The owner of an L1 validator's balance, or who may deactivate it: `threshold` of the `addresses`."""

    threshold: int
    addresses: tuple[bytes, ...]


class ConvertedValidator(msgspec.Struct, frozen=True, gc=False):
    """A first validator of an L1, named by the transaction that converts its subnet."""

    node_id: bytes
    weight: int
    balance: int
    signer: BlsSigner
    remaining_balance_owner: Committee
    deactivation_owner: Committee


class PlatformBaseTx(msgspec.Struct, frozen=True, gc=False):
    """A plain transfer, and the part that every other transaction with inputs starts with."""

    type_id: ClassVar[int] = 34
    network_id: int
    blockchain_id: bytes
    outputs: tuple[PlatformOutput, ...]
    inputs: tuple[PlatformInput, ...]
    memo: bytes


class AddValidatorTx(PlatformBaseTx, frozen=True, gc=False):
    type_id: ClassVar[int] = 12
    validator: Validator
    stake: tuple[PlatformOutput, ...]
    rewards_owner: Owners
    shares: int


class AddSubnetValidatorTx(PlatformBaseTx, frozen=True, gc=False):
    type_id: ClassVar[int] = 13
    validator: Validator
    subnet_id: bytes
    authorization: tuple[int, ...]


class AddDelegatorTx(PlatformBaseTx, frozen=True, gc=False):
    type_id: ClassVar[int] = 14
    validator: Validator
    stake: tuple[PlatformOutput, ...]
    rewards_owner: Owners


class CreateChainTx(PlatformBaseTx, frozen=True, gc=False):
    type_id: ClassVar[int] = 15
    subnet_id: bytes
    chain_name: str
    vm_id: bytes
    fx_ids: tuple[bytes, ...]
    genesis: bytes
    authorization: tuple[int, ...]


class CreateSubnetTx(PlatformBaseTx, frozen=True, gc=False):
    type_id: ClassVar[int] = 16
    owner: Owners


class PlatformImportTx(PlatformBaseTx, frozen=True, gc=False):
    type_id: ClassVar[int] = 17
    source_chain: bytes
    imported_inputs: tuple[PlatformInput, ...]


class PlatformExportTx(PlatformBaseTx, frozen=True, gc=False):
    type_id: ClassVar[int] = 18
    destination_chain: bytes
    exported_outputs: tuple[PlatformOutput, ...]


class AdvanceTimeTx(msgspec.Struct, frozen=True, gc=False):
    type_id: ClassVar[int] = 19
    time: int


class RewardValidatorTx(msgspec.Struct, frozen=True, gc=False):
    """Proposes to pay the reward of a staking transaction."""

    type_id: ClassVar[int] = 20
    staking_txid: bytes


class RemoveSubnetValidatorTx(PlatformBaseTx, frozen=True, gc=False):
    type_id: ClassVar[int] = 23
    node_id: bytes
    subnet_id: bytes
    authorization: tuple[int, ...]


class TransformSubnetTx(PlatformBaseTx, frozen=True, gc=False):
    """Makes a subnet elastic: anyone may validate it by staking its asset."""

    type_id: ClassVar[int] = 24
    subnet_id: bytes
    asset_id: bytes
    initial_supply: int
    maximum_supply: int
    min_consumption_rate: int
    max_consumption_rate: int
    min_validator_stake: int
    max_validator_stake: int
    min_stake_duration: int
    max_stake_duration: int
    min_delegation_fee: int
    min_delegator_stake: int
    max_validator_weight_factor: int
    uptime_requirement: int
    authorization: tuple[int, ...]


class AddPermissionlessValidatorTx(PlatformBaseTx, frozen=True, gc=False):
    type_id: ClassVar[int] = 25
    validator: Validator
    subnet_id: bytes
    signer: BlsSigner | None
    stake: tuple[PlatformOutput, ...]
    validation_rewards_owner: Owners
    delegation_rewards_owner: Owners
    shares: int


class AddPermissionlessDelegatorTx(PlatformBaseTx, frozen=True, gc=False):
    type_id: ClassVar[int] = 26
    validator: Validator
    subnet_id: bytes
    stake: tuple[PlatformOutput, ...]
    rewards_owner: Owners


class TransferSubnetOwnershipTx(PlatformBaseTx, frozen=True, gc=False):
    type_id: ClassVar[int] = 33
    subnet_id: bytes
    authorization: tuple[int, ...]
    owner: Owners


class ConvertSubnetToL1Tx(PlatformBaseTx, frozen=True, gc=False):
    """Hands a subnet over to a contract: `address` on `chain_id` manages its validators from now on."""

    type_id: ClassVar[int] = 35
    subnet_id: bytes
    chain_id: bytes
    address: bytes
    validators: tuple[ConvertedValidator, ...]
    authorization: tuple[int, ...]


class RegisterL1ValidatorTx(PlatformBaseTx, frozen=True, gc=False):
    """Adds the validator that the warp `message` describes."""

    type_id: ClassVar[int] = 36
    balance: int
    proof_of_possession: bytes
    message: bytes


class SetL1ValidatorWeightTx(PlatformBaseTx, frozen=True, gc=False):
    type_id: ClassVar[int] = 37
    message: bytes


class IncreaseL1ValidatorBalanceTx(PlatformBaseTx, frozen=True, gc=False):
    type_id: ClassVar[int] = 38
    validation_id: bytes
    balance: int


class DisableL1ValidatorTx(PlatformBaseTx, frozen=True, gc=False):
    type_id: ClassVar[int] = 39
    validation_id: bytes
    authorization: tuple[int, ...]


UnsignedTx: TypeAlias = PlatformBaseTx | AdvanceTimeTx | RewardValidatorTx


class PlatformTx(msgspec.Struct, frozen=True, gc=False):
    """A transaction with its credentials, and the bytes it came from: those are stored and sent, never rebuilt."""

    unsigned: UnsignedTx
    credentials: tuple[Credential, ...]
    raw: bytes
    unsigned_size: int
    txid: bytes


class BlockType(IntEnum):
    APRICOT_PROPOSAL = 0
    APRICOT_ABORT = 1
    APRICOT_COMMIT = 2
    APRICOT_STANDARD = 3
    APRICOT_ATOMIC = 4
    BANFF_PROPOSAL = 29
    BANFF_ABORT = 30
    BANFF_COMMIT = 31
    BANFF_STANDARD = 32


PROPOSALS = frozenset({BlockType.APRICOT_PROPOSAL, BlockType.BANFF_PROPOSAL})
ABORTS = frozenset({BlockType.APRICOT_ABORT, BlockType.BANFF_ABORT})
COMMITS = frozenset({BlockType.APRICOT_COMMIT, BlockType.BANFF_COMMIT})


class PlatformBlock(msgspec.Struct, frozen=True, gc=False):
    """A block without its proposer's wrapping.

    Only Banff blocks have a `time`. `txs` take effect with the block itself: those of a standard block, the one of an
    atomic block, and those that a Banff proposal carries besides its `proposal`, which the next block decides.
    """

    block_type: BlockType
    parent_id: bytes
    height: int
    time: int | None
    txs: tuple[PlatformTx, ...]
    proposal: PlatformTx | None
    raw: bytes
    block_id: bytes


class PlatformGenesis(msgspec.Struct, frozen=True, gc=False):
    """What the P-Chain starts with. Each UTXO comes with the message that the genesis file gives it."""

    utxos: tuple[tuple[PlatformUtxo, bytes], ...]
    validators: tuple[PlatformTx, ...]
    chains: tuple[PlatformTx, ...]
    timestamp: int
    initial_supply: int
    message: str
