"""The handler of lists of addresses that are made of several questions."""

import datetime
from collections.abc import Awaitable, Callable

from msgspec import UNSET, UnsetType

from icefall.api.http.paging import Paging
from icefall.api.http.structs import NoParams, address_text
from icefall.api.metrics.address_schema import (
    AddressQuery,
    CompositeAnswer,
    CompositeQuery,
    QueryParams,
)
from icefall.errors import BadRequest
from icefall.evm.reading.directory import ChainDirectory, EvmChain
from icefall.evm.reading.holdings import HoldingReader
from icefall.evm.reading.model import AFTER_ALL
from icefall.evm.reading.native_holdings import NativeHoldingReader, NativeQuestion
from icefall.evm.reading.one_history import in_one_history

_COMPOSITE = "compositeQuery"
_DAY = datetime.timedelta(days=1)
_NO_DIFFS = "native balances are not indexed on this chain: its upstream gives no state differences"
Find = Callable[[QueryParams, EvmChain], Awaitable[set[bytes]]]


async def composite_query(
    _: NoParams, query: CompositeQuery, chains: ChainDirectory, paging: Paging
) -> CompositeAnswer:
    """Answer each question by itself, then take the addresses of all of them, or those that are in every one."""
    ids = [one.id for one in query.queries]
    if len(set(ids)) < len(ids):
        raise BadRequest("each of the queries needs an id of its own")
    finds = [_find_of(one) for one in query.queries]
    after = paging.after(_COMPOSITE, query)
    found = [
        await in_one_history(find, one.params, await chains.find(one.params.evm_chain_id or ""))
        for one, find in zip(query.queries, finds, strict=True)
    ]
    wanted = set.union(*found) if query.operator == "OR" else set.intersection(*found)
    left = sorted(one for one in wanted if after is None or one > after)
    page = left[: query.page_size]
    token: str | UnsetType = UNSET
    if len(left) > len(page):
        token = paging.token(_COMPOSITE, query, page[-1])
    return CompositeAnswer(
        next_page_token=token,
        sub_query_counts={one: len(addresses) for one, addresses in zip(ids, found, strict=True)},
        total_count=len(wanted),
        addresses=[address_text(one) for one in page],
    )


# -- the questions -----------------------------------------------------------------------------------------------------


def _find_of(query: AddressQuery) -> Find:
    """The function that answers a question. BadRequest where it is of no known type, or cannot be answered here."""
    find = _FINDS.get(query.type)
    if find is None:
        if "StarsArena" in query.type:
            raise BadRequest(f"type {query.type} is about the shares of one product, which are not indexed here")
        raise BadRequest(f"type {query.type} is not known: use one of {', '.join(_FINDS)}")
    if not query.params.evm_chain_id:
        raise BadRequest(f"query {query.id} needs params.evmChainId")
    return find


async def _latest(params: QueryParams, chain: EvmChain) -> set[bytes]:
    if params.token_type not in ("ERC20", "NATIVE"):
        raise BadRequest("params.tokenType must be ERC20 or NATIVE")
    if params.token_type == "NATIVE":  # noqa: S105 - a kind of token, no password
        return await (await _native_holdings(chain)).now(_least(params))
    return await HoldingReader(chain.reader).now(_contract(params), _least(params))


async def _all_time_native(params: QueryParams, chain: EvmChain) -> set[bytes]:
    asked = NativeQuestion(_least(params), await _blocks(params, chain), throughout=True)
    return await (await _native_holdings(chain)).of(asked)


async def _any_time_native(params: QueryParams, chain: EvmChain) -> set[bytes]:
    asked = NativeQuestion(_least(params), await _blocks(params, chain), throughout=False)
    return await (await _native_holdings(chain)).of(asked)


async def _native_holdings(chain: EvmChain) -> NativeHoldingReader:
    """The native balances of a chain. BadRequest where only its upstream knows them."""
    if await chain.blocks.meta("has_diffs") == "0":
        raise BadRequest(_NO_DIFFS)
    return NativeHoldingReader(chain.reader, chain.balances)


async def _all_time_erc20(params: QueryParams, chain: EvmChain) -> set[bytes]:
    found = _contract(params), _least(params), await _blocks(params, chain)
    return await HoldingReader(chain.reader).of_erc20(*found, throughout=True)


async def _any_time_erc20(params: QueryParams, chain: EvmChain) -> set[bytes]:
    found = _contract(params), _least(params), await _blocks(params, chain)
    return await HoldingReader(chain.reader).of_erc20(*found, throughout=False)


async def _all_time_nfts(params: QueryParams, chain: EvmChain) -> set[bytes]:
    return await HoldingReader(chain.reader).of_nfts(_contract(params), await _blocks(params, chain), throughout=True)


async def _any_time_nfts(params: QueryParams, chain: EvmChain) -> set[bytes]:
    return await HoldingReader(chain.reader).of_nfts(_contract(params), await _blocks(params, chain), throughout=False)


_FINDS: dict[str, Find] = {
    "LatestBalance": _latest,
    "AllTimeNativeBalance": _all_time_native,
    "AnyTimeNativeBalance": _any_time_native,
    "AllTimeErc20Balance": _all_time_erc20,
    "AnyTimeErc20Balance": _any_time_erc20,
    "AllTimeNftHolders": _all_time_nfts,
    "AnyTimeNftHolders": _any_time_nfts,
}


def _contract(params: QueryParams) -> bytes:
    if params.contract_address is None:
        raise BadRequest("params.contractAddress is missing")
    return bytes.fromhex(params.contract_address[2:])


def _least(params: QueryParams) -> int:
    """The least balance that counts: none that is zero."""
    if params.min_balance is None:
        raise BadRequest("params.minBalance is missing")
    return max(int(params.min_balance), 1)


async def _blocks(params: QueryParams, chain: EvmChain) -> range:
    """The blocks of the days, or of the time, that a question is about."""
    if params.first_date is not None and params.last_date is not None:
        first, end = _midnight(params.first_date), _midnight(params.last_date, _DAY)
    elif params.start_ts is not None and params.end_ts is not None:
        first, end = int(params.start_ts), int(params.end_ts) + 1
    else:
        raise BadRequest("params needs firstDate and lastDate; about NFTs, startTs and endTs do too")
    if first >= end:
        raise BadRequest("the time in params ends before it begins")
    return range(await _first_block(chain, first), await _first_block(chain, end))


def _midnight(day: str, later: datetime.timedelta = datetime.timedelta()) -> int:
    try:
        return int((datetime.datetime.fromisoformat(day).replace(tzinfo=datetime.UTC) + later).timestamp())
    except (ValueError, OverflowError):
        raise BadRequest(f"{day} is not a day, such as 2024-12-31") from None


async def _first_block(chain: EvmChain, time: int) -> int:
    """The first block at this time or later."""
    if time >= 1 << 32:
        return AFTER_ALL
    earlier = await chain.blocks.at_or_before(time - 1) if time > 0 else None
    return earlier.number + 1 if earlier is not None else 0
