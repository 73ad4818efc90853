"""The handlers of pictures of NFTs and tokens on other hosts. The store says where they are, never the caller."""

from icefall.api.data.handlers.tokens import nft_of
from icefall.api.data.schema.explorer import TokenParams
from icefall.api.data.schema.tokens import NftParams
from icefall.api.http.row import File
from icefall.errors import NotFound
from icefall.evm.enriching.pictures import Pictures
from icefall.evm.reading.directory import ChainDirectory

# Opened by its own address, a picture is nothing but a picture.
PICTURE_HEADERS = (
    ("cache-control", "private, max-age=86400"),
    ("content-security-policy", "default-src 'none'; sandbox"),
    ("cross-origin-resource-policy", "same-origin"),
    ("x-content-type-options", "nosniff"),
)


async def nft_picture(params: NftParams, chains: ChainDirectory, pictures: Pictures) -> File:
    """Return the picture that the metadata of an NFT names, as it was read last."""
    chain = await chains.find(params.chain_id)
    nft = await nft_of(chain, params)
    key = (nft.token_ref, nft.token_id)
    metadata = (await chain.enriched.nft_metadata([key]))[key].metadata
    return await _picture(metadata.image_uri or "", pictures)


async def token_logo(params: TokenParams, chains: ChainDirectory, pictures: Pictures) -> File:
    """Return the logo of a token that is on the operator's list."""
    chain = await chains.find(params.chain_id)
    token = await chain.tokens.token(params.address)
    return await _picture("" if token is None else token.logo_uri, pictures)


async def _picture(uri: str, pictures: Pictures) -> File:
    """A picture that the metadata or the list embeds is not served: whoever reads the address has it."""
    if not uri:
        raise NotFound("no picture is known of it")
    return File(*await pictures.get(uri))
