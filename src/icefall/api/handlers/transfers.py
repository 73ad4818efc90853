"""Transfers and internal transactions of an address, and transfers of a token. Newest first."""

from icefall.api.dialect import Dialect
from icefall.api.paging import Paging
from icefall.api.presenting.knowledge import knowledge_for, parts_of
from icefall.api.presenting.pages import cut, span_of
from icefall.api.presenting.transfers import erc20, erc721, erc1155, internal, token_transfer
from icefall.api.schema.transfers import (
    AddressPage,
    Erc20TransferPage,
    Erc721TransferPage,
    Erc1155TransferPage,
    InternalTransactionPage,
    TokenTransferPage,
)
from icefall.evm.reading.directory import ChainDirectory
from icefall.evm.reading.model import Erc20Read, Erc721Read, Erc1155Read


async def list_erc20(ask: AddressPage, chains: ChainDirectory, paging: Paging, dialect: Dialect) -> Erc20TransferPage:
    chain = await chains.find(ask.chain_id)
    found = await chain.transfers.erc20_of(ask.address, span_of("listErc20", ask, paging), ask.page_size + 1)
    rows, token = cut("listErc20", ask, paging, found)
    known = await knowledge_for(chain, dialect, parts=parts_of(erc20=rows))
    return Erc20TransferPage(next_page_token=token, transactions=[erc20(known, row) for row in rows])


async def list_erc721(ask: AddressPage, chains: ChainDirectory, paging: Paging, dialect: Dialect) -> Erc721TransferPage:
    chain = await chains.find(ask.chain_id)
    found = await chain.transfers.erc721_of(ask.address, span_of("listErc721", ask, paging), ask.page_size + 1)
    rows, token = cut("listErc721", ask, paging, found)
    known = await knowledge_for(chain, dialect, parts=parts_of(erc721=rows))
    return Erc721TransferPage(next_page_token=token, transactions=[erc721(known, row) for row in rows])


async def list_erc1155(
    ask: AddressPage, chains: ChainDirectory, paging: Paging, dialect: Dialect
) -> Erc1155TransferPage:
    chain = await chains.find(ask.chain_id)
    found = await chain.transfers.erc1155_of(ask.address, span_of("listErc1155", ask, paging), ask.page_size + 1)
    rows, token = cut("listErc1155", ask, paging, found)
    known = await knowledge_for(chain, dialect, parts=parts_of(erc1155=rows))
    return Erc1155TransferPage(next_page_token=token, transactions=[erc1155(known, row) for row in rows])


async def list_internals(
    ask: AddressPage, chains: ChainDirectory, paging: Paging, dialect: Dialect
) -> InternalTransactionPage:
    chain = await chains.find(ask.chain_id)
    found = await chain.transfers.internals_of(ask.address, span_of("listInternals", ask, paging), ask.page_size + 1)
    rows, token = cut("listInternals", ask, paging, found)
    known = await knowledge_for(chain, dialect, parts=parts_of(internals=rows))
    return InternalTransactionPage(next_page_token=token, transactions=[internal(known, row) for row in rows])


async def list_transfers(
    ask: AddressPage, chains: ChainDirectory, paging: Paging, dialect: Dialect
) -> TokenTransferPage:
    chain = await chains.find(ask.chain_id)
    found = await chain.transfers.in_token(ask.address, span_of("transfers", ask, paging), ask.page_size + 1)
    rows, token = cut("transfers", ask, paging, found)
    kinds = parts_of(
        erc20=[row for row in rows if isinstance(row, Erc20Read)],
        erc721=[row for row in rows if isinstance(row, Erc721Read)],
        erc1155=[row for row in rows if isinstance(row, Erc1155Read)],
    )
    known = await knowledge_for(chain, dialect, parts=kinds)
    return TokenTransferPage(next_page_token=token, transfers=[token_transfer(known, row) for row in rows])
