"""Handlers of validators, delegators and validators of L1s. Filters read a bounded number of rows, as those of
transactions do."""

from collections.abc import Callable, Iterable, Mapping, Sequence

from msgspec import UNSET, UnsetType

from icefall.api.http.paging import Paging, cursor_of, pack_cursor
from icefall.api.networks.handlers.utxos import NetworkClock
from icefall.api.networks.network import Networks, PrimaryNetwork
from icefall.api.networks.render.details import node_text
from icefall.api.networks.render.validators import (
    delegator_details,
    l1_validator_details,
    uptime_of,
    validator_details,
)
from icefall.api.networks.schema.validators import (
    DelegatorPage,
    DelegatorsParams,
    L1ValidatorPage,
    L1ValidatorsParams,
    NetworkValidatorsParams,
    ValidatorPage,
    ValidatorParams,
)
from icefall.errors import BadRequest
from icefall.pchain.model import L1Validator, StakerState, is_primary
from icefall.pchain.observed import ObservedNode
from icefall.pchain.periods import Period, PeriodSource
from icefall.pchain.store import DELEGATOR_ROLE, L1_ACTIVE, L1_INACTIVE, VALIDATOR_ROLE
from icefall.wire.errors import WireError
from icefall.wire.ids import NODE_ID_PREFIX, PRIMARY_NETWORK, node_id_from_text
from icefall.xchain.store import NEWEST

SCAN_MAX = 1000  # rows that a request with a filter reads
_VALIDATORS, _NODE, _DELEGATORS, _L1 = "validators", "validatorsOfNode", "delegators", "l1Validators"
STATES = {
    None: tuple(StakerState),
    "active": (StakerState.CURRENT,),
    "pending": (StakerState.PENDING,),
    "completed": (StakerState.REWARDED, StakerState.NOT_REWARDED),
    "removed": (StakerState.REMOVED,),
}
_SORTS = {"delegationCapacity": "capacity", "timeRemaining": "end", "delegationFee": "fee"}
_SORTED_VALUE: dict[str, Callable[[Period], int]] = {
    "capacity": lambda one: one.capacity,
    "end": lambda one: one.end,
    "fee": lambda one: one.shares,
}
_Test = Callable[[Period], bool]


async def list_validators(
    params: NetworkValidatorsParams, networks: Networks, paging: Paging, clock: NetworkClock
) -> ValidatorPage:
    network = await networks.find_staking(params.network)
    now, seen = int(clock.now()), dict[bytes, ObservedNode]()
    addresses = network.parsed(params.reward_addresses)
    tests = _tests(params, addresses, now, seen)
    limit = SCAN_MAX if tests else params.page_size + 1
    cursor, upwards = cursor_of(_VALIDATORS, params, paging), params.sort_order == "asc"
    sort = _SORTS.get(params.sort_by)
    if sort is not None:
        if params.validation_status not in (None, "active"):
            raise BadRequest(f"sortBy {params.sort_by} is for active validators only, got {params.validation_status}")
        subnet_id = PRIMARY_NETWORK if params.subnet_id is None else params.subnet_id
        rows = await network.lists.current_by(sort, subnet_id, cursor, limit, upwards=upwards)
    else:
        low, below = seq_range(cursor, upwards=upwards)
        states = STATES[params.validation_status]
        rows = await network.lists.periods(_sources(params, addresses), states, low, below, limit, upwards=upwards)
    if params.min_uptime_performance is not None or params.max_uptime_performance is not None:
        seen |= await network.observed.of((row.node_id for row in rows), now)
    found, last = filtered(rows, tests, params.page_size, limit)
    token: str | UnsetType = UNSET
    if last is not None:
        at = (last.seq,) if sort is None else (_SORTED_VALUE[sort](last), last.seq)
        token = paging.token(_VALIDATORS, params, pack_cursor(*at))
    return await _validator_page(network, found, token, now)


def _whole_ids(parts: Iterable[str]) -> list[bytes] | None:
    """The node IDs of a query; None if one is only a part of one."""
    try:
        return [node_id_from_text(NODE_ID_PREFIX + one) for one in parts]
    except WireError:
        return None


