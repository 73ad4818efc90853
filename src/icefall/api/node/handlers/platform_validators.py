"""Handlers of the platform chain: current validators, those of L1s, and validator sets at a height."""

import random
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import accumulate
from typing import Any

import msgspec

from icefall.api.node.addresses import AddressParser
from icefall.api.node.handlers.platform import proposed_height
from icefall.api.node.platform_objects import ListedValidators, PlatformObjects
from icefall.api.node.platform_upstream import NOTHING_OBSERVED, Observed, PlatformUpstream
from icefall.api.node.schema.platform import (
    AllValidatorsAtParams,
    SampleParams,
    ValidationParams,
    ValidatorsAtParams,
    ValidatorsParams,
)
from icefall.api.node.schema.validators import (
    AllValidatorSets,
    AnyValidatorRow,
    CurrentValidators,
    DelegatorDetails,
    L1ValidatorDetails,
    L1ValidatorEntry,
    OwnerDetails,
    SampledValidators,
    SetMember,
    SignerDetails,
    StakerDetails,
    ValidatorDetails,
    WarpValidator,
    WarpValidators,
)
from icefall.errors import CallFailed
from icefall.pchain.model import L1Validator, PlatformStaker, Priority
from icefall.pchain.reading import CurrentStaker, Delegations, PlatformReader
from icefall.pchain.stakers import Members
from icefall.wire.avm.types import Owners
from icefall.wire.ids import NODE_ID_PREFIX, PRIMARY_NETWORK, id_text, short_id_text
from icefall.wire.pvm.types import Committee

L1Fields = tuple[str, str, str, str, str, OwnerDetails, OwnerDetails, str, str]

_UNSEEN = Observed("")
_NO_DELEGATIONS = Delegations(0, 0)
_NO_OWNERS = Owners(0, 0, ())


@lru_cache(maxsize=8192)
def _node(node_id: bytes) -> str:
    return NODE_ID_PREFIX + short_id_text(node_id)


async def get_current_validators(
    params: ValidatorsParams,
    chain: PlatformReader,
    addresses: AddressParser,
    upstream: PlatformUpstream,
    objects: PlatformObjects,
) -> CurrentValidators:
    is_primary = params.subnet_id == PRIMARY_NETWORK
    observed = await upstream.observed(params.node_ids) if is_primary else NOTHING_OBSERVED
    cached = objects.validators.now()
    key = params.subnet_id, tuple(params.node_ids)
    known = cached.get(key)
    if known is not None and known.observed is observed:
        return _listed(known.rows)
    rows = await _current_validators(params, chain, addresses, observed)
    delegators = [row.delegators for row in rows if isinstance(row, ValidatorDetails) and row.delegators]
    size = 1 + len(params.node_ids) + len(rows) + sum(map(len, delegators))
    objects.validators.put(cached, key, ListedValidators(observed, rows), size)
    return _listed(rows)


async def _current_validators(
    params: ValidatorsParams, chain: PlatformReader, addresses: AddressParser, observed: dict[str, Observed]
) -> list[AnyValidatorRow]:
    nodes = set(params.node_ids)
    rows: list[AnyValidatorRow]
    if nodes:
        rows = [*await _of_nodes(chain, params.subnet_id, nodes, observed, addresses)]
    else:
        delegations = await chain.delegations(params.subnet_id)
        rows = [
            _validator(row, delegations.get(row.staker.node_id, _NO_DELEGATIONS), observed, addresses)
            for row in await chain.validators(params.subnet_id)
        ]
    if params.subnet_id == PRIMARY_NETWORK:
        return rows
    accrued = (await chain.ledger()).accrued_fees
    rows += [
        L1ValidatorEntry(*_l1_fields(row, accrued, addresses))
        for row in await chain.l1_validators(params.subnet_id)
        if not nodes or row.node_id in nodes
    ]
    return rows


def _listed(rows: Any) -> CurrentValidators:
    """Return rows of three kinds, which `AnyValidator` describes together."""
    return CurrentValidators(rows)


