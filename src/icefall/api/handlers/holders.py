"""Holders of a token, as the indexer has counted them. Pages are walks along an index."""

from msgspec import UNSET

from icefall.api.dialect import Dialect
from icefall.api.paging import NumberPaging, Paging
from icefall.api.presenting.hex import address_text
from icefall.api.presenting.money import Money
from icefall.api.schema.holders import (
    AddressList,
    HolderPage,
    HoldersAboveParams,
    HoldersParams,
    ListedAddress,
    NftHolderList,
    NftHoldersParams,
    TokenHolder,
)
from icefall.errors import BadRequest
from icefall.evm.model import ERC20
from icefall.evm.reading.directory import ChainDirectory, EvmChain
from icefall.evm.reading.holders import NFTS, HolderRead, HolderTotal
from icefall.evm.reading.model import AFTER_ALL

_HOLDERS, _NFT_HOLDERS, _ABOVE = "holders", "nftHolders", "holdersAbove"
_REF_SIZE = 8


async def token_holders(params: HoldersParams, chains: ChainDirectory, paging: Paging, dialect: Dialect) -> HolderPage:
    """Of a contract with several standards, those of the first: ERC-20, ERC-721, ERC-1155."""
    chain = await chains.find(params.chain_id)
    raw = paging.after(_HOLDERS, params)
    after = (int.from_bytes(raw[_REF_SIZE:], "big"), int.from_bytes(raw[:_REF_SIZE], "big")) if raw else None
    totals = await chain.holders.totals(params.address)
    total = totals[0] if totals else HolderTotal(ERC20, 0, 0)
    rows = await chain.holders.by_balance(params.address, total.standard, after, params.page_size + 1)
    page = rows[: params.page_size]
    token = UNSET if len(rows) == len(page) else paging.token(_HOLDERS, params, _cursor(page[-1]))
    contract = await chain.contracts.contract(params.address)
    price = await chain.enriched.current_price(params.address, params.currency) if total.standard == ERC20 else None
    decimals = contract.decimals if contract is not None else None
    money = Money(params.currency, as_numbers=dialect.prices_are_numbers)
    return HolderPage(
        next_page_token=token,
        total_holders=total.holders,
        counted_to_block=await chain.chain.meta("holders_to") or UNSET,
        is_trusted=await chain.holders.is_trusted(params.address),
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


async def nft_holders(params: NftHoldersParams, chains: ChainDirectory, paging: NumberPaging) -> NftHolderList:
    chain = await chains.find(params.chain_id)
    after = paging.after(_NFT_HOLDERS, params) or 0
    totals = [one for one in await chain.holders.totals(params.address) if one.standard in NFTS]
    total = totals[0] if totals else HolderTotal(NFTS[0], 0, 0)
    rows, more = await chain.holders.by_id(params.address, total.standard, after, params.page_size)
    contract = await chain.contracts.contract(params.address)
    return NftHolderList(
        next_page_token=UNSET if more is None else paging.token(_NFT_HOLDERS, params, more),
        addresses=[_listed(row) for row in rows],
        nft_collection_name=[contract.name] if contract is not None and contract.name else UNSET,
        nft_symbol=[contract.symbol] if contract is not None and contract.symbol else UNSET,
        total_holders=total.holders,
        total_tokens=total.tokens,
    )


async def holders_above(params: HoldersAboveParams, chains: ChainDirectory, paging: NumberPaging) -> AddressList:
    """Who held more than the threshold at any time of the frame; without a frame, at any time."""
    start, end = params.start_timestamp, params.end_timestamp
    if start is not None and end is not None and start > end:
        raise BadRequest(f"startTimestamp must not be after endTimestamp, got {start} and {end}")
    chain = await chains.find(params.chain_id)
    after = paging.after(_ABOVE, params) or 0
    blocks = range(await _first_block(chain, start, 0), await _first_block(chain, end, AFTER_ALL))
    rows, more = await chain.holders.above(params.address, params.threshold, blocks, after, params.page_size)
    token = UNSET if more is None else paging.token(_ABOVE, params, more)
    return AddressList(next_page_token=token, addresses=[_listed(row) for row in rows])


async def _first_block(chain: EvmChain, time: int | None, absent: int) -> int:
    """The first block at this time or later."""
    if time is None:
        return absent
    earlier = await chain.chain.at_or_before(time - 1) if time else None
    return earlier.number + 1 if earlier is not None else 0


def _listed(row: HolderRead) -> ListedAddress:
    return ListedAddress(address_text(row.address), f"0x{row.address.hex()}")
