"""P-Chain transactions and blocks as the node's JSON: same keys, same order, same bytes.

Outputs and owners look as on the asset chain; credentials do not name their Fx here. A row per type of transaction says
under which key each of its fields is written, in the order in which they are written.
"""

from base64 import b64encode
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from icefall.wire.avm.json import ChainNaming, numbers_json, owners_json, transfer_output_json
from icefall.wire.avm.types import Credential
from icefall.wire.ids import NODE_ID_PREFIX, SECP256K1_FX_ID, id_text, short_id_text
from icefall.wire.pvm import types as t
from icefall.wire.text import cb58
from icefall.wire.text.go_text import json_string

_SECP = cb58.encode(SECP256K1_FX_ID)
_Render = Callable[[Any, ChainNaming], str]


def tx_json(tx: t.PlatformTx, naming: ChainNaming) -> bytes:
    """Write a transaction as `platform.getTx` shows it."""
    return _tx(tx, naming).encode()


def block_json(block: t.PlatformBlock, naming: ChainNaming) -> bytes:
    """Write a block as `platform.getBlock` shows it. Its type is not shown."""
    txs = f'"txs":[{",".join([_tx(tx, naming) for tx in block.txs])}]'
    head = f'"parentID":"{id_text(block.parent_id)}","height":{block.height},"id":"{cb58.encode(block.block_id)}"'
    pieces = [] if block.time is None else [f'"time":{block.time}']
    if block.block_type is t.BlockType.BANFF_PROPOSAL:
        pieces.append(txs)
    pieces.append(head)
    if block.block_type in (t.BlockType.BANFF_STANDARD, t.BlockType.APRICOT_STANDARD):
        pieces.append(txs)
    single = block.txs[0] if block.block_type is t.BlockType.APRICOT_ATOMIC else block.proposal
    if single is not None:
        pieces.append(f'"tx":{_tx(single, naming)}')
    return f"{{{','.join(pieces)}}}".encode()


def output_json(output: t.PlatformOutput, naming: ChainNaming) -> str:
    """Write an output of an asset."""
    return f'{{"assetID":"{id_text(output.asset_id)}","fxID":"{_SECP}","output":{_inner_output(output, naming)}}}'


@lru_cache(maxsize=4096)
def node_id_json(node_id: bytes) -> str:
    """Write the name of a node in quotes."""
    return f'"{NODE_ID_PREFIX}{short_id_text(node_id)}"'


def _tx(tx: t.PlatformTx, naming: ChainNaming) -> str:
    unsigned = tx.unsigned
    fields = ",".join(
        [
            f'"{key}":{render(getattr(unsigned, name) if name else unsigned, naming)}'
            for name, key, render in _FIELDS[type(unsigned)]
        ]
    )
    credentials = ",".join([_credential(credential) for credential in tx.credentials])
    return f'{{"unsignedTx":{{{fields}}},"credentials":[{credentials}],"id":"{id_text(tx.txid)}"}}'


def _credential(credential: Credential) -> str:
    signatures = ",".join([f'"0x{signature.hex()}"' for signature in credential.signatures])
    return f'{{"signatures":[{signatures}]}}'


def _inner_output(output: t.PlatformOutput, naming: ChainNaming) -> str:
    inner = output.output
    if isinstance(inner, t.StakeableOutput):
        return f'{{"locktime":{inner.locktime},"output":{transfer_output_json(inner.output, naming)}}}'
    return transfer_output_json(inner, naming)


def _outputs(outputs: tuple[t.PlatformOutput, ...], naming: ChainNaming) -> str:
    return f"[{','.join([output_json(output, naming) for output in outputs])}]"


def _inputs(inputs: tuple[t.PlatformInput, ...], _naming: ChainNaming) -> str:
    rows = [
        f'{{"txID":"{id_text(at.txid)}","outputIndex":{at.output_index},"assetID":"{id_text(at.asset_id)}",'
        f'"fxID":"{_SECP}","input":{_input(at.input)}}}'
        for at in inputs
    ]
    return f"[{','.join(rows)}]"


