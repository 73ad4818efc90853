"""Handlers of outputs and balances of addresses on X, on C, and in the memory that the chains share."""

import asyncio
import struct
from collections.abc import AsyncIterator, Sequence

import msgspec
from msgspec import UNSET, UnsetType

from icefall.api.http.paging import Paging
from icefall.api.networks.handlers.credentials import credentials_of_spent
from icefall.api.networks.handlers.transactions import SCAN_MAX
from icefall.api.networks.handlers.x_chain import cut
from icefall.api.networks.network import C_CHAIN, Networks, PrimaryNetwork
from icefall.api.networks.render.outputs import listed_utxo
from icefall.api.networks.schema.c_chain import ChainUtxosParams
from icefall.api.networks.schema.transactions import CategoryAmount, PlatformBalancesParams
from icefall.api.networks.schema.x_chain import (
    AtomicAmount,
    CBalances,
    CBalancesResult,
    ChainUtxoPage,
    XBalances,
    XBalancesResult,
)
from icefall.wire.avm.codec import unpack_utxo
from icefall.wire.ids import id_text
from icefall.xchain.outputs import ListedOutput, amount_of

PIECE = 1000  # outputs read at a time, so that other requests can run in between
_UTXOS = "chainUtxos"
_UNSPENT, _SPENT = 0, 1
_PLACE = struct.Struct(">q32s")  # of a cursor: time or amount, and the output's ID


async def list_utxos(chain: str, params: ChainUtxosParams, networks: Networks, paging: Paging) -> ChainUtxoPage:
    network = await networks.listed(params.network, chain)
    addresses, by_amount = network.parsed(params.addresses), params.sort_by == "amount"
    cursor = paging.after(_UTXOS, params)
    is_filtered = params.asset_id is not None or params.min_utxo_amount > 0
    limit = SCAN_MAX if is_filtered else params.page_size + 1
    rows = await network.outputs.owned(
        network.chain_id(chain),
        addresses,
        (_UNSPENT, _SPENT) if params.include_spent else (_UNSPENT,),
        None if cursor is None else _PLACE.unpack(cursor),
        limit,
        upwards=params.sort_order == "asc",
        by_amount=by_amount,
    )
    wanted = [row for row in rows if _is_wanted(row, params)] if is_filtered else rows
    page, last = cut(rows, wanted, params.page_size, limit)
    token: str | UnsetType = UNSET
    if last is not None:
        place = _PLACE.pack(last.amount if by_amount else last.created_time, last.utxo_id)
        token = paging.token(_UTXOS, params, place)
    shown = [row for row in page if _can_spend(row, set(addresses))]
    await network.assets.load({unpack_utxo(row.raw).asset_id for row in shown})
    credentials = await credentials_of_spent(network, shown)
    utxos = [
        listed_utxo(network, row, with_bytes=True, credentials=credentials.get(row.utxo_id, UNSET)) for row in shown
    ]
    return ChainUtxoPage(next_page_token=token, utxos=utxos, chain_info=network.info(chain))


def _is_wanted(row: ListedOutput, params: ChainUtxosParams) -> bool:
    utxo = unpack_utxo(row.raw)
    return params.asset_id in (None, utxo.asset_id) and amount_of(utxo.output) >= params.min_utxo_amount


def _can_spend(row: ListedOutput, addresses: set[bytes]) -> bool:
    """Whether the addresses together reach the output's threshold."""
    owners = unpack_utxo(row.raw).output.owners
    return len(addresses.intersection(owners.addresses)) >= owners.threshold


# -- balances ------------------------------------------------------------------------------------------------------


class HeldAmount(msgspec.Struct, frozen=True):
    """What outputs of one asset, with one lock and on one side of the shared memory, add up to. `peer` is the chain at
    the other end, None for outputs of the chain itself; `is_incoming`: that chain has exported them."""

    asset_id: bytes
    is_locked: bool
    peer: bytes | None
    is_incoming: bool
    amount: int
    count: int


