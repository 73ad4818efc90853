"""Finds the events of webhooks in the blocks of the primary network. Pure: facts of a block in, events out.

A fact is something that a transaction of P, X or C did, or on P a block without one. Facts that a webhook asks for by
its sub-events and keys become events: one for each transaction and sub-event, however many keys it touches.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec

from icefall.webhooks.matching import Event
from icefall.webhooks.model import Webhook, event_id

BALANCE_CHANGE, BALANCE_THRESHOLD, REWARD = "balance_change", "balance_threshold", "reward_distribution"
VALIDATOR_STAKE, DELEGATOR_STAKE = "validator_stake", "delegator_stake"
L1_INCREASED, L1_DISABLED = "l1_validator_balance_increased", "l1_validator_disabled"
L1_REMOVED, L1_THRESHOLD = "l1_validator_removed", "l1_validator_balance_threshold"
ADDRESSES, NODE, SUBNET = "addresses", "nodeId", "subnetId"
NO_TX = b""


class PrimaryFilter(msgspec.Struct, frozen=True, omit_defaults=True):
    """The settings of a webhook that only the primary network has. `chain` is P, X or C. IDs are in hex."""

    chain: str
    key_type: str
    sub_events: tuple[str, ...]
    balance_type: str = ""
    balance_threshold: int = 0
    node_ids: tuple[str, ...] = ()
    subnet_ids: tuple[str, ...] = ()
    l1_threshold: int = 0


class ValidatorRef(msgspec.Struct, frozen=True, array_like=True):
    """A validator or delegator that an event is about. `validation_id` is empty for one that is not of an L1."""

    node_id: bytes
    subnet_id: bytes
    validation_id: bytes = b""


class BalanceStep(msgspec.Struct, frozen=True, array_like=True):
    """A balance in nAVAX that changed. `key` is an address, or the validation ID of an L1 validator."""

    key: bytes
    before: int
    after: int

    def crosses(self, threshold: int) -> bool:
        return (self.before < threshold) != (self.after < threshold)


class PrimaryDetail(msgspec.Struct, frozen=True, array_like=True):
    """The part of an event that is sent besides its transaction."""

    chain: str
    sub_event: str
    time: int
    addresses: tuple[bytes, ...] = ()
    validators: tuple[ValidatorRef, ...] = ()
    balance_type: str = ""
    balances: tuple[BalanceStep, ...] = ()


class Fact(NamedTuple):
    """What a transaction did: to addresses, or to validators. An empty `tx_hash`: the block did it, by its time.
    `balances` are those of validators, with a sub-event about thresholds."""

    sub_event: str
    tx_index: int
    tx_hash: bytes
    addresses: tuple[bytes, ...] = ()
    validators: tuple[ValidatorRef, ...] = ()
    balances: tuple[BalanceStep, ...] = ()


class PrimaryBlock(NamedTuple):
    """A block with its facts. `balance_steps`: the balances of an address by type, after each of its transactions."""

    chain: str
    height: int
    block_id: bytes
    time: int
    facts: Sequence[Fact]
    balance_steps: Sequence[tuple[str, int, bytes, BalanceStep]] = ()  # type, index and hash of the transaction


encode_filter = msgspec.json.Encoder().encode
decode_filter = msgspec.json.Decoder(PrimaryFilter).decode
_encode_detail = msgspec.msgpack.Encoder().encode
decode_primary_detail = msgspec.msgpack.Decoder(PrimaryDetail).decode


class _WatchedKeys(NamedTuple):
    webhook: Webhook
    filter: PrimaryFilter
    keys: frozenset[bytes]
    node_ids: frozenset[bytes]
    subnet_ids: frozenset[bytes]

    def wants(self, one: ValidatorRef) -> bool:
        key = one.node_id if self.filter.key_type == NODE else one.subnet_id
        if key not in self.keys:
            return False
        is_node = not self.node_ids or one.node_id in self.node_ids
        return is_node and (not self.subnet_ids or one.subnet_id in self.subnet_ids)


class PrimaryWatchList:
    """The active webhooks of one chain of the primary network."""

    def __init__(self, chain_id: str) -> None:
        self._chain_id = chain_id
        self._watched: dict[str, _WatchedKeys] = {}
        self._by_address: dict[bytes, tuple[str, ...]] = {}
        self._of_validators: tuple[str, ...] = ()
        self.balance_types: dict[bytes, frozenset[str]] = {}  # whose balances matter, by address
        self.has_l1_thresholds = False

    def __len__(self) -> int:
        return len(self._watched)

    def put(self, webhook: Webhook, keys: Iterable[bytes]) -> None:
        """Add a webhook, or replace it by its new version."""
        given = decode_filter(webhook.filter)
        nodes, subnets = (frozenset(map(bytes.fromhex, ids)) for ids in (given.node_ids, given.subnet_ids))
        self._watched[webhook.id] = _WatchedKeys(webhook, given, frozenset(keys), nodes, subnets)
        self._arrange()

    def drop(self, webhook: str) -> None:
        if self._watched.pop(webhook, None) is not None:
            self._arrange()

    def _arrange(self) -> None:
        by_address: dict[bytes, list[str]] = {}
        types: dict[bytes, set[str]] = {}
        for one, watched in self._watched.items():
            if watched.filter.key_type != ADDRESSES:
                continue
            for key in watched.keys:
                by_address.setdefault(key, []).append(one)
                if BALANCE_THRESHOLD in watched.filter.sub_events:
                    types.setdefault(key, set()).add(watched.filter.balance_type)
        self._by_address = {key: tuple(found) for key, found in by_address.items()}
        self._of_validators = tuple(one for one, w in self._watched.items() if w.filter.key_type != ADDRESSES)
        self.balance_types = {key: frozenset(found) for key, found in types.items()}
        self.has_l1_thresholds = any(L1_THRESHOLD in w.filter.sub_events for w in self._watched.values())

    def start(self, webhook: str, block: int) -> None:
        """Note the first block that is matched."""
        watched = self._watched[webhook]
        started = watched.webhook.started(block)
        self._watched[webhook] = watched._replace(webhook=started)

    def not_started(self) -> list[str]:
        return [one for one, watched in self._watched.items() if watched.webhook.live_block is None]

    def addresses_in(self, addresses: Iterable[bytes]) -> list[bytes]:
        """Those that some webhook watches."""
        return [one for one in addresses if one in self._by_address]

    @property
    def has_validators(self) -> bool:
        return bool(self._of_validators)

    def wants_balance(self, one: ValidatorRef) -> bool:
        """Whether some webhook has a threshold for the balance of an L1 validator."""
        every = (self._watched[webhook] for webhook in self._of_validators)
        return any(L1_THRESHOLD in watched.filter.sub_events and watched.wants(one) for watched in every)

    def events(self, block: PrimaryBlock) -> list[Event]:
        """The events of a block, in the order of its transactions."""
        found: dict[tuple[str, int, bytes, str], PrimaryDetail] = {}
        for fact in block.facts:
            self._match_addresses(block, fact, found)
            for webhook in self._of_validators:
                self._match_validators(block, fact, webhook, found)
        for balance_type, tx_index, tx_hash, step in block.balance_steps:
            for webhook in self._by_address.get(step.key, ()):
                wanted = self._watched[webhook].filter
                if BALANCE_THRESHOLD not in wanted.sub_events or wanted.balance_type != balance_type:
                    continue
                if step.crosses(wanted.balance_threshold):
                    _add(
                        found,
                        (webhook, tx_index, tx_hash, BALANCE_THRESHOLD),
                        PrimaryDetail(
                            block.chain, BALANCE_THRESHOLD, block.time, (step.key,), (), balance_type, (step,)
                        ),
                    )
        ordered = sorted(found.items(), key=lambda one: (one[0][1], one[0][0], one[0][3]))
        return [self._event(block, key, detail) for key, detail in ordered if self._has_started(key[0], block.height)]

    def _has_started(self, webhook: str, height: int) -> bool:
        start = self._watched[webhook].webhook.start_block
        return start is not None and height >= start

    def _match_addresses(
        self, block: PrimaryBlock, fact: Fact, found: dict[tuple[str, int, bytes, str], PrimaryDetail]
    ) -> None:
        for address in fact.addresses:
            for webhook in self._by_address.get(address, ()):
                if fact.sub_event in self._watched[webhook].filter.sub_events:
                    key = webhook, fact.tx_index, fact.tx_hash, fact.sub_event
                    _add(found, key, PrimaryDetail(block.chain, fact.sub_event, block.time, (address,)))

    def _match_validators(
        self,
        block: PrimaryBlock,
        fact: Fact,
        webhook: str,
        found: dict[tuple[str, int, bytes, str], PrimaryDetail],
    ) -> None:
        watched = self._watched[webhook]
        if fact.sub_event not in watched.filter.sub_events:
            return
        wanted = tuple(one for one in fact.validators if watched.wants(one))
        steps: tuple[BalanceStep, ...] = ()
        if fact.sub_event == L1_THRESHOLD:
            steps = tuple(one for one in fact.balances if one.crosses(watched.filter.l1_threshold))
            crossing = {one.key for one in steps}
            wanted = tuple(one for one in wanted if one.validation_id in crossing)
            steps = tuple(one for one in steps if one.key in {validator.validation_id for validator in wanted})
        if wanted:
            key = webhook, fact.tx_index, fact.tx_hash, fact.sub_event
            _add(found, key, PrimaryDetail(block.chain, fact.sub_event, block.time, (), wanted, "", steps))

    def _event(self, block: PrimaryBlock, key: tuple[str, int, bytes, str], detail: PrimaryDetail) -> Event:
        webhook, tx_index, tx_hash, sub_event = key
        own_id = event_id(webhook, self._chain_id, block.block_id, tx_hash, sub_event)
        return Event(own_id, webhook, block.height, tx_index, block.block_id, tx_hash, _encode_detail(detail))


def _add(
    found: dict[tuple[str, int, bytes, str], PrimaryDetail], key: tuple[str, int, bytes, str], detail: PrimaryDetail
) -> None:
    """Add what an event is about to what is known of it."""
    known = found.get(key)
    if known is not None:
        detail = msgspec.structs.replace(
            known,
            addresses=tuple(dict.fromkeys((*known.addresses, *detail.addresses))),
            validators=tuple(dict.fromkeys((*known.validators, *detail.validators))),
            balances=tuple(dict.fromkeys((*known.balances, *detail.balances))),
        )
    found[key] = detail