def _input(value: t.Input) -> str:
    if isinstance(value, t.StakeableInput):
        return f'{{"locktime":{value.locktime},"input":{_input(value.input)}}}'
    return f'{{"amount":{value.amount},"signatureIndices":{numbers_json(value.signature_indices)}}}'


def _number(value: int, _naming: ChainNaming) -> str:
    return str(value)


def _id(value: bytes, _naming: ChainNaming) -> str:
    return f'"{id_text(value)}"'


def _ids(values: tuple[bytes, ...], _naming: ChainNaming) -> str:
    quoted = [f'"{id_text(value)}"' for value in values]
    return f"[{','.join(quoted)}]"


def _hex(value: bytes, _naming: ChainNaming) -> str:
    return f'"0x{value.hex()}"'


def _base64(value: bytes, _naming: ChainNaming) -> str:
    return f'"{b64encode(value).decode()}"'


def _text(value: str, _naming: ChainNaming) -> str:
    return json_string(value)


def _byte_list(value: bytes, _naming: ChainNaming) -> str:
    return numbers_json(tuple(value))


def _node(value: bytes, _naming: ChainNaming) -> str:
    return node_id_json(value)


def _authorization(indices: tuple[int, ...], _naming: ChainNaming) -> str:
    return f'{{"signatureIndices":{numbers_json(indices)}}}'


def _validator(value: t.Validator, _naming: ChainNaming) -> str:
    return f"{{{_period(value)}}}"


def _subnet_validator(tx: t.AddSubnetValidatorTx, _naming: ChainNaming) -> str:
    return f'{{{_period(tx.validator)},"subnetID":"{id_text(tx.subnet_id)}"}}'


def _period(value: t.Validator) -> str:
    times = f'"start":{value.start},"end":{value.end},"weight":{value.weight}'
    return f'"nodeID":{node_id_json(value.node_id)},{times}'


def _signer(signer: t.BlsSigner | None, _naming: ChainNaming) -> str:
    if signer is None:
        return "{}"
    return f'{{"publicKey":"0x{signer.public_key.hex()}","proofOfPossession":"0x{signer.proof_of_possession.hex()}"}}'


def _committee(committee: t.Committee) -> str:
    """Write an owner whose addresses belong to no chain yet, so they are bare short IDs."""
    addresses = ",".join([f'"{short_id_text(address)}"' for address in committee.addresses])
    return f'{{"threshold":{committee.threshold},"addresses":[{addresses}]}}'


def _converted(validators: tuple[t.ConvertedValidator, ...], naming: ChainNaming) -> str:
    rows = [
        f'{{"nodeID":"0x{one.node_id.hex()}","weight":{one.weight},"balance":{one.balance},'
        f'"signer":{_signer(one.signer, naming)},"remainingBalanceOwner":{_committee(one.remaining_balance_owner)},'
        f'"deactivationOwner":{_committee(one.deactivation_owner)}}}'
        for one in validators
    ]
    return f"[{','.join(rows)}]"