async def held_by(
    network: PrimaryNetwork, chain_id: bytes, addresses: Sequence[bytes], at: int, *, is_past: bool
) -> list[HeldAmount]:
    """Outputs of addresses at a time, added up. What only confers the right to mint is left out."""
    totals: dict[tuple[bytes, bool, bytes | None, bool], list[int]] = {}
    seen: set[tuple[bytes, bytes]] = set()
    for address in addresses:
        async for row in _outputs_of(network, chain_id, address, is_past=is_past):
            if (is_past and not _was_there(row, at)) or (row.utxo_id, row.source) in seen:
                continue
            utxo = unpack_utxo(row.raw)
            owners, amount = utxo.output.owners, amount_of(utxo.output)
            if len(addresses) > 1 and len(owners.addresses) > 1:
                seen.add((row.utxo_id, row.source))  # another of the addresses may own it too
            if not amount:
                continue
            peer, is_incoming = None, False
            if row.source != row.destination:
                is_incoming = row.destination == chain_id
                peer = row.source if is_incoming else row.destination
            total = totals.setdefault((utxo.asset_id, owners.locktime > at, peer, is_incoming), [0, 0])
            total[0] += amount
            total[1] += 1
    return [HeldAmount(*key, *total) for key, total in totals.items()]


async def _outputs_of(
    network: PrimaryNetwork, chain_id: bytes, address: bytes, *, is_past: bool
) -> AsyncIterator[ListedOutput]:
    for state in (_UNSPENT, _SPENT) if is_past else (_UNSPENT,):
        after: tuple[int, bytes] | None = None
        while rows := await network.outputs.owned(chain_id, [address], [state], after, PIECE, upwards=True):
            for row in rows:
                yield row
            after = rows[-1].created_time, rows[-1].utxo_id
            await asyncio.sleep(0)


def _was_there(row: ListedOutput, at: int) -> bool:
    return row.created_time <= at and (row.spent_time is None or row.spent_time > at)


async def balances(
    chain: str, params: PlatformBalancesParams, networks: Networks, at: int
) -> XBalancesResult | CBalancesResult:
    """Balances on X or C. Outputs of the shared memory are in the balances of both chains."""
    network = await networks.listed(params.network, chain)
    addresses, is_past = network.parsed(params.addresses), params.block_timestamp is not None
    held = await held_by(network, network.chain_id(chain), addresses, at, is_past=is_past)
    await network.assets.load({one.asset_id for one in held})
    atomic = {
        is_locked: [_atomic(network, *key, *total) for key, total in _by_peer(held, is_locked=is_locked).items()]
        for is_locked in (False, True)
    }
    info = network.info(chain)
    if chain == C_CHAIN:
        of_c = CBalances(atomic_memory_unlocked=atomic[False], atomic_memory_locked=atomic[True])
        return CBalancesResult(balances=of_c, chain_info=info)
    own = {
        is_locked: [_amount(network, one) for one in held if one.peer is None and one.is_locked == is_locked]
        for is_locked in (False, True)
    }
    of_x = XBalances(
        locked=own[True], unlocked=own[False], atomic_memory_unlocked=atomic[False], atomic_memory_locked=atomic[True]
    )
    return XBalancesResult(balances=of_x, chain_info=info)


def _by_peer(held: Sequence[HeldAmount], *, is_locked: bool) -> dict[tuple[bytes, bytes], tuple[int, int]]:
    """Amounts and counts by the other chain and the asset, in both directions."""
    found: dict[tuple[bytes, bytes], tuple[int, int]] = {}
    for one in held:
        if one.peer is not None and one.is_locked == is_locked:
            amount, count = found.get((one.peer, one.asset_id), (0, 0))
            found[one.peer, one.asset_id] = amount + one.amount, count + one.count
    return found


def _amount(network: PrimaryNetwork, one: HeldAmount) -> CategoryAmount:
    assets = network.assets
    return CategoryAmount(
        type=assets.type_of(one.asset_id),
        amount=str(one.amount),
        utxo_count=one.count,
        **assets.fields(one.asset_id),  # type: ignore[arg-type]
    )


def _atomic(network: PrimaryNetwork, peer: bytes, asset_id: bytes, amount: int, count: int) -> AtomicAmount:
    assets = network.assets
    return AtomicAmount(
        type=assets.type_of(asset_id),
        amount=str(amount),
        utxo_count=count,
        shared_with_chain_id=id_text(peer),
        **assets.fields(asset_id),  # type: ignore[arg-type]
    )
