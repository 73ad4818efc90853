"""Recorded answers of `platform.*`, compared with what our reader has: values, whatever their rendering."""

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Any

from icefall.pchain.reading import PlatformReader
from icefall.wire.ids import (
    NODE_ID_PREFIX,
    PRIMARY_NETWORK,
    id_from_text,
    id_text,
    node_id_from_text,
)
from icefall.wire.pvm.codec import unpack_utxo
from icefall.wire.pvm.types import StakeableOutput
from icefall.wire.text import cb58, checksum_hex
from icefall.wire.text.bech32 import address_from_text
from icefall.xchain.store import NEWEST

Compared = tuple[Any, Any]  # ours and the recorded one
Compare = Callable[[PlatformReader, dict[str, Any], Any], Awaitable[Compared]]


def subnet_in(params: dict[str, Any]) -> bytes:
    return id_from_text(params["subnetID"]) if params.get("subnetID") else PRIMARY_NETWORK


def addresses_in(params: dict[str, Any]) -> list[bytes]:
    return [address_from_text(text)[2] for text in params["addresses"]]


async def _fee_state(reader: PlatformReader, params: dict[str, Any], result: Any) -> Compared:
    at = await reader.ledger()
    price = at.fee.price(reader.parameters.fees)
    return (at.fee.capacity, at.fee.excess, price), (result["capacity"], result["excess"], result["price"])


async def _validator_fee_state(reader: PlatformReader, params: dict[str, Any], result: Any) -> Compared:
    return (await reader.ledger()).l1_excess, result["excess"]


async def _height(reader: PlatformReader, params: dict[str, Any], result: Any) -> Compared:
    return str((await reader.ledger()).height), result["height"]


async def _timestamp(reader: PlatformReader, params: dict[str, Any], result: Any) -> Compared:
    recorded = datetime.fromisoformat(result["timestamp"].replace("Z", "+00:00"))
    return (await reader.ledger()).time, int(recorded.timestamp())


async def _supply(reader: PlatformReader, params: dict[str, Any], result: Any) -> Compared:
    return str(await reader.supply(subnet_in(params))), result["supply"]


async def _members(reader: PlatformReader, params: dict[str, Any], result: Any) -> Compared:
    members = await reader.validators_at(subnet_in(params), int(params["height"]))
    ours = {
        NODE_ID_PREFIX + cb58.encode(node_id): {"publicKey": f"0x{key.hex()}" if key else None, "weight": str(weight)}
        for node_id, (weight, key) in members.items()
    }
    return ours, result.get("validators", result)


async def _all_members(reader: PlatformReader, params: dict[str, Any], result: Any) -> Compared:
    sets = await reader.all_validators_at(int(params["height"]))
    ours = {id_text(subnet): str(sum(weight for weight, _ in members.values())) for subnet, members in sets.items()}
    return ours, {subnet: one["totalWeight"] for subnet, one in result["validatorSets"].items()}


async def _total_stake(reader: PlatformReader, params: dict[str, Any], result: Any) -> Compared:
    members = await reader.validators_at(subnet_in(params), (await reader.ledger()).height)
    return str(sum(weight for weight, _ in members.values())), result["weight"]


async def _l1_validator(reader: PlatformReader, params: dict[str, Any], result: Any) -> Compared:
    found, at = await reader.l1_validator(id_from_text(params["validationID"])), await reader.ledger()
    assert found is not None
    balance = found.end_accumulated_fee - at.accrued_fees if found.is_active else 0
    ours = {
        "nodeID": NODE_ID_PREFIX + cb58.encode(found.node_id),
        "weight": str(found.weight),
        "startTime": str(found.start),
        "validationID": id_text(found.validation_id),
        "publicKey": f"0x{found.public_key.hex()}",
        "minNonce": str(found.min_nonce),
        "balance": str(balance),
        "subnetID": id_text(found.subnet_id),
    }
    return ours, {name: result[name] for name in ours}


async def _validators(reader: PlatformReader, params: dict[str, Any], result: Any) -> Compared:
    subnet, nodes = subnet_in(params), [node_id_from_text(text) for text in params.get("nodeIDs") or ()]
    delegations = await reader.delegations(subnet)
    ours = {}
    for row in await reader.validators(subnet):
        staker = row.staker
        if nodes and staker.node_id not in nodes:
            continue
        of = delegations.get(staker.node_id)
        ours[id_text(staker.txid)] = {
            "startTime": str(staker.start),
            "endTime": str(staker.end),
            "weight": str(staker.weight),
            "potentialReward": str(staker.potential_reward) if staker.validation_owner else None,
            "accruedDelegateeReward": str(row.delegatee_reward) if staker.validation_owner else None,
            "delegatorWeight": str(of.weight if of else 0) if staker.validation_owner else None,
            "delegatorCount": str(of.count if of else 0) if staker.validation_owner else None,
        }
    recorded = {
        one["txID"]: {name: one.get(name) for name in next(iter(ours.values()), {})}
        for one in result["validators"]
        if "txID" in one
    }
    l1 = [id_text(one.validation_id) for one in await reader.l1_validators(subnet) if not nodes or one.node_id in nodes]
    return (ours, l1), (recorded, [one["validationID"] for one in result["validators"] if "validationID" in one])


