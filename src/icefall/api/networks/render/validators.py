"""Validators, delegators and rewards as they are shown."""

from typing import Any

from msgspec import UNSET, UnsetType

from icefall.api.networks.network import PrimaryNetwork
from icefall.api.networks.render.details import node_text, percent_text, signer_of
from icefall.api.networks.render.utxos import REWARD_TYPES
from icefall.api.networks.schema.assets import BlsCredentials
from icefall.api.networks.schema.validators import (
    CommitteeOwner,
    DelegationDetails,
    HistoricalReward,
    ListedL1Validator,
    PendingReward,
    ValidationDetails,
    ValidatorHealth,
    ValidatorRewards,
)
from icefall.pchain.fees import split_reward
from icefall.pchain.model import L1Validator, StakerState, is_primary, plain_output
from icefall.pchain.observed import UPTIME_SCALE, ObservedNode
from icefall.pchain.periods import PaidReward, Period
from icefall.wire.avm.types import Owners
from icefall.wire.ids import id_text
from icefall.wire.pvm.codec import unpack_utxo
from icefall.wire.pvm.types import BlsSigner, Committee

STATUS = {
    StakerState.PENDING: "pending",
    StakerState.CURRENT: "active",
    StakerState.REWARDED: "completed",
    StakerState.NOT_REWARDED: "completed",
    StakerState.REMOVED: "removed",
}
_NOT_SEEN = ValidatorHealth(
    reachability_percent=0.0,
    benched_p_chain_requests_percent=0.0,
    benched_x_chain_requests_percent=0.0,
    benched_c_chain_requests_percent=0.0,
)


def uptime_of(period: Period, seen: ObservedNode | None) -> float:
    """The uptime of an active validator of the primary network, in percent; 0 if it was not seen. Nodes do not say what
    it is on other subnets."""
    return seen.uptime / UPTIME_SCALE if seen is not None and is_primary(period.subnet_id) else 0.0


def _health(seen: ObservedNode | None) -> ValidatorHealth:
    """What one look tells: all or nothing."""
    if seen is None:
        return _NOT_SEEN
    benched = {letter: 100.0 if letter in seen.benched else 0.0 for letter in "PXC"}
    return ValidatorHealth(
        reachability_percent=100.0 if seen.is_connected else 0.0,
        benched_p_chain_requests_percent=benched["P"],
        benched_x_chain_requests_percent=benched["X"],
        benched_c_chain_requests_percent=benched["C"],
    )


def validator_details(
    network: PrimaryNetwork, period: Period, subnet_stake: int, seen: ObservedNode | None
) -> ValidationDetails:
    """A validation period. `subnet_stake` is all that is staked in its subnet now, `seen` what an upstream saw."""
    return ValidationDetails(
        tx_hash=id_text(period.txid),
        node_id=node_text(period.node_id),
        subnet_id=id_text(period.subnet_id),
        amount_staked=str(period.weight),
        delegation_fee=percent_text(period.shares) if period.validation_owner is not None else UNSET,
        start_timestamp=period.start,
        end_timestamp=period.end,
        bls_credentials=_signer(period),
        validation_status=STATUS[period.state],  # type: ignore[arg-type]
        **_of_status(network, period, subnet_stake, seen),
    )


def _of_status(network: PrimaryNetwork, period: Period, subnet_stake: int, seen: ObservedNode | None) -> dict[str, Any]:
    """The fields that only periods of one status have."""
    if period.state == StakerState.CURRENT:
        return {
            "stake_percentage": 100 * period.weight / subnet_stake if subnet_stake else 0.0,
            "delegator_count": period.delegator_count,
            "amount_delegated": str(period.delegator_weight),
            "uptime_performance": uptime_of(period, seen),
            "avalanche_go_version": seen.version if seen is not None and seen.version else UNSET,
            "delegation_capacity": str(period.capacity) if is_primary(period.subnet_id) else UNSET,
            "potential_rewards": _rewards(
                network, period, period.potential_reward, period.delegatee_reward + period.delegator_fees
            ),
            "validator_health": _health(seen),
            "geolocation": None,
        }
    if period.state == StakerState.REMOVED:
        txid, time = period.ended_txid, period.ended_time
        return {
            "remove_tx_hash": id_text(txid) if txid is not None else "",
            "remove_timestamp": time if time is not None else 0,
        }
    if period.state == StakerState.PENDING:
        return {}
    paid = period.potential_reward if period.state == StakerState.REWARDED else 0
    return {
        "delegator_count": period.ever_count,
        "amount_delegated": str(period.ever_weight),
        "rewards": _rewards(network, period, paid, period.delegatee_reward + period.prepaid),
    }


def _rewards(network: PrimaryNetwork, period: Period, own: int, of_delegations: int) -> ValidatorRewards:
    owner = period.validation_owner
    return ValidatorRewards(
        validation_reward_amount=str(own),
        delegation_reward_amount=str(of_delegations),
        reward_addresses=network.addresses(owner.addresses) if owner is not None else UNSET,
        reward_tx_hash=id_text(period.ended_txid) if period.ended_txid is not None else UNSET,
    )


