"""The data that an answer needs besides its rows: token and NFT details, owners and prices, read before any row is
rendered.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

import msgspec

from icefall.api.data.render.text import Money, money_of
from icefall.api.dialect import Dialect
from icefall.errors import BadGateway, Unavailable
from icefall.evm.enriching.reader import AnswerTokens, NftDetails, TokenDetails
from icefall.evm.model import ERC20, ERC721
from icefall.evm.reading.contracts import MethodNames
from icefall.evm.reading.directory import EvmChain
from icefall.evm.reading.model import InternalRead, TransferRead, TxRead
from icefall.evm.reading.tokens import NftRead
from icefall.evm.standards import Holding

PIECE = 200  # rows rendered or looked up at a time, about 5 ms
T = TypeVar("T")
Rendered = TypeVar("Rendered")
Row = TypeVar("Row", bound=TxRead | TransferRead | InternalRead)
TokenKey = tuple[bytes, int]  # address and its interned ID
NftRef = tuple[int, int]  # interned ID of the contract, and token ID
NftKey = tuple[bytes, int]  # address of the contract, and token ID


class NotRead(Exception):
    """A row names something whose details were not read yet."""


class AnswerContext(msgspec.Struct, frozen=True):
    """The details that rows of an answer are rendered with. `tokens` are by the interned ID of their address; one that
    is not in it, or None, is not a token. `parties` and the like are JSON: answers repeat the same addresses.

    `is_partial`: nothing was read for the rows. A token that is not in `tokens`, or any NFT, is NotRead then."""

    chain_id: str
    dialect: Dialect
    money: Money
    method_names: MethodNames
    tokens: Mapping[int, TokenDetails | None] = {}
    nfts: Mapping[NftRef, NftDetails] = {}
    owners: Mapping[NftKey, bytes] = {}
    parties: dict[TokenKey, str] = {}
    erc20_tokens: dict[TokenKey, str] = {}
    held_tokens: dict[TokenKey, str] = {}
    is_partial: bool = False

    def token(self, ref: int) -> TokenDetails | None:
        """Return the details of an address by its interned ID; None if it is no token."""
        details = self.tokens.get(ref)
        if details is None and self.is_partial and ref not in self.tokens:
            raise NotRead
        return details


async def balances_context(chain: EvmChain, dialect: Dialect, refs: Iterable[int], currency: str) -> AnswerContext:
    """Read the details of the tokens in a list of balances."""
    tokens = await chain.enriched.answer_tokens(refs, currency)
    money = money_of(currency, as_numbers=dialect.prices_are_numbers)
    held = tokens.texts["held"]
    return AnswerContext(chain.info.id, dialect, money, chain.method_names, tokens.details, held_tokens=held)


def known_context(chain: EvmChain, dialect: Dialect, currency: str = "usd") -> AnswerContext | None:
    """Return a partial context of what other answers from this version of the store have read: enough for most pages,
    which then need not be searched for what they name. None where nothing is kept, or the names of methods depend on
    what contracts are proxies of."""
    tokens = None if chain.method_names.has_own else chain.enriched.known_tokens(currency)
    if tokens is None:
        return None
    return AnswerContext(
        chain.info.id,
        dialect,
        money_of(currency, as_numbers=dialect.prices_are_numbers),
        chain.method_names,
        tokens.details,
        parties=tokens.texts["parties"],
        erc20_tokens=tokens.texts["erc20"],
        is_partial=True,
    )


async def rendered(
    chain: EvmChain,
    dialect: Dialect,
    rows: Sequence[Row],
    render: Callable[[AnswerContext, Sequence[Row]], list[Rendered]],
    currency: str = "usd",
    tokens: AnswerTokens | None = None,
) -> list[Rendered]:
    """Render rows with what is known already, or, if that is not enough, with what is read for them."""
    known = known_context(chain, dialect, currency) if tokens is None else None
    if known is not None:
        try:
            return render(known, rows)
        except NotRead:
            pass
    return render(await context_for(chain, dialect, rows, currency, tokens), rows)


async def context_for(
    chain: EvmChain,
    dialect: Dialect,
    rows: Iterable[TxRead | TransferRead | InternalRead],
    currency: str = "usd",
    tokens: AnswerTokens | None = None,
) -> AnswerContext:
    """Read the details of everything that the rows of an answer name. `tokens` are those of all rows, if they were read
    with them."""
    refs: set[int] = set()
    unnamed: set[bytes] = set()  # contracts that were called with a selector whose name is not known
    names, has_abis = chain.method_names, chain.method_names.has_own
    nfts: set[NftRef] = set()
    owned: set[NftKey] = set()
    add = refs.add
    for row in rows:
        add(row.sender_ref)
        add(row.to_ref)
        if type(row) is TransferRead:
            if row.standard == ERC20:
                add(row.token_ref)
                continue
            nfts.add((row.token_ref, row.token_id))
            if row.standard == ERC721:
                add(row.token_ref)  # other NFTs do not show the name of their contract
                owned.add((row.token, row.token_id))
        elif has_abis and type(row) is TxRead and row.selector and names.of(row.to, row.selector) is None:
            unnamed.add(row.to)
    if unnamed:
        await chain.learn_proxies(unnamed)
    tokens = tokens or await chain.enriched.answer_tokens(refs, currency)
    return AnswerContext(
        chain.info.id,
        dialect,
        money_of(currency, as_numbers=dialect.prices_are_numbers),
        chain.method_names,
        tokens.details,
        await _nft_metadata(chain, list(nfts)) if nfts else {},
        await _owners(chain, owned) if owned else {},
        tokens.texts["parties"],
        tokens.texts["erc20"],
    )


async def nft_context(chain: EvmChain, dialect: Dialect, contract: bytes, nfts: Sequence[NftRead]) -> AnswerContext:
    """Read the details of single NFTs of one contract."""
    return AnswerContext(
        chain.info.id,
        dialect,
        money_of("usd", as_numbers=dialect.prices_are_numbers),
        chain.method_names,
        await chain.enriched.priced_tokens({one.token_ref for one in nfts}, "usd"),
        await _nft_metadata(chain, [(one.token_ref, one.token_id) for one in nfts]),
        await _owners(chain, {(contract, one.token_id) for one in nfts if one.holding is Holding.OWNER}),
    )


async def in_pieces(rows: Sequence[T], show: Callable[[T], Rendered]) -> list[Rendered]:
    """Render each row with `show`. If there are more than PIECE, other requests can run before each piece of them."""
    if len(rows) <= PIECE:
        return [show(row) for row in rows]
    rendered: list[Rendered] = []
    for at in range(0, len(rows), PIECE):
        await asyncio.sleep(0)
        rendered += [show(row) for row in rows[at : at + PIECE]]
    return rendered


async def _nft_metadata(chain: EvmChain, nfts: Sequence[NftRef]) -> dict[NftRef, NftDetails]:
    found: dict[NftRef, NftDetails] = {}
    for at in range(0, len(nfts), PIECE):
        if len(nfts) > PIECE:
            await asyncio.sleep(0)
        found |= await chain.enriched.nft_metadata(nfts[at : at + PIECE])
    return found


async def _owners(chain: EvmChain, nfts: set[NftKey]) -> dict[NftKey, bytes]:
    """Read the owners of NFTs. They are left out of lists where they need an upstream and it does not answer."""
    keys = list(nfts)
    try:
        owners = await chain.balances.owners(keys)
    except (BadGateway, Unavailable):
        return {}
    return {key: owner for key, owner in zip(keys, owners, strict=True) if owner is not None}