async def _of_nodes(
    chain: PlatformReader,
    subnet_id: bytes,
    nodes: set[bytes],
    observed: dict[str, Observed],
    addresses: AddressParser,
) -> list[ValidatorDetails | StakerDetails]:
    """The validators on some nodes. The delegators are listed if it is one node."""
    found = []
    for node_id in sorted(nodes):
        stakers = await chain.stakers_of_node(subnet_id, node_id)
        delegators = [row.staker for row in stakers if row.staker.is_delegator]
        sums = Delegations(len(delegators), sum([staker.weight for staker in delegators]))
        for row in stakers:
            if not row.staker.is_delegator:
                details = _validator(row, sums, observed, addresses)
                if len(nodes) == 1 and isinstance(details, ValidatorDetails):
                    listed = [_delegator(staker, addresses) for staker in delegators]
                    details = msgspec.structs.replace(details, delegators=listed)
                found.append(details)
    return found


def _validator(
    row: CurrentStaker, delegations: Delegations, observed: dict[str, Observed], addresses: AddressParser
) -> ValidatorDetails | StakerDetails:
    staker = row.staker
    node = _node(staker.node_id)
    times = str(staker.start), str(staker.end)
    if staker.priority == Priority.PERMISSIONED:
        return StakerDetails(id_text(staker.txid), *times, str(staker.weight), node)
    seen = observed.get(node, _UNSEEN)
    signer = staker.signer
    return ValidatorDetails(
        id_text(staker.txid),
        *times,
        str(staker.weight),
        node,
        _owner(staker.validation_owner or _NO_OWNERS, addresses),
        _owner(staker.delegation_owner or _NO_OWNERS, addresses),
        str(staker.potential_reward),
        str(row.delegatee_reward),
        f"{staker.shares // 10_000}.{staker.shares % 10_000:04d}",
        seen.uptime,
        seen.connected,
        SignerDetails(_hex(signer.public_key), _hex(signer.proof_of_possession)) if signer else msgspec.UNSET,
        str(delegations.count),
        str(delegations.weight),
    )


def _delegator(staker: PlatformStaker, addresses: AddressParser) -> DelegatorDetails:
    return DelegatorDetails(
        id_text(staker.txid),
        str(staker.start),
        str(staker.end),
        str(staker.weight),
        _node(staker.node_id),
        _owner(staker.validation_owner or _NO_OWNERS, addresses),
        str(staker.potential_reward),
    )


@lru_cache(maxsize=4096)  # owners recur: those of a validator in every answer
def _owner(owner: Owners | Committee, addresses: AddressParser) -> OwnerDetails:
    locktime = owner.locktime if isinstance(owner, Owners) else 0
    return OwnerDetails(str(locktime), str(owner.threshold), [addresses.text(at) for at in owner.addresses])


def _hex(raw: bytes) -> str:
    return "0x" + raw.hex()


# -- validators of L1s -------------------------------------------------------------------------------------------


async def get_l1_validator(
    params: ValidationParams, chain: PlatformReader, addresses: AddressParser, objects: PlatformObjects
) -> L1ValidatorDetails:
    cached = objects.l1_validators.now()
    known = cached.get(params.validation_id)
    if known is not None:
        return known
    row = await chain.l1_validator(params.validation_id)
    if row is None:
        raise CallFailed(f'fetching L1 validator "{id_text(params.validation_id)}" failed: not found')
    ledger = await chain.ledger()
    fields = _l1_fields(row, ledger.accrued_fees, addresses)
    details = L1ValidatorDetails(*fields, id_text(row.subnet_id), str(ledger.height))
    objects.l1_validators.put(cached, params.validation_id, details)
    return details


def _l1_fields(row: L1Validator, accrued_fees: int, addresses: AddressParser) -> L1Fields:
    """The fields of `L1ValidatorEntry` in their order."""
    return (
        _node(row.node_id),
        str(row.weight),
        str(row.start),
        id_text(row.validation_id),
        _hex(row.public_key),
        _owner(row.remaining_balance_owner, addresses),
        _owner(row.deactivation_owner, addresses),
        str(row.min_nonce),
        str(row.end_accumulated_fee - accrued_fees if row.end_accumulated_fee else 0),
    )


# -- sets at a height --------------------------------------------------------------------------------------------


