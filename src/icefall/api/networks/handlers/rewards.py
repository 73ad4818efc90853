"""Handlers of rewards: those that were paid, and those that current staking periods will pay."""

from msgspec import UNSET, UnsetType

from icefall.api.http.paging import Paging, cursor_of, pack_cursor
from icefall.api.networks.handlers.utxos import NetworkClock
from icefall.api.networks.handlers.validators import SCAN_MAX, seq_range
from icefall.api.networks.network import Networks, PrimaryNetwork
from icefall.api.networks.render.validators import historical_reward, pending_rewards
from icefall.api.networks.schema.validators import (
    HistoricalRewardPage,
    PaidRewardsParams,
    PendingReward,
    PendingRewardPage,
    RewardsParams,
)
from icefall.errors import BadRequest
from icefall.pchain.model import StakerState, is_primary
from icefall.pchain.periods import Period, PeriodSource
from icefall.pchain.store import DELEGATOR_ROLE, FEE_ROLE, VALIDATOR_ROLE
from icefall.wire.pvm.codec import unpack_utxo
from icefall.xchain.store import NEWEST

_PENDING, _PAID = "pendingRewards", "paidRewards"
_ROLES = (VALIDATOR_ROLE, DELEGATOR_ROLE, FEE_ROLE)


def _check(params: RewardsParams) -> None:
    if not params.addresses and not params.node_ids:
        raise BadRequest("addresses or nodeIds is missing: one of them must be given")


async def list_pending(
    params: RewardsParams, networks: Networks, paging: Paging, clock: NetworkClock
) -> PendingRewardPage:
    """One item for each current period and kind of reward, by the number of the staking transaction. A period has two
    at most, so a page of periods may hold more than a page of rewards: the rest begins the next page."""
    network = await networks.find_staking(params.network)
    _check(params)
    addresses, upwards = network.parsed(params.addresses), params.sort_order == "asc"
    cursor = cursor_of(_PENDING, params, paging)
    low, below = _with_last(cursor, upwards=upwards)
    limit = SCAN_MAX if addresses and params.node_ids else params.page_size + 2
    rows = await network.lists.periods(
        _sources(params, addresses), [StakerState.CURRENT], low, below, limit, upwards=upwards
    )
    assets = {row.txid: await _asset_of(network, row) for row in rows}
    await network.assets.load(set(assets.values()))
    now, skipped = int(clock.now()), cursor or (-1, 0)
    items: list[tuple[int, int, PendingReward]] = []
    for row in rows:
        if params.node_ids and row.node_id not in params.node_ids:
            continue
        for place, (_, owner, shown) in enumerate(pending_rewards(network, row, assets[row.txid], now), 1):
            is_seen = row.seq == skipped[0] and place <= skipped[1]
            if not is_seen and (not addresses or set(addresses) & set(owner.addresses)):
                items.append((row.seq, place, shown))
    token: str | UnsetType = UNSET
    if len(items) > params.page_size:
        items = items[: params.page_size]
        token = paging.token(_PENDING, params, pack_cursor(*items[-1][:2]))
    elif len(rows) == limit:
        token = paging.token(_PENDING, params, pack_cursor(rows[-1].seq, _ALL_PLACES))
    return PendingRewardPage(next_page_token=token, pending_rewards=[shown for _, _, shown in items])


_ALL_PLACES = 2


def _with_last(cursor: tuple[int, ...] | None, *, upwards: bool) -> tuple[int, int]:
    """The numbers that are left after a page, with its last, of which not all rewards may have been shown."""
    if cursor is None:
        return 0, NEWEST
    return (cursor[0], NEWEST) if upwards else (0, cursor[0] + 1)


def _sources(params: RewardsParams, addresses: tuple[bytes, ...]) -> list[PeriodSource]:
    if addresses:
        return [PeriodSource("of_owner", one, role=role) for one in addresses for role in _ROLES]
    return [
        PeriodSource("of_node", one, is_delegator=is_delegator)
        for one in params.node_ids
        for is_delegator in (False, True)
    ]


async def _asset_of(network: PrimaryNetwork, period: Period) -> bytes:
    """The asset in which a period is rewarded."""
    if is_primary(period.subnet_id):
        return network.platform.parameters.avax_asset_id
    subnet = await network.platform.subnet(period.subnet_id)
    return subnet.asset_id if subnet is not None else b""


async def list_paid(params: PaidRewardsParams, networks: Networks, paging: Paging) -> HistoricalRewardPage:
    network = await networks.find_staking(params.network)
    _check(params)
    addresses, upwards = network.parsed(params.addresses), params.sort_order == "asc"
    low, below = seq_range(cursor_of(_PAID, params, paging), upwards=upwards)
    must_filter = bool(addresses and params.node_ids)
    limit = SCAN_MAX if must_filter else params.page_size + 1
    owners = addresses or params.node_ids
    rows = await network.lists.paid_rewards(owners, low, below, limit, are_nodes=not addresses, upwards=upwards)
    found = [row for row in rows if not must_filter or row.node_id in params.node_ids]
    last = None
    if len(found) > params.page_size:
        found = found[: params.page_size]
        last = found[-1]
    elif len(rows) == limit:
        last = rows[-1]
    await network.assets.load({unpack_utxo(row.raw).asset_id for row in found})
    token: str | UnsetType = UNSET if last is None else paging.token(_PAID, params, pack_cursor(last.position))
    shown = [historical_reward(network, row) for row in found]
    return HistoricalRewardPage(next_page_token=token, historical_rewards=shown)
