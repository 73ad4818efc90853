"""Handlers of tokens: those of a chain, the NFTs of a collection, the holders of a token, and its daily prices."""

from collections.abc import Sequence
from typing import cast

from msgspec import UNSET

from icefall.api.data.render.context import nft_context
from icefall.api.data.render.text import Money
from icefall.api.data.render.tokens import NFT_TOKENS
from icefall.api.data.schema.explorer import (
    DailyPrice,
    PricePage,
    PricesParams,
    TokenPage,
    TokenParams,
    TokensParams,
    TokenSummary,
)
from icefall.api.data.schema.tokens import (
    CollectionParams,
    CurrencyCode,
    ErcType,
    HolderPage,
    HoldersParams,
    Nft,
    NftPage,
    NftParams,
    TokenHolder,
)
from icefall.api.dialect import Dialect
from icefall.api.http.paging import Paging, cursor_of, pack_cursor
from icefall.api.http.structs import address_text
from icefall.errors import NotFound
from icefall.evm.encoding import pack_uint
from icefall.evm.enriching.nft_outcomes import DAY_S
from icefall.evm.enriching.reader import TokenDetails
from icefall.evm.model import ERC20
from icefall.evm.reading.directory import ChainDirectory, EvmChain
from icefall.evm.reading.holders import HolderRead, HolderTotal
from icefall.evm.reading.model import AFTER_ALL
from icefall.evm.reading.ranking import TokenOrder, TokenTotals
from icefall.evm.reading.tokens import NftRead, TokenRead
from icefall.evm.standards import WITH_IDS
from icefall.evm.status import IndexerCalls

_PRICES, _TOKENS, _NFTS, _HOLDERS = "prices", "tokens", "collectionTokens", "holders"
_REF_SIZE = 8
_RENDER = {standard.holding: NFT_TOKENS[standard.number] for standard in WITH_IDS}


async def list_tokens(params: TokensParams, chains: ChainDirectory, paging: Paging, dialect: Dialect) -> TokenPage:
    chain = await chains.find(params.chain_id)
    before = cursor_of(_TOKENS, params, paging)
    if params.sort_by is None:
        rows, more = await chain.tokens.tokens(before, params.page_size, params.erc_type)
    else:
        order = cast(TokenOrder, params.sort_by)
        rows, more = await chain.ranking.page(order, before, params.page_size, params.erc_type)
    token = UNSET if more is None else paging.token(_TOKENS, params, pack_cursor(*more))
    return TokenPage(next_page_token=token, tokens=await _summaries(chain, dialect, rows))


async def get_summary(params: TokenParams, chains: ChainDirectory, dialect: Dialect) -> TokenSummary:
    chain = await chains.find(params.chain_id)
    found = await chain.tokens.token(params.address)
    if found is None:
        raise NotFound(f"chain {chain.info.id} has no indexed token {address_text(params.address)}")
    (summary,) = await _summaries(chain, dialect, [found])
    return summary


async def _summaries(chain: EvmChain, dialect: Dialect, rows: Sequence[TokenRead]) -> list[TokenSummary]:
    priced = await chain.enriched.priced_tokens([row.token_ref for row in rows], "usd")
    totals = await chain.ranking.totals(rows)
    namesakes = await chain.ranking.listed_namesakes(rows)
    money = Money("usd", as_numbers=dialect.prices_are_numbers)
    return [
        _summary(row, priced.get(row.token_ref, TokenDetails()), totals.get(row.token_ref), namesakes, money)
        for row in rows
    ]


