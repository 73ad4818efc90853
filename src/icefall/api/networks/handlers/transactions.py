"""Handlers of transactions of the P-Chain. Filters read a bounded number of rows: a page may be short then, and its
token tells whether there is more."""

from collections.abc import Awaitable, Callable

from msgspec import UNSET, UnsetType

from icefall.api.http.paging import Paging, cursor_of, pack_cursor
from icefall.api.networks.handlers.blocks import check_times
from icefall.api.networks.network import Networks, PrimaryNetwork
from icefall.api.networks.params import TYPE_IDS
from icefall.api.networks.render.transactions import rendered_txs
from icefall.api.networks.schema.transactions import (
    ListedTxsParams,
    PlatformTransaction,
    PlatformTransactionPage,
    PlatformTxParams,
    PlatformTxsParams,
)
from icefall.errors import BadRequest, NotFound
from icefall.pchain.listing import ListedTx
from icefall.pchain.model import StakerState, plain_output
from icefall.pchain.transactions import reward_owner_of, stake_of
from icefall.wire.packer import GENESIS_SIZE_MAX
from icefall.wire.pvm import types as t
from icefall.wire.pvm.codec import unpack_tx

SCAN_MAX = 1000  # rows that a request with a filter reads
_TXS, _STAKING = "platformTransactions", "platformStaking"
_STAKING_TYPES = frozenset(
    {
        t.AddValidatorTx.type_id,
        t.AddDelegatorTx.type_id,
        t.AddSubnetValidatorTx.type_id,
        t.AddPermissionlessValidatorTx.type_id,
        t.AddPermissionlessDelegatorTx.type_id,
    }
)
_Filter = Callable[[list[ListedTx]], Awaitable[list[ListedTx]]]


def _type_ids(params: PlatformTxsParams) -> frozenset[int]:
    """The types that are asked for; one that P does not have matches nothing."""
    return frozenset(TYPE_IDS.get(name, -1) for name in params.tx_types)


async def get_transaction(params: PlatformTxParams, networks: Networks) -> PlatformTransaction:
    network = await networks.find(params.network, params.blockchain_id)
    found = await network.lists.txs_with_ids([params.tx_hash])
    if not found:
        raise NotFound("the P-Chain has no such transaction")
    return (await rendered_txs(network, list(found.values()), with_genesis=True))[0]


async def list_transactions(params: ListedTxsParams, networks: Networks, paging: Paging) -> PlatformTransactionPage:
    network = await networks.find(params.network, params.blockchain_id)
    types = _type_ids(params)
    if params.l1_validation_id is not None and params.addresses:
        raise BadRequest("addresses and l1ValidationId cannot both be given")

    async def wanted(rows: list[ListedTx]) -> list[ListedTx]:
        return [row for row in rows if row.type_id in types]

    return await _page(_TXS, params, network, paging, wanted if types else None, params.l1_validation_id)


async def list_staking(params: PlatformTxsParams, networks: Networks, paging: Paging) -> PlatformTransactionPage:
    """Transactions whose staker is a current one; those of addresses, if they own the stake or get its reward."""
    network = await networks.find(params.network, params.blockchain_id)
    types = _STAKING_TYPES & _type_ids(params) if params.tx_types else _STAKING_TYPES
    addresses = set(network.parsed(params.addresses))

    async def wanted(rows: list[ListedTx]) -> list[ListedTx]:
        staking = [row for row in rows if row.type_id in types]
        if addresses:
            staking = [row for row in staking if not addresses.isdisjoint(_stakeholders(row))]
        stakers = await network.lists.stakers_with_ids([row.txid for row in staking])
        return [row for row in staking if row.txid in stakers and stakers[row.txid].state == StakerState.CURRENT]

    return await _page(_STAKING, params, network, paging, wanted)


def _stakeholders(row: ListedTx) -> set[bytes]:
    """Who owns the outputs at stake, and who gets the reward."""
    unsigned = unpack_tx(row.raw, GENESIS_SIZE_MAX).unsigned
    owner = reward_owner_of(unsigned)
    found = {address for out in stake_of(unsigned) for address in plain_output(out.output)[2].addresses}
    return found if owner is None else found.union(owner.addresses)


async def _page(
    route: str,
    params: PlatformTxsParams,
    network: PrimaryNetwork,
    paging: Paging,
    wanted: _Filter | None,
    l1_validation_id: bytes | None = None,
) -> PlatformTransactionPage:
    low, below = await _range(route, params, network, paging)
    addresses, upwards = network.parsed(params.addresses), params.sort_order == "asc"
    limit = SCAN_MAX if wanted else params.page_size + 1
    if l1_validation_id is not None:
        rows = await network.lists.txs_of_l1(l1_validation_id, low, below, limit, upwards=upwards)
    elif addresses:
        rows = await network.lists.txs_of(addresses, low, below, limit, upwards=upwards)
    else:
        rows = await network.lists.txs(low, below, limit, upwards=upwards)
    found = await wanted(rows) if wanted else rows
    last: ListedTx | None = None  # the page continues behind it
    if len(found) > params.page_size:
        found = found[: params.page_size]
        last = found[-1]
    elif len(rows) == limit:
        last = rows[-1]
    token: str | UnsetType = UNSET if last is None else paging.token(route, params, pack_cursor(last.seq))
    return PlatformTransactionPage(
        next_page_token=token, transactions=await rendered_txs(network, found), chain_info=network.chain_info
    )


async def _range(route: str, params: PlatformTxsParams, network: PrimaryNetwork, paging: Paging) -> tuple[int, int]:
    """The numbers of the transactions of a time frame, both ends included, and of what is left after a page."""
    check_times(params.start_timestamp, params.end_timestamp)
    low, below = 0, await network.lists.tx_count()
    count = below
    if params.start_timestamp is not None:
        low = await network.lists.first_seq(params.start_timestamp, count)
    if params.end_timestamp is not None:
        below = await network.lists.first_seq(params.end_timestamp + 1, count)
    cursor = cursor_of(route, params, paging)
    if cursor is not None:
        low, below = (max(low, cursor[0] + 1), below) if params.sort_order == "asc" else (low, min(below, cursor[0]))
    return low, below
