"""Handlers of outputs and balances of addresses on the P-Chain."""

import asyncio
import time
from collections.abc import Callable

import msgspec
from msgspec import UNSET, UnsetType

from icefall.api.http.paging import Paging, cursor_of, pack_cursor
from icefall.api.networks.handlers.outputs import held_by
from icefall.api.networks.handlers.transactions import SCAN_MAX
from icefall.api.networks.handlers.x_chain import cut
from icefall.api.networks.network import Networks, PrimaryNetwork
from icefall.api.networks.render.utxos import stored_utxo
from icefall.api.networks.schema.c_chain import ChainUtxosParams
from icefall.api.networks.schema.transactions import (
    CategoryAmount,
    PlatformBalances,
    PlatformBalancesParams,
    PlatformBalancesResult,
    PlatformUtxoPage,
    SharedAmount,
)
from icefall.errors import BadRequest
from icefall.pchain.listing import AmountRow, ListedUtxo
from icefall.pchain.model import UtxoState, balance_category, plain_output
from icefall.wire.ids import PLATFORM_CHAIN, id_text
from icefall.wire.pvm.codec import unpack_utxo

PIECE = 1000  # outputs read at a time, so that other requests can run in between
_UTXOS = "platformUtxos"
_UNSPENT = (UtxoState.UNSPENT, UtxoState.STAKED)
_ALL = (*_UNSPENT, UtxoState.SPENT)


class NetworkClock(msgspec.Struct, frozen=True):
    """Unix time, for balances of now."""

    now: Callable[[], float] = time.time


async def list_utxos(params: ChainUtxosParams, networks: Networks, paging: Paging) -> PlatformUtxoPage:
    network = await networks.find(params.network, params.blockchain_id)
    if params.sort_by != "timestamp":
        raise BadRequest(f"outputs of the P-Chain are sorted by timestamp only, got {params.sort_by}")
    addresses = network.parsed(params.addresses)
    (at,) = cursor_of(_UTXOS, params, paging) or (None,)
    states, upwards = _ALL if params.include_spent else _UNSPENT, params.sort_order == "asc"
    is_filtered = params.asset_id is not None or params.min_utxo_amount > 0
    limit = SCAN_MAX if is_filtered else params.page_size + 1
    rows = await network.lists.utxos_of(addresses, states, at, limit, upwards=upwards)
    wanted = [row for row in rows if _is_wanted(row, params)] if is_filtered else rows
    page, last = cut(rows, wanted, params.page_size, limit)
    token: str | UnsetType = UNSET if last is None else paging.token(_UTXOS, params, pack_cursor(last.position))
    shown = [row for row in page if _can_spend(row, set(addresses))]
    await network.assets.load({unpack_utxo(row.raw).asset_id for row in shown})
    utxos = [stored_utxo(network, row, with_bytes=True) for row in shown]
    return PlatformUtxoPage(next_page_token=token, utxos=utxos, chain_info=network.chain_info)


def _is_wanted(row: ListedUtxo, params: ChainUtxosParams) -> bool:
    utxo = unpack_utxo(row.raw)
    return params.asset_id in (None, utxo.asset_id) and plain_output(utxo.output)[0] >= params.min_utxo_amount


def _can_spend(row: ListedUtxo, addresses: set[bytes]) -> bool:
    """Whether the addresses together reach the output's threshold."""
    owners = plain_output(unpack_utxo(row.raw).output)[2]
    return len(addresses.intersection(owners.addresses)) >= owners.threshold


def time_of(params: PlatformBalancesParams, clock: NetworkClock) -> int:
    """The time that balances are asked for, which is not in the future."""
    now = int(clock.now())
    at = now if params.block_timestamp is None else params.block_timestamp
    if at > now:
        raise BadRequest(f"blockTimestamp must not be in the future, got {at}")
    return at


async def balances(params: PlatformBalancesParams, networks: Networks, clock: NetworkClock) -> PlatformBalancesResult:
    network = await networks.find(params.network, params.blockchain_id)
    await networks.listed(params.network)
    at = time_of(params, clock)
    addresses, is_past = network.parsed(params.addresses), params.block_timestamp is not None
    sums: dict[str, dict[bytes, list[int]]] = {}
    seen: set[int] = set()
    for address in addresses:
        for state in _ALL if is_past else _UNSPENT:
            above = -1
            while rows := await network.lists.amounts(address, state, above, PIECE):
                for row in rows:
                    category = _category(row, at, is_past=is_past)
                    if category is not None and row.position not in seen:
                        total = sums.setdefault(category, {}).setdefault(row.asset_id, [0, 0])
                        total[0] += row.amount
                        total[1] += 1
                    if len(addresses) > 1 and len(row.addresses) > len(address):
                        seen.add(row.position)  # another of the addresses may own it too
                above = rows[-1].position
                await asyncio.sleep(0)
    await network.assets.load({asset_id for totals in sums.values() for asset_id in totals})
    plain = {
        category: [_amount(network, asset_id, *total) for asset_id, total in sums.get(category, {}).items()]
        for category in _CATEGORIES
    }
    unlocked, locked = await _atomic(network, addresses, at, is_past=is_past)
    return PlatformBalancesResult(
        balances=PlatformBalances(**plain, atomic_memory_unlocked=unlocked, atomic_memory_locked=locked),
        chain_info=network.chain_info,
    )


_CATEGORIES = (
    "unlocked_unstaked",
    "unlocked_staked",
    "locked_platform",
    "locked_stakeable",
    "locked_staked",
    "pending_staked",
)


def _category(row: AmountRow, at: int, *, is_past: bool) -> str | None:
    """The category of an output at a time; None where it was not there."""
    if is_past and (row.created_time > at or (row.spent_time is not None and row.spent_time <= at)):
        return None
    stake = None
    if row.stake_end is not None and row.stake_start is not None:
        is_returned = row.returned_time is not None and (not is_past or row.returned_time <= at)
        stake = None if is_returned else (row.stake_start, row.stake_end)
    return balance_category(row.locktime, row.stakeable_locktime, stake, at)


def _amount(network: PrimaryNetwork, asset_id: bytes, amount: int, count: int) -> CategoryAmount:
    fields = network.assets.fields(asset_id)
    return CategoryAmount(type="secp256k1", amount=str(amount), utxo_count=count, **fields)  # type: ignore[arg-type]


async def _atomic(
    network: PrimaryNetwork, addresses: tuple[bytes, ...], at: int, *, is_past: bool
) -> tuple[list[SharedAmount], list[SharedAmount]]:
    """What X and C have exported to P, and P to them, and was not imported at the time, by lock."""
    held = await held_by(network, PLATFORM_CHAIN, addresses, at, is_past=is_past)
    await network.assets.load({one.asset_id for one in held})
    shown: tuple[list[SharedAmount], list[SharedAmount]] = [], []
    for one in held:
        if one.peer is not None:
            shown[one.is_locked].append(
                SharedAmount(
                    type="secp256k1",
                    amount=str(one.amount),
                    utxo_count=one.count,
                    shared_with_chain_id=id_text(one.peer),
                    status="pendingImport" if one.is_incoming else "pendingExport",
                    **network.assets.fields(one.asset_id),  # type: ignore[arg-type]
                )
            )
    return shown