def _sources(params: NetworkValidatorsParams, addresses: Sequence[bytes]) -> list[PeriodSource]:
    """Return where the periods of a query are read. Filters look at what is left."""
    if addresses:
        return [PeriodSource("of_owner", one, role=VALIDATOR_ROLE) for one in addresses]
    nodes = _whole_ids(params.node_ids)
    if nodes:
        return [PeriodSource("of_node", node_id) for node_id in nodes]
    if params.subnet_id is not None:
        return [PeriodSource("of_subnet", params.subnet_id)]
    return [PeriodSource("listed")]


def _tests(
    params: NetworkValidatorsParams, addresses: Sequence[bytes], now: int, seen: Mapping[bytes, ObservedNode]
) -> list[_Test]:
    """What a period must fulfil. Time, capacity and uptime are those of active validators, fees of the primary
    network's. `seen` is filled before the tests are used."""
    tests: list[_Test] = []
    is_sorted, parts = params.sort_by in _SORTS, params.node_ids
    if parts and (addresses or is_sorted or _whole_ids(parts) is None):
        tests.append(lambda one: any(part in node_text(one.node_id)[len(NODE_ID_PREFIX) :] for part in parts))
    if (parts or addresses) and params.subnet_id is not None:
        tests.append(lambda one: one.subnet_id == params.subnet_id)
    if addresses and is_sorted:
        tests.append(lambda one: _pays(one, addresses))
    active: list[tuple[Callable[[Period], float], float | None, float | None]] = [
        (lambda one: max(0, one.end - now), params.min_time_remaining, params.max_time_remaining),
        (lambda one: one.capacity, params.min_delegation_capacity, params.max_delegation_capacity),
        (
            lambda one: uptime_of(one, seen.get(one.node_id)),
            params.min_uptime_performance,
            params.max_uptime_performance,
        ),
    ]
    for value, low, high in active:
        if low is not None or high is not None:
            tests.append(lambda one: one.state == StakerState.CURRENT)
            tests.append(_between(value, low, high))
    low, high = params.min_fee_percentage, params.max_fee_percentage
    if low is not None or high is not None:
        tests.append(lambda one: is_primary(one.subnet_id))
        tests.append(_between(lambda one: one.shares / 10_000, low, high))
    return tests


def _pays(period: Period, addresses: Sequence[bytes]) -> bool:
    owner = period.validation_owner
    return owner is not None and not set(addresses).isdisjoint(owner.addresses)


def _between(value: Callable[[Period], float], low: float | None, high: float | None) -> _Test:
    return lambda one: (low is None or low <= value(one)) and (high is None or value(one) <= high)


def seq_range(cursor: tuple[int, ...] | None, *, upwards: bool) -> tuple[int, int]:
    """The numbers that are left after a page."""
    if cursor is None:
        return 0, NEWEST
    return (cursor[0] + 1, NEWEST) if upwards else (0, cursor[0])


def filtered(rows: list[Period], tests: list[_Test], page_size: int, limit: int) -> tuple[list[Period], Period | None]:
    """The rows of the page, and the row behind which the next one begins; None: this is the last."""
    found = [row for row in rows if all(test(row) for test in tests)]
    if len(found) > page_size:
        return found[:page_size], found[page_size - 1]
    return found, rows[-1] if len(rows) == limit else None


async def _validator_page(
    network: PrimaryNetwork, rows: list[Period], token: str | UnsetType, now: int
) -> ValidatorPage:
    active = [row for row in rows if row.state == StakerState.CURRENT]
    totals = {
        subnet_id: await network.lists.stake_total(subnet_id)
        for subnet_id in dict.fromkeys(row.subnet_id for row in active)
    }
    staked = {subnet_id: one.validator_weight + one.delegator_weight for subnet_id, one in totals.items()}
    seen = await network.observed.of((row.node_id for row in active), now)
    shown = [validator_details(network, row, staked.get(row.subnet_id, 0), seen.get(row.node_id)) for row in rows]
    return ValidatorPage(next_page_token=token, validators=shown)


