"""The fields of a transaction that only some types have."""

from collections.abc import Iterable
from typing import Any

import msgspec
from msgspec import UNSET

from icefall.api.networks.network import PrimaryNetwork
from icefall.api.networks.schema.assets import BlsCredentials, ManagerDetails, OwnershipInfo
from icefall.api.networks.schema.transactions import BlockchainInfo, L1ValidatorOfTx
from icefall.pchain.listing import ListedL1Move, ListedStaker, ListedTx
from icefall.pchain.model import StakerState
from icefall.pchain.transactions import reward_owner_of
from icefall.wire.avm.types import Owners
from icefall.wire.ids import NODE_ID_PREFIX, PRIMARY_NETWORK, id_text, short_id_text
from icefall.wire.pvm import types as t
from icefall.wire.pvm.warp import first_validation_id, registration_in

_PARTS_PER_PERCENT = 10_000  # shares are in millionths


def node_text(node_id: bytes) -> str:
    return NODE_ID_PREFIX + short_id_text(node_id)


def percent_text(shares: int) -> str:
    """Write millionths as percent, exactly."""
    return f"{shares // _PARTS_PER_PERCENT}.{shares % _PARTS_PER_PERCENT:04d}"


def ownership(network: PrimaryNetwork, owner: Owners) -> OwnershipInfo:
    return OwnershipInfo(
        locktime=owner.locktime, threshold=owner.threshold, addresses=network.addresses(owner.addresses)
    )


def signer_of(signer: t.BlsSigner) -> BlsCredentials:
    return BlsCredentials(
        public_key=f"0x{signer.public_key.hex()}", proof_of_possession=f"0x{signer.proof_of_possession.hex()}"
    )


def genesis_object(genesis: bytes) -> dict[str, Any]:
    """A genesis as an object: that of an EVM chain is one, others are shown in hex."""
    try:
        found = msgspec.json.decode(genesis)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        found = None
    return found if isinstance(found, dict) else {"encoding": "hex", "data": f"0x{genesis.hex()}"}


def details_of(
    network: PrimaryNetwork, staker: ListedStaker | None, row: ListedTx, tx: t.PlatformTx, *, with_genesis: bool
) -> dict[str, Any]:
    """The fields of a transaction's own type, by their names in the result."""
    unsigned: Any = tx.unsigned
    found: dict[str, Any] = {}
    subnet_id = getattr(unsigned, "subnet_id", None)
    if hasattr(unsigned, "validator"):
        subnet_id = subnet_id or PRIMARY_NETWORK
        found |= _staking(network, staker, unsigned)
    elif isinstance(unsigned, t.CreateSubnetTx):
        subnet_id = tx.txid
    elif isinstance(unsigned, t.RegisterL1ValidatorTx):
        subnet_id = registration_in(unsigned.message).subnet_id
    elif isinstance(unsigned, t.RewardValidatorTx):
        found["staking_tx_hash"] = id_text(unsigned.staking_txid)
    elif isinstance(unsigned, t.PlatformImportTx):
        found["source_chain"] = id_text(unsigned.source_chain)
    elif isinstance(unsigned, t.PlatformExportTx):
        found["destination_chain"] = id_text(unsigned.destination_chain)
    elif isinstance(unsigned, t.RemoveSubnetValidatorTx):
        found["node_id"] = node_text(unsigned.node_id)
    if isinstance(unsigned, t.CreateChainTx):
        found["blockchain_info"] = BlockchainInfo(
            chain_name=unsigned.chain_name,
            vm_id=id_text(unsigned.vm_id),
            genesis_data=genesis_object(unsigned.genesis) if with_genesis else UNSET,
        )
    if isinstance(unsigned, t.CreateSubnetTx | t.TransferSubnetOwnershipTx):
        found["subnet_ownership_info"] = ownership(network, unsigned.owner)
    if isinstance(unsigned, t.ConvertSubnetToL1Tx):
        found["l1_validator_manager_details"] = ManagerDetails(
            blockchain_id=id_text(unsigned.chain_id), contract_address=f"0x{unsigned.address.hex()}"
        )
    if validators := _l1_validators(unsigned):
        found["l1_validator_details"] = validators
    return found if subnet_id is None else found | {"subnet_id": id_text(subnet_id)}


def _staking(network: PrimaryNetwork, staker: ListedStaker | None, unsigned: Any) -> dict[str, Any]:
    """The fields of a staking transaction. One that was aborted has no staker, and only what it names itself."""
    validator = unsigned.validator
    found: dict[str, Any] = {
        "node_id": node_text(validator.node_id),
        "start_timestamp": validator.start if staker is None else staker.start,
        "end_timestamp": validator.end,
    }
    if isinstance(unsigned, t.AddValidatorTx | t.AddPermissionlessValidatorTx):
        found["delegation_fee_percent"] = percent_text(unsigned.shares)
    owner = reward_owner_of(unsigned)
    if owner is not None:
        found["reward_addresses"] = network.addresses(owner.addresses)
        if staker is not None and staker.state != StakerState.PENDING:
            found["estimated_reward"] = str(staker.potential_reward)
    if isinstance(unsigned, t.AddPermissionlessValidatorTx) and unsigned.signer is not None:
        found["bls_credentials"] = signer_of(unsigned.signer)
    return found


def _l1_validators(unsigned: t.UnsignedTx) -> list[L1ValidatorOfTx]:
    """The L1 validators that a transaction adds, as they are right after it."""
    if isinstance(unsigned, t.RegisterL1ValidatorTx):
        message = registration_in(unsigned.message)
        signer = t.BlsSigner(message.public_key, unsigned.proof_of_possession)
        return [
            _l1_validator(
                message.validation_id, message.node_id, message.subnet_id, message.weight, unsigned.balance, signer
            )
        ]
    if isinstance(unsigned, t.ConvertSubnetToL1Tx):
        return [
            _l1_validator(
                first_validation_id(unsigned.subnet_id, position),
                one.node_id,
                unsigned.subnet_id,
                one.weight,
                one.balance,
                one.signer,
            )
            for position, one in enumerate(unsigned.validators)
        ]
    return []


def moved_l1(moves: Iterable[ListedL1Move]) -> dict[str, Any]:
    """The validators of L1s that a transaction has changed, as they are right after it."""
    found = [
        L1ValidatorOfTx(
            validation_id=id_text(one.validation_id),
            validation_id_hex=f"0x{one.validation_id.hex()}",
            node_id=node_text(one.node_id),
            subnet_id=id_text(one.subnet_id),
            weight=one.weight,
            remaining_balance=one.balance,
            balance_change=one.change,
        )
        for one in moves
    ]
    return {"l1_validator_details": found, "subnet_id": found[0].subnet_id} if found else {}


def _l1_validator(
    validation_id: bytes, node_id: bytes, subnet_id: bytes, weight: int, balance: int, signer: t.BlsSigner
) -> L1ValidatorOfTx:
    return L1ValidatorOfTx(
        validation_id=id_text(validation_id),
        validation_id_hex=f"0x{validation_id.hex()}",
        node_id=node_text(node_id),
        subnet_id=id_text(subnet_id),
        weight=weight,
        remaining_balance=balance,
        balance_change=balance,
        bls_credentials=signer_of(signer),
    )
