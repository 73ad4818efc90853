"""The balance of an address over time: at every change, or at the end of every hour, day, week or month."""

import asyncio

from msgspec import UNSET

from icefall.api.data.handlers.balances import charged
from icefall.api.data.schema.explorer import BalanceAtTime, BalanceHistoryPage, BalanceHistoryParams
from icefall.api.http.paging import Paging, cursor_of, pack_cursor
from icefall.api.http.row import Charged
from icefall.errors import BadRequest
from icefall.evm.reading.balances import BalanceChange, CallBudget
from icefall.evm.reading.directory import ChainDirectory, EvmChain
from icefall.evm.reading.model import AFTER_ALL
from icefall.metrics.rollup import SPAN_NAMES, first_from, start_of

_LIST = "balanceHistory"
_AT_ONCE = 16  # points whose balance is read from state at the same time


async def balance_history(
    params: BalanceHistoryParams, chains: ChainDirectory, paging: Paging
) -> BalanceHistoryPage | Charged:
    start, end = params.start_timestamp, params.end_timestamp
    if start is not None and end is not None and start > end:
        raise BadRequest(f"startTimestamp must not be after endTimestamp, got {start} and {end}")
    chain, budget = await chains.find(params.chain_id), CallBudget()
    (before,) = cursor_of(_LIST, params, paging) or (None,)
    is_untrusted: bool | None = False
    if params.contract_address is not None:
        is_untrusted = await chain.history.is_untrusted(params.address, params.contract_address)
    if is_untrusted is None:
        return BalanceHistoryPage(history=[])
    if params.time_interval is None:
        points, more = await _changes(chain, params, before, budget, is_untrusted=is_untrusted)
    else:
        points, more = await _periods(chain, params, before, budget)
    token = UNSET if more is None else paging.token(_LIST, params, pack_cursor(more))
    rendered = [BalanceAtTime(one.time, str(one.block), str(one.balance)) for one in points]
    return charged(BalanceHistoryPage(next_page_token=token, history=rendered), budget)


async def _changes(
    chain: EvmChain, params: BalanceHistoryParams, before: int | None, budget: CallBudget, *, is_untrusted: bool
) -> tuple[list[BalanceChange], int | None]:
    """A page, and the block below which the next one begins."""
    low, high = await _blocks(chain, params)
    high = high if before is None else min(high, before)
    limit = params.page_size + 1
    if params.contract_address is None:
        if await chain.blocks.meta("has_diffs") == "0":
            raise BadRequest("the changes of native balances are not indexed on this chain: give timeInterval")
        found = await chain.history.native(params.address, low, high, limit)
    else:
        found = await chain.history.erc20(params.address, params.contract_address, low, high, limit)
    page = found[: params.page_size]
    if is_untrusted:
        page = await _resolved(chain, params, [(one.time, one.block) for one in page], budget)
    return page, page[-1].block if len(found) > params.page_size else None


async def _periods(
    chain: EvmChain, params: BalanceHistoryParams, before: int | None, budget: CallBudget
) -> tuple[list[BalanceChange], int | None]:
    """A page by period: the balance after the last block of each, and the period below which the next page begins."""
    span = SPAN_NAMES.index(params.time_interval)
    extent = await chain.history.periods(span)
    if extent is None:
        return [], None
    first, last = extent
    if params.start_timestamp is not None:
        first = max(first, first_from(span, params.start_timestamp))
    if params.end_timestamp is not None:
        last = min(last, first_from(span, params.end_timestamp) - 1)
    last = last if before is None else min(last, before - 1)
    wanted = range(last, max(first, last - params.page_size + 1) - 1, -1)
    blocks = [(start_of(span, period), await chain.history.last_block(span, period)) for period in wanted]
    points = await _resolved(chain, params, [(time, block) for time, block in blocks if block is not None], budget)
    return points, wanted[-1] if wanted and wanted[-1] > first else None


async def _resolved(
    chain: EvmChain, params: BalanceHistoryParams, points: list[tuple[int, int]], budget: CallBudget
) -> list[BalanceChange]:
    """The balance right after each block, from state where it does not follow from the index."""
    found: list[BalanceChange] = []
    for at in range(0, len(points), _AT_ONCE):
        some = points[at : at + _AT_ONCE]
        balances = await asyncio.gather(*(_balance(chain, params, block, budget) for _, block in some))
        found += [BalanceChange(block, time, held) for (time, block), held in zip(some, balances, strict=True)]
    return found


async def _balance(chain: EvmChain, params: BalanceHistoryParams, block: int, budget: CallBudget) -> int:
    if params.contract_address is None:
        return await chain.balances.native(params.address, block)
    held, _ = await chain.balances.erc20(params.address, block, None, 1, [params.contract_address], budget)
    return held[0].balance if held else 0


async def _blocks(chain: EvmChain, params: BalanceHistoryParams) -> tuple[int, int]:
    """The first block of the time frame, and the first one after it."""
    low, high = 0, AFTER_ALL
    if params.start_timestamp:
        earlier = await chain.blocks.at_or_before(params.start_timestamp - 1)
        low = earlier.number + 1 if earlier is not None else 0
    if params.end_timestamp is not None:
        latest = await chain.blocks.at_or_before(params.end_timestamp - 1)
        high = latest.number + 1 if latest is not None else 0
    return low, high