async def get_validator(
    params: ValidatorParams, networks: Networks, paging: Paging, clock: NetworkClock
) -> ValidatorPage:
    """All periods of a node, in any subnet."""
    network = await networks.find_staking(params.network)
    upwards = params.sort_order == "asc"
    low, below = seq_range(cursor_of(_NODE, params, paging), upwards=upwards)
    limit, states = params.page_size + 1, STATES[params.validation_status]
    source = PeriodSource("of_node", params.node_id)
    rows = await network.lists.periods([source], states, low, below, limit, upwards=upwards)
    found, last = filtered(rows, [], params.page_size, limit)
    token: str | UnsetType = UNSET if last is None else paging.token(_NODE, params, pack_cursor(last.seq))
    return await _validator_page(network, found, token, int(clock.now()))


async def list_delegators(params: DelegatorsParams, networks: Networks, paging: Paging) -> DelegatorPage:
    network = await networks.find_staking(params.network)
    addresses, upwards = network.parsed(params.reward_addresses), params.sort_order == "asc"
    low, below = seq_range(cursor_of(_DELEGATORS, params, paging), upwards=upwards)
    tests: list[_Test] = []
    if addresses:
        sources = [PeriodSource("of_owner", one, role=DELEGATOR_ROLE) for one in addresses]
        if params.node_ids:
            tests = [lambda one: one.node_id in params.node_ids]
    elif params.node_ids:
        sources = [PeriodSource("of_node", one, is_delegator=True) for one in params.node_ids]
    else:
        sources = [PeriodSource("listed", is_delegator=True)]
    limit = SCAN_MAX if tests else params.page_size + 1
    states = STATES[params.delegation_status]
    rows = await network.lists.periods(sources, states, low, below, limit, upwards=upwards)
    found, last = filtered(rows, tests, params.page_size, limit)
    token: str | UnsetType = UNSET if last is None else paging.token(_DELEGATORS, params, pack_cursor(last.seq))
    return DelegatorPage(next_page_token=token, delegators=[delegator_details(network, row) for row in found])


async def list_l1_validators(params: L1ValidatorsParams, networks: Networks, paging: Paging) -> L1ValidatorPage:
    network = await networks.find_staking(params.network)
    ledger = await network.platform.ledger()
    cursor = paging.after(_L1, params)
    before = (int.from_bytes(cursor[:8]), cursor[8:]) if cursor is not None else None
    rows, last = await _l1_rows(network, params, before)
    token: str | UnsetType = UNSET
    if last is not None:
        token = paging.token(_L1, params, last.start.to_bytes(8) + last.validation_id)
    shown = [l1_validator_details(network, row, ledger.accrued_fees) for row in rows]
    return L1ValidatorPage(next_page_token=token, validators=shown, block_height=str(ledger.height))


async def _l1_rows(
    network: PrimaryNetwork, params: L1ValidatorsParams, before: tuple[int, bytes] | None
) -> tuple[list[L1Validator], L1Validator | None]:
    """The validators of a page, and the one behind which the next page begins. One that is asked for by its ID is shown
    whatever has become of it."""
    node_id, subnet_id = params.node_id, params.subnet_id
    if params.l1_validation_id is not None:
        one = await network.lists.l1_validation(params.l1_validation_id)
        if one is None or node_id not in (None, one.node_id) or subnet_id not in (None, one.subnet_id):
            return [], None
        return [one], None
    source, key = ("l1_listed", b"") if subnet_id is None else ("l1_of_subnet", subnet_id)
    if node_id is not None:
        source, key = "l1_of_node", node_id
    must_filter = node_id is not None and subnet_id is not None
    limit = SCAN_MAX if must_filter else params.page_size + 1
    statuses = (L1_ACTIVE, L1_INACTIVE) if params.include_inactive_l1_validators else (L1_ACTIVE,)
    rows = await network.lists.l1_page(source, key, statuses, before, limit)
    found = [row for row in rows if subnet_id in (None, row.subnet_id)]
    if len(found) > params.page_size:
        return found[: params.page_size], found[params.page_size - 1]
    return found, rows[-1] if len(rows) == limit else None