def _signer(period: Period) -> BlsCredentials | UnsetType:
    if period.public_key is None or period.proof_of_possession is None:
        return UNSET
    return signer_of(BlsSigner(period.public_key, period.proof_of_possession))


def delegator_details(network: PrimaryNetwork, period: Period) -> DelegationDetails:
    """A delegation. Nothing is paid for one whose validator was not online enough."""
    _, net = split_reward(period.potential_reward, period.shares)
    rewards: dict[str, str]
    if period.state in (StakerState.CURRENT, StakerState.PENDING):
        rewards = {"estimated_gross_reward": str(period.potential_reward), "estimated_net_reward": str(net)}
    elif period.state == StakerState.REWARDED:
        rewards = {"gross_reward": str(period.potential_reward), "net_reward": str(net)}
    else:
        rewards = {"gross_reward": "0", "net_reward": "0"}
    owner = period.validation_owner
    return DelegationDetails(
        tx_hash=id_text(period.txid),
        node_id=node_text(period.node_id),
        reward_addresses=network.addresses(owner.addresses) if owner is not None else [],
        amount_delegated=str(period.weight),
        delegation_fee=percent_text(period.shares),
        start_timestamp=period.start,
        end_timestamp=period.end,
        delegation_status=STATUS[period.state],  # type: ignore[arg-type]
        **rewards,
    )


def l1_validator_details(network: PrimaryNetwork, validator: L1Validator, accrued_fees: int) -> ListedL1Validator:
    """A validator of an L1; one that was removed weighs nothing."""
    return ListedL1Validator(
        validation_id=id_text(validator.validation_id),
        validation_id_hex=f"0x{validator.validation_id.hex()}",
        node_id=node_text(validator.node_id),
        subnet_id=id_text(validator.subnet_id),
        weight=0 if validator.is_removed else validator.weight,
        remaining_balance=validator.end_accumulated_fee - accrued_fees if validator.is_active else 0,
        creation_timestamp=validator.start,
        bls_credentials=BlsCredentials(
            public_key=f"0x{validator.public_key.hex()}",
            proof_of_possession=f"0x{validator.proof_of_possession.hex()}" if validator.proof_of_possession else UNSET,
        ),
        remaining_balance_owner=_committee(network, validator.remaining_balance_owner),
        deactivation_owner=_committee(network, validator.deactivation_owner),
    )


def _committee(network: PrimaryNetwork, owner: Committee) -> CommitteeOwner:
    return CommitteeOwner(addresses=network.addresses(owner.addresses), threshold=owner.threshold)


def pending_rewards(
    network: PrimaryNetwork, period: Period, asset_id: bytes, now: int
) -> list[tuple[str, Owners, PendingReward]]:
    """What a period will pay, each with its type and who gets it: the reward of the staker, and of a delegation also
    the validator's share. What pays nothing is left out."""
    if period.validation_owner is None:
        return []
    parts: list[tuple[str, Owners, int]]
    if period.is_delegator:
        fee, net = split_reward(period.potential_reward, period.shares)
        parts = [("DELEGATOR", period.validation_owner, net)]
        if period.fee_owner is not None:
            parts.append(("VALIDATOR_FEE", period.fee_owner, fee))
    else:
        parts = [("VALIDATOR", period.validation_owner, period.potential_reward)]
    length = max(1, period.end - period.start)
    progress = round(100 * min(max(now - period.start, 0), length) / length, 2)
    return [
        (
            kind,
            owner,
            PendingReward(
                addresses=network.addresses(owner.addresses),
                tx_hash=id_text(period.txid),
                amount_staked=str(period.weight),
                node_id=node_text(period.node_id),
                start_timestamp=period.start,
                end_timestamp=period.end,
                reward_type=kind,  # type: ignore[arg-type]
                progress=progress,
                estimated_reward=network.assets.amount(asset_id, amount),
            ),
        )
        for kind, owner, amount in parts
        if amount
    ]


def historical_reward(network: PrimaryNetwork, paid: PaidReward) -> HistoricalReward:
    utxo = unpack_utxo(paid.raw)
    amount, _, owners = plain_output(utxo.output)
    return HistoricalReward(
        addresses=network.addresses(owners.addresses),
        tx_hash=id_text(paid.staking_txid),
        amount_staked=str(paid.weight),
        node_id=node_text(paid.node_id),
        start_timestamp=paid.start,
        end_timestamp=paid.end,
        reward_type=REWARD_TYPES[paid.kind],
        utxo_id=id_text(paid.utxo_id),
        output_index=utxo.output_index,
        reward=network.assets.amount(utxo.asset_id, amount),
        reward_tx_hash=id_text(paid.reward_txid),
    )
