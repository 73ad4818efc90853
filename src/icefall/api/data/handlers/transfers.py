"""Handlers of transfers and internal transactions of an address, and of transfers of a token, newest first."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from icefall.api.data.render.context import AnswerContext, rendered
from icefall.api.data.render.transactions import internals, transfers
from icefall.api.data.schema.transfers import (
    TRANSFER_PAGES,
    AddressPage,
    InternalTransactionPage,
    TokenTransferPage,
)
from icefall.api.dialect import Dialect
from icefall.api.http.paging import Paging, cut, page_range
from icefall.api.http.row import Handler
from icefall.api.http.structs import Page
from icefall.evm.enriching.reader import AnswerTokens
from icefall.evm.model import ERC20
from icefall.evm.reading.directory import ChainDirectory, EvmChain
from icefall.evm.reading.model import InternalRead, PageRange, TransferRead
from icefall.evm.standards import STANDARDS

Render = Callable[[AnswerContext, Any], list[Any]]
Rows = Sequence[TransferRead | InternalRead]
Read = Callable[[EvmChain, bytes, PageRange, int], Awaitable[tuple[Rows, AnswerTokens | None]]]
_CURRENCY = "usd"


def _rows_alone(read: Callable[[EvmChain, bytes, PageRange, int], Awaitable[Rows]]) -> Read:
    async def read_rows(chain: EvmChain, address: bytes, span: PageRange, limit: int) -> tuple[Rows, None]:
        return await read(chain, address, span, limit), None

    return read_rows


def _of_standard(standard: int) -> Read:
    if standard == ERC20:
        return _erc20
    return _rows_alone(lambda chain, address, span, limit: chain.lists.transfers_of(standard, address, span, limit))


async def _erc20(chain: EvmChain, address: bytes, span: PageRange, limit: int) -> tuple[Rows, AnswerTokens | None]:
    """Read ERC-20 transfers: on a server in one round trip instead of two, as no other list is asked for as often."""
    return await chain.lists.erc20_with_tokens(address, span, limit, _CURRENCY)


def _list_of(route: str, read: Read, render: Render, page: type[Page], field: str = "transactions") -> Handler:
    """The handler of one list: `read` returns its rows, and what is known of their tokens if it was read with them;
    `render` makes items of rows, `field` of `page` holds them."""

    async def list_page(params: AddressPage, chains: ChainDirectory, paging: Paging, dialect: Dialect) -> Page:
        chain = await chains.find(params.chain_id)
        span = page_range(route, params, paging)
        found, tokens = await read(chain, params.address, span, params.page_size + 1)
        rows, token = cut(route, params, paging, found)
        items = await rendered(chain, dialect, rows, render, _CURRENCY, tokens)
        return page(next_page_token=token, **{field: items})

    return list_page


list_standard = {  # by its number
    one.number: _list_of(f"list{one.label}", _of_standard(one.number), transfers, TRANSFER_PAGES[one.number])
    for one in STANDARDS
}
list_internals = _list_of(
    "listInternals",
    _rows_alone(lambda chain, *page: chain.transfers.internals_of(*page)),
    internals,
    InternalTransactionPage,
)
list_transfers = _list_of(
    "transfers",
    _rows_alone(lambda chain, *page: chain.transfers.in_token(*page)),
    transfers,
    TokenTransferPage,
    "transfers",
)
