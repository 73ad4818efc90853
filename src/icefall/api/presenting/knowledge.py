"""What enrichment knows about the things one answer names, gathered before any row of it is shaped."""

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from icefall.api.dialect import Dialect
from icefall.api.presenting.money import Money
from icefall.api.schema.parties import Party
from icefall.api.schema.tokens import Erc20Token
from icefall.errors import BadGateway, Unavailable
from icefall.evm.enriching.reader import NftFacts, TokenFacts
from icefall.evm.reading.directory import EvmChain
from icefall.evm.reading.model import Erc20Read, Erc721Read, Erc1155Read, InternalRead, Parts, TxRead

Nft = tuple[int, int]  # the store's number of its contract, and its ID


class AnswerContext(msgspec.Struct, frozen=True):
    """`tokens` by the store's number of their address; who is not in it is no token."""

    chain_id: str
    dialect: Dialect
    money: Money
    method_names: Mapping[bytes, str]
    tokens: Mapping[int, TokenFacts] = {}
    nfts: Mapping[Nft, NftFacts] = {}
    owners: Mapping[tuple[bytes, int], bytes] = {}
    parties: dict[bytes, Party] = {}  # shown already: an answer names the same few again and again
    erc20_tokens: dict[bytes, Erc20Token] = {}


async def knowledge_for(
    chain: EvmChain,
    dialect: Dialect,
    *,
    txs: Iterable[TxRead] = (),
    parts: Sequence[Parts] = (),
    currency: str = "usd",
) -> AnswerContext:
    refs: set[int] = set()
    nfts: set[Nft] = set()
    owned: set[tuple[bytes, int]] = set()
    for tx in txs:
        refs.update((tx.sender_ref, tx.to_ref))
    for part in parts:
        for one in part.erc20:
            refs.update((one.sender_ref, one.to_ref, one.token_ref))
        for nft in part.erc721:
            refs.update((nft.sender_ref, nft.to_ref, nft.token_ref))
            nfts.add((nft.token_ref, nft.token_id))
            owned.add((nft.token, nft.token_id))
        for lot in part.erc1155:
            refs.update((lot.sender_ref, lot.to_ref))
            nfts.add((lot.token_ref, lot.token_id))
        for call in part.internals:
            refs.update((call.sender_ref, call.to_ref))
    return AnswerContext(
        chain.info.id,
        dialect,
        Money(currency, as_numbers=dialect.prices_are_numbers),
        chain.method_names,
        await chain.facts.priced_tokens(refs, currency),
        await chain.facts.nft_metadata(nfts) if nfts else {},
        await _owners(chain, owned) if owned else {},
    )


async def _owners(chain: EvmChain, nfts: set[tuple[bytes, int]]) -> dict[tuple[bytes, int], bytes]:
    """A courtesy of transfer lists: where only an upstream could tell, and it does not, owners are absent."""
    pairs = list(nfts)
    try:
        owners = await chain.balances.owners(pairs)
    except (BadGateway, Unavailable):
        return {}
    return {pair: owner for pair, owner in zip(pairs, owners, strict=True) if owner is not None}


def parts_of(
    *,
    erc20: Sequence[Erc20Read] = (),
    erc721: Sequence[Erc721Read] = (),
    erc1155: Sequence[Erc1155Read] = (),
    internals: Sequence[InternalRead] = (),
) -> list[Parts]:
    return [Parts(list(erc20), list(erc721), list(erc1155), list(internals))]
