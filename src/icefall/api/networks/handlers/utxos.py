"""Handlers of outputs and balances of addresses on the P-Chain."""

import asyncio
import struct
import time
from collections.abc import Callable, Sequence
from heapq import merge
from itertools import islice
from typing import NamedTuple

import msgspec
from msgspec import UNSET, UnsetType

from icefall.api.http.paging import Paging
from icefall.api.networks.handlers.outputs import held_by
from icefall.api.networks.handlers.transactions import SCAN_MAX
from icefall.api.networks.handlers.x_chain import cut
from icefall.api.networks.network import Networks, PrimaryNetwork
from icefall.api.networks.render.utxos import shared_utxo, stored_utxo
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
from icefall.pchain.listing import AmountRow, ListedUtxo, place_of
from icefall.pchain.model import UtxoState, balance_category, plain_output
from icefall.wire.ids import PLATFORM_CHAIN, id_text
from icefall.wire.pvm.codec import unpack_utxo
from icefall.wire.pvm.types import PlatformUtxo
from icefall.xchain.outputs import ListedOutput

PIECE = 1000  # outputs read at a time, so that other requests can run in between
_UTXOS = "platformUtxos"
_PLACES = struct.Struct(">?qq?q32s")
_UNSPENT = (UtxoState.UNSPENT, UtxoState.STAKED)
_ALL = (*_UNSPENT, UtxoState.SPENT)


class NetworkClock(msgspec.Struct, frozen=True):
    """Unix time, for balances of now."""

    now: Callable[[], float] = time.time


class _Listed(NamedTuple):
    """An output of a list. `key` is its time or its amount; one that is shared with another chain comes after the
    chain's own of the same key."""

    key: int
    utxo: PlatformUtxo
    row: ListedUtxo | ListedOutput

    @property
    def order(self) -> tuple[int, bool]:
        return self.key, isinstance(self.row, ListedOutput)


async def list_utxos(params: ChainUtxosParams, networks: Networks, paging: Paging) -> PlatformUtxoPage:
    """Outputs of the chain, and those that it or another chain has exported to the other: two lists made one. A cursor
    is a place in each."""
    await networks.listed(params.network)
    network = await networks.find(params.network, params.blockchain_id)
    addresses = network.parsed(params.addresses)
    is_filtered = params.asset_id is not None or params.min_utxo_amount > 0
    limit = SCAN_MAX if is_filtered else params.page_size + 1
    places = Places.of(paging.after(_UTXOS, params))
    rows = await _merged(network, params, addresses, places, limit)
    wanted = [row for row in rows if _is_wanted(row, params)] if is_filtered else rows
    page, last = cut(rows, wanted, params.page_size, limit)
    token: str | UnsetType = UNSET
    if last is not None:
        token = paging.token(_UTXOS, params, places.behind(rows[: rows.index(last) + 1]).packed())
    shown = [row for row in page if _can_spend(row.utxo, set(addresses))]
    await network.assets.load({row.utxo.asset_id for row in shown})
    utxos = [
        shared_utxo(network, row.row)
        if isinstance(row.row, ListedOutput)
        else stored_utxo(network, row.row, with_bytes=True)
        for row in shown
    ]
    return PlatformUtxoPage(next_page_token=token, utxos=utxos, chain_info=network.chain_info)


class Places(NamedTuple):
    """The end of a page: among the outputs of the chain, by amount and by when they were made, and among the shared
    ones, by time or amount and ID. None: none of them was shown."""

    own: tuple[int, int] | None = None
    shared: tuple[int, bytes] | None = None

    @classmethod
    def of(cls, cursor: bytes | None) -> "Places":
        if cursor is None:
            return cls()
        has_own, amount, made, has_shared, key, utxo_id = _PLACES.unpack(cursor)
        return cls((amount, made) if has_own else None, (key, utxo_id) if has_shared else None)

    def packed(self) -> bytes:
        own, shared = self.own or (0, 0), self.shared or (0, bytes(32))
        return _PLACES.pack(self.own is not None, *own, self.shared is not None, *shared)

    def behind(self, rows: Sequence[_Listed]) -> "Places":
        """The places behind these rows, which begin where these places are."""
        own, shared = self
        for listed in rows:
            row = listed.row
            if isinstance(row, ListedOutput):
                shared = listed.key, row.utxo_id
            else:
                own = place_of(row)
        return Places(own, shared)


async def _merged(
    network: PrimaryNetwork, params: ChainUtxosParams, addresses: tuple[bytes, ...], places: Places, limit: int
) -> list[_Listed]:
    """So many outputs behind the places."""
    upwards, by_amount = params.sort_order == "asc", params.sort_by == "amount"
    states = _ALL if params.include_spent else _UNSPENT
    own = await network.lists.utxos_of(addresses, states, places.own, limit, upwards=upwards, by_amount=by_amount)
    shared = await network.outputs.owned(
        PLATFORM_CHAIN,
        addresses,
        (False, True) if params.include_spent else (False,),
        places.shared,
        limit,
        upwards=upwards,
        by_amount=by_amount,
    )
    of_chain = [_Listed(place_of(row)[0] if by_amount else row.created_time, unpack_utxo(row.raw), row) for row in own]
    of_both = [_Listed(row.amount if by_amount else row.created_time, unpack_utxo(row.raw), row) for row in shared]
    return list(islice(merge(of_chain, of_both, key=lambda row: row.order, reverse=not upwards), limit))


def _is_wanted(row: _Listed, params: ChainUtxosParams) -> bool:
    amount = plain_output(row.utxo.output)[0]
    return params.asset_id in (None, row.utxo.asset_id) and amount >= params.min_utxo_amount


def _can_spend(utxo: PlatformUtxo, addresses: set[bytes]) -> bool:
    """Whether the addresses together reach the output's threshold."""
    owners = plain_output(utxo.output)[2]
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
                    if category is not None and row.made not in seen:
                        total = sums.setdefault(category, {}).setdefault(row.asset_id, [0, 0])
                        total[0] += row.amount
                        total[1] += 1
                    if len(addresses) > 1 and len(row.addresses) > len(address):
                        seen.add(row.made)  # another of the addresses may own it too
                above = rows[-1].made
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