# (field of the struct, or nothing for the whole struct; key; how it is written)
_Field = tuple[str, str, _Render]
_SUBNET: _Field = ("subnet_id", "subnetID", _id)
_AUTHORIZED: _Field = ("authorization", "subnetAuthorization", _authorization)
_VALIDATOR: _Field = ("validator", "validator", _validator)
_STAKE: _Field = ("stake", "stake", _outputs)
_REWARDS: _Field = ("rewards_owner", "rewardsOwner", owners_json)
_SHARES: _Field = ("shares", "shares", _number)
_BASE: tuple[_Field, ...] = (
    ("network_id", "networkID", _number),
    ("blockchain_id", "blockchainID", _id),
    ("outputs", "outputs", _outputs),
    ("inputs", "inputs", _inputs),
    ("memo", "memo", _hex),
)
_NUMBERS_OF_TRANSFORMATION = (
    ("initial_supply", "initialSupply"),
    ("maximum_supply", "maximumSupply"),
    ("min_consumption_rate", "minConsumptionRate"),
    ("max_consumption_rate", "maxConsumptionRate"),
    ("min_validator_stake", "minValidatorStake"),
    ("max_validator_stake", "maxValidatorStake"),
    ("min_stake_duration", "minStakeDuration"),
    ("max_stake_duration", "maxStakeDuration"),
    ("min_delegation_fee", "minDelegationFee"),
    ("min_delegator_stake", "minDelegatorStake"),
    ("max_validator_weight_factor", "maxValidatorWeightFactor"),
    ("uptime_requirement", "uptimeRequirement"),
)
_SPECIAL: dict[type, tuple[_Field, ...]] = {
    t.PlatformBaseTx: (),
    t.AddValidatorTx: (_VALIDATOR, _STAKE, _REWARDS, _SHARES),
    t.AddSubnetValidatorTx: (("", "validator", _subnet_validator), _AUTHORIZED),
    t.AddDelegatorTx: (_VALIDATOR, _STAKE, _REWARDS),
    t.CreateChainTx: (
        _SUBNET,
        ("chain_name", "chainName", _text),
        ("vm_id", "vmID", _id),
        ("fx_ids", "fxIDs", _ids),
        ("genesis", "genesisData", _base64),
        _AUTHORIZED,
    ),
    t.CreateSubnetTx: (("owner", "owner", owners_json),),
    t.PlatformImportTx: (("source_chain", "sourceChain", _id), ("imported_inputs", "importedInputs", _inputs)),
    t.PlatformExportTx: (
        ("destination_chain", "destinationChain", _id),
        ("exported_outputs", "exportedOutputs", _outputs),
    ),
    t.RemoveSubnetValidatorTx: (("node_id", "nodeID", _node), _SUBNET, _AUTHORIZED),
    t.TransformSubnetTx: (
        _SUBNET,
        ("asset_id", "assetID", _id),
        *[(name, key, _number) for name, key in _NUMBERS_OF_TRANSFORMATION],
        _AUTHORIZED,
    ),
    t.AddPermissionlessValidatorTx: (
        _VALIDATOR,
        _SUBNET,
        ("signer", "signer", _signer),
        _STAKE,
        ("validation_rewards_owner", "validationRewardsOwner", owners_json),
        ("delegation_rewards_owner", "delegationRewardsOwner", owners_json),
        _SHARES,
    ),
    t.AddPermissionlessDelegatorTx: (_VALIDATOR, _SUBNET, _STAKE, _REWARDS),
    t.TransferSubnetOwnershipTx: (_SUBNET, _AUTHORIZED, ("owner", "newOwner", owners_json)),
    t.ConvertSubnetToL1Tx: (
        _SUBNET,
        ("chain_id", "chainID", _id),
        ("address", "address", _hex),
        ("validators", "validators", _converted),
        _AUTHORIZED,
    ),
    t.RegisterL1ValidatorTx: (
        ("balance", "balance", _number),
        ("proof_of_possession", "proofOfPossession", _byte_list),
        ("message", "message", _hex),
    ),
    t.SetL1ValidatorWeightTx: (("message", "message", _hex),),
    t.IncreaseL1ValidatorBalanceTx: (("validation_id", "validationID", _id), ("balance", "balance", _number)),
    t.DisableL1ValidatorTx: (
        ("validation_id", "validationID", _id),
        ("authorization", "disableAuthorization", _authorization),
    ),
}
_FIELDS: dict[type, tuple[_Field, ...]] = {
    **{tx_type: (*_BASE, *fields) for tx_type, fields in _SPECIAL.items()},
    t.AdvanceTimeTx: (("time", "time", _number),),
    t.RewardValidatorTx: (("staking_txid", "txID", _id),),
}
