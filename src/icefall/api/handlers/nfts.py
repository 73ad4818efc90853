"""NFTs of a collection, and the request to read one's metadata again."""

from collections.abc import Sequence

from msgspec import UNSET

from icefall.api.dialect import Dialect
from icefall.api.paging import Paging
from icefall.api.presenting.context import nft_context
from icefall.api.presenting.hex import address_text
from icefall.api.presenting.tokens import erc721_token, erc1155_token
from icefall.api.schema.nfts import CollectionParams, NftPage, NftParams
from icefall.api.schema.tokens import Erc721Token, Erc1155Token
from icefall.errors import NotFound
from icefall.evm.amounts import pack_uint
from icefall.evm.following.indexer_calls import IndexerCalls
from icefall.evm.reading.directory import ChainDirectory, EvmChain
from icefall.evm.reading.tokens import NftRead

_LIST = "collectionTokens"


async def list_tokens(params: CollectionParams, chains: ChainDirectory, paging: Paging, dialect: Dialect) -> NftPage:
    chain = await chains.find(params.chain_id)
    after = paging.after(_LIST, params) or b""
    found = await chain.tokens.nfts(params.address, after, params.page_size + 1)
    page = found[: params.page_size]
    shown = await _shown(chain, dialect, params.address, page)
    more = len(found) > len(page)
    token = paging.token(_LIST, params, pack_uint(page[-1].token_id)) if more else UNSET
    return NftPage(next_page_token=token, tokens=shown)


async def get_token(params: NftParams, chains: ChainDirectory, dialect: Dialect) -> Erc721Token | Erc1155Token:
    chain = await chains.find(params.chain_id)
    found = await _nft(chain, params)
    (shown,) = await _shown(chain, dialect, params.address, [found])
    return shown


async def reindex(params: NftParams, chains: ChainDirectory, indexer: IndexerCalls) -> str:
    """The indexer reads the metadata again, in the background."""
    chain = await chains.find(params.chain_id)
    found = await _nft(chain, params)
    await indexer.reindex_nft(chain.info.id, params.address, pack_uint(found.token_id))
    return ""


async def _nft(chain: EvmChain, params: NftParams) -> NftRead:
    found = await chain.tokens.nft(params.address, params.token_id)
    if found is None:
        raise NotFound(
            f"chain {chain.info.id} has no indexed NFT {params.token_id} of contract {address_text(params.address)}"
        )
    return found


async def _shown(
    chain: EvmChain, dialect: Dialect, contract: bytes, nfts: Sequence[NftRead]
) -> list[Erc721Token | Erc1155Token]:
    context = await nft_context(chain, dialect, contract, nfts)
    return [
        (erc721_token if one.is_erc721 else erc1155_token)(context, contract, one.token_ref, one.token_id)
        for one in nfts
    ]
