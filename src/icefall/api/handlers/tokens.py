"""The tokens of a chain, and the daily prices of one."""

from typing import cast

from msgspec import UNSET

from icefall.api.dialect import Dialect
from icefall.api.paging import Paging
from icefall.api.presenting.hex import address_text
from icefall.api.presenting.money import Money
from icefall.api.presenting.pages import cursor_of, pack_cursor
from icefall.api.schema.explorer import (
    DailyPrice,
    ErcType,
    PricePage,
    PricesParams,
    TokenPage,
    TokensParams,
    TokenSummary,
)
from icefall.api.schema.parties import CurrencyCode
from icefall.evm.enriching.nft_outcomes import DAY_S
from icefall.evm.enriching.reader import TokenDetails
from icefall.evm.reading.directory import ChainDirectory
from icefall.evm.reading.model import AFTER_ALL
from icefall.evm.reading.tokens import TokenRead

_PRICES, _TOKENS = "prices", "tokens"


async def list_tokens(params: TokensParams, chains: ChainDirectory, paging: Paging, dialect: Dialect) -> TokenPage:
    chain = await chains.find(params.chain_id)
    before = cursor_of(_TOKENS, params, paging)
    rows, more = await chain.tokens.tokens(before, params.page_size, params.erc_type)
    priced = await chain.enriched.priced_tokens([row.token_ref for row in rows], "usd")
    money = Money("usd", as_numbers=dialect.prices_are_numbers)
    token = UNSET if more is None else paging.token(_TOKENS, params, pack_cursor(*more))
    shown = [_summary(row, priced.get(row.token_ref, TokenDetails()), money) for row in rows]
    return TokenPage(next_page_token=token, tokens=shown)


def _summary(row: TokenRead, details: TokenDetails, money: Money) -> TokenSummary:
    return TokenSummary(
        address=address_text(row.address),
        erc_type=cast(ErcType, row.erc_type),
        name=row.name or UNSET,
        symbol=row.symbol or UNSET,
        decimals=UNSET if row.decimals is None else row.decimals,
        first_block=str(row.first_block),
        price=money.price(details.price),
    )


async def list_prices(params: PricesParams, chains: ChainDirectory, paging: Paging, dialect: Dialect) -> PricePage:
    chain = await chains.find(params.chain_id)
    first = -(-(params.start_timestamp or 0) // DAY_S)
    last = AFTER_ALL if params.end_timestamp is None else (params.end_timestamp - 1) // DAY_S
    cursor = cursor_of(_PRICES, params, paging)
    if cursor is not None:
        last = min(last, cursor[0] - 1)
    found = await chain.tokens.prices(params.address, params.currency, first, last, params.page_size + 1)
    page = found[: params.page_size]
    now = await chain.enriched.current_price(params.address, params.currency)
    number = float if dialect.prices_are_numbers else str
    return PricePage(
        next_page_token=paging.token(_PRICES, params, pack_cursor(page[-1].day)) if len(found) > len(page) else UNSET,
        currency_code=cast(CurrencyCode, params.currency),
        current_price=UNSET if now is None else number(now),
        prices=[DailyPrice(one.day * DAY_S, number(one.value)) for one in page],
    )