def _summary(
    row: TokenRead, details: TokenDetails, totals: TokenTotals | None, namesakes: dict[int, bytes], money: Money
) -> TokenSummary:
    namesake = namesakes.get(row.token_ref)
    value = UNSET if totals is None or row.decimals is None else money.value(totals.supply, row.decimals, details.price)
    return TokenSummary(
        address=address_text(row.address),
        erc_type=cast(ErcType, row.erc_type),
        name=row.name or UNSET,
        symbol=row.symbol or UNSET,
        decimals=UNSET if row.decimals is None else row.decimals,
        first_block=str(row.first_block),
        price=money.price(details.price),
        logo_uri=row.logo_uri or UNSET,
        holders=UNSET if totals is None else totals.holders,
        transfers=UNSET if totals is None else totals.transfers,
        total_supply=UNSET if totals is None else str(totals.supply),
        market_value=value,
        is_listed=row.is_listed,
        listed_namesake=UNSET if namesake is None else address_text(namesake),
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


async def list_nfts(params: CollectionParams, chains: ChainDirectory, paging: Paging, dialect: Dialect) -> NftPage:
    chain = await chains.find(params.chain_id)
    after = paging.after(_NFTS, params) or b""
    found = await chain.tokens.nfts(params.address, after, params.page_size + 1)
    page = found[: params.page_size]
    rendered = await _rendered(chain, dialect, params.address, page)
    more = len(found) > len(page)
    token = paging.token(_NFTS, params, pack_uint(page[-1].token_id)) if more else UNSET
    return NftPage(next_page_token=token, tokens=rendered)


async def get_token(params: NftParams, chains: ChainDirectory, dialect: Dialect) -> Nft:
    chain = await chains.find(params.chain_id)
    found = await nft_of(chain, params)
    (rendered,) = await _rendered(chain, dialect, params.address, [found])
    return rendered


async def reindex(params: NftParams, chains: ChainDirectory, indexer: IndexerCalls) -> str:
    """Have the indexer read the metadata of an NFT again, in the background."""
    chain = await chains.find(params.chain_id)
    found = await nft_of(chain, params)
    await indexer.reindex_nft(chain.info.id, params.address, pack_uint(found.token_id))
    return ""


async def nft_of(chain: EvmChain, params: NftParams) -> NftRead:
    """Return an NFT; NotFound if it is not indexed."""
    found = await chain.tokens.nft(params.address, params.token_id)
    if found is None:
        raise NotFound(
            f"chain {chain.info.id} has no indexed NFT {params.token_id} of contract {address_text(params.address)}"
        )
    return found


async def _rendered(chain: EvmChain, dialect: Dialect, contract: bytes, nfts: Sequence[NftRead]) -> list[Nft]:
    context = await nft_context(chain, dialect, contract, nfts)
    return [_RENDER[one.holding](context, contract, one.token_ref, one.token_id) for one in nfts]


async def token_holders(params: HoldersParams, chains: ChainDirectory, paging: Paging, dialect: Dialect) -> HolderPage:
    """List the holders of a token, largest first. A contract with several standards has the holders of the first, in
    the order of evm/standards.py."""
    chain = await chains.find(params.chain_id)
    raw = paging.after(_HOLDERS, params)
    after = (int.from_bytes(raw[_REF_SIZE:], "big"), int.from_bytes(raw[:_REF_SIZE], "big")) if raw else None
    totals = await chain.holders.totals(params.address)
    total = totals[0] if totals else HolderTotal(ERC20, 0, 0)
    rows = await chain.holders.by_balance(params.address, total.standard, after, params.page_size + 1)
    page = rows[: params.page_size]
    token = UNSET if len(rows) == len(page) else paging.token(_HOLDERS, params, _cursor(page[-1]))
    contract = await chain.tokens.contract(params.address)
    price = await chain.enriched.current_price(params.address, params.currency) if total.standard == ERC20 else None
    decimals = contract.decimals if contract is not None else None
    money = Money(params.currency, as_numbers=dialect.prices_are_numbers)
    trust = await chain.holders.trust(params.address)
    return HolderPage(
        next_page_token=token,
        total_holders=total.holders,
        counted_to_block=await chain.blocks.meta("holders_to") or UNSET,
        is_trusted=trust.is_trusted,
        balance_source=trust.balance_source,
        holders=[
            TokenHolder(
                address=address_text(row.address),
                balance=str(row.balance),
                balance_value=UNSET if decimals is None else money.value(row.balance, decimals, price),
            )
            for row in page
        ],
    )


def _cursor(row: HolderRead) -> bytes:
    return row.ref.to_bytes(_REF_SIZE, "big") + row.balance.to_bytes((row.balance.bit_length() + 7) // 8, "big")
