"""Webhooks of the primary network: what a caller asks for, read and shown."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from msgspec import UNSET

from icefall.api.data.schema.webhooks import BalanceThreshold, CreateWebhook, SubEvents, WebhookMetadata
from icefall.errors import BadRequest
from icefall.webhooks.model import PRIMARY_ACTIVITY, Webhook
from icefall.webhooks.primary_matching import (
    ADDRESSES,
    BALANCE_THRESHOLD,
    L1_THRESHOLD,
    NODE,
    REWARD,
    PrimaryFilter,
    decode_filter,
)
from icefall.webhooks.primary_names import PrimaryNames, WebhookNetworks, read_node_id, read_subnet_id
from icefall.wire.ids import NODE_ID_PREFIX, id_text, short_id_text

THRESHOLD_KEYS_MAX = 100  # addresses whose balances are computed
_TYPES = {
    "P": ("unlockedUnstaked", "unlockedStaked", "lockedPlatform", "lockedStakeable", "lockedStaked", "pendingStaked"),
    "X": ("unlocked", "locked"),
    "C": (),
}


class PrimaryRequest(NamedTuple):
    """What a webhook of the primary network is about."""

    names: PrimaryNames
    keys: list[bytes]
    filter: PrimaryFilter

    @property
    def chain_id(self) -> str:
        return self.names.chain_ids[self.filter.chain]


def read_request(body: CreateWebhook, networks: WebhookNetworks) -> PrimaryRequest:
    """Read what a webhook of the primary network is about. BadRequest says what is missing or wrong."""
    if body.network is UNSET:
        raise BadRequest("network is missing")
    names, given = networks.named(body.network), body.metadata
    if given.key_type is UNSET or given.keys is UNSET or given.sub_events is UNSET:
        raise BadRequest("metadata needs keyType, keys and subEvents")
    if given.event_signatures:
        raise BadRequest("eventSignatures are for address_activity: P, X and C have no transactions with logs")
    if body.event_type == PRIMARY_ACTIVITY:
        return _of_addresses(body, names, given.keys)
    return _of_validators(body, names, given.keys)


def _of_addresses(body: CreateWebhook, names: PrimaryNames, written: Sequence[str]) -> PrimaryRequest:
    given = body.metadata
    if body.chain_id is UNSET:
        raise BadRequest("chainId is missing")
    chain = names.chain(body.chain_id)
    sub_events = _wanted(given.sub_events and given.sub_events.address_activity_sub_events, "addressActivitySubEvents")
    if given.key_type != ADDRESSES:
        raise BadRequest(f"keyType must be {ADDRESSES} with this eventType")
    if REWARD in sub_events and chain != "P":
        raise BadRequest(f"{REWARD} happens on the P-Chain only")
    keys = sorted({names.address(chain, one) for one in written})
    wanted = PrimaryFilter(chain, ADDRESSES, sub_events)
    if BALANCE_THRESHOLD in sub_events:
        threshold = given.balance_threshold_filter
        if threshold is UNSET:
            raise BadRequest(f"{BALANCE_THRESHOLD} needs balanceThresholdFilter")
        if threshold.balance_type not in _TYPES[chain]:
            offered = ", ".join(_TYPES[chain]) or "none"
            raise BadRequest(f"balanceType of the {chain}-Chain must be one of: {offered}")
        if len(keys) > THRESHOLD_KEYS_MAX:
            raise BadRequest(f"a webhook with {BALANCE_THRESHOLD} has at most {THRESHOLD_KEYS_MAX} keys")
        amount = int(threshold.balance_threshold)
        wanted = PrimaryFilter(chain, ADDRESSES, sub_events, threshold.balance_type, amount)
    return PrimaryRequest(names, keys, wanted)


def _of_validators(body: CreateWebhook, names: PrimaryNames, written: Sequence[str]) -> PrimaryRequest:
    given = body.metadata
    sub_events = _wanted(
        given.sub_events and given.sub_events.validator_activity_sub_events, "validatorActivitySubEvents"
    )
    if given.key_type in (ADDRESSES, UNSET):
        raise BadRequest("keyType must be nodeId or subnetId with this eventType")
    if len(written) != 1:
        raise BadRequest("metadata.keys must be one ID with this eventType")
    if body.chain_id is not UNSET and names.chain(body.chain_id) != "P":
        raise BadRequest("chainId must be that of the P-Chain with this eventType")
    if L1_THRESHOLD in sub_events and given.l1_validator_fee_balance_threshold is UNSET:
        raise BadRequest(f"{L1_THRESHOLD} needs l1ValidatorFeeBalanceThreshold")
    key = read_node_id(written[0]) if given.key_type == NODE else read_subnet_id(written[0])
    wanted = PrimaryFilter(
        "P",
        str(given.key_type),
        sub_events,
        node_ids=tuple(read_node_id(one).hex() for one in given.node_ids or ()),
        subnet_ids=tuple(read_subnet_id(one).hex() for one in given.subnet_ids or ()),
        l1_threshold=int(given.l1_validator_fee_balance_threshold or 0),
    )
    return PrimaryRequest(names, [key], wanted)


def _wanted(sub_events: Iterable[str] | object, name: str) -> tuple[str, ...]:
    if not isinstance(sub_events, list) or not sub_events:
        raise BadRequest(f"metadata.subEvents.{name} is missing")
    return tuple(dict.fromkeys(sub_events))


def primary_metadata(webhook: Webhook, keys: Sequence[bytes], networks: WebhookNetworks) -> WebhookMetadata:
    """What a webhook of the primary network is about, as its caller wrote it."""
    wanted = decode_filter(webhook.filter)
    if wanted.key_type == ADDRESSES:
        known = networks.known
        has_threshold = BALANCE_THRESHOLD in wanted.sub_events
        return WebhookMetadata(
            key_type="addresses",
            keys=[known.address_text(wanted.chain, one) for one in keys],
            sub_events=SubEvents(address_activity_sub_events=list(wanted.sub_events)),  # type: ignore[arg-type]
            balance_threshold_filter=BalanceThreshold(
                balance_type=wanted.balance_type,  # type: ignore[arg-type]
                balance_threshold=str(wanted.balance_threshold),
            )
            if has_threshold
            else UNSET,
        )
    text = _node_text if wanted.key_type == NODE else id_text
    return WebhookMetadata(
        key_type=wanted.key_type,  # type: ignore[arg-type]
        keys=[text(one) for one in keys],
        sub_events=SubEvents(validator_activity_sub_events=list(wanted.sub_events)),  # type: ignore[arg-type]
        node_ids=[_node_text(bytes.fromhex(one)) for one in wanted.node_ids] or UNSET,
        subnet_ids=[id_text(bytes.fromhex(one)) for one in wanted.subnet_ids] or UNSET,
        l1_validator_fee_balance_threshold=str(wanted.l1_threshold) if L1_THRESHOLD in wanted.sub_events else UNSET,
    )


def _node_text(node_id: bytes) -> str:
    return NODE_ID_PREFIX + short_id_text(node_id)