async def get_validators_at(
    params: ValidatorsAtParams, chain: PlatformReader, upstream: PlatformUpstream, objects: PlatformObjects
) -> dict[str, SetMember]:
    height = await _executed(params.height, chain, upstream, params.subnet_id)
    cached, key_of_set = objects.sets.now(), (params.subnet_id, height)
    known = cached.get(key_of_set)
    if known is not None:
        return known
    members = await chain.validators_at(params.subnet_id, height)
    rows = sorted((_node(node_id), weight, key) for node_id, (weight, key) in members.items())
    shown = {node: SetMember(_hex(key) if key else None, str(weight)) for node, weight, key in rows}
    objects.sets.put(cached, key_of_set, shown, 1 + len(shown))
    return shown


async def get_all_validators_at(
    params: AllValidatorsAtParams, chain: PlatformReader, upstream: PlatformUpstream
) -> AllValidatorSets:
    height = await _executed(params.height, chain, upstream, None)
    sets = await chain.all_validators_at(height)
    rows = sorted((id_text(subnet_id), members) for subnet_id, members in sets.items())
    return AllValidatorSets({subnet: _warp_validators(members) for subnet, members in rows})


def names_a_height(params: ValidatorsAtParams | AllValidatorsAtParams) -> bool:
    """Whether the set is one of our own blocks: which height is proposed, only the upstream knows."""
    return params.height is not None


async def _executed(
    height: int | None, chain: PlatformReader, upstream: PlatformUpstream, subnet_id: bytes | None
) -> int:
    """The height that is meant, if it is executed here."""
    last = (await chain.ledger()).height
    wanted = min(await proposed_height(chain, upstream), last) if height is None else height
    if wanted <= last:
        return wanted
    of = f" with SubnetID = {id_text(subnet_id)}" if subnet_id is not None else ""
    raise CallFailed(
        f"failed to get validator {'sets' if subnet_id is None else 'set'} at {wanted}: failed to fetch validator set "
        f"at unfinalized height{of}: current P-chain height ({last}) < requested P-Chain height ({wanted})"
    )


def _warp_validators(members: Members) -> WarpValidators:
    """Those with a BLS key, in the order of their uncompressed keys; nodes with the same key are one."""
    by_key: dict[bytes, tuple[int, list[bytes]]] = {}
    for node_id, (weight, key) in members.items():
        if key:
            before, nodes = by_key.get(key, (0, []))
            by_key[key] = before + weight, [*nodes, node_id]
    validators = [
        WarpValidator(_hex(key), str(by_key[key][0]), [_node(node_id) for node_id in sorted(by_key[key][1])])
        for key in sorted(by_key, key=_uncompressed_order)
    ]
    return WarpValidators(validators, str(sum([weight for weight, _ in members.values()])))


def _uncompressed_order(key: bytes) -> tuple[bytes, int]:
    """Order compressed keys as if they were not: by the x coordinate, then by y, of which a flag says whether it is the
    larger of two. Three flags share the first byte with x."""
    return bytes([key[0] & 0x1F]) + key[1:], key[0] & 0x20


async def sample_validators(params: SampleParams, chain: PlatformReader) -> SampledValidators:
    """Draw nodes with a chance by weight: as often as their weight at most."""
    if not params.size:
        return SampledValidators([])
    members = await chain.validators_at(params.subnet_id, (await chain.ledger()).height)
    if not members:
        raise CallFailed(f"sampling {id_text(params.subnet_id)} errored with missing validators")
    nodes = list(members)
    weights = [weight for weight, _ in members.values()]
    if sum(weights) < params.size:
        raise CallFailed(f"sampling {id_text(params.subnet_id)} errored with insufficient weight")
    return SampledValidators([_node(node_id) for node_id in sorted(_sampled(nodes, weights, params.size))])


def _sampled(nodes: Sequence[bytes], weights: Iterable[int], size: int) -> list[bytes]:
    """Each unit of weight is drawn once at most."""
    ends = list(accumulate(weights))
    return [nodes[bisect_right(ends, at)] for at in _units(ends[-1], size)]


def _units(total: int, size: int) -> set[int]:
    """Draw different numbers below `total`, which may be larger than what `random.sample` takes."""
    source = random.SystemRandom()
    if size * 2 > total:
        return set(source.sample(range(total), size))
    drawn: set[int] = set()
    while len(drawn) < size:
        drawn.add(source.randrange(total))
    return drawn