async def _utxos(reader: PlatformReader, params: dict[str, Any], result: Any) -> Compared:
    source, found = params.get("sourceChain"), set()
    if source in ("P", id_text(PRIMARY_NETWORK)):
        source = None
    for address in addresses_in(params):
        if source:
            chains = {"X": 0, "C": 1}
            chain_id = (await reader.blockchains())[chains[source]].chain_id if source in chains else b""
            rows = await reader.atomic_utxos(chain_id or id_from_text(source), address, NEWEST, 1024)
        else:
            rows = await reader.utxos(address, NEWEST, 1024)
        found |= {checksum_hex.encode(row.raw) for row in rows}
    return found, set(result["utxos"])


async def _balance(reader: PlatformReader, params: dict[str, Any], result: Any) -> Compared:
    found = set()
    for address in addresses_in(params):
        for row in await reader.utxos(address, NEWEST, 1024):
            utxo = unpack_utxo(row.raw)
            found.add((id_text(utxo.txid), utxo.output_index))
    return found, {(one["txID"], one["outputIndex"]) for one in result["utxoIDs"] or ()}


async def _stake(reader: PlatformReader, params: dict[str, Any], result: Any) -> Compared:
    validators_only = params.get("validatorsOnly", False)
    found = []
    for raw in await reader.stakes(addresses_in(params), validators_only=validators_only):
        utxo = unpack_utxo(raw)
        plain = utxo.output.output if isinstance(utxo.output, StakeableOutput) else utxo.output
        found.append((id_text(utxo.asset_id), plain.amount))
    sums: dict[str, int] = {}
    for asset, amount in found:
        sums[asset] = sums.get(asset, 0) + amount
    return {asset: str(amount) for asset, amount in sums.items()}, result["stakeds"]


async def _rewards(reader: PlatformReader, params: dict[str, Any], result: Any) -> Compared:
    found = await reader.reward_utxos(id_from_text(params["txID"]))
    return {checksum_hex.encode(raw) for raw in found}, set(result["utxos"] or ())


async def _tx_status(reader: PlatformReader, params: dict[str, Any], result: Any) -> Compared:
    found = await reader.tx(id_from_text(params["txID"]))
    status = "Unknown" if found is None else "Committed" if found.is_committed else "Aborted"
    return status, result["status"]


async def _tx(reader: PlatformReader, params: dict[str, Any], result: Any) -> Compared:
    found = await reader.tx(id_from_text(params["txID"]))
    assert found is not None
    return checksum_hex.encode(found.raw), result["tx"]


async def _block_at(reader: PlatformReader, params: dict[str, Any], result: Any) -> Compared:
    found = await reader.block_at(int(params["height"]))
    assert found is not None
    return checksum_hex.encode(found), result["block"]


async def _subnet(reader: PlatformReader, params: dict[str, Any], result: Any) -> Compared:
    found = await reader.subnet(subnet_in(params))
    assert found is not None
    ours = (
        not found.transformation_txid and not found.conversion_id,
        str(found.owner.threshold),
        set(found.owner.addresses),
        id_text(found.transformation_txid or bytes(32)),
        id_text(found.conversion_id or bytes(32)),
        id_text(found.manager_chain_id or bytes(32)),
        f"0x{found.manager_address.hex()}" if found.manager_address else None,
    )
    names = "subnetTransformationTxID", "conversionID", "managerChainID", "managerAddress"
    keys = {address_from_text(text)[2] for text in result["controlKeys"] or ()}
    return ours, (result["isPermissioned"], result["threshold"], keys, *[result[name] for name in names])


async def _blockchains(reader: PlatformReader, params: dict[str, Any], result: Any) -> Compared:
    ours = {
        (id_text(one.chain_id), one.name, id_text(one.subnet_id), id_text(one.vm_id))
        for one in await reader.blockchains()
    }
    return ours, {(one["id"], one["name"], one["subnetID"], one["vmID"]) for one in result["blockchains"]}


async def _validates(reader: PlatformReader, params: dict[str, Any], result: Any) -> Compared:
    chains = await reader.blockchains_of(subnet_in(params))
    return {id_text(one.chain_id) for one in chains}, set(result["blockchainIDs"] or ())


COMPARED: dict[str, Compare] = {
    "getFeeState": _fee_state,
    "getValidatorFeeState": _validator_fee_state,
    "getHeight": _height,
    "getTimestamp": _timestamp,
    "getCurrentSupply": _supply,
    "getValidatorsAt": _members,
    "getAllValidatorsAt": _all_members,
    "getTotalStake": _total_stake,
    "getL1Validator": _l1_validator,
    "getCurrentValidators": _validators,
    "getUTXOs": _utxos,
    "getBalance": _balance,
    "getStake": _stake,
    "getRewardUTXOs": _rewards,
    "getTxStatus": _tx_status,
    "getTx": _tx,
    "getBlockByHeight": _block_at,
    "getSubnet": _subnet,
    "getBlockchains": _blockchains,
    "validates": _validates,
}
